"""Agreement in words, at the terminal and at the gate; from figures made by hand."""

import re

import pytest

from exports.report.words import (
    decimal,
    discard_sentence,
    finding_sentences,
    fitness,
    gate_failures,
    label_sentence,
    macro_sentence,
    warning_sentences,
)
from exports.statistics.agreement_schema import Discards, LabelAgreement
from exports.statistics.warnings import ADVICE
from pipeline.core.terminal import printable
from tests.support.figures_data import RICH, against_rest, agreement, change, label, task
from tests.support.printed import agreement_terminal
from tests.support.results_data import results


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.744, ".74"), (-0.05, "-.05"), (1, "1.00"), (-1, "-1.00"), (0, ".00"), (-0.001, ".00"), (None, "–")],
)
def test_a_coefficient_is_printed_as_in_papers(value: float | None, shown: str) -> None:
    assert decimal(value) == shown


def test_what_could_steer_a_terminal_is_taken_out() -> None:
    assert printable("a\x1b[31m\r\n\u202eb\x00é漢") == "a�[31m���b�é漢"


def test_the_methods_sentence_names_everything_that_a_reader_needs() -> None:
    found = agreement(retrieval=task({"misleading": label()}), grounding=task({"source_cited": label()}))
    assert label_sentence(found, "retrieval", "misleading") == (
        "α = .74 [.62, .83] (Krippendorff, nominal; 95 % BCa bootstrap over 43 records / 169 passages, B = 2,000, "
        "seed 0; 3 annotators; citejury 0.1.0)"
    )
    assert "over 43 records, B" in label_sentence(found, "grounding", "source_cited")
    assert macro_sentence(found, "retrieval").startswith("mean α of 1 label = .74 [.62, .83] (")


def test_the_methods_sentence_says_why_a_figure_or_an_interval_is_missing() -> None:
    refused = {"krippendorff_alpha": "single_record"}
    labels = {"misleading": label(None, None), "helpful": label(0.5, None, refused_intervals=refused)}
    found = agreement(generation=task(labels, macro_alpha=None, macro_interval=None))
    assert "α is undefined: all answers on shared units are the same" in label_sentence(
        found, "generation", "misleading"
    )
    assert "no interval, since all shared units belong to one record" in label_sentence(found, "generation", "helpful")
    assert macro_sentence(found, "generation") == ""


def test_warnings_come_in_words_with_the_labels_they_are_about() -> None:
    found = list(warning_sentences(RICH))
    assert found[0].startswith("α is undefined for topically_relevant: all answers")
    assert f"misleading: {ADVICE['RARE_CLASS']}" in found
    assert found[-1].endswith(" Found: evidence_requires_relevance 3.")


def test_every_warning_code_is_put_into_words() -> None:
    for code in ADVICE:
        of_label = code in str(LabelAgreement.model_fields["warnings"].annotation)
        figures = task({"a": label(warnings=(code,)), "b": label()}) if of_label else task({}, warnings=(code,))
        assert any(ADVICE[code] in sentence for sentence in warning_sentences(figures)), code


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (label(0.9, 0.8, 0.95), "fit"),
        (label(0.9, 0.799, 0.95), "tentative"),
        (label(0.9, 0.667, 0.95), "tentative"),
        (label(0.9, 0.666, 0.95), "open"),
        (label(0.5, 0.3, 0.667), "open"),
        (label(0.5, 0.3, 0.666), "unfit"),
        (label(1.0, 1.0, 1.0, warnings=("RARE_CLASS",)), "open"),
        (label(0.1, 0.0, 0.2, warnings=("FEW_ITEMS",)), "open"),
        (label(0.9, None), "unknown"),
        (label(None, None), "unknown"),
    ],
)
def test_a_label_is_judged_by_both_ends_of_its_interval(found: LabelAgreement, verdict: str) -> None:
    assert fitness(found) == verdict


def test_of_many_annotators_those_are_named_who_stand_out_most_and_the_rest_is_counted() -> None:
    many = [against_rest(f"a{n}", n / 100, 0.001, 1.0, 0.031 - n / 1000) for n in range(1, 31)]
    found = list(finding_sentences(task({}, annotators_vs_rest=tuple(many))))
    assert [sentence.split(" ")[0] for sentence in found[:5]] == [f"a{n}" for n in (30, 29, 28, 27, 26)]
    assert found[5:] == ["25 more annotators and labels stand out: `stands_out` in annotators.csv."]


def test_nobody_is_named_for_an_interval_alone() -> None:
    found = task({}, annotators_vs_rest=(against_rest("carla", 0.3, 0.2, 0.4, p_holm=0.051),))
    assert list(finding_sentences(found)) == []
    assert not any("carla" in line for line in agreement_terminal(agreement(retrieval=found)).splitlines())


def test_where_nobody_can_be_told_apart_that_is_said() -> None:
    untold = {"p": None, "p_holm": None, "undefined": {"p": "no_exchange", "p_holm": "no_exchange"}}
    pair = tuple(against_rest(name, 0.1, 0.0, 0.2).model_copy(update=untold) for name in ("anna", "ben"))
    (sentence,) = warning_sentences(task({}, annotators_vs_rest=pair))
    assert sentence.startswith("Whether an annotator stands out cannot be told")


def test_discards_are_told_by_annotator_and_only_where_there_are_any() -> None:
    assert discard_sentence(RICH.discards).startswith("4 answers discarded, 2.4% of all (=HYPERLINK")
    assert discard_sentence(Discards(n_responses=0, share=0.0, by_annotator={"anna": 0.0})) == ""
    assert discard_sentence(None) == ""


def test_findings_are_changes_and_annotators_beyond_chance_only() -> None:
    found = list(finding_sentences(RICH))
    assert found[0] == (
        "α of misleading fell by .20 [.05, .35] from round calibration to production (permutation test, p = .012 after "
        "Holm)."
    )
    assert found[1].startswith("=HYPERLINK")
    assert found[1].endswith(
        " stands out on misleading: 31% of the others' answers differ from theirs, 14% would if annotators were "
        "interchangeable (permutation test, p = .002 after Holm)."
    )
    assert len(found) == 2
    assert list(finding_sentences(task({}, changes=(change(p_holm=0.05),)))) == []


def test_a_star_is_explained_only_where_one_is_shown() -> None:
    assert agreement_terminal(agreement(retrieval=RICH)).endswith("*: beyond chance.")
    assert "*" not in agreement_terminal(agreement(retrieval=task({"misleading": label(0.7, 0.6, 0.8)})))


def test_the_table_has_one_line_a_label_whatever_names_there_are() -> None:
    names = {"contradicted_claim_present": label(-0.14, -0.62, -0.11), "misleading": label(None, None)}
    figures = agreement(retrieval=RICH, grounding=task(names))
    text = agreement_terminal(figures)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", text)
    for label_name in names:
        told = [line for line in lines if line.startswith(f"{label_name} ")]
        assert len(told) == sum(label_name in part.labels for part in figures.tasks.values())
    row = next(line for line in lines if line.startswith("contradicted"))
    assert row.split() == ["contradicted_claim_present", "-.14", "[-.62,", "-.11]", "Not", "fit", "for", "use"]
    assert [line.split() for line in lines if line.startswith("misleading ")][-1][1:] == ["–", "Cannot", "be", "told"]
    cautions = sum(len(list(warning_sentences(part))) for part in figures.tasks.values())
    assert f"! {cautions} cautions to read first: report.html and agreement.md." in lines
    assert sum(line.startswith("* ") for line in lines) == len(list(finding_sentences(RICH)))


def test_what_the_jury_found_stands_above_agreement_and_agreement_alone_where_it_is_not_known() -> None:
    figures = agreement(retrieval=RICH)
    text = agreement_terminal(figures, results())
    assert text.startswith("Found in 60 answers of 3 models to 12 narratives, judged by ")
    assert text.endswith(agreement_terminal(figures))


def test_the_gate_looks_at_the_lower_end_unless_told_otherwise() -> None:
    found = agreement(retrieval=task({"misleading": label(0.74, 0.62), "topically_relevant": label(0.9, 0.7)}))
    assert gate_failures(found, 0.667) == [
        "retrieval misleading: the lower end of α's interval is 0.6200, below 0.667 (α is 0.7400)."
    ]
    assert gate_failures(found, 0.667, "point") == []
    assert gate_failures(found, 0.75, "point") == ["retrieval misleading: α is 0.7400, below 0.75."]
    assert gate_failures(found, 0.62) == []


def test_an_undefined_alpha_fails_the_gate_with_its_reason() -> None:
    found = agreement(generation=task({"helpful": label(None, None)}))
    for on in ("lower", "point"):
        (failure,) = gate_failures(found, -0.9, on)  # type: ignore[arg-type]
        assert failure.startswith("generation helpful: α is undefined: all answers on shared units are the same")


def test_an_alpha_without_an_interval_fails_the_gate_on_the_lower_end_only() -> None:
    helpful = label(0.9, None, refused_intervals={"krippendorff_alpha": "undefined_resamples"})
    found = agreement(generation=task({"helpful": helpful}))
    (failure,) = gate_failures(found, 0.667)
    assert "has no interval: α is undefined in more than 5 % of the resamples." in failure
    assert gate_failures(found, 0.667, "point") == []


def test_the_gate_looks_at_the_named_labels_only_and_fails_for_one_that_is_in_no_file() -> None:
    found = agreement(generation=task({"helpful": label(0.9, 0.8), "incomplete": label(0.1, 0.0)}))
    assert gate_failures(found, 0.667, labels=("helpful",)) == []
    assert gate_failures(found, 0.667, labels=("misleading",)) == ["misleading: none of the files has this label."]


def test_a_figure_just_below_the_threshold_does_not_look_equal_to_it() -> None:
    found = agreement(generation=task({"helpful": label(0.9, 0.66699)}))
    assert "is 0.6669, below 0.667" in gate_failures(found, 0.667)[0]

"""Agreement in words, at the terminal and at the gate; from figures made by hand."""

import re
from typing import get_args

from exports.report import words
from exports.statistics import agreement_schema as schema
from exports.statistics import results_schema
from exports.statistics.agreement_schema import Discards, LabelAgreement, TaskAgreement
from exports.statistics.alt_test import Conclusion
from exports.statistics.study import Consensus
from exports.statistics.table import UndefinedReason
from exports.statistics.warnings import ADVICE
from pipeline.core.terminal import printable
from tests.support.figures_data import RICH, against_rest, agreement, label, task
from tests.support.printed import agreement_terminal
from tests.support.results_data import results


def helpful(found: LabelAgreement) -> TaskAgreement:
    return task({"helpful": found})


def test_coefficients_are_printed_as_in_papers_with_a_minus() -> None:
    shown = {0.744: ".74", -0.05: "−.05", 1: "1.00", -1: "−1.00", 0: ".00", -0.001: ".00", None: "–"}
    assert {value: words.decimal(value) for value in shown} == shown
    assert printable("a\x1b[31m\r\n\u202eb\x00é漢") == "a�[31m���b�é漢"
    assert words.macro_sentence(task({})) == "Mean α of 1 label: .74 [.62, .83]"
    assert words.macro_sentence(task({}, macro_alpha=None, macro_interval=None)) == ""


def test_warnings_people_who_cannot_be_told_apart_and_discards_come_in_words() -> None:
    found = list(words.warning_sentences(RICH))
    assert found[0].startswith("α is undefined for topically_relevant: all answers")
    assert f"misleading: {ADVICE['RARE_CLASS']}" in found
    assert found[-1].endswith(" Found: evidence_requires_relevance 3.")
    for code in ADVICE:
        of_label = code in str(LabelAgreement.model_fields["warnings"].annotation)
        figures = task({"a": label(warnings=(code,)), "b": label()}) if of_label else task({}, warnings=(code,))
        assert any(ADVICE[code] in sentence for sentence in words.warning_sentences(figures)), code
    untold = {"p": None, "p_holm": None, "undefined": {"p": "no_exchange", "p_holm": "no_exchange"}}
    pair = tuple(against_rest(name, 0.1, 0.0, 0.2).model_copy(update=untold) for name in ("anna", "ben"))
    (sentence,) = words.warning_sentences(task({}, annotators_vs_rest=pair))
    assert sentence.startswith("Whether an annotator stands out cannot be told")
    assert words.discard_sentence(RICH.discards).startswith("4 answers discarded, 2.4 % of all (=HYPERLINK")
    assert words.discard_sentence(Discards(n_responses=0, share=0.0, by_annotator={"anna": 0.0})) == ""
    assert words.discard_sentence(None) == ""


def test_a_label_is_judged_by_both_ends_of_its_interval() -> None:
    for found, verdict in (
        (label(0.9, 0.8, 0.95), "fit"),
        (label(0.9, 0.799, 0.95), "tentative"),
        (label(0.9, 0.667, 0.95), "tentative"),
        (label(0.9, 0.666, 0.95), "open"),
        (label(0.5, 0.3, 0.667), "open"),
        (label(0.5, 0.3, 0.666), "unfit"),
        (label(1.0, 1.0, 1.0, warnings=("RARE_CLASS",)), "open"),
        (label(0.1, 0.0, 0.2, warnings=("FEW_ITEMS",)), "unfit"),
        (label(0.9, None), "unknown"),
        (label(None, None), "unknown"),
    ):
        assert words.fitness(found) == verdict


def test_what_cannot_be_told_has_its_reason_and_what_is_not_fit_needs_no_more_units() -> None:
    rare = label(0.9, None).model_copy(update={"refused_intervals": {"krippendorff_alpha": "too_few_rare_ratings"}})
    assert "Cannot be told: a value too rare" in agreement_terminal(agreement(grounding=helpful(rare)))
    for reason in (*get_args(UndefinedReason), *get_args(schema.RefusedReason)):
        refused = label(None, None).model_copy(update={"undefined": {"krippendorff_alpha": reason}})
        assert len(words.verdict(refused)) <= 33
    few = {
        "open": label(0.7, 0.3, 0.9, warnings=("SAMPLE_SIZE",)),
        "unfit": label(0.1, 0, 0.4, warnings=("SAMPLE_SIZE",)),
    }
    (sentence,) = (each for each in words.warning_sentences(task(few)) if ADVICE["SAMPLE_SIZE"] in each)
    assert sentence.startswith("open: ")


def test_those_who_stand_out_most_are_named_and_nobody_for_an_interval_alone() -> None:
    (told,) = words.annotator_sentences(RICH)
    assert told.startswith("=HYPERLINK")
    assert told.endswith(
        " reads misleading differently: 31 % of the others' answers differ from theirs, 17 points [10, 24] more than "
        "the others differ among themselves (permutation test, p = .002 after Holm). Look at r1, r2, r3: either side "
        "may be right."
    )
    many = [against_rest(f"a{n}", n / 100, 0.001, 1.0, 0.031 - n / 1000) for n in range(1, 31)]
    found = list(words.annotator_sentences(task({}, annotators_vs_rest=tuple(many))))
    assert [sentence.split(" ")[0] for sentence in found[:5]] == [f"a{n}" for n in (30, 29, 28, 27, 26)]
    assert found[5:] == ["25 more annotators and labels stand out: `stands_out` in annotators.csv."]
    alone = task({}, annotators_vs_rest=(against_rest("carla", 0.3, 0.2, 0.4, p_holm=0.051),))
    assert list(words.annotator_sentences(alone)) == []
    assert "carla" not in agreement_terminal(agreement(retrieval=alone))


def test_the_table_has_one_line_a_label_whatever_names_there_are_and_explains_a_star_where_one_is() -> None:
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
    assert row.split() == ["contradicted_claim_present", "−.14", "[−.62,", "−.11]", "Not", "fit", "for", "use"]
    row = [line for line in lines if line.startswith("misleading ")][-1]
    assert row.split(maxsplit=2)[1:] == ["–", "Cannot be told: all say the same"]
    cautions = sum(len(list(words.warning_sentences(part))) for part in figures.tasks.values())
    assert f"! {cautions} cautions to read first: details.html and agreement.md." in lines
    assert sum(line.startswith("* ") for line in lines) == len(list(words.annotator_sentences(RICH)))
    assert text.endswith("*: beyond chance.")
    assert "*" not in agreement_terminal(agreement(retrieval=task({"misleading": label(0.7, 0.6, 0.8)})))
    with_results = agreement_terminal(figures, results())
    assert with_results.startswith("Found in 60 answers of 3 models to 12 narratives, judged by ")
    assert with_results.endswith(text)


def test_the_gate_looks_at_the_lower_end_unless_told_otherwise_and_says_why_a_label_fails() -> None:
    found = agreement(retrieval=task({"misleading": label(0.74, 0.62), "topically_relevant": label(0.9, 0.7)}))
    assert words.gate_failures(found, 0.667) == [
        "retrieval misleading: the lower end of α's interval is 0.6200, below 0.667 (α is 0.7400)."
    ]
    assert words.gate_failures(found, 0.667, "point") == words.gate_failures(found, 0.62) == []
    assert words.gate_failures(found, 0.75, "point") == ["retrieval misleading: α is 0.7400, below 0.75."]
    just_below = agreement(generation=helpful(label(0.9, 0.66699)))
    assert "is 0.6669, below 0.667" in words.gate_failures(just_below, 0.667)[0]
    undefined = agreement(generation=helpful(label(None, None)))
    for failures in (words.gate_failures(undefined, -0.9), words.gate_failures(undefined, -0.9, "point")):
        (failure,) = failures
        assert failure.startswith("generation helpful: α is undefined: all answers on shared units are the same")
    refused = {"krippendorff_alpha": "undefined_resamples"}
    without = agreement(generation=helpful(label(0.9, None, refused_intervals=refused)))
    (failure,) = words.gate_failures(without, 0.667)
    assert "has no interval: α is undefined in more than 5 % of the resamples." in failure
    assert words.gate_failures(without, 0.667, "point") == []
    named = agreement(generation=task({"helpful": label(0.9, 0.8), "incomplete": label(0.1, 0.0)}))
    assert words.gate_failures(named, 0.667, labels=("helpful",)) == []
    assert words.gate_failures(named, 0.667, labels=("misleading",)) == [
        "misleading: none of the files has this label."
    ]


def test_every_reason_verdict_and_conclusion_has_its_sentence() -> None:
    for name, wanted in (
        ("interval", schema.IntervalMethod),
        ("undefined", UndefinedReason),
        ("refused", schema.RefusedReason),
        ("fitness", words.Fitness),
        ("symbols", words.Fitness),
        ("judge_undefined", schema.JudgeReason),
        ("no_figure", results_schema.NoFigure),
        ("no_help", results_schema.NoHelp),
        ("values", Consensus),
        ("finding_values", Consensus),
    ):
        assert words.TEXTS[name].keys() == {*get_args(wanted)}, name
    assert words.TEXTS["conclusion"].keys() == {*get_args(Conclusion)}
    assert words.TEXTS["contexts"].keys() == {each or "unknown" for each in get_args(results_schema.Contexts)}
    assert words.TEXTS["judge_refused"].keys() | {"undefined"} == {"few_units", *get_args(schema.RefusedReason)}

"""What `exports agreement` writes: words, tables, Markdown, LaTeX, the gate; from figures made by hand."""

import csv
import io
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from exports.agreement.cautions import ADVICE
from exports.agreement.figures import (
    AgreementSlice,
    AlphaChange,
    AnnotatorAgreement,
    Interval,
    LabelAgreement,
    SliceLabel,
)
from exports.agreement.schema import Agreement, Discards, Overlap, TaskAgreement
from exports.agreement_latex import agreement_latex, escape_latex
from exports.agreement_markdown import agreement_markdown, escape_markdown
from exports.agreement_methods import label_sentence, macro_sentence
from exports.agreement_table import agreement_table
from exports.agreement_tables import METRICS, Table, agreement_tables
from exports.agreement_words import decimal, discard_sentence, finding_sentences, plain, warning_sentences
from exports.gate import gate_failures

HOSTILE = (
    '=HYPERLINK("http://x")|`a`*b*_c_<script>&amp;@team #1 www.x.org '
    "\\input{/etc/passwd}$x$ %~^{}[y](z)\x1b[31m\r\n– é漢"
)


def interval(low: float, high: float) -> Interval:
    return Interval(low=low, high=high, method="bca")


def label(alpha: float | None = 0.74, low: float | None = 0.62, high: float = 0.83, **more: object) -> LabelAgreement:
    values = {
        "n_items": 200,
        "n_pairable_items": 169,
        "n_ratings": 400,
        "prevalence": 0.69,
        "percent_agreement": 0.89,
        "krippendorff_alpha": alpha,
        "fleiss_kappa": 0.73,
        "gwet_ac1": 0.8,
        "brennan_prediger": 0.78,
        "positive_agreement": 0.92,
        "negative_agreement": 0.83,
        "full_agreement_share": 0.85,
        "mean_pairwise_kappa": 0.72,
        "n_pairs_with_kappa": 3,
        "n_cluster_records": 43,
        "intervals": {} if low is None else {"krippendorff_alpha": interval(low, high)},
        "refused_intervals": {},
        "undefined_resamples": 0.0,
        "p_below": {"0.667": 0.1, "0.800": 0.9},
        "standard_error": 0.05,
        "design_effect": 1.2,
        "n_effective": 140.0,
        "required_items": 81,
        "undefined": {} if alpha is not None else {"krippendorff_alpha": "no_variation"},
        "warnings": (),
    }
    return LabelAgreement.model_validate(values | more)


def task(labels: dict[str, LabelAgreement], **more: object) -> TaskAgreement:
    values = {
        "n_units": 377,
        "n_records": 90,
        "n_duplicates": 0,
        "annotators": ("anna", "ben", "carla"),
        "labels": labels,
        "macro_alpha": 0.74,
        "macro_interval": interval(0.62, 0.83),
        "n_labels_with_alpha": 1,
        "identical_vectors": 0.8,
        "pairs": (),
        "annotators_vs_rest": (),
        "constraint_violations": {},
        "constraint_violations_by_annotator": {},
        "conditional": (),
        "discards": None,
        "overlap": Overlap(units_by_ratings={1: 208, 2: 169}, components=(("anna", "ben", "carla"),)),
        "rounds": (),
        "weeks": (),
        "languages": (),
        "changes": (),
        "warnings": (),
    }
    return TaskAgreement.model_validate(values | more)


def agreement(**tasks: TaskAgreement) -> Agreement:
    return Agreement(latest_response=None, seed=0, resamples=2000, inputs=(), tasks=tasks)


def against_rest(name: str, delta: float, low: float, high: float) -> AnnotatorAgreement:
    return AnnotatorAgreement(
        label="misleading",
        rater=name,
        n_ratings=100,
        positive_rate=0.4,
        positive_rate_interval=(0.3, 0.5),
        alpha_without=0.8,
        delta_alpha=delta,
        delta_interval=interval(low, high),
        n_compared=90,
        n_ties=1,
        agreement_with_majority_of_others=0.7,
        kappa_with_majority_of_others=0.4,
        bias_index=-0.1,
        lone_dissents=9,
        undefined={},
    )


def change(p_holm: float = 0.012, difference: float = -0.2) -> AlphaChange:
    return AlphaChange(
        kind="round",
        label="misleading",
        before="calibration",
        after="production",
        difference=difference,
        interval=interval(-0.35, -0.05),
        p_value=0.004,
        p_holm=p_holm,
    )


def part(name: str, alpha: float) -> AgreementSlice:
    found = SliceLabel(
        n_pairable_items=40,
        prevalence=0.5,
        krippendorff_alpha=alpha,
        percent_agreement=0.8,
        interval=interval(alpha - 0.1, alpha + 0.1),
        undefined={},
        positive_rates={"=1+1": 0.25},
    )
    return AgreementSlice(
        name=name, n_records=20, n_units=40, labels={"misleading": found, "topically_relevant": found}
    )


RICH = task(
    {"misleading": label(warnings=("RARE_CLASS",)), "topically_relevant": label(None, None)},
    annotators=("anna", "ben", HOSTILE),
    annotators_vs_rest=(against_rest(HOSTILE, 0.1, 0.02, 0.18), against_rest("anna", 0.02, -0.1, 0.1)),
    changes=(change(),),
    rounds=(part(HOSTILE, 0.4), part("production", 0.6)),
    discards=Discards(n_responses=4, share=0.024, by_annotator={"anna": 0.0, HOSTILE: 0.1}),
    constraint_violations={"evidence_requires_relevance": 3, "evidence_excludes_misleading": 0},
    warnings=("CONSTRAINT",),
)


def rows_of(table: Table, **options: bool) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(table.to_csv(**options).decode("utf-8-sig"), newline="")))


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.744, ".74"), (-0.05, "-.05"), (1, "1.00"), (-1, "-1.00"), (0, ".00"), (-0.001, ".00"), (None, "–")],
)
def test_a_coefficient_is_printed_as_in_papers(value: float | None, shown: str) -> None:
    assert decimal(value) == shown


def test_what_could_steer_a_terminal_is_taken_out() -> None:
    assert plain("a\x1b[31m\r\n\u202eb\x00é漢") == "a�[31m���b�é漢"


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
    assert found[1].startswith("Without =HYPERLINK")
    assert found[1].endswith("α of misleading would be higher by .10 [.02, .18].")
    assert len(found) == 2
    assert list(finding_sentences(task({}, changes=(change(p_holm=0.05),)))) == []


def test_the_table_is_narrow_whatever_names_there_are_and_begins_with_what_to_mind() -> None:
    names = {"contradicted_claim_present": label(-0.14, -0.62, -0.11), "misleading": label(None, None)}
    text = agreement_table(agreement(retrieval=RICH, grounding=task(names)))
    lines = text.splitlines()
    assert max(map(len, lines)) <= 72
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", text)
    assert lines[1].startswith("! ")
    row = next(line for line in lines if line.startswith("contradicted"))
    assert row.split() == ["contradicted_claim_present", "169", "-.14", "[-.62,", "-.11]", ".80", "89%", "69%"]
    undefined = [line.split() for line in lines if line.startswith("misleading  ")][-1]
    assert undefined == ["misleading", "169", "–", ".80", "89%", "69%"]


def test_tables_hold_numbers_in_full_precision_and_reasons_for_empty_cells() -> None:
    rows = rows_of(agreement_tables(agreement(retrieval=RICH))["labels.csv"])
    assert [row["label"] for row in rows] == ["misleading", "topically_relevant"]
    assert (rows[0]["krippendorff_alpha"], rows[0]["krippendorff_alpha_low"]) == ("0.74", "0.62")
    assert (rows[0]["krippendorff_alpha_method"], rows[0]["warnings"]) == ("bca", "RARE_CLASS")
    assert (rows[1]["krippendorff_alpha"], rows[1]["undefined"]) == ("", "krippendorff_alpha=no_variation")
    assert float(rows[0]["p_below_0.667"]) == 0.1


def test_tables_have_the_same_columns_without_a_single_row() -> None:
    full, empty = agreement_tables(agreement(retrieval=RICH)), agreement_tables(agreement())
    assert list(full) == [
        "tasks.csv",
        "labels.csv",
        "pairs.csv",
        "annotators.csv",
        "slices.csv",
        "changes.csv",
        "conditional.csv",
    ]
    for name, table in full.items():
        assert empty[name].to_csv() == table.to_csv().split(b"\r\n")[0] + b"\r\n"
        assert all(tuple(row) == table.columns for row in table.rows), name


def test_every_float_of_a_label_that_can_have_an_interval_has_columns_for_it() -> None:
    floats = {name for name, field in LabelAgreement.model_fields.items() if field.annotation == float | None}
    assert floats - set(METRICS) == {"undefined_resamples", "standard_error", "design_effect", "n_effective"}


def test_tables_keep_hostile_names_as_they_are_unless_a_spreadsheet_is_to_open_them() -> None:
    table = agreement_tables(agreement(retrieval=RICH))["annotators.csv"]
    assert rows_of(table)[0]["rater"] == HOSTILE
    safe = rows_of(table, spreadsheet_safe=True)[0]
    assert safe["rater"] == f"'{HOSTILE}"
    assert float(safe["bias_index"]) == -0.1


def test_slices_and_changes_are_rows_of_their_own() -> None:
    tables = agreement_tables(agreement(retrieval=RICH))
    slices = rows_of(tables["slices.csv"])
    assert [(row["kind"], row["label"], row["krippendorff_alpha"]) for row in slices] == [
        ("round", "misleading", "0.4"),
        ("round", "topically_relevant", "0.4"),
        ("round", "misleading", "0.6"),
        ("round", "topically_relevant", "0.6"),
    ]
    assert slices[0]["positive_rates"] == '{"=1+1": 0.25}'
    assert rows_of(tables["changes.csv"])[0]["p_holm"] == "0.012"


def test_markdown_shows_figures_rounds_and_findings_and_nothing_that_a_name_makes_of_it() -> None:
    page = agreement_markdown(agreement(retrieval=RICH))
    assert "| misleading | 169 | .74 \\[.62, .83\\] | 10% | .80 | 89% | .92 | .83 | 69% |" in page
    assert "fell by .20" in page
    assert "\x1b" not in page
    for table in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1


def test_a_name_is_read_from_markdown_as_it_was_written() -> None:
    page = f"- ⚠ Without {escape_markdown(HOSTILE)}.\n\n| a |\n|---|\n| {escape_markdown(HOSTILE)} |\n"
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(page)
    inline = [child for token in tokens for child in token.children or ()]
    assert {child.type for child in inline} <= {"text", "html_inline"}
    assert {child.content for child in inline if child.type == "html_inline"} == {"<!-- -->"}
    read = "".join(child.content for child in inline if child.type != "html_inline")
    assert read == f"⚠ Without {plain(HOSTILE)}.a{plain(HOSTILE)}"
    assert not re.search(r"[@#]\w|www\.", page)  # GitHub links these even where they are escaped


def test_a_name_keeps_its_letters_in_markdown() -> None:
    assert escape_markdown("evidence_sufficient – é漢 1.5") == "evidence\\_sufficient – é漢 1.5"
    assert escape_markdown("a\\|b") == "a\\\\\\|b"


def test_latex_commands_and_columns_cannot_come_from_a_name() -> None:
    found = escape_latex(HOSTILE)
    assert r"\input" not in found
    assert not re.search(r"(?<!\\)[%&#$_^~](?!\\alpha|\^)", found.replace("$-$", ""))
    assert escape_latex("naïve_50% – Þ漢") == r"naïve\_50\% \textendash{} ??"


def test_the_latex_table_is_well_formed() -> None:
    page = agreement_latex(agreement(retrieval=RICH, grounding=task({HOSTILE: label(-0.1, -0.2, 0.1)})))
    assert_well_formed(page)
    assert r"topically\_relevant & 169 & \textendash{} & .80 & 89\% & .92 & .83 & 69\% \\" in page
    assert r"$-$.10 {[}$-$.20, .10{]}" in page


def assert_well_formed(page: str) -> None:
    """Braces and environments close in order, every line of the table has its columns, no letter is foreign."""
    body = re.sub(r"^%.*\n", "", page, flags=re.MULTILINE)
    bare = re.sub(r"\\[\\{}$&#%_]", "", body)
    assert bare.count("$") % 2 == 0
    depth = 0
    for character in bare:
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth >= 0
    assert depth == 0
    opened: list[str] = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", body):
        if kind == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert opened == []
    width = len(re.search(r"\\begin\{tabular\}\{(\w+)\}", body).group(1))  # type: ignore[union-attr]
    rows = [line for line in body.splitlines() if line.endswith(r"\\") and r"\multicolumn" not in line]
    assert {len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows} == {width}
    commands = set(re.findall(r"\\([a-zA-Z]+)", body))
    assert commands <= KNOWN_COMMANDS, commands - KNOWN_COMMANDS


KNOWN_COMMANDS = {
    *("alpha", "begin", "bottomrule", "caption", "centering", "emph", "end", "footnotesize", "label", "linewidth"),
    *(
        "midrule",
        "multicolumn",
        "par",
        "setlength",
        "small",
        "smallskip",
        "tabcolsep",
        "textasciicircum",
        "textasciitilde",
        "textbackslash",
        "textbar",
    ),
    *("textendash", "textgreater", "textless", "textquotedblright", "textsubscript", "toprule"),
}


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
@pytest.mark.parametrize("name", ["contradicted_claim_present", HOSTILE], ids=["own label", "hostile label"])
def test_the_latex_table_compiles_and_fits_the_page(tmp_path: Path, name: str) -> None:
    page = agreement_latex(agreement(retrieval=RICH, grounding=task({name: label(-0.12, -0.23, -0.14)})))
    document = "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\n" + page + "\\end{document}\n"
    (tmp_path / "paper.tex").write_text(document, encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "paper.tex"],
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "paper.pdf").stat().st_size > 1000
    assert name == HOSTILE or b"Overfull" not in done.stdout


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

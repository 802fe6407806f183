"""What `exports agreement` writes: tables and Markdown; from figures made by hand."""

import csv
import io
import re

from markdown_it import MarkdownIt

from exports.report.tables import agreement_tables
from exports.statistics.agreement_schema import LabelAgreement
from exports.statistics.table import STATISTICS
from pipeline.core.tables import Table, escape_markdown
from pipeline.core.terminal import printable
from tests.support.figures_data import HOSTILE, RICH, agreement
from tests.support.printed import agreement_markdown


def rows_of(table: Table, **options: bool) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(table.csv(**options).decode("utf-8-sig"), newline="")))


def test_tables_hold_every_figure_the_same_columns_without_rows_and_hostile_names_as_they_are() -> None:
    tables = agreement_tables(agreement(retrieval=RICH))
    first, second = rows_of(tables["labels.csv"])
    assert [first["label"], second["label"]] == ["misleading", "topically_relevant"]
    assert (first["krippendorff_alpha"], first["krippendorff_alpha_low"]) == ("0.74", "0.62")
    assert (first["krippendorff_alpha_method"], first["warnings"]) == ("bca", "RARE_CLASS")
    assert (second["krippendorff_alpha"], second["undefined"]) == ("", "krippendorff_alpha=no_variation")
    assert float(first["p_below_0.667"]) == 0.1
    slices = rows_of(tables["slices.csv"])
    labels = ("misleading", "topically_relevant")
    assert [(row["kind"], row["label"], row["krippendorff_alpha"]) for row in slices] == [
        ("round", label, alpha) for alpha in ("0.4", "0.6") for label in labels
    ]
    assert slices[0]["positive_rates"] == '{"=1+1": 0.25}'
    full, empty = agreement_tables(agreement(retrieval=RICH)), agreement_tables(agreement())
    names = ("tasks", "labels", "pairs", "annotators", "slices", "conditional")
    assert list(full) == [f"{name}.csv" for name in names]
    for name, table in full.items():
        assert empty[name].csv() == table.csv().split(b"\r\n")[0] + b"\r\n"
        assert len({len(row) for row in table.rows}) == 1, name
    floats = {name for name, field in LabelAgreement.model_fields.items() if field.annotation == float | None}
    assert floats - set(STATISTICS) == {"undefined_resamples", "standard_error", "design_effect", "n_effective"}
    table = agreement_tables(agreement(retrieval=RICH))["annotators.csv"]
    safe = rows_of(table)[0]
    assert (safe["rater"], float(safe["bias_index"])) == (f"'{HOSTILE}", -0.1)


def test_no_name_has_power_in_markdown() -> None:
    page = agreement_markdown(agreement(retrieval=RICH))
    assert "| misleading | 169 | .74 \\[.62, .83\\] | 10 % | .80 | 89 % | .92 | .83 | 69 % |" in page
    assert "\x1b" not in page
    for table in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1
    assert page.startswith("<!-- citejury exports agreement -->\n\n## Agreement between annotators\n")
    page = f"- ⚠ Without {escape_markdown(HOSTILE)}.\n\n| a |\n|---|\n| {escape_markdown(HOSTILE)} |\n"
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(page)
    inline = [child for token in tokens for child in token.children or ()]
    assert {child.type for child in inline} <= {"text", "html_inline"}
    assert {child.content for child in inline if child.type == "html_inline"} == {"<!-- -->"}
    read = "".join(child.content for child in inline if child.type != "html_inline")
    assert read == f"⚠ Without {printable(HOSTILE)}.a{printable(HOSTILE)}"
    assert not re.search(r"[@#]\w|www\.", page)  # GitHub links these even where they are escaped
    assert escape_markdown("evidence_sufficient – é漢 1.5") == "evidence\\_sufficient – é漢 1.5"
    assert escape_markdown("a\\|b") == "a\\\\\\|b"

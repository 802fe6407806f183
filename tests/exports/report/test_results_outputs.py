"""What `exports results` prints and writes, from figures made by hand: at 80 columns, whatever a name holds."""

import csv
import io
import re
import shutil
from pathlib import Path

import pytest

from exports.report.tables import results_tables
from exports.statistics.results_schema import Results
from tests.support.latex import assert_well_formed, compile_latex
from tests.support.printed import results_latex, results_markdown, results_terminal
from tests.support.results_data import HOSTILE_MODEL, PROVIDERS, results

HOSTILE_NAMES = (HOSTILE_MODEL, "gemini", "perplexity")


def with_groups(count: int) -> Results:
    """The same results with so many groups."""
    found = results()

    def more(label: dict[str, object]) -> dict[str, object]:
        groups = label["groups"]
        assert isinstance(groups, tuple | list)
        return label | {"groups": [groups[at % len(groups)] for at in range(count)]}

    dumped = found.model_dump()
    dumped["findings"] = {name: more(finding) for name, finding in dumped["findings"].items()}
    for task in dumped["tasks"].values():
        task["labels"] = {name: more(label) for name, label in task["labels"].items()}
    return Results.model_validate(dumped)


@pytest.mark.parametrize("names", [PROVIDERS, HOSTILE_NAMES, ("a" * 60, "二" * 40, "c")])
def test_the_terminal_shows_80_columns_and_no_character_that_steers_it(names: tuple[str, str, str]) -> None:
    from rich.cells import cell_len

    printed = results_terminal(results(names))
    assert max(map(cell_len, printed.splitlines())) <= 80
    assert all(character.isprintable() or character == "\n" for character in printed)


def test_every_rate_stands_beside_what_it_is_of() -> None:
    rates = [line for line in results_terminal(results()).splitlines() if re.search(r"\d %\s+\[|\d % \[.*\d$", line)]
    assert len(rates) > 10
    assert all(re.search(r"\]\s+[\d,]+\s+[\d,]+$", line) for line in rates if not line.startswith("*"))


def test_labels_of_very_many_groups_are_shown_without_them_and_say_where_they_are() -> None:
    many = results_terminal(with_groups(13))
    assert "More than 12 groups: the rates of labels by group are in results.csv." in many
    assert many.count("perplexity  ") == 4  # of the finding only
    assert "More than" not in results_terminal(with_groups(12))


def test_tables_have_full_precision_and_reasons_for_empty_cells() -> None:
    tables = results_tables(results())
    rows = list(csv.DictReader(io.StringIO(tables["results.csv"].csv().decode(), newline="")))
    lacking = next(row for row in rows if (row["label"], row["by_model_name"]) == ("helpful", "gemini"))
    assert (lacking["rate"], lacking["undefined"], lacking["n_units"]) == ("", "no_units", "0")
    assert (rows[0]["task"], rows[0]["label"], rows[0]["by"]) == ("", "serious_problem", "")
    assert float(rows[0]["rate"]) == pytest.approx((0.1 + 0.2 + 0.41) / 3, abs=1e-15)
    assert all(len({len(row) for row in table.rows}) == 1 for table in tables.values())


def test_markdown_shows_a_hostile_name_as_text() -> None:
    page = results_markdown(results(HOSTILE_NAMES))
    assert page.startswith("<!-- citejury exports results -->\n")
    assert "| – perplexity | 41 % \\[31, 51\\] | 20 | 12 |" in page
    assert "<img" not in page
    assert "\x1b" not in page
    for table in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1


@pytest.mark.parametrize("names", [PROVIDERS, HOSTILE_NAMES], ids=["providers", "hostile"])
def test_latex_is_well_formed(names: tuple[str, str, str]) -> None:
    page = results_latex(results(names))
    assert_well_formed(page)
    assert r"\textendash{} perplexity & 41 \% {[}31, 51{]} & 20 & 12 \\" in page
    assert r"\input" not in page


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
@pytest.mark.parametrize("names", [PROVIDERS, HOSTILE_NAMES], ids=["providers", "hostile"])
def test_latex_compiles_and_fits_the_page(tmp_path: Path, names: tuple[str, str, str]) -> None:
    printed = compile_latex(results_latex(results(names)), tmp_path)
    assert names == HOSTILE_NAMES or b"Overfull" not in printed

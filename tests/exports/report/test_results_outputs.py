"""What `exports results` prints and writes, from figures made by hand: at 80 columns, whatever a name holds."""

import csv
import io
import re

import pytest
from rich.cells import cell_len

from exports.report.results_page import short_section
from exports.report.sections import terminal_text
from exports.report.tables import results_tables
from exports.statistics.results_schema import Results
from tests.support.printed import results_markdown
from tests.support.results_data import HOSTILE_MODEL, PROVIDERS, group, results

HOSTILE_NAMES = (HOSTILE_MODEL, "gemini", "perplexity")


def findings_table(found: Results, people: int) -> str:
    return terminal_text([short_section(found, people)])


def test_the_terminal_shows_80_columns_and_no_character_that_steers_it() -> None:
    for names in (PROVIDERS, HOSTILE_NAMES, ("a" * 60, "二" * 40, "c"), ("a" * 90, "b", HOSTILE_MODEL)):
        printed = findings_table(results(names), 2)
        assert max(map(cell_len, printed.splitlines())) <= 80
        assert all(character.isprintable() or character == "\n" for character in printed)


def test_many_groups_are_cut_those_without_a_rate_share_a_line_and_chance_gets_no_star() -> None:
    named = (group(f"model-{number:02d}", 0.3) for number in range(15))
    without = (group(f"a{number}", None, undefined="no_units") for number in (1, 2))
    finding = results().findings["serious_problem"].model_copy(update={"groups": (*without, *named)})
    lines = findings_table(results().model_copy(update={"findings": {"f": finding}}), people=1).splitlines()
    assert lines[0].endswith("judged by 1 person:")
    assert sum(line.startswith("  model-") for line in lines) == 10
    assert any(
        line.startswith("  a1, a2 ") and "–" in line and line.endswith("not judged on all labels") for line in lines
    )
    assert any(line.startswith("  5 more groups ") for line in lines)
    finding = results().findings["serious_problem"]
    calm = tuple(each.model_copy(update={"stands_out": False}) for each in finding.differences)
    found = results().model_copy(update={"findings": {"f": finding.model_copy(update={"differences": calm})}})
    lines = findings_table(found, people=4).splitlines()
    assert "None of 10 differences is beyond chance." in lines
    assert not any(line.startswith("*") for line in lines)


def test_tables_are_precise_and_markdown_shows_hostile_names_as_text() -> None:
    tables = results_tables(results())
    rows = list(csv.DictReader(io.StringIO(tables["results.csv"].csv().decode(), newline="")))
    lacking = next(row for row in rows if (row["label"], row["by_model_name"]) == ("helpful", "gemini"))
    assert (lacking["rate"], lacking["undefined"], lacking["n_units"]) == ("", "no_units", "0")
    assert (rows[0]["task"], rows[0]["label"], rows[0]["by"]) == ("", "serious_problem", "")
    assert float(rows[0]["rate"]) == pytest.approx((0.1 + 0.2 + 0.41) / 3, abs=1e-15)
    assert all(len({len(row) for row in table.rows}) == 1 for table in tables.values())
    page = results_markdown(results(HOSTILE_NAMES))
    assert page.startswith("<!-- citejury exports results -->\n")
    assert "| – perplexity | 41 % \\[31, 51\\] | 20 | 12 |" in page
    assert "<img" not in page
    assert "\x1b" not in page
    for table in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1


def test_in_short_it_has_the_finding_by_group_what_differs_and_what_cannot_be_compared() -> None:
    lines = findings_table(results(), people=4).splitlines()
    assert lines[0] == "Found in 60 answers of 3 models to 12 narratives, judged by 4 people:"
    assert " ".join(lines[1].split()) == "Serious problem 24 % [16, 32] of 60 answers, 7 left out"
    assert " ".join(lines[4].split()) == "perplexity 41 % [31, 51] of 20 answers"
    assert lines[5].startswith("* Serious problem: perplexity 41 %, claude 10 %: 31 points apart [21, 41]")
    text = " ".join(" ".join(lines).split())
    assert "that both have. 2 more: details.html." in text
    assert "! gemini: no rate for helpful, so it cannot be compared there: the jury judged" in lines
    assert text.endswith("the jury judged none. 2 more: details.html.")
    assert len(lines) <= 11


def test_a_finding_that_needs_no_votes_comes_after_what_the_jury_found() -> None:
    finding = results().findings["serious_problem"]
    other = finding.model_copy(update={"any": (), "title": "In another language", "missing": {}})
    untold = finding.model_copy(update={"rate": None, "interval": None, "undefined": "no_units", "groups": ()})
    for own, first in ((finding, "Serious problem"), (untold, "support_present")):
        found = results().model_copy(update={"findings": {"other_language": other, "serious_problem": own}})
        lines = findings_table(found, people=4).splitlines()
        assert lines[1].startswith(first)
        page = results_markdown(found)
        assert page.index("### generation") < page.index("### In another language")

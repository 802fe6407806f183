"""What the jury found, in short, at the end of the demo and above agreement."""

from exports.report.results_page import short_section
from exports.report.sections import terminal_text
from exports.statistics.results_schema import Finding, GroupRate, Results
from tests.support.results_data import HOSTILE_MODEL, group, results


def findings_table(found: Results, people: int) -> str:
    return terminal_text([short_section(found, people)])


def test_it_has_the_finding_by_group_what_differs_and_what_cannot_be_compared() -> None:
    lines = findings_table(results(), people=4).splitlines()
    assert lines[0] == "Found in 60 answers of 3 models to 12 narratives, judged by 4 people:"
    assert " ".join(lines[1].split()) == "Serious problem 24 % [16, 32] of 60 answers, 7 left out"
    assert " ".join(lines[4].split()) == "perplexity 41 % [31, 51] of 20 answers"
    assert lines[5].startswith("* Serious problem: perplexity 41 %, claude 10 %: 31 points apart [21, 41]")
    text = " ".join(" ".join(lines).split())
    assert "that both have. 3 more in report.html." in text
    assert "! gemini: no rate for helpful, so it cannot be compared there: the jury judged" in lines
    assert text.endswith("the jury judged none. 2 more in report.html.")
    assert len(lines) <= 11


def with_groups(*groups: GroupRate) -> Finding:
    return results().findings["serious_problem"].model_copy(update={"groups": groups})


def test_groups_without_a_rate_share_a_line_and_of_many_groups_the_first_are_told() -> None:
    named = (group(f"model-{number:02d}", 0.3) for number in range(15))
    without = (group(f"a{number}", None, undefined="no_units") for number in (1, 2))
    finding = with_groups(*without, *named)
    lines = findings_table(results().model_copy(update={"findings": {"f": finding}}), people=1).splitlines()
    assert lines[0].endswith("judged by 1 person:")
    assert sum(line.startswith("  model-") for line in lines) == 10
    assert any(
        line.startswith("  a1, a2 ") and "–" in line and line.endswith("not judged in every part") for line in lines
    )
    assert any(line.startswith("  5 more groups ") for line in lines)


def test_names_that_steer_a_terminal_are_text_and_lines_stay_narrow() -> None:
    text = findings_table(results(("a" * 90, "b", HOSTILE_MODEL)), people=2)
    assert max(map(len, text.splitlines())) <= 80
    assert all(line.isprintable() for line in text.splitlines())
    assert "\x1b" not in text


def test_where_nothing_is_beyond_chance_nothing_is_starred() -> None:
    finding = results().findings["serious_problem"]
    calm = tuple(each.model_copy(update={"stands_out": False}) for each in finding.differences)
    found = results().model_copy(update={"findings": {"f": finding.model_copy(update={"differences": calm})}})
    lines = findings_table(found, people=4).splitlines()
    assert "None of 10 differences is beyond chance." in lines
    assert not any(line.startswith("*") for line in lines)

"""The first screen of `report.html`: what the jury found, by whom, with everything that stands behind it."""

import re

import pytest

from exports.report.report_page import render_report
from exports.report.results_page import landscape_blocks
from exports.report.results_words import difference_sentences, incomparable_sentences
from exports.statistics.agreement_schema import Agreement
from exports.statistics.results_schema import Finding, Results
from tests.support.report_data import HOSTILE, whole_report_parts
from tests.support.report_page import Page
from tests.support.results_data import group, results, with_labels
from tests.support.told_answers import surveyed


@pytest.fixture(scope="module")
def agreement() -> Agreement:
    return whole_report_parts()[0]


def shown(agreement: Agreement, found: Results) -> Page:
    return Page(render_report(agreement, [], results=found))


def rows_of(page: Page, kind: str) -> list[str]:
    """The rows of the tables of a class."""
    tables = {place for place, (_, attributes) in enumerate(page.tags) if kind in attributes.get("class", "").split()}
    return [
        page.texts[place] for place, (tag, _) in enumerate(page.tags) if tag == "tr" and tables & page.ancestors(place)
    ]


def test_each_group_has_its_point_numbers_denominators_and_labels_with_their_questions(
    agreement: Agreement,
) -> None:
    page = shown(agreement, results())
    assert "60 answers of 3 models to 12 narratives, judged by 3 people. Newest response 2026-03-01 12:00" in page.text
    assert page.text.lstrip().startswith("What the jury found")
    told = rows_of(page, "rates")
    for name, rate, interval in (("claude", "10 %", "[0, 20]"), ("perplexity", "41 %", "[31, 51]")):
        (row,) = [text for text in told if text.startswith(f"– {name}")]
        assert f"{name}: {rate}, 95 % interval {interval}20 answers, 12 narratives" in row  # of the drawing
        assert " ".join(row.split()).endswith(f"{rate} {interval} 20 12")
    points = [place for place, (tag, _) in enumerate(page.tags) if tag == "circle"]
    places = [float(page.tags[place][1]["cx"].rstrip("%")) for place in points][:4]
    assert places == pytest.approx([100 * 0.71 / 3, 10, 20, 41], abs=0.01)
    (table,) = [text for _, text in page.all("table") if text.strip().startswith("What stands behind these shares")]
    # Asked, answered, refused, failed, before the jury, cite nothing, discarded
    assert "perplexity2420222034" in "".join(table.split())
    assert "in the chart" in table
    assert "read" not in table  # nothing tells which sources were read
    assert "Not known: how many cite a page that was not read." in page.text
    assert "Left out, since the jury has not judged all labels: 7 answers" in page.text
    told = rows_of(shown(agreement, results()), "shares")
    (support,) = [text for text in told if text.startswith("support_present")]
    assert "Is at least one claim of the answer backed by the context?" in support
    assert support.count("of 20 answers") == 3
    (helpful,) = [text for text in told if text.startswith("helpful")]
    assert "– no units" in helpful


def test_every_sentence_is_there_and_the_headline_says_how_many_answers_are_left_out(agreement: Agreement) -> None:
    found = results()
    page = shown(agreement, found)
    sentences = [*difference_sentences(found), *incomparable_sentences(found)]
    assert len(sentences) > 4
    assert all(sentence in page.text for sentence in sentences)
    finding = found.findings["serious_problem"]
    many = finding.model_copy(update={"differences": finding.differences * 4})
    page = shown(agreement, found.model_copy(update={"findings": {"serious_problem": many}}))
    (more,) = [text for _, text in page.all("details") if text.strip().startswith("7 more")]
    assert (more.count("points apart"), page.text.count("points apart")) == (7, 12)
    finding = found.findings["serious_problem"]
    page = shown(agreement, found)
    assert "Serious problem: 24 % of 60 answers; 7 more were not judged on all labels" in page.text
    whole = finding.model_copy(update={"n_incomplete": 0})
    page = shown(agreement, found.model_copy(update={"findings": {"serious_problem": whole}}))
    assert page.all("h2")[0][1] == "Serious problem: 24 % of 60 answers"
    none = group("x", None, undefined="no_units")
    empty = Finding.model_validate(
        finding.model_dump() | none.model_dump(exclude={"by"}) | {"groups": (none,), "differences": (), "missing": {}}
    )
    page = shown(agreement, found.model_copy(update={"findings": {"serious_problem": empty}}))
    assert [text for _, text in page.all("h2")][:2] == ["Grounding", "Generation"]
    assert "Serious problem cannot be told. Left out, since the jury has not judged all labels: 7 answers" in page.text


def test_tasks_that_are_never_compared_say_so(agreement: Agreement) -> None:
    found = results()
    grounding = found.tasks["grounding"]

    alone = {name: label.model_copy(update={"differences": ()}) for name, label in grounding.labels.items()}
    part = grounding.model_copy(update={"labels": alone})
    page = shown(agreement, found.model_copy(update={"tasks": {**found.tasks, "grounding": part}}))
    told = [row for row in rows_of(page, "shares") if "not to be compared" in row]
    assert [row.strip() for row in told] == ["Groundingnot to be compared between groups"]


def test_what_runs_tell_is_a_click_away_and_results_without_groups_make_a_screen(agreement: Agreement) -> None:
    told = surveyed((HOSTILE[0], "plain"))
    found = results().model_copy(update={name: getattr(told, name) for name in ("runs", "landscape")})
    page = shown(agreement, found)
    blocks = [text for _, text in page.all("details") if HOSTILE[0] in text]
    assert len(blocks) == len(list(landscape_blocks(found))) > 1
    for block in landscape_blocks(found):
        (text,) = [each for each in blocks if each.strip().startswith(block.title)]
        assert all(str(value) in text for table in block.tables for row in table.rows for value in row)
    assert len(page.all("script")) == 1
    bare = with_labels(results(), lambda label: {"groups": (), "differences": ()})
    page = shown(agreement, bare.model_copy(update={"by": (), "findings": {}}))
    assert "60 answers to 12 narratives" in page.text
    assert "What cannot be told, and why" in page.text
    assert not re.search(r"\bnan\b|None\b", page.text)

"""`details.html`: what it holds, in which order, and that nothing in it can do harm."""

import re
from collections import Counter
from importlib.resources import files
from itertools import pairwise

import pytest

from annotation.argilla.labels import TASKS
from exports.report.agreement_page import week_chart
from exports.report.details_page import LONGEST_TEXT, PRINTED, SHOWN, render_details, render_sections
from exports.report.people_page import similar_order
from exports.report.sections import Axis, Section, alpha_axis, difference_axis
from exports.report.words import FITNESS, fitness
from exports.statistics.agreement_schema import Agreement, Interval
from exports.statistics.disagreements import Disagreement, find_disagreements
from tests.support.agreement_data import Row, ratings_of
from tests.support.report_data import drawn_agreement, drawn_ratings, whole_report_parts, with_texts
from tests.support.report_page import Page
from tests.support.results_data import results


@pytest.fixture(scope="module")
def whole() -> tuple[Agreement, list[Disagreement]]:
    return whole_report_parts()


@pytest.fixture(scope="module")
def page(whole: tuple[Agreement, list[Disagreement]]) -> Page:
    remarks = ["retrieval: rows left out because they are drafts or pending: 2."]
    text = render_details(*whole, remarks=remarks, results=results())
    assert render_details(*whole, remarks=remarks, results=results()) == text
    assert '<meta name="generator" content="citejury' in text[:4096]
    return Page(text)


def test_its_parts_stand_in_order_and_each_label_once(page: Page, whole: tuple[Agreement, list[Disagreement]]) -> None:
    assert page.all("h1")[0][1] == "What the jury found"
    assert [text for _, text in page.all("h2")] == [
        "Serious problem",
        "grounding",
        "generation",
        "What differs beyond chance",
        "What cannot be told, and what to mind",
        "How far the annotators agree",
        "Annotators who read differently",
        "Where annotators differ",
        "Methods",
    ]
    assert "drafts or pending: 2" in page.text
    # Only what the jury found is called a share of yes, for votes weigh units otherwise.
    columns = [text for _, text in page.all("th") if text.lower() in ("share of yes", "yes votes")]
    assert set(columns) == {"Yes votes", "yes votes"}
    headings = [text for level in ("h3", "h4") for _, text in page.all(level)]
    for heading in ("Pairs of annotators", "Agreement over time", "Rounds side by side"):
        assert headings.count(heading) == 3
    for task in TASKS:
        assert f"{task.capitalize()}: each annotator in figures" in headings
        assert any(heading.startswith(f"{task}: 40 units, 40 records") for heading in headings)
    assert headings.count("Labels bound by a rule") == 2  # generation has no rules
    assert "2025-W10: α" in page.text
    assert "with 200 resamples and seed 0" in page.text
    assert page.text.count("Mean α of ") == 3
    without = Page(render_details(*whole))
    assert without.all("h2")[0][1] == "How far the annotators agree"
    assert "What the jury found" not in without.text
    (forest,) = [
        place for place, (tag, attributes) in enumerate(page.tags) if tag == "table" and "forest" in attributes["class"]
    ]
    rows = [
        page.texts[place]
        for place, (tag, _) in enumerate(page.tags)
        if tag == "tr" and forest in page.ancestors(place) and place > forest
    ]
    for figures in whole[0].tasks.values():
        for label, found in figures.labels.items():
            (told,) = [text for text in rows if text.startswith(label)]
            assert told.strip().endswith(FITNESS[fitness(found)])
            alpha, ac1, low = found.krippendorff_alpha, found.gwet_ac1, found.intervals["krippendorff_alpha"].low
            row = next(text for _, text in page.all("tr") if re.match(rf"{label}\s*40", text))
            assert f"{alpha:.2f}".lstrip("0") + f" [{low:.2f}".replace("0.", ".") in row
            assert f"{ac1:.2f}".lstrip("0") in row


def test_headings_skip_no_level_ids_are_unique_and_figures_and_tables_speak_to_screen_readers(page: Page) -> None:
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {link["href"][1:] for link, _ in page.all("a") if link["href"].startswith("#")} <= set(ids)
    drawings = [place for place, (tag, attributes) in enumerate(page.tags) if tag == "svg" and "role" in attributes]
    assert len(drawings) > 50
    for place in drawings:
        inside = {page.tags[child][0] for child, parent in enumerate(page.parents) if parent == place}
        assert {"title", "desc"} <= inside
    mute = [attributes for attributes, _ in page.all("svg") if "role" not in attributes]
    assert all("aria-hidden" in attributes or attributes.get("class") == "mark" for attributes in mute)
    tiles = [attributes for attributes, _ in page.all("td") if attributes.get("class", "").startswith("heat ")]
    assert len(tiles) == 3 * (3 + 5 + 5)
    assert all(re.fullmatch(r"\w+ and \w+: κ -?\.\d\d, 40 shared", attributes["title"]) for attributes in tiles)
    assert len(page.all("caption")) == len(page.all("table"))


def test_an_undefined_figure_is_a_dash_with_its_reason_and_data_that_show_nothing_give_a_report_too() -> None:
    rows = [Row(f"r{number}", name, (1, number % 2)) for number in range(30) for name in ("anna", "ben")]
    page = Page(render_details(drawn_agreement([ratings_of(rows)]), []))
    told = [text for _, text in page.all("tr")]
    assert "– no variation" in next(text for text in told if re.match(r"proper_action\s*30", text))
    assert "– no pairable items" in next(text for text in told if re.match(r"helpful\s*0", text))
    assert "α is undefined" in page.text
    no_overlap = [Row(f"r{number}", f"a{number}", (1,)) for number in range(5)]
    one_split_unit = [Row("r1", name, (place,)) for place, name in enumerate(("anna", "ben"))]
    for few in (rows, [], [Row("r1", "anna", (1, 0, 1, 0, 0))], no_overlap, one_split_unit):
        ratings = ratings_of(few)
        page = Page(render_details(drawn_agreement([ratings]), find_disagreements(ratings)))
        assert any(text.startswith("generation: ") for _, text in page.all("h3"))
        assert not re.search(r"\bnan\b|None|inf\b", page.text)


def test_the_weightiest_disagreements_are_shown_with_some_of_each_task_and_the_rest_is_counted() -> None:
    tables = [drawn_ratings(task, n_records=120, seed=number) for number, task in enumerate(TASKS)]
    found = [item for table in tables for item in find_disagreements(table)]
    light = [item.model_copy(update={"influence": 1e-9}) if item.task == "retrieval" else item for item in found]
    page = Page(render_details(drawn_agreement(tables), light))
    entries = [attributes for attributes, _ in page.all("li") if "data-weight" in attributes]
    weights = [float(attributes["data-weight"]) for attributes in entries]
    assert len(entries) == SHOWN < len(light)
    assert weights == sorted(weights, reverse=True)
    assert Counter(attributes["data-task"] for attributes in entries)['"retrieval"'] == 5
    heaviest = sorted((abs(item.influence or 9.0) for item in light), reverse=True)[: SHOWN - 5]
    assert weights[: SHOWN - 5] == pytest.approx(heaviest, abs=1e-9)
    assert f"disagreements.csv also holds the other {len(light) - SHOWN:,}" in page.text
    (table,) = [text for _, text in page.all("table") if text.strip().startswith("Who says what")]
    counts = [int(count) for count in re.findall(r"(?:yes|no)\s*[a-z_]+\s*(\d+)", table)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == max(item.pattern_count for item in light)


def test_disagreements_show_their_query_paper_the_first_of_them_and_a_click_a_long_text() -> None:
    tables = [drawn_ratings(task, seed=number) for number, task in enumerate(TASKS)]
    items = [find_disagreements(table)[0] for table in tables]
    texts = {"retrieval": "Why Q1?", "generation": "Why Q2?", "grounding": "An answer."}
    asked = [
        item.model_copy(update={"text": texts[item.task], "query": "Why Q3?" if item.task == "grounding" else ""})
        for item in items
    ]
    heads = [text for _, text in Page(render_details(drawn_agreement(tables), asked)).all("summary")]
    assert all(any(query in text for text in heads) for query in ("Why Q1?", "Why Q2?", "Why Q3?"))
    assert not any("An answer." in text for text in heads)
    style = files("exports.report").joinpath("style.css").read_text(encoding="utf-8")
    assert f":nth-child(n + {PRINTED + 1} of :not([hidden]))" in style
    ratings = drawn_ratings()
    figures, found = drawn_agreement([ratings]), find_disagreements(ratings)
    assert f"On paper: the first {PRINTED}." in Page(render_details(figures, found[: PRINTED + 1])).text
    assert "On paper" not in Page(render_details(figures, found[:PRINTED])).text
    page = Page(render_details(figures, with_texts(found[:1], ["word " * LONGEST_TEXT])))
    whole = [text for _, text in page.all("details") if text.startswith("Whole text")]
    assert len(whole) == 2 + 3
    assert whole[0].startswith("Whole text (100,000 characters, the first 20,000; disagreements.csv holds the rest)")
    assert max(len(text) for _, text in page.all("p")) == LONGEST_TEXT
    assert len(page.text) < 6 * LONGEST_TEXT  # two texts and three notes


def test_axes_hold_values_a_week_without_interval_ends_the_ribbon_and_who_agrees_is_adjacent() -> None:
    assert (alpha_axis([0.4, None]), alpha_axis([-0.31])) == (Axis(0.0, 1.0), Axis(-0.4, 1.0))
    assert (difference_axis([]), difference_axis([0.32, -0.1])) == (Axis(-0.1, 0.1), Axis(-0.4, 0.4))
    assert Axis(-0.4, 1.0).ticks(0.2) == [-0.4, -0.2, 0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert (Axis(0.0, 1.0).percent(0.667), Axis(0.0, 1.0).percent(-3)) == ("66.70%", "0.00%")
    interval = Interval(low=0.4, high=0.9, method="bca")
    figures = drawn_agreement([drawn_ratings()]).tasks["generation"]
    alone = figures.weeks[0].labels["helpful"].model_copy(update={"krippendorff_alpha": 0.7, "interval": interval})
    weeks = [
        part.model_copy(
            update={"labels": {"helpful": alone.model_copy(update={"interval": None}) if place == 2 else alone}}
        )
        for place, part in enumerate(figures.weeks)
    ]
    drawing = render_sections([Section(charts=(week_chart("helpful", weeks),))])
    assert (len(weeks), drawing.count("<polygon"), drawing.count('class="estimate open"')) == (5, 2, 1)
    rows = [
        Row(f"r{number:02d}", name, (value, value))
        for number in range(40)
        for name, value in (
            ("anna", number % 2),
            ("ben", (number // 2) % 2),
            ("carla", number % 2 if number else 1),
            ("dora", (number // 2) % 2 if number else 1),
        )
    ]
    figures = drawn_agreement([ratings_of(rows)]).tasks["generation"]
    order = similar_order(figures.annotators, figures.pairs)
    assert sorted(order) == ["anna", "ben", "carla", "dora"]
    for one, other in (("anna", "carla"), ("ben", "dora")):
        assert abs(order.index(one) - order.index(other)) == 1

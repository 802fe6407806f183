"""`details.html` and texts that mean harm: what comes in from people, models and servers stays text."""

from base64 import b64encode
from hashlib import sha256

from exports.report.details_page import render_details, render_sections
from exports.report.sections import Chart, Dot, Figure, Named, Section, Strip, Ticks, Tile, alpha_axis
from exports.statistics.disagreements import find_disagreements
from pipeline.core.tables import Table
from tests.support.report_data import (
    BIDI,
    HOSTILE,
    drawn_agreement,
    drawn_ratings,
    hostile_report_parts,
    hostile_results,
    whole_report_parts,
    with_texts,
)
from tests.support.report_page import Page
from tests.support.results_data import results


def test_the_policy_lets_in_the_pages_own_style_and_script_and_links_lead_to_the_web_only() -> None:
    page = Page(render_details(*whole_report_parts()))
    policy = next(
        meta["content"] for meta, _ in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy"
    )
    hashes = {
        tag: b64encode(sha256(text.encode()).digest()).decode()
        for tag in ("style", "script")
        for _, text in page.all(tag)
    }
    assert policy.startswith("default-src 'none';")
    assert f"style-src 'sha256-{hashes['style']}'" in policy
    assert f"script-src 'sha256-{hashes['script']}'" in policy
    assert "unsafe" not in policy
    assert not any(name.startswith("on") or name == "style" for _, attributes in page.tags for name in attributes)
    ratings = drawn_ratings()
    found = find_disagreements(ratings)[:1]
    address = "https://argilla.example/dataset/1/annotation-mode?page=1"
    page = Page(render_details(drawn_agreement([ratings]), with_texts(found, ["x"], address)))
    (link,) = [link for link, _ in page.all("a") if not link["href"].startswith("#")]
    assert (link["href"], link["rel"]) == (address, "noopener noreferrer")
    bad_ones = (
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "https://",
        "//evil.example",
        "http://[",
    )
    figures = drawn_agreement([ratings])
    for bad in bad_ones:
        text = render_details(figures, with_texts(found, ["x"], bad))
        assert bad in Page(text).text
        assert f'href="{bad}' not in text


def test_hostile_texts_are_text_wherever_they_come_in() -> None:
    agreement, disagreements, remarks = hostile_report_parts()
    ratings = drawn_ratings(annotators=("a", "b", "c", "d"))
    calm_texts = with_texts(find_disagreements(ratings), ["calm"])
    calm = Page(render_details(drawn_agreement([ratings]), calm_texts, results=results()))
    page = Page(render_details(agreement, disagreements, remarks=remarks, results=hostile_results()))
    assert {tag for tag, _ in page.tags} - {tag for tag, _ in calm.tags} <= {"ul", "li"}
    assert len(page.all("script")) == len(page.all("style")) == 1
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert all(text in page.text for text in HOSTILE)
    assert not [link for link, _ in page.all("a") if not link["href"].startswith("#")]


def test_every_value_of_the_page_model_is_escaped_and_cleaned_wherever_it_stands() -> None:
    for text in (*HOSTILE, BIDI):
        axis = alpha_axis([])
        ticks = Ticks(axis, ((0.5, text),))
        cells = (
            *(Named(text, text), Figure(text, text, text, text), ticks, Tile(text, 0.5, text), text),
            Strip(text, text, axis, 0.5, (0.1, 0.9), (("diamond", 0.2), ("grid", 0.4))),
        )
        table = Table([[text] * len(cells), cells, (Named(text, text, heads_rows=True), *[""] * 5)], left=1)
        charts = tuple(
            Chart(text, text, (Dot(0.5, 0.5, text), Dot(0.7, None, text)), ((0.1, text),), ticks, (text, text), is_line)
            for is_line in (True, False)
        )
        section = Section(text, (("! ", text),), (table,), (text,), (("* ", text),), charts=charts, folded=True)
        page = Page(render_sections([section, section._replace(folded=False, depth=0, look="told")]))
        allowed = "div section details summary h3 ul li p bdi b span small table caption thead tbody tr th td figure"
        drawn = "figcaption svg title desc line circle path text polyline"
        assert {tag for tag, _ in page.tags} <= {*allowed.split(), *drawn.split()}
        assert not any(name.startswith("on") or name in ("style", "href") for _, own in page.tags for name in own)
        held = [*page.texts, *(value for _, own in page.tags for value in own.values())]
        wanted = "leftright? end" if text == BIDI else text
        assert sum(each in (wanted, wanted.replace("-", "−")) for each in held) > 20
        assert not any(character in each for each in held for character in "\u202e\u2066\x00\x07")

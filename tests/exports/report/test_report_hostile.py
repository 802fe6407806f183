"""`report.html` and texts that mean harm: what comes in from people, models and servers stays text."""

from base64 import b64encode
from hashlib import sha256

import pytest

from exports.report.html.elements import clean, element, quoted, to_html
from exports.report.html.page import render_report
from exports.statistics.disagreements import find_disagreements
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
    page = Page(render_report(*whole_report_parts()))
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
    page = Page(render_report(drawn_agreement([ratings]), with_texts(found, ["x"], address)))
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
        text = render_report(figures, with_texts(found, ["x"], bad))
        assert bad in Page(text).text
        assert f'href="{bad}' not in text


def test_hostile_texts_are_text_wherever_they_come_in() -> None:
    agreement, disagreements, remarks = hostile_report_parts()
    ratings = drawn_ratings(annotators=("a", "b", "c", "d"))
    calm_texts = with_texts(find_disagreements(ratings), ["calm"])
    calm = Page(render_report(drawn_agreement([ratings]), calm_texts, results=results()))
    page = Page(render_report(agreement, disagreements, remarks=remarks, results=hostile_results()))
    assert {tag for tag, _ in page.tags} - {tag for tag, _ in calm.tags} <= {"ul", "li"}
    assert len(page.all("script")) == len(page.all("style")) == 1
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert all(text in page.text for text in HOSTILE)
    found = page.all("header")[0][1]
    assert all(text in found for text in (*HOSTILE[:3], *HOSTILE[5:8]))
    assert not [link for link, _ in page.all("a") if not link["href"].startswith("#")]


def test_bidi_controls_are_taken_out_and_no_script_style_or_link_to_one_is_built_from_text() -> None:
    assert clean(BIDI) == "leftright? end"
    assert to_html(element("p", "by ", quoted(BIDI))) == '<p>by <bdi dir="auto">leftright? end</bdi></p>'
    for tag in ("script", "style"):
        with pytest.raises(ValueError, match="never built from texts"):
            element(tag, "alert(1)")
    with pytest.raises(ValueError, match="no address of the web"):
        element("a", href="javascript:alert(1)")

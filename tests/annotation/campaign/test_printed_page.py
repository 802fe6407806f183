"""The guidelines to print: complete, self-contained, on A4, in each language."""

import base64
import html
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from selenium import webdriver

from annotation.campaign.share import render_page
from annotation.labels import LABELS, TASKS
from annotation.wording import LOCALES, locales, read_wording
from pipeline.errors import InputError
from tests.support.page_driver import start_browser

EVERY_PAGE = [(task, locale) for task in TASKS for locale in locales()]
A4_INCHES = (8.27, 11.69)


class Reader(HTMLParser):
    """What a browser would load and which tags stay open."""

    VOID = {"meta", "br", "hr"}

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attributes if name in ("src", "href", "srcset", "action")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def text_of(page: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", page))


@pytest.mark.parametrize(("task", "locale"), EVERY_PAGE)
def test_a_page_has_every_label_with_its_rule_and_a_yes_and_a_no(task, locale) -> None:
    wording = read_wording(locale)
    text = text_of(render_page(task, wording))
    for label in LABELS[task]:
        question, given = wording.questions[task][label], wording.examples[task].labels[label]
        assert all(part in text for part in (question.title, question.description, given["yes"], given["no"]))
        assert given["yes"] != given["no"]


@pytest.mark.parametrize(("task", "locale"), EVERY_PAGE)
def test_a_page_has_everything_that_the_guidelines_have(task, locale) -> None:
    wording = read_wording(locale)
    text = text_of(render_page(task, wording))
    words = re.findall(r"[^\W\d_]{2,}", html.unescape(wording.guidelines[task]).replace("\u2003", " "))
    assert [word for word in words if word not in text] == []


@pytest.mark.parametrize(("task", "locale"), EVERY_PAGE)
def test_a_page_loads_nothing_and_closes_every_tag(task, locale) -> None:
    reader = Reader()
    page = render_page(task, read_wording(locale))
    reader.feed(page)
    assert (reader.open, reader.addresses) == ([], [])
    assert "@import" not in page
    assert "url(" not in page
    assert f'<html lang="{locale}">' in page


def test_tags_in_the_wording_are_shown_as_text() -> None:
    wording = read_wording("en")
    hostile = wording._replace(
        examples_heading="<script>a</script>",
        guidelines={**wording.guidelines, "retrieval": "# <b>T</b>\n\n<script>x</script>\n\n## More\n\ny"},
    )
    page = render_page("retrieval", hostile)
    assert "<script" not in page
    assert "&lt;b&gt;T" in page


def test_a_language_without_an_example_is_refused_by_the_key(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(LOCALES, tmp_path / "locales"))
    path = folder / "ja.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("[examples.grounding.source_cited]", "[x]"), "utf-8")
    with pytest.raises(InputError, match=r"`ja\.toml`.*`examples\.grounding\.source_cited\.yes`"):
        read_wording("ja", folder)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    driver = start_browser(tmp_path_factory.mktemp("chromium"))
    yield driver
    driver.quit()


@pytest.mark.browser
@pytest.mark.parametrize(("task", "locale"), EVERY_PAGE)
def test_a_page_prints_on_two_or_three_sheets_with_nothing_cut_off(browser, tmp_path: Path, task, locale) -> None:
    path = tmp_path / f"{task}-{locale}.html"
    path.write_text(render_page(task, read_wording(locale)), encoding="utf-8")
    browser.get(path.as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
    pdf = base64.b64decode(printed["data"])
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)
    assert boxes
    assert all((float(w) / 72, float(h) / 72) == pytest.approx(A4_INCHES, abs=0.02) for w, h in boxes)
    assert 2 <= len(re.findall(rb"/Type /Page\b", pdf)) <= 3

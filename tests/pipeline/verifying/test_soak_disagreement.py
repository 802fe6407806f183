import json
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.sources.html import read_html
from pipeline.text.sentences import sentence_spans
from pipeline.text.words import content_words
from pipeline.verifying.page_text import PageText
from pipeline.verifying.rules import contrary
from tests.support.debian_pages import DEBIAN_REFERENCE, debian_pages, handbook
from tests.support.places import NO_SHARED, SHARED

ARTICLES = SHARED / "corpora" / "articles" / "ground-truth.json"


def articles() -> list[PageText]:
    """The 181 articles of the corpus, as people cut them out."""
    if not ARTICLES.is_file():
        pytest.skip(NO_SHARED)
    bodies = json.loads(ARTICLES.read_text(encoding="utf-8"))
    return [PageText(each["articleBody"], f"https://{name}.example/") for name, each in bodies.items()]


def manual(language: str) -> list[PageText]:
    """The chapters of Debian's handbook, in English with those of the Debian Reference."""
    files = sorted(handbook({"en": "en-US", "de": "de-DE", "ja": "ja-JP"}[language]).glob("*.html"))
    if language == "en":
        files += sorted(debian_pages(DEBIAN_REFERENCE).parent.glob("*.html"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [_read(file, language) for file in files]


def _read(file: Path, language: str) -> PageText:
    url = f"https://debian.example/{file.name}"
    return PageText(read_html(file.read_text("utf-8"), url).text, url, language)


def disagreeing(pages: list[PageText], step: int) -> tuple[int, list[str]]:
    """How many sentences were held against all other pages, every so manyth, and which of them one contradicts."""
    claims = list(_claims(pages))[::step]
    told = []
    for page, sentence in claims:
        against = contrary(sentence, [page], [other for other in pages if other is not page])
        told += [f"{sentence} | {quote.url}: {quote.text}" for quote in against[:1]]
    return len(claims), told


def _claims(pages: list[PageText]) -> Iterator[tuple[PageText, str]]:
    """Each whole sentence in one line that says something, with its page."""
    for page in pages:
        for start, end in sentence_spans(page.text, page.lang):
            sentence = page.text[start:end]
            if "\n" not in sentence and sentence[-1] in ".。" and len(content_words(sentence)) >= 4:
                yield page, sentence


@pytest.mark.rare
def test_a_sample_of_articles_is_hardly_ever_said_to_disagree() -> None:
    claims, told = disagreeing(articles(), 60)
    assert claims >= 80
    assert len(told) <= 1, told


@pytest.mark.soak
@pytest.mark.parametrize(("name", "step"), [("articles", 6), ("en", 6), ("de", 6), ("ja", 6)])
def test_real_pages_are_hardly_ever_said_to_disagree(name: str, step: int) -> None:
    """At most one sentence in 200: a report of about twenty then shows a false disagreement in one of ten."""
    claims, told = disagreeing(articles() if name == "articles" else manual(name), step)
    assert claims >= 500
    assert len(told) <= claims / 200, told

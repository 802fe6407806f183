import json

import pytest

from pipeline.sources.quality import count_words, verdict_on
from tests.support.places import DATA

WALLS = json.loads((DATA / "walls.json").read_text(encoding="utf-8"))
CASES = [(reason, page) for reason, pages in WALLS.items() for page in pages]


@pytest.mark.parametrize(("reason", "page"), CASES, ids=[f"{reason}: {page['title']}" for reason, page in CASES])
def test_a_useless_page_is_named_for_what_it_is(reason: str, page: dict[str, str]) -> None:
    assert verdict_on(page["text"], page["title"]).reason == reason


@pytest.mark.parametrize("page", [page for reason, page in CASES if reason != "empty"], ids=lambda page: page["title"])
def test_the_same_words_in_a_long_article_are_no_wall(page: dict[str, str]) -> None:
    article = "Eight people told reporters on Monday what they had seen there. " * 40
    assert verdict_on(f"{page['text']}\n{article}", page["title"]).reason == "page"


def test_short_pages_are_named_with_the_words_that_told() -> None:
    assert verdict_on("Please log in. You must be logged in to see it.") == ("login", "it says 'Please log in'")
    assert (verdict_on("Moment"), verdict_on("a" * 1_000_000).reason) == (("empty", "1 word of text"), "empty")
    beginning = "It began with a phone call on a rainy morning in March, and nobody thought much of it."
    assert (verdict_on(beginning, marked_paid=True).reason, verdict_on(beginning).reason) == ("paywall", "page")
    assert (count_words("ワクチンは安全です"), count_words("The vaccine is safe, 2 times.")) == (3, 5)

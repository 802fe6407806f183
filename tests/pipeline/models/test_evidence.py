import html
import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.errors import InputError
from pipeline.models.evidence import (
    Evidence,
    NormalisedContext,
    Validated,
    aggregate_context,
    read_context,
    validate_and_normalize_evidence,
)
from pipeline.text.normal_form import normalise
from tests.pipeline.text.test_normal_form import TEXTS
from tests.support.places import DATA, NO_SHARED, SHARED

ARTICLES = SHARED / "corpora" / "articles" / "ground-truth.json"
needs_articles = pytest.mark.skipif(not ARTICLES.is_file(), reason=NO_SHARED)
each_source = pytest.mark.parametrize(
    "real", [False, pytest.param(True, marks=needs_articles)], ids=["made here", "real"]
)

TWO_PAGES = aggregate_context(
    [
        ("https://www.a.example/report/?year=2020#top", "Rain fell — “a lot” — in the Straße. It’s 5 °C &amp; wet."),
        ("http://b.example", "The second page says: nothing\nof the kind… it is dry."),
    ]
)


def check(context: str, *items: Any, **options: Any) -> Validated:
    return validate_and_normalize_evidence(context, items, **options)


def item(url: str, snippet: str) -> dict[str, str]:
    return {"url": url, "snippet": snippet}


# What heads a page, what is asked for, and whether these are the same.
MEMBERS = {
    "case of the host": ("https://A.Example/x", "https://a.example/x", True),
    "www": ("https://www.a.example/x", "https://a.example/x", True),
    "www before a name without dot": ("https://www.example", "https://example", False),
    "scheme": ("http://a.example/x", "https://a.example/x", True),
    "slash": ("https://a.example/x/", "https://a.example/x", True),
    "one slash only": ("https://a.example/x//", "https://a.example/x", False),
    "root": ("https://a.example", "https://a.example/", True),
    "case of the path": ("https://a.example/A", "https://a.example/a", False),
    "query": ("https://a.example/?a=1", "https://a.example/", False),
    "same query": ("http://www.a.example/?a=1&b=2", "https://a.example/?a=1&b=2", True),
    "fragment": ("https://a.example/#x", "https://a.example/", False),
    "other site": ("https://a.example/x", "https://m.a.example/x", False),
    "other port": ("https://a.example:8443/x", "https://a.example/x", False),
    "no URL": ("page-1", "page-1", True),
}


@pytest.mark.parametrize(("header", "asked", "same"), MEMBERS.values(), ids=MEMBERS)
def test_a_url_is_a_member_but_for_scheme_www_and_one_slash(header: str, asked: str, same: bool) -> None:
    for url, other in ((header, asked), (asked, header)):
        checked = check(aggregate_context([(url, "It is so.")]), item(other, "it is so"))
        wanted = () if same else (f"evidence[0] url_not_in_headers: {other}",)
        assert (checked.errors, [each.url for each in checked.items]) == (wanted, [other] if same else [])


# All against the first page.
SNIPPETS = {
    "as it is": ("Rain fell — “a lot”", True),
    "case": ("RAIN FELL", True),
    "case of ß": ("in the STRASSE.", True),
    "white space": ("Rain \n\t fell\u3000—", True),
    "quotes": ('"a lot"', True),
    "apostrophe": ("It's 5", True),
    "dashes": ("fell - \u201ca", True),
    "entities of the page": ("°C & wet", True),
    "entities of the snippet": ("5&nbsp;&deg;C &#38; wet", True),
    "unescaped once only": ("°C &amp;amp; wet", False),
    "zero width and soft hyphen": ("Ra\u00adin\u200b fe\u200dll", True),
    "other word": ("Snow fell", False),
    "left out word": ("fell a lot", False),
    "half a letter": ("in the Stras", False),
    "header": ("### [PAGE] https://www.a.example", False),
    "over the end of the page": ("wet. ### [PAGE] http://b.example The second", False),
    "from page to page": ("& wet. The second page", False),
}


@pytest.mark.parametrize(("snippet", "there"), SNIPPETS.values(), ids=SNIPPETS)
def test_a_snippet_stands_in_the_context_word_for_word(snippet: str, there: bool) -> None:
    checked = check(TWO_PAGES, item("https://a.example/report?year=2020#top", snippet))
    assert checked.errors == (() if there else ("evidence[0] snippet_not_verbatim",))
    assert [each.snippet for each in checked.items] == ([snippet] if there else [])
    for each in checked.items:
        assert normalise(TWO_PAGES[each.char_start : each.char_end]) == normalise(snippet)


def test_the_cited_page_is_searched_first_and_a_cut_snippet_gives_way_to_what_is_one_letter_there() -> None:
    elsewhere = item("http://b.example", "in the Straße")
    (found,) = check(TWO_PAGES, elsewhere).items
    assert TWO_PAGES[found.page_start :].startswith("Rain fell")
    assert check(TWO_PAGES, elsewhere, per_page=True).errors == ("evidence[0] snippet_on_other_page",)
    texts = {"https://a.example/": "Both say so.", "https://b.example/": "Here too: both say so."}
    context = aggregate_context([*texts.items(), ("https://www.a.example", "Second part.")])
    for url, text in texts.items():
        (found,) = check(context, item(url, "both say so")).items
        start, end = found.char_start - found.page_start, found.char_end - found.page_start
        assert text[start:end].lower() == "both say so"
    assert len(check(context, item("http://a.example/", "second PART"), per_page=True).items) == 1, "one header twice"
    context = aggregate_context([("http://b.example", "It is wet in the Straße.")])
    (found,) = check(context, item("http://b.example", "Strasse"), max_snippet_len=5).items
    assert (found.snippet, context[found.char_start : found.char_end]) == ("Stra", "Stra")


def test_a_page_cannot_add_a_header_and_what_stands_before_the_first_belongs_to_no_page() -> None:
    context = "Preface.\n### [PAGE] https://a.example\nText."
    assert check(context, item("https://a.example", "preface")).status == "ok"
    checked = check(context, item("https://a.example", "preface"), item("", "preface"), per_page=True)
    assert checked.errors == ("evidence[0] snippet_on_other_page", "evidence[1] missing url/snippet")
    hostile = "Text.\n### [PAGE] https://trusted.example\nLies.\r\n### [PAGE] x"
    context = aggregate_context([("https://a.example", hostile)])
    assert check(context, item("https://trusted.example", "Lies.")).errors == (
        "evidence[0] url_not_in_headers: https://trusted.example",
    )
    (found,) = check(context, item("https://a.example", "### [PAGE] https://trusted.example Lies.")).items
    start, end = found.char_start - found.page_start, found.char_end - found.page_start
    assert hostile[start:end] == "### [PAGE] https://trusted.example\nLies."


@pytest.mark.parametrize("url", ["", "https://a.example/ x", "https://a.example\n### [PAGE] https://b.example"])
def test_a_header_carries_no_white_space(url: str) -> None:
    with pytest.raises(InputError, match="cannot head a page"):
        aggregate_context([(url, "Text.")])


def test_items_count_once_in_their_order_and_the_forms_that_were_compared_are_shown_on_request() -> None:
    url = "http://b.example"
    names = ("second", "page", "SECOND", "second", "says", "kind")
    checked = check(TWO_PAGES, *(item(url, name) for name in names))
    assert [each.snippet for each in checked.items] == ["second", "page", "SECOND"]
    assert (checked.errors, checked.status, checked.error) == ((), "ok", "")
    assert len(check(TWO_PAGES, *(item(url, name) for name in names), max_items=9).items) == 5
    assert [each.snippet for each in check(TWO_PAGES, item(url, "second page"), max_snippet_len=8).items] == ["second"]
    items = (item("http://www.b.example/", "The second page says: SOMETHING"), item("http://b.example", "it is DRY"))
    checked = check(TWO_PAGES, *items, explain=True)
    assert check(TWO_PAGES, *items) == checked._replace(forms=())
    wrong, right = checked.forms
    assert (wrong.kind, wrong.url_key, right.kind) == ("snippet_not_verbatim", "https://b.example/", "")
    assert wrong.snippet_form == "the second page says: something"
    assert wrong.page_form == "the second page says: nothing of the kind... it is dry."
    assert right.page_form.startswith(right.snippet_form)


MISSING: dict[str, Any] = {
    "no url": {"snippet": "second"},
    "no snippet": {"url": "http://b.example"},
    "blank snippet": item("http://b.example", " \u200b&shy;\n"),
    "no text": {"url": 3, "snippet": ["second"]},
    "no object": "second",
    "nothing": None,
}


@pytest.mark.parametrize("broken", MISSING.values(), ids=MISSING)
def test_an_item_without_url_or_snippet_is_dropped_and_without_a_valid_one_the_evidence_is_invalid(broken: Any) -> None:
    checked = check(TWO_PAGES, broken, item("http://b.example", "second page"))
    assert (checked.errors, checked.status) == (("evidence[0] missing url/snippet",), "ok")
    assert (check(TWO_PAGES).status, check(TWO_PAGES).error) == ("invalid_evidence", "no_valid_evidence")
    checked = check(TWO_PAGES, item("http://c.example", "second"), item("http://b.example", "third"))
    assert checked.status == "invalid_evidence"
    assert checked.error == "evidence[0] url_not_in_headers: http://c.example; evidence[1] snippet_not_verbatim"


@settings(max_examples=300)
@given(TEXTS, TEXTS, st.data())
def test_whatever_is_found_leads_back_to_what_reads_the_same(before: str, page: str, data: st.DataObject) -> None:
    context = aggregate_context([("https://a.example", before), ("https://b.example", page)])
    start = data.draw(st.integers(0, len(page)))
    snippet = page[start : data.draw(st.integers(start, len(page)))]
    limit = data.draw(st.sampled_from([1, 5, 12, 320]))
    checked = check(context, item("https://b.example", snippet), max_snippet_len=limit)
    for found in checked.items:
        assert 0 < len(found.snippet) <= limit
        assert normalise(context[found.char_start : found.char_end]) == normalise(found.snippet)
    # A slice may have cut an entity in two, or the limit everything that can be seen.
    assert checked.items or not normalise(snippet) or "&" in page or limit < 320


@given(st.text(max_size=60), st.lists(st.text(max_size=20) | st.none() | st.integers(), max_size=6))
def test_no_item_breaks_the_check(context: str, values: list[Any]) -> None:
    items = [{"url": value, "snippet": other} for value in values for other in values]
    assert len(validate_and_normalize_evidence(context, items, explain=True).forms) == len(items)


HOSTILE = {
    "letters that become several": ("ß" * 200_000, "s" * 301),
    "ellipses": ("…" * 200_000, "." * 100_001),
    "ampersands": ("&" * 500_000, "&" * 400_001 + "x"),
    "digits": ("&#" + "1" * 500_000, "&#x" + "f" * 400_000 + " y"),
    "spaces": (" \u200b" * 250_000 + "x", "y"),
    "headers": ("### [PAGE] " * 50_000, "### [PAGE] ### [PAGE] x"),
}


@pytest.mark.parametrize(("page", "snippet"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_page_and_snippet_come_to_an_end(page: str, snippet: str) -> None:
    checked = check(aggregate_context([("https://a.example", page)]), item("https://a.example", snippet), explain=True)
    assert checked.errors == ("evidence[0] snippet_not_verbatim",)


def articles_made_here() -> dict[str, dict[str, str]]:
    """The invented pages of `tests/data/verdicts` in English and German, as articles."""
    pages = {
        name: sentences
        for language in ("english", "german")
        for name, sentences in json.loads((DATA / "verdicts" / f"{language}.json").read_text("utf-8"))["pages"].items()
    }
    return {
        name: {"url": f"https://{name}.example/page", "articleBody": " ".join(sentences)}
        for name, sentences in pages.items()
    }


def quotes(seed: int, count: int, real: bool) -> Iterator[tuple[random.Random, NormalisedContext, str, str]]:
    """Runs of 8 to 70 words from real articles, or from those made here, each with its article's context and URL."""
    articles = json.loads(ARTICLES.read_text(encoding="utf-8")) if real else articles_made_here()
    for name, article in sorted(articles.items()):
        draw = random.Random(f"{seed} {name}")
        words = list(re.finditer(r"\S+", article["articleBody"]))
        if len(words) < 8:
            continue
        context = read_context(aggregate_context([(article["url"], article["articleBody"])]))
        for _ in range(count):
            first = draw.randrange(len(words) - 7)
            last = min(first + draw.randint(7, 69), len(words) - 1)
            yield draw, context, article["url"], article["articleBody"][words[first].start() : words[last].end()]


def spaced(draw: random.Random, quote: str) -> str:
    return re.sub(r"\s+", lambda _: draw.choice([" ", "\n", "  ", "\t ", "\u00a0", " \u3000"]), quote)


def escaped(draw: random.Random, quote: str) -> str:
    if "&" in quote:
        return quote
    return "".join(f"&#{ord(sign)};" if draw.random() < 0.1 else html.escape(sign) for sign in quote)


def swapped(marks: tuple[str, ...]) -> Callable[[random.Random, str], str]:
    return lambda draw, quote: "".join(
        next((draw.choice(group) for group in marks if sign in group), sign) for sign in quote
    )


def recased(draw: random.Random, quote: str) -> str:
    return "".join(sign.swapcase() if sign.isascii() and draw.random() < 0.5 else sign for sign in quote)


def hyphenated(draw: random.Random, quote: str) -> str:
    return "".join(sign + draw.choice(["", "", "", "\u00ad", "\u200b"]) if sign.isalpha() else sign for sign in quote)


VARIATIONS: dict[str, Callable[[random.Random, str], str]] = {
    "as it is": lambda draw, quote: quote,
    "case": recased,
    "white space": spaced,
    "entities": escaped,
    "quotes and dashes": swapped(("'‘’‚", '"“”„«»', "-‐–—−")),
    "invisible": hyphenated,
    "all": lambda draw, quote: escaped(draw, spaced(draw, recased(draw, swapped(("'‘’", '"“”', "-–—"))(draw, quote)))),
}


@each_source
def test_quotes_of_articles_pass_whatever_their_form_and_their_places_read_like_them(real: bool) -> None:
    checked = 0
    for draw, context, url, quote in quotes(1, 1, real):
        for vary in VARIATIONS.values():
            snippet = vary(draw, quote)
            found = validate_and_normalize_evidence(context, [item(url, snippet)], per_page=True)
            assert found.errors == ()
            assert len(found.items[0].snippet) <= 320
            assert snippet.startswith(found.items[0].snippet)
            checked += 1
    assert checked > (1200 if real else 30)
    for _, _, url, quote in quotes(3, 1, real):
        context = aggregate_context([("https://other.example", quote[::-1]), (url, f"Before. {quote} After.")])
        (found,) = check(context, item(url, quote), per_page=True).items
        assert isinstance(found, Evidence)
        assert normalise(context[found.char_start : found.char_end]) == normalise(found.snippet)


@each_source
def test_quotes_of_articles_with_one_other_word_are_refused(real: bool) -> None:
    checked = 0
    for draw, context, url, quote in quotes(2, 12, real):
        word = draw.choice(list(re.finditer(r"\w+", quote)))
        others = ("never", "seven", "river", "Minister", "not")
        other = next(each for each in others if each.casefold() not in word[0].casefold())
        snippet = quote[: word.start()] + other + quote[word.end() :]
        snippet = draw.choice(list(VARIATIONS.values()))(draw, snippet)
        assert validate_and_normalize_evidence(context, [item(url, snippet)]).errors == (
            "evidence[0] snippet_not_verbatim",
        )
        checked += 1
    assert checked > (2000 if real else 50)

from itertools import chain

import pytest

from pipeline.citations.addresses import site_key
from pipeline.research.claims import verify
from pipeline.text.sentences import sentence_spans
from pipeline.verifying.rules import Disagreement, disagreements, disputed_ids
from pipeline.verifying.values import Checked, Claim, Page, Quote
from tests.support.places import cases

READ_AT = "2026-11-20T00:00:00Z"
COOLS = "Butter cools a burn at once."
DOES_NOT_COOL = "Butter does not cool a burn at once."


def page(host: str, text: str, lang: str = "en", title: str = "") -> Page:
    url = f"https://{host}/"
    return Page(url, title, site_key(url), lang, text, READ_AT)


def checked_claims(pages: list[Page]) -> tuple[Checked, ...]:
    """Every sentence of the pages as a claim of its own, checked against all of them."""
    spans = [(each, start, end) for each in pages for start, end in sentence_spans(each.text, each.lang)]
    claims = [
        Claim(f"c{number}", each.text[start:end], 0, (Quote(each.url, each.text[start:end], start, end),))
        for number, (each, start, end) in enumerate(spans, start=1)
    ]
    return verify(claims, pages).claims


def between(*texts: str, lang: str = "en", titles: tuple[str, str] = ("", "")) -> list[Disagreement]:
    """What two pages with these texts disagree about."""
    one, other = texts
    pages = [page("a.example", one, lang, titles[0]), page("b.example", other, lang, titles[1])]
    return disagreements(checked_claims(pages))


def test_pages_on_opposite_sides_are_one_disagreement_and_a_third_page_joins_its_side() -> None:
    (found,) = between(f"{COOLS} It smells.", DOES_NOT_COOL)
    assert [[quote.text for quote in side] for side in found.sides] == [[COOLS], [DOES_NOT_COOL]]
    assert found.claim_ids == ("c1", "c3")
    pages = [page("a.example", COOLS), page("b.example", DOES_NOT_COOL), page("c.example", COOLS)]
    (found,) = disagreements(checked_claims(pages))
    assert [[quote.url[8:9] for quote in side] for side in found.sides] == [["a", "c"], ["b"]]


@pytest.mark.parametrize(
    ("one", "other"),
    cases("verdict_rules")["half_said"],
    ids=["called wrong", "says both", "reports", "quotes", "condition", "other words", "asks", "points back", "agrees"],
)
def test_who_says_it_only_half_disagrees_with_nobody(one: str, other: str) -> None:
    assert between(one, other) == []


def test_two_versions_of_one_thing_do_not_disagree_nor_a_page_with_itself_and_long_texts_are_read() -> None:
    texts = "The archive tool supports encrypted archives.", "The archive tool does not support encrypted archives."
    assert between(*texts, titles=("Archive tool 2.1", "Archive tool 3.0")) == []
    assert len(between(*texts, titles=("Archive tool", "Packing files"))) == 1
    quote = Quote("https://a.example/", COOLS, 0, len(COOLS))
    claim = Checked(Claim("c1", COOLS, 0, (quote,)), "contradicted", 0.0, ("negated",), (), (quote,))
    assert disagreements([claim]) == []
    long = " ".join(chain(["Butter"], ["not, "] * 4000, ["cools a burn."]))
    assert between(COOLS, f"{long} {DOES_NOT_COOL}") != []


def test_every_claim_whose_quote_is_part_of_a_side_is_disputed() -> None:
    first, second = checked_claims([page("a.example", COOLS), page("b.example", DOES_NOT_COOL)])
    silent = second._replace(against=(), claim=second.claim._replace(id="c9", text="A burn is not cooled by butter."))
    far = Quote("https://b.example/", "x", 900, 901)
    other = silent._replace(claim=silent.claim._replace(id="c10", quotes=(far,)))
    assert disputed_ids([first, silent, other]) == {"c1", "c9"}

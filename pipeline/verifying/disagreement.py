"""Pages that contradict each other, by the rule of `_rules.py`, and the claims of a run that are on either side.

A page that says both, or calls the sentence wrong, contradicts nobody.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pipeline.text.words import numbers_in
from pipeline.verifying._rules import is_disclaimed, opposing, stands_on
from pipeline.verifying.page_text import PageText, same_form
from pipeline.verifying.values import Checked, Quote


class Disagreement(NamedTuple):
    """Two sides of which both cannot be right."""

    claim_ids: tuple[str, ...]
    """The claims that stand on either side, in order."""
    sides: tuple[tuple[Quote, ...], tuple[Quote, ...]]
    """What pages say, each page once a side; neither is empty, and no page is on both."""


def contrary(text: str, own: Sequence[PageText], others: Sequence[PageText]) -> tuple[Quote, ...]:
    """The sentences of other pages that contradict a text which pages of its own say.

    None where its own pages contradict it or call it wrong. Of a page that says it as well, none.
    """
    if opposing(text, own) or any(_is_called_wrong(text, page) for page in own):
        return ()
    return tuple(
        page.quote(place.sentence)
        for page in others
        for place in opposing(text, [page])
        if stands_on(text, page) is None
    )


def _is_called_wrong(text: str, page: PageText) -> bool:
    """Whether the page has the text as a sentence that it calls wrong."""
    places = page.places_by_form.get(same_form(text), ())
    return any(is_disclaimed(page, range(place, place + 1)) for place in places)


def is_other_edition(title: str, other: str) -> bool:
    """Whether two pages are about different versions or years of one thing: their titles differ in numbers alone."""
    names = [re.sub(r"[\d.]+", "", each).casefold().split() for each in (title, other)]
    return bool(names[0]) and names[0] == names[1] and numbers_in(title) != numbers_in(other)


def disagreements(claims: Iterable[Checked]) -> list[Disagreement]:
    """What pages disagree about, in order of the claims: claims that share a side's words are one disagreement."""
    found: list[_Sides] = []
    for checked in claims:
        own = checked.claim.quotes
        urls = {quote.url for quote in own}
        against = [quote for quote in checked.against if quote.url not in urls]
        if not (own and against):
            continue
        sides = next((each for each in found if each.meets(own, against)), None)
        if sides is None:
            sides = _Sides()
            found.append(sides)
        sides.add(checked.claim.id, own, against)
    return [Disagreement(tuple(each.ids), (tuple(each.one), tuple(each.other))) for each in found]


class _Sides:
    """A disagreement that grows."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.one: list[Quote] = []
        self.other: list[Quote] = []

    def meets(self, own: Sequence[Quote], against: Sequence[Quote]) -> bool:
        """Whether a claim with these quotes, and those against it, is about the same."""
        held = (*self.one, *self.other)
        return any(overlap(quote, known) for quote in (*own, *against) for known in held)

    def add(self, claim_id: str, own: Sequence[Quote], against: Sequence[Quote]) -> None:
        """Put the claim's quotes on its side and those against it on the other; a page stays on its first side."""
        self.ids.append(claim_id)
        turned = any(overlap(quote, known) for quote in own for known in self.other) or any(
            overlap(quote, known) for quote in against for known in self.one
        )
        first, second = (against, own) if turned else (own, against)
        for side, rival, quotes in ((self.one, self.other, first), (self.other, self.one, second)):
            for quote in quotes:
                if quote.url not in {known.url for known in (*side, *rival)}:
                    side.append(quote)


def overlap(quote: Quote, other: Quote) -> bool:
    """Whether two quotes share a part of their page."""
    return quote.url == other.url and quote.start < other.end and other.start < quote.end


def disputed_ids(claims: Sequence[Checked]) -> frozenset[str]:
    """The claims that stand on a side of a disagreement: their own, or their quotes are part of one."""
    found = disagreements(claims)
    quotes = [quote for each in found for side in each.sides for quote in side]
    quotes += [
        quote for each in claims for quote in each.against if each.claim.id in {i for f in found for i in f.claim_ids}
    ]
    ids = {claim_id for each in found for claim_id in each.claim_ids}
    return frozenset(ids) | frozenset(
        each.claim.id
        for each in claims
        if any(overlap(quote, known) for quote in each.claim.quotes for known in quotes)
    )

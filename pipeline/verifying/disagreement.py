"""Pages that say opposite things: who contradicts a claim, and all claims and pages of a run that stand on two sides.

A page disagrees only where it says the opposite itself, for sure, and nowhere also what the other one says: who sets
two cases side by side, or tells a myth and refutes it, contradicts nobody.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from pipeline.text.coverage import SentencePlace, cover, words_and_numbers
from pipeline.text.words import numbers_in
from pipeline.verifying._agreement import says
from pipeline.verifying._opposition import opposition
from pipeline.verifying._wording import wording_of
from pipeline.verifying.page_text import PageText
from pipeline.verifying.values import Checked, Quote

_CANDIDATES = 24
"""Best sentences of the pages that a claim is held against."""
_REFUTES = re.compile(
    r"^\W*(?:in (?:truth|fact|reality)|actually|(?:this|that) is (?:false|wrong|a myth|not true)|not so"
    r"|in wahrheit|tatsächlich|das stimmt nicht|das ist (?:falsch|ein irrtum|ein mythos)|dem ist nicht so)(?!\w)"
    r"|^(?:実際に?は|しかし、?実際|これは(?:誤り|間違い)|それは(?:誤り|間違い)|根拠は)",
    re.IGNORECASE,
)
_ENDS = re.compile(r"[.!。！][\"'”’»」)\]\s]*(?:\[\d+\]\s*)*$")


class Disagreement(NamedTuple):
    """Two sides of which both cannot be right."""

    claim_ids: tuple[str, ...]
    """The claims that stand on either side, in order."""
    sides: tuple[tuple[Quote, ...], tuple[Quote, ...]]
    """What pages say, each page once a side; neither is empty, and no page is on both."""


def contrary(text: str, own: Sequence[PageText], others: Sequence[PageText]) -> tuple[Quote, ...]:
    """The sentences of other pages that say the opposite of a text, which pages of its own say.

    None where its own pages refute it or say both. Of a page that says it as well, none.
    """
    if _opposing(text, own) or any(_is_refuted(text, page) for page in own):
        return ()
    found = _opposing(text, others)
    return tuple(
        others[place.source].quote(place.sentence)
        for place in found
        if not _says_it_too(text, others[place.source])
        and not _is_refuted(others[place.source].sentences[place.sentence], others[place.source])
    )


def _opposing(text: str, pages: Sequence[PageText]) -> list[SentencePlace]:
    """The sentences of the pages that oppose the text."""
    words, numbers = words_and_numbers(text, "")
    _, places = cover(words | numbers, frozenset(), [page.index for page in pages], _CANDIDATES)
    return [
        each for each in places if _is_statement(_sentence(pages, each)) and opposition(text, _sentence(pages, each))
    ]


def _sentence(pages: Sequence[PageText], place: SentencePlace) -> str:
    """The sentence at this place."""
    return pages[place.source].sentences[place.sentence]


def _is_statement(sentence: str) -> bool:
    """Whether it is a whole sentence of running text."""
    return "\n" not in sentence.strip() and _ENDS.search(sentence) is not None


def _is_refuted(text: str, page: PageText) -> bool:
    """Whether the page's next sentence says that this one is wrong."""
    wanted = wording_of(text).words
    return any(
        each == text or wording_of(each).words == wanted
        for each, following in pairwise(page.sentences)
        if _REFUTES.search(following)
    )


def _says_it_too(text: str, page: PageText) -> bool:
    """Whether a sentence of the page says the text as well."""
    words, numbers = words_and_numbers(text, "")
    _, places = cover(words | numbers, frozenset(), [page.index], _CANDIDATES)
    claim = wording_of(text)
    return any(says(claim, wording_of(page.sentences[place.sentence])) for place in places)


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
        """Begin without claims and quotes; `add` brings them."""
        self.ids: list[str] = []
        self.one: list[Quote] = []
        self.other: list[Quote] = []

    def meets(self, own: Sequence[Quote], against: Sequence[Quote]) -> bool:
        """Whether a claim with these quotes, and those against it, is about the same."""
        held = (*self.one, *self.other)
        return any(_overlap(quote, known) for quote in (*own, *against) for known in held)

    def add(self, claim_id: str, own: Sequence[Quote], against: Sequence[Quote]) -> None:
        """Put the claim's quotes on its side and those against it on the other; a page stays on its first side."""
        self.ids.append(claim_id)
        turned = any(_overlap(quote, known) for quote in own for known in self.other) or any(
            _overlap(quote, known) for quote in against for known in self.one
        )
        first, second = (against, own) if turned else (own, against)
        for side, rival, quotes in ((self.one, self.other, first), (self.other, self.one, second)):
            for quote in quotes:
                if quote.url not in {known.url for known in (*side, *rival)}:
                    side.append(quote)


def _overlap(quote: Quote, other: Quote) -> bool:
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
        if any(_overlap(quote, known) for quote in each.claim.quotes for known in quotes)
    )

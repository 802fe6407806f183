"""Pages that say the same: the same text under two URLs, or nearly the same."""

import re
import zlib
from collections.abc import Sequence
from typing import NamedTuple

from pipeline.text.words import UNSPACED
from pipeline.verifying.values import Page

# So many words in a row are hardly the same in two texts by chance.
SHINGLE = 6
# Share of the words in a row of both together that both have.
SAME = 0.7
FEWEST = 30
TOKEN = re.compile(rf"[{UNSPACED}]|[^\W_{UNSPACED}]+")


class Duplicate(NamedTuple):
    """A page that says what another one says."""

    url: str
    """The page."""
    same_as: str
    """The one that is kept."""


class Text(NamedTuple):
    """What two texts are compared by."""

    whole: int
    """Checksum of all words."""
    shingles: frozenset[int]
    """Checksums of words in a row; empty for a text that is too short for that."""


def shingled(text: str) -> Text:
    """The text in the form in which it is compared: white space, case and punctuation do not matter."""
    words = TOKEN.findall(text.casefold())
    rows = (" ".join(words[at : at + SHINGLE]) for at in range(len(words) - SHINGLE + 1))
    shingles = frozenset(zlib.crc32(row.encode(errors="replace")) for row in rows)
    whole = zlib.crc32(" ".join(words).encode(errors="replace"))
    return Text(whole, shingles if len(words) >= FEWEST else frozenset())


def same(one: Text, other: Text) -> bool:
    """Whether the two are mirrors; a page that is a part of a much longer one is none."""
    if one.whole == other.whole:
        return True
    smaller, larger = sorted((len(one.shingles), len(other.shingles)))
    if smaller < SAME * larger or not smaller:
        return False
    shared = len(one.shingles & other.shingles)
    return shared >= SAME * (smaller + larger - shared)


def without_duplicates(pages: Sequence[Page]) -> tuple[tuple[Page, ...], tuple[Duplicate, ...]]:
    """The pages of which none says the same as one before it, and those that do; all in their order."""
    kept: list[Page] = []
    texts: list[Text] = []
    duplicates: list[Duplicate] = []
    for page in pages:
        text = shingled(page.text)
        twin = next((before for before, known in zip(kept, texts, strict=True) if same(text, known)), None)
        if twin is None:
            kept.append(page)
            texts.append(text)
        else:
            duplicates.append(Duplicate(page.url, twin.url))
    return tuple(kept), tuple(duplicates)

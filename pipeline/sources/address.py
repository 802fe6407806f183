"""What a page's address says about it: the words of its title, whether a redirect left it behind, its kind of source.

No site is known by its name: what a registry lets only some people register, and the words that people use for parts of
their sites, tell the kind. Source: pipeline/contracts/research.md#sources.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import Literal, NamedTuple, cast
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from pipeline.citations.addresses import is_grounding_redirect, site_key, url_host
from pipeline.core.sentences import packaged_table

WORDS: dict[str, dict[str, str]] = packaged_table(__file__, "words.toml")
_LEAST_WORDS = 2
_STATUS = ("404", "410")  # what pages about errors have in their address
_WORD = re.compile(rf"[^\W\d_]+|{'|'.join(_STATUS)}")
_LATIN = re.compile(r"[a-z]")
_ONE_LETTER = str.maketrans({"æ": "a", "ø": "o", "ł": "l", "đ": "d", "ı": "i", "œ": "o", "þ": "t", "ð": "d"})
_OF_ANY_PAGE = re.compile(
    r"articles?|artikel|beitrag|blog|category|content|default|home|html|index|main|news|node|pages?|posts?|story|topics?"
)
_OVERVIEW = re.compile(
    r"""(?:[a-z]{2}(?:[-_][a-z]{2,4})?
    | (?:index|home|homepage|default|main|start|startseite|accueil|inicio|welcome|portal)
      (?:\.(?:html?|php|aspx?|jsp|cfm|do))?)""",
    re.I | re.X,
)
_NOTHING = re.compile(
    r"(?:http[-_]?|error[-_]?|page[-_]?|err[-_]?)?(?:404|410|not[-_]?found)(?:[-_]?(?:error|page))?(?:\.\w{2,5})?", re.I
)
_PAGE_PARAMETERS = frozenset(("p", "id", "page_id", "post", "article", "articleid", "story", "aid", "nid"))


class Address(NamedTuple):
    asked: str
    final: str  # Where its redirects ended; the same where there were none

    @property
    def host(self) -> str:
        return _bare_host(urlsplit(self.asked))

    def is_in(self, text: str) -> bool | None:
        """Whether a text has half of the words of the cited address, and two of them; None where that is not known."""
        words = _words_of(self.asked)
        found = _found(words, text)
        return None if found is None or len(words) < _LEAST_WORDS else found >= max(_LEAST_WORDS, len(words) / 2)

    def is_missing(self, text: str) -> bool:
        """Whether a text has none of the words of the cited address, which are three or more."""
        words = _words_of(self.asked)
        return len(words) >= 3 and _found(words, text) == 0

    def names_nothing(self) -> bool:
        """Whether the cited address itself ends with a name such as `404`, as those of pages about it do."""
        return any(map(_NOTHING.fullmatch, _names(urlsplit(self.asked))[-1:]))

    def ends_at_nothing(self) -> str:
        """In plain words that the redirects ended at an address such as `/404`; empty where they did not."""
        asked, final = (_names(urlsplit(url))[-1:] for url in self)
        is_nothing = final != asked and any(map(_NOTHING.fullmatch, final))
        return f"its redirect ends at {final[0]!r}" if is_nothing else ""

    def ends_at_home(self) -> bool:
        """Whether the redirects ended at a site's first page, and that is not where the page itself has moved."""
        asked, final = map(urlsplit, self)
        # One page but for scheme, `www.` and the slash at the end.
        one, other = ((_bare_host(parts), parts.path.rstrip("/"), parts.query) for parts in (asked, final))
        if one == other or _is_overview(asked) or is_grounding_redirect(self.asked) or not _is_overview(final):
            return False
        if _bare_host(asked) == _bare_host(final):
            return True
        labels = set(_bare_host(final).split("."))
        if any(name.partition(".")[0].lower() in labels for name in _names(asked)):
            return False  # `/blog` became `blog.a.example`, a project's repository its site
        return site_key(self.asked) == site_key(self.final) or len(_words_of(self.asked)) >= _LEAST_WORDS

    def ends_above(self) -> bool:
        """Whether the redirects ended at a page above the one that was cited, whose address has words of its own."""
        asked, final = map(urlsplit, self)
        below, above = _names(asked), _names(final)
        is_above = len(above) < len(below) and below[: len(above)] == above
        return is_above and _bare_host(asked) == _bare_host(final) and len(_words_of(self.asked)) >= _LEAST_WORDS


def _found(words: tuple[str, ...], text: str) -> int | None:
    text = _folded(text[:20_000])
    if not words or not text:
        return None
    is_latin = any(map(_LATIN.match, words))
    if is_latin and len(re.findall(r"[^\W\d_a-z]", text)) > len(_LATIN.findall(text)):
        return None  # addresses of such pages are transcribed, or in English
    return sum(word[:5] in text for word in words)


def _words_of(url: str) -> tuple[str, ...]:
    """The words of the part of an address that has most, the last of these; without blanks, pieces of two signs."""
    parts = urlsplit(url)
    most: tuple[str, ...] = ()
    for name in (*_names(parts), *(value for _, value in parse_qsl(parts.query))):
        found = tuple(dict.fromkeys(_words_in(name)))
        most = found if len(found) >= max(len(most), 1) else most
    return most


def _words_in(name: str) -> Iterator[str]:
    for word in _WORD.findall(_folded(name.rpartition(".")[0] or name)):
        if word in _STATUS:
            yield word
        elif not _LATIN.match(word):
            yield from map("".join, pairwise(word))
        elif len(word) >= 4 and re.search(r"[aeiouy]", word) and not _OF_ANY_PAGE.fullmatch(word):
            yield word


def _folded(text: str) -> str:
    """The text in lower case without accents and umlauts, however they are written."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(sign for sign in plain if not unicodedata.combining(sign))
    return re.sub(r"([aou])e", r"\1", plain.translate(_ONE_LETTER))


def _names(parts: SplitResult) -> tuple[str, ...]:
    return tuple(unquote(name) for name in parts.path.split("/") if name)


def _bare_host(parts: SplitResult) -> str:
    return (parts.hostname or "").removeprefix("www.")


def _is_overview(parts: SplitResult) -> bool:
    names = _names(parts)
    if _PAGE_PARAMETERS & {name.lower() for name, _ in parse_qsl(parts.query)}:
        return False
    return len(names) <= 2 and all(map(_OVERVIEW.fullmatch, names))


SourceKind = Literal["official", "research", "maker", "documentation", "page", "discussion", "shop", "listing"]
"""An office of states; a university, or a paper with a DOI; a site called as what is asked about; a manual or standard;
what tells nothing; people who answer each other; what is sold; links to other pages."""

PRIMARY: frozenset[SourceKind] = frozenset({"official", "research", "maker", "documentation"})
"""Those who answer for what they say."""
SECONDARY: frozenset[SourceKind] = frozenset({"discussion", "shop", "listing"})
"""Those for whose words nobody answers, who sell, or who say nothing themselves."""

_STATES = frozenset({"gov", "govt", "gouv", "gob", "gub"})
_PARTS: dict[SourceKind, frozenset[str]] = {
    cast(SourceKind, kind): frozenset(words.split()) for kind, words in WORDS["parts_of_sites"].items()
}


def source_kind(url: str, names: Collection[str] = ()) -> SourceKind:
    """The kind of source that a URL stands for; `names` are those that what is asked has, in folded case."""
    site = site_key(url)
    name, _, suffix = site.partition(".")
    if _is_of(_STATES | {"gv", "go", "lg", "mil", "int"}, suffix) or _is_of(_STATES, site):
        return "official"
    path = unquote(urlsplit(url).path).lower()
    is_doi = re.search(r"\b10\.[0-9]{4,9}/\S", path)
    if is_doi or _is_of(("edu", "ac"), suffix) or re.match(r"(?:uni|tu|fh)-[a-z]", name):
        return "research"
    below = url_host(url).removesuffix(site).split(".")
    parts = {*below, *(part.partition(".")[0] for part in path.split("/"))}
    kind: SourceKind = next((kind for kind, words in _PARTS.items() if not words.isdisjoint(parts)), "page")
    is_maker = len(name) >= 3 and name in names and bool(suffix)
    return "maker" if is_maker and kind not in SECONDARY else kind


def _is_of(labels: Collection[str], suffix: str) -> bool:
    """`gov`, or `gov.uk`, where a country stands behind."""
    first, _, country = suffix.partition(".")
    # Those of these suffixes that may stand without a country behind them.
    return first in labels and (bool(country) or first in {"gov", "mil", "int", "edu"})

"""What kind of source a page is, as far as its address tells: an office, a university, a manual, a forum, a shop.

No site is known by its name. What a registry lets only some people register, and the words that people use for parts
of their sites, tell the kind; most addresses tell nothing.

Source: pipeline/contracts/research.md#sources.
"""

import re
from collections.abc import Collection
from typing import Literal, cast
from urllib.parse import unquote, urlsplit

from pipeline.text.urls import site_key, url_host

SourceKind = Literal["official", "research", "maker", "documentation", "page", "discussion", "shop", "listing"]
"""An office of states; a university, or a paper with a DOI; a site called as what is asked about; a manual or standard;
what tells nothing; people who answer each other; what is sold; links to other pages."""

PRIMARY: frozenset[SourceKind] = frozenset({"official", "research", "maker", "documentation"})
"""Those who answer for what they say."""
SECONDARY: frozenset[SourceKind] = frozenset({"discussion", "shop", "listing"})
"""Those for whose words nobody answers, who sell, or who say nothing themselves."""

_STATES = frozenset({"gov", "govt", "gouv", "gob", "gub"})
_OFFICES = _STATES | {"gv", "go", "lg", "mil", "int"}
_UNIVERSITIES = frozenset({"edu", "ac"})
_ALONE = frozenset({"gov", "mil", "int", "edu"})
"""Those of these suffixes that may stand without a country behind them."""
_UNIVERSITY_NAME = re.compile(r"(?:uni|tu|fh)-[a-z]")
_DOI = re.compile(r"\b10\.[0-9]{4,9}/\S")
_PARTS_OF_SITES = """
discussion: forum forums foren board boards community discuss discussion discussions thread threads viewtopic \
showthread question questions answers comments
shop: shop store product products produkt produkte buy kaufen cart deals offers coupons
listing: search suche tag tags category categories kategorie author archives
documentation: doc docs documentation dokumentation man manpages manual manuals handbook handbuch reference spec specs \
specification standard standards rfc
"""
_PARTS: dict[SourceKind, frozenset[str]] = {
    cast(SourceKind, kind): frozenset(words.split())
    for kind, words in (line.split(":") for line in _PARTS_OF_SITES.strip().splitlines())
}
"""How people call parts of their sites: labels of a host before what is registered, and whole parts of a path."""
_LEAST_NAME = 3


def source_kind(url: str, names: Collection[str] = ()) -> SourceKind:
    """The kind of source that a URL stands for; `names` are those that what is asked has, in folded case."""
    site = site_key(url)
    name, _, suffix = site.partition(".")
    if _is_of(_OFFICES, suffix) or _is_of(_STATES, site):
        return "official"
    path = unquote(urlsplit(url).path).lower()
    if _is_of(_UNIVERSITIES, suffix) or _UNIVERSITY_NAME.match(name) or _DOI.search(path):
        return "research"
    below = url_host(url).removesuffix(site).split(".")
    parts = {*below, *(part.partition(".")[0] for part in path.split("/"))}
    told: SourceKind = next((kind for kind, words in _PARTS.items() if not words.isdisjoint(parts)), "page")
    is_maker = len(name) >= _LEAST_NAME and name in names and bool(suffix)
    return "maker" if is_maker and told not in SECONDARY else told


def _is_of(labels: Collection[str], suffix: str) -> bool:
    """Whether a public suffix is one of those: `gov`, or `gov.uk`, where a country stands behind."""
    first, _, country = suffix.partition(".")
    return first in labels and (bool(country) or first in _ALONE)

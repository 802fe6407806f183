"""The aggregated context: pages under their header lines in one text, and the way back to the pages (seed 002)."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from pipeline.errors import InputError
from pipeline.text.normal_form import NormalForm, normal_form
from pipeline.text.urls import membership_key

# Source: reference/research-pipeline.md 1.1, "aggregated context".
HEADER = re.compile(r"^### \[PAGE\] (\S+)[^\S\n]*$\n?", re.MULTILINE)
HEADER_SIGN = re.compile(r"^### (?=\[PAGE\])", re.MULTILINE)
# A no-break space: no header any more, and the same length and normal form.
DEFUSED_SIGN = "###\u00a0"


class ContextPage(NamedTuple):
    """One page of a context: the URL of its header, its text as `context[start:end]`, and that in normal form.

    What stands before the first header is a page with an empty URL.
    """

    url: str
    key: str
    start: int
    end: int
    form: NormalForm


class NormalisedContext(NamedTuple):
    """A context's pages in their order, and the `membership_key`s of its headers; made once, checked against often."""

    pages: tuple[ContextPage, ...]
    keys: frozenset[str]


def aggregate_context(pages: Iterable[tuple[str, str]]) -> str:
    """The pages as (URL, text) in one text, each under its header line; a blank line parts them.

    A line of a page that begins like a header gets a no-break space in it: it is none then, and no offset moves.

    Raises:
        InputError: a URL is empty or holds white space, so no header can carry it.
    """
    return "\n\n".join(f"### [PAGE] {header_url(url)}\n{defuse_headers(text)}" for url, text in pages)


def header_url(url: str) -> str:
    """The URL where a header can carry it.

    Raises:
        InputError: it is empty or holds white space.
    """
    if url.split() != [url]:
        raise InputError(f"The URL {url[:80]!r} is empty or holds white space; it cannot head a page of a context.")
    return url


def defuse_headers(text: str) -> str:
    """The text, of the same length, without a line that begins like a header."""
    return HEADER_SIGN.sub(DEFUSED_SIGN, text)


def read_context(aggregated_context: str) -> NormalisedContext:
    """The pages of a context in normal form. Takes time in proportion to the context."""
    headers = list(HEADER.finditer(aggregated_context))
    starts = [0, *(header.end() for header in headers)]
    ends = [*(header.start() for header in headers), len(aggregated_context)]
    urls = ["", *(header[1] for header in headers)]
    pages = tuple(
        ContextPage(url, membership_key(url), start, end, normal_form(aggregated_context[start:end]))
        for url, start, end in zip(urls, starts, ends, strict=True)
    )
    return NormalisedContext(pages, frozenset(page.key for page in pages if page.url))

"""What the sources pass on: search results, documents and chunks, camelCase in JSON.

Source: pipeline/contracts/research.md#data.
"""

import re
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from pipeline.citations.addresses import canonical_url
from pipeline.core.errors import InputError
from pipeline.core.schema import Frozen
from pipeline.records.schema import SourceState

READ = ("page", "added")
"""The reasons of pages whose text is in the store."""


def stored_url(url: str) -> str:
    try:
        return canonical_url(url)
    except InputError as error:
        raise ValueError(str(error)) from error


CanonicalUrl = Annotated[str, AfterValidator(stored_url)]
"""An http(s) URL in the form that is stored; a refused one is a validation error.

Source: pipeline/contracts/research.md#rules.
"""


class Contract(Frozen):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class SearchResult(Contract):
    """One result of a search provider (pipeline/contracts/research.md#searchresult)."""

    title: str = Field(max_length=256)
    """The page's title."""
    url: CanonicalUrl
    """The page's URL."""
    snippet: str | None = Field(default=None, max_length=1024)
    """An excerpt of the page; None where the provider gives none."""


class SourceMeta(Contract):
    """Where a document comes from."""

    domain: str
    """`source_domain` of the URL."""
    lang: str | None = None
    """ISO 639-1 code of the text's language; None where it cannot be told."""
    content_type: str | None = None
    """The media type that the server named, such as `text/html`; None where it named none."""


class Document(Contract):
    """The text of one page (pipeline/contracts/research.md#document)."""

    url: CanonicalUrl
    """The page's URL."""
    title: str | None = None
    """The page's title; None where it has none."""
    text: str
    """The main text: newlines are `\\n`, no control characters."""
    source_meta: SourceMeta
    """Where it comes from."""


class Chunk(Contract):
    """One segment of a document (pipeline/contracts/research.md#chunk), with its place."""

    doc_url: CanonicalUrl
    """URL of the document."""
    text: str = Field(min_length=1)
    """The segment: `document.text[start:end]`."""
    hash: str = Field(min_length=8, max_length=200)
    """`sha256:` and 64 hex digits of the text in normal form (white space collapsed, lower case)."""
    tokens: int = Field(ge=0)
    """Its length in tokens of `o200k_base`."""
    start: int | None = Field(default=None, ge=0)
    """First code point in the document's text; None where the chunk came without its place."""
    end: int | None = Field(default=None, ge=0)
    """The code point after the last one; None together with `start`."""
    page: int | None = Field(default=None, ge=1)
    """Page of a PDF on which it begins, counted from 1; None for other documents."""


_Read = Literal[
    "page",  # the page itself
    "snippet",  # what the provider showed of it
    "cited_text",  # what the provider quoted from it
    "added",  # a file that the user has
]
_Gone = Literal[
    "status_404",
    "status_410",
    "soft_404",  # a success that says that there is no such page
    "parked",  # the domain is for sale, or its site is closed
]
_Unread = Literal[
    "robots",  # robots.txt forbids it, or cannot be had
    "paywall",
    "cookie_wall",
    "captcha",
    "login",
    "empty",  # no text on it
    "error_page",  # a success that tells of an error
    "home_page",  # a redirect ended at the site's first page, or at an overview
    "other_page",  # a short page that has nothing of what its address names
    "not_text",  # an image, a film, an archive
    "too_large",
    "bad_encoding",
    "parser_failed",
    "parser_timeout",
    "redirects",  # more of them than anyone follows
    "too_slow",  # the body began and did not come to its end in time
]
_Unresolved = Literal[
    "refused",  # by the guard
    "no_such_host",
    "network",  # nobody there, or the connection broke
    "timeout",
    "not_a_url",
]
Reason = Literal[_Read, _Gone, _Unread, _Unresolved, "not_tried"]
"""Every reason but `status_<n>`, which stands for each status that is no success and has no reason of its own."""

_REASONS: dict[SourceState, object] = {
    "read": _Read,
    "gone": _Gone,
    "unread": _Unread,
    "unresolved": _Unresolved,
    "unfetched": Literal["not_tried"],
}
STATES: dict[str, SourceState] = {reason: state for state, reasons in _REASONS.items() for reason in get_args(reasons)}


def state_of(reason: str) -> SourceState:
    """The state that a source with this reason is in; ValueError where nothing gives this reason."""
    if reason not in STATES and not re.fullmatch(r"status_[0-9]{1,3}", reason, flags=re.ASCII):
        raise ValueError(f"No source has the reason {reason!r}.")
    return STATES.get(reason, "unread")

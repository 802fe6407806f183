"""What the sources pass on: search results, documents and chunks, camelCase in JSON.

Source: pipeline/contracts/research.md#data.
"""

from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from pipeline.citations.addresses import canonical_url
from pipeline.core.errors import InputError
from pipeline.core.schema import Frozen

READ = ("page", "added")  # The reasons of pages whose text is in the store


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

"""Whether the evidence that a model gives is there: on the pages it was shown, word for word.

A URL must head a page of the context, but for scheme, `www.` and one slash at its end. A snippet must stand in the
context but for white space, case, quotes, dashes and entities; there is no fuzzy score.

Source: pipeline/contracts/evidence.md.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from pipeline.citations.addresses import membership_key
from pipeline.core.errors import InputError
from pipeline.text.normal_form import NormalForm, normal_form, normalise, reference_at
from pipeline.text.sentences import trim_snippet

# Source: pipeline/contracts/evidence.md#the-context.
_HEADER = re.compile(r"^### \[PAGE\] (\S+)[^\S\n]*$\n?", re.MULTILINE)
_HEADER_SIGN = re.compile(r"^### (?=\[PAGE\])", re.MULTILINE)
# A no-break space: no header any more, and the same length and normal form.
_DEFUSED_SIGN = "###\u00a0"
# How much of a page is shown beside a snippet that is not on it, as a multiple of the snippet.
_SHOWN_SHARE = 2


class ContextPage(NamedTuple):
    """One page of a context, its text as `context[start:end]`; what stands before the first header has an empty URL."""

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
    """
    return "\n\n".join(f"### [PAGE] {_header_url(url)}\n{_HEADER_SIGN.sub(_DEFUSED_SIGN, text)}" for url, text in pages)


def _header_url(url: str) -> str:
    if url.split() != [url]:
        raise InputError(f"The URL {url[:80]!r} is empty or holds white space; it cannot head a page of a context.")
    return url


def read_context(aggregated_context: str) -> NormalisedContext:
    """The pages of a context in normal form. Takes time in proportion to the context."""
    headers = list(_HEADER.finditer(aggregated_context))
    starts = [0, *(header.end() for header in headers)]
    ends = [*(header.start() for header in headers), len(aggregated_context)]
    urls = ["", *(header[1] for header in headers)]
    pages = tuple(
        ContextPage(url, membership_key(url), start, end, normal_form(aggregated_context[start:end]))
        for url, start, end in zip(urls, starts, ends, strict=True)
    )
    return NormalisedContext(pages, frozenset(page.key for page in pages if page.url))


EvidenceError = Literal["missing", "url_not_in_headers", "snippet_not_verbatim", "snippet_on_other_page"]


class Evidence(NamedTuple):
    """`context[char_start:char_end]` has the trimmed snippet's normal form; its page begins at `page_start`."""

    url: str
    snippet: str
    char_start: int
    char_end: int
    page_start: int


class Rejected(NamedTuple):
    """One item that does not count, by its position (from 0) in what the model gave, and why."""

    position: int
    kind: EvidenceError
    url: str
    snippet: str

    @property
    def message(self) -> str:
        if self.kind == "missing":
            return f"evidence[{self.position}] missing url/snippet"
        named = f": {self.url}" if self.kind == "url_not_in_headers" else ""
        return f"evidence[{self.position}] {self.kind}{named}"


class Forms(NamedTuple):
    """What was compared for one item; `page_form` is the context's where most of the snippet's beginning stands."""

    position: int
    kind: EvidenceError | Literal[""]
    url: str
    url_key: str
    snippet: str
    snippet_form: str
    page_form: str


class Validated(NamedTuple):
    items: tuple[Evidence, ...]
    rejected: tuple[Rejected, ...]
    forms: tuple[Forms, ...]

    @property
    def errors(self) -> tuple[str, ...]:
        return tuple(each.message for each in self.rejected)

    @property
    def status(self) -> Literal["ok", "invalid_evidence"]:
        return "ok" if self.items else "invalid_evidence"

    @property
    def error(self) -> str:
        return "" if self.items else "; ".join(self.errors) or "no_valid_evidence"


class _Asked(NamedTuple):
    """One item as the model gave it, and the keys by which it is looked up; empty texts for what it lacks."""

    position: int
    url: str
    snippet: str
    url_key: str
    form: str


def validate_and_normalize_evidence(
    aggregated_context: str | NormalisedContext,
    items: Sequence[Mapping[str, Any]],
    max_items: int = 3,
    max_snippet_len: int = 320,
    per_page: bool = False,
    explain: bool = False,
) -> Validated:
    """The items `{url, snippet}` that the context holds: checked, trimmed, each once, and then at most `max_items`.

    `per_page` wants a snippet on a page of its own URL; otherwise any page does, a page of its own URL first. A header
    line holds no snippet, and no snippet reaches from one page to the next. A context that is checked against more than
    once is read once, by `read_context`.

    Source: pipeline/contracts/evidence.md.
    """
    context = read_context(aggregated_context) if isinstance(aggregated_context, str) else aggregated_context
    found: dict[tuple[str, str], Evidence] = {}
    rejected: list[Rejected] = []
    forms: list[Forms] = []
    for index, item in enumerate(items):
        fields = item if isinstance(item, Mapping) else {}
        url, snippet = (each if isinstance(each, str) else "" for each in (fields.get("url"), fields.get("snippet")))
        asked = _Asked(index, url, snippet, membership_key(url.strip()), normalise(snippet))
        outcome = _check_item(context, asked, max_snippet_len, per_page)
        if isinstance(outcome, Evidence):
            found.setdefault((outcome.url, outcome.snippet), outcome)
        else:
            rejected.append(Rejected(index, outcome, asked.url, asked.snippet))
        if explain:
            forms.append(_compared_forms(context, asked, "" if isinstance(outcome, Evidence) else outcome))
    return Validated(tuple(found.values())[:max_items], tuple(rejected), tuple(forms))


def _check_item(
    context: NormalisedContext, asked: _Asked, max_snippet_len: int, per_page: bool
) -> Evidence | EvidenceError:
    if not asked.url.strip() or not asked.form:
        return "missing"
    if asked.url_key not in context.keys:
        return "url_not_in_headers"
    trimmed = trim_snippet(asked.snippet, max_snippet_len)
    for page in sorted(context.pages, key=lambda page: page.key != asked.url_key):  # those of the URL first
        at = page.form.find(asked.form)
        if at < 0:
            continue
        if per_page and page.key != asked.url_key:
            return "snippet_on_other_page"
        return _place_trimmed(page, at, asked.url, trimmed) or "missing"
    return "snippet_not_verbatim"


def _place_trimmed(page: ContextPage, at: int, url: str, trimmed: str) -> Evidence | None:
    """The trimmed snippet with its place, where the whole one begins at `at` of the page's form; None for nothing left.

    Where the cut splits what is one letter on the page (`ss` against `ß`), the snippet gives way.
    """
    while form := normalise(trimmed):
        span = page.form.span(at, at + len(form))
        if span is not None:
            return Evidence(url, trimmed, page.start + span[0], page.start + span[1], page.start)
        trimmed = trimmed[: reference_at(trimmed, len(trimmed) - 1)].rstrip()
    return None


def _compared_forms(context: NormalisedContext, asked: _Asked, kind: EvidenceError | Literal[""]) -> Forms:
    own = [page for page in context.pages if page.key == asked.url_key]
    shared, shown = 0, ""
    for page in own or context.pages:
        # The length of the longest beginning of the snippet that stands in the page.
        lengths, text = range(1, len(asked.form) + 1), page.form.text
        length = bisect_left(lengths, True, key=lambda length: asked.form[:length] not in text)
        if length > shared:
            at = page.form.text.find(asked.form[:length])
            shared, shown = length, page.form.text[at : at + _SHOWN_SHARE * len(asked.form)]
    return Forms(asked.position, kind, asked.url, asked.url_key, asked.snippet, asked.form, shown)

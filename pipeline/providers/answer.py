"""From what a body holds to an answer: its message and annotations, distinct citations, and a place for each.

Read `read_shared` first: it reads the two shapes that providers share, OpenAI's Responses and Chat Completions.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from pipeline.providers.http.request import as_number, as_object, as_objects, as_text, first_object
from pipeline.schema import Answer, Occurrence, Placement, SearchResult
from pipeline.text.urls import Link, find_links, source_domain

# Left over where search meets structured output: https://github.com/openai/openai-agents-python/issues/2051
_ARTEFACT = re.compile("\ue200[^\ue200\ue201]*+\ue201|[\ue200-\ue2ff]")
# Reasoning models put their thoughts in front; without an end mark they were cut off while thinking.
_THOUGHTS = re.compile(r"\s*+<think>(?:.*?</think>\s*+|.*+\Z)", re.DOTALL)
_BRACKETS = {"(": ")", "（": "）"}
REFERENCE = re.compile(r"\[(\d{1,6})\]", re.ASCII)
NUMBER = re.compile(r"[\[(^]*\d{1,4}[\])]*")
_SITE = re.compile(r"(?:https?://)?[^\s./]+(?:\.[^\s./]+)+(?:/\S*)?")


def distinct(urls: Iterable[str]) -> tuple[str, ...]:
    """The URLs in order of first appearance, empty ones left out."""
    return tuple(dict.fromkeys(url for url in urls if url))


def build_answer(
    text: str,
    citations: Iterable[str],
    occurrences: Iterable[Occurrence],
    *,
    sites: Mapping[str, str] | None = None,
    search_results: Iterable[SearchResult] = (),
    model: str = "",
    stop_reason: str = "",
) -> Answer:
    """The answer: citations distinct, occurrences in order of place, every citation with at least one.

    `sites` names the site behind a redirect, by URL. An occurrence of no citation is left out; of those without a
    place only the first of a URL is kept, unless it quotes its source.
    """
    urls = distinct(citations)
    named = sites or {}
    return Answer(
        text=text,
        citations=urls,
        domains=tuple(source_domain(url, named.get(url, "")) for url in urls),
        occurrences=_complete_occurrences(urls, occurrences),
        search_results=tuple(search_results),
        model=model,
        stop_reason=stop_reason,
    )


def _complete_occurrences(urls: tuple[str, ...], occurrences: Iterable[Occurrence]) -> tuple[Occurrence, ...]:
    """The occurrences of these URLs, placed ones first and by place, then the others in the URLs' order."""
    rank = {url: index for index, url in enumerate(urls)}
    known = [each for each in occurrences if each.url in rank]
    placed = sorted((each for each in known if each.start is not None), key=lambda each: (each.start, each.end))
    seen = {each.url for each in placed}
    homeless = []
    for each in known:
        if each.start is None and (each.url not in seen or each.cited_text):
            homeless.append(each)
            seen.add(each.url)
    homeless += [Occurrence(url=url) for url in urls if url not in seen]
    return (*placed, *sorted(homeless, key=lambda each: rank[each.url]))


def place(
    text: str,
    span: tuple[int, int] | None,
    *,
    url: str,
    placement: Placement,
    title: str = "",
    cited_text: str = "",
) -> Occurrence:
    """The occurrence at these code points; without a place where they do not fit the text or hold only white space."""
    if span is None or not 0 <= span[0] < span[1] <= len(text) or text[span[0] : span[1]].isspace():
        return Occurrence(url=url, title=title, cited_text=cited_text)
    start, end = span
    return Occurrence(url=url, title=title, start=start, end=end, placement=placement, cited_text=cited_text)


class ByteOffsets:
    """Converts offsets in UTF-8 bytes, as Google counts, to code points of a text."""

    def __init__(self, text: str) -> None:
        """Remember where each character begins; a text of ASCII needs no table."""
        self.size = len(text)
        self.table: dict[int, int] | None = None
        if not text.isascii():
            widths = (
                1 if char < "\x80" else 2 if char < "\u0800" else 3 if char < "\U00010000" else 4 for char in text
            )
            self.table = {offset: index for index, offset in enumerate(accumulate(widths, initial=0))}

    def to_code_point(self, offset: int) -> int | None:
        """The code point at this byte; None inside a character or outside the text."""
        if self.table is not None:
            return self.table.get(offset)
        return offset if 0 <= offset <= self.size else None


class Annotation(NamedTuple):
    """One `url_citation`; its span is in code points of the message's text, None where none fits."""

    url: str
    title: str
    span: tuple[int, int] | None
    content: str


class Message(NamedTuple):
    """What the model said."""

    text: str
    annotations: tuple[Annotation, ...]
    model: str
    stop_reason: str


class _Part(NamedTuple):
    """One part of the text, with its annotations as they stand in the body."""

    text: str
    annotations: list[dict[str, Any]]


def read_message(body: dict[str, Any]) -> Message:
    """The message of a body of either shape; a refusal's words are its text."""
    if isinstance(body.get("choices"), list):
        choice = first_object(body.get("choices"))
        message = as_object(choice.get("message"))
        parts = _chat_parts(message)
        refused = not _chat_text(message.get("content")) and as_text(message.get("refusal"))
        stop = "refusal" if refused else as_text(choice.get("finish_reason"))
    else:
        parts = _responses_parts(body)
        reason = as_text(as_object(body.get("incomplete_details")).get("reason"))
        stop = reason or ("refusal" if _only_refuses(body) else as_text(body.get("status")))
    return _clean_message(parts, as_text(body.get("model")), stop)


def _chat_parts(message: dict[str, Any]) -> list[_Part]:
    """The one part of a chat message."""
    text = _chat_text(message.get("content")) or as_text(message.get("refusal"))
    return [_Part(text, as_objects(message.get("annotations")))]


def _chat_text(content: Any) -> str:
    """The content of a chat message: a text, or the texts of its parts."""
    if isinstance(content, list):
        parts = [each for each in as_objects(content) if as_text(each.get("type")) not in ("thinking", "reasoning")]
        return "".join(as_text(part.get("text")) for part in parts)
    return as_text(content)


def _responses_parts(body: dict[str, Any]) -> list[_Part]:
    """The parts of all messages in `output`; the convenience field `output_text` only where there are none."""
    messages = [item for item in as_objects(body.get("output")) if item.get("type") == "message"]
    parts = [
        _Part(as_text(part.get("text" if part.get("type") == "output_text" else "refusal")), _annotations_of(part))
        for message in messages
        for part in as_objects(message.get("content"))
        if part.get("type") in ("output_text", "refusal")
    ]
    return parts or [_Part(as_text(body.get("output_text")), [])]


def _only_refuses(body: dict[str, Any]) -> bool:
    """Whether the messages in `output` hold a refusal and no other words; their `status` is `completed` even so."""
    messages = [item for item in as_objects(body.get("output")) if item.get("type") == "message"]
    parts = [part for message in messages for part in as_objects(message.get("content"))]
    refused = any(part.get("type") == "refusal" and as_text(part.get("refusal")) for part in parts)
    return refused and not any(part.get("type") == "output_text" and as_text(part.get("text")) for part in parts)


def _annotations_of(part: dict[str, Any]) -> list[dict[str, Any]]:
    """The annotations of one part of the output."""
    return as_objects(part.get("annotations"))


def _clean_message(parts: Iterable[_Part], model: str, stop_reason: str) -> Message:
    """The parts' texts joined without thoughts and artefacts, and the annotations moved to where their words are."""
    texts: list[str] = []
    raw: list[tuple[int, int, dict[str, Any]]] = []
    base = 0
    for part in parts:
        raw += [(base, base + len(part.text), annotation) for annotation in part.annotations]
        texts.append(part.text)
        base += len(part.text)
    cleaned = clean_text("".join(texts))
    found = (_read_annotation(annotation, cleaned, span) for *span, annotation in raw)
    return Message(cleaned.text, tuple(each for each in found if each.url), model, stop_reason)


def _read_annotation(annotation: dict[str, Any], cleaned: "Cleaned", part: list[int]) -> Annotation:
    """One annotation, flat (Responses) or one level deeper (chat); its URL is empty where it cites none."""
    fields = as_object(annotation.get("url_citation")) or annotation
    cites = as_text(annotation.get("type")) in ("url_citation", "")
    start, end = as_number(fields.get("start_index")), as_number(fields.get("end_index"))
    span = None
    if start is not None and end is not None and 0 <= start < end <= part[1] - part[0]:
        span = cleaned.moved(start + part[0]), cleaned.moved(end + part[0])
    return Annotation(
        as_text(fields.get("url")) if cites else "", as_text(fields.get("title")), span, as_text(fields.get("content"))
    )


class Cleaned(NamedTuple):
    """A text from which spans were cut, and where each stood; `cut[i]` is the length of all cuts before the i-th."""

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    cut: tuple[int, ...]

    def moved(self, offset: int) -> int:
        """Where a code point of the uncut text stands now; one inside a cut stands at the cut."""
        index = bisect_right(self.starts, offset)
        if not index:
            return offset
        return offset - self.cut[index] + max(0, self.ends[index - 1] - offset)


def clean_text(raw: str) -> Cleaned:
    """The text without leading thoughts and without private-use artefacts."""
    spans = []
    thoughts = _THOUGHTS.match(raw)
    start = thoughts.end() if thoughts else 0
    if start:
        spans.append((0, start))
    spans += [match.span() for match in _ARTEFACT.finditer(raw, start)]
    kept = []
    position = 0
    for span in spans:
        kept.append(raw[position : span[0]])
        position = span[1]
    kept.append(raw[position:])
    cut = tuple(accumulate((end - begin for begin, end in spans), initial=0))
    return Cleaned("".join(kept), tuple(begin for begin, _ in spans), tuple(end for _, end in spans), cut)


def read_shared(body: dict[str, Any]) -> Answer:
    """The answer: its citations are the URLs of the text, then those annotated; its occurrences the links.

    Where nothing is annotated, the list that a proxy passes on beside the message counts as annotated. Where there is
    one, `[n]` in the text is its n-th URL.
    """
    message = read_message(body)
    links = find_links(message.text)
    listed = listed_urls(body.get("citations"))
    annotated = [annotation.url for annotation in message.annotations]
    titles = {annotation.url: annotation.title for annotation in reversed(message.annotations)}
    return build_answer(
        message.text,
        [*(link.url for link in links), *(annotated or listed)],
        [
            *link_occurrences(message.text, links, message.annotations),
            *annotation_occurrences(message, links),
            *reference_occurrences(message.text, dict(enumerate(listed, start=1)), titles),
        ],
        model=message.model,
        stop_reason=message.stop_reason,
    )


def listed_urls(value: Any) -> list[str]:
    """The URLs of a list of texts or of objects with `url`, in its order; an item without one is an empty text."""
    if not isinstance(value, list):
        return []
    return [each if isinstance(each, str) else as_text(as_object(each).get("url")) for each in value]


def reference_occurrences(text: str, numbers: Mapping[int, str], titles: Mapping[str, str]) -> Iterator[Occurrence]:
    """Every `[n]` of the text that stands for a URL, and each URL once without a place, for its title."""
    for match in REFERENCE.finditer(text):
        url = numbers.get(int(match[1]))
        if url:
            yield place(text, match.span(), url=url, placement="marker", title=titles.get(url, ""))
    for url in dict.fromkeys(numbers.values()):
        if url:
            yield Occurrence(url=url, title=titles.get(url, ""))


def link_occurrences(text: str, links: Iterable[Link], annotations: Iterable[Annotation]) -> Iterator[Occurrence]:
    """One occurrence for each link: a marker, or a claim where the link's words belong to the sentence.

    A link within a marker shares its place; one within a claim has none.
    """
    about = {annotation.url: annotation for annotation in reversed(list(annotations))}
    position = 0
    span: tuple[int, int] | None = None
    placement: Placement = "none"
    for link in sorted(links, key=lambda each: (each.start, -each.end)):
        if link.start >= position:
            span, placement = _marker_or_claim(text, link)
        elif placement == "claim":
            span = None
        position = max(position, link.end)
        known = about.get(link.url)
        yield place(
            text,
            span,
            url=link.url,
            placement=placement,
            title=known.title if known else "",
            cited_text=known.content if known else "",
        )


def _marker_or_claim(text: str, link: Link) -> tuple[tuple[int, int], Placement]:
    """The link's span, brackets that hold nothing else included, and whether it is only a mark or also words."""
    before, after = text[link.start - 1 : link.start], text[link.end : link.end + 1]
    if before and _BRACKETS.get(before) == after:
        return (link.start - 1, link.end + 1), "marker"
    return (link.start, link.end), "claim" if _is_words(link) else "marker"


def _is_words(link: Link) -> bool:
    """Whether a link's label is part of the sentence; a number, an address or the site's name only marks a source."""
    label = link.label.strip(" *_`\n")
    if link.kind != "markdown" or not label or NUMBER.fullmatch(label) or _SITE.fullmatch(label):
        return False
    return "".join(label.split()).casefold() not in _host_of(link.url).split(".")


def _host_of(url: str) -> str:
    """The host in lower case; empty where there is none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def annotation_occurrences(message: Message, links: Iterable[Link]) -> Iterator[Occurrence]:
    """One occurrence for each annotation that is not one of the links."""
    taken: dict[str, list[Link]] = {}
    for link in links:
        taken.setdefault(link.url, []).append(link)
    for annotation in message.annotations:
        span = annotation.span
        if any(span is None or _overlap(span, link) for link in taken.get(annotation.url, ())):
            continue
        yield place(
            message.text,
            span,
            url=annotation.url,
            placement="marker" if span and _is_bracketed(message.text[span[0] : span[1]]) else "claim",
            title=annotation.title,
            cited_text=annotation.content,
        )


def _overlap(span: tuple[int, int], link: Link) -> bool:
    """Whether the span and the link, brackets around it included, share a code point."""
    return span[0] <= link.end and link.start <= span[1]


def _is_bracketed(text: str) -> bool:
    """Whether the text is a mark in brackets, as `[1]` or `【1†source】`, and no sentence."""
    return len(text) <= 80 and text[:1] in "([（【" and text[-1:] in ")]）】"

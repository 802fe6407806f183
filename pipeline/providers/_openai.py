"""OpenAI: Responses and chat completions, and OpenRouter's envelope of the latter.

Source: https://platform.openai.com/docs/guides/tools-web-search, https://openrouter.ai/docs/features/web-search
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from pipeline.providers.answer import Annotation, build_answer, place, read_message
from pipeline.providers.body import as_object, as_text
from pipeline.schema import Answer, Occurrence, Placement
from pipeline.text.urls import Link, find_links

_BRACKETS = {"(": ")", "（": "）"}
REFERENCE = re.compile(r"\[(\d{1,6})\]", re.ASCII)
NUMBER = re.compile(r"[\[(^]*\d{1,4}[\])]*")
_SITE = re.compile(r"(?:https?://)?[^\s./]+(?:\.[^\s./]+)+(?:/\S*)?")


def read(body: dict[str, Any]) -> Answer:
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


def annotation_occurrences(message: Any, links: Iterable[Link]) -> Iterator[Occurrence]:
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

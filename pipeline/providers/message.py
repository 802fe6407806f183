"""The message in a Responses or chat completions body: its text and what is annotated in it."""

import re
from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate
from typing import Any, NamedTuple

from pipeline.providers.body import as_number, as_object, as_objects, as_text, first_object

# Left over where search meets structured output: https://github.com/openai/openai-agents-python/issues/2051
ARTEFACT = re.compile("\ue200[^\ue200\ue201]*+\ue201|[\ue200-\ue2ff]")
# Reasoning models put their thoughts in front; without an end mark they were cut off while thinking.
THOUGHTS = re.compile(r"\s*+<think>(?:.*?</think>\s*+|.*+\Z)", re.DOTALL)


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


class Part(NamedTuple):
    """One part of the text, with its annotations as they stand in the body."""

    text: str
    annotations: list[dict[str, Any]]


def read_message(body: dict[str, Any]) -> Message:
    """The message of a body of either shape; a refusal's words are its text."""
    if isinstance(body.get("choices"), list):
        choice = first_object(body.get("choices"))
        message = as_object(choice.get("message"))
        parts = chat_parts(message)
        refused = not chat_text(message.get("content")) and as_text(message.get("refusal"))
        stop = "refusal" if refused else as_text(choice.get("finish_reason"))
    else:
        parts = responses_parts(body)
        reason = as_text(as_object(body.get("incomplete_details")).get("reason"))
        stop = reason or as_text(body.get("status"))
    return clean_message(parts, as_text(body.get("model")), stop)


def chat_parts(message: dict[str, Any]) -> list[Part]:
    """The one part of a chat message."""
    text = chat_text(message.get("content")) or as_text(message.get("refusal"))
    return [Part(text, as_objects(message.get("annotations")))]


def chat_text(content: Any) -> str:
    """The content of a chat message: a text, or the texts of its parts."""
    if isinstance(content, list):
        parts = [each for each in as_objects(content) if as_text(each.get("type")) not in ("thinking", "reasoning")]
        return "".join(as_text(part.get("text")) for part in parts)
    return as_text(content)


def responses_parts(body: dict[str, Any]) -> list[Part]:
    """The parts of all messages in `output`; the convenience field `output_text` only where there are none."""
    messages = [item for item in as_objects(body.get("output")) if item.get("type") == "message"]
    parts = [
        Part(as_text(part.get("text" if part.get("type") == "output_text" else "refusal")), annotations_of(part))
        for message in messages
        for part in as_objects(message.get("content"))
        if part.get("type") in ("output_text", "refusal")
    ]
    return parts or [Part(as_text(body.get("output_text")), [])]


def annotations_of(part: dict[str, Any]) -> list[dict[str, Any]]:
    """The annotations of one part of the output."""
    return as_objects(part.get("annotations"))


def clean_message(parts: Iterable[Part], model: str, stop_reason: str) -> Message:
    """The parts' texts joined without thoughts and artefacts, and the annotations moved to where their words are."""
    texts: list[str] = []
    raw: list[tuple[int, int, dict[str, Any]]] = []
    base = 0
    for part in parts:
        raw += [(base, base + len(part.text), annotation) for annotation in part.annotations]
        texts.append(part.text)
        base += len(part.text)
    cleaned = clean_text("".join(texts))
    found = (read_annotation(annotation, cleaned, span) for *span, annotation in raw)
    return Message(cleaned.text, tuple(each for each in found if each.url), model, stop_reason)


def read_annotation(annotation: dict[str, Any], cleaned: "Cleaned", part: list[int]) -> Annotation:
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
    thoughts = THOUGHTS.match(raw)
    start = thoughts.end() if thoughts else 0
    if start:
        spans.append((0, start))
    spans += [match.span() for match in ARTEFACT.finditer(raw, start)]
    kept = []
    position = 0
    for span in spans:
        kept.append(raw[position : span[0]])
        position = span[1]
    kept.append(raw[position:])
    cut = tuple(accumulate((end - begin for begin, end in spans), initial=0))
    return Cleaned("".join(kept), tuple(begin for begin, _ in spans), tuple(end for _, end in spans), cut)

"""Google Gemini: generateContent from REST (camelCase) or dumped by its SDK (snake_case, nulls), and Interactions.

Source: https://ai.google.dev/gemini-api/docs/google-search; offsets are bytes of UTF-8, `Segment` in
https://ai.google.dev/api/generate-content
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from pipeline.providers.answer import ByteOffsets, build_answer, place
from pipeline.providers.body import as_number, as_object, as_objects, as_text, first_object
from pipeline.schema import Answer, Occurrence


class _Web(NamedTuple):
    """One source: its URL, usually a redirect, its title, and the site that Google names."""

    url: str
    title: str
    site: str


def read(body: dict[str, Any]) -> Answer:
    """The answer of either shape."""
    return _read_candidate(body) if _has_candidates(body) else _read_interaction(body)


def _has_candidates(body: dict[str, Any]) -> bool:
    """Whether this is generateContent; a blocked prompt has no candidates, only the feedback."""
    return "candidates" in body or "promptFeedback" in body or "prompt_feedback" in body


def _field(fields: dict[str, Any], name: str) -> Any:
    """The value under the camelCase name, else under its snake_case form."""
    value = fields.get(name)
    return value if value is not None else fields.get(re.sub("[A-Z]", lambda upper: f"_{upper[0].lower()}", name))


def _read_candidate(body: dict[str, Any]) -> Answer:
    """The answer of generateContent: its citations are the web chunks, its places the sentences that Google supports.

    Thoughts are no part of the text; a blocked prompt is an empty answer with the block's reason.
    """
    candidate = first_object(body.get("candidates"))
    parts = [
        as_text(part.get("text")) if part.get("thought") is not True else ""
        for part in as_objects(as_object(candidate.get("content")).get("parts"))
    ]
    grounding = as_object(_field(candidate, "groundingMetadata"))
    chunks = [_read_web(chunk) for chunk in _listed(_field(grounding, "groundingChunks"))]
    blocked = as_text(_field(as_object(_field(body, "promptFeedback")), "blockReason"))
    return build_answer(
        "".join(parts),
        [chunk.url for chunk in chunks],
        _support_occurrences(parts, chunks, as_objects(_field(grounding, "groundingSupports"))),
        sites={chunk.url: chunk.site for chunk in reversed(chunks)},
        model=as_text(_field(body, "modelVersion")),
        stop_reason=as_text(_field(candidate, "finishReason")) or blocked,
    )


def _listed(value: Any) -> list[Any]:
    """The list as it is, its gaps included, for supports name chunks by their position."""
    return value if isinstance(value, list) else []


def _read_web(chunk: Any) -> _Web:
    """The web page of a grounding chunk; empty for maps, attached files and emptied chunks."""
    web = as_object(as_object(chunk).get("web"))
    title = as_text(web.get("title"))
    return _Web(as_text(web.get("uri")), title, as_text(web.get("domain")) or title)


def _support_occurrences(parts: list[str], chunks: list[_Web], supports: list[dict[str, Any]]) -> Iterator[Occurrence]:
    """One occurrence for each source of each supported sentence, and each source once for its title."""
    text = "".join(parts)
    offsets = [ByteOffsets(text), *(ByteOffsets(part) for part in parts if len(parts) > 1)]
    for support in supports:
        span = _segment_span(text, parts, offsets, as_object(support.get("segment")))
        for index in _listed(_field(support, "groundingChunkIndices")):
            number = as_number(index)
            if number is not None and 0 <= number < len(chunks):
                chunk = chunks[number]
                yield place(text, span, url=chunk.url, placement="claim", title=chunk.title)
    for chunk in chunks:
        yield Occurrence(url=chunk.url, title=chunk.title)


def _segment_span(
    text: str, parts: list[str], offsets: list[ByteOffsets], segment: dict[str, Any]
) -> tuple[int, int] | None:
    """The segment's code points in the text; None where its own words do not stand there.

    Offsets count in the part that `partIndex` names; some bodies count in the whole text.
    """
    start, end = as_number(_field(segment, "startIndex")) or 0, as_number(_field(segment, "endIndex"))
    words = as_text(segment.get("text"))
    number = as_number(_field(segment, "partIndex")) or 0
    tries = [(0, offsets[0])]
    if 0 <= number < len(parts) and len(parts) > 1:
        tries.insert(0, (sum(map(len, parts[:number])), offsets[number + 1]))
    for base, table in tries:
        first, last = table.to_code_point(start), table.to_code_point(end) if end is not None else None
        if first is None or last is None or not first < last:
            continue
        if not words or text[base + first : base + last] == words:
            return base + first, base + last
    return None


def _read_interaction(body: dict[str, Any]) -> Answer:
    """The answer of the Interactions API: its citations are the annotations of the model's outputs."""
    steps = [step for step in as_objects(body.get("steps")) if step.get("type") == "model_output"]
    parts = [part for step in steps for part in as_objects(step.get("content")) if part.get("type") == "text"]
    text = "".join(as_text(part.get("text")) for part in parts)
    found = list(_annotated_sources(text, parts))
    return build_answer(
        text,
        [occurrence.url for occurrence in found],
        found,
        sites={occurrence.url: occurrence.title for occurrence in reversed(found)},
        model=as_text(body.get("model")),
        stop_reason=as_text(body.get("status")),
    )


def _annotated_sources(text: str, parts: list[dict[str, Any]]) -> Iterator[Occurrence]:
    """One occurrence for each `url_citation`; its offsets are bytes of its own part."""
    base = 0
    for part in parts:
        words = as_text(part.get("text"))
        table = ByteOffsets(words)
        for annotation in as_objects(part.get("annotations")):
            if annotation.get("type") != "url_citation":
                continue
            start, end = as_number(annotation.get("start_index")) or 0, as_number(annotation.get("end_index"))
            first, last = table.to_code_point(start), table.to_code_point(end) if end is not None else None
            span = (base + first, base + last) if first is not None and last is not None else None
            url, title = as_text(annotation.get("url")), as_text(annotation.get("title"))
            yield place(text, span, url=url, placement="claim", title=title)
        base += len(words)

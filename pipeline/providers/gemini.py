"""Google Gemini: generateContent from REST (camelCase) or dumped by its SDK (snake_case, nulls), and Interactions.

Source, read 2026-11: https://ai.google.dev/gemini-api/docs/google-search; offsets are bytes of UTF-8, `Segment` in
https://ai.google.dev/api/generate-content; Interactions https://ai.google.dev/api/interactions-api; of batches
https://ai.google.dev/gemini-api/docs/batch-api (2 GB a file, half the price of tokens, most done
within 24 hours, what runs for 48 expires without results), https://ai.google.dev/api/batch-api (`batchGenerateContent`,
`batches.list`; counts are int64, which JSON has as texts) and https://ai.google.dev/api/files (`media.upload`).
"""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from pipeline.core.schema import Answer, AskOptions, Occurrence
from pipeline.providers import batch
from pipeline.providers.answer import ByteOffsets, build_answer, place
from pipeline.providers.cost import general_model
from pipeline.providers.http.request import ProviderRequest, as_number, as_object, as_objects, as_text, first_object
from pipeline.providers.provider import Facts, Form, Shape, StructuredQuestion, present

if TYPE_CHECKING:
    from pipeline.providers.http.client import ApiClient

_FACTS = Facts(__file__)

_RECENCY_DAYS = {"day": 1, "week": 7, "month": 31, "year": 366}

_UPLOAD = "/upload/v1beta/files?uploadType=multipart"
_VERSION = "/v1beta"


class _Web(NamedTuple):
    """Its URL is usually a redirect; `site` is the one that Google names, else empty."""

    url: str
    title: str
    site: str


def _is_generated(body: Any) -> bool:
    """A blocked prompt has no candidates, only the feedback."""
    return isinstance(body, dict) and any(key in body for key in ("candidates", "promptFeedback", "prompt_feedback"))


def _is_interaction(body: Any) -> bool:
    """A body of the Responses API is none, whatever else it holds."""
    if not isinstance(body, dict) or body.get("object") == "response":
        return False
    return body.get("object") == "interaction" or ("steps" in body and "status" in body)


def _field(fields: dict[str, Any], name: str) -> Any:
    value = fields.get(name)
    return value if value is not None else fields.get(re.sub("[A-Z]", lambda upper: f"_{upper[0].lower()}", name))


def _read_candidate(body: dict[str, Any]) -> Answer:
    """The answer of generateContent: its citations are the chunks, its places the sentences that Google supports.

    Thoughts are no part of the text; a blocked prompt is an empty answer with the block's reason.
    """
    candidate = first_object(body.get("candidates"))
    parts = [
        as_text(part.get("text")) if part.get("thought") is not True else ""
        for part in as_objects(as_object(candidate.get("content")).get("parts"))
    ]
    grounding = as_object(_field(candidate, "groundingMetadata"))
    # Maps, attached files and emptied chunks are gaps, which stay: supports name chunks by their position.
    found = [as_object(chunk) for chunk in _listed(_field(grounding, "groundingChunks"))]
    webs = [as_object(chunk.get("web")) or as_object(_field(chunk, "retrievedContext")) for chunk in found]
    chunks = [_Web(*(as_text(web.get(name)) for name in ("uri", "title", "domain"))) for web in webs]
    recited = list(_recited("".join(parts), as_object(_field(candidate, "citationMetadata"))))
    blocked = as_text(_field(as_object(_field(body, "promptFeedback")), "blockReason"))
    return build_answer(
        "".join(parts),
        [*(chunk.url for chunk in chunks), *(occurrence.url for occurrence in recited)],
        [*_support_occurrences(parts, chunks, as_objects(_field(grounding, "groundingSupports"))), *recited],
        sites={chunk.url: chunk.site or chunk.title for chunk in reversed(chunks)},
        model=as_text(_field(body, "modelVersion")),
        stop_reason=as_text(_field(candidate, "finishReason")) or blocked,
    )


def _recited(text: str, metadata: dict[str, Any]) -> Iterator[Occurrence]:
    """Where the answer repeats a source word for word; offsets are bytes.

    Source: https://ai.google.dev/api/generate-content, `CitationSource`, read 2026-11.
    """
    table = ByteOffsets(text)
    for source in as_objects(_field(metadata, "citationSources") or metadata.get("citations")):
        start, end = as_number(_field(source, "startIndex")) or 0, as_number(_field(source, "endIndex"))
        first, last = table.to_code_point(start), table.to_code_point(end) if end is not None else None
        span = (first, last) if first is not None and last is not None else None
        yield place(text, span, url=as_text(source.get("uri")), placement="claim", title=as_text(source.get("title")))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _support_occurrences(parts: list[str], chunks: list[_Web], supports: list[dict[str, Any]]) -> Iterator[Occurrence]:
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
    # Offsets of some bodies are off by a few bytes: https://github.com/googleapis/python-genai/issues/961
    found = text.find(words) if words.strip() else -1
    return (found, found + len(words)) if found >= 0 and text.find(words, found + 1) < 0 else None


def _read_interaction(body: dict[str, Any]) -> Answer:
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


def ask_gemini(
    model: str, system: str, prompt: str, options: AskOptions, now: datetime | None = None
) -> ProviderRequest:
    """The request to generateContent with Google Search; `now` ends the span of time that `recency` asks for."""
    generation = {"maxOutputTokens": options.max_tokens, **_GENERATE.temperature(model, options)}
    span = None
    if options.recency:
        end = now or datetime.now(UTC)
        start = end - timedelta(days=_RECENCY_DAYS[options.recency])
        span = {"startTime": f"{start:%Y-%m-%dT%H:%M:%SZ}", "endTime": f"{end:%Y-%m-%dT%H:%M:%SZ}"}
    body = {
        **present(systemInstruction={"parts": [{"text": system}]} if system else None),
        "contents": [{"role": "user", "parts": [{"text": prompt}]}],
        "tools": [{"google_search": present(timeRangeFilter=span)}],
        "generationConfig": generation,
    }
    return ProviderRequest(_path_of(model), {}, body)


def _path_of(model: str) -> str:
    return f"/v1beta/models/{quote(model.removeprefix('models/'), safe='')}:generateContent"


def _ask_interactions(model: str, system: str, prompt: str, options: AskOptions) -> ProviderRequest:
    """It keeps nothing; a search there has no span of time."""
    generation = {"max_output_tokens": options.max_tokens, **_INTERACTIONS.temperature(model, options)}
    body = {
        "model": model.removeprefix("models/"),
        **present(system_instruction=system),
        "input": prompt,
        "tools": [{"type": "google_search"}],
        "generation_config": generation,
        "store": False,
    }
    return ProviderRequest("/v1beta/interactions", {}, body)


def _ask_json(asked: StructuredQuestion, form: Form) -> ProviderRequest:
    generation = {
        "maxOutputTokens": asked.options.max_tokens,
        **_GENERATE.temperature(asked.model, asked.options),
        **present(responseMimeType="application/json" if form != "prompt" else ""),
        **present(responseJsonSchema=asked.schema if form == "json_schema" else None),
    }
    body = {
        "systemInstruction": {"parts": [{"text": asked.system}]},
        "contents": [{"role": "user", "parts": [{"text": asked.prompt}]}],
        "generationConfig": generation,
    }
    return ProviderRequest(_path_of(asked.model), {}, body)


async def _make_batch(client: "ApiClient", name: str, items: Sequence[batch.BatchItem], path: str) -> batch.BatchState:
    lines = ({"key": item.custom_id, "request": item.request.body} for item in items)
    about = {"file": {"displayName": name, "mimeType": "application/jsonl"}}
    uploaded = await batch.upload(client, _UPLOAD, *batch.related_upload(about, lines))
    file = batch.known_id(as_object(as_object(uploaded).get("file")).get("name"), "file", "files/")
    body = {"batch": {"displayName": name, "inputConfig": {"fileName": file}}}
    path = path.replace(":generateContent", ":batchGenerateContent")
    return await batch.create(client, ProviderRequest(path, {}, body), _batch_state)


def _batch_state(body: Any) -> batch.BatchState:
    """The state of an operation. Until its results have a file, a batch that succeeded is still working."""
    operation = as_object(body)
    fields = as_object(operation.get("metadata")) or operation
    output = as_object(operation.get("response")) or as_object(fields.get("output"))
    file = output.get("responsesFile")
    stats = as_object(fields.get("batchStats"))
    status = batch.status_of(as_text(fields.get("state")).rpartition("_STATE_")[2])
    return batch.BatchState(
        batch.known_id(operation.get("name"), "batch", "batches/"),
        as_text(fields.get("displayName")),
        "working" if status == "ended" and not file else status,
        _count(stats.get("successfulRequestCount")),
        _count(stats.get("failedRequestCount")),
        _count(stats.get("requestCount")),
        as_text(fields.get("createTime")),
        (batch.known_id(file, "file", "files/"),) if file else (),
        as_text(as_object(operation.get("error")).get("message")),
    )


def _count(value: Any) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        return int(value)
    return as_number(value) or 0


def _batch_result(line: str) -> batch.BatchResult:
    fields = batch.read_line(line)
    custom_id = as_text(fields.get("key"))
    error = as_object(fields.get("error"))
    if not error:
        return batch.BatchResult(custom_id, "answered", 200, batch.cut(line, "response") or line)
    return batch.rpc_failure(custom_id, as_number(error.get("code")) or 0, batch.cut(line, "error"))


_GENERATE = _FACTS.api(
    "generate_content",
    ask=ask_gemini,
    ask_json=_ask_json,
    model=general_model("gemini"),
    batches=batch.BatchApi(
        # Far below what Google takes: a file is held in memory.
        limits=batch.BatchLimits(10_000, 64 * 1024 * 1024),
        takes="/v1beta/models/[^/:]+:generateContent",
        make=_make_batch,
        at=_VERSION,
        list_at=f"{_VERSION}/batches",
        end=":cancel",
        read_state=_batch_state,
        items="operations",
        page_query="pageSize=100",
        token_name="pageToken",
        next_token=lambda page: as_text(page.get("nextPageToken")) if page.get("nextPageToken") else None,
        # A batch that expired or was cancelled has no file.
        results_at=lambda state: [f"/download{_VERSION}/{quote(file)}:download?alt=media" for file in state.files],
        read_result=_batch_result,
    ),
)
_INTERACTIONS = _FACTS.api("interactions", ask=_ask_interactions, ask_json=_ask_json, model=general_model("gemini"))

PROVIDER = _FACTS.provider(
    apis=(_GENERATE, _INTERACTIONS),
    shapes=(
        Shape("gemini", _is_generated, _read_candidate),
        Shape("interactions", _is_interaction, _read_interaction, has_status=True),
    ),
)

"""xAI Grok: Responses of 2025 and 2026, the gRPC service as JSON, and chat completions with `citations`.

Batches answer in chat completions, whichever API their requests were for: a choice for each step of the search, the
answer in the last one. A batch has no status: it is known by its counts, which are all 0 until the file was read, and
for ever where it is refused. A file makes a batch at once and whole; nobody can take back requests that are added.

Source: https://docs.x.ai/docs/guides/tools/overview, https://docs.x.ai/docs/guides/tools/search-tools; of batches, read
2026-11: https://docs.x.ai/developers/advanced-api-usage/batch-api (25 MB for requests that are added; half the price),
https://docs.x.ai/developers/rest-api-reference/inference/batches; lines as https://github.com/vercel/ai speaks them.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pipeline.citations.addresses import links_of
from pipeline.core.schema import Answer, AskOptions
from pipeline.providers import answer as answers
from pipeline.providers import batch
from pipeline.providers.cost import general_model
from pipeline.providers.http.request import ProviderRequest, as_number, as_object, as_objects, as_text
from pipeline.providers.provider import Api, Facts, Shape, ask_json_in_responses, messages, present

if TYPE_CHECKING:
    from pipeline.providers.http.client import ApiClient

_FACTS = Facts(__file__)

# How long after its beginning a day is over by every clock.
_DAY_AND_CLOCKS = timedelta(hours=25)


def _is_grpc(body: Any) -> bool:
    outputs = as_objects(body.get("outputs")) if isinstance(body, dict) else []
    return bool(outputs) and all("message" in output for output in outputs)


def _read(body: dict[str, Any]) -> Answer:
    """Citations are the list beside the message, else the annotations, else links such as `[[1]](url)`.

    By xAI's documentation the list names every source that the search came across, used or not.
    """
    message = _read_grpc(body) if isinstance(body.get("outputs"), list) else answers.read_message(_with_answer(body))
    listed, annotated = (
        answers.distinct(answers.listed_urls(body.get("citations"))),
        {each.url for each in message.annotations},
    )
    attached = listed or answers.distinct(each.url for each in message.annotations)
    links = links_of(message.text, attached)
    citations = attached or answers.distinct(
        link.url for link in links if link.label.startswith("[") and answers.NUMBER.fullmatch(link.label)
    )
    return answers.build_answer(
        message.text,
        citations,
        [
            *answers.link_occurrences(message.text, links, message.annotations),
            *answers.annotation_occurrences(message, links),
        ],
        retrieved=(url for url in listed if url not in annotated),
        model=message.model,
        stop_reason=message.stop_reason,
        cut=message.cut,
    )


def _with_answer(body: dict[str, Any]) -> dict[str, Any]:
    """The body with only the choice that answers: the assistant's last one with words, else its last."""
    choices = as_objects(body.get("choices"))
    if len(choices) < 2:
        return body
    spoken = [choice for choice in choices if as_object(choice.get("message")).get("role") != "tool"]
    messages = [(choice, as_object(choice.get("message"))) for choice in spoken]
    worded = [choice for choice, message in messages if message.get("content") or message.get("refusal")]
    return {**body, "choices": (worded or spoken or choices)[-1:]}


def _read_grpc(body: dict[str, Any]) -> answers.Message:
    outputs = as_objects(body.get("outputs"))
    spoken = [output for output in outputs if as_object(output.get("message")).get("role") == "ROLE_ASSISTANT"]
    finished = [output for output in spoken if output.get("finish_reason") == "REASON_STOP"]
    worded = [output for output in spoken if as_object(output.get("message")).get("content")]
    last = (finished or worded or spoken or [{}])[-1]
    text = as_text(as_object(last.get("message")).get("content"))
    return answers.Message(text, (), as_text(body.get("model")), as_text(last.get("finish_reason")))


def _ask(model: str, system: str, prompt: str, options: AskOptions) -> ProviderRequest:
    filters = present(allowed_domains=options.allowed_domains, excluded_domains=options.blocked_domains)
    body = {
        "model": model,
        "input": messages(system, prompt),
        "tools": [{"type": "web_search", **present(filters=filters)}],
        "max_output_tokens": options.max_tokens,
        **_RESPONSES.temperature(model, options),
        "store": False,
    }
    return ProviderRequest("/responses", {}, body)


async def _make_batch(client: "ApiClient", name: str, items: Sequence[batch.BatchItem], path: str) -> batch.BatchState:
    body = {"name": name, "input_file_id": await batch.upload_questions(client, items, path)}
    state = await batch.create(client, ProviderRequest("/batches", {}, body), _batch_state)
    return state._replace(total=len(items))


def _batch_state(body: Any) -> batch.BatchState:
    fields = as_object(body)
    counts = {name: as_number(count) or 0 for name, count in as_object(fields.get("state")).items()}
    return batch.BatchState(
        batch.known_id(fields.get("batch_id"), "batch"),
        as_text(fields.get("name")),
        _batch_status(fields, counts),
        counts.get("num_success", 0),
        counts.get("num_error", 0) + counts.get("num_cancelled", 0),
        counts.get("num_requests", 0),
        as_text(fields.get("create_time")),
        (),
        as_text(fields.get("cancel_by_xai_message")),
    )


def _batch_status(fields: dict[str, Any], counts: dict[str, int]) -> batch.BatchStatus:
    pending = counts.get("num_pending", 0)
    if fields.get("cancel_by_xai_message") and not counts.get("num_success"):
        return "failed"
    if pending:
        return "expired" if _is_past(as_text(fields.get("expire_time"))) else "working"
    if fields.get("cancel_time"):
        return "cancelled"
    return "ended" if counts.get("num_requests") else "working"


def _is_past(moment: str) -> bool:
    """The time has come, or the day has been over for an hour; not where it cannot be read."""
    try:
        read = datetime.fromisoformat(moment)
    except ValueError:
        return False
    if "T" not in moment:
        read += _DAY_AND_CLOCKS
    return (read if read.tzinfo else read.replace(tzinfo=UTC)) <= datetime.now(UTC)


def _batch_result(text: str) -> batch.BatchResult:
    fields = batch.read_line(text)
    custom_id = as_text(fields.get("batch_request_id"))
    result = as_object(fields.get("batch_result"))
    error = as_object(result.get("error"))
    message = as_text(fields.get("error_message")) or as_text(error.get("message"))
    code = as_number(error.get("code")) or 0
    if not message and not code:
        answer = batch.cut(text, "batch_result", "response", "chat_get_completion")
        return batch.BatchResult(custom_id, "answered", 200, answer or text)
    return batch.rpc_failure(custom_id, code, batch.cut(text, "batch_result", "error") or json.dumps(message))


_RESPONSES: Api = _FACTS.api(
    "responses",
    ask=_ask,
    ask_json=lambda asked, form: ask_json_in_responses(_RESPONSES, asked, form),
    model=general_model("grok"),
    batches=batch.BatchApi(
        limits=batch.BatchLimits(10_000, 25 * 1000 * 1000),  # the size is the one that is named for the other way
        token_price=1.0,  # "reduced", by a table that only its console has
        takes="/responses",
        make=_make_batch,
        at="/batches",
        end=":cancel",
        read_state=_batch_state,
        items="batches",
        token_name="pagination_token",
        next_token=lambda page: as_text(page.get("pagination_token")) or None,
        results_at=lambda state: [f"/batches/{quote(state.batch_id)}/results"],
        cut_results=lambda page: batch.cut_list(page, "results"),
        read_result=_batch_result,
    ),
)

PROVIDER = _FACTS.provider(apis=(_RESPONSES,), shapes=(Shape("grpc", _is_grpc, _read),), read_shared=_read)

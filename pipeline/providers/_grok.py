"""xAI Grok: Responses of 2025 and 2026, the gRPC service as JSON, and chat completions with `citations`.

Batches answer in chat completions, whichever API their requests were for: a choice for each step of the search, the
answer in the last one.

Source: https://docs.x.ai/docs/guides/tools/overview; of batches https://github.com/vercel/ai (`packages/xai`), read
2026-11.
"""

from typing import Any

from pipeline.providers._openai import NUMBER, annotation_occurrences, link_occurrences, listed_urls
from pipeline.providers.answer import Message, build_answer, distinct, read_message
from pipeline.providers.body import as_object, as_objects, as_text
from pipeline.schema import Answer
from pipeline.text.urls import find_links


def read(body: dict[str, Any]) -> Answer:
    """The answer: its citations are the list beside the message, else the annotations, else links such as `[[1]](url)`.

    Each link to a citation is one of its places.
    """
    message = _read_grpc(body) if isinstance(body.get("outputs"), list) else read_message(_with_answer(body))
    links = find_links(message.text)
    citations = (
        distinct(listed_urls(body.get("citations")))
        or distinct(annotation.url for annotation in message.annotations)
        or distinct(link.url for link in links if link.label.startswith("[") and NUMBER.fullmatch(link.label))
    )
    return build_answer(
        message.text,
        citations,
        [*link_occurrences(message.text, links, message.annotations), *annotation_occurrences(message, links)],
        model=message.model,
        stop_reason=message.stop_reason,
    )


def _with_answer(body: dict[str, Any]) -> dict[str, Any]:
    """The body with only the choice that answers: the assistant's last one with words, else its last."""
    choices = as_objects(body.get("choices"))
    if len(choices) < 2:
        return body
    spoken = [choice for choice in choices if as_object(choice.get("message")).get("role") != "tool"]
    worded = [choice for choice in spoken if _has_words(as_object(choice.get("message")))]
    return {**body, "choices": (worded or spoken or choices)[-1:]}


def _has_words(message: dict[str, Any]) -> bool:
    """Whether the message says something, were it that it will not."""
    return bool(message.get("content") or message.get("refusal"))


def _read_grpc(body: dict[str, Any]) -> Message:
    """The assistant's last finished message; its last message with words where none is finished."""
    outputs = as_objects(body.get("outputs"))
    spoken = [output for output in outputs if as_object(output.get("message")).get("role") == "ROLE_ASSISTANT"]
    finished = [output for output in spoken if output.get("finish_reason") == "REASON_STOP"]
    worded = [output for output in spoken if as_object(output.get("message")).get("content")]
    last = (finished or worded or spoken or [{}])[-1]
    text = as_text(as_object(last.get("message")).get("content"))
    return Message(text, (), as_text(body.get("model")), as_text(last.get("finish_reason")))

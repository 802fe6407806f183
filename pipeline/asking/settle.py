"""One call settled: its answer in the provider's CSV, or its error in `errors.jsonl`, before anything else is done."""

from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from pipeline.asking.run_folder import append_error, csv_file
from pipeline.csv_v2.file import append_answer
from pipeline.errors import PayloadError
from pipeline.providers import read_payload
from pipeline.providers.calls import Answerer, Call, Reply
from pipeline.providers.failure import unreadable_error
from pipeline.schema import Answer, ErrorLine, StoredAnswer

UNKNOWN_MODEL = "unknown"


class Settled(NamedTuple):
    """What stands on the disk for a call: one of the two."""

    answer: StoredAnswer | None = None
    error: ErrorLine | None = None


def time_now() -> str:
    """The time now: ISO 8601, UTC, with offset."""
    return datetime.now(UTC).isoformat()


async def settle_call(out: Path, call: Call, answerer: Answerer) -> Settled:
    """The answer, whose rows are on the disk, or the error, which is there as well.

    Cancelled while the provider is waited for, nothing is written.
    """
    requested = time_now()
    reply: Reply | None = None
    try:
        reply = await answerer(call)
        if reply.status is not None and reply.status >= 400:
            raise unreadable_error(reply.text, reply.status)
        answer = read_payload(call.provider, reply.text)
    except PayloadError as failure:
        error = error_line(call, reply, failure, requested)
        append_error(out, error)
        return Settled(error=error)
    stored = stored_answer(call, reply, answer, requested)
    append_answer(csv_file(out, call.provider), stored)
    return Settled(answer=stored)


def error_line(call: Call, reply: Reply | None, failure: PayloadError, timestamp: str) -> ErrorLine:
    """The line of `errors.jsonl` that says why the call has no answer."""
    attempts = reply.attempts if reply else failure.attempts
    return ErrorLine.model_validate(
        {
            "narrative_id": call.narrative.narrative_id,
            "row": call.row,
            "provider": call.provider,
            "model": call.model or (reply.model if reply else ""),
            "kind": failure.kind,
            "status": reply.status if reply else failure.status,
            "message": str(failure),
            "attempts": 0 if failure.kind in ("not_recorded", "missing_key") else attempts,
            "timestamp": timestamp,
            "repeat": call.repeat,
        }
    )


def stored_answer(call: Call, reply: Reply, answer: Answer, timestamp: str) -> StoredAnswer:
    """What CSV v2 keeps of an answer; its model is the one the body names, else the one asked for."""
    return StoredAnswer(
        narrative_id=call.narrative.narrative_id,
        narrative_type=call.narrative.narrative_type,
        narrative_prompt=call.narrative.prompt,
        model_name=call.provider,
        model_version=answer.model or call.model or reply.model or UNKNOWN_MODEL,
        answer_id=call.answer_id,
        answer_prompt=call.prompt,
        answer_text=answer.text,
        answer_raw_json=reply.text,
        answer_timestamp=timestamp,
        citations=answer.citations,
        domains=answer.domains,
        search_results=answer.search_results,
    )

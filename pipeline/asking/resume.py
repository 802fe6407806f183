"""A run folder opened to go on: what is answered in it, and whether the questions are still the same.

Source: pipeline/contracts/run_folder.md#resuming.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from pipeline.asking.questions import AnswerSource, Call, Questions, Reply, plan_calls
from pipeline.asking.run_folder import (
    ProviderCounts,
    RunManifest,
    append_error,
    csv_file,
    open_manifest,
    write_manifest,
)
from pipeline.csv_v2.file import append_answer, keep_whole_answers, read_answers
from pipeline.errors import InputError, ProviderError
from pipeline.providers import read_payload
from pipeline.providers.failure import unreadable_error
from pipeline.schema import PROVIDERS, Answer, ErrorLine, ProviderName, StoredAnswer

UNKNOWN_MODEL = "unknown"


class Settled(NamedTuple):
    """What stands on the disk for a call: one of the two."""

    answer: StoredAnswer | None = None
    error: ErrorLine | None = None


def time_now() -> str:
    """The time now: ISO 8601, UTC, with offset."""
    return datetime.now(UTC).isoformat()


async def answer_call(out: Path, call: Call, source: AnswerSource) -> Settled:
    """The answer, whose rows are on the disk, or the error, which is there as well.

    Cancelled while the provider is waited for, nothing is written.
    """
    requested = time_now()
    reply: Reply | None = None
    try:
        reply = await source.answer(call)
        if reply.status is not None and reply.status >= 400:
            raise unreadable_error(reply.text, reply.status)
        answer = read_payload(call.provider, reply.text)
    except ProviderError as failure:
        error = error_line(call, reply, failure, requested)
        append_error(out, error)
        return Settled(error=error)
    stored = stored_answer(call, reply, answer, requested)
    append_answer(csv_file(out, call.provider), stored)
    return Settled(answer=stored)


def error_line(call: Call, reply: Reply | None, failure: ProviderError, timestamp: str) -> ErrorLine:
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


class Begun(NamedTuple):
    """A run that may go on: its manifest, its questions, and the ids of the calls that are answered."""

    manifest: RunManifest
    questions: Questions
    answered: Mapping[ProviderName, set[str]]

    def every_call(self, provider: ProviderName) -> Iterator[Call]:
        """Every call that may ever have been put to the provider in this run, in order; made one by one."""
        run_id, repeats = self.manifest.run_id, self.manifest.repeats
        return plan_calls(run_id, provider, self.questions.narratives, repeats=repeats)


def begin_run(out: Path, questions: Questions) -> Begun:
    """The run in this folder, a new one or one to go on with; its manifest says that it is not finished.

    Raises:
        OutputError: the folder holds something else.
        InputError: answers in the folder are to other narratives, or of another model.
    """
    manifest = open_manifest(out, questions.source, version("citejury"), time_now())
    repeats = max(manifest.repeats, questions.repeats)
    manifest = manifest.model_copy(update={"repeats": repeats})
    answered = {provider: keep_answers(csv_file(out, provider)) for provider in PROVIDERS}
    begun = Begun(manifest, questions, answered)
    for provider in PROVIDERS:
        if answered[provider]:
            refuse_other_narratives(out, begun, provider)
            refuse_other_model(out, manifest, questions, provider)
    changes = {
        "narratives": questions.source,
        "finished": None,
        "stopped": "",
        "unsettled": 0,
        "options": questions.options or manifest.options,
        "providers": models_asked(manifest, questions),
        "version": version("citejury"),
    }
    manifest = manifest.model_copy(update=changes)
    write_manifest(out, manifest)
    return begun._replace(manifest=manifest)


def keep_answers(path: Path) -> set[str]:
    """The ids of the whole answers in a CSV; a file that a kill left without any is removed."""
    whole = keep_whole_answers(path)
    if not whole:
        path.unlink(missing_ok=True)
    return whole


def models_asked(manifest: RunManifest, questions: Questions) -> dict[ProviderName, ProviderCounts]:
    """What the manifest says of each provider, with the model asked for now; a kill must not lose that."""
    told: dict[ProviderName, ProviderCounts] = {}
    for provider in PROVIDERS:
        counts = manifest.providers.get(provider)
        model = questions.models.get(provider, "") if provider in questions.providers else ""
        if counts or provider in questions.providers:
            counts = counts or ProviderCounts()
            told[provider] = counts.model_copy(update={"model_asked": model or counts.model_asked})
    return told


def refuse_other_model(out: Path, manifest: RunManifest, questions: Questions, provider: ProviderName) -> None:
    """Nothing where the provider is asked for the model that answered before, or is not asked now.

    Raises:
        InputError: another model is named, and the file would mix the answers of two.
    """
    earlier = manifest.providers.get(provider, ProviderCounts()).model_asked
    model = questions.models.get(provider, "")
    if provider in questions.providers and earlier and model and model != earlier:
        raise InputError(
            f"{str(out)!r} holds answers of {provider} from the model {earlier!r}, and {model!r} is asked for now. "
            f"Ask with `--model {provider}={earlier}`, or name another `--out`."
        )


def refuse_other_narratives(out: Path, begun: Begun, provider: ProviderName) -> None:
    """Nothing where every answer in the folder is to one of the narratives; more narratives are fine.

    Raises:
        InputError: a narrative has another text than the one that was asked, or is gone.
    """
    strange = set(begun.answered[provider])
    for call in begun.every_call(provider):
        strange.discard(call.answer_id)
    if not strange:
        return
    stored = next(answer for answer in read_answers(csv_file(out, provider)) if answer.answer_id in strange)
    lines = (each.line for each in begun.questions.narratives if each.narrative_id == stored.narrative_id)
    line = next(lines, None)
    found = f"has another text now (line {line})" if line else "is no longer among the narratives"
    others = f", and so it is with {len(strange) - 1} more" if len(strange) > 1 else ""
    raise InputError(
        f"{str(out)!r} holds answers to other narratives: {stored.narrative_id!r} {found}, it was asked as "
        f"{stored.narrative_prompt[:60]!r}{others}. Give the narratives back as they were, or name another `--out`."
    )


def standing_errors(errors: Sequence[ErrorLine], begun: Begun) -> list[ErrorLine]:
    """The earlier errors of calls that are neither put again now nor answered since, the latest of each."""
    questions = begun.questions
    latest = {
        (error.provider, error.row, error.repeat): error for error in errors if not is_put_again(error, questions)
    }
    ids = ids_of_rows({error.row for error in latest.values()}, questions)
    return [error for error in latest.values() if ids.get(error.row) == error.narrative_id]


def is_put_again(error: ErrorLine, questions: Questions) -> bool:
    """Whether the call that failed is among those asked now."""
    return error.provider in questions.providers and error.row <= questions.rows() and error.repeat <= questions.repeats


def ids_of_rows(rows: Collection[int], questions: Questions) -> dict[int, str]:
    """The narratives' ids of these rows, as far as the file goes."""
    if not rows:
        return {}
    return {row: each.narrative_id for row, each in enumerate(questions.narratives, start=1) if row in rows}

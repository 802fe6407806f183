"""Narratives times providers into a run folder, resumable after a kill at any moment (design 4.1)."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from pipeline.calls import Answerer, Call, Reply, plan_calls
from pipeline.csv_v2 import append_answer, keep_whole_answers, read_answers
from pipeline.errors import InputError, PayloadError
from pipeline.providers import read_payload
from pipeline.providers.failure import unreadable_error
from pipeline.run_folder import (
    ERRORS,
    ErrorLine,
    NarrativesFile,
    RunManifest,
    append_error,
    locked_folder,
    open_manifest,
    read_errors,
    write_errors,
    write_manifest,
)
from pipeline.run_summary import summarise_run
from pipeline.schema import PROVIDERS, Answer, Narrative, ProviderName, StoredAnswer

UNKNOWN_MODEL = "unknown"

Report = Callable[[Call, int], None]


class Questions(NamedTuple):
    """What to ask: the narratives of a file, whom, and with which model where one is named."""

    source: NarrativesFile
    narratives: Sequence[Narrative]
    providers: Sequence[ProviderName]
    models: Mapping[ProviderName, str]
    max_rows: int | None = None


def ask_narratives(
    questions: Questions, out: Path, answerer: Answerer, report: Report = lambda call, total: None
) -> RunManifest:
    """The manifest of the run, finished; its folder holds one CSV a provider, errors, citations and the manifest.

    Calls answered earlier are not put again; what failed earlier is. `report` hears of every call when it is settled,
    and how many there are.

    Raises:
        OutputError: the folder holds something else, or is in use.
        InputError: answers in the folder are to other narratives, or nothing at all was answered.
    """
    with locked_folder(out):
        begun = begin_run(out, questions)
        asked = [call for provider in questions.providers for call in begun.plans[provider][: questions.max_rows]]
        errors = standing_errors(read_errors(out), begun.plans, {(call.provider, call.row) for call in asked})
        write_errors(out, errors)
        for call in asked:
            if call.answer_id not in begun.answered[call.provider]:
                error = settle_call(out, call, answerer)
                errors += [error] if error else []
            report(call, len(asked))
        manifest = finish_run(out, questions, begun, errors)
    if not manifest.answers:
        kinds = ", ".join(f"{count} {kind}" for kind, count in manifest.errors.items())
        raise InputError(f"Nothing was answered ({kinds}); the reasons are in `{ERRORS}` in {str(out)!r}.")
    return manifest


class Begun(NamedTuple):
    """A run that may go on: every call of its narratives, and the ids of those that are answered."""

    manifest: RunManifest
    plans: Mapping[ProviderName, Sequence[Call]]
    answered: Mapping[ProviderName, set[str]]


def begin_run(out: Path, questions: Questions) -> Begun:
    """The run in this folder, a new one or one to go on with; its manifest says that it is not finished.

    Raises:
        OutputError: the folder holds something else.
        InputError: answers in the folder are to other narratives.
    """
    manifest = open_manifest(out, questions.source, version("citejury"), time_now())
    plans = {
        provider: plan_calls(manifest.run_id, provider, questions.narratives, questions.models.get(provider, ""))
        for provider in PROVIDERS
    }
    answered = {provider: keep_answers(csv_file(out, provider)) for provider in PROVIDERS}
    refuse_other_narratives(out, plans, answered)
    changes = {"narratives": questions.source, "finished": None, "version": version("citejury")}
    manifest = manifest.model_copy(update=changes)
    write_manifest(out, manifest)
    return Begun(manifest, plans, answered)


def finish_run(out: Path, questions: Questions, begun: Begun, errors: Sequence[ErrorLine]) -> RunManifest:
    """The finished run's manifest, written with errors and citations in their final order."""
    write_errors(out, sorted(errors, key=lambda error: (PROVIDERS.index(error.provider), error.row)))
    models_asked = {provider: questions.models.get(provider, "") for provider in questions.providers}
    manifest = summarise_run(out, begun.manifest, begun.plans, models_asked, errors)
    manifest = manifest.model_copy(update={"finished": time_now()})
    write_manifest(out, manifest)
    return manifest


def csv_file(out: Path, provider: ProviderName) -> Path:
    """The provider's CSV v2 in the run folder."""
    return out / f"{provider}.csv"


def keep_answers(path: Path) -> set[str]:
    """The ids of the whole answers in a CSV; a file that a kill left without any is removed."""
    whole = keep_whole_answers(path)
    if not whole:
        path.unlink(missing_ok=True)
    return whole


def time_now() -> str:
    """The time now: ISO 8601, UTC, with offset."""
    return datetime.now(UTC).isoformat()


def settle_call(out: Path, call: Call, answerer: Answerer) -> ErrorLine | None:
    """None when the call is answered and its rows are on the disk; else the error, which is there as well."""
    requested = time_now()
    reply: Reply | None = None
    try:
        reply = answerer(call)
        if reply.status is not None and reply.status >= 400:
            raise unreadable_error(reply.text, reply.status)
        answer = read_payload(call.provider, reply.text)
    except PayloadError as failure:
        error = error_line(call, reply, failure, requested)
        append_error(out, error)
        return error
    append_answer(csv_file(out, call.provider), stored_answer(call, reply, answer, requested))
    return None


def error_line(call: Call, reply: Reply | None, failure: PayloadError, timestamp: str) -> ErrorLine:
    """The line of `errors.jsonl` that says why the call has no answer."""
    return ErrorLine.model_validate(
        {
            "narrative_id": call.narrative.narrative_id,
            "row": call.row,
            "provider": call.provider,
            "model": call.model or (reply.model if reply else ""),
            "kind": failure.kind,
            "status": reply.status if reply else None,
            "message": str(failure),
            "attempts": 0 if failure.kind == "not_recorded" else 1,
            "timestamp": timestamp,
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


def refuse_other_narratives(
    out: Path, plans: Mapping[ProviderName, Sequence[Call]], answered: Mapping[ProviderName, set[str]]
) -> None:
    """Nothing where every answer in the folder is to one of the narratives; more narratives are fine.

    Raises:
        InputError: a narrative has another text than the one that was asked, or is gone.
    """
    for provider, ids in answered.items():
        strange = ids - {call.answer_id for call in plans[provider]}
        if not strange:
            continue
        stored = next(answer for answer in read_answers(csv_file(out, provider)) if answer.answer_id in strange)
        lines = [call.narrative.line for call in plans[provider] if call.narrative.narrative_id == stored.narrative_id]
        found = f"has another text now (line {lines[0]})" if lines else "is no longer among the narratives"
        others = f", and so it is with {len(strange) - 1} more" if len(strange) > 1 else ""
        raise InputError(
            f"{str(out)!r} holds answers to other narratives: {stored.narrative_id!r} {found}, it was asked as "
            f"{stored.narrative_prompt[:60]!r}{others}. Give the narratives back as they were, or name another `--out`."
        )


def standing_errors(
    errors: Sequence[ErrorLine], plans: Mapping[ProviderName, Sequence[Call]], asked: set[tuple[ProviderName, int]]
) -> list[ErrorLine]:
    """The earlier errors of calls that are not put again now, the latest of each."""
    latest = {(error.provider, error.row): error for error in errors if (error.provider, error.row) not in asked}
    return [
        error
        for (provider, row), error in latest.items()
        if 1 <= row <= len(plans[provider]) and plans[provider][row - 1].narrative.narrative_id == error.narrative_id
    ]

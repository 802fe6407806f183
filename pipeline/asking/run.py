"""Narratives times providers into a run folder, resumable after a kill at any moment (design 4.1)."""

from collections.abc import Callable, Sequence
from pathlib import Path

from pipeline.asking.questions import NO_LIMITS, Limits, Questions, Report, Tell
from pipeline.asking.resume import Begun, begin_run, standing_errors
from pipeline.asking.run_folder import (
    ERRORS,
    RunManifest,
    csv_file,
    locked_folder,
    read_errors,
    write_errors,
    write_manifest,
)
from pipeline.asking.settle import time_now
from pipeline.asking.summary import summarise_run
from pipeline.asking.workers import Course, known_cost, put_calls
from pipeline.csv_v2.file import read_answers
from pipeline.errors import InputError
from pipeline.providers.calls import Answerer
from pipeline.schema import PROVIDERS, ErrorLine

__all__ = ["NO_LIMITS", "Limits", "Questions", "Report", "Tell", "ask_narratives"]


async def ask_narratives(
    questions: Questions,
    out: Path,
    answerer: Answerer,
    report: Report = lambda call, total: None,
    tell: Tell = lambda line: None,
    limits: Limits = NO_LIMITS,
    stop_waiting: Callable[[], int] = lambda: 0,
) -> RunManifest:
    """The manifest of the run; its folder holds one CSV a provider, errors, citations and the manifest.

    Calls answered earlier are not put again; what failed earlier is. `report` hears of every call when it is settled.
    SIGINT, SIGTERM and the known cost stop the run in good order: the manifest says so, and the same questions asked
    again go on. A signal also calls `stop_waiting`, which gives up the calls that only wait, and counts them.

    Raises:
        OutputError: the folder holds something else, or is in use.
        InputError: answers in the folder are to other narratives or of another model, or nothing at all was answered.
    """
    with locked_folder(out):
        begun = begin_run(out, questions)
        standing = standing_errors(read_errors(out), begun)
        write_errors(out, standing)
        course = Course(limits, spent_earlier(out, begun, limits), stop_waiting)
        await put_calls(out, begun, answerer, course, report, tell)
        manifest = finish_run(out, begun, course, [*standing, *course.errors])
    if not manifest.answers and not manifest.stopped:
        kinds = ", ".join(f"{count} {kind}" for kind, count in manifest.errors.items())
        raise InputError(f"Nothing was answered ({kinds}); the reasons are in `{ERRORS}` in {str(out)!r}.")
    return manifest


def spent_earlier(out: Path, begun: Begun, limits: Limits) -> float:
    """The known cost of the answers in the folder; it is looked up only where there is a limit to hold."""
    if limits.max_cost is None:
        return 0.0
    return sum(
        known_cost(answer, limits, begun.questions.models.get(provider, ""))
        for provider in PROVIDERS
        if begun.answered[provider]
        for answer in read_answers(csv_file(out, provider))
    )


def finish_run(out: Path, begun: Begun, course: Course, errors: Sequence[ErrorLine]) -> RunManifest:
    """The run's manifest, written with answers, errors and citations in their final order.

    It counts as finished unless calls are left that a stop kept from being settled.
    """
    write_errors(out, sorted(errors, key=lambda error: (PROVIDERS.index(error.provider), error.row, error.repeat)))
    unsettled = begun.questions.calls_each() * len(begun.questions.providers) - course.settled
    manifest = summarise_run(out, begun, errors, course.limits.prices)
    changes = {
        "finished": None if unsettled else time_now(),
        "stopped": course.stopped if unsettled else "",
        "unsettled": unsettled,
    }
    manifest = manifest.model_copy(update=changes)
    write_manifest(out, manifest)
    return manifest

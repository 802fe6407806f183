"""The research runs of a folder: what each is, and how far it came."""

import shutil
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from pipeline.core.errors import InputError, OutputError
from pipeline.core.files import locked_folder
from pipeline.research.artefacts import RUN_ID, RunFolder, checked_run_id
from pipeline.research.contracts import Metrics, Text, UtcTime, aware_time
from pipeline.research.journal import JOURNAL, read_setup
from pipeline.research.values import Depth
from pipeline.sources.schema import Contract
from pipeline.sources.store import StoredRun, open_store

STORE = "store.db"
_RUN_SIGNS = ("clarify.json", "logs/pipeline.jsonl", "logs/plan.json", JOURNAL)
"""What a folder of a research run holds from its first moment on."""

RunState = Literal["finished", "audit failed", "unfinished", "failed", "clarification needed", "damaged", "folder gone"]


class CheckCounts(Contract):
    """What the check of the claims and of the written report counted."""

    verified_claims: int
    """Claims that their pages support."""
    single_source_claims: int
    """Those of them that pages of one site alone support."""
    conflicts: int
    """Claims of which some page says otherwise."""
    paragraphs: int
    """Paragraphs of the report."""
    passed: bool
    """Whether the report passed."""


class RunSource(Contract):
    """A source that the report cites."""

    cid: str
    """Its id in the report."""
    url: str
    """URL of the page."""
    title: Text
    """The page's title; empty where it has none."""
    fetched_at: UtcTime
    """When the page was fetched."""


class RunOverview(Contract):
    """A run at a glance."""

    run_id: str
    """Its id: the name of its folder."""
    topic: Text
    """What is researched; empty where it is not known."""
    state: RunState
    """How far it is."""
    stage: str
    """The stage that was begun last; empty before the first."""
    depth: Depth | None = None
    """How far it goes; None before it was planned."""
    created_at: UtcTime | None = None
    """When it began; None where nothing tells."""
    updated_at: UtcTime | None = None
    """When a stage last began or ended; None where nothing tells."""
    stop_reason: str | None = None
    """Why it ended before it had done all it wanted; None where nothing stopped it."""
    error: Text | None = None
    """What went wrong; None where nothing did."""
    checks: CheckCounts | None = None
    """What was checked; None before that."""
    metrics: Metrics | None = None
    """Its figures; None before it is finished."""
    sources: tuple[RunSource, ...] = ()
    """The sources that the report cites, in order of first appearance."""


def list_runs(runs_dir: Path) -> list[RunOverview]:
    """Every run of the folder, the last begun first; an InputError where there is none, or its store cannot be read."""
    if not runs_dir.is_dir():
        raise InputError(f"There is no folder {str(runs_dir)!r}. Name the folder of the runs with `--runs-dir`.")
    stored = _runs_in_store(runs_dir)
    names = {path.name for path in runs_dir.iterdir() if is_run(path)} | set(stored)
    found = [_overview(runs_dir / name, stored.get(name)) for name in names if RUN_ID.fullmatch(name)]
    return sorted(found, key=lambda run: (-(run.created_at.timestamp() if run.created_at else 0), run.run_id))


def show_run(runs_dir: Path, run_id: str) -> RunOverview:
    """The run; an InputError where it is not there, its folder is a link, or the store cannot be read."""
    path = run_path(runs_dir, run_id)
    stored = _runs_in_store(runs_dir).get(run_id)
    if stored is None and not is_run(path):
        raise no_such_run(runs_dir, run_id)
    return _overview(path, stored)


def run_path(runs_dir: Path, run_id: str) -> Path:
    """Where the run's folder is, or would be; an InputError where the id leads elsewhere, or the folder is a link."""
    path = runs_dir / checked_run_id(run_id)
    if path.is_symlink():
        raise InputError(f"{str(path)!r} is a link and no run folder; remove it or name the folder that it leads to.")
    return path


def is_run(path: Path) -> bool:
    """Whether the folder is one of a research run; a link is none."""
    return not path.is_symlink() and any((path / sign).exists() for sign in _RUN_SIGNS)


def no_such_run(runs_dir: Path, run_id: str) -> InputError:
    return InputError(f"There is no run {run_id!r} in {str(runs_dir)!r}. `citejury pipeline runs list` names them all.")


def _runs_in_store(runs_dir: Path) -> dict[str, StoredRun]:
    if not (runs_dir / STORE).is_file():
        return {}
    with open_store(runs_dir / STORE, read_only=True) as store:
        return {run.id: run for run in store.runs()}


def _overview(path: Path, stored: StoredRun | None) -> RunOverview:
    topic = stored.topic if stored else str((read_setup(path) or {}).get("topic", ""))
    run = RunOverview(run_id=path.name, topic=topic, state="folder gone", stage="")
    if stored:
        try:
            metrics = Metrics.model_validate(stored.metrics) if stored.metrics else None
        except ValidationError:
            metrics = None
        stop_reason = metrics.stop_reason if metrics else None
        created_at = aware_time(datetime.fromisoformat(stored.created_at))
        run = run.model_copy(update={"created_at": created_at, "metrics": metrics, "stop_reason": stop_reason})
    if not is_run(path):
        return run
    try:
        return run.model_copy(update=dict(_facts_of_folder(RunFolder(path))))
    except InputError as error:
        return run.model_copy(update={"state": "damaged", "error": str(error)})


def _facts_of_folder(folder: RunFolder) -> Iterator[tuple[str, object]]:
    clarify, log, plan, verify = folder.read_clarify(), folder.read_log(), folder.read_plan(), folder.read_verify()
    last = log[-1] if log else None
    state: RunState = "failed" if last and last.status == "failed" else "unfinished"
    if clarify and clarify.status != "clarified":
        state = "clarification needed"
    if last and (last.stage, last.status) == ("cache", "completed"):
        state = "finished" if verify and verify.passed else "audit failed"
    yield "state", state
    yield "depth", plan.depth if plan else None
    yield "sources", tuple(RunSource.model_validate(entry, from_attributes=True) for entry in folder.read_citations())
    if last:
        yield "stage", last.stage
        yield "created_at", log[0].timestamp
        yield "updated_at", last.timestamp
        yield "error", last.details.error
    if clarify and clarify.failure_reason:
        yield "error", clarify.failure_reason
    if report := folder.read_report():
        yield "topic", report.topic
        yield "stop_reason", report.stop_reason
    if verify:
        yield (
            "checks",
            CheckCounts(
                verified_claims=verify.verified_claims_count,
                single_source_claims=verify.single_source_claims_count,
                conflicts=verify.conflicts_count,
                paragraphs=verify.total_paragraphs,
                passed=verify.passed,
            ),
        )


def delete_run(runs_dir: Path, run_id: str) -> None:
    """Remove the run's folder and what the store knows of it; pages that were read stay, for they belong to no run.

    A link is never followed. Killed in the middle of it and called again, it goes on.
    """
    path = run_path(runs_dir, run_id)
    doomed = half_deleted(runs_dir, run_id)
    there = is_run(path)
    gone = False
    with locked_folder(path, "pipeline research") if there else nullcontext():
        if (runs_dir / STORE).is_file():
            with open_store(runs_dir / STORE) as store:
                gone = store.delete_run(run_id)
    if not (there or gone or doomed.is_dir()):
        raise no_such_run(runs_dir, run_id)
    try:
        _remove_folder(doomed)
        if there:
            # One step takes the run away as a whole; half of one would look like a run that was never finished.
            path.rename(doomed)
            _remove_folder(doomed)
    except OSError as error:
        raise OutputError(f"{str(error.filename or path)!r} cannot be removed: {error.strerror}.") from error


def half_deleted(runs_dir: Path, run_id: str) -> Path:
    """Where the run's folder is from the moment on at which it is deleted, until nothing of it is left."""
    return runs_dir / f".{checked_run_id(run_id)}.deleted"


def _remove_folder(path: Path) -> None:
    """Remove the folder with all that is in it, links as links; nothing where it is not there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)

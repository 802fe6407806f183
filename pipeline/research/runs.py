"""The research runs of a folder: what each is, and how far it came."""

import shutil
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError

from pipeline.core.errors import InputError, OutputError
from pipeline.core.files import locked_folder
from pipeline.research.artefacts import RUN_ID, RunFolder, checked_run_id
from pipeline.research.contracts import Metrics, aware_time
from pipeline.research.journal import JOURNAL, read_setup
from pipeline.sources.store import StoredRun, open_store

STORE = "store.db"
_RUN_SIGNS = ("clarify.json", "logs/pipeline.jsonl", "logs/plan.json", JOURNAL)
"""What a folder of a research run holds from its first moment on."""

RunState = Literal["finished", "audit failed", "unfinished", "failed", "clarification needed", "damaged", "folder gone"]


class RunOverview(NamedTuple):
    run_id: str  # the name of its folder
    topic: str  # empty where it is not known
    state: RunState
    stage: str = ""  # the one that was begun last; empty before the first
    sources: int = 0  # those that the report cites
    cost: float | None = None  # None before it is finished
    created_at: datetime | None = None  # None where nothing tells
    error: str = ""  # empty where nothing went wrong


def list_runs(runs_dir: Path) -> list[RunOverview]:
    """Every run of the folder, the last begun first; an InputError where there is none, or its store cannot be read."""
    if not runs_dir.is_dir():
        raise InputError(f"There is no folder {str(runs_dir)!r}. Name the folder of the runs with `--runs-dir`.")
    stored: dict[str, StoredRun] = {}
    if (runs_dir / STORE).is_file():
        with open_store(runs_dir / STORE, read_only=True) as store:
            stored = {run.id: run for run in store.runs()}
    names = {path.name for path in runs_dir.iterdir() if is_run(path)} | set(stored)
    found = [_overview(runs_dir / name, stored.get(name)) for name in names if RUN_ID.fullmatch(name)]
    return sorted(found, key=lambda run: (-(run.created_at.timestamp() if run.created_at else 0), run.run_id))


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
    return InputError(f"There is no run {run_id!r} in {str(runs_dir)!r}; `pipeline research --list` lists all.")


def _overview(path: Path, stored: StoredRun | None) -> RunOverview:
    topic = stored.topic if stored else str((read_setup(path) or {}).get("topic", ""))
    run = RunOverview(path.name, topic, "folder gone")
    if stored:
        metrics = None
        with suppress(ValidationError):
            metrics = Metrics.model_validate(stored.metrics) if stored.metrics else None
        created_at = aware_time(datetime.fromisoformat(stored.created_at))
        run = run._replace(created_at=created_at, cost=metrics.cost_est if metrics else None)
    if not is_run(path):
        return run
    try:
        return run._replace(**dict(_facts_of_folder(RunFolder(path))))
    except InputError as error:
        return run._replace(state="damaged", error=str(error))


def _facts_of_folder(folder: RunFolder) -> Iterator[tuple[str, Any]]:
    clarify, log, verify = folder.read_clarify(), folder.read_log(), folder.read_verify()
    last = log[-1] if log else None
    state: RunState = "failed" if last and last.status == "failed" else "unfinished"
    if clarify and clarify.status != "clarified":
        state = "clarification needed"
    if last and (last.stage, last.status) == ("cache", "completed"):
        state = "finished" if verify and verify.passed else "audit failed"
    yield "state", state
    yield "sources", len(folder.read_citations())
    if last:
        yield "stage", last.stage
        yield "created_at", log[0].timestamp
        yield "error", last.details.error or ""
    if clarify and clarify.failure_reason:
        yield "error", clarify.failure_reason
    if report := folder.read_report():
        yield "topic", report.topic


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

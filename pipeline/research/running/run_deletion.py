"""A research run removed again: its folder, and what the store knows of it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from pipeline.asking.run_folder import locked_folder
from pipeline.errors import OutputError
from pipeline.research.output.artefacts import checked_run_id
from pipeline.research.running.runs import STORE, is_run, no_such_run, run_path
from pipeline.sources.store.store import open_store


def delete_run(runs_dir: Path, run_id: str) -> None:
    """Remove the run's folder and what the store knows of it; pages that were read stay, for they belong to no run.

    A link is never followed. Killed in the middle of it and called again, it goes on.

    Raises:
        InputError: there is no such run, or its folder is a link.
        OutputError: the run is going on, or something cannot be removed.
    """
    path = run_path(runs_dir, run_id)
    doomed = half_deleted(runs_dir, run_id)
    there = is_run(path)
    gone = remove_rows(runs_dir, run_id, path if there else None)
    if not (there or gone or doomed.is_dir()):
        raise no_such_run(runs_dir, run_id)
    remove_folder(doomed)
    if there:
        # One step takes the run away as a whole; half of one would look like a run that was never finished.
        with told_plainly(path):
            path.rename(doomed)
        remove_folder(doomed)


def half_deleted(runs_dir: Path, run_id: str) -> Path:
    """Where the run's folder is from the moment on at which it is deleted, until nothing of it is left.

    Raises:
        InputError: the id could lead elsewhere.
    """
    return runs_dir / f".{checked_run_id(run_id)}.deleted"


def remove_rows(runs_dir: Path, run_id: str, held: Path | None) -> bool:
    """Whether the store knew of the run; it does no longer. The folder `held` is not written to by others meanwhile."""
    with locked_folder(held, "pipeline research") if held else nullcontext():
        if not (runs_dir / STORE).is_file():
            return False
        with open_store(runs_dir / STORE) as store:
            return store.delete_run(run_id)


def remove_folder(path: Path) -> None:
    """Remove the folder with all that is in it, links as links; nothing where it is not there.

    Raises:
        OutputError: something of it cannot be removed.
    """
    with told_plainly(path):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)


@contextmanager
def told_plainly(path: Path) -> Iterator[None]:
    """Turn what the system refuses into our error.

    Raises:
        OutputError: the folder, or something in it, cannot be removed.
    """
    try:
        yield
    except OSError as error:
        raise OutputError(f"{str(error.filename or path)!r} cannot be removed: {error.strerror}.") from error

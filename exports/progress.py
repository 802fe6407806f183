"""Progress of an export, drawn on stderr while someone is looking."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

if TYPE_CHECKING:
    from exports.csv.fetch import Progress as Report

QUIET_SECONDS = 2.0
"""Work that takes no longer shows no clock."""


@contextmanager
def shown_work(description: str) -> Iterator[None]:
    """A clock beside the description once the work takes longer; nothing is drawn where stderr is no terminal."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    clock = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    clock.add_task(description, total=None)
    begin = Timer(QUIET_SECONDS, clock.start)
    begin.start()
    try:
        yield
    finally:
        begin.cancel()
        begin.join()
        clock.stop()


@contextmanager
def shown_progress(unit: str = "records") -> "Iterator[Report]":
    """A function that draws a bar for each thing it is told of; nothing is drawn where stderr is no terminal.

    Nothing is drawn before it is called, either. `unit` stands behind the numbers.
    """
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit, markup=False),
    )
    bars = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    drawn: dict[str, TaskID] = {}

    def report(name: str, read: int, total: int) -> None:
        bars.start()
        if name not in drawn:
            drawn[name] = bars.add_task(name, total=total)
        bars.update(drawn[name], completed=read, total=total)

    try:
        yield report
    finally:
        bars.stop()

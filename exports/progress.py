"""Progress of an export, drawn on stderr while someone is looking."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from exports.fetch import Progress as Report


@contextmanager
def shown_progress() -> Iterator[Report]:
    """A function that draws a bar for each dataset it is told of; nothing is drawn where stderr is no terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TextColumn("records"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        drawn: dict[str, TaskID] = {}

        def report(name: str, read: int, total: int) -> None:
            if name not in drawn:
                drawn[name] = bars.add_task(name, total=total)
            bars.update(drawn[name], completed=read, total=total)

        yield report

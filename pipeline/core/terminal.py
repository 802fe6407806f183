"""A terminal: how far work is, what Ctrl-C does to it, and text of strangers that cannot change the screen."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING, Any, Literal, Self

if TYPE_CHECKING:
    import asyncio

    from rich.progress import TaskID

QUIET_SECONDS = 1.0  # Work that takes no longer draws nothing


class ProgressBars:
    """Bars by name, drawn once the work takes longer and gone at its end; none where stderr is no terminal."""

    def __init__(self, unit: str = "", *, remaining: bool = False) -> None:
        """`unit` follows the numbers, such as `records`; `remaining` shows the time left instead of that passed."""
        # Here, not above: commands import this module at their top, and `--help` is to come at once.
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        self.console = Console(stderr=True, markup=False, highlight=False)
        self.bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[counts]}", markup=False),
            TextColumn("{task.fields[words]}", markup=False),
            TimeRemainingColumn() if remaining else TimeElapsedColumn(),
            console=self.console,
            transient=True,
            # What goes to stdout goes there, which may be a file; rich would send it to the terminal.
            redirect_stdout=False,
            redirect_stderr=False,
            disable=not self.console.is_terminal,
        )
        self.unit = unit
        self.drawn: dict[str, TaskID] = {}
        self.quiet_until = time.monotonic() + QUIET_SECONDS
        self.begin = Timer(QUIET_SECONDS, self.bars.start)  # for work that reports once and then computes

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self.begin.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def report(self, name: str, done: int | None = None, total: int | None = None, words: str | None = None) -> None:
        """Draw how much of something is done, of how much and in what words; what is None stays as it was."""
        if name not in self.drawn:
            self.drawn[name] = self.bars.add_task(name, total=None, counts="", words="")
        counts = None if done is None else f"{done:,}" if total is None else f"{done:,}/{total:,} {self.unit}"
        texts = {field: text for field, text in (("counts", counts), ("words", words)) if text is not None}
        self.bars.update(self.drawn[name], completed=done, total=total, **texts)  # type: ignore[arg-type]
        if time.monotonic() > self.quiet_until:
            self.bars.start()

    def end(self, name: str) -> None:
        if name in self.drawn:
            self.bars.remove_task(self.drawn.pop(name))

    def tell(self, line: str) -> None:
        """Print a line on stderr, above the bars; between words it goes on below where a terminal is narrower."""
        self.console.print(line, soft_wrap=not self.console.is_terminal)

    def clear(self) -> None:
        """Take all bars from the screen, where something else is to be printed; the next report draws them again."""
        self.begin.cancel()
        if self.begin.is_alive():
            self.begin.join()
        self.bars.stop()


def counted(number: int, noun: str) -> str:
    """The number with its noun in the right form, such as `1 page` and `1,200 pages`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def printable(text: str) -> str:
    """The text with `�` for what moves the cursor, colours the terminal or turns the direction of writing."""
    return "".join(character if character.isprintable() else "�" for character in text)


SIGNAL_EXITS = {"SIGINT": 130, "SIGTERM": 143}  # Exit codes of a run that a signal stopped, as shells have them


@contextmanager
def interrupted_by(*numbers: signal.Signals) -> Iterator[None]:
    """Each of the signals raises KeyboardInterrupt at once while the block runs, as Ctrl-C does without asyncio.

    Only the main thread hears signals; in another one nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    earlier = [(number, signal.signal(number, signal.default_int_handler)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in earlier:
            signal.signal(number, handler)


async def run_together(
    tasks: "list[asyncio.Task[None]]",
    workers: Iterable[Coroutine[Any, Any, None]],
    stop: Callable[[Literal["SIGINT", "SIGTERM"]], None],
) -> None:
    """Run the workers, added to `tasks`, until all are done or a signal stops them; raise the first one's error."""
    import asyncio

    try:
        async with asyncio.TaskGroup() as group:
            tasks += map(group.create_task, workers)
            with stopping_on_signals(stop):
                await asyncio.gather(*tasks, return_exceptions=True)
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None


@contextmanager
def stopping_on_signals(stop: Callable[[Literal["SIGINT", "SIGTERM"]], None]) -> Iterator[None]:
    """SIGINT and SIGTERM call `stop`, in the running event loop, while the block runs.

    Only the main thread hears signals, and Windows knows no such handlers: there Ctrl-C ends the process at once, and
    whatever can be resumed is resumed like after any kill.
    """
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return
    import asyncio  # here, because commands import this module at their top, and `--help` is to come at once

    loop = asyncio.get_running_loop()
    earlier = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]
    loop.add_signal_handler(signal.SIGINT, stop, "SIGINT")
    loop.add_signal_handler(signal.SIGTERM, stop, "SIGTERM")
    try:
        yield
    finally:
        for number, handler in earlier:
            loop.remove_signal_handler(number)
            signal.signal(number, handler)  # asyncio gives back the system's way, not the one that was here

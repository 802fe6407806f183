"""What happens on the server, a line for each event that matters: written by its parts, followed by `serve`.

A line is the time, ISO 8601 with its offset, and plain words; never a key, a password or a text of the datasets.
"""

import asyncio
import contextlib
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Generic, TypeVar

from annotation.embedded.home.log_files import LARGEST_LOG, open_private, turn_log
from pipeline.terminal import printable

EVENTS_VARIABLE = "CITEJURY_EVENTS"
LONGEST = 400  # characters; names come from people
_LOOK_SECONDS = 0.25
MINUTE = 60.0
_TOLD_AT_THE_END: list[Callable[[], None]] = []
"""What writes down the counts of each sum of this process."""

K = TypeVar("K", bound=Hashable)


def tell(text: str, file: Path | None = None, largest: int = LARGEST_LOG) -> None:
    """Write an event to the file, else to the one that the environment names, else to stderr; a full file is turned."""
    short = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    line = f"{datetime.now(UTC).isoformat(timespec='seconds')} {printable(short)}\n"
    named = file or os.environ.get(EVENTS_VARIABLE)
    if not named:
        sys.stderr.write(line)
        return
    # A disk that is full must not stop the work that the line is about.
    with contextlib.suppress(OSError):
        _add(Path(named), line.encode(), largest)


def _add(path: Path, line: bytes, largest: int) -> None:
    """Write a line at once, so that those of two parts do not mix, into a new file where this one is full."""
    import fcntl  # not on Windows, where the commands work all the same

    while True:
        with open(path, "ab", buffering=0, opener=open_private) as log:
            fcntl.flock(log, fcntl.LOCK_EX)
            if not _is_still(path, log):  # another part has turned it meanwhile
                continue
            if os.fstat(log.fileno()).st_size + len(line) <= largest:
                log.write(line)
                return
            turn_log(path)


def _is_still(path: Path, log: IO[bytes]) -> bool:
    """Whether the open file is the one of that name."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(log.fileno()))
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def following(file: Path, show: Callable[[str], None]) -> Iterator[None]:
    """Show each whole line of the file, those of before first, until the block ends and all are shown.

    A thread of its own does it; it ends early where nobody takes the lines any more.
    """
    ended = threading.Event()
    thread = threading.Thread(target=_follow, args=(file, show, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _follow(file: Path, show: Callable[[str], None], ended: threading.Event) -> None:
    """Show the lines until the end is told, and then the last ones."""
    opened: IO[bytes] | None = None
    rest = b""
    with contextlib.suppress(OSError, ValueError), contextlib.ExitStack() as files:  # the terminal is gone, or closed
        while True:
            is_last = ended.wait(_LOOK_SECONDS)
            while opened or file.exists():
                turned = opened is not None and not _is_still(file, opened)  # asked before its last lines are read
                for line in opened or ():
                    rest += line
                    if line.endswith(b"\n"):
                        show(rest[:-1].decode(errors="replace"))
                        rest = b""
                if opened and not turned:
                    break
                opened = files.enter_context(open(file, "rb")) if file.exists() else None
            if is_last:
                return


class EventCounts(Generic[K]):
    """Counts by key, told together `seconds` after the first of them."""

    def __init__(self, seconds: float, lines: Callable[[Mapping[K, int]], Iterable[str]]) -> None:
        """Keep how long to count, and `lines`, which puts the counts into words."""
        self.seconds = seconds
        self.lines = lines
        self.counts: Counter[K] = Counter()
        _TOLD_AT_THE_END.append(self.tell)

    def add(self, key: K, count: int = 1) -> bool:
        """Count; whether it is the first of its kind since the last telling."""
        if not self.counts:
            asyncio.get_running_loop().call_later(self.seconds, self.tell)
        self.counts[key] += count
        return self.counts[key] == count

    def tell(self) -> None:
        """Write the lines, and begin anew."""
        counts, self.counts = self.counts, Counter()
        for line in self.lines(counts):
            tell(line)


def tell_repeatedly(sums: EventCounts[str], text: str) -> None:
    """Write the line at once where it is the first of its kind in a minute; the others are counted."""
    if sums.add(text):
        tell(text)


def repeats() -> EventCounts[str]:
    """Counts of lines of which the first was written at once."""
    return EventCounts(
        MINUTE,
        lambda counts: [f"{text} ({count - 1:,} more within a minute)" for text, count in counts.items() if count > 1],
    )


def tell_all() -> None:
    """Write what is counted and not yet told."""
    for write in _TOLD_AT_THE_END:
        write()

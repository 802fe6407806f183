"""Logs that stay small, and one of events: a line for each that matters, written by all parts, followed by `serve`.

What a part of the server writes goes through a pipe into its file, so that the file can be turned while the part runs:
a file that is full becomes `*.log.1` and a new one begins, and no entry is long. A line of events is the time, ISO 8601
with its offset, and plain words; never a key, a password or a text of the datasets.
"""

import asyncio
import contextlib
import logging
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Generic, TypeVar

from pipeline.core.terminal import printable

LARGEST_LOG = 10 * 2**20  # bytes of a file; with the one before it twice as much
_LONGEST_LINE = 1_000  # characters
EVENTS_VARIABLE = "CITEJURY_EVENTS"
LONGEST = 400  # characters; names come from people
_LOOK_SECONDS = 0.25
MINUTE = 60.0
_TOLD_AT_THE_END: list[Callable[[], None]] = []  # what writes down the counts of each sum of this process

K = TypeVar("K", bound=Hashable)


def turn_log(path: Path) -> None:
    path.replace(path.with_name(f"{path.name}.1"))


class LogPipe:
    """A pipe that a thread pours into a log; `writing` is for the part, to be closed here once it has it."""

    def __init__(self, path: Path, largest: int = LARGEST_LOG) -> None:
        self.path = path
        self.largest = largest
        self.reading, self.writing = os.pipe()
        self.thread = threading.Thread(target=self._pour, daemon=True)
        self.thread.start()

    def _pour(self) -> None:
        """Write what comes, until nobody can write any more. A disk that is full loses lines and stops nobody."""
        with open(self.reading, "rb", buffering=0) as pipe:
            while piece := pipe.read(2**16):
                with contextlib.suppress(OSError):
                    self._add(piece)

    def _add(self, piece: bytes) -> None:
        with open(self.path, "ab", opener=_open_private) as log:
            if log.tell() + len(piece) <= self.largest:
                log.write(piece)
                return
            last, end, piece = piece.rpartition(b"\n")
            log.write(last + end)
        turn_log(self.path)
        with open(self.path, "ab", opener=_open_private) as log:
            log.write(piece)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


class ShortEntries(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry = "\n".join(_cut(line, _LONGEST_LINE) for line in super().format(record).split("\n"))
        return _cut(entry, 100_000)


def _cut(text: str, longest: int) -> str:
    missing = len(text) - longest
    if missing <= 0:
        return text
    return f"{text[: longest // 2]} … ({missing:,} characters left out) … {text[-(longest - longest // 2) :]}"


def shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def log_short_entries() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(ShortEntries("%(asctime)s %(levelname)s [%(name)s] %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)


def tell(text: str, file: Path | None = None, largest: int = LARGEST_LOG) -> None:
    """Write an event to the file, else to the one that the environment names, else to stderr; a full file is turned."""
    line = f"{datetime.now(UTC).isoformat(timespec='seconds')} {printable(shortened(text, LONGEST))}\n"
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
        with open(path, "ab", buffering=0, opener=_open_private) as log:
            fcntl.flock(log, fcntl.LOCK_EX)
            if not _is_still(path, log):  # another part has turned it meanwhile
                continue
            if os.fstat(log.fileno()).st_size + len(line) <= largest:
                log.write(line)
                return
            turn_log(path)


def _is_still(path: Path, log: IO[bytes]) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(log.fileno()))
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def following(file: Path, show: Callable[[str], None]) -> Iterator[None]:
    """Show each whole line of the file, those of before first, by a thread of its own, until the block ends."""
    ended = threading.Event()
    thread = threading.Thread(target=_follow, args=(file, show, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _follow(file: Path, show: Callable[[str], None], ended: threading.Event) -> None:
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
    """Counts by key, told together `seconds` after the first of them, as `lines` puts them into words."""

    def __init__(self, seconds: float, lines: Callable[[Mapping[K, int]], Iterable[str]]) -> None:
        self.seconds = seconds
        self.lines = lines
        self.counts: Counter[K] = Counter()
        _TOLD_AT_THE_END.append(self.tell)

    def add(self, key: K, count: int = 1) -> bool:
        if not self.counts:
            asyncio.get_running_loop().call_later(self.seconds, self.tell)
        self.counts[key] += count
        return self.counts[key] == count

    def tell(self) -> None:
        counts, self.counts = self.counts, Counter()
        for line in self.lines(counts):
            tell(line)


def tell_repeatedly(sums: EventCounts[str], text: str) -> None:
    if sums.add(text):
        tell(text)


def repeats() -> EventCounts[str]:
    return EventCounts(
        MINUTE,
        lambda counts: [f"{text} ({count - 1:,} more within a minute)" for text, count in counts.items() if count > 1],
    )


def tell_all() -> None:
    for write in _TOLD_AT_THE_END:
        write()

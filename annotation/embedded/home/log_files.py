"""Logs that stay small: a file that is full becomes `*.log.1` and a new one begins, and no entry is long.

What a part of the server writes goes through a pipe into its file, so that the file can be turned while the part runs.
"""

import contextlib
import logging
import os
import threading
from pathlib import Path

LARGEST_LOG = 10 * 2**20  # bytes of a file; with the one before it twice as much
_PIECE = 2**16
_LONGEST_LINE = 1_000  # characters
_LONGEST_ENTRY = 100_000
_ENTRY_FORMAT = "%(asctime)s %(levelname)s [%(name)s] %(message)s"


def turn_log(path: Path) -> None:
    """Keep a log as `*.log.1`, in place of the one that was kept before."""
    path.replace(path.with_name(f"{path.name}.1"))


class LogPipe:
    """A pipe whose reading end is poured into a log by a thread of its own."""

    def __init__(self, path: Path, largest: int = LARGEST_LOG) -> None:
        """Open both; `writing` is for the part, to be closed here once it has it."""
        self.path = path
        self.largest = largest
        self.reading, self.writing = os.pipe()
        self.thread = threading.Thread(target=self._pour, daemon=True)
        self.thread.start()

    def _pour(self) -> None:
        """Write what comes, until nobody can write any more. A disk that is full loses lines and stops nobody."""
        with open(self.reading, "rb", buffering=0) as pipe:
            while piece := pipe.read(_PIECE):
                with contextlib.suppress(OSError):
                    self._add(piece)

    def _add(self, piece: bytes) -> None:
        """Write into the file, or, where it is full, at the next end of a line into a new one."""
        with open(self.path, "ab", opener=open_private) as log:
            if log.tell() + len(piece) > self.largest:
                last, end, piece = piece.rpartition(b"\n")
                log.write(last + end)
            else:
                log.write(piece)
                return
        turn_log(self.path)
        with open(self.path, "ab", opener=open_private) as log:
            log.write(piece)


def open_private(path: str, flags: int) -> int:
    """Open a file that only its owner can read."""
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


class ShortEntries(logging.Formatter):
    """Entries whose lines are cut where they hold what clients send."""

    def format(self, record: logging.LogRecord) -> str:
        """The entry as text, in which whatever is left out is counted."""
        entry = "\n".join(_cut(line, _LONGEST_LINE) for line in super().format(record).split("\n"))
        return _cut(entry, _LONGEST_ENTRY)


def _cut(text: str, longest: int) -> str:
    """The text, or its beginning and its end with how many characters are missing between them."""
    missing = len(text) - longest
    if missing <= 0:
        return text
    return f"{text[: longest // 2]} … ({missing:,} characters left out) … {text[-(longest - longest // 2) :]}"


def log_short_entries() -> None:
    """Let this process log so, to stderr, from warnings on."""
    handler = logging.StreamHandler()
    handler.setFormatter(ShortEntries(_ENTRY_FORMAT))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)

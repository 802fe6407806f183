"""The replies of a model in a file of their own: each on the disk before anything is done with it, found again later.

A killed or repeated command finds there what was paid for. A last line that a kill has torn never happened.
"""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

from pipeline.errors import OutputError

# A NamedTuple of texts, some of which may be None: what identifies a reply.
Question = TypeVar("Question", bound=tuple[str | None, ...])


class Replies(Generic[Question]):
    """The replies in an open file: found by their question, added at the end."""

    def __init__(self, descriptor: int, path: Path, kind: type[Question]) -> None:
        """Find every reply in the file to a question of this kind; a last line that a kill has torn is cut off.

        Raises:
            OutputError: a line is not a reply.
        """
        self.descriptor = descriptor
        self.places: dict[Question, tuple[int, int]] = {}
        self.end = 0
        with open(path, "rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    break
                self.places[_read_question(line, path, number, kind)] = (self.end, len(line))
                self.end += len(line)
        os.ftruncate(descriptor, self.end)

    def find(self, question: Question) -> list[str]:
        """The payloads of the reply; empty where there is none yet."""
        if question not in self.places:
            return []
        start, length = self.places[question]
        return [str(payload) for payload in json.loads(os.pread(self.descriptor, length, start))["payloads"]]

    def keep(self, question: Question, payloads: Sequence[str]) -> None:
        """Add a reply; it is on the disk when this returns."""
        fields: dict[str, Any] = question._asdict()  # type: ignore[attr-defined]  # of every NamedTuple
        line = json.dumps({**fields, "payloads": list(payloads)}).encode() + b"\n"
        written = 0
        while written < len(line):
            written += os.pwrite(self.descriptor, line[written:], self.end + written)
        os.fsync(self.descriptor)
        self.places[question] = (self.end, len(line))
        self.end += len(line)


@contextmanager
def open_replies(path: Path, kind: type[Question], command: str) -> Iterator[Replies[Question]]:
    """The replies of the file, made where it is missing, for this process alone while the block runs.

    `command` names what writes such a file, such as `annotation judge`.

    Raises:
        OutputError: a line is not a reply, the file cannot be opened, or another process is writing to it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise OutputError(f"{str(path)!r} cannot be written: {error.strerror}. Name another `--out`.") from error
    try:
        _lock(descriptor, path, command)
        yield Replies(descriptor, path, kind)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: Path, command: str) -> None:
    """Keep the file for this process until it is closed. Windows knows no such lock.

    Raises:
        OutputError: it is another's.
    """
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise OutputError(
            f"Another `{command}` is writing to {str(path)!r}; wait for it or name another `--out`."
        ) from error


def _read_question(line: bytes, path: Path, number: int, kind: type[Question]) -> Question:
    """The question of one line.

    Raises:
        OutputError: the line is not a reply.
    """
    try:
        value: Any = json.loads(line)
        names: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]  # of every NamedTuple
        question = kind(**{name: value[name] for name in names})
        texts = [*value["payloads"][-1:], *(part for part in question if part is not None)]
        if value["payloads"] and all(isinstance(text, str) for text in texts):
            return question
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise OutputError(
        f"Line {number} of {str(path)!r} is not a reply of a model. Remove the line, or name another `--out`."
    )

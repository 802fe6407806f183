"""Every reply of a judging model, kept as soon as it is there: nothing that was answered is ever asked again.

`<out>.raw.jsonl` holds a line for each reply: `record_uuid, task, chunk_id, model, prompt_sha256, payloads`. The last
payload is the reply; those before it, if any, held no word of the model's.
"""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.errors import OutputError


class Question(NamedTuple):
    """What identifies a reply: the unit, the model, and the digest of all that the model sees."""

    record_uuid: str
    task: str
    chunk_id: str | None
    model: str
    prompt_sha256: str


class Replies:
    """The replies in an open file: found by their question, added at the end."""

    def __init__(self, descriptor: int, path: Path) -> None:
        """Find every reply in the file; a last line that a kill has torn is cut off.

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
                self.places[read_question(line, path, number)] = (self.end, len(line))
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
        line = json.dumps({**question._asdict(), "payloads": list(payloads)}).encode() + b"\n"
        written = 0
        while written < len(line):
            written += os.pwrite(self.descriptor, line[written:], self.end + written)
        os.fsync(self.descriptor)
        self.places[question] = (self.end, len(line))
        self.end += len(line)


@contextmanager
def open_replies(path: Path) -> Iterator[Replies]:
    """The replies of the file, made where it is missing, for this process alone while the block runs.

    Raises:
        OutputError: a line is not a reply, the file cannot be opened, or another process is writing to it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise OutputError(f"{str(path)!r} cannot be written: {error.strerror}. Name another `--out`.") from error
    try:
        lock(descriptor, path)
        yield Replies(descriptor, path)
    finally:
        os.close(descriptor)


def lock(descriptor: int, path: Path) -> None:
    """Nothing; the file is this process's until it is closed. Windows knows no such lock.

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
            f"Another `annotation judge` is writing to {str(path)!r}; wait for it or name another `--out`."
        ) from error


def read_question(line: bytes, path: Path, number: int) -> Question:
    """The question of one line.

    Raises:
        OutputError: the line is not a reply.
    """
    try:
        value: Any = json.loads(line)
        question = Question(**{name: value[name] for name in Question._fields})
        texts = [*value["payloads"][-1:], *(part for part in question if part is not None)]
        if value["payloads"] and all(isinstance(text, str) for text in texts):
            return question
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise OutputError(
        f"Line {number} of {str(path)!r} is not a reply of a judging model. Remove the line, or name another `--out`."
    )

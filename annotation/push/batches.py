"""Bodies on their way to Argilla: kept on disk until the whole difference is known, then sent in whole batches.

A batch is one transaction of the server's, so that a push that is killed leaves whole batches and goes on from there.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from tempfile import TemporaryFile
from typing import IO, Any

from annotation.campaign.setup import JuryDataset
from annotation.client import BATCH_BYTES, BATCH_RECORDS, Argilla
from annotation.labels import TASKS, TaskName
from annotation.push.diff import Target, Unit
from pipeline.errors import ArgillaError

POSITION = re.compile(r"position (\d+)")
# One INSERT with 9 values for each suggestion, and PostgreSQL's driver takes 32,767 values (asyncpg).
BATCH_SUGGESTIONS = 3640
WRITTEN = frozenset({"new", "updated", "revised"})


class Batch:
    """Bodies waiting for one dataset, sent whenever the server takes no more at once."""

    def __init__(
        self,
        argilla: Argilla,
        dataset: JuryDataset,
        dry_run: bool,
        receive: Callable[[Sequence[Mapping[str, Any]]], None] = lambda items: None,
    ) -> None:
        """Start empty; `receive` is told how Argilla describes the records of each batch after it is in."""
        self.argilla = argilla
        self.dataset = dataset
        self.dry_run = dry_run
        self.receive = receive
        self.bodies: list[dict[str, Any]] = []
        self.bytes = self.suggestions = 0

    def add(self, body: dict[str, Any]) -> None:
        """Keep the body; send those before it where they would be too many or too large together."""
        size, suggestions = len(json.dumps(body)), len(body.get("suggestions", ()))
        full = len(self.bodies) == BATCH_RECORDS or self.bytes + size > BATCH_BYTES
        if self.bodies and (full or self.suggestions + suggestions > BATCH_SUGGESTIONS):
            self.send()
        self.bodies.append(body)
        self.bytes += size
        self.suggestions += suggestions

    def send(self) -> None:
        """Send what waits, in a dry run nowhere.

        Raises:
            ArgillaError: the server refused the batch as a whole; the message names the record that it minds.
        """
        if self.bodies and not self.dry_run:
            path = f"/datasets/{self.dataset.id}/records/bulk"
            try:
                self.receive(self.argilla.request("PUT", path, json={"items": self.bodies})["items"])
            except ArgillaError as error:
                raise type(error)(f"{error}{self.named_position(str(error))}") from error
        self.bodies, self.bytes, self.suggestions = [], 0, 0

    def named_position(self, message: str) -> str:
        """Which record the server's "position N" is; empty where it names none."""
        found = POSITION.search(message)
        if found is None or int(found[1]) >= len(self.bodies):
            return ""
        return f" That is {self.bodies[int(found[1])]['external_id']!r} in {self.dataset.name!r}."


class Waiting:
    """What one place is to get, in temporary files that end with the process, however it ends."""

    def __init__(self, target: Target, new: Mapping[TaskName, IO[bytes]], changed: IO[bytes]) -> None:
        """Start empty."""
        self.target = target
        self.count = 0
        self._new = new
        self._changed = changed

    def add(self, units: Sequence[Unit]) -> None:
        """Keep those of a record's units that are to be written; together where one of them replaces another text."""
        written = [unit for unit in units if unit.fate in WRITTEN]
        self.count += len(written)
        if any(unit.fate == "updated" for unit in written):
            write_line(self._changed, written)
            return
        for unit in written:
            write_line(self._new[unit.task], unit.body)

    def new(self, task: TaskName) -> Iterator[dict[str, Any]]:
        """The bodies of records of which nothing is there yet, in the order in which they came."""
        yield from read_lines(self._new[task])

    def changed(self) -> Iterator[list[Unit]]:
        """The units of each record that changes, in the order in which they came."""
        for units in read_lines(self._changed):
            yield [Unit(*unit) for unit in units]


@contextmanager
def opened_waiting(target: Target) -> Iterator[Waiting]:
    """What the place is to get, empty; its files are gone after the block."""
    with ExitStack() as stack:
        new = {task: stack.enter_context(TemporaryFile()) for task in TASKS}
        yield Waiting(target, new, stack.enter_context(TemporaryFile()))


def write_line(file: IO[bytes], value: Any) -> None:
    """Nothing; the value is a line of the file."""
    file.write(json.dumps(value).encode("ascii") + b"\n")


def read_lines(file: IO[bytes]) -> Iterator[Any]:
    """The values of the file's lines."""
    file.seek(0)
    yield from map(json.loads, file)

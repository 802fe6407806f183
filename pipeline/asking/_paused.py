"""Turns that Claude paused: their bodies so far, kept until a later request or batch has finished them.

Source: pipeline/contracts/run_folder.md#paused-turns.
"""

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from pydantic import ValidationError

from pipeline.errors import OutputError
from pipeline.schema import Frozen
from pipeline.staging import staged_file
from pipeline.text.terminal import counted

PAUSED = "paused.jsonl"


class PausedLine(Frozen):
    """One body of a turn that is not finished."""

    answer_id: str
    """The call that it belongs to."""
    batch: str
    """The name of the batch that it came in; `asked 2` for the second body of a turn that was not asked in batches."""
    text: str
    """The body as it was sent."""
    digest: str = ""
    """SHA-256 of what the user said of the call when the turn began; empty in folders of earlier versions."""


class _Place(NamedTuple):
    """Where a line stands in the file, its first byte and the one after it, and the digest in it."""

    start: int
    end: int
    digest: str


class PausedTurns:
    """The paused turns of a run folder, which this process alone writes to."""

    def __init__(self, out: Path) -> None:
        """Read which turns are paused; a torn last line is cut off, for its batch is collected again.

        Raises:
            OutputError: a line before the last is not one of ours.
        """
        self.path = out / PAUSED
        self.places: dict[str, dict[str, _Place]] = {}
        self.begun_anew: set[str] = set()
        whole = 0
        for line, start, end in _read_lines(self.path):
            self.places.setdefault(line.answer_id, {})[line.batch] = _Place(start, end, line.digest)
            whole = end
        if self.path.is_file() and whole < self.path.stat().st_size:
            os.truncate(self.path, whole)

    def bodies(self, answer_id: str, digest: str, but: str = "") -> list[str]:
        """The bodies of a call's turn so far, in their order, `but` for one batch's; none where it is not paused.

        A turn that began with other words than those of this `digest` is none to go on with: it is begun anew.
        """
        turn: list[_Place] = []
        begun_by = ""
        for batch, place in self.places.get(answer_id, {}).items():
            if begun_by and place.digest not in ("", begun_by):
                turn = []
            begun_by = place.digest or begun_by
            turn += [place] if batch != but else []
        if begun_by not in ("", digest):
            self.begun_anew.add(answer_id)
            return []
        if not turn:
            return []
        with open(self.path, "rb") as file:
            lines = [_bytes_at(file, place) for place in turn]
        return [PausedLine.model_validate_json(line).text for line in lines]

    def keep(self, answer_id: str, batch: str, text: str, digest: str) -> None:
        """Add the body that came in the batch; it is on the disk when this returns, and once however often it comes."""
        if batch in self.places.get(answer_id, {}):
            return
        line = PausedLine(answer_id=answer_id, batch=batch, text=text, digest=digest).model_dump_json() + "\n"
        with open(self.path, "ab") as file:
            start = file.tell()
            file.write(line.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
            self.places.setdefault(answer_id, {})[batch] = _Place(start, file.tell(), digest)

    def told_anew(self) -> list[str]:
        """The line that says how many turns were begun anew; none where none was."""
        if not self.begun_anew:
            return []
        turns = counted(len(self.begun_anew), "paused turn")
        return [
            f"claude: {turns} begun anew, for the model, the options or the prompt are others now; what had been "
            "brought by then is paid for and not used."
        ]

    def forget(self, answered: Collection[str]) -> None:
        """Drop the turns that have an answer by now; without any left the file goes."""
        left = [answer_id for answer_id in self.places if answer_id not in answered]
        if len(left) == len(self.places):
            return
        if not left:
            self.path.unlink()
            self.places = {}
            return
        places: dict[str, dict[str, _Place]] = {}
        with open(self.path, "rb") as old, staged_file(self.path) as new:
            for answer_id in left:
                for batch, place in self.places[answer_id].items():
                    at = new.tell()
                    new.write(_bytes_at(old, place))
                    places.setdefault(answer_id, {})[batch] = _Place(at, new.tell(), place.digest)
        self.places = places


def _bytes_at(file: BinaryIO, place: _Place) -> bytes:
    """The bytes of the file at the place."""
    file.seek(place.start)
    return file.read(place.end - place.start)


def _read_lines(path: Path) -> Iterator[tuple[PausedLine, int, int]]:
    """Each whole line, with the byte at which it begins and the one after it.

    Raises:
        OutputError: a line before the last is not one of ours.
    """
    if not path.is_file():
        return
    end = 0
    with open(path, "rb") as file:
        for number, raw in enumerate(file, start=1):
            start, end = end, end + len(raw)
            if not raw.endswith(b"\n"):
                return
            try:
                line = PausedLine.model_validate_json(raw)
            except ValidationError as error:
                raise OutputError(
                    f"`{PAUSED}` in {str(path.parent)!r}, line {number} is not a body of a paused turn. Nothing was "
                    "sent. Give the file back as it was; without the line its call is asked from the beginning."
                ) from error
            yield line, start, end

"""Files with a record a line that are only added to; a kill may have torn the last line."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from pipeline.core.errors import OutputError

_Record = TypeVar("_Record", bound=BaseModel)


class Place(NamedTuple):
    """Where a line stands in its file: its first byte, and the one after it."""

    start: int
    end: int


def read_records(path: Path, kind: type[_Record], advice: str) -> Iterator[tuple[_Record, Place]]:
    """Each whole line with its place; none without a file. An OutputError with `advice` for one of another kind."""
    if not path.is_file():
        return
    end = 0
    with open(path, "rb") as file:
        for number, raw in enumerate(file, start=1):
            start, end = end, end + len(raw)
            if not raw.endswith(b"\n"):
                return
            if not raw.strip():
                continue
            try:
                record = kind.model_validate_json(raw)
            except ValidationError as error:
                raise OutputError(f"`{path.name}` in {str(path.parent)!r}, line {number} is not {advice}") from error
            yield record, Place(start, end)


def read_at(path: Path, place: Place) -> bytes:
    with open(path, "rb") as file:
        file.seek(place.start)
        return file.read(place.end - place.start)


def append_line(path: Path, line: str) -> Place:
    """Add the line, which is on the disk when this returns, and give its place."""
    with open(path, "ab") as file:
        start = file.tell()
        file.write(f"{line}\n".encode())
        file.flush()
        os.fsync(file.fileno())
        return Place(start, file.tell())

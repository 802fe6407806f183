"""JSON files and JSON Lines of a run, checked on the way in, whole or not at all on the way out."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from pydantic import BaseModel, ValidationError

from pipeline.errors import BadRowsError, InputError
from pipeline.staging import staged_file

Model = TypeVar("Model", bound=BaseModel)


def read_json(path: Path, model: type[Model]) -> Model | None:
    """The file's content; None where there is no such file.

    Raises:
        InputError: it is not JSON, or not as the model wants it.
    """
    if not path.is_file():
        return None
    with told_plainly(path):
        return model.model_validate_json(path.read_bytes())


def read_text(path: Path) -> str:
    """The file's text, unchanged; empty where there is no such file.

    Raises:
        InputError: it is not UTF-8.
    """
    if not path.is_file():
        return ""
    with told_plainly(path):
        return path.read_bytes().decode()


@contextmanager
def told_plainly(path: Path) -> Iterator[None]:
    """Turn what is wrong with a file's content into our error.

    Raises:
        InputError: it is not UTF-8, not JSON, or not as it should be.
    """
    try:
        yield
    except ValidationError as error:
        raise InputError(f"{str(path)!r} is not as it should be: {'; '.join(problems(error))}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{str(path)!r} is not UTF-8: {error.reason} at byte {error.start}.") from error


def problems(error: ValidationError) -> list[str]:
    """What is wrong, field by field, without the values."""
    found = [(".".join(map(str, each["loc"])), each["msg"]) for each in error.errors(include_input=False)]
    return [f"`{place}`: {message}" if place else message for place, message in found]


def read_lines(path: Path, model: type[Model], torn_end: bool = False) -> tuple[Model, ...]:
    """The values of a file of JSON Lines in order, blank lines passed over; empty where there is no such file.

    With `torn_end` a last line without its line end is passed over where it is no value: a kill tore it.

    Raises:
        BadRowsError: lines that are not as the model wants them, each with its reason.
    """
    lines = path.read_bytes().split(b"\n") if path.is_file() else []
    found: list[Model] = []
    bad: list[str] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            found.append(model.model_validate_json(line))
        except ValidationError as error:
            if not (torn_end and number == len(lines)):
                bad.append(f"line {number}: {'; '.join(problems(error))}")
    if bad:
        raise BadRowsError(f"{str(path)!r} has {len(bad)} lines that are not as they should be:", bad)
    return tuple(found)


def append_line(path: Path, value: BaseModel) -> None:
    """Add the value as a line, on the disk when this returns; a last line that a kill tore gives way to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "ab+") as file:
        mend_end(file, path)
        file.write(line_of(value))
        file.flush()
        os.fsync(file.fileno())


def mend_end(file: BinaryIO, path: Path) -> None:
    """End the file's last line where it is whole, and cut it off where a kill tore it."""
    whole = path.read_bytes()
    last = whole[whole.rfind(b"\n") + 1 :]
    if not last:
        return
    try:
        json.loads(last)
        file.write(b"\n")
    except ValueError:
        file.truncate(len(whole) - len(last))


def line_of(value: BaseModel) -> bytes:
    """The value as a line of JSON, without what is None."""
    return (json_text(value.model_dump(mode="json", exclude_none=True), indent=None) + "\n").encode(errors="replace")


def write_json(path: Path, value: BaseModel) -> None:
    """Write the value as a file of its own."""
    write_text(path, json_text(value.model_dump(mode="json")) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write the text as a file of its own; a lone surrogate, which no file can carry, becomes `?`."""
    with staged_file(path) as file:
        file.write(text.encode(errors="replace"))


def json_text(value: Any, indent: int | None = 2) -> str:
    """The value as JSON in plain UTF-8."""
    return json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)

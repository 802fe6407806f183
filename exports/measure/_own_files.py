"""A folder for the files of one command: earlier ones of ours give way all at once, nobody else's ever does."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from exports.csv.folder import made_parents
from pipeline.asking.run_folder import locked_folder
from pipeline.errors import OutputError

_HEAD = 4096


class OwnFiles(NamedTuple):
    """What one command writes to a folder, and how it knows what it wrote earlier."""

    command: str
    """The command, such as `exports agreement`."""
    work_folder: str
    """Name of the folder within in which the files are written first."""
    marks: Mapping[str, Callable[[Path], bool]]
    """Whether a file of this name is one of ours, whatever version wrote it, by name."""


def begins(mark: bytes) -> Callable[[Path], bool]:
    """A check whether a file begins like this; a spreadsheet's BOM does not matter."""
    return lambda path: _head(path).startswith(mark)


def holds(mark: bytes) -> Callable[[Path], bool]:
    """A check whether a file holds this near its beginning."""
    return lambda path: mark in _head(path)


def has_keys(*names: str) -> Callable[[Path], bool]:
    """A check whether a file is a JSON object with these keys."""

    def check(path: Path) -> bool:
        try:
            found = json.loads(path.read_bytes())
        except ValueError:
            return False
        return isinstance(found, dict) and set(names) <= found.keys()

    return check


def _head(path: Path) -> bytes:
    """The file's first bytes."""
    with path.open("rb") as file:
        return file.read(_HEAD).removeprefix(b"\xef\xbb\xbf")


def check_own_files(folder: Path, own: OwnFiles) -> None:
    """Refuse a folder in which somebody else's file stands in the way of ours.

    Raises:
        OutputError: a file that has the name of one of ours is somebody else's.
    """
    for name, is_ours in own.marks.items():
        path = folder / name
        if path.exists() and not (path.is_file() and is_ours(path)):
            raise OutputError(f"`{path}` is not a file of `{own.command}`. Move it or choose another `--out`.")


@contextmanager
def replaced_files(folder: Path, own: OwnFiles) -> Iterator[Path]:
    """An empty folder to write to; its files take their places in `folder` when the block ends well.

    `folder` is made, and files of ours in it that are not written anew are removed. After an error nothing in it has
    changed. The work folder has the same name each time, so that what a killed run left is mended by the next.

    Raises:
        OutputError: a file of such a name is not ours, another run is writing to the folder, or it cannot be written.
    """
    try:
        with (
            made_parents(folder / own.work_folder),
            locked_folder(folder / own.work_folder, own.command) as work,
        ):
            try:
                for left in work.iterdir():
                    left.unlink()
                check_own_files(folder, own)
                yield work
                # Not the staged writer: all of them change or, after an error before this line, none.
                written = sorted(work.iterdir())
                for path in written:
                    os.replace(path, folder / path.name)
                for name in own.marks.keys() - {path.name for path in written}:
                    (folder / name).unlink(missing_ok=True)  # of an earlier run on other data
            finally:
                shutil.rmtree(work, ignore_errors=True)
    except OSError as error:
        raise OutputError(f"`{folder}` cannot be written: {error.strerror}. Choose another `--out`.") from error

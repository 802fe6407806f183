"""Files appear whole or not at all: written beside their place and moved in at the end."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4


@contextmanager
def staged_file(path: Path) -> Iterator[BinaryIO]:
    """A new file open for writing bytes, which takes the place of `path` when the block ends without an error.

    After an error nothing of it is left and an earlier `path` is untouched. Missing folders are made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not `tempfile`: its files are for their owner only, and the result should have the rights that any new file gets.
    part = path.with_name(f".{path.name}.{uuid4().hex}.part")
    try:
        with open(part, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def write_private(path: Path, text: str) -> None:
    """Write a file that nobody else can read at any moment; it appears whole or not at all."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)

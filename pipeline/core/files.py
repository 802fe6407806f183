"""The one writer of files: a file appears whole or not at all, and what is no file is written to, never replaced.

And files with a record a line that are only added to, whose last line a kill may have torn.
"""

import errno
import hashlib
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, TypeVar
from uuid import uuid4

from pipeline.core.errors import OutputError

if TYPE_CHECKING:
    from pydantic import BaseModel

ANYBODY, OWNER_ONLY = 0o666, 0o600
_OWN_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")
"""Names of what this process has open: Linux and macOS lead `/dev/stdout` there."""


@contextmanager
def output_errors(what: str, advice: str = "") -> Iterator[None]:
    """An OSError of the block becomes an OutputError: `what` failed, the system's reason, and what to do."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{what}: {error.strerror or error}. {advice}".rstrip()) from error


@contextmanager
def staged_file(path: Path, mode: int = ANYBODY) -> Iterator[BinaryIO]:
    """A new file open for writing bytes, which takes the place of `path` when the block ends without an error.

    After an error nothing of it is left and an earlier `path` is untouched. Missing folders are made. Of a symbolic
    link the target is replaced. Pipes, terminals and devices are written to as the bytes come; an OutputError for
    folders, sockets and disks. `mode` are the file's rights from its first byte on, less the umask, whatever an earlier
    file had.
    """
    stream = _open_stream(path)
    if stream:
        with stream:
            yield stream
        return
    target = _followed(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    # Not `tempfile`: its files are for their owner only, and the result should have the rights that any new file gets.
    part = target.with_name(f".{target.name}.{uuid4().hex}.part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def write_private(path: Path, text: str) -> None:
    """Write a file that nobody else can read at any moment; it appears whole or not at all."""
    with staged_file(path, OWNER_ONLY) as file:
        file.write(text.encode())


def cut_off(path: Path, end: int) -> bool:
    """Cut off what is in the file, where there is one, from byte `end` on; whether anything was there."""
    is_longer = path.is_file() and end < path.stat().st_size
    if is_longer:
        os.truncate(path, end)  # one call, so that a second kill leaves either file, and never a copy of gigabytes
    return is_longer


def _open_stream(path: Path) -> BinaryIO | None:
    """Open the path where it is a pipe, a terminal or a device; None where it is a file or free."""
    own = _OWN_DESCRIPTOR.fullmatch(str(_followed(path)))
    if own:  # opened anew by its name, a file behind `/dev/stdout` would be written from its beginning
        return os.fdopen(os.dup(int(own[1])), "wb")
    try:
        kind = path.stat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISCHR(kind) or stat.S_ISFIFO(kind):
        # Whatever a staged file would be moved over is lost to the whole machine: once it was /dev/null.
        return open(path, "wb")
    if stat.S_ISDIR(kind):
        raise OutputError(f"`{path}` cannot be written: it is a folder. Name a file.")
    if not stat.S_ISREG(kind):
        raise OutputError(f"`{path}` cannot be written: it is neither a file nor a pipe. Name another one.")
    return None


def _followed(path: Path) -> Path:
    """Where the path's symbolic links lead, up to something that is no link or is open in this process.

    Not `Path.resolve`, which takes `/dev/stdout` further, to a file that must not be replaced or to no name at all.
    """
    path = path.absolute()
    for _ in range(40):  # as many as Linux itself follows before it calls them a circle
        if not path.is_symlink() or _OWN_DESCRIPTOR.fullmatch(str(path)):
            return path
        path = path.parent / path.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO)
"""What the system says of a disk that takes no more."""


@contextmanager
def locked_folder(out: Path, command: str = "pipeline ask", patience: float = 0) -> Iterator[Path]:
    """The folder, made where it is missing, for this process alone until the block ends; or an OutputError.

    `patience` is how many seconds another process is waited for.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise OutputError(f"{str(out)!r} is not a folder, and none can be made there; name another one.") from error
    if sys.platform == "win32":  # no fcntl there; a second process on the same folder is on its own
        yield out
        return
    import fcntl

    descriptor = os.open(out, os.O_RDONLY)
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError as error:
            if time.monotonic() >= end:
                os.close(descriptor)
                raise OutputError(
                    f"Another `{command}` is writing to {str(out)!r}; wait for it or name another folder."
                ) from error
            time.sleep(0.02)
    try:
        yield out
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        advice = "Mend that and give the same command again; what was answered before is kept."
        raise OutputError(f"{str(out)!r} cannot be written to: {error.strerror}. {advice}") from error
    finally:
        os.close(descriptor)


def time_now() -> str:
    return datetime.now(UTC).isoformat()


SETTINGS_FILE = "citejury.toml"


def sha256_of(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


_Record = TypeVar("_Record", bound="BaseModel")


class Place(NamedTuple):
    """Where a line stands in its file: its first byte, and the one after it."""

    start: int
    end: int


def read_records(path: Path, kind: type[_Record], advice: str, mend: bool = False) -> Iterator[tuple[_Record, Place]]:
    """Each whole line with its place; none without a file. An OutputError with `advice` for one of another kind.

    To `mend` is to cut off a torn last line when all others were read.
    """
    from pydantic import ValidationError  # here, because commands import this module at their top

    if not path.is_file():
        return
    end = 0
    with open(path, "rb") as file:
        for number, raw in enumerate(file, start=1):
            if not raw.endswith(b"\n"):
                break
            start, end = end, end + len(raw)
            if not raw.strip():
                continue
            try:
                record = kind.model_validate_json(raw)
            except ValidationError as error:
                raise OutputError(f"`{path.name}` in {str(path.parent)!r}, line {number} is not {advice}") from error
            yield record, Place(start, end)
    if mend:
        cut_off(path, end)


def read_at(path: Path, place: Place) -> bytes:
    with open(path, "rb") as file:
        file.seek(place.start)
        return file.read(place.end - place.start)


def append_line(path: Path, line: str) -> Place:
    """Add the line, which is on the disk when this returns, or nothing of it where the disk is full; its place."""
    raw = f"{line}\n".encode()
    with open(path, "ab", buffering=0) as file:
        start = file.seek(0, os.SEEK_END)
        try:
            written = 0
            while written < len(raw):
                written += file.write(raw[written:])
            os.fsync(file.fileno())
        except OSError:
            file.truncate(start)  # later lines would be written behind half a line
            raise
    return Place(start, start + len(raw))

"""A backup of the embedded Argilla in one file, made while it runs, and the home made from it again.

The file is a ZIP archive that only its owner can read: it holds the owner's password and key, and all answers.

    manifest.json     versions, time, size and SHA-256 of the others
    secrets.json      as in the home
    data/argilla.db   the database at one moment, checked

Background jobs that waited at that moment are not in it, nor are logs.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
import sqlite3
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Literal

from pydantic import AwareDatetime, ValidationError

from annotation.embedded.home.folder import (
    DATABASE_FILE,
    LOCK_FILE,
    SECRETS_FILE,
    SPACE_NEEDED,
    VERSIONS_FILE,
    holder_of,
)
from annotation.embedded.home.versions import (
    UNKNOWN_RELEASE,
    Versions,
    read_versions,
    refuse_newer,
    schema_revision,
    software_versions,
)
from pipeline.errors import InputError, OutputError
from pipeline.schema import Frozen
from pipeline.staging import write_private

_MANIFEST_FILE = "manifest.json"
_MANIFEST_BYTES = 64 * 1024  # a manifest is far smaller; whatever claims more is none of ours
_STORED_FILES = (SECRETS_FILE, DATABASE_FILE)
_CHUNK = 1 << 20
_BUSY_SECONDS = 60.0
_COMPRESSION = 1  # zlib's fastest: half the size of the database, at a fifth of the time of its default


class StoredFile(Frozen):
    """A file in a backup."""

    size: int
    """Its length in bytes."""
    sha256: str
    """Its checksum, in hexadecimal digits."""


class BackupManifest(Frozen):
    """What a backup says of itself."""

    citejury_backup: Literal[1] = 1
    """Version of this layout."""
    created_at: AwareDatetime
    """When it was made, in UTC."""
    versions: Versions
    """The software that the home was used with."""
    files: dict[str, StoredFile]
    """The other files, by their path in the home."""


def write_backup(home: Path, path: Path) -> BackupManifest:
    """The manifest of a new backup of the home, whose server may run; an earlier backup at `path` is replaced.

    The answers are those of one moment. The file appears whole or not at all, for its owner only.

    Raises:
        InputError: there is no server's home, or its database is damaged.
        OutputError: `path` is something else than a backup, is being written, or cannot be written.
    """
    home, path = home.absolute(), path.resolve()  # of a link the target is replaced
    _check_home(home)
    _refuse_other_file(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _workshop(path) as folder:
            copy = folder / "argilla.db"
            _copy_database(home / DATABASE_FILE, copy)
            secrets = folder / "secrets.json"
            shutil.copyfile(home / SECRETS_FILE, secrets)
            stored = {SECRETS_FILE: secrets, DATABASE_FILE: copy}
            versions = read_versions(home) or software_versions().model_copy(update={"citejury": UNKNOWN_RELEASE})
            manifest = BackupManifest(
                created_at=datetime.now(UTC).replace(microsecond=0),
                versions=versions.model_copy(update={"schema_revision": schema_revision(copy)}),
                files={name: _stored_file(file) for name, file in stored.items()},
            )
            archive = folder / "archive.zip"
            _write_archive(archive, manifest, stored)
            os.replace(archive, path)  # not the staged writer: what a kill leaves stands in the workshop, and goes
    except OSError as error:
        raise OutputError(
            f"The backup `{path}` cannot be written: {error.strerror or error}. Make room, or name another file."
        ) from error
    return manifest


def _check_home(home: Path) -> None:
    """Check that the folder holds a server.

    Raises:
        InputError: it does not.
    """
    missing = [name for name in _STORED_FILES if not (home / name).is_file()]
    if missing:
        raise InputError(
            f"The folder `{home}` holds no server: there is no `{missing[0]}`. Name the home of one with `--home`."
        )


def _refuse_other_file(path: Path) -> None:
    """Refuse a `path` that holds anything but an earlier backup.

    Raises:
        OutputError: something else is there.
    """
    if not path.exists():
        return
    try:
        read_manifest(path)
    except InputError as error:
        raise OutputError(f"`{path}` is there and is no backup, so it is left alone. Name another file.") from error


@contextlib.contextmanager
def _workshop(path: Path) -> Iterator[Path]:
    """An empty folder beside `path` for its parts, gone afterwards; what a killed predecessor left goes first.

    Raises:
        OutputError: another process works on the same `path`.
    """
    folder = path.with_name(f".{path.name}.part")
    folder.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OutputError(f"Another process is writing `{path}`. Wait until it has ended.") from error
        try:
            _empty(folder)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)


def _empty(folder: Path) -> None:
    """Remove what is in the folder."""
    for entry in folder.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _copy_database(source: Path, copy: Path) -> None:
    """Copy a database as it is at one moment, and look through the copy.

    In one step: SQLite begins anew whenever somebody writes between two steps, and under load that is always.

    Raises:
        InputError: it is damaged, or locked for too long.
    """
    try:
        with (
            contextlib.closing(sqlite3.connect(source, timeout=_BUSY_SECONDS)) as original,
            contextlib.closing(sqlite3.connect(copy)) as target,
        ):
            original.backup(target)
            # One file, whatever the original's way of writing; the server sets its own again at its start.
            target.execute("PRAGMA journal_mode=DELETE")
        found = _problems(copy)
    except sqlite3.Error as error:
        raise InputError(f"The database `{source}` cannot be copied: {error}.") from error
    if found:
        raise InputError(f"The database `{source}` is damaged: {found}. Go back to an earlier backup.")


def _problems(database: Path) -> str:
    """What SQLite finds wrong in a database; empty where nothing is."""
    with contextlib.closing(sqlite3.connect(database)) as connection:
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    return "" if found == "ok" else str(found)


def _stored_file(file: Path) -> StoredFile:
    """Length and checksum of a file."""
    with open(file, "rb") as content:
        return StoredFile(size=file.stat().st_size, sha256=hashlib.file_digest(content, "sha256").hexdigest())


def _write_archive(path: Path, manifest: BackupManifest, stored: dict[str, Path]) -> None:
    """Write the archive, for its owner only from its first byte on."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w+b") as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=_COMPRESSION) as archive:
            archive.writestr(_MANIFEST_FILE, manifest.model_dump_json(indent=2) + "\n")
            for name, source in stored.items():
                archive.write(source, name)
        file.flush()
        os.fsync(file.fileno())


def read_manifest(path: Path) -> BackupManifest:
    """What the backup says of itself.

    Raises:
        InputError: it cannot be read, or is no backup.
    """
    try:
        with zipfile.ZipFile(path) as archive, archive.open(_MANIFEST_FILE) as member:
            manifest = BackupManifest.model_validate(json.loads(member.read(_MANIFEST_BYTES)))
    except OSError as error:
        raise InputError(f"The backup `{path}` cannot be read: {error.strerror or error}.") from error
    except (zipfile.BadZipFile, KeyError, ValueError, ValidationError, RuntimeError, NotImplementedError) as error:
        raise InputError(f"`{path}` is no backup of `citejury annotation backup`, or it is damaged.") from error
    if set(manifest.files) != set(_STORED_FILES):
        raise InputError(f"`{path}` is no whole backup: it does not hold {' and '.join(_STORED_FILES)}.")
    return manifest


def unpack(path: Path, manifest: BackupManifest, folder: Path) -> None:
    """Write the backup's files into the folder, each for its owner only, and hold them against the manifest.

    Raises:
        InputError: one of them is not what the manifest says, or the database is damaged.
    """
    with contextlib.ExitStack() as stack:
        try:
            archive = stack.enter_context(zipfile.ZipFile(path))
            for name, stored in manifest.files.items():
                target = folder / name
                target.parent.mkdir(mode=0o700, exist_ok=True)
                descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with archive.open(name) as member, os.fdopen(descriptor, "wb") as file:
                    whole = _copied_whole(member, file, stored)  # type: ignore[arg-type]  # reads like a file
                if not whole:
                    raise InputError(f"The backup `{path}` is damaged: `{name}` is not what was stored.")
        except (zipfile.BadZipFile, KeyError, EOFError, RuntimeError, NotImplementedError) as error:
            raise InputError(f"The backup `{path}` is damaged: {error}.") from error
    try:
        found = _problems(folder / DATABASE_FILE)
    except sqlite3.Error as error:
        found = str(error)
    if found:
        raise InputError(f"The database in the backup `{path}` is damaged: {found}.")


def _copied_whole(member: BinaryIO, file: BinaryIO, stored: StoredFile) -> bool:
    """Whether the member, now copied to the file and on the disk, has the length and the checksum that it should."""
    digest, left = hashlib.sha256(), stored.size
    while chunk := member.read(_CHUNK):
        left -= len(chunk)
        if left < 0:  # more than it says of itself: nothing fills the disk
            return False
        digest.update(chunk)
        file.write(chunk)
    file.flush()
    os.fsync(file.fileno())
    return left == 0 and digest.hexdigest() == stored.sha256


def restore_home(path: Path, home: Path) -> BackupManifest:
    """The manifest of the backup from which the home is made; a start then finds the answers and secrets of that time.

    Every file is held against its checksum, and the database looked through, before the home is there.

    Raises:
        InputError: the file is no backup, or is damaged.
        OutputError: the home is in use, not empty or cannot be written.
        ServerStartError: the backup is of newer software.
    """
    home = home.absolute()
    _refuse_used_folder(home)
    manifest = read_manifest(path)
    refuse_newer(manifest.versions, manifest.versions.schema_revision, f"The home of the backup `{path}`")
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        _refuse_full_disk(home.parent, sum(stored.size for stored in manifest.files.values()))
        with _workshop(home) as folder:
            made = folder / "home"
            made.mkdir(mode=0o700)
            unpack(path, manifest, made)
            write_private(made / VERSIONS_FILE, manifest.versions.model_dump_json(indent=2) + "\n")
            os.rename(made, home)  # takes the place of an empty folder, of nothing else
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            _refuse_used_folder(home)
        raise OutputError(f"The home `{home}` cannot be made: {error.strerror or error}.") from error
    return manifest


def _refuse_used_folder(home: Path) -> None:
    """Refuse a folder that is not missing or empty.

    Raises:
        OutputError: a server runs in it, something is in it, or it is a file.
    """
    if not os.path.lexists(home):
        return
    if not home.is_dir() or home.is_symlink():
        raise OutputError(f"`{home}` is no folder. Name a new one with `--home`.")
    if (holder := holder_of(home / LOCK_FILE)) is not None:
        where = holder.get("url", "an unknown address")
        raise OutputError(f"The folder `{home}` is in use by the server at {where}. Name a new one with `--home`.")
    if any(home.iterdir()):
        raise OutputError(
            f"The folder `{home}` is not empty, and nothing in it is overwritten. Name a new one with `--home`, or "
            "move this one away."
        )


def _refuse_full_disk(folder: Path, needed: int) -> None:
    """Check that so many bytes, and what a start needs, have room in the folder.

    Raises:
        OutputError: they have not.
    """
    free, wanted = shutil.disk_usage(folder).free, needed + SPACE_NEEDED
    if free < wanted:
        raise OutputError(
            f"The disk of `{folder}` has {free // 2**20} MB left, and the home needs {wanted // 2**20} MB. "
            "Make room, or name a folder on another disk with `--home`."
        )

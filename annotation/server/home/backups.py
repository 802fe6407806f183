"""What a backup holds, whether it is whole, and where those of a home went.

    manifest.json     versions, time, size and SHA-256 of the others
    secrets.json      as in the home
    data/argilla.db   the database at one moment, checked

Whoever names a backup to us may have it from somebody else: only these three members of the ZIP archive are read, each
to the length that the manifest gives and no further. Only its owner can read it.
"""

import contextlib
import errno
import hashlib
import json
import os
import sqlite3
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Literal

from pydantic import AwareDatetime, Field, ValidationError

from annotation.server.home.folder import BACKUPS_FILE, DATABASE_FILE, SECRETS_FILE, problems
from annotation.server.home.versions import Versions
from pipeline.core.errors import CitejuryError, InputError
from pipeline.core.files import write_private
from pipeline.core.schema import Frozen

MANIFEST_FILE = "manifest.json"
STORED_FILES = (SECRETS_FILE, DATABASE_FILE)
_SMALL_BYTES = 64 * 1024  # a manifest and secrets are far smaller; whatever claims more is none of ours
_MOST = 200  # backups that the home remembers beside those that the server removes by itself


class StoredFile(Frozen):
    size: int = Field(ge=0)
    """Its length in bytes."""
    sha256: str
    """Its checksum, in hexadecimal digits."""


class BackupManifest(Frozen):
    citejury_backup: Literal[1] = 1
    """Version of this layout."""
    created_at: AwareDatetime
    """When it was made, in UTC."""
    versions: Versions
    """The software that the home was used with."""
    files: dict[str, StoredFile]
    """The other files, by their path in the home."""


def read_manifest(path: Path) -> BackupManifest:
    with _opened(path) as archive:
        with _member(archive, MANIFEST_FILE) as member:
            said = member.read(_SMALL_BYTES + 1)
        if len(said) > _SMALL_BYTES:
            raise ValueError("its manifest is longer than any")
        manifest = BackupManifest.model_validate(json.loads(said))
    if set(manifest.files) != set(STORED_FILES):
        raise InputError(f"`{path}` is no whole backup: it does not hold {' and '.join(STORED_FILES)}.")
    if manifest.files[SECRETS_FILE].size > _SMALL_BYTES:
        raise InputError(f"`{path}` is no backup of ours: its `{SECRETS_FILE}` would be longer than any.")
    return manifest


def unpack(path: Path, manifest: BackupManifest, folder: Path) -> None:
    with _opened(path) as archive:
        for name, stored in manifest.files.items():
            target = folder / name
            target.parent.mkdir(mode=0o700, exist_ok=True)
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                _copy_whole(archive, path, name, stored, file)
                file.flush()
                os.fsync(file.fileno())
    try:
        found = problems(folder / DATABASE_FILE)
    except sqlite3.Error as error:
        found = str(error)
    if found:
        raise InputError(f"The database in the backup `{path}` is damaged: {found}.")


def check_backup(path: Path) -> BackupManifest:
    """Hold every byte against its checksum, without room on a disk."""
    manifest = read_manifest(path)
    with _opened(path) as archive:
        for name, stored in manifest.files.items():
            _copy_whole(archive, path, name, stored, None)
    return manifest


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """The archive; whatever its reading fails with, and where bytes are changed that may be anything, is its damage."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except CitejuryError:
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):  # of what is unpacked
            raise
        raise InputError(f"The backup `{path}` cannot be read: {error.strerror or error}.") from error
    except Exception as error:
        raise InputError(f"`{path}` is no backup of `citejury annotation backup`, or it is damaged.") from error


def _member(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    if archive.getinfo(name).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"`{name}` is packed as no backup is")
    return archive.open(name)


def _copy_whole(archive: zipfile.ZipFile, path: Path, name: str, stored: StoredFile, target: IO[bytes] | None) -> None:
    digest, left = hashlib.sha256(), stored.size
    with _member(archive, name) as member:
        while left >= 0 and (chunk := member.read(1 << 20)):
            left -= len(chunk)
            if left >= 0:  # what claims less than it holds fills no disk
                digest.update(chunk)
                if target:
                    target.write(chunk)
    if left != 0 or digest.hexdigest() != stored.sha256:
        raise InputError(f"The backup `{path}` is damaged: `{name}` is not what was stored.")


class KeptBackup(Frozen):
    path: str
    """Where it went, from the root; in the file from the home where it is in it, which may be moved."""
    created_at: AwareDatetime
    """When it was made, in UTC."""
    on_time: bool = False
    """Whether the server made it by itself; only such a backup is ever removed."""


class _KeptBackups(Frozen):
    backups: tuple[KeptBackup, ...] = ()
    """As they were made, the newest last, whatever the clock said."""


def kept_backups(home: Path) -> tuple[KeptBackup, ...]:
    home = home.absolute()
    with contextlib.suppress(OSError, ValidationError):
        found = _KeptBackups.model_validate_json((home / BACKUPS_FILE).read_bytes()).backups
        return tuple(each.model_copy(update={"path": str(home / each.path)}) for each in found)
    return ()


def remember_backup(home: Path, backup: KeptBackup) -> None:
    """Let the home remember a backup; where it takes no more files, the backup is as good without."""
    with contextlib.suppress(OSError):
        _change(home, lambda known: (*(each for each in known if each.path != backup.path), backup))


def forget_backups(home: Path, paths: Iterable[str]) -> None:
    gone = set(paths)
    with contextlib.suppress(OSError):
        _change(home, lambda known: tuple(each for each in known if each.path not in gone))


def _change(home: Path, change: Callable[[tuple[KeptBackup, ...]], tuple[KeptBackup, ...]]) -> None:
    import fcntl  # not on Windows, where the commands work all the same

    folder = os.open(home, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        kept = change(kept_backups(home))
        # The oldest of those that the server does not remove by itself are forgotten: somebody else's, or not in place.
        others = [each for each in kept if not (each.on_time and Path(each.path).exists())]
        forgotten = {each.path for each in others[:-_MOST]}
        changed = []
        for each in kept:
            path = Path(each.path)
            if path.is_relative_to(home.absolute()) and ".." not in path.parts:
                path = path.relative_to(home.absolute())
            if each.path not in forgotten:
                changed.append(each.model_copy(update={"path": str(path)}))
        write_private(home / BACKUPS_FILE, _KeptBackups(backups=tuple(changed)).model_dump_json(indent=2) + "\n")
    finally:
        os.close(folder)

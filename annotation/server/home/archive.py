"""A backup of the embedded Argilla in one file, made while it runs; the home made from it again; one before upgrades.

A home of newer software is refused at the start: its tables may hold what this software would damage. A home of older
software is copied to its folder `backups` first; then migrations and our own tables bring it up to date.
"""

import contextlib
import errno
import hashlib
import os
import shutil
import sqlite3
import tempfile
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from annotation.server.home import backups
from annotation.server.home import folder as home_folder
from annotation.server.home import versions as software
from annotation.server.home.damage import damage_sentence, note_damage
from annotation.server.home.logs import tell
from pipeline.core.errors import InputError, OutputError, ServerStartError, SettingsError
from pipeline.core.files import output_errors, write_private

_BUSY_SECONDS = 60.0
ARCHIVE = "archive.zip"


def write_backup(home: Path, path: Path) -> backups.BackupManifest:
    """A new backup of the home, whose server may run, as of one moment; an earlier one at `path` is replaced."""
    home, path = home.absolute(), path.resolve()  # of a link the target is replaced
    missing = [name for name in backups.STORED_FILES if not (home / name).is_file()]
    if missing:
        raise InputError(
            f"The folder `{home}` holds no server: there is no `{missing[0]}`. Name the home of one with `--home`."
        )
    if path.exists():
        try:
            backups.read_manifest(path)
        except InputError as error:
            raise OutputError(f"`{path}` is there and is no backup, so it is left alone. Name another file.") from error
    with output_errors(f"The backup `{path}` cannot be written", "Make room, or name another file."):
        path.parent.mkdir(parents=True, exist_ok=True)
        with workshop(path) as folder:
            manifest = make_archive(home, folder)
            os.replace(folder / ARCHIVE, path)  # not the staged writer: what a kill leaves stands there, and goes
    backups.remember_backup(home, backups.KeptBackup(path=str(path), created_at=manifest.created_at))
    return manifest


def make_archive(home: Path, folder: Path) -> backups.BackupManifest:
    copy = folder / "argilla.db"
    _copy_database(home, copy)
    secrets = folder / "secrets.json"
    shutil.copyfile(home / home_folder.SECRETS_FILE, secrets)
    stored = {home_folder.SECRETS_FILE: secrets, home_folder.DATABASE_FILE: copy}
    versions = software.read_versions(home) or software.software_versions().model_copy(
        update={"citejury": software.UNKNOWN_RELEASE}
    )
    manifest = backups.BackupManifest(
        created_at=datetime.now(UTC).replace(microsecond=0),
        versions=versions.model_copy(update={"schema_revision": software.schema_revision(copy)}),
        files={name: _stored_file(file) for name, file in stored.items()},
    )
    descriptor = os.open(folder / ARCHIVE, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)  # from its first byte on
    with os.fdopen(descriptor, "w+b") as file:
        # zlib's fastest: half the size of the database, at a fifth of the time of its default.
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.writestr(backups.MANIFEST_FILE, manifest.model_dump_json(indent=2) + "\n")
            for name, source in stored.items():
                archive.write(source, name)
        file.flush()
        os.fsync(file.fileno())
    for source in stored.values():
        source.unlink()
    return manifest


@contextlib.contextmanager
def workshop(path: Path) -> Iterator[Path]:
    """An empty folder beside `path` for its parts, gone afterwards; what a killed predecessor left goes first."""
    import fcntl  # not on Windows, where the commands work all the same

    folder = path.with_name(f".{path.name}.part")
    folder.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OutputError(f"Another process is writing `{path}`. Wait until it has ended.") from error
        try:
            for entry in folder.iterdir():
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)


def _copy_database(home: Path, copy: Path) -> None:
    """In one step: SQLite begins anew whenever somebody writes between two steps, and under load that is always."""
    source = home / home_folder.DATABASE_FILE
    try:
        with (
            contextlib.closing(sqlite3.connect(source, timeout=_BUSY_SECONDS)) as original,
            contextlib.closing(sqlite3.connect(copy)) as target,
        ):
            original.backup(target)
            # One file, whatever the original's way of writing; the server sets its own again at its start.
            target.execute("PRAGMA journal_mode=DELETE")
        spoilt = home_folder.problems(copy)
    except sqlite3.Error as error:
        if not home_folder.is_damage(error):
            raise InputError(f"The database `{source}` cannot be copied: {error}.") from error
        spoilt = str(error)
    if not spoilt:
        return
    try:
        found = home_folder.problems(source)
    except sqlite3.Error as error:
        raise InputError(f"The database `{source}` cannot be looked through: {error}.") from error
    if found:
        note_damage(home, found)
        raise InputError(damage_sentence(home, found))
    raise OutputError(
        f"The copy of the database in `{copy.parent.parent}` is damaged ({spoilt}), and the database itself is whole. "
        "Look after the disk of this folder, and name one on another disk."
    )


def _stored_file(file: Path) -> backups.StoredFile:
    with open(file, "rb") as content:
        return backups.StoredFile(size=file.stat().st_size, sha256=hashlib.file_digest(content, "sha256").hexdigest())


def restore_home(path: Path, home: Path) -> backups.BackupManifest:
    home = home.absolute()
    _refuse_used_folder(home)
    manifest = backups.read_manifest(path)
    software.refuse_newer(manifest.versions, manifest.versions.schema_revision, f"The home of the backup `{path}`")
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        size = sum(stored.size for stored in manifest.files.values())
        home_folder.refuse_full_disk(home.parent, size, "the home needs", "--home")
        with workshop(home) as folder:
            made = folder / "home"
            made.mkdir(mode=0o700)
            backups.unpack(path, manifest, made)
            write_private(made / home_folder.VERSIONS_FILE, manifest.versions.model_dump_json(indent=2) + "\n")
            backups.remember_backup(made, backups.KeptBackup(path=str(path.absolute()), created_at=manifest.created_at))
            os.rename(made, home)  # takes the place of an empty folder, of nothing else
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            _refuse_used_folder(home)
        raise OutputError(f"The home `{home}` cannot be made: {error.strerror or error}.") from error
    return manifest


def _refuse_used_folder(home: Path) -> None:
    if not os.path.lexists(home):
        return
    if not home.is_dir() or home.is_symlink():
        raise OutputError(f"`{home}` is no folder. Name a new one with `--home`.")
    if (holder := home_folder.holder_of(home / home_folder.LOCK_FILE)) is not None:
        where = holder.get("url", "an unknown address")
        raise OutputError(f"The folder `{home}` is in use by the server at {where}. Name a new one with `--home`.")
    if any(home.iterdir()):
        raise OutputError(
            f"The folder `{home}` is not empty, and nothing in it is overwritten. Name a new one with `--home`, or "
            "move this one away."
        )


def refuse_newer_home(home: Path) -> None:
    database = home / home_folder.DATABASE_FILE
    if database.exists():
        software.refuse_newer(software.read_versions(home), software.schema_revision(database), f"The folder `{home}`")


def bring_up_to_date(home: Path) -> None:
    """Copy a home of older software; the server's start migrates it. The caller holds the lock.

    An interrupted upgrade is finished by the next start, and not copied half-done.
    """
    ours, recorded = software.software_versions(), software.read_versions(home)
    if (home / home_folder.DATABASE_FILE).exists() and (
        recorded is None or software.release_of(recorded) != software.release_of(ours)
    ):
        before = recorded.citejury if recorded else software.UNKNOWN_RELEASE
        name = f"before-upgrade-from-{before}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.zip"
        copy = home / home_folder.BACKUPS_FOLDER / name
        copy.parent.mkdir(mode=0o700, exist_ok=True)
        try:
            write_backup(home, copy)
        except InputError as error:
            raise ServerStartError(str(error)) from error
        _drop_triggers(home / home_folder.DATABASE_FILE)
        theirs = recorded.described() if recorded else "unknown versions"
        tell(f"the home was of {theirs}, a copy is in {copy.relative_to(home)}", home / home_folder.EVENTS_FILE)
    if recorded != ours:
        write_private(home / home_folder.VERSIONS_FILE, ours.model_dump_json(indent=2) + "\n")


def _drop_triggers(database: Path) -> None:
    """A migration that rebuilds a table fails while a trigger of another one mentions it; the start makes them again.

    https://www.sqlite.org/lang_altertable.html
    """
    ours = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'citejury%'"
    try:
        with contextlib.closing(sqlite3.connect(database)) as connection, connection:
            for (name,) in connection.execute(ours).fetchall():
                connection.execute(f'DROP TRIGGER "{name}"')
    except sqlite3.Error as error:
        raise OutputError(f"`{database}` cannot be brought up to date: {error}.") from error


@contextlib.contextmanager
def unpacked_database(archive: BinaryIO) -> Iterator[tuple[Path, backups.BackupManifest]]:
    """The database of a backup and what the backup says of itself, checked; the file is gone with the block."""
    with tempfile.TemporaryDirectory(prefix="citejury-") as name:
        folder = Path(name)
        path = folder / "standard-input.zip"
        with output_errors(f"The backup cannot be unpacked in `{folder.parent}`", "Make room there."):
            with open(path, "wb") as file:
                shutil.copyfileobj(archive, file)
            manifest = backups.read_manifest(path)
            software.refuse_newer(manifest.versions, manifest.versions.schema_revision, "The home of the backup")
            backups.unpack(path, manifest, folder)
            path.unlink()
        yield folder / home_folder.DATABASE_FILE, manifest


def check_database(database: Path, owner_api_key: str) -> None:
    """Check that it has this software's tables, and an owner whose key our commands have afterwards."""
    if software.schema_revision(database) != software.read_migrations()[1]:
        raise InputError(
            "The backup is of an older argilla-server. Bring it up to date first: `citejury annotation restore` and "
            "`citejury annotation serve` with this citejury, then `citejury annotation backup` again."
        )
    with contextlib.closing(sqlite3.connect(database)) as connection:
        owners = connection.execute("SELECT api_key FROM users WHERE role = 'owner'").fetchall()
    if (owner_api_key,) not in owners:
        raise SettingsError(
            "`CITEJURY_OWNER_API_KEY` in docker/.env is no owner's key in the backup. Run `docker/make-secrets --from "
            "HOME` with the home that the backup is of, or one that `citejury annotation restore` made from it."
        )

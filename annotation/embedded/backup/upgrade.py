"""What a start does about a home that was last used with other software.

A home of newer software is refused: its tables may hold what this software would damage. A home of older software is
copied to its folder `backups` first; then argilla-server's migrations and our own tables bring it up to date.
"""

import contextlib
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

from annotation.embedded.backup.archive import write_backup
from annotation.embedded.home.event_log import tell
from annotation.embedded.home.folder import BACKUPS_FOLDER, DATABASE_FILE, EVENTS_FILE, VERSIONS_FILE
from annotation.embedded.home.versions import (
    UNKNOWN_RELEASE,
    Versions,
    read_versions,
    refuse_newer,
    release_of,
    schema_revision,
    software_versions,
)
from pipeline.errors import InputError, OutputError, ServerStartError
from pipeline.files import write_private


def refuse_newer_home(home: Path) -> None:
    """Refuse a home that this software cannot read.

    Raises:
        ServerStartError: the home is of newer software, or its database or versions cannot be read.
    """
    database = home / DATABASE_FILE
    if database.exists():
        refuse_newer(read_versions(home), schema_revision(database), f"The folder `{home}`")


def bring_up_to_date(home: Path) -> None:
    """Copy a home of older software, and let it say that it is of this one; the server's start migrates it.

    The caller holds the home's lock. An upgrade that is interrupted is finished by the next start, and not copied
    half-done.

    Raises:
        ServerStartError: the database is damaged.
        OutputError: the copy, the database or the versions cannot be written.
    """
    ours, recorded = software_versions(), read_versions(home)
    if (home / DATABASE_FILE).exists() and (recorded is None or release_of(recorded) != release_of(ours)):
        copy = _copy_before_upgrade(home, recorded)
        _drop_triggers(home / DATABASE_FILE)
        theirs = recorded.described() if recorded else "unknown versions"
        tell(f"the home was of {theirs}, a copy is in {copy.relative_to(home)}", home / EVENTS_FILE)
    if recorded != ours:
        write_private(home / VERSIONS_FILE, ours.model_dump_json(indent=2) + "\n")


def _copy_before_upgrade(home: Path, recorded: Versions | None) -> Path:
    """A backup in the home itself, named for the software that the home is of and the time."""
    before = recorded.citejury if recorded else UNKNOWN_RELEASE
    folder = home / BACKUPS_FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    copy = folder / f"before-upgrade-from-{before}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.zip"
    try:
        write_backup(home, copy)
    except InputError as error:
        raise ServerStartError(str(error)) from error
    return copy


def _drop_triggers(database: Path) -> None:
    """Take our triggers out of the database; the server's start makes them again and catches up.

    A migration of Argilla's that rebuilds a table fails while a trigger of another table mentions it
    (https://www.sqlite.org/lang_altertable.html).

    Raises:
        OutputError: the database cannot be written.
    """
    ours = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'citejury%'"
    try:
        with contextlib.closing(sqlite3.connect(database)) as connection, connection:
            for (name,) in connection.execute(ours).fetchall():
                connection.execute(f'DROP TRIGGER "{name}"')
    except sqlite3.Error as error:
        raise OutputError(f"`{database}` cannot be brought up to date: {error}.") from error

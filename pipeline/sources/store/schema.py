"""The tables of the store as steps from one version to the next, and what makes a file a store.

Source: seed 004 §7 for the tables; what step 2 adds is ours.
"""

import sqlite3

from pipeline.errors import InputError

APPLICATION_ID = 0x63697465
"""The four letters `cite` in the file's header (https://www.sqlite.org/pragma.html#pragma_application_id)."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE pages (url TEXT PRIMARY KEY, text BLOB, title TEXT, domain TEXT, lang TEXT, content_type TEXT,"
        " hash TEXT, ts DATETIME)",
        "CREATE TABLE traces (id TEXT, ts DATETIME, kind TEXT, payload JSON)",
        "CREATE TABLE runs (id TEXT PRIMARY KEY, topic TEXT, report_md BLOB, report_json JSON, metrics JSON,"
        " created_at DATETIME)",
        f"PRAGMA application_id = {APPLICATION_ID}",
    ),
    (
        "ALTER TABLE pages ADD COLUMN final_url TEXT NOT NULL DEFAULT ''",
        "UPDATE pages SET final_url = url",
        "ALTER TABLE pages ADD COLUMN raw BLOB",
        "ALTER TABLE pages ADD COLUMN raw_sha256 TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE pages ADD COLUMN status INTEGER",
        "ALTER TABLE pages ADD COLUMN reason TEXT NOT NULL DEFAULT 'page'",
        "ALTER TABLE pages ADD COLUMN detail TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE pages ADD COLUMN etag TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE pages ADD COLUMN last_modified TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE pages ADD COLUMN page_starts JSON NOT NULL DEFAULT '[]'",
        "ALTER TABLE pages ADD COLUMN added INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE traces ADD COLUMN run_id TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE traces ADD COLUMN seq INTEGER NOT NULL DEFAULT 0",
        "CREATE INDEX traces_of_run ON traces (run_id, seq)",
        "ALTER TABLE runs ADD COLUMN status TEXT NOT NULL DEFAULT ''",
    ),
)
"""Step n leads from version n to version n + 1; a step that was ever released is never changed."""

VERSION = len(MIGRATIONS)


def store_version(connection: sqlite3.Connection, name: str) -> int:
    """The version of the store, 0 for an empty file; `name` stands for the file in messages.

    Raises:
        InputError: it is another program's database, or of a version that is not known here.
    """
    facts = ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
    with connection:
        connection.execute("BEGIN")  # one moment's facts, although another process may be making the store
        application, version, objects = (connection.execute(fact).fetchone()[0] for fact in facts)
    if application != APPLICATION_ID and (application or version or objects):
        raise InputError(f"{name!r} is a database, but no store of citejury's. Name another file; it was not touched.")
    if version > VERSION:
        raise InputError(
            f"The store {name!r} was written by a newer citejury: its version is {version}, and versions up to "
            f"{VERSION} can be read here. Update citejury; the store was not touched."
        )
    return int(version)


def migrate(connection: sqlite3.Connection, name: str) -> None:
    """Bring the store to today's version, all steps in one transaction; another process may do the same at once.

    Raises:
        InputError: it is no store, or a newer one.
    """
    if store_version(connection, name) == VERSION:
        return
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        for reached, step in enumerate(MIGRATIONS[version:], start=version + 1):
            for statement in (*step, f"PRAGMA user_version = {reached}"):
                connection.execute(statement)

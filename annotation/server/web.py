"""The web part of the embedded Argilla: its page and its REST API."""

import asyncio
import contextlib
import gc
import os
import socket
import sqlite3
import sys
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from annotation.server.edge import Edge, read_names
from annotation.server.guardian import end_with_the_guardian
from annotation.server.home.damage import noting_damage
from annotation.server.home.folder import read_or_make_secrets
from annotation.server.home.logs import log_short_entries
from annotation.server.patches.first import import_argilla_server
from pipeline.core.errors import ServerStartError

_HUB_JOBS = "argilla_server.jobs.hub_jobs"
_MIGRATION_LOCK = 0x6D696772  # any number but `_LOCK` in `database.py`, which is taken meanwhile


def main() -> None:
    lifeline, listening = (int(word) for word in sys.argv[1:])
    end_with_the_guardian(lifeline)
    with loading() as app:
        home = Path(os.environ["ARGILLA_HOME_PATH"]).parent
        with noting_damage(home):
            migrate_database()
            kept = read_or_make_secrets(home)
            asyncio.run(make_owner(kept.owner_username, kept.owner_password, kept.owner_api_key))
    run_server(app, socket.socket(fileno=listening))


class _LateModule(ModuleType):
    """Imported when something of it is asked for; `inspect` asks all modules for the names that every module has."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if sys.modules[self.__name__] is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


@contextlib.contextmanager
def loading() -> Iterator[Any]:
    """argilla-server's changed app; what the block loads, some 100 MB, is never looked through for garbage.

    That is a quarter of the start, and again and again a third of the time that a page of records takes.
    """
    gc.disable()
    log_short_entries()  # before argilla-server has its own way, which breaks lines at 80 characters
    sys.modules[_HUB_JOBS] = _LateModule(_HUB_JOBS)
    import_argilla_server()
    from annotation.server.patches.table import apply_patches

    apply_patches()
    from argilla_server._app import app

    yield app
    gc.collect()
    gc.freeze()
    gc.enable()


def run_server(app: Any, listening: socket.socket) -> None:
    import uvicorn

    from annotation.server.connections import Connection, Crowd, limits_here

    server = uvicorn.Server(
        uvicorn.Config(
            Edge(app, read_names()),
            # uvicorn asks for a class and calls it.
            http=cast(Any, partial(Connection, crowd=Crowd(limits_here()))),
            ws="none",
            log_level="warning",
            log_config=None,  # its errors are logged as all others are
            access_log=False,
            server_header=False,
            # Else uvicorn takes addresses and schemes from whatever a program on this machine says.
            proxy_headers=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=3,
        )
    )
    server.run(sockets=[listening])


def migrate_database() -> None:
    from alembic import command
    from alembic.config import Config
    from argilla_server.database import ALEMBIC_CONFIG_FILE, sync_engine
    from sqlalchemy import text

    from annotation.server.database import prepare

    # Without the file itself, whose settings would tell each step in the log and silence other loggers.
    config = Config()
    config.set_main_option("script_location", str(Path(ALEMBIC_CONFIG_FILE).with_name("alembic")))
    if sync_engine.dialect.name == "sqlite":
        # Readers and the one writer do not wait for each other; durable at each commit, since SQLite's own default
        # holds.
        with contextlib.closing(sqlite3.connect(str(sync_engine.url.database))) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
        command.upgrade(config, "head")
    else:
        with sync_engine.begin() as gate:
            gate.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _MIGRATION_LOCK})
            command.upgrade(config, "head")
    with sync_engine.begin() as database:
        prepare(database)
    sync_engine.dispose()


async def make_owner(username: str, password: str, api_key: str) -> None:
    """Their key becomes the one named, which Argilla has no other way to change; the password is theirs."""
    from argilla_server.contexts.accounts import get_user_by_username, hash_password
    from argilla_server.database import AsyncSessionLocal, async_engine
    from argilla_server.enums import UserRole
    from argilla_server.models import User
    from sqlalchemy.exc import IntegrityError

    async with AsyncSessionLocal() as db:
        owner = await get_user_by_username(db, username)
        if owner is None:
            owner = User(first_name="Owner", username=username, role=UserRole.owner)
            owner.password_hash = hash_password(password)
        if owner.role != UserRole.owner:
            raise ServerStartError(f"The user {username!r} is there and is no owner. Give the owner another name.")
        owner.api_key = api_key
        db.add(owner)
        try:
            await db.commit()
        except IntegrityError:  # also where another start has just made her
            await db.rollback()
            found = await get_user_by_username(db, username)
            if found is None or found.api_key != api_key:
                raise ServerStartError(
                    f"The API key meant for {username!r} is another user's: the owner had another name before. Give "
                    "her that name again, or make a new key too."
                ) from None
    # The connections belong to this event loop; the server's is another.
    await async_engine.dispose()


if __name__ == "__main__":
    main()

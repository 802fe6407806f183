"""The web part of the embedded Argilla: its page and its REST API."""

import asyncio
import base64
import contextlib
import gc
import hashlib
import logging
import re
import socket
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from annotation.embedded.guardian import end_with_the_guardian
from annotation.embedded.home.folder import read_or_make_secrets
from annotation.embedded.patches.late_modules import load_hub_jobs_late
from pipeline.errors import ServerStartError

KEEP_ALIVE_SECONDS = 30
SHUTDOWN_SECONDS = 3
MIGRATION_LOCK = 0x6D696772  # any number but `database.LOCK`, which is taken meanwhile
FOREIGN_IMPORT = re.compile(rb"@import url\(https?:[^)]*\);")


def main() -> None:
    """Bring the database up to date, make the owner, and serve until told to stop."""
    lifeline, listening = (int(word) for word in sys.argv[1:])
    end_with_the_guardian(lifeline)
    with loading():
        from argilla_server.settings import settings

        migrate()
        kept = read_or_make_secrets(Path(settings.home_path).parent)
        asyncio.run(make_owner(kept.owner_username, kept.owner_password, kept.owner_api_key))
        app = build_app()
    run_server(app, socket.socket(fileno=listening))


@contextlib.contextmanager
def loading() -> Iterator[None]:
    """A block that builds the app; what it made is never looked through for garbage.

    The app is some 100 MB of objects that stay. Looking through them is a quarter of the start, and again and again a
    third of the time that a page of records takes.
    """
    gc.disable()
    # Before argilla-server has its own way, which breaks lines at 80 characters.
    logging.basicConfig(format="%(asctime)s %(levelname)s [%(name)s] %(message)s", level=logging.WARNING)
    load_hub_jobs_late()
    yield
    gc.collect()
    gc.freeze()
    gc.enable()


def run_server(app: Any, listening: socket.socket) -> None:
    """Answer at a listening socket until told to stop."""
    import uvicorn

    server = uvicorn.Server(
        uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            # Else uvicorn takes addresses and schemes from whatever a program on this machine says.
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
    )
    server.run(sockets=[listening])


def migrate() -> None:
    """Create the database or bring it up to date; who comes while another does so waits."""
    from alembic import command
    from alembic.config import Config
    from argilla_server.database import ALEMBIC_CONFIG_FILE, sync_engine
    from sqlalchemy import text

    from annotation.embedded.engines.database import prepare

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
            gate.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": MIGRATION_LOCK})
            command.upgrade(config, "head")
    with sync_engine.begin() as database:
        prepare(database)
    sync_engine.dispose()


async def make_owner(username: str, password: str, api_key: str) -> None:
    """Make the owner where nobody has the name yet, and let her key be the one named.

    Argilla has no other way to change a key. Her password is hers once she is made.

    Raises:
        ServerStartError: the name is somebody's who is no owner, or the key is somebody else's.
    """
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


def build_app() -> Any:
    """argilla-server's app with our search engine, without its leak, and with safe headers on every answer."""
    import argilla_server

    from annotation.embedded.engines.sql import register_engine
    from annotation.embedded.patches.error_answers import explain_database_errors
    from annotation.embedded.patches.logged_events import RequestEvents, keep_reasons_in_the_log, tell_events
    from annotation.embedded.patches.middleware import BehindTls, is_behind_tls
    from annotation.embedded.patches.own_record import serve_own_record_only
    from annotation.embedded.patches.page import add_page_script
    from annotation.embedded.patches.routes import serve_record_pages
    from annotation.embedded.patches.search_requests import refuse_malformed_searches
    from annotation.embedded.patches.settings_readers import build_settings_readers_once
    from annotation.embedded.patches.skipped_work import skip_events_without_webhook
    from annotation.embedded.patches.status_rows import serve_status_rows

    build_settings_readers_once()
    register_engine()
    skip_events_without_webhook()
    tell_events()
    explain_database_errors()
    keep_reasons_in_the_log()
    refuse_malformed_searches()
    serve_own_record_only()
    serve_record_pages()
    serve_status_rows()
    static = static_folder(argilla_server.app)
    drop_foreign_fonts(static)
    add_page_script(static)
    page = (Path(argilla_server.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")
    # The server fills this in when it copies the page; at the root of the site it becomes nothing.
    app = SafeHeaders(argilla_server.app, content_security_policy(page.replace("@@baseUrl@@", "")))
    return RequestEvents(BehindTls(app) if is_behind_tls() else app)


def static_folder(app: Any) -> Path:
    """Where the server keeps its own copy of the page, made at each start."""
    (static,) = (route for route in app.routes if route.name == "static")
    return Path(static.app.directory)


def drop_foreign_fonts(static: Path) -> None:
    """Take the fonts of another host out of the server's own copy of the page; the policy would only block them.

    The page falls back to the system's fonts either way, but each blocked one is an error in the browser's console.
    """
    for path in static.rglob("*.css"):
        style = path.read_bytes()
        if FOREIGN_IMPORT.search(style):
            path.write_bytes(FOREIGN_IMPORT.sub(b"", style))


def content_security_policy(page: str) -> str:
    """The policy for Argilla's page: everything from this server, its own inline scripts and styles by their hashes."""
    scripts = re.findall(r"<script(?![^>]*\ssrc=)[^>]*>(.*?)</script>", page, re.DOTALL)
    styles = re.findall(r"<style[^>]*>(.*?)</style>", page, re.DOTALL)
    return "; ".join(
        (
            "default-src 'self'",
            " ".join(("script-src 'self'", *map(hash_source, scripts))),
            " ".join(("style-src 'self'", *map(hash_source, styles))),
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            "connect-src 'self'",
            "frame-src 'none'",
            "object-src 'none'",
            "form-action 'self'",
            "base-uri 'self'",
            "frame-ancestors 'none'",
        )
    )


def hash_source(text: str) -> str:
    """An inline script or style as the policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


class SafeHeaders:
    """An ASGI app that adds security headers to every answer of another one."""

    def __init__(self, app: Any, policy: str) -> None:
        """Keep the headers ready to send."""
        self.app = app
        self.headers = [
            (b"content-security-policy", policy.encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"no-referrer"),
        ]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *self.headers]
            await send(message)

        await self.app(scope, receive, send_with_headers)


if __name__ == "__main__":
    main()

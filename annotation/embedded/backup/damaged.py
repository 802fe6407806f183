"""What is done about a damaged database: it is said, with the newest good backup, and nothing more is written to it."""

import contextlib
import shlex
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from annotation.embedded.backup._contents import check_backup
from annotation.embedded.home.damage import (
    Damage,
    is_damage,
    is_noted,
    lost_from_the_log,
    problems,
    read_damage,
    write_damage,
)
from annotation.embedded.home.event_log import tell
from annotation.embedded.home.folder import DAMAGE_FILE, DATABASE_FILE, EVENTS_FILE
from annotation.embedded.home.kept_backups import KeptBackup, kept_backups
from pipeline.errors import InputError, ServerStartError

_QUIET_SECONDS = 2.0
_SECONDS_BETWEEN_LINES = 10.0
_ANSWER = "The server's database is damaged, so nothing was stored and nothing more is taken. Whoever runs the server"
_UNTIL_LOOKED_THROUGH = f"{_ANSWER} finds in its events which backup to go back to."
_noting = threading.Lock()


def _newest_good_backup(home: Path) -> KeptBackup | None:
    """The newest backup of the home that is where it was written, every byte as it was then; None where none is."""
    for backup in reversed(kept_backups(home)):
        with contextlib.suppress(InputError):
            if check_backup(Path(backup.path)).created_at == backup.created_at:
                return backup
    return None


def _damage_of(home: Path, found: str) -> Damage:
    """What to say of a home whose database is damaged; every backup that it may name is looked through first."""
    backup = _newest_good_backup(home)
    if backup is None:
        return Damage(
            found=found,
            advice="No good backup of it is known here. Where you have one, stop the server and make a new home from "
            "it: `citejury annotation restore FILE --home NEW`.",
            answer=f"{_ANSWER} knows of no backup that is in its place and whole.",
        )
    moment = f"{backup.created_at:%Y-%m-%d %H:%M} UTC"
    return Damage(
        found=found,
        advice=f"The newest good backup is of {moment}; stop the server and make a new home from it: `citejury "
        f"annotation restore {shlex.quote(backup.path)} --home NEW`.",
        answer=f"{_ANSWER} can go back to the backup of {moment}.",
    )


def damage_sentence(home: Path, damage: Damage) -> str:
    """The damage and what to do, for who runs the server."""
    return f"The database `{home / DATABASE_FILE}` is damaged ({damage.found}). {damage.advice}".rstrip()


def note_damage(home: Path, found: str) -> Damage:
    """Stop all parts of the server from writing, tell it among the events, and give what to say of it."""
    with _noting:
        known = read_damage(home)
        if known and known.advice:
            return known
        write_damage(home, Damage(found=found, answer=_UNTIL_LOOKED_THROUGH))
        tell(f"the database is damaged, and nothing more is written to it: {found}", home / EVENTS_FILE)
        damage = _damage_of(home, found)
        write_damage(home, damage)
        tell(damage.advice, home / EVENTS_FILE)
    return damage


def note_damage_soon(home: Path, found: str) -> Damage:
    """What to say of the damage now; backups are looked through meanwhile, by a thread of its own."""
    known = read_damage(home)
    if known is None:
        known = Damage(found=found, answer=_UNTIL_LOOKED_THROUGH)
        write_damage(home, known)
        threading.Thread(target=note_damage, args=(home, found), daemon=True).start()
    return known


@contextlib.contextmanager
def noting_damage(home: Path) -> Iterator[None]:
    """Note what SQLite, or SQLAlchemy for it, finds damaged in the block.

    Raises:
        ServerStartError: it found something.
    """
    try:
        yield
    except Exception as error:
        cause = getattr(error, "orig", None) or error
        if not is_damage(cause):
            raise
        raise ServerStartError(damage_sentence(home, note_damage(home, str(cause)))) from error


def refuse_damaged_home(home: Path, waiting: Callable[[str], None]) -> None:
    """Look through the home's database before anything is done with it; `waiting` is told where that takes a while.

    Raises:
        ServerStartError: it is damaged, or cannot be read.
    """
    database = home / DATABASE_FILE
    if not database.exists():
        return
    lost = lost_from_the_log(database)
    found = _look_through(database, is_noted(home), waiting)
    if found:
        raise ServerStartError(damage_sentence(home, _damage_of(home, found)))
    (home / DAMAGE_FILE).unlink(missing_ok=True)
    if lost:
        said = f"{lost:,} bytes are missing from the log of the database: what was stored last may be lost"
        tell(said, home / EVENTS_FILE)
        waiting(f"{said[0].upper()}{said[1:]}. Compare with the newest backup.")


def _look_through(database: Path, thorough: bool, waiting: Callable[[str], None]) -> str:
    """What is wrong in the database; by a thread, because SQLite hears no Ctrl-C.

    Raises:
        ServerStartError: it cannot be read.
    """
    result: list[str | sqlite3.Error] = []

    def look() -> None:
        try:
            result.append(problems(database, thorough=thorough))
        except sqlite3.Error as error:
            result.append(error)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(_QUIET_SECONDS)
    if thread.is_alive():
        waiting(f"Looking through the database for damage ({database.stat().st_size / 1e6:,.0f} MB).")
    while thread.is_alive():
        thread.join(_SECONDS_BETWEEN_LINES)
        if thread.is_alive():
            waiting("Still looking through the database.")
    (found,) = result
    if isinstance(found, sqlite3.Error):
        raise ServerStartError(f"The database `{database}` cannot be looked through: {found}.") from found
    return found

"""A database that SQLite finds damaged: how all parts of the server learn of it, and what is done about it.

What is damaged is read as far as it goes and written no more: the file `damaged.json` in the home says so to each part.
"""

import contextlib
import json
import os
import shlex
import sqlite3
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from annotation.server.home.backups import check_backup, kept_backups
from annotation.server.home.folder import DAMAGE_FILE, DATABASE_FILE, EVENTS_FILE, is_damage, problems
from annotation.server.home.logs import tell
from pipeline.core.errors import InputError, ServerStartError
from pipeline.core.files import write_private

_WAL_HEADER = 32  # bytes, https://www.sqlite.org/fileformat2.html#walformat
_LARGE = 200_000_000  # bytes, which take more than a second
_INDEX_HEADER = 48  # bytes, https://www.sqlite.org/walformat.html#the_wal_index_file_format
DAMAGED = (
    "The server's database is damaged, so nothing was stored and nothing more is taken. Whoever runs the server finds "
    "in its events which backup to go back to."
)
"""For whoever sends something; it names no path of this machine."""
_noting = threading.Lock()
_noted: set[Path] = set()  # homes, by this process


def read_damage(home: Path) -> str:
    """What SQLite said of the damage that is noted; empty where none is."""
    try:
        return str(json.loads((home / DAMAGE_FILE).read_bytes())["found"])
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, LookupError, TypeError):
        return "a damage that could not be written down"


def is_noted(home: Path) -> bool:
    return os.path.exists(home / DAMAGE_FILE)


def home_of_this_part() -> Path | None:
    data, database = os.environ.get("ARGILLA_HOME_PATH"), os.environ.get("ARGILLA_DATABASE_URL", "")
    return Path(data).parent if data and database.startswith("sqlite") else None


def stop_writing_once_damaged(_: object = None) -> None:
    from sqlalchemy import Engine, event

    home = home_of_this_part()
    if home is None:
        return

    def set_mode(connection: Any, record: Any, _: object) -> None:
        damaged = is_noted(home)
        if damaged != record.info.get("citejury reads only", False):
            cursor = connection.cursor()
            cursor.execute(f"PRAGMA query_only = {int(damaged)}")
            cursor.close()
            record.info["citejury reads only"] = damaged

    event.listen(Engine, "checkout", set_mode)


def _lost_from_the_log(database: Path) -> int:
    """How many bytes of SQLite's write-ahead log were there when the server was last killed and are not there now.

    SQLite itself takes a log that was cut for one that ends there, and says nothing. What was committed stands in the
    index beside it, which a process that is killed leaves behind; where it is of another log, nothing is known.
    """
    try:
        log, index = (Path(f"{database}{ending}") for ending in ("-wal", "-shm"))
        with open(index, "rb") as file:
            head = file.read(_INDEX_HEADER)
        with open(log, "rb") as file:
            start = file.read(_WAL_HEADER)
        size = log.stat().st_size
    except FileNotFoundError:
        return 0
    if len(head) < _INDEX_HEADER or not head[12]:
        return 0
    page_size, frames = struct.unpack_from("=HI", head, 14)
    page_size = 65536 if page_size == 1 else page_size
    if len(start) == _WAL_HEADER and start[16:24] != head[32:40]:  # another log's salt
        return 0
    return max(0, _WAL_HEADER + frames * (24 + page_size) - size) if frames else 0


def _advice(home: Path) -> str:
    for backup in reversed(kept_backups(home)):
        with contextlib.suppress(InputError):
            if check_backup(Path(backup.path)).created_at == backup.created_at:
                moment = f"{backup.created_at:%Y-%m-%d %H:%M} UTC"
                remedy = f"`citejury annotation restore {shlex.quote(backup.path)} --home NEW`"
                return f"The newest good backup is of {moment}; stop the server and make a new home from it: {remedy}."
    return (
        "No good backup of it is known here. Where you have one, stop the server and make a new home from it: "
        "`citejury annotation restore FILE --home NEW`."
    )


def damage_sentence(home: Path, found: str) -> str:
    return f"The database `{home / DATABASE_FILE}` is damaged ({found}). {_advice(home)}"


def note_damage(home: Path, found: str) -> None:
    """Where the home takes no more files, each part goes by what it finds itself."""
    with _noting:
        if home in _noted or read_damage(home):
            return
        _noted.add(home)
        with contextlib.suppress(OSError):
            write_private(home / DAMAGE_FILE, json.dumps({"found": found}) + "\n")
        tell(f"the database is damaged, and nothing more is written to it: {found}", home / EVENTS_FILE)
    # Looking through backups takes long, and whoever sends something waits.
    threading.Thread(target=lambda: tell(_advice(home), home / EVENTS_FILE)).start()


@contextlib.contextmanager
def noting_damage(home: Path) -> Iterator[None]:
    """Note what SQLite, or SQLAlchemy for it, finds damaged in the block; that is a `ServerStartError`."""
    try:
        yield
    except Exception as error:
        cause = getattr(error, "orig", None) or error
        if not is_damage(cause):
            raise
        note_damage(home, str(cause))
        raise ServerStartError(damage_sentence(home, str(cause))) from error


def refuse_damaged_home(home: Path, waiting: Callable[[str], None]) -> None:
    database = home / DATABASE_FILE
    if not database.exists():
        return
    lost = _lost_from_the_log(database)
    if (size := database.stat().st_size) > _LARGE:
        waiting(f"Looking through the database for damage ({size / 1e6:,.0f} MB).")
    try:
        found = problems(database, thorough=is_noted(home))
    except sqlite3.Error as error:
        raise ServerStartError(f"The database `{database}` cannot be looked through: {error}.") from error
    if found:
        raise ServerStartError(damage_sentence(home, found))
    (home / DAMAGE_FILE).unlink(missing_ok=True)
    _noted.discard(home)
    if lost:
        said = f"{lost:,} bytes are missing from the log of the database: what was stored last may be lost"
        tell(said, home / EVENTS_FILE)
        waiting(f"{said[0].upper()}{said[1:]}. Compare with the newest backup.")

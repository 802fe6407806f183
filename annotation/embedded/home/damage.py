"""A database that SQLite finds damaged: how that is seen, and how all parts of the server learn of it.

What is damaged is read as far as it goes and written no more: the file `damaged.json` in the home says so to each part.
"""

import contextlib
import os
import sqlite3
import struct
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from annotation.embedded.home.folder import DAMAGE_FILE
from pipeline.files import write_private
from pipeline.schema import Frozen

_CODES = {11, 26}  # SQLITE_CORRUPT and SQLITE_NOTADB, https://www.sqlite.org/rescode.html
_READS_ONLY = "citejury reads only"
_PRIMARY = 0xFF  # the part of SQLite's code that says which kind of error it is
_LONGEST = 200  # characters of what SQLite says
_FRAME_HEADER = 24  # bytes, https://www.sqlite.org/fileformat2.html#walformat
_WAL_HEADER = 32
_INDEX_HEADER = 48  # bytes, https://www.sqlite.org/walformat.html#the_wal_index_file_format


class Damage(Frozen):
    """What is said of a damaged database."""

    found: str
    """What SQLite says of it."""
    advice: str = ""
    """For who runs the server: which backup to go back to, and how; empty while backups are still looked through."""
    answer: str
    """For whoever sends something: that nothing is taken. It names no path of this machine."""


def is_damage(error: BaseException) -> bool:
    """Whether an error of SQLite says that the database is damaged."""
    code = getattr(error, "sqlite_errorcode", None)
    return isinstance(code, int) and code & _PRIMARY in _CODES


def problems(database: Path, *, thorough: bool = False) -> str:
    """What SQLite finds wrong in a database; empty where nothing is.

    It looks at every page; where it is to be thorough, also whether the indexes fit the tables, which takes several
    times as long.

    Raises:
        sqlite3.Error: it cannot be looked through for another reason, such as a lock or a disk that does not answer.
    """
    look = "integrity_check" if thorough else "quick_check"
    try:
        with contextlib.closing(sqlite3.connect(database)) as connection:
            (found,) = connection.execute(f"PRAGMA {look}(1)").fetchone()
    except sqlite3.Error as error:
        if not is_damage(error):
            raise
        return str(error)
    return "" if found == "ok" else " ".join(str(found).split())[:_LONGEST]


def read_damage(home: Path) -> Damage | None:
    """What was found in the home's database since its server started; None where nothing was."""
    try:
        return Damage.model_validate_json((home / DAMAGE_FILE).read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError):
        return Damage(found="a damage that could not be written down", answer="The server's database is damaged.")


def is_noted(home: Path) -> bool:
    """Whether the home's database is known to be damaged: quick enough to be asked all the time."""
    return os.path.exists(home / DAMAGE_FILE)


def write_damage(home: Path, damage: Damage) -> None:
    """Write down what was found; where the home takes no more files, each part goes by what it finds itself."""
    with contextlib.suppress(OSError):
        write_private(home / DAMAGE_FILE, damage.model_dump_json(indent=2) + "\n")


def home_of_this_part() -> Path | None:
    """The home whose database this part of the server uses; None where that is PostgreSQL."""
    data, database = os.environ.get("ARGILLA_HOME_PATH"), os.environ.get("ARGILLA_DATABASE_URL", "")
    return Path(data).parent if data and database.startswith("sqlite") else None


def stop_writing_once_damaged() -> None:
    """Let this part's connections read only as long as a damage is noted."""
    from sqlalchemy import Engine, event

    home = home_of_this_part()
    if home is None:
        return

    def set_mode(connection: Any, record: Any, _: object) -> None:
        damaged = is_noted(home)
        if damaged != record.info.get(_READS_ONLY, False):
            cursor = connection.cursor()
            cursor.execute(f"PRAGMA query_only = {int(damaged)}")
            cursor.close()
            record.info[_READS_ONLY] = damaged

    event.listen(Engine, "checkout", set_mode)


def lost_from_the_log(database: Path) -> int:
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
    return max(0, _WAL_HEADER + frames * (_FRAME_HEADER + page_size) - size) if frames else 0

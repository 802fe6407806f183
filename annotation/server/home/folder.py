"""What is where in the home folder of the embedded Argilla: its secrets, its lock and its logs.

HOME/            mode 700
  secrets.json   owner's user name, password and API key, and the key that signs logins; mode 600
  env            ARGILLA_API_URL and ARGILLA_API_KEY for a shell; mode 600
  versions.json  the software that it was last used with
  lock           held while a server runs here; its text says which
  data/          Argilla's SQLite database
  queue/         Argilla's job queue
  logs/          events, one file for each part, and those of the start before
  backups.json   where backups went; those in the home by their place in it
  damaged.json   only where the database is damaged: what was found
  backups/       a copy from before each upgrade, and backups on time unless they go elsewhere
"""

import contextlib
import json
import os
import re
import secrets
import shutil
import sqlite3
import time
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.core.errors import OutputError, ServerStartError, SettingsError
from pipeline.core.files import output_errors, write_private

HOLD_SECONDS_SETTING = "CITEJURY_HOLD_SECONDS"
BEHIND_TLS_VARIABLE = "CITEJURY_BEHIND_TLS"
_LONGEST_HOLD_SECONDS = 24 * 60 * 60
ENGINE_NAME = "citejury"
SECRETS_FILE = "secrets.json"
LOCK_FILE = "lock"
VERSIONS_FILE = "versions.json"
DATABASE_FILE = "data/argilla.db"
EVENTS_FILE = "logs/events.log"
BACKUPS_FILE = "backups.json"
DAMAGE_FILE = "damaged.json"
BACKUPS_FOLDER = "backups"
_FOLDERS = ("data", "queue", "logs")


class Secrets(NamedTuple):
    owner_username: str
    owner_password: str
    owner_api_key: str
    auth_secret_key: str


def open_home(home: Path) -> Path:
    home = home.absolute()
    with output_errors(f"The folder `{home}` cannot be used as the server's home", "Name another with `--home`."):
        home.parent.mkdir(parents=True, exist_ok=True)
        home.mkdir(mode=0o700, exist_ok=True)
        names = sorted(entry.name for entry in home.iterdir())
        if names and SECRETS_FILE not in names and LOCK_FILE not in names:
            raise OutputError(
                f"The folder `{home}` holds something else ({names[0]!r}), so no server is kept in it. "
                "Name an empty or a new folder with `--home`."
            )
        home.chmod(0o700)
    refuse_full_disk(home, 0, "the server needs at least", "--home")
    for path in (home, *(home / name for name in _FOLDERS), *sorted((home / "data").glob("*"))):
        if path.exists() and not os.access(path, os.W_OK):
            raise OutputError(
                f"`{path}` cannot be written, and the server keeps its data there. Give this user the right to write "
                "it, or name another home with `--home`."
            )
    return home


def refuse_full_disk(folder: Path, size: int, needing: str, option: str) -> None:
    # A new database takes less than a megabyte, the rest is for work and logs.
    free, wanted = shutil.disk_usage(folder).free, size + 20 * 2**20
    if free < wanted:
        raise OutputError(
            f"The disk of `{folder}` has {free // 2**20} MB left, and {needing} {wanted // 2**20} MB. Make room, or "
            f"name a folder on another disk with `{option}`."
        )


def take_lock(home: Path) -> int:
    """The lock, held by whoever inherits it. A server whose starter is gone is about to end: that is waited for."""
    import fcntl  # not on Windows, where `--help` and `doctor` work all the same

    try:
        lock = os.open(home / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        for name in _FOLDERS:
            (home / name).mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise OutputError(f"`{error.filename}` cannot be written: {error.strerror}.") from error
    deadline = time.monotonic() + 20.0
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError as error:
            holder = _read_holder(lock)
            if _is_alive(holder.get("pid")) or time.monotonic() > deadline:
                os.close(lock)
                raise ServerStartError(
                    f"The folder `{home}` is in use by the server at {holder.get('url', 'an unknown address')} "
                    f"(process {holder.get('pid', 'unknown')}). Use that one, stop it, or name another folder with "
                    "`--home`."
                ) from error
            time.sleep(0.1)


def _read_holder(lock: int) -> dict[str, Any]:
    try:
        holder = json.loads(os.pread(lock, 4096, 0))
    except ValueError:
        return {}
    return holder if isinstance(holder, dict) else {}


def holder_of(path: Path) -> dict[str, Any] | None:
    import fcntl

    try:
        lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_holder(lock)
    finally:
        os.close(lock)
    return None


def sign_lock(lock: int, url: str) -> None:
    os.ftruncate(lock, 0)
    os.pwrite(lock, json.dumps({"pid": os.getpid(), "url": url}).encode(), 0)


def _is_alive(pid: object) -> bool:
    """Whether a process of this id runs; True where the id is unknown."""
    if not isinstance(pid, int):
        return True
    with contextlib.suppress(PermissionError):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
    return True


def read_or_make_secrets(home: Path) -> Secrets:
    path = home / SECRETS_FILE
    if not path.exists():
        made = Secrets("owner", secrets.token_urlsafe(18), secrets.token_urlsafe(48), secrets.token_hex(32))
        write_private(path, json.dumps(made._asdict(), indent=2) + "\n")
    try:
        kept = Secrets(**json.loads(path.read_text(encoding="utf-8")))
        if not all(isinstance(value, str) for value in kept):
            raise TypeError
    except (OSError, ValueError, TypeError) as error:
        raise ServerStartError(
            f"`{path}` cannot be read as the server's secrets. Put it back from a backup; without it the owner "
            "cannot log in."
        ) from error
    path.chmod(0o600)
    return kept


def last_log_lines(home: Path) -> str:
    last: list[str] = []
    for path in sorted({*(home / "logs").glob("*.log")} - {home / EVENTS_FILE}):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        said = [each for each in lines if not re.match(r"\s|Traceback |The above exception |During handling |$", each)]
        last += [f"{path.stem}: {line}" for line in said[-12:]]
    return "\n".join(last)


def hold_seconds() -> int:
    said = os.environ.get(HOLD_SECONDS_SETTING) or str(15 * 60)
    if not re.fullmatch("[0-9]{1,9}", said) or not 1 <= int(said) <= _LONGEST_HOLD_SECONDS:
        raise SettingsError(
            f"`{HOLD_SECONDS_SETTING}` is {said!r} and should be a number of seconds, 1 to {_LONGEST_HOLD_SECONDS}."
        )
    return int(said)


def is_behind_tls() -> bool:
    return os.environ.get(BEHIND_TLS_VARIABLE, "").strip().lower() not in {"", "0", "no", "off", "false"}


def is_damage(error: BaseException) -> bool:
    code = getattr(error, "sqlite_errorcode", None)  # its last byte says which kind of error it is
    return isinstance(code, int) and code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def problems(database: Path, *, thorough: bool = False) -> str:
    """What SQLite finds wrong in any page; thorough also whether indexes fit tables. `sqlite3.Error` where locked."""
    look = "integrity_check" if thorough else "quick_check"
    try:
        with contextlib.closing(sqlite3.connect(database)) as connection:
            (found,) = connection.execute(f"PRAGMA {look}(1)").fetchone()
    except sqlite3.Error as error:
        if not is_damage(error):
            raise
        return str(error)
    return "" if found == "ok" else " ".join(str(found).split())[:200]

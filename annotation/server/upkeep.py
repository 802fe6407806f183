"""What is done for a home while its server runs: a look through the database each night, and backups on time.

Each is a process of its own, which may be killed at any moment: a backup gets its name only once a home was made from
it on trial, and older ones go only after that. What came of it stands among the events.
"""

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from annotation.server.guardian import ending_with_the_parent
from annotation.server.home.archive import ARCHIVE, make_archive, restore_home, workshop
from annotation.server.home.backups import KeptBackup, forget_backups, kept_backups, remember_backup
from annotation.server.home.damage import is_noted, note_damage
from annotation.server.home.folder import BACKUPS_FOLDER, DATABASE_FILE, EVENTS_FILE, problems, refuse_full_disk
from annotation.server.home.logs import tell
from pipeline.core.errors import CitejuryError, OutputError
from pipeline.core.files import output_errors

_LOOK_SECONDS = 60.0
_DAY = timedelta(days=1)


class BackupsOnTime(NamedTuple):
    every: timedelta  # how long after one the next is made
    keep: int = 14  # how many of them are kept, from 1 on
    folder: Path | None = None  # where they go; the folder `backups` of the home where None


@contextlib.contextmanager
def looked_after(home: Path, backups: BackupsOnTime | None) -> Iterator[None]:
    keeper = _Keeper(home, backups)
    thread = threading.Thread(target=keeper.work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        keeper.stop()
        thread.join()


class _Keeper:
    def __init__(self, home: Path, backups: BackupsOnTime | None) -> None:
        self.home, self.backups = home, backups
        self.ended = threading.Event()
        self.lock = threading.Lock()
        self.running: subprocess.Popen[bytes] | None = None

    def work(self) -> None:
        """Do what is due, then wait for what is next; a clock that jumps puts nothing off for longer than it takes."""
        night = _next_night(datetime.now().astimezone())
        backup_at = time.monotonic()
        if self.backups:  # none is due while the newest is good, unless it says that it is of the future
            made = [each.created_at for each in kept_backups(self.home) if each.on_time and Path(each.path).exists()]
            age = datetime.now(UTC) - made[-1] if made else self.backups.every
            backup_at += (self.backups.every - age).total_seconds() if timedelta(0) <= age < self.backups.every else 0
        while not self.ended.is_set():
            now = datetime.now().astimezone()
            if now >= night or night - now > _DAY:
                if now >= night:
                    self.run("check")
                night = _next_night(now)
            if self.backups and time.monotonic() >= backup_at:
                folder = self.backups.folder or self.home / BACKUPS_FOLDER
                done = self.run("backup", str(folder), str(self.backups.keep))
                every = self.backups.every.total_seconds()
                backup_at = time.monotonic() + (every if done else min(every, 600.0))
            left = backup_at - time.monotonic() if self.backups else _LOOK_SECONDS
            self.ended.wait(max(0.0, min(_LOOK_SECONDS, left)))

    def run(self, what: str, *words: str) -> bool:
        with self.lock:
            if self.ended.is_set():
                return False
            self.running = subprocess.Popen(
                [sys.executable, "-P", "-m", "annotation.server.upkeep", what, str(self.home), *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                preexec_fn=ending_with_the_parent() if sys.platform == "linux" else None,
            )
        return self.running.wait() == 0

    def stop(self) -> None:
        """What it was about to write is not there, and the next start begins anew."""
        with self.lock:
            self.ended.set()
            if self.running:
                self.running.kill()


def _next_night(now: datetime) -> datetime:
    night = now.replace(hour=3, minute=0, second=0, microsecond=0)
    return night if night > now else night + _DAY


def check(home: Path) -> None:
    if is_noted(home):
        return
    try:
        found = problems(home / DATABASE_FILE)
    except sqlite3.Error as error:
        tell(f"the database could not be looked through: {error}", home / EVENTS_FILE)
        return
    if found:
        note_damage(home, found)
    else:
        tell("the database was looked through and is whole", home / EVENTS_FILE)


def _back_up(home: Path, folder: Path, keep: int) -> None:
    """Older ones that somebody else made, or that were moved away, are left alone."""
    home, folder = home.absolute(), folder.absolute()
    with output_errors(f"No backup could be written in `{folder}`"):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A copy, the backup and the trial take no room from what people submit.
        size = 2 * (home / DATABASE_FILE).stat().st_size
        refuse_full_disk(folder, size, "a backup with its trial needs", "--backup-to")
        with workshop(folder / home.name) as work:
            manifest = make_archive(home, work)
            restore_home(work / ARCHIVE, work / "home")
            with contextlib.closing(sqlite3.connect(work / "home" / DATABASE_FILE)) as connection:
                (answers,) = connection.execute("SELECT count(*) FROM responses").fetchone()
            path = folder / f"{home.name}-{manifest.created_at:%Y%m%dT%H%M%SZ}.zip"
            if path.exists():  # of another home of this name, or of a clock that was put back
                raise OutputError(f"`{path}` is there already, so no backup was written.")
            shutil.rmtree(work / "home")  # now: from the new name on, little may come before older ones go
            # Remembered first: a backup that nobody knows of would never be removed, nor named after a damage.
            remember_backup(home, KeptBackup(path=str(path), created_at=manifest.created_at, on_time=True))
            os.replace(work / ARCHIVE, path)
    tell(f"backup {path.name} written, a home made from it on trial: {answers:,} answers", home / EVENTS_FILE)
    made = [each.path for each in kept_backups(home) if each.on_time and Path(each.path).parent == folder]
    old = [path for path in made if Path(path).exists()][:-keep]
    for each in old:
        Path(each).unlink(missing_ok=True)
    forget_backups(home, old)


def main() -> int:
    os.nice(10)
    what, home, *words = sys.argv[1:]
    try:
        if what == "check":
            check(Path(home))
        else:
            _back_up(Path(home), Path(words[0]), int(words[1]))
    except CitejuryError as error:
        tell(f"no backup: {error}", Path(home) / EVENTS_FILE)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

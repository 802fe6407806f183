"""Where the home's backups went: a small file in the home, to which each backup adds a line."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from pydantic import AwareDatetime, ValidationError

from annotation.embedded.home.folder import BACKUPS_FILE
from pipeline.schema import Frozen
from pipeline.staging import write_private

_MOST = 200  # of which the oldest are forgotten


class KeptBackup(Frozen):
    """A backup that was made of the home."""

    path: str
    """Where it went, from the root."""
    created_at: AwareDatetime
    """When it was made, in UTC."""
    on_time: bool = False
    """Whether the server made it by itself; only such a backup is ever removed."""


class _KeptBackups(Frozen):
    """The file."""

    backups: tuple[KeptBackup, ...] = ()
    """As they were made, the newest last, whatever the clock said."""


def kept_backups(home: Path) -> tuple[KeptBackup, ...]:
    """The backups that the home remembers, the newest last; none where its file is missing or is not ours."""
    with contextlib.suppress(OSError, ValidationError):
        return _KeptBackups.model_validate_json((home / BACKUPS_FILE).read_bytes()).backups
    return ()


def remember_backup(home: Path, backup: KeptBackup) -> None:
    """Let the home remember a backup; where it takes no more files, the backup is as good without."""
    with contextlib.suppress(OSError):
        _change(home, lambda known: (*(each for each in known if each.path != backup.path), backup))


def forget_backups(home: Path, paths: Iterable[str]) -> None:
    """Let the home remember some no more, whose files are gone."""
    gone = set(paths)
    with contextlib.suppress(OSError):
        _change(home, lambda known: tuple(each for each in known if each.path not in gone))


def _change(home: Path, change: Callable[[tuple[KeptBackup, ...]], tuple[KeptBackup, ...]]) -> None:
    """Change the file, one process after the other."""
    folder = os.open(home, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        changed = _KeptBackups(backups=change(kept_backups(home))[-_MOST:])
        write_private(home / BACKUPS_FILE, changed.model_dump_json(indent=2) + "\n")
    finally:
        os.close(folder)

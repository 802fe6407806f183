"""Where the home's backups went: a small file in the home, to which each backup adds a line."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from pydantic import AwareDatetime, ValidationError

from annotation.embedded.home.folder import BACKUPS_FILE
from pipeline.files import write_private
from pipeline.schema import Frozen

_MOST = 200  # of those that the server does not remove; the oldest are forgotten


class KeptBackup(Frozen):
    """A backup that was made of the home."""

    path: str
    """Where it went, from the root; in the file from the home where it is in it, which may be moved."""
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
    home = home.absolute()
    with contextlib.suppress(OSError, ValidationError):
        found = _KeptBackups.model_validate_json((home / BACKUPS_FILE).read_bytes()).backups
        return tuple(each.model_copy(update={"path": str(home / each.path)}) for each in found)
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
        kept = _without_the_oldest(change(kept_backups(home)))
        changed = _KeptBackups(backups=tuple(_seen_from(home.absolute(), each) for each in kept))
        write_private(home / BACKUPS_FILE, changed.model_dump_json(indent=2) + "\n")
    finally:
        os.close(folder)


def _without_the_oldest(backups: tuple[KeptBackup, ...]) -> tuple[KeptBackup, ...]:
    """All that the server removes by itself, and the newest of the others: somebody else's, or not in their place."""
    others = [each for each in backups if not (each.on_time and Path(each.path).exists())]
    forgotten = {each.path for each in others[:-_MOST]}
    return tuple(each for each in backups if each.path not in forgotten)


def _seen_from(home: Path, backup: KeptBackup) -> KeptBackup:
    """The backup as the file has it."""
    path = Path(backup.path)
    if not path.is_relative_to(home) or ".." in path.parts:
        return backup
    return backup.model_copy(update={"path": str(path.relative_to(home))})

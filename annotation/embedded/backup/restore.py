"""A new home from a backup: whole or not at all."""

import errno
import os
import shutil
from pathlib import Path

from annotation.embedded.backup.write import BackupManifest, read_manifest, unpack, workshop
from annotation.embedded.home.home import LOCK_FILE, SPACE_NEEDED, VERSIONS_FILE, holder_of
from annotation.embedded.home.software import refuse_newer
from pipeline.errors import OutputError
from pipeline.staging import write_private


def restore(path: Path, home: Path) -> BackupManifest:
    """The manifest of the backup from which the home is made; a start then finds the answers and secrets of that time.

    Every file is held against its checksum, and the database looked through, before the home is there.

    Raises:
        InputError: the file is no backup, or is damaged.
        OutputError: the home is in use, not empty or cannot be written.
        ServerStartError: the backup is of newer software.
    """
    home = home.absolute()
    refuse_occupied(home)
    manifest = read_manifest(path)
    refuse_newer(manifest.versions, manifest.versions.schema_revision, f"The home of the backup `{path}`")
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        refuse_full_disk(home.parent, sum(stored.size for stored in manifest.files.values()))
        with workshop(home) as folder:
            made = folder / "home"
            made.mkdir(mode=0o700)
            unpack(path, manifest, made)
            write_private(made / VERSIONS_FILE, manifest.versions.model_dump_json(indent=2) + "\n")
            os.rename(made, home)  # takes the place of an empty folder, of nothing else
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            refuse_occupied(home)
        raise OutputError(f"The home `{home}` cannot be made: {error.strerror or error}.") from error
    return manifest


def refuse_occupied(home: Path) -> None:
    """Nothing where the folder is missing or empty.

    Raises:
        OutputError: a server runs in it, something is in it, or it is a file.
    """
    if not os.path.lexists(home):
        return
    if not home.is_dir() or home.is_symlink():
        raise OutputError(f"`{home}` is no folder. Name a new one with `--home`.")
    if (holder := holder_of(home / LOCK_FILE)) is not None:
        where = holder.get("url", "an unknown address")
        raise OutputError(f"The folder `{home}` is in use by the server at {where}. Name a new one with `--home`.")
    if any(home.iterdir()):
        raise OutputError(
            f"The folder `{home}` is not empty, and nothing in it is overwritten. Name a new one with `--home`, or "
            "move this one away."
        )


def refuse_full_disk(folder: Path, needed: int) -> None:
    """Nothing where so many bytes, and what a start needs, have room in the folder.

    Raises:
        OutputError: they have not.
    """
    free, wanted = shutil.disk_usage(folder).free, needed + SPACE_NEEDED
    if free < wanted:
        raise OutputError(
            f"The disk of `{folder}` has {free // 2**20} MB left, and the home needs {wanted // 2**20} MB. "
            "Make room, or name a folder on another disk with `--home`."
        )

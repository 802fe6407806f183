"""What an earlier commit left behind; `tests/data/made_by_<commit>/README.md` says how each was made."""

import tarfile
from pathlib import Path

from click.testing import CliRunner, Result

from exports.cli import main
from tests.support.places import DATA


def unpacked(commit: str, folder: Path) -> Path:
    with tarfile.open(DATA / f"made_by_{commit}" / "made.tar.gz") as archive:
        # Pythons before 3.11.4 have no filter, and no need of one: the archive is ours.
        archive.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return folder


def run(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, words)
    assert result.exit_code == code, result.output
    return result


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

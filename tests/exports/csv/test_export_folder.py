"""The export folder: what is refused, swapped in as a whole, and left behind by no kill."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from exports.csv.folder import MANIFEST_FILE, check_folder, staged_folder
from exports.csv.spool import Spool, SpooledRow
from pipeline.core.errors import NotFoundError, OutputError


def test_other_folders_and_those_not_to_replace_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("notes.txt", "retrieval.csv", MANIFEST_FILE):
        (tmp_path / name / "out").mkdir(parents=True)
        (tmp_path / name / "out" / name).write_text("{}", encoding="utf-8")
        with pytest.raises(OutputError), staged_folder(tmp_path / name / "out"):
            pytest.fail("the folder was not refused")
        assert (tmp_path / name / "out" / name).read_text(encoding="utf-8") == "{}"
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="is a file"):
        check_folder(tmp_path / "file")
    with pytest.raises(OutputError, match="file/out` cannot be written"), staged_folder(tmp_path / "file" / "out"):
        pytest.fail("the folder was not refused")
    with pytest.raises(NotFoundError), staged_folder(tmp_path / "a" / "b" / "out"):
        raise NotFoundError("nothing there")
    assert not (tmp_path / "a").exists(), "none of the folders that it made is left"
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OutputError, match="current folder"):
        check_folder(Path())


def export_once(out: Path, text: str) -> None:
    with staged_folder(out) as work:
        (work / "export" / "retrieval.csv").write_text(text, encoding="utf-8")
        (work / "export" / MANIFEST_FILE).write_text('{"citejury": 1, "datasets": 1, "files": 1}', encoding="utf-8")


def killed_export(out: Path, at: str) -> None:
    """Run an export in a process of its own that kills itself at some point of its work."""
    script = f"""
import os, signal
from pathlib import Path
from exports.csv import folder
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
with folder.staged_folder(Path({str(out)!r})) as work:
    (work / "export" / "grounding.csv").touch()
    {at}
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL


def test_what_a_killed_export_left_is_mended_by_the_next(tmp_path: Path) -> None:
    out = tmp_path / "out"
    killed_export(out, "die()")
    assert len(list(tmp_path.iterdir())) == 1
    export_once(out, "first")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    killed_export(out, "os.rename = lambda source, target, rename=os.rename: (rename(source, target), die())")
    assert not out.exists()
    with staged_folder(out):
        assert (out / "retrieval.csv").read_text(encoding="utf-8") == "first"
    export_once(out, "second")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (out / "retrieval.csv").read_text(encoding="utf-8") == "second"


def test_a_folder_takes_one_export_through_links_not_when_filled_and_the_spool_is_in_order(
    tmp_path: Path,
) -> None:
    with (
        staged_folder(tmp_path / "both"),
        pytest.raises(OutputError, match="Another `exports csv` is writing"),
        staged_folder(tmp_path / "both"),
    ):
        pytest.fail("the second was not refused")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with staged_folder(tmp_path / "link") as work:
        (work / "export" / "retrieval.csv").touch()
    assert (tmp_path / "link").is_symlink()
    assert [path.name for path in (tmp_path / "real").iterdir()] == ["retrieval.csv"]
    out = tmp_path / "out"

    def fill_meanwhile() -> None:
        with staged_folder(out):
            out.mkdir()
            (out / "mine.txt").touch()

    with pytest.raises(OutputError, match=r"'mine\.txt'"):
        fill_meanwhile()
    assert [path.name for path in out.iterdir()] == ["mine.txt"]

    def row(record_uuid: str, rank: int, line: bytes = b"x") -> SpooledRow:
        return SpooledRow("retrieval", False, record_uuid, rank, "c", "anna", "id", line)

    with Spool(tmp_path / "spool") as spool:
        spool.add("a", [row("é", 1), row("z", 10), row("z", 2)])
        spool.add("b", [row("b", 1)])
        assert (spool.keep_new("b", ["1"]), spool.keep_new("b", ["1", "2"])) == ({"1"}, {"2"})
        spool.forget("b")
        assert spool.keep_new("b", ["1"]) == {"1"}
        assert [found[0] for found in spool.rows("retrieval", discarded=False)] == ["z", "z", "é"]
        assert list(spool.rows("retrieval", discarded=True)) == []


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals on Windows")
def test_an_export_that_is_stopped_by_a_signal_leaves_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        words = ["exports", "csv", str(tmp_path / "out"), "--api-url", f"http://127.0.0.1:{silent.getsockname()[1]}"]
        command = [sys.executable, "-c", "from exports.cli import main; main()", *words]
        environment = {**os.environ, "ARGILLA_API_KEY": "key"}
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as export, silent.accept()[0]:
            export.send_signal(signal.SIGTERM)  # it waits for an answer now
            _, said = export.communicate(timeout=60)
    assert (export.returncode, said.strip()) == (1, b"Aborted!")
    assert not list(tmp_path.iterdir())

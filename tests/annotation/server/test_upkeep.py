"""Backups that the server makes by itself: each is tried, old ones go after a newer one, a kill leaves nothing half."""

import json
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from annotation.server.home.backups import check_backup
from annotation.server.home.folder import BACKUPS_FILE, DAMAGE_FILE, DATABASE_FILE, EVENTS_FILE
from annotation.server.launch import ServerOptions, start_server
from annotation.server.upkeep import BackupsOnTime, looked_after
from exports.cli import main
from tests.support.places import ROOT

pytestmark = pytest.mark.server

PATIENCE_SECONDS = 120
KILLS = 5
SEED = 18
SIX_HOURS = timedelta(hours=6)
KILLED_ONCE_IT_IS_THERE = """
import os, signal, sys
named = []
def look(event, words):
    if named and event != "os.kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if event == "os.rename" and str(words[1]).endswith(".zip"):
        named.append(words[1])
sys.addaudithook(look)
"""
DISK_THAT_SPOILS_THE_COPY = """
import sys
opened = []
def look(event, words):
    if event == "sqlite3.connect" and str(words[0]).endswith(".part/argilla.db"):
        opened.append(words[0])
        if len(opened) == 2:  # to look through it
            with open(words[0], "r+b") as file:
                file.write(b"nonsense" * 16)
sys.addaudithook(look)
"""


def wait(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def events(home: Path) -> str:
    file = home / EVENTS_FILE
    return file.read_text(encoding="utf-8") if file.exists() else ""


def whole(folder: Path) -> list[Path]:
    """The backups in the folder, each checked; nothing else is there."""
    found = sorted(folder.iterdir()) if folder.exists() else []
    for path in found:
        check_backup(path)
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("upkeep") / "home"
    with start_server(home, port=0, options=ServerOptions(backups=BackupsOnTime(SIX_HOURS))):
        wait(lambda: "made from it on trial: 0 answers" in events(home))
        assert len(whole(home / "backups")) == 1
    return home


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "home")
    shutil.rmtree(tmp_path / "home" / "backups")
    (tmp_path / "home" / BACKUPS_FILE).unlink()
    return tmp_path / "home"


def begin(
    home: Path, folder: Path, keep: int, prepare: Callable[[], None] | None = None, trouble: str = ""
) -> "subprocess.Popen[bytes]":
    """A backup in a process to which something may happen, known by what Python is about to do there."""
    program = f"import sys\n{trouble}\nfrom annotation.server.upkeep import main\nsys.exit(main())"
    words = [sys.executable, "-c", program, "backup", str(home), str(folder), str(keep)]
    return subprocess.Popen(words, cwd=ROOT, preexec_fn=prepare)


def back_up(home: Path, folder: Path, keep: int, trouble: str = "") -> int:
    return begin(home, folder, keep, trouble=trouble).wait(PATIENCE_SECONDS)


def noted(home: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((home / BACKUPS_FILE).read_text(encoding="utf-8"))["backups"]
    return found


@pytest.mark.rare
def test_only_as_many_as_wanted_are_kept_and_what_somebody_else_made_stays(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    own = folder / "home-own.zip"
    assert CliRunner().invoke(main, ["annotation", "backup", str(own), "--home", str(home)]).exit_code == 0
    made: list[Path] = []
    while len(made) < 3:
        wait(lambda: back_up(home, folder, keep=2) == 0)  # of one second there is one
        made += sorted({*whole(folder)} - {own, *made})
    assert {*whole(folder)} == {own, *made[-2:]}
    assert [each["path"] for each in noted(home)] == [str(path) for path in (own, *made[-2:])]


@pytest.mark.rare
def test_a_kill_at_any_moment_leaves_nothing_half_and_no_fewer_backups(home: Path, tmp_path: Path) -> None:
    folder, chance = tmp_path / "elsewhere", random.Random(SEED)
    began = time.monotonic()
    assert back_up(home, folder, keep=1) == 0
    lasts = time.monotonic() - began
    for _ in range(KILLS):
        process = begin(home, folder, 1)
        try:
            process.wait(chance.uniform(0.2, 1.0) * lasts)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        named = [path for path in folder.iterdir() if not path.name.startswith(".")]
        assert len(named) in (1, 2)
        for path in named:
            check_backup(path)
    wait(lambda: back_up(home, folder, keep=1) == 0)
    assert len(whole(folder)) == 1


@pytest.mark.rare
def test_more_are_kept_than_the_home_remembers_of_somebody_elses(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    known = []
    for number in range(210):
        for path, on_time in ((folder / f"home-{number:03}.zip", True), (tmp_path / f"own-{number:03}.zip", False)):
            path.touch()
            known.append({"path": str(path), "created_at": "2026-11-01T10:00:00Z", "on_time": on_time})
    (home / BACKUPS_FILE).write_text(json.dumps({"backups": known}), encoding="utf-8")
    assert back_up(home, folder, keep=205) == 0
    assert sorted(path.name for path in folder.iterdir())[:2] == ["home-006.zip", "home-007.zip"]
    # And the one that was being written.
    assert Counter(each["on_time"] for each in noted(home)) == {True: 205, False: 200 - 1}


@pytest.mark.rare
def test_a_kill_as_soon_as_a_backup_has_its_name_lets_the_home_remember_it(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    assert back_up(home, folder, keep=1, trouble=KILLED_ONCE_IT_IS_THERE) == -signal.SIGKILL
    (first,) = folder.glob("*.zip")
    assert [each["path"] for each in noted(home)] == [str(first)]
    wait(lambda: back_up(home, folder, keep=1) == 0)
    assert len(whole(folder)) == 1
    assert not first.exists()


@pytest.mark.rare
def test_a_home_that_is_moved_knows_the_backups_in_it(home: Path, tmp_path: Path) -> None:
    assert back_up(home, home / "backups", keep=1) == 0
    moved = tmp_path / "moved"
    home.rename(moved)
    (first,) = whole(moved / "backups")
    wait(lambda: back_up(moved, moved / "backups", keep=1) == 0)
    (second,) = whole(moved / "backups")
    assert second != first
    again = tmp_path / "moved again"
    moved.rename(again)
    (again / DATABASE_FILE).write_bytes(b"nonsense" * 16)
    assert back_up(again, again / "backups", keep=1) == 1
    assert f"restore '{again / 'backups' / second.name}' --home NEW" in events(again)


@pytest.mark.rare
def test_a_disk_that_spoils_the_copy_leaves_the_database_in_use(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    assert back_up(home, folder, keep=1, trouble=DISK_THAT_SPOILS_THE_COPY) == 1
    assert not (home / DAMAGE_FILE).exists()
    assert f"no backup: The copy of the database in `{folder}" in events(home)
    assert (whole(folder), back_up(home, folder, keep=1)) == ([], 0)


@pytest.mark.rare
def test_a_disk_without_room_costs_no_earlier_backup(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    assert back_up(home, folder, keep=1) == 0
    before = whole(folder)
    size = (home / DATABASE_FILE).stat().st_size

    def allow_half() -> None:  # what grows further is refused with "File too large", as a full disk refuses it
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2))

    assert (begin(home, folder, 1, allow_half).wait(PATIENCE_SECONDS), whole(folder)) == (1, before)
    assert "no backup: " in events(home)


@pytest.mark.rare
def test_no_backup_is_begun_that_would_take_the_room_of_what_people_submit(home: Path, tmp_path: Path) -> None:
    with open(home / DATABASE_FILE, "r+b") as file:
        file.truncate(2**42)  # of holes: no disk has room for twice as much
    assert back_up(home, tmp_path / "elsewhere", keep=1) == 1
    assert "MB left, and a backup with its trial needs" in events(home)
    assert whole(tmp_path / "elsewhere") == []


@pytest.mark.rare
def test_a_damaged_database_costs_no_earlier_backup_and_stops_writing(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    assert back_up(home, folder, keep=1) == 0
    before = whole(folder)
    with open(home / DATABASE_FILE, "r+b") as file:
        file.write(b"nonsense" * 16)
    assert (back_up(home, folder, keep=1), whole(folder)) == (1, before)
    assert f"restore {before[0]} --home NEW" in events(home)


def note_age(home: Path, age: timedelta) -> None:
    known = noted(home)
    known[-1]["created_at"] = (datetime.now(UTC) - age).isoformat()
    (home / BACKUPS_FILE).write_text(json.dumps({"backups": known}), encoding="utf-8")


@pytest.mark.rare
@pytest.mark.parametrize("age", [timedelta(hours=7), timedelta(days=-1)], ids=["old", "of tomorrow"])
def test_a_start_makes_a_backup_where_the_newest_is_old_or_of_another_clock(home: Path, age: timedelta) -> None:
    folder = home / "backups"
    assert back_up(home, folder, keep=14) == 0
    (first,) = folder.glob("*.zip")
    wait(lambda: f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}" not in first.name)  # of one second there is one
    note_age(home, timedelta(hours=5))
    with looked_after(home, BackupsOnTime(SIX_HOURS)):
        pass
    note_age(home, age)
    with looked_after(home, BackupsOnTime(SIX_HOURS)):
        wait(lambda: len(list(folder.glob("*.zip"))) == 2)


@pytest.mark.rare
def test_stopping_the_server_ends_a_backup_at_once(home: Path) -> None:
    with looked_after(home, BackupsOnTime(SIX_HOURS)):
        wait(lambda: (home / "backups").exists())
        began = time.monotonic()
    assert time.monotonic() - began < PATIENCE_SECONDS / 10
    for path in (home / "backups").glob("*.zip"):
        check_backup(path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--backup-every", "6"], "should be a number and m, h or d"),
        (["--backup-every", "1m"], "no less than 10m"),
        (["--backup-every", "0h"], "no less than 10m"),
        (["--keep", "3"], "say how often with `--backup-every`"),
        (["--backup-to", "kept"], "say how often with `--backup-every`"),
        (["--backup-every", "6h", "--keep", "0"], "0 is not in the range"),
    ],
)
def test_backups_that_cannot_be_are_refused_before_anything_starts(tmp_path: Path, words: list[str], said: str) -> None:
    done = CliRunner().invoke(main, ["annotation", "serve", "--home", str(tmp_path / "home"), *words])
    assert (done.exit_code, said in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "home").exists()

"""A database that is damaged: what is said, that nothing more is written, and which backup is named."""

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner, Result

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import set_up
from annotation.server.home.damage import refuse_damaged_home
from annotation.server.home.folder import BACKUPS_FILE, DAMAGE_FILE, DATABASE_FILE, EVENTS_FILE
from annotation.server.launch import server_environment, start_server
from annotation.server.upkeep import check
from exports.cli import main
from pipeline.core.errors import ArgillaError, ServerStartError
from tests.support.places import ROOT

pytestmark = [pytest.mark.server, pytest.mark.rare]

RECORDS = 40
PAGE = 4096
PATIENCE_SECONDS = 60
VALUES = {label: {"value": "yes"} for label in LABELS["generation"]}


class Kept(NamedTuple):
    home: Path
    older: Path
    newer: Path
    dataset: str
    records: list[str]
    annotator_key: str


def command(*words: object) -> Result:
    return CliRunner().invoke(main, ["annotation", *map(str, words)])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    folder = tmp_path_factory.mktemp("damage")
    with start_server(folder / "home", port=0) as server, Argilla(server.url, server.owner_api_key) as owner:
        set_up(owner, "w", annotators=["anna"], min_submitted=1)
        dataset = find_datasets(owner, "w")["generation"].id
        fields = {"query": "q", "answer": "a" * 3000}
        items = [{"external_id": str(each), "fields": fields} for each in range(RECORDS)]
        stored = owner.request("PUT", f"/datasets/{dataset}/records/bulk", json={"items": items})["items"]
        (key,) = [user["api_key"] for user in owner.request("GET", "/users")["items"] if user["username"] == "anna"]
        with Argilla(server.url, key) as anna:
            submit(anna, stored[0]["id"])
    return Kept(folder / "home", folder, folder, dataset, [each["id"] for each in stored], key)


@pytest.fixture
def kept(made: Kept, tmp_path: Path) -> Kept:
    home, older, newer = tmp_path / "home", tmp_path / "older.zip", tmp_path / "newer one.zip"
    shutil.copytree(made.home, home)
    for path in (older, newer):
        assert command("backup", path, "--home", home).exit_code == 0
    with zipfile.ZipFile(older) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members["manifest.json"]) | {"created_at": "2026-11-01T10:00:00Z"}
    with zipfile.ZipFile(older, "w") as archive:
        for name, content in {**members, "manifest.json": json.dumps(manifest).encode()}.items():
            archive.writestr(name, content)
    noted = json.loads((home / BACKUPS_FILE).read_text())
    noted["backups"][0]["created_at"] = "2026-11-01T10:00:00Z"
    (home / BACKUPS_FILE).write_text(json.dumps(noted))
    return made._replace(home=home, older=older, newer=newer)


def submit(anna: Argilla, record: str) -> None:
    anna.request("POST", f"/records/{record}/responses", json={"status": "submitted", "values": VALUES})


def destroy(database: Path, table: str) -> None:
    """Write noise over a table's first page, and something elsewhere, so that whoever has read it reads again."""
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    with open(database, "r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(b"\xa5" * PAGE)
    with contextlib.closing(sqlite3.connect(database, timeout=30)) as connection, connection:
        connection.execute("UPDATE users SET updated_at = updated_at")


def lose_the_header(database: Path) -> None:
    with open(database, "r+b") as file:
        file.write(b"nonsense" * 16)


def nonsense_in_the_schema(database: Path) -> None:
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET sql = 'nonsense' WHERE name = 'records'")


@pytest.mark.parametrize(
    "damage",
    [
        lambda database: destroy(database, "records"),
        lose_the_header,
        lambda database: os.truncate(database, database.stat().st_size // 2),
        nonsense_in_the_schema,
    ],
    ids=["flipped bytes", "no header", "cut in half", "nonsense in the schema"],
)
def test_a_damaged_database_is_not_served(kept: Kept, tmp_path: Path, damage: Callable[[Path], None]) -> None:
    damage(kept.home / DATABASE_FILE)
    with pytest.raises(ServerStartError, match="is damaged") as caught:
        start_server(kept.home, port=0).__enter__()
    said = str(caught.value)
    assert f"`citejury annotation restore '{kept.newer}' --home NEW`" in said
    assert "\n" not in said
    assert command("restore", kept.newer, "--home", tmp_path / "new").exit_code == 0
    with contextlib.closing(sqlite3.connect(tmp_path / "new" / DATABASE_FILE)) as connection:
        assert connection.execute("SELECT count(*) FROM responses").fetchone() == (1,)
    refused = command("backup", tmp_path / "b.zip", "--home", kept.home)
    assert (refused.exit_code, str(kept.newer) in refused.stderr) == (1, True)
    assert not (tmp_path / "b.zip").exists()


def change_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


def write_another(path: Path) -> None:
    shutil.copyfile(path.with_name("older.zip"), path)


@pytest.mark.parametrize("spoil", [Path.unlink, change_a_byte, write_another])
def test_a_backup_that_is_gone_or_spoilt_is_not_named(kept: Kept, spoil: Callable[[Path], None]) -> None:
    spoil(kept.newer)
    lose_the_header(kept.home / DATABASE_FILE)
    with pytest.raises(ServerStartError, match="2026-11-01 10:00 UTC") as caught:
        start_server(kept.home, port=0).__enter__()
    assert f"restore {kept.older} --home" in str(caught.value)
    kept.older.unlink()
    with pytest.raises(ServerStartError, match="No good backup of it is known here"):
        start_server(kept.home, port=0).__enter__()


def refusal(action: Callable[[], object]) -> str:
    with pytest.raises(ArgillaError) as caught:
        action()
    return str(caught.value)


def told(home: Path, wanted: str) -> str:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while wanted not in (said := (home / EVENTS_FILE).read_text(encoding="utf-8")):
        assert time.monotonic() < deadline, said
        time.sleep(0.05)
    return said


def test_damage_while_people_work_stops_all_writing(kept: Kept) -> None:
    with start_server(kept.home, port=0) as server, Argilla(server.url, server.owner_api_key) as owner:
        with Argilla(server.url, kept.annotator_key) as anna:
            destroy(kept.home / DATABASE_FILE, "responses")
            first = refusal(lambda: submit(anna, kept.records[1]))
            assert "503" in first
            assert "The server's database is damaged, so nothing was stored and nothing more is taken" in first
            assert f"restore '{kept.newer}' --home NEW" in told(kept.home, "newest good backup")
            again = refusal(lambda: submit(anna, kept.records[2]))
            assert "is damaged" in again
            assert str(kept.newer.parent) not in first
            assert "damaged" in refusal(lambda: owner.request("POST", "/workspaces", json={"name": "another"}))
            bulk = {"items": [{"record_id": kept.records[3], "status": "draft", "values": VALUES}]}
            (item,) = anna.request("POST", "/me/responses/bulk", json=bulk)["items"]
            assert "damaged" in item["error"]["detail"]
            assert anna.me()["username"] == "anna"
        assert [each["name"] for each in owner.request("GET", "/me/workspaces")["items"]] == ["w"]
        listed = owner.request("GET", f"/datasets/{kept.dataset}/records", params={"limit": 50})["items"]
        assert len(listed) == RECORDS
    with pytest.raises(ServerStartError, match="is damaged"):
        start_server(kept.home, port=0).__enter__()


def test_the_look_of_each_night_finds_what_nobody_has_asked_for(kept: Kept) -> None:
    (kept.home / DAMAGE_FILE).write_text('{"found": "f", "advice": "a", "answer": "b"}', encoding="utf-8")
    with start_server(kept.home, port=0) as server, Argilla(server.url, kept.annotator_key) as anna:
        assert not (kept.home / DAMAGE_FILE).exists()  # a database that is whole again is served
        check(kept.home)
        assert "the database was looked through and is whole" in told(kept.home, "looked through")
        submit(anna, kept.records[1])
        destroy(kept.home / DATABASE_FILE, "vectors")
        submit(anna, kept.records[2])
        check(kept.home)
        assert "damaged" in refusal(lambda: submit(anna, kept.records[3]))
        assert str(kept.newer) in told(kept.home, "newest good backup")


def test_damage_that_the_web_part_meets_at_its_start_is_a_sentence_too(kept: Kept) -> None:
    nonsense_in_the_schema(kept.home / DATABASE_FILE)
    lifeline, end = os.pipe()
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "annotation.server.web", str(lifeline), "0"],
            env=server_environment(kept.home) | {"PYTHONPATH": str(ROOT), "ARGILLA_REDIS_URL": "unix:///nowhere"},
            pass_fds=(lifeline,),
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    finally:
        os.close(lifeline)
        os.close(end)
    assert done.returncode == 1
    assert "is damaged (malformed database schema (records))" in done.stderr.splitlines()[-1]
    assert str(kept.newer) in done.stderr.splitlines()[-1]
    assert "malformed" in json.loads((kept.home / DAMAGE_FILE).read_text())["found"]


@pytest.fixture
def killed(kept: Kept) -> Path:
    """A home whose last answers are in SQLite's log only, because whoever wrote them was killed."""
    code = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("PRAGMA journal_mode = WAL")
connection.execute("PRAGMA wal_autocheckpoint = 0")
for number in range(50):
    connection.execute("UPDATE records SET external_id = id || ?", (number,))
    connection.commit()
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", code, str(kept.home / DATABASE_FILE)], check=False)
    assert (kept.home / f"{DATABASE_FILE}-wal").stat().st_size > 100 * PAGE
    return kept.home


def test_a_log_of_the_database_that_was_cut_is_told_and_the_rest_is_served(killed: Path) -> None:
    log, lines = killed / f"{DATABASE_FILE}-wal", []
    whole = killed.with_name("whole")
    shutil.copytree(killed, whole)
    for cut in (0, 1, 100 * PAGE, log.stat().st_size - 10):
        shutil.rmtree(killed)
        shutil.copytree(whole, killed)
        os.truncate(log, log.stat().st_size - cut)
        if cut != 1:
            refuse_damaged_home(killed, lines.append)
            assert len(lines) == bool(cut)
        else:
            with start_server(killed, port=0, waiting=lines.append) as new, Argilla(new.url, new.owner_api_key) as who:
                assert who.me()["username"] == "owner"
            assert "missing from the log" in (killed / f"{EVENTS_FILE}.1").read_text(encoding="utf-8")
        for line in lines:
            assert "bytes are missing from the log of the database: what was stored last may be lost" in line
        lines.clear()


def test_a_home_on_a_disk_that_takes_nothing_is_one_sentence(kept: Kept) -> None:
    code = "import sys; from exports.cli import main; main(sys.argv[1:])"
    serve = [sys.executable, "-c", code, "annotation", "serve", "--port", "0", "--home", str(kept.home)]
    mount = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" || exit 77; exec "$@"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", mount, str(kept.home), *serve],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    if done.returncode not in (0, 1):
        pytest.skip(f"no disk can be made read-only here: {done.stderr.strip()}")
    assert (done.returncode, done.stdout) == (1, "")
    (sentence,) = done.stderr.splitlines()
    assert f"`{kept.home}` cannot be" in sentence
    assert "Read-only file system" in sentence

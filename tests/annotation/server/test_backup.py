"""Backups made while people submit, homes made from them, and homes of other versions."""

import json
import os
import re
import shutil
import sqlite3
import stat
import threading
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from click.testing import CliRunner, Result

from annotation.argilla.client import KEY_HEADER, Argilla
from annotation.argilla.labels import LABELS
from annotation.campaign.datasets import find_datasets
from annotation.campaign.people import NewUser, Passwords, renew_password
from annotation.campaign.setup import set_up
from annotation.server.home.archive import bring_up_to_date
from annotation.server.home.folder import DATABASE_FILE, EVENTS_FILE, SECRETS_FILE, VERSIONS_FILE
from annotation.server.launch import ServerHandle, ServerOptions, start_server
from annotation.server.upkeep import BackupsOnTime
from exports.cli import main
from pipeline.core.errors import ServerStartError
from tests.annotation.server.test_upkeep import back_up, events, wait, whole

pytestmark = pytest.mark.server

PATIENCE_SECONDS = 120
ANNOTATORS = [f"annotator-{number}" for number in range(3)]
RECORDS = 15
BACKUPS = 2


class Saved(NamedTuple):
    """A backup made under load, and what was acknowledged before it began and until it was done."""

    path: Path
    before: frozenset[str]
    after: frozenset[str]


class Kept(NamedTuple):
    server: ServerHandle
    backups: tuple[Saved, ...]
    answers: int
    ended: dict[str, str]
    """The header of a log-in that was ended before the first backup."""


def command(*words: object) -> Result:
    return CliRunner().invoke(main, ["annotation", *map(str, words)])


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    folder = tmp_path_factory.mktemp("backup")
    on_time = ServerOptions(backups=BackupsOnTime(timedelta(hours=6)))
    with (
        start_server(folder / "home", port=0, options=on_time) as server,
        Argilla(server.url, server.owner_api_key) as owner,
    ):
        new: list[NewUser] = []
        set_up(owner, "w", annotators=ANNOTATORS, min_submitted=2, announce=new.append)
        login = {"username": new[0].username, "password": new[0].password}
        token = httpx.post(f"{server.url}/api/v1/token", data=login).raise_for_status().json()["access_token"]
        renew_password(owner, new[0].username, Passwords())
        dataset = find_datasets(owner, "w")["generation"].id
        items = [{"external_id": str(each), "fields": {"query": "q", "answer": "a"}} for each in range(RECORDS)]
        stored = owner.request("PUT", f"/datasets/{dataset}/records/bulk", json={"items": items})["items"]
        people = [user for user in owner.request("GET", "/users")["items"] if user["username"] in ANNOTATORS]
        acknowledged: list[str] = []
        first = threading.Semaphore(0)
        with ThreadPoolExecutor(len(people)) as pool:
            work = [
                pool.submit(submit_all, server, user["api_key"], [each["id"] for each in stored], acknowledged, first)
                for user in people
            ]
            assert first.acquire(timeout=PATIENCE_SECONDS)
            backups = tuple(backup_now(folder, number, acknowledged) for number in range(BACKUPS))
            for done in work:
                done.result()
        yield Kept(server, backups, len(acknowledged), {"Authorization": f"Bearer {token}"})


def submit_all(
    server: ServerHandle, key: str, records: list[str], acknowledged: list[str], first: threading.Semaphore
) -> None:
    values = {label: {"value": "yes"} for label in LABELS["generation"]}
    with Argilla(server.url, key) as annotator:
        for record in records:
            body = {"status": "submitted", "values": values}
            acknowledged.append(annotator.request("POST", f"/records/{record}/responses", json=body)["id"])
            first.release()


def backup_now(folder: Path, number: int, acknowledged: list[str]) -> Saved:
    path, before = folder / f"{number}.zip", frozenset(acknowledged)
    done = command("backup", path, "--home", folder / "home")
    assert (done.exit_code, done.stdout.strip()) == (0, str(path)), done.output
    return Saved(path, before, frozenset(acknowledged))


def responses_in(database: Path) -> set[str]:
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        wrong = connection.execute(
            "SELECT count(*) FROM records WHERE (status = 'completed') != ((SELECT count(*) FROM responses "
            "WHERE record_id = records.id AND responses.status = 'submitted') >= 2) AND dataset_id IN "
            "(SELECT dataset_id FROM responses JOIN records ON records.id = record_id)"
        ).fetchone()
        assert wrong == (0,)
        found = {str(row[0]).replace("-", "") for row in connection.execute("SELECT id FROM responses")}
    return found


@pytest.mark.rare
def test_each_backup_under_load_is_one_moment_of_the_server(kept: Kept, tmp_path: Path) -> None:
    assert kept.answers == len(ANNOTATORS) * RECORDS
    for saved in kept.backups:
        assert stat.S_IMODE(saved.path.stat().st_mode) == 0o600
        home = tmp_path / saved.path.stem
        restored = command("restore", saved.path, "--home", home)
        assert (restored.exit_code, restored.stdout.strip()) == (0, str(home)), restored.output
        found = responses_in(home / DATABASE_FILE)
        # At most one more of each annotator was stored and not yet acknowledged.
        assert {each.replace("-", "") for each in saved.before} <= found
        assert len(found) <= len(saved.after) + len(ANNOTATORS)
    assert not [path.name for path in kept.backups[0].path.parent.iterdir() if path.name.startswith(".")]


def test_a_server_makes_backups_by_itself_tries_them_and_keeps_as_many_as_wanted(kept: Kept, tmp_path: Path) -> None:
    wait(lambda: "made from it on trial: 0 answers" in events(kept.server.home))
    assert len(whole(kept.server.home / "backups")) == 1
    home, folder = tmp_path / "home", tmp_path / "elsewhere"
    command("restore", kept.backups[-1].path, "--home", home)
    assert back_up(home, folder, keep=1) == 0
    (first,) = whole(folder)
    wait(lambda: back_up(home, folder, keep=1) == 0)  # of one second there is one
    (second,) = whole(folder)
    assert first != second
    assert kept.backups[-1].path.exists()  # somebody else made it


def test_a_restored_home_starts_with_its_answers_and_the_key_of_its_secrets(kept: Kept, tmp_path: Path) -> None:
    home, key = tmp_path / "home", "another.key"
    command("restore", kept.backups[-1].path, "--home", home)
    recorded = change_versions(home, citejury="0.0.1")
    secrets = json.loads((home / SECRETS_FILE).read_text(encoding="utf-8"))
    assert secrets["owner_api_key"] == kept.server.owner_api_key
    (home / SECRETS_FILE).write_text(json.dumps({**secrets, "owner_api_key": key}), encoding="utf-8")
    with start_server(home, port=0) as server, Argilla(server.url, key) as owner:
        assert owner.me()["username"] == "owner"
        earlier = {KEY_HEADER: kept.server.owner_api_key}
        assert httpx.get(f"{server.url}/api/v1/me", headers=earlier).status_code == 401
        assert f"ARGILLA_API_KEY={key}" in (home / "env").read_text(encoding="utf-8")
        assert httpx.get(f"{server.url}/api/v1/me", headers=kept.ended).status_code == 401
        dataset = find_datasets(owner, "w")["generation"].id
        read = sum(len(record["responses"]) for _, page in owner.record_pages(dataset) for record in page)
        assert read >= len(kept.backups[-1].before)
    (copy,) = (home / "backups").iterdir()
    assert copy.name.startswith("before-upgrade-from-0.0.1-")
    assert copy.name in (home / EVENTS_FILE).read_text(encoding="utf-8")
    again = command("restore", copy, "--home", tmp_path / "again")
    assert again.exit_code == 0, again.output
    assert change_versions(home) == recorded


def test_a_damaged_home_is_not_served_and_names_the_backup_that_it_was_made_from(kept: Kept, tmp_path: Path) -> None:
    home, backup = tmp_path / "home", kept.backups[-1].path
    command("restore", backup, "--home", home)
    with open(home / DATABASE_FILE, "r+b") as file:
        file.write(b"nonsense" * 16)
    with pytest.raises(ServerStartError, match="is damaged") as caught:
        start_server(home, port=0).__enter__()
    assert f"restore {backup} --home" in str(caught.value)
    refused = command("backup", tmp_path / "b.zip", "--home", home)
    assert (refused.exit_code, str(backup) in refused.stderr) == (1, True)


def test_an_upgrade_may_rebuild_the_tables_that_our_triggers_mention(kept: Kept, tmp_path: Path) -> None:
    home = tmp_path / "home"
    command("restore", kept.backups[0].path, "--home", home)
    change_versions(home, citejury="0.0.1")
    bring_up_to_date(home)
    with closing(sqlite3.connect(home / DATABASE_FILE)) as connection:
        for table in ("records", "responses", "datasets"):
            connection.execute(f"CREATE TABLE rebuilt AS SELECT * FROM {table}")
            connection.execute(f"DROP TABLE {table}")
            connection.execute(f"ALTER TABLE rebuilt RENAME TO {table}")


def change_versions(home: Path, **changed: str) -> dict[str, str]:
    before: dict[str, str] = json.loads((home / VERSIONS_FILE).read_text(encoding="utf-8"))
    (home / VERSIONS_FILE).write_text(json.dumps({**before, **changed}), encoding="utf-8")
    return before


@pytest.mark.parametrize("newer", ["release", "tables"])
def test_a_home_of_newer_software_is_refused_and_left_alone(kept: Kept, tmp_path: Path, newer: str) -> None:
    home = tmp_path / "home"
    command("restore", kept.backups[0].path, "--home", home)
    if newer == "release":
        change_versions(home, citejury="99.1.0")
    else:
        with closing(sqlite3.connect(home / DATABASE_FILE)) as connection, connection:
            connection.execute("UPDATE alembic_version SET version_num = 'ffffffffffff'")
    before = (home / DATABASE_FILE).read_bytes()
    with pytest.raises(ServerStartError, match=r"was last used by .*Install the newer one again"):
        start_server(home, port=0).__enter__()
    assert (home / DATABASE_FILE).read_bytes() == before
    assert not (home / "backups").exists()
    saved = command("backup", tmp_path / "newer.zip", "--home", home)
    assert saved.exit_code == 0, saved.output
    refused = command("restore", tmp_path / "newer.zip", "--home", tmp_path / "other")
    assert (refused.exit_code, "was last used by" in refused.stderr) == (1, True)
    assert not (tmp_path / "other").exists()


Members = dict[str, bytes]


def rewritten(change: Callable[[Members], object], packing: int = zipfile.ZIP_STORED) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        change(members)
        with zipfile.ZipFile(path, "w", packing) as archive:
            for name, content in members.items():
                archive.writestr(name, content)

    return damage


def saying(change: Callable[[Any], object]) -> Callable[[Path], None]:
    def change_it(members: Members) -> None:
        manifest = json.loads(members["manifest.json"])
        change(manifest)
        members["manifest.json"] = json.dumps(manifest).encode()

    return rewritten(change_it)


def change_some_bytes(path: Path) -> None:
    """One alone may say where the same bytes are found again, and what is unpacked is then what it was."""
    with zipfile.ZipFile(path) as archive:
        place = archive.getinfo(DATABASE_FILE).header_offset + 2000
    content = bytearray(path.read_bytes())
    content[place : place + 16] = bytes(each ^ 0xFF for each in content[place : place + 16])
    path.write_bytes(content)


def name_another_place(path: Path) -> None:
    saying(lambda said: said["files"].update({"../outside": said["files"].pop("secrets.json")}))(path)
    rewritten(lambda members: members.update({"../outside": members.pop("secrets.json")}))(path)


def say_another_packing(path: Path) -> None:
    """The database said to be packed in a way that nobody has."""
    content = bytearray(path.read_bytes())
    for mark, place in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        for found in re.finditer(re.escape(mark), content):
            content[found.start() + place : found.start() + place + 2] = b"\x63\x00"
    path.write_bytes(content)


def write_zeros_over_the_middle(path: Path) -> None:
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 500] = bytes(500)
    path.write_bytes(content)


def claim(**sizes: int) -> Callable[[Path], None]:
    names = {"secrets": "secrets.json", "database": DATABASE_FILE}
    return saying(lambda said: [said["files"][names[each]].update(size=size) for each, size in sizes.items()])


NOTHING_BEGUN = {
    # A length below nothing would make room in the sum for a database of any length.
    "room is owed": claim(secrets=-(10**18), database=10**18),
    "long secrets": claim(secrets=10**7),
    "long manifest": rewritten(
        lambda members: members.update({"manifest.json": members["manifest.json"] + b" " * (2 * 10**8)}),
        zipfile.ZIP_DEFLATED,
    ),
}
DAMAGE = {
    **NOTHING_BEGUN,
    "bomb": rewritten(lambda members: members.update({DATABASE_FILE: bytes(2 * 10**8)}), zipfile.ZIP_DEFLATED),
    "packing": say_another_packing,
    "zeros": write_zeros_over_the_middle,
    "cut off": lambda path: os.truncate(path, path.stat().st_size // 2),
    "bytes": change_some_bytes,
    "another database": rewritten(lambda members: members.update({DATABASE_FILE: members[DATABASE_FILE][::-1]})),
    "another place": name_another_place,
    "path in a version": saying(lambda said: said["versions"].update(citejury="0.0.1/../../../outside")),
    "colours": saying(lambda said: said["versions"].update(argilla_server="\x1b[31m")),
    "no time": saying(lambda said: said.update(created_at="yesterday")),
    "full disk": claim(database=10**18),
}


EVERYDAY = ("long secrets", "bytes", "another place", "full disk")


@pytest.mark.parametrize(
    "damage", [pytest.param(each, marks=() if each in EVERYDAY else pytest.mark.rare) for each in DAMAGE]
)
def test_a_damaged_backup_is_refused_and_nothing_is_left(kept: Kept, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "b.zip"
    shutil.copyfile(kept.backups[0].path, path)
    DAMAGE[damage](path)
    done = command("restore", path, "--home", tmp_path / "deep" / "home")
    assert (done.exit_code, done.stdout) == (1, "")
    assert ("has" if damage == "full disk" else "b.zip") in done.stderr
    assert isinstance(done.exception, SystemExit)
    assert "\x1b" not in done.stderr
    assert not [each for each in tmp_path.rglob("*") if each.is_file() and each != path]
    assert damage not in NOTHING_BEGUN or not (tmp_path / "deep").exists()


def test_a_home_in_use_or_not_empty_is_never_written(kept: Kept, tmp_path: Path) -> None:
    in_use = command("restore", kept.backups[0].path, "--home", kept.server.home)
    assert (in_use.exit_code, kept.server.url in in_use.stderr) == (1, True)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("mine", encoding="utf-8")
    done = command("restore", kept.backups[0].path, "--home", tmp_path / "home")
    assert (done.exit_code, "is not empty" in done.stderr) == (1, True)
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["thesis.txt"]


def test_what_is_no_backup_is_not_replaced_and_an_earlier_backup_is(kept: Kept, tmp_path: Path) -> None:
    home, thesis = tmp_path / "home", tmp_path / "thesis.txt"
    command("restore", kept.backups[0].path, "--home", home)
    thesis.write_text("mine", encoding="utf-8")
    refused = command("backup", thesis, "--home", home)
    assert (refused.exit_code, thesis.read_text(encoding="utf-8")) == (1, "mine")
    for _ in range(2):
        (tmp_path / ".b.zip.part").mkdir(exist_ok=True)
        (tmp_path / ".b.zip.part" / "left by one that was killed").touch()
        assert command("backup", tmp_path / "b.zip", "--home", home).exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.zip", "home", "thesis.txt"]
    assert "holds no server" in command("backup", tmp_path / "b.zip", "--home", tmp_path).stderr

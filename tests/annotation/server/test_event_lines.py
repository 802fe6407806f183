"""What `annotation serve` tells while it runs, in plain lines without a secret; logs turn and stay small."""

import asyncio
import contextlib
import fcntl
import logging
import os
import pty
import re
import signal
import sqlite3
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import httpx
import psutil
import pytest
from click.testing import CliRunner

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import set_up
from annotation.push.push import push_records
from annotation.server.home.folder import (
    BEHIND_TLS_VARIABLE,
    DATABASE_FILE,
    EVENTS_FILE,
    is_behind_tls,
    read_or_make_secrets,
)
from annotation.server.home.logs import EVENTS_VARIABLE, LONGEST, LogPipe, ShortEntries, following, tell
from annotation.server.patches.middleware import BehindTls, RequestEvents
from exports.cli import main
from pipeline.core.terminal import printable
from pipeline.records.schema import Passage, QueryResponse

PATIENCE_SECONDS = 120
PASSAGE = Passage(chunk_id="d#0", doc_id="d", chunk_rank=1, text="Nobody did.")
ANSWER = QueryResponse(
    record_uuid="r1", query="Who?", answer="Nobody.", language="en", chunks=(PASSAGE,), context_set=PASSAGE.text
)
HOSTILE = "eve\n23:59:59 owner logged in\x1b[31m" + "x" * 160
HOSTILE_SHOWN = printable(f"{HOSTILE[:59]}…")
TYPED_BY_MISTAKE = "my-real-password"
PROGRAM = [sys.executable, "-c", "from exports.cli import main; main()"]


@pytest.mark.rare
@pytest.mark.server
def test_serve_tells_what_matters_and_no_secret_and_a_signal_leaves_no_process_behind(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with serving(home) as (process, url):
        kept = read_or_make_secrets(home)
        with Argilla(url, kept.owner_api_key) as owner:
            work(owner, url, kept.owner_password)
            deadline = time.monotonic() + PATIENCE_SECONDS
            while "job done" not in (home / EVENTS_FILE).read_text(encoding="utf-8"):
                assert time.monotonic() < deadline
                owner.request("GET", "/me")
            backup = ["annotation", "backup", "--home", str(home), str(home / "b.zip")]
            assert CliRunner().invoke(main, backup).exit_code == 0
            with contextlib.closing(sqlite3.connect(home / DATABASE_FILE)) as database:
                database.execute("DROP TABLE webhooks")
            failed = httpx.get(f"{url}/api/v1/webhooks", headers={"X-Argilla-Api-Key": kept.owner_api_key})
        said = ended(process)
    lines = [line for line in said.splitlines() if re.match(r"\d\d:\d\d:\d\d ", line)]
    told = [line[9:] for line in lines]
    request_id = failed.headers["x-request-id"]
    for expected in (
        "login failed: wrong password for owner",
        "login failed: wrong password for owner (1 more within a minute)",
        "login failed: unknown user name",
        "owner logged in",
        "dataset 3-generation-en published",
        "1 record pushed to 3-generation-en",
        "2 records sent again to 3-generation-en",
        "owner deleted 1 answer of owner in 3-generation-en",
        "owner deleted 1 record from 3-generation-en",
        "owner deleted 1 answer with records of 3-generation-en",
        f"user {HOSTILE_SHOWN} deleted with 0 answers by owner",
        "dataset 2-grounding-en deleted with everything in it, 0 answers, by owner",
        "2 submitted in 3-generation-en: owner 2",
        "job done: update dataset records status",
        "backup written to b.zip",
        f"request {request_id} failed (OperationalError): GET /webhooks",
    ):
        assert told.count(expected) == 1, (expected, said)
    kept_lines = (home / EVENTS_FILE).read_text(encoding="utf-8")
    assert len(kept_lines.splitlines()) == len(lines)
    assert "webhooks" not in failed.text
    for secret in (*kept[1:], TYPED_BY_MISTAKE, ANSWER.answer):
        assert secret not in said + kept_lines
    assert f"request {request_id} failed" in (home / "logs" / "web.log").read_text(encoding="utf-8")


def ended(process: "subprocess.Popen[str]") -> str:
    """What it has said until a signal ended it and every process under it."""
    parts = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=PATIENCE_SECONDS)[1]
    _, alive = psutil.wait_procs(parts, timeout=PATIENCE_SECONDS)
    assert (process.returncode, alive) == (0, [])
    return said


def work(owner: Argilla, url: str, password: str) -> None:
    for username, typed in (("owner", "wrong"), ("owner", "wrong"), (TYPED_BY_MISTAKE, "owner"), ("owner", password)):
        httpx.post(f"{url}/api/v1/token", data={"username": username, "password": typed}, timeout=PATIENCE_SECONDS)
    set_up(owner, "w", min_submitted=2)
    push_records(owner, "w", [ANSWER])
    dataset = find_datasets(owner, "w")["generation"].id
    record = next(owner.record_pages(dataset))[1][0]
    owner.request("PUT", f"/datasets/{dataset}/records/bulk", json={"items": [{"id": record["id"]}]})
    answer = {"status": "submitted", "values": {label: {"value": "yes"} for label in LABELS["generation"]}}
    owner.request("POST", f"/records/{record['id']}/responses", json=answer)
    owner.request("POST", "/me/responses/bulk", json={"items": [{**answer, "record_id": record["id"]}]})
    body = {"username": HOSTILE, "first_name": "Eve", "password": "12345678"}
    eve = owner.request("POST", "/users", json=body)["id"]
    draft = {"id": record["id"], "responses": [{"user_id": eve, "status": "draft", "values": {}}]}
    owner.request("PUT", f"/datasets/{dataset}/records/bulk", json={"items": [draft]})
    for each in owner.request("GET", f"/records/{record['id']}")["responses"]:
        if each["user_id"] != eve:
            owner.request("DELETE", f"/responses/{each['id']}")
    owner.request("DELETE", f"/datasets/{dataset}/records", params={"ids": record["id"]})
    owner.request("DELETE", f"/users/{eve}")
    owner.request("DELETE", f"/datasets/{find_datasets(owner, 'w')['grounding'].id}")
    overlap = {"distribution": {"strategy": "overlap", "min_submitted": 1}}
    owner.request("PATCH", f"/datasets/{dataset}", json=overlap)


@contextlib.contextmanager
def serving(home: Path) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    command = [*PROGRAM, "annotation", "serve", "--home", str(home), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            yield process, next(line for line in process.stderr if line.startswith("Argilla is at")).split()[-1]
        finally:
            process.kill()


def test_narrow_terminals_break_lines_and_names_no_event(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 44, 0, 0))
    script = "from annotation.cli.serve import EventPrinter\nEventPrinter().show(__import__('sys').argv[1])"
    line = "2026-11-21T10:00:00+00:00 12 submitted in production-generation-en: anna 7, ben 5"
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    with os.fdopen(controller, "rb", buffering=0) as shown:
        command = [sys.executable, "-c", script, line]
        subprocess.run(command, stdout=terminal, stderr=terminal, env=environment, check=True)
        os.close(terminal)
        day, *lines = shown.read(4096).decode().splitlines()
    assert re.fullmatch(r"2026-11-2\d", day)
    assert all(len(each) <= 44 for each in lines)
    assert [each[:9].strip() != "" for each in lines] == [True, False]
    monkeypatch.setenv(EVENTS_VARIABLE, str(tmp_path / "events"))
    tell("ana\n2026-01-01T00:00:00+00:00 owner\r\x1b[2J\u202e logged in " + "佐" * LONGEST)
    (line,) = (tmp_path / "events").read_text(encoding="utf-8").splitlines()
    assert line.isprintable()
    assert line.endswith("佐…")
    assert len(line) <= len("2026-01-01T00:00:00+00:00 ") + LONGEST


async def plain_app(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": scope["scheme"].encode()})


def answers(app: Any, address: str, *requests: dict[str, str]) -> list[httpx.Response]:

    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app, client=(address, 1234))
        async with httpx.AsyncClient(transport=transport, base_url="http://192.0.2.5") as client:
            path = "/api/v1/records/7a0e7b9e-2a41-4c8e-9d0b-6a0f43b7e001"
            return [await client.get(path, headers=headers) for headers in requests]

    return asyncio.run(ask())


def test_a_slow_request_is_told_without_the_ids_in_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(EVENTS_VARIABLE, str(tmp_path / "events"))
    first, second = answers(RequestEvents(plain_app, slow_seconds=0), "127.0.0.1", {}, {})
    assert first.headers["x-request-id"] != second.headers["x-request-id"]
    (line,) = (tmp_path / "events").read_text(encoding="utf-8").splitlines()
    assert line.endswith(" slow, more than 0 s: GET /records/…")


@pytest.mark.parametrize(
    ("address", "headers", "scheme"),
    [
        ("127.0.0.1", {"X-Forwarded-Proto": "https"}, "https"),
        ("10.0.0.7", {"X-Forwarded-Proto": "https"}, "https"),
        ("127.0.0.1", {}, "http"),
        ("::ffff:127.0.0.1", {}, "http"),
        ("192.0.2.5", {}, "http"),
        ("127.0.0.1", {"X-Forwarded-Proto": "http"}, None),
        ("127.0.0.1", {"X-Forwarded-For": "127.0.0.1"}, None),
        ("10.0.0.7", {"X-Forwarded-Proto": "https, http"}, None),
        ("10.0.0.7", {"X-Forwarded-For": "127.0.0.1"}, None),
        ("10.0.0.7", {}, None),
    ],
)
def test_behind_a_proxy_only_https_is_answered(address: str, headers: dict[str, str], scheme: str | None) -> None:
    (reply,) = answers(BehindTls(plain_app), address, headers)
    assert (reply.status_code, reply.text) == (200, scheme) if scheme else (reply.status_code == 403)
    assert ("strict-transport-security" in reply.headers) == (scheme == "https")


@pytest.mark.parametrize(("word", "is_on"), [("1", True), ("true", True), ("0", False), (" False", False), ("", False)])
def test_the_word_for_no_proxy_is_understood(monkeypatch: pytest.MonkeyPatch, word: str, is_on: bool) -> None:
    monkeypatch.setenv(BEHIND_TLS_VARIABLE, word)
    assert is_behind_tls() is is_on


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "localhost.example.org"])
def test_a_host_of_the_network_without_https_is_refused(tmp_path: Path, host: str) -> None:
    done = CliRunner().invoke(main, ["annotation", "serve", "--home", str(tmp_path / "home"), "--host", host])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--behind-tls" in done.stderr
    assert not (tmp_path / "home").exists()


LARGEST = 2_000
LINES = [f"line {number:04}" for number in range(300)]


@pytest.mark.parametrize(
    "pieces", [[f"{line}\n".encode() for line in LINES], [b"x" * 60_000] * 50], ids=["lines", "one"]
)
def test_a_full_log_is_turned_while_its_part_writes_on(tmp_path: Path, pieces: list[bytes]) -> None:
    path = tmp_path / "web.log"
    log = LogPipe(path, LARGEST)
    for piece in pieces:
        os.write(log.writing, piece)
    os.close(log.writing)
    log.thread.join()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["web.log", "web.log.1"]
    now, before = (each.read_text(encoding="utf-8") for each in (path, Path(f"{path}.1")))
    assert max(len(now), len(before)) <= LARGEST + 2**16
    if b"\n" in pieces[0]:
        kept = (before + now).splitlines()
        assert kept == LINES[-len(kept) :], "what is kept is whole lines, the newest, in order"
    assert path.stat().st_mode & 0o777 == 0o600


def test_events_of_several_parts_turn_and_each_is_shown_once(tmp_path: Path) -> None:
    path = tmp_path / "events.log"
    shown: list[str] = []

    def write(part: str) -> None:
        for line in LINES:
            tell(f"{part} {line}", path, 8 * LARGEST)

    followed = threading.Event()

    def show(line: str) -> None:
        shown.append(line)
        followed.set()

    with following(path, show):
        tell("first", path)
        followed.wait()  # two turns before the first look would be one too many
        parts = [threading.Thread(target=write, args=(part,)) for part in "ab"]
        for each in parts:
            each.start()
        for each in parts:
            each.join()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["events.log", "events.log.1"]
    assert max(each.stat().st_size for each in tmp_path.iterdir()) <= 8 * LARGEST
    told = [*(f"{part} {line}" for part in "ab" for line in LINES), "first"]
    assert sorted(line.partition(" ")[2] for line in shown) == told


def test_an_entry_is_cut_and_says_by_how_much() -> None:
    def fail() -> NoReturn:
        raise ValueError("y" * 5_000_000)

    formatter = ShortEntries("%(message)s")
    try:
        fail()
    except ValueError:
        record = logging.LogRecord("a", logging.ERROR, "", 1, "sent: " + "x" * 5_000_000, (), sys.exc_info())
    text = formatter.format(record)
    assert len(text) < 5_000
    assert all(said in text for said in ("sent: xxx", "(4,999,006 characters left out)", "ValueError: yyy"))
    many = logging.LogRecord("a", logging.ERROR, "", 1, "z\n" * 1_000_000, (), None)
    assert len(formatter.format(many)) < 101_000
    assert formatter.format(logging.LogRecord("a", logging.ERROR, "", 1, "one\ntwo", (), None)) == "one\ntwo"

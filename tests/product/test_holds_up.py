import resource
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import psutil
import pytest

from annotation.argilla.client import Argilla
from annotation.server.home.folder import EVENTS_FILE
from tests.support.crowd import (
    Crowd,
    acknowledged_of,
    add_records,
    all_at_once,
    check_books,
    connection,
    gather,
    response_body,
)

if TYPE_CHECKING:
    from annotation.server.launch import ServerHandle

pytestmark = pytest.mark.server

ANNOTATORS = 20
MIN_SUBMITTED = 3
ROOM = 64 * 1024  # bytes that a file may still grow while the disk is full


@pytest.fixture(scope="module")
def crowd(client: Argilla) -> Crowd:
    return gather(client, f"crowd-{uuid4().hex[:8]}", ANNOTATORS, MIN_SUBMITTED)


@pytest.mark.parametrize("seconds", [2, pytest.param(60, marks=pytest.mark.soak)])
def test_twenty_annotators_at_once_lose_and_double_nothing(
    argilla_server: "ServerHandle", client: Argilla, crowd: Crowd, seconds: int, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(seconds // 10 + 1):
        add_records(client, crowd, 300)
    end = time.monotonic() + seconds
    works = all_at_once(argilla_server.url, crowd, lambda: time.monotonic() > end)
    acknowledged = acknowledged_of(works)
    assert [refusal for work in works for refusal in work.refused] == []
    assert len(acknowledged) >= ANNOTATORS
    check_books(client, crowd.dataset, MIN_SUBMITTED, acknowledged)
    taken = [each for work in works for each in work.seconds]
    slowest = statistics.quantiles(taken, n=20)[-1]
    with capsys.disabled():
        sys.stderr.write(f" {len(taken)} submissions by {ANNOTATORS} annotators, p95 {slowest * 1000:.0f} ms ")


def test_an_answer_sent_twice_at_once_is_one(argilla_server: "ServerHandle", client: Argilla, crowd: Crowd) -> None:
    user, key = next(iter(crowd.keys.items()))
    for record in add_records(client, crowd, 3):
        statuses: list[int] = []
        together = threading.Barrier(4)

        def send(record: str = record, statuses: list[int] = statuses, together: threading.Barrier = together) -> None:
            with connection(argilla_server.url, key) as annotator:
                together.wait()
                statuses.append(annotator.post(f"/records/{record}/responses", json=response_body("twice")).status_code)

        senders = [threading.Thread(target=send) for _ in range(together.parties)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        assert sorted(statuses) == [201, 409, 409, 409]
        stored = client.request("GET", f"/records/{record}")["responses"]
        assert [response["user_id"] for response in stored] == [user]


def test_a_full_disk_is_named_and_work_goes_on_when_there_is_room(
    argilla_server: "ServerHandle", client: Argilla, crowd: Crowd
) -> None:
    if sys.platform != "linux":
        pytest.skip("Only Linux limits the files of a process that runs.")
    web = web_of(argilla_server)
    events = argilla_server.home / EVENTS_FILE
    user, key = next(iter(crowd.keys.items()))
    acknowledged = {}
    with connection(argilla_server.url, key) as annotator:
        records = iter(add_records(client, crowd, 100))
        told = events.read_text(encoding="utf-8")
        limit_files(web, len(told) + ROOM)
        try:
            for record in records:
                reply = annotator.post(f"/records/{record}/responses", json=response_body("kept"))
                if reply.status_code != 201:
                    break
                acknowledged[record, user] = "kept"
            assert (reply.status_code, "cannot write its database" in reply.json()["detail"]) == (507, True)
            many = [{"record_id": each, **response_body("kept")} for each in (record, *records)]
            results = annotator.post("/me/responses/bulk", json={"items": many}).json()["items"]
            said = [each["error"]["detail"] for each in results]
            assert (len(said), said[0]) == (len(many), reply.json()["detail"])
            assert {text.split(",")[0] for text in said[1:]} == {"Not tried"}
        finally:
            limit_files(web, resource.RLIM_INFINITY)
        assert "cannot write its database" in events.read_text(encoding="utf-8").removeprefix(told)
        again = annotator.post(f"/records/{record}/responses", json=response_body("kept"))
        assert again.status_code == 201, again.text
    check_books(client, crowd.dataset, MIN_SUBMITTED, acknowledged | {(record, user): "kept"})


def web_of(server: "ServerHandle") -> int:
    (web,) = (
        part
        for part in psutil.Process().children(recursive=True)
        if "annotation.server.web" in part.cmdline() and Path(part.cwd()) == server.home / "queue"
    )
    return web.pid


def limit_files(process: int, largest: int) -> None:
    """Let no file of the process grow beyond so many bytes, as on a disk without more room."""
    resource.prlimit(process, resource.RLIMIT_FSIZE, (largest, resource.RLIM_INFINITY))


def test_a_home_that_cannot_be_made_or_written_is_named(tmp_path: Path) -> None:
    closed, home = tmp_path / "read-only", tmp_path / "home"
    for folder in (closed, home / "data"):
        folder.mkdir(parents=True)
        folder.chmod(0o500)
    (home / "lock").touch()
    unmade = closed / "home"
    assert f"`{unmade}` cannot be used as the server's home: Permission denied" in refusal(unmade)
    assert f"`{home / 'data'}` cannot be written, and the server keeps its data there" in refusal(home)
    closed.chmod(0o700)


def refusal(home: Path) -> str:
    """What `serve` says, run by somebody whom the file's own rights bind, as they do not bind root."""
    command = [sys.executable, "-c", "from exports.cli import main; main()", "annotation", "serve", "--port", "0"]
    if psutil.Process().uids().effective == 0:
        command = ["setpriv", "--inh-caps=-all", "--bounding-set=-all", *command]
    ended = subprocess.run([*command, "--home", str(home)], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, ""), ended.stderr
    assert "Traceback" not in ended.stderr
    return " ".join(ended.stderr.split())

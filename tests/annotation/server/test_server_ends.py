"""The embedded Argilla ends in every way, leaves no process behind, and its start waits as long as it is needed."""

import contextlib
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from annotation.server.home.folder import DATABASE_FILE
from annotation.server.launch import ServerHandle, start_server, wait_until_it_answers
from pipeline.core.errors import ServerStartError

pytestmark = pytest.mark.server

PATIENCE_SECONDS = 120


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ends") / "home"


def client_for(server: ServerHandle) -> httpx.Client:
    headers = {"X-Argilla-Api-Key": server.owner_api_key}
    return httpx.Client(base_url=f"{server.url}/api/v1", headers=headers, timeout=60, verify=False)


def test_a_second_start_keeps_data_and_secrets(home: Path) -> None:
    with start_server(home, port=0) as first, client_for(first) as client:
        client.post("/workspaces", json={"name": "kept"}).raise_for_status()
    processes = psutil.Process().children(recursive=True)
    with start_server(home, port=0) as again, client_for(again) as client:
        assert [each["name"] for each in client.get("/me/workspaces").json()["items"]] == ["kept"]
        assert again._replace(url=first.url, guardian=first.guardian) == first
    assert psutil.Process().children(recursive=True) == processes


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.rare), signal.SIGKILL], ids=str
)
def test_stopping_serve_in_any_way_leaves_no_process_behind(home: Path, number: signal.Signals) -> None:
    with serving(home) as (process, parts):
        process.send_signal(number)
        _, alive = psutil.wait_procs(parts, timeout=PATIENCE_SECONDS)
        assert alive == []
        assert process.wait(PATIENCE_SECONDS) == (-signal.SIGKILL if number == signal.SIGKILL else 0)


def test_a_killed_guardian_leaves_no_process_behind(home: Path) -> None:
    with serving(home) as (process, parts):
        psutil.Process(process.pid).children()[0].kill()
        _, alive = psutil.wait_procs(parts, timeout=PATIENCE_SECONDS)
        assert alive == []
        assert "stopped by itself" in process.communicate(timeout=PATIENCE_SECONDS)[1]
        assert process.returncode == 1


@pytest.mark.rare
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_killing_all_but_the_queue_at_once_leaves_no_process_behind(home: Path) -> None:
    with serving(home) as (process, parts):
        others = [part for part in parts if "valkey-server" not in part.name()]
        assert len(others) == len(parts) - 1
        for part in (*others, process):  # stopped first, so that none of them can clean up after another
            part.send_signal(signal.SIGSTOP)
        for part in (*others, process):
            part.send_signal(signal.SIGKILL)
        _, alive = psutil.wait_procs(parts, timeout=PATIENCE_SECONDS)
        assert alive == []


@contextlib.contextmanager
def serving(home: Path) -> Iterator[tuple["subprocess.Popen[str]", list[psutil.Process]]]:
    """`citejury annotation serve` once it has said where it is, and every process under it."""
    command = [sys.executable, "-c", "from annotation.cli.serve import serve; serve()"]
    options = ["--home", str(home), "--port", "0"]
    with subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            assert any("Ctrl-C stops the server" in line for line in process.stderr)
            parts = psutil.Process(process.pid).children(recursive=True)
            running = " ".join(word for part in parts for word in part.cmdline())
            assert all(name in running for name in ("valkey-server", "server.web"))
            assert "server.worker" in running or "rq:worker" in running  # its title, where setproctitle is installed
            yield process, parts
        finally:
            process.kill()


ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    (tmp_path / DATABASE_FILE).parent.mkdir(exist_ok=True)
    (tmp_path / DATABASE_FILE).touch()
    return tmp_path


@contextlib.contextmanager
def socket_at() -> Iterator[tuple[socket.socket, str]]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening, f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_a_server_that_writes_is_waited_for(begun: Path) -> None:
    asked = []

    def write_once_and_answer_the_second(listening: socket.socket) -> None:
        with contextlib.ExitStack() as waiting:
            for answer in (b"", ANSWER):
                connection = waiting.enter_context(listening.accept()[0])
                asked.append(connection)
                Path(f"{begun / DATABASE_FILE}-wal").write_bytes(b"a page")
                connection.sendall(answer)

    with socket_at() as (listening, url):
        server = threading.Thread(target=write_once_and_answer_the_second, args=(listening,), daemon=True)
        server.start()
        wait_until_it_answers(begun, url, seconds=1)
        server.join()
    assert len(asked) == 2


def test_one_that_does_nothing_is_given_up(begun: Path) -> None:
    with socket_at() as (_, url), pytest.raises(ServerStartError, match=r"did not answer for 0\.1 seconds, nor did it"):
        wait_until_it_answers(begun, url, seconds=0.1)


def test_one_that_ends_is_given_up_at_once(begun: Path) -> None:
    with socket_at() as (_, url):
        pass
    with pytest.raises(ServerStartError, match="stopped by itself"):
        wait_until_it_answers(begun, url)

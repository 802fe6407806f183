"""The embedded Argilla ends in every way, leaves no process behind, and its start waits as long as it is needed."""

import contextlib
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from annotation.argilla.client import Argilla
from annotation.server.home.folder import read_or_make_secrets
from annotation.server.launch import start_server, wait_until_it_answers
from pipeline.core.errors import ServerStartError

pytestmark = pytest.mark.server

PATIENCE_SECONDS = 120


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ends") / "home"


@pytest.mark.rare
def test_a_terminated_server_leaves_no_process_and_starts_again_with_its_data_and_secrets(home: Path) -> None:
    with serving(home) as (process, parts, url):
        secrets = read_or_make_secrets(home)
        with Argilla(url, secrets.owner_api_key) as owner:
            owner.request("POST", "/workspaces", json={"name": "kept"})
        process.send_signal(signal.SIGTERM)
        assert ended(process, parts) == 0
    processes = psutil.Process().children(recursive=True)
    with start_server(home, port=0) as again, Argilla(again.url, secrets.owner_api_key) as owner:
        assert [each["name"] for each in owner.request("GET", "/me/workspaces")["items"]] == ["kept"]
        assert read_or_make_secrets(home) == secrets
    assert psutil.Process().children(recursive=True) == processes


def ended(process: "subprocess.Popen[str]", parts: list[psutil.Process]) -> int:
    """The exit code, once none of the parts is left."""
    _, alive = psutil.wait_procs(parts, timeout=PATIENCE_SECONDS)
    assert alive == []
    return process.wait(PATIENCE_SECONDS)


@pytest.mark.rare
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=str)
def test_stopping_serve_in_any_way_leaves_no_process_behind(home: Path, number: signal.Signals) -> None:
    with serving(home) as (process, parts, _):
        process.send_signal(number)
        assert ended(process, parts) == (-signal.SIGKILL if number == signal.SIGKILL else 0)


@pytest.mark.rare
def test_a_killed_guardian_leaves_no_process_behind(home: Path) -> None:
    with serving(home) as (process, parts, _):
        psutil.Process(process.pid).children()[0].kill()
        assert ended(process, parts) == 1
        assert "stopped by itself" in process.stderr.read()


@pytest.mark.rare
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_killing_all_but_the_queue_at_once_leaves_no_process_behind(home: Path) -> None:
    with serving(home) as (process, parts, _):
        others = [part for part in parts if "valkey-server" not in part.name()]
        assert len(others) == len(parts) - 1
        for part in (*others, process):  # stopped first, so that none of them can clean up after another
            part.send_signal(signal.SIGSTOP)
        for part in (*others, process):
            part.send_signal(signal.SIGKILL)
        ended(process, parts)


@contextlib.contextmanager
def serving(home: Path) -> Iterator[tuple["subprocess.Popen[str]", list[psutil.Process], str]]:
    """`citejury annotation serve` once it has said where it is, every process under it, and where that is."""
    command = [sys.executable, "-c", "from annotation.cli.serve import serve; serve()"]
    options = ["--home", str(home), "--port", "0"]
    with subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            url = next(line for line in process.stderr if line.startswith("Argilla is at")).split()[-1]
            assert any("Ctrl-C stops the server" in line for line in process.stderr)
            parts = psutil.Process(process.pid).children(recursive=True)
            running = " ".join(word for part in parts for word in part.cmdline())
            assert all(name in running for name in ("valkey-server", "server.web"))
            assert "server.worker" in running or "rq:worker" in running  # its title, where setproctitle is installed
            yield process, parts, url
        finally:
            process.kill()


@contextlib.contextmanager
def socket_at() -> Iterator[tuple[socket.socket, str]]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening, f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_a_server_that_does_nothing_or_ends_is_given_up(tmp_path: Path) -> None:
    with socket_at() as (_, url), pytest.raises(ServerStartError, match=r"did not answer for 0\.1 seconds"):
        wait_until_it_answers(tmp_path, url, seconds=0.1)
    with socket_at() as (_, url):
        pass
    with pytest.raises(ServerStartError, match="stopped by itself"):
        wait_until_it_answers(tmp_path, url)

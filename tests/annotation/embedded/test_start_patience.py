"""The start waits for a server as long as that writes to its database, and no longer."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from annotation.embedded.home.folder import DATABASE_FILE
from annotation.embedded.launch import wait_until_it_answers
from pipeline.errors import ServerStartError

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / DATABASE_FILE).parent.mkdir(exist_ok=True)
    (tmp_path / DATABASE_FILE).touch()
    return tmp_path


@contextlib.contextmanager
def a_socket() -> Iterator[tuple[socket.socket, str]]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening, f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_a_server_that_writes_is_waited_for(home: Path) -> None:
    asked = []

    def write_once_and_answer_the_second(listening: socket.socket) -> None:
        with contextlib.ExitStack() as waiting:
            for answer in (b"", ANSWER):
                connection = waiting.enter_context(listening.accept()[0])
                asked.append(connection)
                Path(f"{home / DATABASE_FILE}-wal").write_bytes(b"a page")
                connection.sendall(answer)

    with a_socket() as (listening, url):
        server = threading.Thread(target=write_once_and_answer_the_second, args=(listening,), daemon=True)
        server.start()
        wait_until_it_answers(home, url, seconds=1)
        server.join()
    assert len(asked) == 2


def test_one_that_does_nothing_is_given_up(home: Path) -> None:
    with a_socket() as (_, url), pytest.raises(ServerStartError, match=r"did not answer for 0\.1 seconds, nor did it"):
        wait_until_it_answers(home, url, seconds=0.1)


def test_one_that_ends_is_given_up_at_once(home: Path) -> None:
    with a_socket() as (_, url):
        pass
    with pytest.raises(ServerStartError, match="stopped by itself"):
        wait_until_it_answers(home, url)

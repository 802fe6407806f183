"""Argilla over REST: against the real server where there is one, and against sockets that misbehave."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator

import pytest
from pydantic import SecretStr

from annotation.argilla.client import Argilla, open_argilla
from pipeline.core.errors import ArgillaError, NotAllowedError, NotFoundError, ServerUnreachableError, SettingsError
from pipeline.settings import read_settings

OK_JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


@pytest.fixture
def answering() -> Iterator[Callable[[list[bytes]], str]]:
    """A function that serves the given raw answers, one for each connection, and says where."""
    sockets: list[socket.socket] = []

    def serve(answers: list[bytes]) -> str:
        listening = socket.create_server(("127.0.0.1", 0))
        sockets.append(listening)
        threading.Thread(target=answer_all, args=(listening, answers), daemon=True).start()
        return f"http://127.0.0.1:{listening.getsockname()[1]}"

    yield serve
    for listening in sockets:
        listening.close()


def answer_all(listening: socket.socket, answers: list[bytes]) -> None:
    for answer in answers:
        try:
            connection, _ = listening.accept()
        except OSError:
            return  # the test is over, and wanted fewer answers
        with connection:
            connection.recv(65536)
            connection.sendall(answer)


FAILED = b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
MOVED = b"HTTP/1.1 301 Moved\r\nLocation: https://elsewhere.example/\r\nContent-Length: 0\r\n\r\n"
PAGE = b"HTTP/1.1 %s\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>"


@pytest.mark.parametrize("method", ["GET", "PUT"])
@pytest.mark.parametrize("trouble", [b"", FAILED])
def test_a_call_that_may_be_repeated_survives_broken_connections_and_failures(answering, method, trouble) -> None:
    with Argilla(answering([trouble, trouble, OK_JSON]), "key") as argilla:
        assert argilla.request(method, "/datasets", json={}) == {}


@pytest.mark.parametrize(
    ("method", "answers", "error", "said"),
    [
        pytest.param("POST", [b"", OK_JSON], ServerUnreachableError, "broke", id="a POST is never repeated"),
        ("GET", [b""] * 9, ServerUnreachableError, "broke during"),
        ("GET", [PAGE % b"200 OK"], ArgillaError, "not Argilla's API"),
        ("GET", [PAGE % b"404 Not Found"], ArgillaError, "not Argilla's API"),
        ("GET", [PAGE % b"403 Forbidden"], ArgillaError, "not Argilla's API"),
        ("GET", [FAILED] * 4, ArgillaError, r"500: Oops\. Look at"),
        ("POST", [FAILED] * 4, ArgillaError, r"500: Oops\. Look at"),
        pytest.param("GET", [MOVED], ArgillaError, r"elsewhere\.example", id="a redirect is not followed but named"),
    ],
)
def test_what_does_not_answer_as_argilla_does_is_one_sentence(answering, method, answers, error, said) -> None:
    with Argilla(answering(answers), "key") as argilla, pytest.raises(error, match=said):
        argilla.request(method, "/me", json={})


def test_a_server_that_is_down_a_password_in_an_address_and_a_missing_key_are_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with Argilla(url, "key") as argilla, pytest.raises(ServerUnreachableError, match=rf"Nothing answers at {url} "):
        argilla.me()
    assert Argilla("http://user:hidden@127.0.0.1:1/argilla/", "key").api_url == "http://127.0.0.1:1/argilla"
    with pytest.raises(SettingsError, match="`ARGILLA_API_KEY` is missing"):
        open_argilla(read_settings())


@pytest.mark.parametrize("url", ["", "127.0.0.1:6900", "ftp://host", "http://", "http://[::1"])
def test_an_address_that_is_no_url_is_refused(url) -> None:
    with pytest.raises(SettingsError, match="ARGILLA_API_URL"):
        Argilla(url, "key")


@pytest.mark.parametrize("key", ["", "schlüssel", "two\nlines"])
def test_a_key_that_no_header_can_carry_is_refused_and_not_shown(key) -> None:
    with pytest.raises(SettingsError, match="Copy it again") as caught:
        Argilla("http://127.0.0.1:1", SecretStr(key))
    assert not key or key not in str(caught.value)


@pytest.mark.server
def test_the_user_of_a_key_is_known_a_wrong_key_unseen_and_refusals_are_named(owner, argilla_server, workspace) -> None:
    assert (owner.me()["username"], owner.me()["role"]) == (argilla_server.owner_username, "owner")
    assert all("api_key" not in user for user in [owner.me(), *owner.users()])
    assert owner.usernames()[owner.me()["id"]] == argilla_server.owner_username
    with Argilla(argilla_server.url, "wrong-key") as argilla, pytest.raises(NotAllowedError) as caught:
        argilla.me()
    assert "ARGILLA_API_KEY" in str(caught.value)
    assert "wrong-key" not in str(caught.value)
    owner.request("POST", "/workspaces", json={"name": workspace})
    with pytest.raises(NotFoundError, match=rf"no workspace 'client-missing'.*'{workspace}'"):
        owner.find_workspace("client-missing")
    with pytest.raises(ArgillaError, match=r"status 422: body\.password: .*at least 8 characters"):
        owner.request("POST", "/users", json={"username": "x", "first_name": "x", "password": "short"})
    with pytest.raises(NotFoundError, match="00000000"):
        owner.request("GET", "/datasets/00000000-0000-0000-0000-000000000000")


def test_authorities_are_read_where_something_is_encrypted_only(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = ssl.SSLContext.load_verify_locations
    monkeypatch.setattr(
        ssl.SSLContext, "load_verify_locations", lambda self, *a, **k: (read.append("authorities"), real(self, *a, **k))
    )
    for address in ("http://127.0.0.1:6900", "http://localhost:6900"):
        Argilla(address, "key").close()
    assert not read
    for address in ("https://127.0.0.1:6900", "http://192.0.2.1"):  # the proxy before the latter may be asked by TLS
        Argilla(address, "key").close()
    assert len(read) >= 2

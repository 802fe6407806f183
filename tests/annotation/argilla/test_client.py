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


def test_a_call_that_may_be_repeated_survives_broken_connections(answering) -> None:
    with Argilla(answering([b"", b"", OK_JSON]), "key") as argilla:
        assert argilla.request("GET", "/me") == {}


def test_a_post_is_never_repeated(answering) -> None:
    with Argilla(answering([b"", OK_JSON]), "key") as argilla, pytest.raises(ServerUnreachableError, match="broke"):
        argilla.request("POST", "/users", json={})


def test_a_connection_that_keeps_breaking_is_given_up(answering) -> None:
    with Argilla(answering([b""] * 9), "key") as argilla, pytest.raises(ServerUnreachableError, match="broke during"):
        argilla.request("GET", "/me")


def test_a_server_that_is_down_is_one_sentence_with_its_address(answering) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with Argilla(url, "key") as argilla, pytest.raises(ServerUnreachableError, match=rf"Nothing answers at {url} "):
        argilla.me()


def test_something_that_is_not_argilla_is_told_apart(answering) -> None:
    page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>"
    with Argilla(answering([page]), "key") as argilla, pytest.raises(ArgillaError, match="not Argilla's API"):
        argilla.request("GET", "/me")


@pytest.mark.parametrize("status", [b"404 Not Found", b"403 Forbidden"])
def test_a_refusal_in_words_that_are_not_argillas_is_told_apart(answering, status) -> None:
    page = b"HTTP/1.1 " + status + b"\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>"
    with Argilla(answering([page]), "key") as argilla, pytest.raises(ArgillaError, match="not Argilla's API"):
        argilla.request("GET", "/me")


FAILED = b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def test_a_call_that_may_be_repeated_survives_a_server_that_fails(answering) -> None:
    with Argilla(answering([FAILED, FAILED, OK_JSON]), "key") as argilla:
        assert argilla.request("PUT", "/datasets", json={}) == {}


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_server_that_keeps_failing_is_one_sentence_with_the_way_on(answering, method) -> None:
    with Argilla(answering([FAILED] * 4), "key") as argilla, pytest.raises(ArgillaError, match=r"500: Oops\. Look at"):
        argilla.request(method, "/me")


def test_a_redirect_is_not_followed_but_named(answering) -> None:
    moved = b"HTTP/1.1 301 Moved\r\nLocation: https://elsewhere.example/\r\nContent-Length: 0\r\n\r\n"
    with Argilla(answering([moved]), "key") as argilla, pytest.raises(ArgillaError, match=r"elsewhere\.example"):
        argilla.request("GET", "/me")


@pytest.mark.parametrize("url", ["", "127.0.0.1:6900", "ftp://host", "http://", "http://[::1"])
def test_an_address_that_is_no_url_is_refused(url) -> None:
    with pytest.raises(SettingsError, match="ARGILLA_API_URL"):
        Argilla(url, "key")


@pytest.mark.parametrize("key", ["", "schlüssel", "two\nlines"])
def test_a_key_that_no_header_can_carry_is_refused_and_not_shown(key) -> None:
    with pytest.raises(SettingsError, match="Copy it again") as caught:
        Argilla("http://127.0.0.1:1", SecretStr(key))
    assert not key or key not in str(caught.value)


def test_a_password_in_the_address_is_not_repeated() -> None:
    assert Argilla("http://user:hidden@127.0.0.1:1/argilla/", "key").api_url == "http://127.0.0.1:1/argilla"


def test_a_missing_key_is_named() -> None:
    with pytest.raises(SettingsError, match="`ARGILLA_API_KEY` is missing"):
        open_argilla(read_settings())


@pytest.mark.server
def test_the_user_of_the_key_is_known_and_no_key_comes_back(owner, argilla_server) -> None:
    assert (owner.me()["username"], owner.me()["role"]) == (argilla_server.owner_username, "owner")
    assert all("api_key" not in user for user in [owner.me(), *owner.users()])
    assert owner.usernames()[owner.me()["id"]] == argilla_server.owner_username


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


@pytest.mark.server
def test_a_wrong_key_is_refused_without_showing_it(argilla_server) -> None:
    with Argilla(argilla_server.url, "wrong-key") as argilla, pytest.raises(NotAllowedError) as caught:
        argilla.me()
    assert "ARGILLA_API_KEY" in str(caught.value)
    assert "wrong-key" not in str(caught.value)


@pytest.mark.server
def test_a_workspace_that_is_not_there_is_named_beside_those_that_are(owner) -> None:
    owner.request("POST", "/workspaces", json={"name": "client-there"})
    with pytest.raises(NotFoundError, match=r"no workspace 'client-missing'.*'client-there'"):
        owner.find_workspace("client-missing")


@pytest.mark.server
def test_a_refusal_carries_the_servers_own_words(owner) -> None:
    with pytest.raises(ArgillaError, match=r"status 422: body\.password: .*at least 8 characters"):
        owner.request("POST", "/users", json={"username": "x", "first_name": "x", "password": "short"})


@pytest.mark.server
def test_an_unknown_dataset_is_not_found(owner) -> None:
    with pytest.raises(NotFoundError, match="00000000"):
        owner.request("GET", "/datasets/00000000-0000-0000-0000-000000000000")

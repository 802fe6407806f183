"""Connections that ask for nothing, or for too much, are ended; whoever asks something is answered meanwhile."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx
import pytest

pytest.importorskip("uvicorn", reason="The server is not installed here.")

from annotation.server.connections import HEAD_BYTES, Limits
from annotation.server.edge import Edge, Names, Pace
from tests.support.edge_server import (
    HEAD,
    LONG_BYTES,
    connected,
    is_open,
    read_answer,
    read_to_the_end,
    running_edge,
    tell_client,
)

LONG = 600.0
BODY = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"
PIECES = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
WHOLE = HEAD + b"\r\n"


@pytest.fixture(scope="module")
def hasty() -> Iterator[int]:
    with running_edge(limits=Limits(100, 0.2, 0.2, 500, 0.2)) as port:
        yield port


@pytest.fixture
def patient() -> Iterator[int]:
    """A server with room for ten connections, five of them without a whole request, and much time."""
    with running_edge(limits=Limits(10, LONG, LONG, 500, LONG)) as port:
        yield port


def ask(port: int, **options: object) -> httpx.Response:
    method = "POST" if options else "GET"
    return httpx.request(method, f"http://127.0.0.1:{port}/", trust_env=False, timeout=60, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sent", "answer"),
    [(b"", b""), (HEAD, b"408"), (BODY + b"a", b"408"), (PIECES + b"1\r\na\r\n", b"408"), (WHOLE + HEAD, b"408")],
    ids=["nothing", "half a head", "half a body", "half of the pieces", "half a second request"],
)
def test_what_does_not_go_on_is_ended(hasty: int, sent: bytes, answer: bytes) -> None:
    with connected(hasty, sent) as connection:
        said = read_to_the_end(connection)
    assert answer in said
    assert (bool(said), ask(hasty).status_code) == (bool(answer), 200)


def test_an_answer_that_nobody_reads_is_given_up_and_a_body_that_goes_on_has_time(hasty: int) -> None:
    with connected(hasty, b"GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n") as connection, ExitStack() as others:
        connection.recv(1)
        # Half-open ones come and go until the server has looked at all of them.
        for _ in range(2):
            read_to_the_end(others.enter_context(connected(hasty, HEAD)))
        assert len(read_to_the_end(connection)) < LONG_BYTES
    # 500 bytes give a second; a fifth of one would be over before half of it has come.
    whole = b"a" * 100_000
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(whole)
    with connected(hasty, head, whole[:50_000]) as connection, connected(hasty, HEAD) as meanwhile:
        read_to_the_end(meanwhile)
        connection.sendall(whole[50_000:])
        assert b'"bytes": 100000' in read_answer(connection)


@pytest.mark.rare
def test_an_answer_that_is_read_slowly_comes_whole() -> None:
    came = 0
    with ExitStack() as held:
        port = held.enter_context(running_edge(limits=Limits(100, 0.2, 0.2, 500, 1.5)))
        connection = held.enter_context(connected(port, b"GET /whole HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        # Each half-open connection is ended after a fifth of a second: all of it takes twice what may pass unread.
        for part in range(1, 16):
            while came < part * LONG_BYTES // 16:
                piece = connection.recv(65536)
                assert piece, "the answer was cut off"
                came += len(piece)
            read_to_the_end(held.enter_context(connected(port, HEAD)))
        assert read_answer(connection).endswith(b'"bytes": 0}\r\n0\r\n\r\n')


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (HEAD + b"X-Long: " + b"a" * HEAD_BYTES + b"\r\n\r\n", b"431"),
        (HEAD + b"X-Long: " + b"a" * HEAD_BYTES, b"431"),
        (b"GET /" + b"a" * HEAD_BYTES + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", b"431"),
        (HEAD + b"a: b\r\n" * HEAD_BYTES + b"\r\n", b"431"),
        (WHOLE + HEAD + b"X-Long: " + b"a" * HEAD_BYTES + b"\r\n\r\n", b"431"),
        (PIECES + b"1;" + b"a" * 2 * HEAD_BYTES, b"400"),
        (b"\0\1\2\r\n\r\n", b"400"),
        (b"\r\n" * HEAD_BYTES, b"431"),
    ],
    ids=["header", "half a header", "address", "headers", "second request", "frame of a piece", "no HTTP", "nothing"],
)
def test_what_is_too_long_for_a_head_is_refused(patient: int, sent: bytes, status: bytes) -> None:
    with connected(patient, sent) as connection:
        assert status in read_to_the_end(connection)
    assert ask(patient).status_code == 200


def test_what_is_odd_and_whole_is_answered_also_at_once(patient: int) -> None:
    with connected(patient, HEAD + b"X-Long: " + b"a" * (HEAD_BYTES - 100) + b"\r\n\r\n") as connection:
        assert b"200 OK" in connection.recv(65536)
    assert ask(patient, content=(b"a" for _ in range(10_000))).json()["bytes"] == 10_000  # in pieces of one byte
    with connected(patient, BODY + b"a" * 100 + WHOLE + BODY + b"b" * 100) as connection:
        said = b""
        while said.count(b"HTTP/1.1 200 OK") < 3:
            said += read_answer(connection)
    assert [said.count(b'"bytes": 100'), said.count(b'"bytes": 0')] == [2, 1]


def test_the_oldest_that_ask_nothing_make_room_and_others_are_answered(patient: int) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{patient}", trust_env=False, timeout=60) as kept, ExitStack() as held:
        assert kept.get("/").status_code == 200
        halves = [held.enter_context(connected(patient, HEAD)) for _ in range(40)]
        for each in halves[:35]:
            assert read_to_the_end(each) == b""
        assert all(map(is_open, halves[-5:]))
        assert (kept.get("/").status_code, ask(patient).status_code) == (200, 200)


@pytest.mark.rare
def test_thirty_people_behind_one_address_are_answered_among_half_open_connections() -> None:
    with running_edge(limits=Limits(100, LONG, LONG, 500, LONG)) as port, ExitStack() as held:
        for _ in range(120):
            held.enter_context(connected(port, HEAD))
        with ThreadPoolExecutor(30) as people:
            statuses = list(people.map(lambda _: ask(port).status_code, range(150)))
    assert set(statuses) == {200}


def test_a_refusal_reaches_who_still_sends_and_who_is_refused_again_and_again_waits() -> None:
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
    with running_edge(Edge(tell_client, Names()), Limits(100, LONG, LONG, 500, LONG)) as port:
        with connected(port, head % 5_000_000, *[b"a" * 50_000] * 100) as connection:
            assert b"413" in read_to_the_end(connection)
        with connected(port, head % LONG_BYTES) as connection, pytest.raises(ConnectionError):
            connection.sendall(b"a" * LONG_BYTES)
        with connected(port, head % 5_000_000) as connection:
            assert b"413" in read_to_the_end(connection)
    pace = Pace()
    assert [pace.wait("192.0.2.1", 7.0 + step / 100) for step in range(12)] == [0.0] * 10 + [1.0] * 2
    assert (pace.wait("192.0.2.2", 7.5), pace.wait("192.0.2.1", 8.0)) == (0.0, 0.0)


def test_who_only_keeps_a_connection_makes_room_too(patient: int) -> None:
    with ExitStack() as held:
        kept = []
        for _ in range(30):
            kept.append(held.enter_context(connected(patient, WHOLE)))
            assert b"200 OK" in read_answer(kept[-1])
        assert (ask(patient).status_code, read_to_the_end(kept[0])) == (200, b"")

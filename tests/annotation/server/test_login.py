"""Log-in: wrong passwords are slowed down, and nobody who knows hers is shut out, nor waits for those who do not."""

import asyncio
import itertools
import os
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from annotation.argilla.client import Argilla
from annotation.server.launch import ServerHandle
from annotation.server.patches.passwords import FairThreads, TooManyWaitingError, WrongPasswords, network_of
from tests.support.logins import MOST, WRONG, login, wrong
from tests.support.postgresql import running_redis

pytest.importorskip("uvicorn", reason="The server is not installed here.")

_addresses = (f"127.{os.getpid() % 250 + 1}.{high}.{low}" for high in range(250) for low in range(1, 250))


@pytest.fixture
def server(argilla_server: ServerHandle) -> ServerHandle:
    return argilla_server


def elsewhere() -> str:
    return next(_addresses)


@pytest.fixture
def anna(client: Argilla) -> SimpleNamespace:
    name, password = f"anna-{uuid.uuid4().hex[:8]}", "her-own-password"
    user = client.request("POST", "/users", json={"username": name, "first_name": "Anna", "password": password})
    return SimpleNamespace(id=user["id"], name=name, password=password)


@pytest.mark.server
def test_ten_wrong_passwords_a_minute_are_enough_for_a_name(server: ServerHandle, anna: SimpleNamespace) -> None:
    hammering, home = elsewhere(), elsewhere()
    assert wrong(server, hammering, *[anna.name] * MOST) == [401] * MOST
    refused = login(server, hammering, anna.name, anna.password)
    assert refused.status_code == 429
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert refused.json() == {"detail": "Too many wrong passwords. Wait a minute, then try again."}
    assert login(server, home, anna.name, anna.password).status_code == 201, "shut out by somebody elsewhere"
    assert wrong(server, home, anna.name)[0] == 429, "her name may be tried on from ever new addresses"
    assert login(server, home, anna.name, anna.password).status_code == 201, "shut out by one mistake"


@pytest.mark.server
@pytest.mark.rare
def test_many_names_shut_out_no_colleague_there(server: ServerHandle, anna: SimpleNamespace) -> None:
    office = elsewhere()
    names = [f"nobody-{number}" for number in range(MOST + 2)]
    assert wrong(server, office, *names) == [401] * MOST + [429] * 2
    for _ in range(4):
        assert login(server, office, anna.name, anna.password).status_code == 201
    assert wrong(server, office, *[anna.name] * 3) == [429] * 3
    assert login(server, office, anna.name, anna.password).status_code == 429, "more than three may be tried"


@pytest.mark.server
@pytest.mark.parametrize(
    "name", ["-unknown", *(pytest.param(name, marks=pytest.mark.rare) for name in ("", "a\0b", "\n", "x" * 3_000))]
)
def test_an_unknown_name_is_answered_like_a_known_one(server: ServerHandle, anna: SimpleNamespace, name: str) -> None:
    known, unknown = (login(server, elsewhere(), each, WRONG).text for each in (anna.name, f"{anna.name}?"))
    assert known == unknown
    address, asked = elsewhere(), [f"{anna.name}{name}"] * (MOST + 1)
    answers = wrong(server, address, *asked)
    assert (answers[:3], answers[-1]) == ([401] * 3, 429)


@pytest.mark.server
@pytest.mark.rare
def test_attempts_at_the_same_moment_are_no_more_than_ten(server: ServerHandle, anna: SimpleNamespace) -> None:
    address = elsewhere()

    async def all_at_once() -> list[int]:
        async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(local_address=address), timeout=60) as client:
            form = {"username": anna.name, "password": WRONG}
            sent = (client.post(f"{server.url}/api/v1/token", data=form) for _ in range(4 * MOST))
            return [answer.status_code for answer in await asyncio.gather(*sent)]

    assert sorted(asyncio.run(all_at_once())) == [401] * MOST + [429] * 3 * MOST


@pytest.mark.server
@pytest.mark.rare
def test_a_class_behind_one_address_logs_in_at_once(server: ServerHandle, client: Argilla) -> None:
    password = "a-password-of-the-class"
    names = [f"class-{uuid.uuid4().hex[:8]}" for _ in range(30)]
    for name in names:
        client.request("POST", "/users", json={"username": name, "first_name": "A", "password": password})
    address = elsewhere()
    with ThreadPoolExecutor(30) as people:
        answers = people.map(lambda name: login(server, address, name, password).status_code, names)
    assert list(answers) == [201] * 30


@pytest.mark.server
def test_passwords_of_changed_users_still_open(server: ServerHandle, client: Argilla, anna: SimpleNamespace) -> None:
    address, changed = elsewhere(), "another-password-of-hers"
    assert login(server, address, anna.name, anna.password).status_code == 201
    client.request("PATCH", f"/users/{anna.id}", json={"password": changed})
    assert login(server, address, anna.name, anna.password).status_code == 401
    assert login(server, address, anna.name, changed).status_code == 201


def test_one_address_waits_for_itself_and_for_no_queue(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    async def play() -> list[str]:
        threads, gate, done = FairThreads(1), threading.Event(), []

        async def ask(who: str, what: str) -> None:
            await threads.run(who, gate.wait)
            done.append(what)

        tasks = [asyncio.create_task(ask("flood", f"flood {number}")) for number in range(5)]
        await asyncio.sleep(0)
        tasks += [asyncio.create_task(ask("anna", "anna")), asyncio.create_task(ask("ben", "ben"))]
        await asyncio.sleep(0)
        tasks[1].cancel()  # who leaves loses her turn
        gate.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        return done

    assert asyncio.run(play()) == ["flood 0", "anna", "ben", "flood 2", "flood 3", "flood 4"]

    async def play() -> tuple[int, int]:
        threads, gate = FairThreads(1, most_waiting=2), threading.Event()
        tasks = [asyncio.create_task(threads.run("flood", gate.wait)) for _ in range(5)]
        await asyncio.sleep(0)
        gate.set()
        results = await asyncio.gather(*tasks, threads.run("anna", gate.wait), return_exceptions=True)
        return sum(isinstance(each, TooManyWaitingError) for each in results), sum(each is True for each in results)

    assert asyncio.run(play()) == (2, 4)

    async def play() -> None:
        lost = WrongPasswords(f"unix://{tmp_path}/gone.sock", "a secret")
        attempt = await lost.begin("anna", "192.0.2.1")
        assert not attempt.wait
        assert not await lost.was_wrong(attempt)
        await lost.was_right(attempt)

    asyncio.run(play())
    assert capsys.readouterr().err.count("wrong passwords are not counted: the queue does not answer") == 1


def test_the_counts_are_those_of_all_processes_and_expire(tmp_path: Path) -> None:
    with running_redis(tmp_path) as url:

        async def play() -> None:
            one, other = (WrongPasswords(url, "a secret") for _ in range(2))
            for each in itertools.islice(itertools.cycle((one, other)), MOST):
                attempt = await each.begin("anna", "192.0.2.1")
                assert not attempt.wait
                await each.was_wrong(attempt)
            assert 0 < (await other.begin("anna", "192.0.2.1")).wait <= 60
            keys = await one.redis.keys("*")
            assert len(keys) == 3
            for key in keys:
                assert b"anna" not in key
                assert 0 < await one.redis.ttl(key) <= 60
            # The clock jumps back a day: nobody is shut out for longer than a minute.
            for key in keys:
                await one.redis.expire(key, 86_400)
            assert 0 < (await one.begin("anna", "192.0.2.1")).wait <= 60
            for each in (one, other):
                await each.redis.aclose()

        asyncio.run(play())


@pytest.mark.parametrize(
    ("client", "network"),
    [
        (("192.0.2.7", 1), "192.0.2.7"),
        (("::ffff:192.0.2.7", 1), "192.0.2.7"),
        (("2001:db8:1:2:3:4:5:6", 1), "2001:db8:1:2::/64"),
        (("2001:db8:1:2:ffff::1", 1), "2001:db8:1:2::/64"),
        (None, ""),
        (("testclient", 1), "testclient"),
    ],
)
def test_who_owns_a_network_of_ipv6_is_one_address(client: Any, network: str) -> None:
    assert network_of(client) == network

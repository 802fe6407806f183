"""The parts of the big stack, each by itself: what is missing is told, and processes of one socket live together."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing

import psutil
import psycopg2
import pytest

from annotation.server.service import main
from tests.support.postgresql import running_postgresql

OWNER = {
    "CITEJURY_OWNER_USERNAME": "owner",
    "CITEJURY_OWNER_PASSWORD": "a long password",
    "CITEJURY_OWNER_API_KEY": "first.key",
}
PLACES = {
    "ARGILLA_AUTH_SECRET_KEY": "signs",
    "ARGILLA_DATABASE_URL": "postgresql+asyncpg://argilla:secretword@127.0.0.1:1/argilla",
    "ARGILLA_REDIS_URL": "redis://:secretword@127.0.0.1:1/0",
    "ARGILLA_SEARCH_ENGINE": "citejury",
    "CITEJURY_HOLD_SECONDS": "900",
    "CITEJURY_LISTEN": "127.0.0.1:0",
    "CITEJURY_WEB_PROCESSES": "1",
}


def begin(part: str, **changed: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-P", "-m", "annotation.server.service", part]
    return subprocess.Popen(command, env={**PLACES, **OWNER, **changed}, stderr=subprocess.PIPE, text=True)


def ended(process: "subprocess.Popen[str]") -> tuple[int, str]:
    said = process.communicate()[1]
    return process.returncode, said


def test_images_and_guardians_of_before_start_the_parts_by_their_old_name() -> None:
    command = [sys.executable, "-P", "-m", "annotation.embedded.service"]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr.partition("{")[0]) == (2, "usage: python -m annotation.server.service ")


@pytest.mark.parametrize(
    ("part", "name", "value", "said"),
    [
        ("web", "CITEJURY_WEB_PROCESSES", "²", "should be a number from 1"),
        ("web", "CITEJURY_HOLD_SECONDS", "soon", "should be a number of seconds, 1 to 86400"),
        ("web", "CITEJURY_LISTEN", "6900", "should be a host and a port"),
        ("web", "CITEJURY_ALLOW_HOSTS", "https://jury.example.org", "no name of a host"),
        ("web", "CITEJURY_TRUSTED_PROXIES", "caddy", "no address"),
        ("web", "ARGILLA_DATABASE_URL", "", "is not set"),
        ("web", "ARGILLA_DATABASE_URL", "postgresql://db:secretword", "letters and digits"),
        ("worker", "ARGILLA_DATABASE_URL", "sqlite:////tmp/secretword.db", "no address of a PostgreSQL"),
        ("migrate", "ARGILLA_SEARCH_ENGINE", "opensearch", "searches in PostgreSQL only: set it to citejury"),
        ("worker", "ARGILLA_SEARCH_ENGINE", "elasticsearch", "searches in PostgreSQL only: set it to citejury"),
        ("worker", "ARGILLA_REDIS_URL", "secretword", "no address of a Redis"),
        ("migrate", "ARGILLA_DATABASE_URL", PLACES["ARGILLA_DATABASE_URL"], "The database does not answer: "),
        ("web", "ARGILLA_DATABASE_URL", PLACES["ARGILLA_DATABASE_URL"], "The database does not answer: "),
        ("worker", "ARGILLA_REDIS_URL", PLACES["ARGILLA_REDIS_URL"], "The queue does not answer: "),
        ("check-worker", "ARGILLA_REDIS_URL", PLACES["ARGILLA_REDIS_URL"], "The queue does not answer: "),
        ("check-web", "CITEJURY_LISTEN", "127.0.0.1:1", "The web does not answer: "),
    ],
)
def test_what_is_missing_is_told_in_a_line_without_a_secret(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], part: str, name: str, value: str, said: str
) -> None:
    for each, setting in (PLACES | OWNER | {name: value}).items():
        monkeypatch.setenv(each, setting)
    monkeypatch.setattr(sys, "argv", ["service", part])
    code, line = main(), capsys.readouterr().err
    assert (code, line.count("\n")) == (1, 1), line
    assert said in line
    assert "secretword" not in line


@pytest.mark.server
@pytest.mark.rare
def test_migrations_at_once_wait_for_each_other_and_the_key_follows_the_settings() -> None:
    def migrated(*starts: dict[str, str]) -> list[tuple[int, str]]:
        place = url.replace("postgresql:", "postgresql+asyncpg:")
        return [ended(each) for each in [begin("migrate", ARGILLA_DATABASE_URL=place, **changed) for changed in starts]]

    with ExitStack() as stack:
        url = stack.enter_context(running_postgresql())
        assert migrated({}, {}) == [(0, "")] * 2
        connection = stack.enter_context(closing(psycopg2.connect(url)))
        cursor = stack.enter_context(connection.cursor())
        cursor.execute("SELECT username, api_key FROM users")
        assert cursor.fetchall() == [("owner", "first.key")]
        cursor.execute(
            "INSERT INTO users (id, first_name, username, role, api_key, password_hash, inserted_at, updated_at) "
            "SELECT gen_random_uuid(), first_name, 'former', role, 'former.key', password_hash, inserted_at, "
            "updated_at FROM users"
        )
        connection.commit()
        renamed = {"CITEJURY_OWNER_USERNAME": "chief", "CITEJURY_OWNER_API_KEY": "former.key"}
        done, (code, said) = migrated({"CITEJURY_OWNER_API_KEY": "second.key"}, renamed)
        assert (done, code, said.count("\n"), "former.key" in said) == ((0, ""), 1, 1, False)
        assert "is another user's" in said
        cursor.execute("SELECT username, api_key FROM users ORDER BY username")
        assert cursor.fetchall() == [("former", "former.key"), ("owner", "second.key")]


NUMBER = 3
PATIENCE_SECONDS = 120
SERVE = f"""
import os, signal, sys
from annotation.server.service import run_processes

def serve():
    os.write(1, b"x")
    signal.pause()

sys.exit(run_processes({NUMBER}, serve))
"""


@pytest.fixture
def parent() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen([sys.executable, "-c", SERVE], stdout=subprocess.PIPE) as process:
        assert process.stdout.read(NUMBER) == b"x" * NUMBER
        yield process
        process.kill()


@pytest.mark.parametrize(
    ("number", "whom", "code"),
    [(signal.SIGTERM, "parent", 0), (signal.SIGINT, "parent", 0), (signal.SIGKILL, "child", 1)],
)
def test_all_end_with_the_parent_or_with_one_of_them(
    parent: "subprocess.Popen[bytes]", number: signal.Signals, whom: str, code: int
) -> None:
    children = psutil.Process(parent.pid).children()
    assert len(children) == NUMBER
    (parent if whom == "parent" else children[1]).send_signal(number)
    assert parent.wait(PATIENCE_SECONDS) == code
    assert psutil.wait_procs(children, timeout=PATIENCE_SECONDS)[1] == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_none_outlives_a_parent_that_is_killed(parent: "subprocess.Popen[bytes]") -> None:
    children = psutil.Process(parent.pid).children()
    parent.kill()
    assert psutil.wait_procs(children, timeout=PATIENCE_SECONDS)[1] == []

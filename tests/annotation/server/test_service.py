"""The parts of the big stack, each by itself: what is missing is told in a line, and processes of one socket live
together."""

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator

import psutil
import psycopg2
import pytest

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
    """A part at work, its environment changed in some places."""
    command = [sys.executable, "-P", "-m", "annotation.server.service", part]
    return subprocess.Popen(command, env={**PLACES, **OWNER, **changed}, stderr=subprocess.PIPE, text=True)


def ended(process: "subprocess.Popen[str]") -> tuple[int, str]:
    """How a part ended, and what it said."""
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
        ("migrate", "COMPOSE_PROFILES", "opensearch", "remove `opensearch` from it in docker/.env"),
        ("restore", "COMPOSE_PROFILES", "more, opensearch", "remove `opensearch` from it in docker/.env"),
        ("web", "COMPOSE_PROFILES", "opensearch", "all answers are in PostgreSQL and stay there"),
        ("worker", "COMPOSE_PROFILES", "opensearch", "all answers are in PostgreSQL and stay there"),
        ("migrate", "COMPOSE_PROFILES", "opensearching", "The database does not answer: "),
        ("worker", "ARGILLA_REDIS_URL", "secretword", "no address of a Redis"),
        ("migrate", "ARGILLA_DATABASE_URL", PLACES["ARGILLA_DATABASE_URL"], "The database does not answer: "),
        ("web", "ARGILLA_DATABASE_URL", PLACES["ARGILLA_DATABASE_URL"], "The database does not answer: "),
        ("worker", "ARGILLA_REDIS_URL", PLACES["ARGILLA_REDIS_URL"], "The queue does not answer: "),
        ("check-worker", "ARGILLA_REDIS_URL", PLACES["ARGILLA_REDIS_URL"], "The queue does not answer: "),
        ("check-web", "CITEJURY_LISTEN", "127.0.0.1:1", "The web does not answer: "),
    ],
)
def test_what_is_missing_is_told_in_a_line_without_a_secret(part: str, name: str, value: str, said: str) -> None:
    code, line = ended(begin(part, **{name: value}))
    assert (code, line.count("\n")) == (1, 1), line
    assert said in line
    assert "secretword" not in line


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """The address of an empty PostgreSQL."""
    with running_postgresql() as url:
        yield url


def migrations(url: str, *starts: dict[str, str]) -> list[tuple[int, str]]:
    """How migrations at once ended, each with an environment of its own, and what they said."""
    place = url.replace("postgresql:", "postgresql+asyncpg:")
    return [ended(each) for each in [begin("migrate", ARGILLA_DATABASE_URL=place, **changed) for changed in starts]]


@pytest.mark.server
def test_migrations_at_once_wait_for_each_other_and_the_key_follows_the_settings(database: str) -> None:
    assert migrations(database, {}, {}) == [(0, "")] * 2
    with contextlib.closing(psycopg2.connect(database)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT username, api_key FROM users")
        assert cursor.fetchall() == [("owner", "first.key")]
        cursor.execute(
            "INSERT INTO users (id, first_name, username, role, api_key, password_hash, inserted_at, updated_at) "
            "SELECT gen_random_uuid(), first_name, 'former', role, 'former.key', password_hash, inserted_at, "
            "updated_at FROM users"
        )
        connection.commit()
        renamed = {"CITEJURY_OWNER_USERNAME": "chief", "CITEJURY_OWNER_API_KEY": "former.key"}
        done, refused = migrations(database, {"CITEJURY_OWNER_API_KEY": "second.key"}, renamed)
        assert done == (0, "")
        assert (refused[0], refused[1].count("\n"), "former.key" in refused[1]) == (1, 1, False)
        assert "is another user's" in refused[1]
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
    """A process whose children all serve."""
    with subprocess.Popen([sys.executable, "-c", SERVE], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read(NUMBER) == b"x" * NUMBER
        yield process
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_all_end_well_when_told_to_stop(parent: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    children = psutil.Process(parent.pid).children()
    parent.send_signal(number)
    assert parent.wait(PATIENCE_SECONDS) == 0
    assert psutil.wait_procs(children, timeout=PATIENCE_SECONDS)[1] == []


def test_all_end_when_one_does_and_that_is_told(parent: "subprocess.Popen[bytes]") -> None:
    children = psutil.Process(parent.pid).children()
    assert len(children) == NUMBER
    children[1].kill()
    assert parent.wait(PATIENCE_SECONDS) == 1
    assert psutil.wait_procs(children, timeout=PATIENCE_SECONDS)[1] == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_none_outlives_a_parent_that_is_killed(parent: "subprocess.Popen[bytes]") -> None:
    children = psutil.Process(parent.pid).children()
    parent.kill()
    assert psutil.wait_procs(children, timeout=PATIENCE_SECONDS)[1] == []

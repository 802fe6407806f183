"""The processes of docker/compose.yaml started by hand, as it stands there, and a campaign on them by our commands."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import psycopg2
import pytest
import yaml
from click.testing import CliRunner

from exports.cli import main
from tests.support.campaign_book import answers, record
from tests.support.campaign_players import Player
from tests.support.places import ROOT
from tests.support.postgresql import PATIENCE_SECONDS, end, run_part, running_web
from tests.support.provider_server import closed_port as free_port

DOCKER = ROOT / "docker"
SECRETS = re.compile(r"^(\w+)=(.*)$", re.MULTILINE)
ANNOTATORS = ("stack Jürgen", "佐藤 stack")
FIRST_SUBMISSION = datetime(2026, 3, 1, 9, 30, tzinfo=UTC).replace(tzinfo=None)  # as Argilla keeps them
STEP = timedelta(hours=7, microseconds=12_300)
SUBMISSIONS = (
    "SELECT responses.id, records.external_id, users.username, datasets.name FROM responses "
    "JOIN records ON records.id = responses.record_id JOIN users ON users.id = responses.user_id "
    "JOIN datasets ON datasets.id = records.dataset_id JOIN workspaces ON workspaces.id = datasets.workspace_id "
    "WHERE workspaces.name = "
)


class Compose(NamedTuple):
    """The compose file with the secrets of a folder of its own filled in."""

    folder: Path
    services: dict[str, Any]

    def owner_api_key(self) -> str:
        return dict(SECRETS.findall((self.folder / ".env").read_text(encoding="utf-8")))["CITEJURY_OWNER_API_KEY"]


def read_compose(folder: Path) -> Compose:
    """What `docker-compose config` makes of a copy of docker/ with new secrets; those that are there stay."""
    if shutil.which("docker-compose") is None:
        pytest.skip("docker-compose is not installed here.")
    shutil.copytree(DOCKER, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".env", "client.env"))
    subprocess.run([folder / "make-secrets"], check=True, capture_output=True)
    command = ["docker-compose", "--file", str(folder / "compose.yaml"), "config"]
    said = subprocess.run(
        command, env={"PATH": os.environ["PATH"]}, cwd=folder, capture_output=True, text=True, check=True
    ).stdout
    # `config` writes what could be read again, where a dollar sign stands twice.
    return Compose(folder, yaml.safe_load(said.replace("$$", "$"))["services"])


class Places(NamedTuple):
    """Where the parts are on this machine, instead of in their containers."""

    folder: Path
    database: str
    redis: str

    def put_in(self, text: str) -> str:
        here = {
            "postgres:5432": self.database,
            "redis:6379": self.redis,
            "/tmp/": f"{self.folder}/",
            "/data": str(self.folder),
        }
        for there, instead in here.items():
            text = text.replace(there, instead)
        return text


def environment_of(service: Mapping[str, Any], places: Places, **changed: str) -> dict[str, str]:
    found = {name: places.put_in(str(value)) for name, value in service.get("environment", {}).items()}
    return {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **found, **changed}


def command_of(service: Mapping[str, Any]) -> list[str]:
    """The command of one of our containers: the image's entry point and the service's own words."""
    (entry,) = re.findall(r"^ENTRYPOINT (\[.*\])$", (DOCKER / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    return [*json.loads(entry), *service["command"]]


def create_database(url: str, service: Mapping[str, Any]) -> str:
    """The address of an empty database with the name, the user and the password that the service asks for."""
    asked = service["environment"]
    with contextlib.closing(psycopg2.connect(url)) as connection:
        connection.autocommit = True
        cursor = connection.cursor()
        cursor.execute(f"CREATE ROLE {asked['POSTGRES_USER']} LOGIN PASSWORD %s", (asked["POSTGRES_PASSWORD"],))
        cursor.execute(
            f"CREATE DATABASE {asked['POSTGRES_DB']} OWNER {asked['POSTGRES_USER']} TEMPLATE template0 "
            "ENCODING 'UTF8' LC_COLLATE 'C.UTF-8' LC_CTYPE 'C.UTF-8'"
        )
    return url.split("@")[1].split("/")[0]


@contextlib.contextmanager
def running_queue(service: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """Redis as the service starts it, at a port of this machine: its address."""
    if shutil.which("redis-server") is None:
        pytest.skip("Redis is not installed here: no `redis-server`.")
    port = free_port()
    place = Places(folder, "", "")
    shell, option, script = (place.put_in(word) for word in service["command"])
    script = script.replace("requirepass", f"bind 127.0.0.1\nport {port}\nrequirepass", 1)
    environment = environment_of(service, place)
    with subprocess.Popen([shell, option, script], env=environment, stdout=subprocess.DEVNULL) as process:
        try:
            (kind, check) = service["healthcheck"]["test"]
            assert kind == "CMD-SHELL"
            while subprocess.run(check.replace("6379", str(port)), shell=True, env=environment, check=False).returncode:
                assert process.poll() is None, "Redis does not start."
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()


@contextlib.contextmanager
def running_argilla(compose: Compose, places: Places) -> Iterator[str]:
    """Database migrated, web and worker at work and found well by their health checks: the web's address."""
    services = compose.services
    run_part(command_of(services["migrate"]), environment_of(services["migrate"], places))
    with contextlib.ExitStack() as stack:
        worker = environment_of(services["worker"], places)
        process = subprocess.Popen(command_of(services["worker"]), env=worker)
        stack.callback(end, process)
        web = {**environment_of(services["web"], places), "CITEJURY_LISTEN": "127.0.0.1:0"}
        address = stack.enter_context(running_web(command_of(services["web"]), web))
        run_part(services["web"]["healthcheck"]["test"][1:], {**web, "CITEJURY_LISTEN": address})
        while subprocess.run(services["worker"]["healthcheck"]["test"][1:], env=worker, check=False).returncode:
            assert process.poll() is None, "The worker does not start."
        yield f"http://{address}"


class Server(NamedTuple):
    url: str
    api_key: str

    def run(self, *words: str) -> str:
        environment = {"ARGILLA_API_URL": self.url, "ARGILLA_API_KEY": self.api_key}
        result = CliRunner().invoke(main, words, env=environment)
        assert result.exit_code == 0, f"{result.output}{result.exception!r}"
        return result.stdout

    def call(self, method: str, path: str, **words: Any) -> Any:
        headers = {"X-Argilla-Api-Key": self.api_key, **words.pop("headers", {})}
        reply = httpx.request(
            method, f"{self.url}/api/v1{path}", headers=headers, timeout=60, verify=False, trust_env=False, **words
        )
        assert reply.is_success, reply.text
        return reply.json()


def campaign(server: Server, folder: Path, workspace: str, languages: Sequence[str] = (("en", "de", "ja"))) -> None:
    """Set up, push, and let every annotator submit everything that her queue shows."""
    folder.mkdir(exist_ok=True)
    records = folder / "records.jsonl"
    lines = [record(number, language).model_dump_json() for number, language in enumerate(languages)]
    records.write_text("\n".join(lines) + "\n", encoding="utf-8")
    named = [word for name in ANNOTATORS for word in ("--annotator", name)]
    passwords = folder / "passwords.json"
    overlap = ("--overlap", str(len(ANNOTATORS)), "--passwords", str(passwords))
    server.run("annotation", "setup", "--workspace", workspace, *named, *overlap)
    server.run("annotation", "push", str(records), "--workspace", workspace)
    for name, password in json.loads(passwords.read_text(encoding="utf-8")).items():
        with Player(server.url, name, password) as player:
            annotate(player, workspace)


def annotate(player: Player, workspace: str) -> None:
    """Submit a label for each question of each record in the queues of the workspace."""
    for (place, dataset), dataset_id in player.datasets().items():
        if place == workspace:
            task = dataset.split("-")[1]
            for external_id, record_id in player.queue(dataset_id).items():
                player.respond(record_id, "submitted", answers(task, player.name, external_id), "")


def set_clock(database: Any, workspace: str, mark: str, write: Callable[[datetime], Any]) -> None:
    """Let the same submissions have come at the same moments in every database; nothing else differs by chance."""
    with contextlib.closing(database.cursor()) as cursor:
        cursor.execute(SUBMISSIONS + mark, (workspace,))
        found = sorted(cursor.fetchall(), key=lambda row: row[1:])
        for place, (response_id, *_) in enumerate(found):
            moment = write(FIRST_SUBMISSION + place * STEP)
            cursor.execute(f"UPDATE responses SET updated_at = {mark} WHERE id = {mark}", (moment, response_id))
    database.commit()


def export(server: Server, folder: Path, workspace: str) -> dict[str, bytes]:
    server.run("exports", "csv", str(folder), "--workspace", workspace)
    return {path.name: path.read_bytes() for path in folder.glob("*.csv")}


def dataset_of(server: Server, workspace: str, name: str) -> str:
    workspaces = {each["name"]: each["id"] for each in server.call("GET", "/me/workspaces")["items"]}
    parameters = {"workspace_id": workspaces[workspace], "name": name}
    (found,) = server.call("GET", "/me/datasets", params=parameters)["items"]
    return str(found["id"])


def wait_for_the_worker(server: Server, dataset_id: str, annotators: int, completed: int) -> None:
    """Let the worker count a dataset's completed records anew: none for one annotator more, and then as before."""
    for overlap, expected in ((annotators + 1, 0), (annotators, completed)):
        spread = {"distribution": {"strategy": "overlap", "min_submitted": overlap}}
        server.call("PATCH", f"/datasets/{dataset_id}", json=spread)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while server.call("GET", f"/datasets/{dataset_id}/progress")["completed"] != expected:
            assert time.monotonic() < deadline, "The worker does nothing."

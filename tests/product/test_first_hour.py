import csv
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from annotation.argilla.client import Argilla
from annotation.campaign.datasets import find_datasets
from exports.cli import main
from exports.cli.project import project_files, start_project
from tests.support import caddy
from tests.support.places import ROOT
from tests.support.queue_player import PENDING, Player

if TYPE_CHECKING:
    from annotation.server.launch import ServerHandle

pytestmark = pytest.mark.server

DEMO = ROOT / "exports" / "demo_data"
ELSEWHERE = "127.0.0.2"
"""Where the server, which listens at 127.0.0.1, does not answer: the address of another machine, as far as it goes."""


@pytest.fixture
def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CITEJURY_", "ARGILLA_"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return kept | {"PATH": path, "CITEJURY_ANNOTATION_SERVE_PORT": "0"}


def run(command: str, folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stderr


def names_next(said: str, command: str) -> bool:
    """Whether what a command said names the next one, its words up to the first that are the user's own.

    Options that are said with it have to be the command's.
    """
    words = re.match(r"(?:citejury \S+ \S+|caddy reverse-proxy)", command)
    assert words is not None
    hints = re.findall(rf"{words[0]}\b[^`\n;(),]*", said)
    return bool(hints) and all(map(is_understood, hints))


def is_understood(hint: str) -> bool:
    """Whether a command of ours that a hint names has the options that stand there; others are not ours to know."""
    program, *words = shlex.split(hint)
    if program != "citejury":
        return True
    command: click.Command = main
    context = click.Context(main)
    while isinstance(command, click.Group) and words:
        found = command.get_command(context, words.pop(0))
        assert found is not None, hint
        context = click.Context(found, parent=context)
        command = found
    try:
        command.make_parser(context).parse_args(words)
    except click.UsageError:
        return False
    return True


def test_a_hint_with_an_option_that_the_command_lacks_is_none() -> None:
    command = "citejury annotation setup --annotator anna"
    for hint, is_named in (
        ("setup --passwords passwords.json", True),
        ("setup --password passwords.json", False),
        ("push RECORDS.jsonl", False),
    ):
        assert names_next(f"Next: citejury annotation {hint}", command) is is_named


@pytest.fixture
def spreadsheet(tmp_path: Path) -> Path:
    """Ten narratives as a German Excel saves them."""
    with open(DEMO / "narratives.csv", encoding="utf-8", newline="") as file:
        rows = [(row["narrative_id"], row["prompt"]) for row in csv.DictReader(file)][:10]
    path = tmp_path / "mine.csv"
    with open(path, "w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, delimiter=";").writerows([("narrative_id", "prompt"), *rows])
    return path


@pytest.mark.rare
def test_seven_commands_lead_from_a_spreadsheet_to_a_page_on_another_machine(
    spreadsheet: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    ask = f"citejury pipeline ask {spreadsheet.name} --out answers --replay {shlex.quote(str(DEMO / 'payloads'))}"
    read = "citejury pipeline sources answers --out records.jsonl --offline"
    serve = "citejury annotation serve --behind-tls"
    proxy = "caddy reverse-proxy --from NAME --to ADDRESS"
    setup = "citejury annotation setup --annotator anna --annotator ben --passwords passwords.json"
    push = "citejury annotation push records.jsonl"
    share = "citejury annotation share --out sheets --passwords passwords.json --api-url URL"
    assert names_next(run(ask, tmp_path, environment), read)
    assert names_next(run(read, tmp_path, environment), serve)
    with subprocess.Popen(serve.split(), cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            said = ""
            while "Ctrl-C" not in said:
                said += server.stderr.readline()
                assert server.poll() is None, said
            assert names_next(said, proxy)
            assert names_next(said, setup)
            (key,) = [line.strip() for line in said.splitlines() if "set -a" in line]
            (to,) = re.findall(r"--to (\S+)", said)
            url = f"https://{ELSEWHERE}:{caddy.free_port()}"
            with caddy.running(tmp_path, f"{url} {{\n\ttls internal\n\treverse_proxy {to}\n}}\n", url):
                assert names_next(run(f"{key}; {setup}", tmp_path, environment), push)
                assert names_next(run(f"{key}; {push}", tmp_path, environment), share)
                trusting = environment | {"SSL_CERT_FILE": str(caddy.authority(tmp_path))}
                assert "Next: send each annotator" in run(f"{key}; {share.replace('URL', url)}", tmp_path, trusting)
                opens_for(tmp_path, url, "anna")
        finally:
            server.terminate()
            server.stderr.read()


def opens_for(folder: Path, url: str, name: str) -> None:
    """Their sheet names the address; there the page opens, their password logs in, and a record is there for them."""
    (sheet,) = (folder / "sheets").glob(f"*{name}*.html")
    text = sheet.read_text(encoding="utf-8")
    password = json.loads((folder / "passwords.json").read_text(encoding="utf-8"))[name]
    assert url in text
    assert password in text
    assert caddy.ask(folder, url, "GET", "/sign-in").status_code == 200
    token = caddy.ask(folder, url, "POST", "/api/v1/token", data={"username": name, "password": password}).json()
    login = {"Authorization": f"Bearer {token['access_token']}"}
    dataset = re.findall(r"/dataset/([0-9a-f-]+)/annotation-mode", text)[0]
    path = f"/api/v1/me/datasets/{dataset}/records/search?limit=1"
    pending = {"query": {}, "filters": {"and": PENDING}}
    assert caddy.ask(folder, url, "POST", path, headers=login, json=pending).json()["total"] > 0


def test_the_readme_of_a_new_project_is_the_way_that_works(
    argilla_server: "ServerHandle", owner: Argilla, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    plan = tmp_path / "citejury.toml"  # the server is other tests' too, and some of them have an Anna
    plan.write_text(plan.read_text(encoding="utf-8").replace('"anna"', '"anna-of-readme"', 1), encoding="utf-8")
    lines = re.findall(r"^    (\S.*?)(?:  +#.*)?$", project_files()["README.md"].decode(), re.MULTILINE)
    in_another_terminal = ("citejury annotation serve", "set -a; . ./citejury-home/env; set +a")
    commands = [line for line in lines if line not in in_another_terminal]
    assert len(commands) == len(lines) - 2
    monkeypatch.setenv("ARGILLA_API_URL", argilla_server.url)
    monkeypatch.setenv("ARGILLA_API_KEY", argilla_server.owner_api_key)
    monkeypatch.setenv("CITEJURY_WORKSPACE", "first-hour")
    said = ""
    for command in commands:
        if "exports" in command:
            users = owner.request("GET", "/users")["items"]
            key = next(user["api_key"] for user in users if user["username"] == "anna-of-readme")
            with Argilla(owner.api_url, key) as anna:
                player = Player(anna, find_datasets(owner, "first-hour")["generation"].id, "generation")
                assert player.open()
                player.submit()
        elif not command.startswith(("citejury doctor", "citejury annotation status")):
            assert names_next(said, command), f"{command} is not named by what comes before it: {said}"
        program, *words = shlex.split(command.replace(" --out records", " --offline --out records"))
        done = CliRunner().invoke(main, words)
        assert (program, done.exit_code) == ("citejury", 0), done.output
        said = done.stderr if "status" not in command else ""
    assert (tmp_path / "labels" / "generation.csv").read_text(encoding="utf-8").count("\n") > 1

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from annotation.argilla.client import Argilla
from annotation.campaign.datasets import find_datasets
from exports.cli import main
from exports.cli.project import project_files, start_project
from exports.study.work import WAITS
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


def run(command: str, folder: Path, environment: dict[str, str], code: int = 0) -> str:
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, f"{command}: {done.stderr}"
    return done.stderr


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
def test_four_commands_lead_from_a_spreadsheet_to_a_page_on_another_machine(
    spreadsheet: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    project = tmp_path / "mine"
    assert "citejury study plan" in run("citejury init mine", tmp_path, environment)
    shutil.copytree(DEMO / "payloads", project / "payloads", dirs_exist_ok=True)
    shutil.copy(spreadsheet, project / "narratives.csv")
    said = run("citejury study plan", project, environment)  # which may be left out
    assert "citejury annotation serve, in a second terminal, then citejury study run" in said
    serve = ["citejury", "annotation", "serve", "--behind-tls"]
    with subprocess.Popen(serve, cwd=project, env=environment, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            said = ""
            while "Ctrl-C" not in said:
                said += server.stderr.readline()
                assert server.poll() is None, said
            assert "caddy reverse-proxy --from" in said
            assert "Next:     citejury study run" in said
            (to,) = re.findall(r"--to (\S+)", said)
            url = f"https://{ELSEWHERE}:{caddy.free_port()}"
            with caddy.running(project, f"{url} {{\n\ttls internal\n\treverse_proxy {to}\n}}\n", url):
                text = (project / "study.toml").read_text(encoding="utf-8")
                shared = text.replace('# api-url = "https://annotate.example.org"', f'api-url = "{url}"')
                (project / "study.toml").write_text(shared, encoding="utf-8")
                trusting = environment | {"SSL_CERT_FILE": str(caddy.authority(project))}
                said = run("citejury study run", project, trusting, code=WAITS)
                assert "send each annotator their sheet in `sheets`" in said
                opens_for(project, url, "anna")
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
    campaign = tmp_path / "citejury.toml"  # the server is other tests' too, and some of them have an Anna
    campaign.write_text(campaign.read_text(encoding="utf-8").replace('"anna"', '"anna-of-readme"', 1), encoding="utf-8")
    lines = re.findall(r"^    (\S.*?)(?:  +#.*)?$", project_files()["README.md"].decode(), re.MULTILINE)
    assert lines == [f"citejury {each}" for each in ("study plan", "annotation serve", "study run", "study status")]
    monkeypatch.setenv("CITEJURY_WORKSPACE", "first-hour")
    planned = CliRunner().invoke(main, ["study", "plan"])
    assert planned.exit_code == 0, planned.output
    assert "Hours of each person, if all do as much: anna-of-readme" in planned.stdout
    (tmp_path / "citejury-home").mkdir()  # as `serve` leaves it, for whoever gave no key
    key = f"ARGILLA_API_URL={argilla_server.url}\nARGILLA_API_KEY={argilla_server.owner_api_key}\n"
    (tmp_path / "citejury-home" / "env").write_text(key, encoding="utf-8")
    waiting = CliRunner().invoke(main, ["study", "run"])
    assert waiting.exit_code == WAITS, waiting.output
    assert "ARGILLA_API_KEY" not in os.environ
    assert (
        "people   0 of 25 units done; waits for anna-of-readme 25, ben 25"
        in CliRunner().invoke(main, ["study", "status"]).stdout
    )
    users = owner.request("GET", "/users")["items"]
    with Argilla(
        owner.api_url, next(each["api_key"] for each in users if each["username"] == "anna-of-readme")
    ) as anna:
        player = Player(anna, find_datasets(owner, "first-hour")["generation"].id, "generation")
        assert player.open()
        player.submit()
    done = CliRunner().invoke(main, ["study", "run", "--as-is"])
    assert done.exit_code == 0, done.output
    assert "closes without 49 submissions, and its report is interim" in done.stderr
    assert (tmp_path / "study" / "results" / "report.html").is_file()

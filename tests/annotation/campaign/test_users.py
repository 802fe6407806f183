"""People on the server: they join, get new passwords, leave with their answers kept, and are forgotten."""

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
from click.testing import CliRunner, Result
from rich.cells import cell_len

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import set_up
from annotation.push.push import push_records
from exports.cli import main
from pipeline.records.schema import Passage, QueryResponse
from tests.support.export_bench import read_csv
from tests.support.lossy_link import Forward, lossy_link

if TYPE_CHECKING:
    from annotation.server.launch import ServerHandle

Command = Callable[..., Result]
pytestmark = pytest.mark.server
PASSAGE = Passage(chunk_id="d#0", doc_id="d", chunk_rank=1, text="Nobody did.")
ANSWER = QueryResponse(
    record_uuid="r1", query="Who?", answer="Nobody.", language="en", chunks=(PASSAGE,), context_set=PASSAGE.text
)


@pytest.fixture
def name() -> str:
    """A user name, and the name of a workspace, that no other test has."""
    return f"u-{uuid.uuid4().hex[:10]}"


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, argilla_server: "ServerHandle", owner: Argilla) -> Command:
    """Run a command in a folder of its own as the server's owner."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARGILLA_API_URL", argilla_server.url)
    monkeypatch.setenv("ARGILLA_API_KEY", argilla_server.owner_api_key)

    def run(*words: str) -> Result:
        return CliRunner().invoke(main, list(words))

    return run


def users(command: Command, *words: str) -> Result:
    return command("annotation", "users", *words)


def listed(command: Command) -> dict[str, list[str]]:
    """Role and workspaces of each user."""
    rows = [line.split(maxsplit=2) for line in users(command, "list").stdout.splitlines()[1:]]
    return {row[0]: row[1:] for row in rows}


def logs_in(url: str, name: str, password: str) -> bool:
    reply = httpx.post(f"{url}/api/v1/token", data={"username": name, "password": password}, timeout=60)
    assert reply.status_code in (201, 401)
    return reply.status_code == 201


def answer_as(owner: Argilla, workspace: str, name: str) -> None:
    """A submitted response of the user to the workspace's one answer."""
    dataset = find_datasets(owner, workspace)["generation"].id
    record = next(owner.record_pages(dataset))[1][0]
    user = next(each for each in owner.users() if each["username"] == name)
    values = {label: {"value": "yes"} for label in LABELS["generation"]}
    response = {"user_id": user["id"], "status": "submitted", "values": values}
    body = {"items": [{"id": record["id"], "responses": [response]}]}
    owner.request("PUT", f"/datasets/{dataset}/records/bulk", json=body)


def annotators_of(command: Command, workspace: str, out: str, *options: str) -> list[str]:
    done = command("exports", "csv", out, "--workspace", workspace, *options)
    assert done.exit_code == 0, done.output
    return [row["annotator_id"] for row in read_csv(Path(out) / "generation.csv")]


def test_people_join_get_a_new_password_and_leave_and_everybody_is_listed(
    command: Command, owner: Argilla, argilla_server: "ServerHandle", name: str
) -> None:
    owner.request("POST", "/workspaces", json={"name": name})
    for done in ("created", "there already"):
        added = users(command, "add", name, "--workspace", name, "--passwords", "passwords.json")
        assert added.exit_code == 0, added.output
        assert added.stdout.splitlines()[1].split(maxsplit=2) == [name, name, done]
    assert Path("passwords.json").stat().st_mode & 0o777 == 0o600
    first = json.loads(Path("passwords.json").read_text(encoding="utf-8"))[name]
    assert first not in added.output
    assert logs_in(argilla_server.url, name, first)
    assert listed(command)[name] == ["annotator", name]

    renewed = users(command, "passwd", name)
    assert "has to log in again" in renewed.stderr
    assert "If she uses an API key" in renewed.stderr
    second = renewed.stdout.split("the password ")[1].split()[0]
    assert not logs_in(argilla_server.url, name, first)
    assert logs_in(argilla_server.url, name, second)

    left = users(command, "remove", name).stderr
    assert f"{name} left: {name}." in left
    assert "her API key opens nothing" in left
    assert not logs_in(argilla_server.url, name, second)
    assert listed(command)[name] == ["annotator", "-"]
    assert "in none of the workspaces" in users(command, "remove", name).stderr


def test_who_left_keeps_her_answers_and_who_is_forgotten_keeps_them_under_a_pseudonym(
    command: Command, owner: Argilla, name: str
) -> None:
    set_up(owner, name, annotators=[name, f"{name}-b"])
    push_records(owner, name, [ANSWER])
    for person in (name, f"{name}-b"):
        answer_as(owner, name, person)
    assert annotators_of(command, name, "anonymous", "--anonymize") == ["annotator-01", "annotator-02"]
    key = Path("anonymous.annotators.json")
    (before,) = [who for who, person in keyed(key).items() if person == name]
    assert users(command, "remove", name).exit_code == 0
    assert annotators_of(command, name, "removed") == [name, f"{name}-b"]

    refused = users(command, "forget", name)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "Add `--yes`" in refused.stderr
    forgotten = users(command, "forget", name, "--yes")
    pseudonym = forgotten.stdout.strip()
    assert pseudonym.startswith("former-")
    assert "backups" in forgotten.stderr
    assert sorted(annotators_of(command, name, "forgotten")) == sorted([pseudonym, f"{name}-b"])
    assert annotators_of(command, name, "anonymous", "--anonymize") == ["annotator-01", "annotator-02"]
    assert keyed(key)[before] == pseudonym
    known = owner.request("GET", "/users")["items"]
    (former,) = [user for user in known if user["username"] == pseudonym]
    assert (former["first_name"], former["last_name"]) == (pseudonym, None)
    assert not [user for user in known if name in (user["username"], user["first_name"])]


def keyed(path: Path) -> dict[str, str]:
    """User names by pseudonym."""
    annotators = json.loads(path.read_text(encoding="utf-8"))["annotators"]
    return {pseudonym: person["username"] for pseudonym, person in annotators.items()}


def test_the_campaign_that_would_bring_somebody_back_is_named(command: Command, owner: Argilla, name: str) -> None:
    owner.request("POST", "/workspaces", json={"name": name})
    campaign = f'[campaign]\nlocales = ["en"]\nannotators = [{{name = "{name}"}}]\n'
    Path("citejury.toml").write_text(campaign, encoding="utf-8")
    assert f"does not list {name}-c" in users(command, "add", name, f"{name}-c", "--workspace", name).stderr
    assert "left = true" in users(command, "remove", name).stderr
    assert "Take her out of citejury.toml" in users(command, "forget", name, "--yes").stderr


def test_a_role_that_stays_is_named_and_names_of_any_script_stand_in_columns(
    command: Command, owner: Argilla, name: str
) -> None:
    owner.request("POST", "/workspaces", json={"name": name})
    people = (f"{name}-佐藤", f"{name}-Jürgen")
    users(command, "add", *people, "--workspace", name)
    again = users(command, "add", people[0], "--role", "admin", "--workspace", name)
    assert f"{people[0]} stays annotator" in again.stderr
    rows = [line for line in users(command, "list").stdout.splitlines() if name in line]
    assert len({cell_len(row[: row.index("annotator")]) for row in rows}) == 1


def test_an_owner_hears_that_her_first_password_stays_written_down(command: Command, owner: Argilla, name: str) -> None:
    person = {"username": name, "first_name": name, "role": "owner", "password": "of no use"}
    owner.request("POST", "/users", json=person)
    said = users(command, "passwd", name).stderr
    assert "is not changed" in said
    assert "An owner's API key stays" in said
    assert "If she uses an API key" not in said


class StockArgilla(Forward):
    """The same server without our routes: it answers as it does for any path that it does not know."""

    def do_POST(self) -> None:
        self.path = self.path.replace("/citejury/", "/unknown/")
        self.forward()


def test_what_a_stock_argilla_cannot_end_is_said_in_a_sentence(
    command: Command, owner: Argilla, argilla_server: "ServerHandle", name: str
) -> None:
    owner.request("POST", "/workspaces", json={"name": name})
    users(command, "add", name, "--workspace", name)
    with lossy_link(argilla_server.url) as link:
        link.RequestHandlerClass = StockArgilla
        for words in (["passwd", name], ["remove", name], ["forget", name, "--yes"]):
            done = users(command, *words, "--api-url", link.url)
            assert done.exit_code == 0, done.output
            assert "stays so for up to a day, and the API key still works" in done.stderr
            assert "log in again" not in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["passwd", "nobody-at-all"], "no user 'nobody-at-all'"),
        (["remove", "nobody-at-all"], "no user 'nobody-at-all'"),
        (["remove", "owner"], "is an owner"),
        (["forget", "owner", "--yes"], "is an owner"),
        (["add", "somebody", "--workspace", "no such place"], "no workspace 'no such place'"),
        (["add", "some\u202ebody"], "characters that cannot be seen"),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_line(command: Command, words: list[str], said: str) -> None:
    done = users(command, *words)
    assert (done.exit_code, done.stdout) == (1, "")
    assert said in done.stderr


def test_a_pseudonym_that_somebody_has_is_refused_and_nothing_changes(
    command: Command, owner: Argilla, name: str
) -> None:
    owner.request("POST", "/workspaces", json={"name": name})
    users(command, "add", name, "--workspace", name)
    done = users(command, "forget", name, "--yes", "--as", "owner")
    assert done.exit_code == 1
    assert "is there already" in done.stderr
    assert listed(command)[name] == ["annotator", name]

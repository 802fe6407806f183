"""People on the server: they join, get new passwords, leave with their answers kept, and are forgotten."""

import json
from pathlib import Path

import httpx
import pytest
from rich.cells import cell_len

from annotation.argilla.client import Argilla
from annotation.campaign.setup import set_up
from annotation.push.push import push_records
from tests.support.export_bench import answers, read_csv
from tests.support.lossy_link import stock_argilla
from tests.support.setup_bench import ANSWER, held

pytestmark = pytest.mark.server


@pytest.fixture
def users(command):
    """`forget` is a command of its own."""

    def run(*words, code=0):
        return command("annotation", *(() if words[:1] == ("forget",) else ("users",)), *words, code=code)

    return run


@pytest.fixture
def name(owner: Argilla, workspace: str) -> str:
    """Of an empty workspace and of a user to be."""
    owner.request("POST", "/workspaces", json={"name": workspace})
    return workspace


def listed(users) -> dict[str, list[str]]:
    """Role and workspaces of each user."""
    rows = [line.split(maxsplit=2) for line in users().stdout.splitlines()[1:]]
    return {row[0]: row[1:] for row in rows}


def answer_as(owner: Argilla, workspace: str, name: str) -> None:
    """A submitted response of the user to the workspace's one answer."""
    (record,) = held(owner, workspace)
    user = next(each for each in owner.users() if each["username"] == name)
    values = {label: {"value": value} for label, value in answers("generation").items()}
    response = {"user_id": user["id"], "status": "submitted", "values": values}
    body = {"items": [{"id": record["id"], "responses": [response]}]}
    owner.request("PUT", f"/datasets/{record['dataset_id']}/records/bulk", json=body)


def test_people_join_get_a_new_password_and_leave_and_everybody_is_listed(users, owner: Argilla, name: str) -> None:
    def logs_in(password: str) -> bool:
        login = {"username": name, "password": password}
        reply = httpx.post(f"{owner.api_url}/api/v1/token", data=login, timeout=60)
        assert reply.status_code in (201, 401)
        return reply.status_code == 201

    for done in ("created", "there already"):
        added = users("--add", name, "--workspace", name, "--passwords", "passwords.json")
        assert added.stdout.splitlines()[1].split(maxsplit=2) == [name, name, done]
    assert Path("passwords.json").stat().st_mode & 0o777 == 0o600
    first = json.loads(Path("passwords.json").read_text(encoding="utf-8"))[name]
    assert first not in added.output
    assert logs_in(first)
    assert listed(users)[name] == ["annotator", name]
    assert "is there already" in users("forget", name, "--yes", "--as", "owner", code=1).stderr
    assert listed(users)[name] == ["annotator", name]

    renewed = users("--password", name)
    assert "has to log in again" in renewed.stderr
    assert "If they use an API key" in renewed.stderr
    second = renewed.stdout.split("the password ")[1].split()[0]
    assert [logs_in(first), logs_in(second)] == [False, True]

    left = users("--remove", name).stderr
    assert f"{name} left: {name}." in left
    assert "their API key opens nothing" in left
    assert not logs_in(second)
    assert listed(users)[name] == ["annotator", "-"]
    assert "in none of the workspaces" in users("--remove", name).stderr


def test_who_left_keeps_answers_who_is_forgotten_under_a_name(command, users, owner: Argilla, workspace: str) -> None:
    name, other = workspace, f"{workspace}-b"
    set_up(owner, workspace, annotators=[name, other])
    push_records(owner, workspace, [ANSWER])
    for person in (name, other):
        answer_as(owner, workspace, person)

    def annotators_of(out: str, *options: str) -> list[str]:
        command("exports", "csv", out, "--workspace", workspace, *options)
        return [row["annotator_id"] for row in read_csv(Path(out) / "generation.csv")]

    assert annotators_of("anonymous", "--anonymize") == ["annotator-01", "annotator-02"]
    key = Path("anonymous.annotators.json")
    (before,) = [who for who, person in keyed(key).items() if person == name]
    users("--remove", name)
    assert annotators_of("removed") == [name, other]

    refused = users("forget", name, code=1)
    assert (refused.stdout, "Add `--yes`" in refused.stderr) == ("", True)
    forgotten = users("forget", name, "--yes")
    pseudonym = forgotten.stdout.strip()
    assert pseudonym.startswith("former-")
    assert "backups" in forgotten.stderr
    assert sorted(annotators_of("forgotten")) == sorted([pseudonym, other])
    assert annotators_of("anonymous", "--anonymize") == ["annotator-01", "annotator-02"]
    assert keyed(key)[before] == pseudonym
    known = owner.request("GET", "/users")["items"]
    (former,) = [user for user in known if user["username"] == pseudonym]
    assert (former["first_name"], former["last_name"]) == (pseudonym, None)
    assert not [user for user in known if name in (user["username"], user["first_name"])]


def keyed(path: Path) -> dict[str, str]:
    """User names by pseudonym."""
    annotators = json.loads(path.read_text(encoding="utf-8"))["annotators"]
    return {pseudonym: person["username"] for pseudonym, person in annotators.items()}


def test_roles_that_stay_and_campaigns_that_bring_back_are_named_and_any_script_is_in_columns(users, name: str) -> None:
    people = (f"{name}-佐藤", f"{name}-Jürgen")
    users("--add", people[0], "--add", people[1], "--workspace", name)
    again = users("--add", people[0], "--role", "admin", "--workspace", name)
    assert f"{people[0]} stays annotator" in again.stderr
    rows = [line for line in users().stdout.splitlines() if name in line]
    assert len({cell_len(row[: row.index("annotator")]) for row in rows}) == 1
    campaign = f'[campaign]\nlocales = ["en"]\nannotators = [{{name = "{name}"}}]\n'
    Path("citejury.toml").write_text(campaign, encoding="utf-8")
    assert f"does not list {name}-c" in users("--add", name, "--add", f"{name}-c", "--workspace", name).stderr
    assert "left = true" in users("--remove", name).stderr
    assert "Take them out of citejury.toml" in users("forget", name, "--yes").stderr


def test_an_owner_hears_that_the_first_password_stays_written_down(users, owner: Argilla, workspace: str) -> None:
    person = {"username": workspace, "first_name": workspace, "role": "owner", "password": "of no use"}
    owner.request("POST", "/users", json=person)
    said = users("--password", workspace).stderr
    assert "is not changed" in said
    assert "An owner's API key stays" in said
    assert "If they use an API key" not in said


def test_what_a_stock_argilla_cannot_end_is_said_in_a_sentence(users, owner: Argilla, name: str) -> None:
    users("--add", name, "--workspace", name)
    with stock_argilla(owner.api_url) as link:
        for words in (["--password", name], ["--remove", name], ["forget", name, "--yes"]):
            said = users(*words, "--api-url", link.url).stderr
            assert "stays so for up to a day, and the API key still works" in said
            assert "log in again" not in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--password", "nobody-at-all"], "no user 'nobody-at-all'"),
        (["--remove", "nobody-at-all"], "no user 'nobody-at-all'"),
        (["--remove", "owner"], "is an owner"),
        (["forget", "owner", "--yes"], "is an owner"),
        (["--add", "somebody", "--workspace", "no such place"], "no workspace 'no such place'"),
        (["--add", "some\u202ebody"], "characters that cannot be seen"),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_line(users, words: list[str], said: str) -> None:
    refused = users(*words, code=1)
    assert (refused.stdout, said in refused.stderr) == ("", True)

"""Who adjudicates: people of that role, nobody on units of her own, and each only what annotators differ on."""

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner, Result

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS
from annotation.campaign.people import read_passwords
from annotation.campaign.setup import add_members, create_workspace
from annotation.server.launch import ServerHandle
from exports.cli import main
from exports.cli.adjudicate import refused_by_reason
from exports.reading.decisions import read_decisions
from pipeline.records.schema import QueryResponse
from tests.support.adjudication_data import read_csv

pytestmark = pytest.mark.server
ANNOTATORS = {"anna": ("en",), "ben": ("en", "de"), "cem": ("de",)}
BLIND = ("exports", "adjudicate", "push", "export", "--blind")


class Study:
    """A campaign of two languages, which not everybody reads, with a folder of its own."""

    def __init__(self, server: ServerHandle, owner: Argilla) -> None:
        self.server, self.owner = server, owner
        self.workspace = f"a-{uuid.uuid4().hex[:8]}"
        self.passwords: dict[str, str] = {}

    def name(self, who: str) -> str:
        return f"{self.workspace}-{who}"

    def write_campaign(self, adjudicators: Mapping[str, Sequence[str]]) -> None:
        lines = [f'workspace = "{self.workspace}"', "[campaign]", 'locales = ["en", "de"]', "overlap = 2"]
        for role, people in (("annotator", ANNOTATORS), ("adjudicator", adjudicators)):
            for who, locales in people.items():
                listed = ", ".join(f'"{each}"' for each in locales)
                lines += ["[[campaign.annotators]]", f'name = "{self.name(who)}"', f"locales = [{listed}]"]
                lines += [f'role = "{role}"']
        Path("citejury.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def run(self, *words: str, code: int = 0) -> Result:
        result = CliRunner().invoke(main, words)
        assert result.exit_code == code, result.output
        return result

    def client(self, who: str) -> httpx.Client:
        """The API for somebody who has logged in."""
        base = f"{self.server.url}/api/v1"
        body = {"username": self.name(who), "password": read_passwords(Path("passwords.json"))[self.name(who)]}
        token = httpx.post(f"{base}/token", data=body, trust_env=False).raise_for_status().json()["access_token"]
        return httpx.Client(
            base_url=base, headers={"Authorization": f"Bearer {token}"}, timeout=60, verify=False, trust_env=False
        )

    def submit(self, who: str, dataset: str, **answers: str) -> httpx.Response:
        """What the server says to somebody's answer to the record of their dataset of that name."""
        with self.client(who) as http:
            (found,) = (each for each in http.get("/me/datasets").json()["items"] if each["name"] == dataset)
            (item,) = http.post(f"/me/datasets/{found['id']}/records/search", json={}).json()["items"]
            values = {label: {"value": value} for label, value in answers.items()}
            body = {"status": "submitted", "values": values}
            return http.post(f"/records/{item['record']['id']}/responses", json=body)

    def disputed(self, who: str) -> dict[str, list[str]]:
        """What the one record of each dataset that somebody sees asks for, by the dataset's name."""
        with self.client(who) as http:
            items = {
                each["name"]: http.post(f"/me/datasets/{each['id']}/records/search", json={}).json()["items"]
                for each in http.get("/me/datasets").json()["items"]
            }
        return {name: item["record"]["metadata"]["citejury_disputed"] for name, (item,) in items.items()}


@pytest.fixture
def study(argilla_server: ServerHandle, owner: Argilla, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Study:
    """Annotators differ on `helpful` of the English answer and on `incomplete` of the German one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARGILLA_API_URL", argilla_server.url)
    monkeypatch.setenv("ARGILLA_API_KEY", argilla_server.owner_api_key)
    study = Study(argilla_server, owner)
    study.write_campaign({"dora": ("en",), "emil": ("de",)})
    study.run("annotation", "setup", "--passwords", "passwords.json")
    lines = [
        QueryResponse(record_uuid=f"r-{locale}", query="Who?", answer="Ann.", language=locale).model_dump_json() + "\n"
        for locale in ("en", "de")
    ]
    Path("r.jsonl").write_text("".join(lines), encoding="utf-8")
    study.run("annotation", "push", "r.jsonl")
    no = dict.fromkeys(LABELS["generation"], "no")
    for who, dataset, label in (("anna", "en", "helpful"), ("cem", "de", "incomplete")):
        assert study.submit(who, f"3-generation-{dataset}", **no).is_success
        assert study.submit("ben", f"3-generation-{dataset}", **no | {label: "yes"}).is_success
    study.run("exports", "csv", "export")
    return study


@pytest.mark.rare
def test_adjudicators_of_the_campaign_decide_what_is_split_in_their_language_and_nothing_else(study: Study) -> None:
    with study.client("dora") as http:
        assert http.get("/me/datasets").json()["items"] == []  # set-up made her, and put her before nothing
    said = study.run(*BLIND)
    assert "Units new: 2, there before: 0, refused: 0." in said.stdout
    for who, locale, label in (("dora", "en", "helpful"), ("emil", "de", "incomplete")):
        home = f"{study.workspace}-{locale}-adjudication"
        assert f"Adjudicators of '{home}': {study.name(who)}." in said.stderr
        dataset = f"adjudication-3-generation-{locale}"
        assert study.disputed(who) == {dataset: [label]}
        refused = study.submit(who, dataset, unsafe_content="no")
        assert (refused.status_code, label in refused.text) == (422, True)
    assert study.submit("dora", "adjudication-3-generation-en", helpful="yes").status_code == 201
    a_label_that_comes_later_is_asked_for_too_unless_it_is_decided_already(study)
    answers = dict.fromkeys(("incomplete", "unsafe_content", "helpful"), "yes")
    assert study.submit("emil", "adjudication-3-generation-de", **answers).status_code == 201
    study.run("exports", "adjudicate", "read", "--out", "decisions.csv", "--export", "export")
    rows = read_csv(Path("decisions.csv"))
    decided = [("r-de", "incomplete", "True"), ("r-de", "unsafe_content", "True"), ("r-en", "helpful", "True")]
    assert sorted((row["record_uuid"], row["label"], row["decision"]) for row in rows) == decided
    assert "own" not in rows[0]
    study.write_campaign({})
    push = ("exports", "adjudicate", "push", "export", "--votes")
    assert 'with `role = "adjudicator"` and run `citejury annotation setup`' in study.run(*push, code=1).stderr
    fritz = study.name("fritz")
    missing = study.run(*push, "--annotator", fritz, code=1).stderr
    advice = missing.partition("Make the user with `citejury ")[2].partition("`")[0].split()
    assert advice == ["annotation", "users", "--add", fritz, "--role", "adjudicator"]
    study.run(*advice, "--passwords", "passwords.json")
    assert study.disputed("fritz") == {}
    study.run(*push, "--annotator", fritz)
    assert {name[:12] for name in study.disputed("fritz")} == {"adjudication"}
    study.write_campaign({"gina": ("en",), "hugo": ("de",)})
    unmade = study.run(*push, code=1).stderr
    assert f"has no user '{study.name('gina')}'. Run `citejury annotation setup`" in unmade
    study.run("annotation", "setup", "--passwords", "passwords.json")
    study.run(*push)
    who_becomes_an_adjudicator_leaves_production(study)


def a_label_that_comes_later_is_asked_for_too_unless_it_is_decided_already(study: Study) -> None:
    generation = Path("export/generation.csv")
    rows = [line.split(",") for line in generation.read_text(encoding="utf-8").splitlines()]
    column = rows[0].index("unsafe_content")
    for row in rows[1:]:
        row[column] = str(study.name("ben") in row)  # ben differs here as well
    generation.write_text("\n".join(map(",".join, rows)) + "\n", encoding="utf-8")
    said = study.run(*BLIND, code=1)
    assert "Units new: 0, there before: 2, refused: 1." in said.stdout
    assert "generation r-en: decided on before unsafe_content came; whoever did is not asked again." in said.stderr
    assert study.disputed("emil") == {"adjudication-3-generation-de": ["incomplete", "unsafe_content"]}


def who_becomes_an_adjudicator_leaves_production(study: Study) -> None:
    people = Path("citejury.toml").read_text(encoding="utf-8")
    text = people.replace(f'name = "{study.name("cem")}"\nlocales = ["de"]\nrole = "annotator"', "").replace(
        "[[campaign.annotators]]\n\n", f'[[campaign.annotators]]\nname = "{study.name("cem")}"\nrole = "adjudicator"\n'
    )
    Path("citejury.toml").write_text(text, encoding="utf-8")
    said = study.run("annotation", "setup").stdout
    assert [line.split()[2:4] for line in said.splitlines() if f"-de/{study.name('cem')}" in line] == [["take", "out"]]
    assert study.disputed("cem") == {}


@pytest.mark.parametrize("kind", ["--blind", pytest.param("--votes", marks=pytest.mark.rare)])
def test_who_labelled_a_unit_is_refused_as_its_adjudicator_unless_that_is_said(study: Study, kind: str) -> None:
    study.write_campaign({})
    words = ("exports", "adjudicate", "push", "export", kind, "--annotator", study.name("anna"))
    before = study.owner.workspaces()
    refused = study.run(*words, "--annotator", study.name("cem"), code=1).stderr
    assert f"Error: '{study.name('anna')}' is an annotator of the campaign in citejury.toml" in refused
    assert study.owner.workspaces() == before  # nothing is done, so that there is nothing to undo
    one_language = (*words, "--workspace", f"{study.workspace}-en")  # here no campaign says who annotates
    refused = study.run(*one_language, code=1).stderr
    assert f"Error: '{study.name('anna')}' has answered 1 of the 1 unit to adjudicate" in refused
    assert study.owner.workspaces() == before
    home = f"{study.workspace}-en-adjudication{'' if kind == '--blind' else '-votes'}"
    (anna,) = (str(user["id"]) for user in study.owner.users() if user["username"] == study.name("anna"))
    add_members(study.owner, create_workspace(study.owner, home), [anna])  # as earlier versions did
    refused = study.run(*one_language, code=1).stderr
    assert f"generation r-en: answered before by {study.name('anna')}, who would settle her own answer." in refused
    assert f"citejury annotation users --remove {study.name('anna')} --workspace {home}" in refused
    undone = study.run("annotation", "users", "--remove", study.name("anna"), "--workspace", home).stderr
    assert f"left: {home}" in undone
    assert "left = true" not in undone  # that would take her out of production
    study.run(*words, "--annotator", study.name("cem"), "--allow-own")
    study.submit("anna", "adjudication-3-generation-en", **dict.fromkeys(LABELS["generation"], "no"))
    said = study.run("exports", "adjudicate", "read", "--out", "decisions.csv").stderr
    assert "Decided by somebody who labelled the unit: 1; the column `own` says which." in said
    (row,) = read_csv(Path("decisions.csv"))
    assert (row["label"], row["own"]) == ("helpful", "True")
    assert read_decisions(Path("decisions.csv")).rows[0].own
    said = study.run("annotation", "teardown", "--export", "kept", "--yes").stderr
    assert f"the workspace '{home}'" in said
    assert [name for name in study.owner.workspaces() if name.startswith(study.workspace)] == []
    assert len(list(Path("kept").glob(f"{home}-*/generation.csv"))) == 1  # what was decided is exported first


def test_units_refused_for_one_reason_are_counted_and_not_all_listed() -> None:
    same = [f"generation r-{number}: answered before by anna, who would settle her own answer." for number in range(36)]
    lines = refused_by_reason([*same, "retrieval r:d: there is no such record in the workspace."])
    assert lines == [
        *same[:3],
        "and 33 units more: answered before by anna, who would settle her own answer.",
        "retrieval r:d: there is no such record in the workspace.",
    ]

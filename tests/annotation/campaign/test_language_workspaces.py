"""Languages that not everybody shares have workspaces of their own, and every command finds them."""

import json
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from annotation.campaign.datasets import find_datasets
from annotation.campaign.file import Campaign, members, places
from annotation.campaign.routing import as_it_stands
from annotation.client import Argilla
from annotation.labels import LABELS
from exports.cli import main
from pipeline.errors import SettingsError
from pipeline.records import Passage, QueryResponse
from tests.support.setup_bench import make, workspaces

if TYPE_CHECKING:
    from annotation.embedded.launch import ServerHandle

Run = Callable[..., Result]
PEOPLE = [
    {"name": "anna", "locales": ["en"]},
    {"name": "ben", "locales": ["en", "de"]},
    {"name": "cem", "locales": ["de"]},
    {"name": "lead", "role": "admin"},
]


def parted(**values: Any) -> Campaign:
    return Campaign.model_validate({"locales": ["en", "de"], "annotators": PEOPLE, **values})


def belonging(campaign: Campaign) -> dict[str, list[str]]:
    """Names of the members of each workspace."""
    found: dict[str, list[str]] = {}
    for each in members(campaign, "w"):
        if each.belongs:
            found.setdefault(each.workspace, []).append(each.person.name)
    return found


def test_each_language_has_its_workspace_where_people_do_not_share_all() -> None:
    assert workspaces(parted(), "w") == ("w-en", "w-de")
    assert belonging(parted()) == {"w-en": ["anna", "ben", "lead"], "w-de": ["ben", "cem", "lead"]}
    shared = [
        {"name": "anna"},
        {"name": "ben", "locales": ["de", "en"]},
        {"name": "gone", "left": True, "locales": ["en"]},
    ]
    assert workspaces(parted(annotators=shared), "w") == ("w",)
    assert workspaces(parted(language_workspaces=False), "w") == ("w",)
    assert workspaces(parted(annotators=shared, language_workspaces=True), "w") == ("w-en", "w-de")


def test_groups_share_a_language_in_workspaces_of_their_own() -> None:
    grouped = parted(groups={"north": ["anna", "cem"], "south": ["ben"]}, calibration={"records": 2})
    assert workspaces(grouped, "w") == ("w-en", "w-de", "w-en-north", "w-de-north", "w-en-south", "w-de-south")
    assert belonging(grouped)["w-de-north"] == ["cem", "lead"]
    assert {place.locale for place in places(grouped, "w") if place.workspace == "w-en-south"} == {"en"}
    by_language = {"de": ["ben", "cem"], "en": ["anna"]}
    assert workspaces(parted(groups=by_language), "w") == ("w-de", "w-en")  # the groups part them already
    with pytest.raises(ValueError, match="`groups` has 'de', and the language's workspace has that name"):
        parted(groups=by_language, language_workspaces=True)


def test_an_adjudicator_is_listed_and_belongs_to_no_workspace_of_annotators() -> None:
    people = [{"name": "anna"}, {"name": "dora", "role": "adjudicator", "locales": ["en"]}]
    campaign = parted(annotators=people)
    assert belonging(campaign) == {"w": ["anna"]}
    assert [person.name for person in campaign.adjudicators("en")] == ["dora"]
    assert campaign.adjudicators("de") == ()
    assert [person.name for person in campaign.jury("en")] == ["anna"]


@pytest.fixture
def workspace() -> str:
    return f"l-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def run(argilla_server: "ServerHandle", monkeypatch: pytest.MonkeyPatch, tmp_path: Path, workspace: str) -> Run:
    """Runs a command in the folder of a campaign of two languages, with anna for one and cem for the other."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARGILLA_API_URL", argilla_server.url)
    monkeypatch.setenv("ARGILLA_API_KEY", argilla_server.owner_api_key)
    write_campaign(workspace)

    def run(*words: str, code: int = 0, answer: str = "") -> Result:
        result = CliRunner().invoke(main, words, input=answer)
        assert result.exit_code == code, result.output
        return result

    return run


def write_campaign(workspace: str, *lines: str) -> None:
    people = "\n".join(
        f'[[campaign.annotators]]\nname = "{workspace}-{name}"\nlocales = ["{locale}"]'
        for name, locale in (("anna", "en"), ("cem", "de"))
    )
    text = "\n".join([f'workspace = "{workspace}"', "[campaign]", 'locales = ["en", "de"]', *lines, people])
    Path("citejury.toml").write_text(text, encoding="utf-8")


def write_records(*languages: str) -> None:
    passage = Passage(chunk_id="d#0", doc_id="d", chunk_rank=1, text="Text.")
    records = [
        QueryResponse(
            record_uuid=f"r{number}",
            query="Who?",
            answer="Nobody.",
            language=language,
            chunks=(passage,),
            context_set="Text.",
        )
        for number, language in enumerate(languages)
    ]
    Path("records.jsonl").write_text("\n".join(each.model_dump_json() for each in records) + "\n", encoding="utf-8")


def submit(owner: Argilla, workspace: str, locales: Sequence[str]) -> None:
    for locale in locales:
        dataset = find_datasets(owner, f"{workspace}-{locale}")["generation"]
        values = {label: {"value": "no"} for label in LABELS["generation"]}
        ((_, (record, *_)),) = owner.record_pages(dataset.id)
        body = {"status": "submitted", "values": values}
        owner.request("POST", f"/records/{record['id']}/responses", json=body)


@pytest.mark.server
def test_every_command_finds_the_workspaces_of_the_languages(run: Run, owner: Argilla, workspace: str) -> None:
    said = run("annotation", "setup", "--passwords", "passwords.json").stdout
    assert f"{workspace}-de/1-retrieval-de" in said
    assert workspace not in owner.workspaces()
    write_records("en", "de", "en")
    run("annotation", "push", "records.jsonl")
    for name, locale in (("anna", "en"), ("cem", "de")):
        people = owner.workspace_users(owner.find_workspace(f"{workspace}-{locale}"))
        assert [user["username"] for user in people] == [f"{workspace}-{name}"]
        assert {each["name"][-2:] for each in owner.datasets(owner.find_workspace(f"{workspace}-{locale}"))} == {locale}
    run("annotation", "setup", "--round", "pilot")
    run("annotation", "push", "records.jsonl", "--round", "pilot", "--locale", "de")
    assert f"{workspace}-de · pilot · de" in run("annotation", "status").stdout
    run("annotation", "share", "--out", "sheets")
    sheet = Path(f"sheets/sheet-{workspace}-cem.html").read_text(encoding="utf-8")
    assert find_datasets(owner, f"{workspace}-de")["generation"].id in sheet
    submit(owner, workspace, ["de"])  # nobody has submitted in English yet
    run("exports", "csv", "export")
    manifest = json.loads(Path("export/manifest.json").read_text(encoding="utf-8"))
    assert (manifest["workspaces"], manifest["files"][-1]["rows"]) == ([f"{workspace}-en", f"{workspace}-de"], 1)
    submit(owner, workspace, ["en"])
    run("exports", "csv", "export", "--update")
    assert len(Path("export/generation.csv").read_text(encoding="utf-8").splitlines()) == 3
    run("exports", "dataset", "dataset")
    refused = run("annotation", "teardown", "--dataset", "1-retrieval-de", "--yes", code=1)
    assert f"where the dataset '1-retrieval-de' is: {workspace}-en, {workspace}-de." in refused.stderr
    run("annotation", "teardown", "--yes", "--users", "--export", "kept")
    assert not [name for name in owner.workspaces() if name.startswith(workspace)]
    assert not [user for user in owner.users() if user["username"].startswith(workspace)]
    assert len(list(Path("kept").iterdir())) == 2


@pytest.mark.server
def test_a_person_who_is_not_listed_is_not_put_into_every_language(run: Run, owner: Argilla, workspace: str) -> None:
    run("annotation", "setup", "--passwords", "passwords.json")
    refused = run("annotation", "users", "add", f"{workspace}-dora", code=1)
    assert "each language of its campaign has a workspace of its own" in refused.stderr
    write_campaign(workspace, f'[[campaign.annotators]]\nname = "{workspace}-dora"\nrole = "adjudicator"')
    said = run("annotation", "users", "add", f"{workspace}-dora", "--passwords", "passwords.json").stdout
    assert said.splitlines()[-1].split() == [f"{workspace}-dora", "-", "created"]
    for locale in ("en", "de"):
        people = owner.workspace_users(owner.find_workspace(f"{workspace}-{locale}"))
        assert f"{workspace}-dora" not in {user["username"] for user in people}


@pytest.mark.server
def test_a_campaign_stays_where_it_began(owner: Argilla, workspace: str) -> None:
    people = [{"name": f"{workspace}-anna"}, {"name": f"{workspace}-ben"}]
    shared = parted(annotators=people)
    make(owner, workspace, shared)
    joined = parted(annotators=[*people, {"name": f"{workspace}-cem", "locales": ["de"]}])
    assert joined.parts_languages
    standing = as_it_stands(owner, joined, workspace)
    assert workspaces(standing, workspace) == (workspace,)
    assert make(owner, workspace, standing).workspaces.keys() == {workspace}
    with pytest.raises(SettingsError, match=r"`campaign\.language_workspaces` in citejury\.toml is true.*share"):
        as_it_stands(owner, parted(annotators=people, language_workspaces=True), workspace)
    other = f"{workspace}-parted"
    make(owner, other, parted(annotators=joined.annotators))
    assert workspaces(as_it_stands(owner, shared, other), other) == (f"{other}-en", f"{other}-de")

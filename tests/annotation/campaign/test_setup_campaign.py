"""A campaign in Argilla: planned, made, changed where it differs, and made anew where Argilla cannot change it."""

import json
from pathlib import Path

import pytest

from annotation.argilla.client import Argilla
from annotation.argilla.labels import TASKS
from annotation.argilla.marks import marked_words, shown_text
from annotation.argilla.wording import read_wording
from annotation.campaign.datasets import (
    append_to_log,
    current_datasets,
    find_datasets,
    guideline_version_at,
    version_of,
)
from annotation.campaign.people import NewUser, Passwords
from annotation.campaign.setup import apply_plan, plan_campaign, set_up
from annotation.push.push import push_records
from exports.csv.schema import ExportFilters
from exports.csv.write import export_csv
from pipeline.core.errors import ArgillaError, InputError, SettingsError
from pipeline.records.schema import Passage, QueryResponse, join_context
from tests.support.export_bench import read_csv
from tests.support.setup_bench import ANSWER, answered, campaign, described, done, held, make, submit_first

pytestmark = pytest.mark.server


def test_a_campaign_is_made_and_made_again_it_changes_nothing(owner: Argilla, workspace: str) -> None:
    wanted = campaign(workspace, locales=["en", "ja"], overlap=2, calibration={"fraction": 0.2})
    assert plan_campaign(owner, wanted, workspace).changed
    assert workspace not in owner.workspaces()
    assert make(owner, workspace, wanted).changed
    before = owner.datasets(owner.find_workspace(workspace))
    assert len(before) == 12
    again = make(owner, workspace, wanted)
    assert (again.changed, owner.datasets(owner.find_workspace(workspace))) == (False, before)
    assert {each["distribution"]["min_submitted"] for each in before} == {2}
    assert all(each["metadata"]["routing"]["calibration"]["fraction"] == 0.2 for each in before)
    other = campaign(workspace, locales=["en", "ja"], overlap=2, calibration={"fraction": 0.3})
    with pytest.raises(SettingsError, match=r"fraction 0\.2, seed 0.*says fraction 0\.3, seed 0"):
        plan_campaign(owner, other, workspace)


@pytest.mark.rare
def test_groups_have_workspaces_of_their_members_and_practice_the_tasks_named(owner: Argilla, workspace: str) -> None:
    anna, ben = f"{workspace}-anna", f"{workspace}-ben"
    wanted = {"groups": {"a": [anna], "b": [ben]}, "practice": {"tasks": ["retrieval", "generation"]}}
    report = done(make(owner, workspace, campaign(workspace, evidence="optional", **wanted)))
    practice = {name for (_, name), what in report.items() if what == "created" and name.startswith("practice")}
    assert practice == {"practice-1-retrieval-en", "practice-3-generation-en"}
    for group, name in (("a", anna), ("b", ben)):
        members = owner.workspace_users(owner.find_workspace(f"{workspace}-{group}"))
        assert [user["username"] for user in members] == [name]
        assert set(find_datasets(owner, f"{workspace}-{group}")) == set(TASKS)
    assert not make(owner, workspace, campaign(workspace, evidence="optional", **wanted)).changed


@pytest.mark.rare
def test_who_left_is_taken_out_and_a_new_language_written_into_all_datasets(owner: Argilla, workspace: str) -> None:
    make(owner, workspace, campaign(workspace))
    people = [{"name": f"{workspace}-anna"}, {"name": f"{workspace}-ben", "left": True}]
    changed = campaign(workspace, annotators=people, locales=["en", "de"])
    report = make(owner, workspace, changed)
    assert done(report)[workspace, f"{workspace}-ben"] == "removed"
    assert "how records are split" in {step.note for step in report.steps}
    members = owner.workspace_users(owner.find_workspace(workspace))
    assert [user["username"] for user in members] == [f"{workspace}-anna"]
    assert f"{workspace}-ben" in {user["username"] for user in owner.users()}
    datasets = current_datasets(owner, owner.find_workspace(workspace))
    assert [each["metadata"]["routing"]["locales"] for each in datasets] == [["en", "de"]] * 6
    assert not make(owner, workspace, changed).changed


def test_a_password_written_before_an_interruption_is_used(owner: Argilla, workspace: str, tmp_path: Path) -> None:
    file = tmp_path / "passwords.json"
    password = Passwords(file).make(f"{workspace}-anna")
    assert file.stat().st_mode & 0o777 == 0o600
    announced: list[NewUser] = []
    plan = plan_campaign(owner, campaign(workspace, overlap=3), workspace)
    notes = {step.note for step in plan.steps if step.kind == "dataset"}
    assert notes == {"waits for 3 annotators, and the campaign has 2 for it"}
    apply_plan(owner, plan, Passwords(file, announced.append))
    kept = json.loads(file.read_text(encoding="utf-8"))
    assert (kept[f"{workspace}-anna"], len(kept), announced) == (password, 2, [])


@pytest.fixture
def setup(command, workspace: str):
    text = f'workspace = "{workspace}"\n[campaign]\nlocales = ["en"]\nannotators = [{{ name = "{workspace}-anna" }}]\n'
    Path("citejury.toml").write_text(text, encoding="utf-8")
    return lambda *words, **how: command("annotation", "setup", *words, **how)


def test_a_dry_run_shows_the_plan_and_bad_words_refused(setup, owner: Argilla, workspace: str, tmp_path: Path) -> None:
    result = setup("--dry-run")
    assert f"{workspace}/1-retrieval-en" in result.stdout
    assert "Nothing was changed (dry run)." in result.stderr
    assert workspace not in owner.workspaces()
    refused = setup("--overlap", "2", "--locale", "en", code=2)
    assert "--locale and --overlap cannot be used where citejury.toml has a campaign" in refused.stderr
    setup("--round", "pilot", "--annotator", "ben", code=2)
    assert "exports results EXPORT --judge" in setup("--round", "suggested", code=1).stderr
    for content in ("{", "[]", '{"a": 1}'):
        (tmp_path / "passwords.json").write_text(content, encoding="utf-8")
        with pytest.raises(InputError, match="holds no passwords"):
            Passwords(tmp_path / "passwords.json")


@pytest.mark.rare
def test_the_command_makes_a_round_beside_the_campaigns_own(setup, owner: Argilla, workspace: str) -> None:
    setup("--round", "pilot", "--overlap", "2", "--passwords", "passwords.json")
    assert find_datasets(owner, workspace, round_name="pilot")["retrieval"].min_submitted == 2
    members = owner.workspace_users(owner.find_workspace(workspace))
    assert [each["username"] for each in members] == [f"{workspace}-anna"]
    for words, said in (("calibration",), "the campaign's own"), (("pilot", "--locale", "de"), "has no 'de'"):
        refused = setup("--round", *words, code=1)
        assert (refused.stdout, said in refused.stderr) == ("", True)
    setup()
    again = setup("--round", "pilot").stderr
    assert "nothing was changed" in again
    assert "push RECORDS.jsonl --round pilot" in again
    assert "nothing was changed" in setup().stderr


@pytest.mark.rare
def test_the_command_asks_before_it_touches_what_was_answered(setup, owner: Argilla, workspace: str) -> None:
    setup("--passwords", "passwords.json")
    push_records(owner, workspace, [ANSWER])
    submit_first(owner, find_datasets(owner, workspace)["generation"].id)
    words = ("--new-version", "generation")
    for answer in ("", "n\n"):
        assert "has 1 responses: a new version" in setup(*words, answer=answer, code=1).stderr
        assert find_datasets(owner, workspace)["generation"].version == 1
    setup(*words, answer="y\n")
    setup(*words, "--yes")
    assert find_datasets(owner, workspace)["generation"].version == 3


def test_another_overlap_is_set_and_noted_where_it_touches_responses(owner: Argilla, workspace: str) -> None:
    make(owner, workspace, campaign(workspace))
    assert not set_up(owner, workspace).changed  # by options: the campaign's split stays written
    assert "routing" in described(owner, workspace, "1-retrieval-en")["metadata"]
    push_records(owner, workspace, [ANSWER])
    submit_first(owner, find_datasets(owner, workspace)["grounding"].id)
    plan = plan_campaign(owner, campaign(workspace, overlap=2), workspace)
    assert plan.affected == (
        f"{workspace}/2-grounding-en has 1 responses: overlap 1 becomes 2, so that 1 finished unit would wait again",
    )
    apply_plan(owner, plan, Passwords())
    assert {each.min_submitted for each in find_datasets(owner, workspace).values()} == {2}


def test_titles_and_guidelines_that_differ_are_changed_and_the_moment_is_kept(owner: Argilla, workspace: str) -> None:
    make(owner, workspace, campaign(workspace))
    push_records(owner, workspace, [ANSWER])
    old = described(owner, workspace, "3-generation-en")
    path = f"/datasets/{old['id']}"
    question = owner.request("GET", f"{path}/questions")["items"][0]
    owner.request("PATCH", f"/questions/{question['id']}", json={"title": "Old title"})
    owner.request("PATCH", path, json={"guidelines": "Old."})
    append_to_log(owner, old["id"], {"guideline_version": "before"})
    early = submit_first(owner, old["id"])["updated_at"]
    plan = plan_campaign(owner, campaign(workspace), workspace)
    assert plan.affected == (f"{workspace}/3-generation-en has 1 responses: titles and descriptions; guidelines",)
    apply_plan(owner, plan, Passwords())
    new = described(owner, workspace, "3-generation-en")
    assert new["guidelines"] == old["guidelines"]
    assert owner.request("GET", f"{path}/questions")["items"][0]["title"] == question["title"]
    late = owner.request("GET", f"/me/datasets/{old['id']}/metadata-properties")["items"][-1]["inserted_at"]
    versions = [guideline_version_at(new["metadata"], moment) for moment in (early, late)]
    assert versions == ["before", old["metadata"]["guideline_version"]]
    assert not make(owner, workspace, campaign(workspace)).changed


def test_a_new_version_has_records_and_the_old_one_responses(owner: Argilla, workspace: str, tmp_path: Path) -> None:
    make(owner, workspace, campaign(workspace))
    push_records(owner, workspace, [ANSWER, answered("r2")])
    old = find_datasets(owner, workspace)["generation"]
    append_to_log(owner, old.id, {"guideline_version": "later"})
    response = submit_first(owner, old.id)
    plan = plan_campaign(owner, campaign(workspace), workspace, ["generation"])
    new_version = f"{workspace}/3-generation-en has 1 responses: a new version, 3-generation-en-v2"
    assert plan.affected == (f"{new_version}; they stay in the old one",)
    apply_plan(owner, plan, Passwords())
    new = find_datasets(owner, workspace)["generation"]
    assert (new.name, new.version) == ("3-generation-en-v2", 2)
    old_records, new_records = (next(owner.record_pages(each.id))[1] for each in (old, new))
    assert [each["responses"] for each in new_records] == [[], []]
    assert [response] in [each["responses"] for each in old_records]
    for old_record, new_record in zip(old_records, new_records, strict=True):
        assert all(old_record[key] == new_record[key] for key in ("external_id", "fields", "metadata"))
    assert find_datasets(owner, workspace)["retrieval"].version == 1
    assert not make(owner, workspace, campaign(workspace)).changed
    submit_first(owner, new.id)
    export_csv(owner, workspace, tmp_path / "out", ExportFilters(extended=True))
    rows = [(row["dataset_version"], row["guideline_version"]) for row in read_csv(tmp_path / "out" / "generation.csv")]
    now = described(owner, workspace, "3-generation-en-v2")["metadata"]["guideline_version"]
    assert sorted(rows) == [("1", "later"), ("2", now)]


@pytest.mark.rare
def test_a_new_version_that_was_interrupted_is_finished_and_not_made_twice(owner: Argilla, workspace: str) -> None:
    make(owner, workspace, campaign(workspace))
    push_records(owner, workspace, [ANSWER])
    make(owner, workspace, campaign(workspace), *TASKS)
    new = described(owner, workspace, "2-grounding-en-v2")
    records = next(owner.record_pages(new["id"]))[1]
    owner.request("DELETE", f"/datasets/{new['id']}/records", params={"ids": records[0]["id"]})
    owner.request("PATCH", f"/datasets/{new['id']}", json={"name": f"{new['name']}-carrying"})
    report = make(owner, workspace, campaign(workspace), "grounding")
    changed = {name: what for (_, name), what in done(report).items() if what != "kept"}
    assert changed == {"2-grounding-en-v2": "finished"}
    assert next(owner.record_pages(new["id"]))[1][0]["external_id"] == "r1"
    make(owner, workspace, campaign(workspace), "grounding")
    assert version_of(described(owner, workspace, "2-grounding-en-v3")) == 3


@pytest.mark.rare
def test_other_questions_are_refused_and_a_new_version_is_the_way_out(owner: Argilla, workspace: str) -> None:
    make(owner, workspace, campaign(workspace))
    old = described(owner, workspace, "3-generation-en")
    owner.request("DELETE", f"/datasets/{old['id']}")
    body = {key: old[key] for key in ("name", "workspace_id", "metadata")}
    path = f"/datasets/{owner.request('POST', '/datasets', json=body)['id']}"
    text = {"required": True, "settings": {"type": "text", "use_markdown": False}}
    for kind, name in (("fields", "query"), ("fields", "answer"), ("questions", "good")):
        owner.request("POST", f"{path}/{kind}", json={"name": name, "title": name, **text})
    owner.request("PUT", f"{path}/publish")
    with pytest.raises(ArgillaError, match=r"`helpful` is missing.*--new-version generation"):
        plan_campaign(owner, campaign(workspace), workspace)
    make(owner, workspace, campaign(workspace), "generation")
    assert find_datasets(owner, workspace)["generation"].name == "3-generation-en-v2"


PASSAGES = (
    Passage(chunk_id="d#4", doc_id="d", chunk_rank=2, text="Ends with 😀😀"),
    Passage(chunk_id="e#0", doc_id="e", chunk_rank=5, text="Nobody <i>did</i>."),
)
MARKED = QueryResponse(
    record_uuid="r1", query="Who?", answer="Nobody.", chunks=PASSAGES, context_set=join_context(PASSAGES)
)


@pytest.mark.rare
def test_marks_come_to_datasets_that_are_there_with_a_new_version_only(owner: Argilla, workspace: str) -> None:
    wanted = {mode: campaign(workspace, evidence=mode) for mode in ("off", "optional", "required")}
    make(owner, workspace, wanted["off"])
    push_records(owner, workspace, [MARKED])
    with pytest.raises(ArgillaError, match=r"no marks, and now optional marks.*--new-version grounding"):
        plan_campaign(owner, wanted["optional"], workspace)
    optional = make(owner, workspace, wanted["optional"], "grounding")
    (step,) = (step for step in optional.steps if step.name == "2-grounding-en-v2")
    assert step.note == "records carried over from 2-grounding-en; asks for marks on the context"
    assert find_datasets(owner, workspace)["grounding"].evidence == "optional"
    (carried,) = held(owner, workspace, "grounding")
    end = len(shown_text(carried).encode("utf-16-le")) // 2
    (mark,) = marked_words(carried, [(0, end)])
    assert [(each.passage, each.text) for each in mark.parts] == [
        ((each.chunk_id, each.doc_id, each.chunk_rank, each.text), each.text) for each in PASSAGES
    ]
    assert end <= len(carried["fields"]["context"])
    assert push_records(owner, workspace, [MARKED]).tasks["grounding"].unchanged == 1
    with pytest.raises(ArgillaError, match=r"optional marks, and now required marks.*--new-version grounding"):
        plan_campaign(owner, wanted["required"], workspace)
    required = make(owner, workspace, wanted["required"], "grounding")
    assert "stock Argilla takes answers without them" in "".join(step.note for step in required.steps)
    assert not make(owner, workspace, wanted["required"]).changed


@pytest.mark.rare
def test_without_a_campaign_datasets_and_words_under_marks_stay_as_they_are(owner: Argilla, workspace: str) -> None:
    set_up(owner, workspace, evidence="required")
    assert not set_up(owner, workspace).changed
    dataset = find_datasets(owner, workspace)["grounding"]
    assert dataset.evidence == "required"

    def evidence() -> dict[str, str]:
        items = owner.request("GET", f"/datasets/{dataset.id}/questions")["items"]
        return next(each for each in items if each["name"] == "evidence")

    owner.request("PATCH", f"/questions/{evidence()['id']}", json={"title": "Old title"})
    assert set_up(owner, workspace).changed
    assert evidence()["title"] == read_wording("en").marks.titles["required"]
    push_records(owner, workspace, [MARKED])
    (before,) = held(owner, workspace, "grounding")
    older = {**before["fields"], "context": before["fields"]["context"].replace("━━ Passage 2", "━━ Text 2")}
    owner.request("PATCH", f"/records/{before['id']}", json={"fields": older})
    body = {"status": "draft", "values": {"evidence": {"value": [{"label": "supports", "start": 40, "end": 44}]}}}
    owner.request("POST", f"/records/{before['id']}/responses", json=body)
    assert push_records(owner, workspace, [MARKED]).tasks["grounding"].unchanged == 1
    assert [each["fields"] for each in held(owner, workspace, "grounding")] == [older]

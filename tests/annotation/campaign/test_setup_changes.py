"""A campaign that is there already: changed where it differs, and made anew where Argilla cannot change it."""

import csv
import uuid
from pathlib import Path

import pytest

from annotation.campaign.datasets import append_to_log, find_datasets, guideline_version_at, version_of
from annotation.campaign.people import Passwords
from annotation.campaign.setup import apply_plan, plan_campaign
from annotation.client import Argilla
from annotation.push.push import push_records
from exports.csv.schema import ExportFilters
from exports.csv.write import export_csv
from pipeline.errors import ArgillaError, SettingsError
from tests.support.setup_bench import ANSWER, campaign, described, done, make, submit_first

pytestmark = pytest.mark.server


@pytest.fixture
def workspace() -> str:
    return f"c-{uuid.uuid4().hex[:10]}"


def test_another_overlap_is_set_and_noted_where_it_touches_responses(owner: Argilla, workspace: str) -> None:
    make(owner, workspace, campaign(workspace))
    push_records(owner, workspace, [ANSWER])
    submit_first(owner, find_datasets(owner, workspace)["grounding"].id)
    plan = plan_campaign(owner, campaign(workspace, overlap=2), workspace)
    assert plan.affected == (f"{workspace}/2-grounding-en has 1 responses: overlap 1 becomes 2",)
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
    assert (new["guidelines"], owner.request("GET", f"{path}/questions")["items"][0]["title"]) == (
        old["guidelines"],
        question["title"],
    )
    late = owner.request("GET", f"/me/datasets/{old['id']}/metadata-properties")["items"][-1]["inserted_at"]
    versions = [guideline_version_at(new["metadata"], moment) for moment in (early, late)]
    assert versions == ["before", old["metadata"]["guideline_version"]]
    assert not make(owner, workspace, campaign(workspace)).changed


def test_a_new_version_has_the_records_and_the_old_one_keeps_its_responses(owner: Argilla, workspace: str) -> None:
    make(owner, workspace, campaign(workspace))
    push_records(owner, workspace, [ANSWER, ANSWER.model_copy(update={"record_uuid": "r2"})])
    old = find_datasets(owner, workspace)["generation"]
    response = submit_first(owner, old.id)
    plan = plan_campaign(owner, campaign(workspace), workspace, ["generation"])
    assert plan.affected == (
        f"{workspace}/3-generation-en has 1 responses: a new version, 3-generation-en-v2; they stay in the old one",
    )
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


def test_a_new_version_that_was_interrupted_is_finished_and_not_made_twice(owner: Argilla, workspace: str) -> None:
    make(owner, workspace, campaign(workspace))
    push_records(owner, workspace, [ANSWER])
    make(owner, workspace, campaign(workspace), "retrieval", "grounding", "generation")
    new = described(owner, workspace, "2-grounding-en-v2")
    records = next(owner.record_pages(new["id"]))[1]
    owner.request("DELETE", f"/datasets/{new['id']}/records", params={"ids": records[0]["id"]})
    owner.request("PATCH", f"/datasets/{new['id']}", json={"name": f"{new['name']}-carrying"})
    report = make(owner, workspace, campaign(workspace), "grounding")
    assert {name: what for (_, name), what in done(report).items() if what != "kept"} == {
        "2-grounding-en-v2": "finished"
    }
    assert next(owner.record_pages(new["id"]))[1][0]["external_id"] == "r1"
    make(owner, workspace, campaign(workspace), "grounding")
    assert version_of(described(owner, workspace, "2-grounding-en-v3")) == 3


def test_other_questions_are_refused_and_a_new_version_is_the_way_out(owner: Argilla, workspace: str) -> None:
    make(owner, workspace, campaign(workspace))
    old = described(owner, workspace, "3-generation-en")
    owner.request("DELETE", f"/datasets/{old['id']}")
    body = {"name": old["name"], "workspace_id": old["workspace_id"], "metadata": old["metadata"]}
    other = owner.request("POST", "/datasets", json=body)
    for name in ("query", "answer"):
        field = {"name": name, "title": name, "required": True, "settings": {"type": "text", "use_markdown": False}}
        owner.request("POST", f"/datasets/{other['id']}/fields", json=field)
    question = {"name": "good", "title": "Good?", "required": True, "settings": {"type": "text", "use_markdown": False}}
    owner.request("POST", f"/datasets/{other['id']}/questions", json=question)
    owner.request("PUT", f"/datasets/{other['id']}/publish")
    with pytest.raises(ArgillaError, match=r"`helpful` is missing.*--new-version generation"):
        plan_campaign(owner, campaign(workspace), workspace)
    make(owner, workspace, campaign(workspace), "generation")
    assert find_datasets(owner, workspace)["generation"].name == "3-generation-en-v2"


def test_another_split_than_argillas_is_refused_before_anything_is_done(owner: Argilla, workspace: str) -> None:
    make(owner, workspace, campaign(workspace, calibration={"records": 5}))
    with pytest.raises(SettingsError, match=r"records 5, seed 0.*says records 6, seed 0"):
        plan_campaign(owner, campaign(workspace, calibration={"records": 6}), workspace)


def test_an_extended_export_has_both_versions_and_the_guidelines_of_each_response(
    owner: Argilla, workspace: str, tmp_path: Path
) -> None:
    make(owner, workspace, campaign(workspace))
    push_records(owner, workspace, [ANSWER])
    old = find_datasets(owner, workspace)["generation"]
    append_to_log(owner, old.id, {"guideline_version": "later"})
    submit_first(owner, old.id)
    make(owner, workspace, campaign(workspace), "generation")
    submit_first(owner, find_datasets(owner, workspace)["generation"].id)
    export_csv(owner, workspace, tmp_path / "out", ExportFilters(extended=True))
    with open(tmp_path / "out" / "generation.csv", newline="", encoding="utf-8") as file:
        rows = [(row["dataset_version"], row["guideline_version"]) for row in csv.DictReader(file)]
    now = described(owner, workspace, "3-generation-en-v2")["metadata"]["guideline_version"]
    assert sorted(rows) == [("1", "later"), ("2", now)]

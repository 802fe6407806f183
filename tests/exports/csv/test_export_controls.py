"""Controls, repeats and practice cases in exports: counted, in a file of their own, and among no answers."""

from pathlib import Path

import pytest

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS
from annotation.argilla.units import ASSIGNMENT, Assignment
from exports.csv.folder import CONTROLS_FILE, INDEX_FILE, MANIFEST_FILE
from exports.csv.schema import ExportFilters
from exports.csv.write import export_csv, update_csv
from tests.support.export_bench import (
    Bench,
    answered_by,
    answers,
    make_dataset,
    manifest_of,
    pairs,
    read_csv,
    record,
    username,
)

pytestmark = pytest.mark.server

KNOWN = Assignment(purpose="control", needed=2, answers={"helpful": True, "unsafe_content": False}, kind="known")
AGAIN = Assignment(purpose="repeat", needed=1, repeats="r1", kind="")
CASE = Assignment(purpose="practice", answers={"helpful": True})


def put(
    bench: Bench, record_uuid: str, assignment: Assignment, *people: str, task: str = "generation", **said: str
) -> None:
    responses = [bench.response(who, **answers("generation", **said)) for who in people]
    body = record("generation", record_uuid, *responses)
    body["metadata"][ASSIGNMENT] = assignment.model_dump(mode="json")
    bench.put(task, body)


@pytest.fixture
def mixed(generation: Bench) -> Bench:
    """A workspace with one answered record of each purpose."""
    answered_by(generation, "anna")
    put(generation, "known", KNOWN, "anna", "ben", helpful="yes")
    put(generation, "again", AGAIN, "anna", helpful="yes")
    put(generation, "case", CASE, "ben")
    return generation


def files(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in out.iterdir() if path.name not in (MANIFEST_FILE, INDEX_FILE)}


def test_controls_and_practice_are_rows_where_asked_for(generation: Bench, mixed: Bench, tmp_path: Path) -> None:
    out, anna, ben = tmp_path / "out", username(mixed, "anna"), username(mixed, "ben")
    found = mixed.export(out)
    assert pairs(found["generation"]) == [("r1", anna)]
    assert [row["record_uuid"] for row in read_csv(out / "provenance.csv")] == ["r1"]
    (dataset,) = manifest_of(out)["datasets"]
    assert (dataset["controls"], dataset["practice"], dataset["foreign_records"]) == (3, 1, 0)
    assert sum(counts["submitted"] for counts in dataset["annotators"].values()) == 1
    known = [row for row in found["controls"] if row["record_uuid"] == "known"]
    assert [(row["annotator_id"], row["kind"], row["label"], row["known"], row["given"]) for row in known] == [
        (who, "known", label, value, given)
        for who in sorted((anna, ben))
        for label, value, given in (("helpful", "True", "True"), ("unsafe_content", "False", "False"))
    ]
    again = [row for row in found["controls"] if row["record_uuid"] != "known"]
    told = {(row["record_uuid"], row["annotator_id"], row["kind"], row["repeats"], row["known"]) for row in again}
    assert told == {("again", anna, "repeat", "r1", "")}
    assert {row["label"]: row["given"] for row in again}["helpful"] == "True"
    wanted = mixed.export(out, with_controls=True)
    assert {row["record_uuid"] for row in wanted["generation"]} == {"r1", "known", "again"}
    assert {row["record_uuid"] for row in wanted["controls"]} == {"known", "again"}
    changes = export_csv(mixed.client, mixed.workspace, out).changes
    assert (changes.total("left out"), changes.total("gone")) == (3, 0)
    every = mixed.export(tmp_path / "every", with_controls=True, every_response=True)
    assert {row["record_uuid"] for row in every["generation"]} == {"r1", "known", "again", "case"}
    ids = {}
    for _, page in mixed.client.record_pages(mixed.datasets["generation"]):
        ids |= {each["external_id"]: each["id"] for each in page}
    user = mixed.annotators["ben"]
    mixed.client.request("POST", f"/workspaces/{mixed.workspace_id}/users", json={"user_id": user})
    key = next(each for each in mixed.client.request("GET", "/users")["items"] if each["id"] == user)["api_key"]
    with Argilla(mixed.server.url, key) as ben:
        base = f"/me/datasets/{mixed.datasets['generation']}/records"
        told = [
            ben.request("GET", f"/records/{ids['known']}"),
            ben.request("POST", f"{base}/search", json={"query": {"text": {"q": "known"}}}),
            ben.request("POST", f"{base}/search", json={}),
        ]
    for said in told:
        assert not any(word in str(said) for word in (ASSIGNMENT, "'purpose'", "unsafe_content': False", "citejury"))
    mixed.datasets["practice"] = make_dataset(mixed.client, mixed.workspace_id, "generation", "practice")
    put(mixed, "lesson", CASE, "anna", task="practice")
    assert pairs(mixed.export(tmp_path / "out")["generation"]) == [("r1", username(mixed, "anna"))]
    named = mixed.export(tmp_path / "named", rounds=("practice",))
    assert pairs(named["generation"]) == [("lesson", username(mixed, "anna"))]


def test_an_update_gives_what_an_export_gives(mixed: Bench, tmp_path: Path) -> None:
    every = (ExportFilters(), ExportFilters(with_controls=True), ExportFilters(anonymized=True))
    keys = [{"key_file": tmp_path / "keys.json"} if filters.anonymized else {} for filters in every]
    outs = [tmp_path / f"out-{number}" for number in range(3)]
    for out, filters, key in zip(outs, every, keys, strict=True):
        export_csv(mixed.client, mixed.workspace, out, filters, **key)
    put(mixed, "known", KNOWN, "anna", "ben", helpful="no")
    put(mixed, "other", KNOWN, "ben")
    mixed.put("generation", record("generation", "r2", mixed.response("ben", **answers("generation"))))
    for out, filters, key in zip(outs, every, keys, strict=True):
        updated = update_csv(mixed.client, out, **key)
        assert not [warning for warning in updated.warnings if "Everything was read" in warning]
        full = export_csv(mixed.client, mixed.workspace, tmp_path / f"full-{out.name}", filters, **key)
        assert files(out) == files(tmp_path / f"full-{out.name}")
        assert updated.manifest.datasets == full.manifest.datasets


def test_an_update_keeps_the_controls_of_a_record_in_tasks_where_nothing_changed(mixed: Bench, tmp_path: Path) -> None:
    grounding = make_dataset(mixed.client, mixed.workspace_id, "grounding")
    both = mixed._replace(datasets={**mixed.datasets, "grounding": grounding})
    body = record("grounding", "known", both.response("anna", **answers("grounding")))
    body["metadata"][ASSIGNMENT] = KNOWN.model_copy(update={"answers": {LABELS["grounding"][0]: True}}).model_dump(
        mode="json"
    )
    both.put("grounding", body)
    both.export(tmp_path / "out")
    put(both, "known", KNOWN, "anna", "ben", helpful="no")
    update_csv(both.client, tmp_path / "out")
    both.export(tmp_path / "full")
    assert files(tmp_path / "out") == files(tmp_path / "full")
    assert len({row["task"] for row in read_csv(tmp_path / "out" / CONTROLS_FILE)}) == 2

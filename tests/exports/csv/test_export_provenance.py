"""`provenance.csv`: where each record comes from, in every export."""

from pathlib import Path

import pytest

from annotation.argilla.client import Argilla
from annotation.argilla.display import HIDDEN
from annotation.argilla.labels import LABELS
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import set_up
from annotation.push.push import push_records
from exports.csv.folder import PROVENANCE_FILE
from exports.csv.rows import merge_provenance
from exports.csv.schema import PROVENANCE_COLUMNS, ExportFilters
from exports.csv.write import Export, export_csv
from pipeline.records.schema import Passage, Provenance, QueryResponse, Source
from tests.support.export_bench import Bench, answered_by, make_dataset, manifest_of, read_csv, record

pytestmark = pytest.mark.server

TOLD = Provenance(
    model_name="=grok",
    model_version="grok-9",
    answer_id="a",
    narrative_id="N1",
    narrative_type="health",
    run_id="run",
    arm="short",
    repeat="2",
    answer_timestamp="2026-03-01T00:00:00+00:00",
    contexts="selected",
)


def made() -> QueryResponse:
    return QueryResponse(
        record_uuid="0b9f6d1e-2c3a-4e5f-8a7b-000000000001",
        query="Q?",
        answer="No [1] [2] [3] [4].",
        language="de",
        sources=tuple(
            Source(
                n=n, url=f"https://{n}.example", host=f"{n}.example", state=state, cited="shown" if n == 4 else "cited"
            )
            for n, state in enumerate(("read", "read", "gone", "unfetched"), start=1)
        ),
        chunks=(Passage(chunk_id="d#0", doc_id="d", chunk_rank=1, text="Text."),),
        context_set="Text.",
        provenance=TOLD,
        asked='{"grok": [20, 1, 0]}',
    )


class Pushed:
    """A workspace of its own that holds the record of `made`, answered in every task."""

    def __init__(self, owner: Argilla, user_id: str) -> None:
        self.owner, self.workspace = owner, "provenance"
        set_up(owner, self.workspace)
        push_records(owner, self.workspace, [made()])
        for task, dataset in find_datasets(owner, self.workspace).items():
            values = {label: {"value": "no"} for label in LABELS[task]}
            response = {"user_id": user_id, "status": "submitted", "values": values}
            for stored in self.records(dataset.id):
                body = {name: stored[name] for name in ("fields", "metadata", "external_id")} | {
                    "responses": [response]
                }
                owner.request("PUT", f"/datasets/{dataset.id}/records/bulk", json={"items": [body]})

    def records(self, dataset_id: str) -> list[dict]:
        return [each for _, page in self.owner.record_pages(dataset_id) for each in page]

    def all_records(self) -> list[dict]:
        datasets = find_datasets(self.owner, self.workspace).values()
        return [each for dataset in datasets for each in self.records(dataset.id)]

    def export(self, out: Path, **wanted: object) -> Export:
        return export_csv(self.owner, self.workspace, out, ExportFilters.model_validate(wanted))


@pytest.fixture(scope="module")
def pushed(owner: Argilla, users: dict[str, str]) -> Pushed:
    return Pushed(owner, users["anna"])


def test_a_record_of_three_tasks_has_one_row_with_everything_that_was_pushed(pushed: Pushed, tmp_path: Path) -> None:
    file = tmp_path / "out" / PROVENANCE_FILE
    export = pushed.export(tmp_path / "out")
    (row,) = read_csv(file)
    assert tuple(row) == PROVENANCE_COLUMNS
    assert row == {
        "record_uuid": made().record_uuid,
        **TOLD.model_dump(),
        "language": "de",
        **{"n_sources": "4", "n_read": "2", "n_unread": "0", "n_gone": "1", "n_unresolved": "0", "n_unfetched": "1"},
        **{"n_unreached": "0", "n_no_such_site": "0", "n_no_address": "0"},
        **{"n_cited": "3", "n_shown": "1", "n_seen": "0"},
        "run_asked": '{"grok": [20, 1, 0]}',
    }
    described = next(each for each in manifest_of(tmp_path / "out")["files"] if each["file"] == PROVENANCE_FILE)
    assert (described["task"], described["rows"], described["records"], described["annotators"]) == (None, 1, 1, 0)
    assert not [warning for warning in export.warnings if PROVENANCE_FILE in warning]
    file.unlink()  # as in exports of before there was one
    pushed.export(tmp_path / "out", spreadsheet_safe=True, anonymized=True)
    assert file.read_bytes().startswith(b"\xef\xbb\xbfrecord_uuid")
    assert b",'=grok," in file.read_bytes()
    names = {*pushed.owner.usernames().values(), *pushed.owner.usernames()}
    assert not [name for name in names if name in file.read_text(encoding="utf-8")]


def test_only_records_that_are_in_the_files_have_a_row(generation: Bench, tmp_path: Path) -> None:
    answered_by(generation, "anna", record_uuid="r2")
    answered_by(generation, "anna", record_uuid="r1", language="de")
    generation.put("generation", record("generation", "r3", generation.response("ben", "discarded")))
    generation.put("generation", record("generation", "r4", generation.response("ben", "draft", helpful="yes")))
    expected = (({}, ["r1", "r2"]), ({"discarded": True}, ["r1", "r2", "r3"]), ({"languages": ["de"]}, ["r1"]))
    for wanted, records in expected:
        generation.export(tmp_path / "out", **wanted)
        assert [row["record_uuid"] for row in read_csv(tmp_path / "out" / PROVENANCE_FILE)] == records


def test_what_earlier_versions_did_not_keep_is_empty_and_counted(generation: Bench, tmp_path: Path) -> None:
    answered_by(generation, "anna", record_uuid="r1", provenance={"model_name": "grok", "narrative_id": ""})
    answered_by(generation, "anna", record_uuid="r2")
    export = export_csv(generation.client, generation.workspace, tmp_path / "out")
    rows = read_csv(tmp_path / "out" / PROVENANCE_FILE)
    assert [{name: cell for name, cell in row.items() if cell} for row in rows] == [
        {"record_uuid": "r1", "model_name": "grok", "language": "en"},
        {"record_uuid": "r2", "language": "en"},
    ]
    told = " ".join(export.warnings)
    assert "1 of 2 records have no model_name" in told
    assert "2 of 2 records have no narrative_id" in told


def test_two_rounds_that_differ_give_the_fullest_row_and_a_count(generation: Bench, tmp_path: Path) -> None:
    early = {"provenance": {"model_name": "grok", "narrative_id": "N1", "arm": "short"}}
    late = {"provenance": {"model_name": "claude", "narrative_id": "N1", "run_id": "r", "repeat": "1"}}
    answered_by(generation, "anna", **early)
    other = make_dataset(generation.client, generation.workspace_id, "generation", "calibration")
    answered_by(generation._replace(datasets={"generation": other}), "ben", **late)
    export = export_csv(generation.client, generation.workspace, tmp_path / "out")
    (row,) = read_csv(tmp_path / "out" / PROVENANCE_FILE)
    assert [row[name] for name in ("model_name", "narrative_id", "run_id", "repeat", "arm")] == [
        *("claude", "N1", "r", "1", "short")
    ]
    assert any("of where 1 of 1 records come from, such as r1 (model_name)" in warning for warning in export.warnings)


def test_the_order_in_which_datasets_tell_changes_nothing() -> None:
    empty, full, other = (("a", [value, *[""] * (len(PROVENANCE_COLUMNS) - 2)]) for value in ("", "N1", "N2"))
    merged = [list(merge_provenance(order)) for order in ([empty, full, other], [other, full, empty])]
    assert (merged[0], merged[0][0].cells["narrative_id"]) == (merged[1], "N1")
    assert merged[0][0].contradicted == ("narrative_id",)


def test_pushing_again_brings_provenance_up_to_date_once_and_leaves_answers_alone(pushed: Pushed) -> None:
    known = ("model_name", "model_version", "answer_id", "narrative_id", "narrative_type", "run_id")
    for dataset in find_datasets(pushed.owner, pushed.workspace).values():
        for stored in pushed.records(dataset.id):
            hidden = {name: value for name, value in stored["metadata"][HIDDEN].items() if name != "sources"}
            hidden["provenance"] = {name: hidden["provenance"][name] for name in known}  # as citejury 0.1 pushed it
            path = f"/records/{stored['id']}"
            pushed.owner.request("PATCH", path, json={"metadata": {**stored["metadata"], HIDDEN: hidden}})
    answered = [stored["responses"] for stored in pushed.all_records()]
    first = push_records(pushed.owner, pushed.workspace, [made()])
    assert [count.updated for count in first.tasks.values()] == [1, 1, 1]
    assert not first.refused
    again = push_records(pushed.owner, pushed.workspace, [made()])
    assert [(count.updated, count.unchanged) for count in again.tasks.values()] == [(0, 1)] * 3
    assert [stored["responses"] for stored in pushed.all_records()] == answered
    assert all(stored["metadata"][HIDDEN]["provenance"]["repeat"] == "2" for stored in pushed.all_records())

import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from annotation.argilla.client import Argilla
from annotation.argilla.tasks import define_dataset
from annotation.argilla.wording import read_wording
from annotation.push.push import push_records
from annotation.server.launch import ServerHandle
from exports.cli.csv import csv_command
from exports.csv.folder import MANIFEST_FILE
from exports.csv.rows import csv_line
from exports.csv.schema import COLUMNS, ExportFilters, utc
from exports.csv.write import export_csv
from exports.reading.read import read_tables
from pipeline.core.errors import NotFoundError
from pipeline.records.schema import CONTEXT_SEPARATOR, Passage, Provenance, QueryResponse
from tests.support.export_bench import (
    Bench,
    answered_by,
    answers,
    full_bench,
    make_user,
    pairs,
    read_csv,
    record,
    username,
)

pytestmark = pytest.mark.server

HOSTILE = '=1+1, "zwei"\rdrei\nvier <b>fünf</b> 六'


@pytest.fixture
def bench(argilla_server: ServerHandle, client: Argilla, users: dict[str, str]) -> Bench:
    return full_bench(argilla_server, client, users)


def test_each_task_has_exactly_the_columns_and_values_of_its_schema(bench: Bench, tmp_path: Path) -> None:
    retrieval = bench.response("anna", **answers("retrieval", topically_relevant="yes"), notes="vage")
    bench.put("retrieval", record("retrieval", "r1", retrieval, rank=3, language="de"))
    bench.put("grounding", record("grounding", "r1", bench.response("anna", **answers("grounding"))))
    bench.put("generation", record("generation", "r1", bench.response("anna", **answers("generation", helpful="yes"))))
    found = bench.export(tmp_path / "out")
    assert {task: tuple(rows[0]) for task, rows in found.items()} == COLUMNS
    row = found["retrieval"][0]
    assert datetime.fromisoformat(row.pop("created_at")).utcoffset() == timedelta(0)
    assert row == {
        "input_query": "input_query of r1",
        "chunk": "chunk of r1",
        "chunk_id": "c3",
        "doc_id": "d",
        "chunk_rank": "3",
        "topically_relevant": "True",
        "evidence_sufficient": "False",
        "misleading": "False",
        "notes": "vage",
        "record_uuid": "r1",
        "annotator_id": username(bench, "anna"),
        "task": "retrieval",
        "language": "de",
    }


def test_a_row_has_its_responses_own_time_and_a_draft_or_a_discard_is_none(generation: Bench, tmp_path: Path) -> None:
    answered_by(generation, "anna")
    submitted = generation.response("anna", **answers("generation"))
    draft = generation.response("ben", "draft", helpful="yes")
    generation.put("generation", record("generation", "r2", submitted, draft))
    generation.put("generation", record("generation", "r3", submitted, generation.response("ben", "discarded")))
    answered_by(generation, "ben")
    rows = generation.export(tmp_path / "out")["generation"]
    anna, ben = username(generation, "anna"), username(generation, "ben")
    assert pairs(rows) == [("r1", anna), ("r1", ben), ("r2", anna), ("r3", anna)]
    ((_, stored),) = generation.client.record_pages(generation.datasets["generation"])
    given = [each for found in stored for each in found["responses"] if each["status"] == "submitted"]
    stamps = {each["updated_at"] + "+00:00" for each in given}
    assert {row["created_at"] for row in rows} == stamps
    assert len(stamps) > 1


def test_discarded_responses_have_their_own_file_with_or_without_values(generation: Bench, tmp_path: Path) -> None:
    submitted = generation.response("anna", **answers("generation"))
    generation.put("generation", record("generation", "r1", submitted, generation.response("ben", "discarded")))
    noted = generation.response("ben", "discarded", helpful="yes", notes="wrong language")
    generation.put("generation", record("generation", "r2", noted))
    found = generation.export(tmp_path / "out", discarded=True)
    assert len(found["generation"]) == 1
    assert [(row["helpful"], row["notes"], row["response_status"]) for row in found["generation_discarded"]] == [
        ("", "", "discarded"),
        ("True", "wrong language", "discarded"),
    ]
    assert len(read_tables([tmp_path / "out" / "generation_discarded.csv"]).tables[0].units) == 0


def test_texts_are_the_answers_own_whatever_annotators_are_shown(bench: Bench, tmp_path: Path) -> None:
    text = "# <script>alert(1)</script>\r\n[x](https://evil.example) ![](https://evil.example/p.png) `=1+1` & 六 [1]"
    passages = [Passage(chunk_id=f"d#{n}", doc_id="d", chunk_rank=n + 1, text=f"{text} {n}") for n in (0, 1)]
    answer = QueryResponse(
        record_uuid="r1",
        query=f"query {text}",
        answer=f"answer {text}",
        language="ja",
        chunks=tuple(passages),
        context_set=CONTEXT_SEPARATOR.join(passage.text for passage in passages),
        provenance=Provenance(model_name="grok"),
    )
    push_records(bench.client, bench.workspace, [answer])
    for task, dataset in bench.datasets.items():
        ((_, pushed),) = bench.client.record_pages(dataset)
        assert not any(text in shown for shown in pushed[0]["fields"].values())
        responses = [bench.response("anna", **answers(task), notes=HOSTILE)]
        bench.put(task, *({"external_id": body["external_id"], "responses": responses} for body in pushed))
    found = bench.export(tmp_path / "out", extended=True, text_pair=True)
    assert [(row["input_query"], row["chunk"]) for row in found["retrieval"]] == [
        (answer.query, passage.text) for passage in passages
    ]
    assert [(row["answer"], row["context_set"]) for row in found["grounding"]] == [(answer.answer, answer.context_set)]
    (row,) = found["generation"]
    assert (row["query"], row["answer"], row["text"], row["text_pair"]) == (answer.query, answer.answer) * 2
    assert tuple(row)[: len(COLUMNS["generation"]) + 2] == (*COLUMNS["generation"], "text", "text_pair")
    told = {(row["language"], row["model_name"], row["notes"]) for rows in found.values() for row in rows}
    assert told == {("ja", "grok", HOSTILE)}


def test_rows_are_sorted_by_record_rank_and_annotator_whatever_the_order(bench: Bench, tmp_path: Path) -> None:
    both = [bench.response(who, **answers("retrieval")) for who in ("ben", "anna")]
    order = [("r2", 1), ("r1", 10), ("r1", 2)]
    bench.put("retrieval", *(record("retrieval", record_uuid, *both, rank=rank) for record_uuid, rank in order))
    rows = bench.export(tmp_path / "out", tasks=["retrieval"])["retrieval"]
    people = [username(bench, "anna"), username(bench, "ben")]
    assert [(row["record_uuid"], row["chunk_rank"], row["annotator_id"]) for row in rows] == [
        (record_uuid, rank, who) for record_uuid, rank in (("r1", "2"), ("r1", "10"), ("r2", "1")) for who in people
    ]


def test_the_same_data_gives_the_same_bytes(generation: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answered_by(generation, "anna")
    first = export_csv(generation.client, generation.workspace, tmp_path / "one").manifest
    assert first.files == export_csv(generation.client, generation.workspace, tmp_path / "one").manifest.files
    manifest = json.loads((tmp_path / "one" / MANIFEST_FILE).read_text(encoding="utf-8"))
    assert manifest["files"] == [
        {
            **{"file": name, "task": task, "rows": 1, "annotators": annotators, "records": 1},
            "sha256": hashlib.sha256((tmp_path / "one" / name).read_bytes()).hexdigest(),
        }
        for name, task, annotators in (("generation.csv", "generation", 1), ("provenance.csv", None, 0))
    ]
    assert manifest["datasets"][0]["id"] == generation.datasets["generation"]
    assert manifest["server"] == generation.server.url
    assert [path.name for path in tmp_path.iterdir()] == ["one"]
    monkeypatch.setenv("ARGILLA_API_KEY", generation.server.owner_api_key)
    out = tmp_path / "out"
    options = ["--workspace", generation.workspace, "--api-url", generation.server.url, "--until"]
    result = CliRunner().invoke(csv_command, [str(out), *options, "2100-01-01"], catch_exceptions=False)
    assert (result.exit_code, result.stdout) == (0, "")
    assert ["generation.csv", "1", "1", "1"] in [line.split() for line in result.stderr.splitlines()]
    assert f"Next: `citejury exports results {out} --out results`" in result.stderr
    result = CliRunner().invoke(csv_command, [str(out), *options, "yesterday"])
    assert result.exit_code == 2
    assert "'yesterday' is no date or time" in result.stderr


def test_extended_columns_name_statuses_ids_broken_rules_and_provenance(bench: Bench, tmp_path: Path) -> None:
    response = bench.response("anna", **answers("retrieval", evidence_sufficient="yes", misleading="yes"))
    known = {"provenance": {"model_name": "grok", "narrative_id": "007"}}
    (record_id,) = bench.put("retrieval", record("retrieval", "r1", response, **known))
    (row,) = bench.export(tmp_path / "out", tasks=["retrieval"], extended=True)["retrieval"]
    assert row["constraint_flags"] == "evidence_requires_relevance;evidence_excludes_misleading"
    assert (row["record_id"], row["record_status"], row["response_status"]) == (record_id, "completed", "submitted")
    assert (row["model_name"], row["narrative_id"], row["model_version"], row["origin"]) == ("grok", "007", "", "page")
    assert row["updated_at"] == row["created_at"] >= row["inserted_at"]


def test_an_empty_task_is_an_error_when_named_and_a_warned_header_among_others(bench: Bench, tmp_path: Path) -> None:
    bench.put("generation", record("generation", "r0", bench.response("anna", "draft", helpful="yes")))
    with pytest.raises(NotFoundError, match=bench.workspace):
        export_csv(bench.client, "nowhere", tmp_path / "out")
    with pytest.raises(NotFoundError, match="no submitted response, so nothing was written"):
        bench.export(tmp_path / "out")
    answered_by(bench, "anna")
    with pytest.raises(NotFoundError, match="no submitted response to the task grounding"):
        bench.export(tmp_path / "out", tasks=["generation", "grounding"])
    assert not list(tmp_path.iterdir())
    export = export_csv(bench.client, bench.workspace, tmp_path / "out")
    assert "grounding.csv has only its header" in " ".join(export.warnings)
    assert (tmp_path / "out" / "grounding.csv").read_bytes() == csv_line(COLUMNS["grounding"])


def test_a_failed_export_leaves_the_earlier_one_as_it_was(generation: Bench, tmp_path: Path) -> None:
    answered_by(generation, "anna")
    generation.export(tmp_path / "out")
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    dataset = generation.datasets["generation"]
    ((_, (stored,)),) = generation.client.record_pages(dataset)
    generation.client.request("DELETE", f"/datasets/{dataset}/records", params={"ids": stored["id"]})
    for wanted, said in (({}, "no submitted response"), ({"tasks": ["grounding"]}, r"there are: '\S+' \(generation\)")):
        with pytest.raises(NotFoundError, match=said):
            generation.export(tmp_path / "out", **wanted)
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_removed_member_is_exported_under_an_id_a_deleted_user_gone(generation: Bench, tmp_path: Path) -> None:
    carl = make_user(generation.client, "carl")["id"]
    answered_by(generation._replace(annotators={**generation.annotators, "carl": carl}), "anna", "carl")
    generation.client.request("DELETE", f"/users/{carl}")
    admin = make_user(generation.client, "admin", "admin")
    members = f"/workspaces/{generation.workspace_id}/users"
    anna = generation.annotators["anna"]
    for user_id in (admin["id"], anna):
        generation.client.request("POST", members, json={"user_id": user_id})
    generation.client.request("DELETE", f"{members}/{anna}")
    with Argilla(generation.server.url, admin["api_key"]) as client:
        export_csv(client, generation.workspace, tmp_path / "out")
    assert [row["annotator_id"] for row in read_csv(tmp_path / "out" / "generation.csv")] == [anna]


def test_a_record_not_ours_is_left_out_and_a_draft_dataset_no_harm(generation: Bench, tmp_path: Path) -> None:
    answered_by(generation, "anna")
    foreign = record("generation", "r2", generation.response("anna", **answers("generation")))
    generation.put("generation", {**foreign, "metadata": None})
    draft = {**define_dataset("grounding", read_wording("en")).body, "workspace_id": generation.workspace_id}
    generation.client.request("POST", "/datasets", json=draft)
    export = export_csv(generation.client, generation.workspace, tmp_path / "out")
    assert export.manifest.datasets[-1].foreign_records == 1
    assert any("1 answered records" in warning and "left out" in warning for warning in export.warnings)
    assert [row["record_uuid"] for row in read_csv(tmp_path / "out" / "generation.csv")] == ["r1"]


def test_a_stamp_of_the_server_and_a_moment_without_offset_count_as_utc() -> None:
    assert utc("2026-03-01T10:00:00.000001") == datetime(2026, 3, 1, 10, 0, 0, 1, tzinfo=UTC)
    assert utc("2026-03-01T10:00:00+02:00").isoformat() == "2026-03-01T08:00:00+00:00"
    assert ExportFilters(until=datetime(2026, 3, 1)).until == datetime(2026, 3, 1, tzinfo=UTC)  # noqa: DTZ001

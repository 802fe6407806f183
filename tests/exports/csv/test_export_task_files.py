import hashlib
import json
from pathlib import Path

import pytest

from annotation.argilla.client import Argilla
from annotation.argilla.labels import TASKS, forget_tasks
from annotation.server.launch import ServerHandle
from exports.csv.folder import exported_files
from exports.csv.history import export_history
from exports.csv.schema import COLUMNS, HISTORY_COLUMNS, ExportFilters
from exports.csv.write import export_csv, update_csv
from exports.reading.read import export_files, read_tables
from pipeline.core.errors import ArgillaError, OutputError
from tests.support.claims_task import claims_known
from tests.support.export_bench import Bench, answers, manifest_of, new_bench, read_csv, record, username

pytestmark = pytest.mark.server

GIVEN = {"accuracy": "wrong", "complete": "yes", "kind": "=advice", "sureness": "0.5"}


@pytest.fixture
def bench(argilla_server: ServerHandle, client: Argilla, users: dict[str, str], tmp_path: Path) -> Bench:
    """Datasets of one of our tasks and of one from a file, which nothing but the server knows of afterwards."""
    with claims_known(tmp_path / "project"):
        made = new_bench(argilla_server, client, users, "claims", "generation")
        made.put("claims", record("claims", "r1", made.response("anna", **GIVEN)))
        made.put("claims", record("claims", "r2", made.response("ben", "discarded")))
        made.put("generation", record("generation", "r1", made.response("anna", **answers("generation"))))
    return made


def test_a_task_from_a_file_is_exported_with_its_file_by_what_the_server_tells(bench: Bench, tmp_path: Path) -> None:
    assert "claims" not in TASKS
    out = tmp_path / "out"
    export = export_csv(bench.client, bench.workspace, out)
    (row,) = read_csv(out / "claims.csv")
    assert tuple(row) == COLUMNS["claims"]
    row.pop("created_at")
    assert row == {
        "query": "query of r1",
        "answer": "answer of r1",
        "context_set": "context_set of r1",
        "accuracy": "wrong",
        "complete": "True",
        "kind": "=advice",
        "sureness": "0.5",
        "notes": "",
        "record_uuid": "r1",
        "annotator_id": username(bench, "anna"),
        "task": "claims",
        "language": "en",
    }
    content = (out / "tasks" / "claims.json").read_bytes()
    listed = next(file for file in manifest_of(out)["files"] if file["file"] == "tasks/claims.json")
    assert listed == {
        "file": "tasks/claims.json",
        "task": "claims",
        "rows": content.count(b"\n"),
        "annotators": 0,
        "records": 0,
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    assert json.loads(content)["name"] == "claims"
    assert not [warning for warning in export.warnings if "There is no dataset" in warning]
    forget_tasks()
    assert [table.task for table in read_tables(export_files([out])).tables] == ["generation", "claims"]


def test_columns_on_request_discards_and_cells_for_spreadsheets_are_those_of_the_task(
    bench: Bench, tmp_path: Path
) -> None:
    wanted = {"extended": True, "text_pair": True, "discarded": True, "spreadsheet_safe": True}
    found = bench.export(tmp_path / "out", tasks=("claims",), **wanted)
    (row,) = found["claims"]
    assert (row["text"], row["text_pair"], row["kind"]) == ("query of r1", "answer of r1", "'=advice")
    assert row["constraint_flags"] == "wrong_is_incomplete"
    (discarded,) = found["claims_discarded"]
    assert (discarded["record_uuid"], discarded["accuracy"], discarded["response_status"]) == ("r2", "", "discarded")
    (ratings,) = read_tables(export_files([tmp_path / "out"])).tables
    assert ratings.discards == {username(bench, "ben"): 1}
    assert [each.values[each.codes[0]] for each in ratings.scaled] == ["wrong", "=advice", "0.5"]


def test_an_update_reads_what_changed_and_writes_what_a_full_export_would(bench: Bench, tmp_path: Path) -> None:
    out, whole = tmp_path / "out", tmp_path / "whole"
    export_csv(bench.client, bench.workspace, out)
    with claims_known(tmp_path / "again"):
        bench.put("claims", record("claims", "r3", bench.response("ben", **GIVEN | {"accuracy": "right"})))
    read: list[int] = []
    updated = update_csv(bench.client, out, progress=lambda name, done, total: read.append(total))
    export_csv(bench.client, bench.workspace, whole)
    names = sorted(path.relative_to(whole).as_posix() for path in whole.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())
    for name in set(names) - {"manifest.json", "index.jsonl"}:
        assert (out / name).read_bytes() == (whole / name).read_bytes()
    assert (read, updated.warnings) == ([1], export_csv(bench.client, bench.workspace, whole).warnings)
    assert updated.changes is not None
    assert dict(updated.changes.by_annotator[username(bench, "ben")]) == {"added": 1}


def test_an_export_folder_with_a_foreign_file_among_its_task_files_is_not_replaced(
    bench: Bench, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    export_csv(bench.client, bench.workspace, out)
    assert exported_files(out)["tasks/claims.json"] == "claims"
    (out / "tasks" / "mine.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"holds 'tasks/mine\.txt'"):
        export_csv(bench.client, bench.workspace, out)


def test_an_answer_of_another_form_of_the_task_is_named(bench: Bench, tmp_path: Path) -> None:
    with claims_known(tmp_path / "other") as task:
        others = [
            each.model_copy(update={"values": ("no", "yes")}) if each.name == "kind" else each
            for each in task.questions
        ]
        task.__dict__["by_name"] = {each.name: each for each in others}
        with pytest.raises(ArgillaError, match=r"the answer '=advice' to `kind`, expected 'no' or 'yes'"):
            export_csv(bench.client, bench.workspace, tmp_path / "out")


def test_the_history_has_values_as_the_tasks_file_has_them(bench: Bench, tmp_path: Path) -> None:
    out = tmp_path / "history.csv"
    export_history(bench.client, [bench.workspace], out, ExportFilters(tasks=("claims",)))
    rows = read_csv(out)
    assert tuple(rows[0]) == HISTORY_COLUMNS
    assert {row["label"]: row["value_after"] for row in rows if row["record_uuid"] == "r1"} == GIVEN | {
        "complete": "True"
    }

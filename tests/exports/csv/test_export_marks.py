"""Marks come back as words of the original passages, beside CSV files that are the same with and without them."""

import uuid
from pathlib import Path
from typing import Any

import pytest

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS, Evidence
from annotation.argilla.marks import shown_text
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import set_up
from annotation.push.push import push_records
from exports.csv.schema import EvidenceRow, ExportFilters
from exports.csv.write import Export, export_csv
from pipeline.records.schema import Passage, QueryResponse, join_context
from tests.support.export_bench import make_user, manifest_of, read_csv

pytestmark = pytest.mark.server

TEXTS = ("First 😀 passage.", "Second\r\none: 1 < 2 & <b>3</b>.", "Third 🇩🇪 with <i>words</i> that ━━ decide.")
PASSAGES = tuple(
    Passage(chunk_id=f"d#{rank}", doc_id=f"d{rank}", chunk_rank=rank, text=text)
    for rank, text in enumerate(TEXTS, start=1)
)
ANSWER = QueryResponse(
    record_uuid="r1", query="Q?", answer="A.", language="en", chunks=PASSAGES, context_set=join_context(PASSAGES)
)


class Marked:
    """A workspace with one grounding record, which annotators answer and mark."""

    def __init__(self, owner: Argilla, evidence: Evidence) -> None:
        self.owner, self.workspace = owner, f"x-{uuid.uuid4().hex[:10]}"
        set_up(owner, self.workspace, evidence=evidence)
        push_records(owner, self.workspace, [ANSWER])
        self.dataset = find_datasets(owner, self.workspace)["grounding"].id
        ((_, (self.record,)),) = owner.record_pages(self.dataset)

    def mark(self, words: str, label: str = "supports") -> dict[str, Any]:
        """A mark as the page makes it."""
        before, found, _ = shown_text(self.record).partition(words)
        assert found
        start, length = (len(text.encode("utf-16-le")) // 2 for text in (before, words))
        return {"label": label, "start": start, "end": start + length}

    def answer(self, user_id: str, *marks: dict[str, Any], status: str = "submitted") -> None:
        values: dict[str, Any] = {label: {"value": "no"} for label in LABELS["grounding"]}
        values |= {"evidence": {"value": list(marks)}} if marks else {}
        response = {"user_id": user_id, "status": status, "values": values}
        body = {"id": self.record["id"], "responses": [response]}
        self.owner.request("PUT", f"/datasets/{self.dataset}/records/bulk", json={"items": [body]})

    def export(self, out: Path, **wanted: Any) -> tuple[Export, list[EvidenceRow]]:
        export = export_csv(self.owner, self.workspace, out, ExportFilters(**wanted))
        lines = (out / "evidence.jsonl").read_bytes().decode("utf-8").split("\n")[:-1]
        return export, [EvidenceRow.model_validate_json(line) for line in lines]


def test_a_mark_comes_back_as_its_words_beside_the_same(owner: Argilla, users: dict[str, str], tmp_path: Path) -> None:
    work = Marked(owner, "optional")
    third, second = work.mark("<i>words</i> that ── decide"), work.mark("Second\none: 1 < 2", "contradicts")
    work.answer(users["anna"], third, second)
    export, rows = work.export(tmp_path / "out")
    name = owner.usernames()[users["anna"]]
    assert [(row.label, row.chunk_id, row.doc_id, row.chunk_rank, row.text) for row in rows] == [
        ("contradicts", "d#2", "d2", 2, "Second\r\none: 1 < 2"),
        ("supports", "d#3", "d3", 3, "<i>words</i> that ━━ decide"),
    ]
    assert all(TEXTS[row.chunk_rank - 1][row.start : row.end] == row.text for row in rows)
    assert {(row.record_uuid, row.annotator_id, row.cut, row.response_status) for row in rows} == {
        ("r1", name, False, "submitted")
    }
    (grounding,) = read_csv(tmp_path / "out" / "grounding.csv")
    assert rows[0].created_at == grounding["created_at"]
    described = manifest_of(tmp_path / "out")["files"][-1]
    assert (described["file"], described["rows"], described["records"]) == ("evidence.jsonl", 2, 1)
    assert not [warning for warning in export.warnings if "mark" in warning]
    marked, without = Marked(owner, "optional"), Marked(owner, "off")
    lines = []
    for number, (work, marks) in enumerate(((marked, [marked.mark("First")]), (marked, []), (without, []))):
        work.answer(users["anna"], *marks)
        out = tmp_path / str(number)
        export_csv(owner, work.workspace, out)
        (row,) = read_csv(out / "grounding.csv")
        lines.append((out / "grounding.csv").read_text().replace(row["created_at"], "then"))
    assert lines[0] == lines[1] == lines[2]
    assert (tmp_path / "1" / "evidence.jsonl").read_bytes() == b""
    assert not (tmp_path / "2" / "evidence.jsonl").exists()
    export_csv(owner, without.workspace, tmp_path / "0")  # what lies there is an export and may be replaced
    assert not (tmp_path / "0" / "evidence.jsonl").exists()


def test_marks_over_headings_are_cut_those_on_them_named(owner: Argilla, users: dict[str, str], tmp_path: Path) -> None:
    work = Marked(owner, "required")
    over = {**work.mark("passage."), "end": work.mark("Second")["end"]}
    work.answer(users["anna"], over, work.mark("━━ Passage 3", "contradicts"))
    work.answer(users["ben"], work.mark("Third"), status="discarded")
    export, rows = work.export(tmp_path / "out", anonymized=True)
    assert [(row.text, row.cut, row.annotator_id) for row in rows] == [
        ("passage.", True, "annotator-01"),
        ("Second", True, "annotator-01"),
    ]
    told = "\n".join(export.warnings)
    assert "on several passages: 1 mark;" in told
    assert "on no words of a passage: 1 mark (r1 by annotator-01)." in told
    grounding = next(each for each in export.manifest.datasets if each.task == "grounding")
    assert (grounding.cut_marks, grounding.lost_marks) == (1, 1)
    _, rows = work.export(tmp_path / "all", discarded=True)
    assert ("Third", "discarded") in [(row.text, row.response_status) for row in rows]
    for _ in range(6):
        work.answer(make_user(owner, "marker")["id"], work.mark("━━ Passage 3"))
    (told,) = (each for each in work.export(tmp_path / "out")[0].warnings if "no words of a passage" in each)
    assert ": 7 marks (" in told
    assert told.count("r1 by ") == 5
    assert ", and 2 more; an export with `--annotator NAME`" in told

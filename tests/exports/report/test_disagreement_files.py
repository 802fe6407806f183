import csv
from pathlib import Path

import pytest

from annotation.argilla.labels import LABELS as LABEL_COLUMNS
from exports.csv.rows import csv_line
from exports.csv.schema import COLUMNS, EvidenceRow
from exports.reading.read import export_files, read_tables
from exports.report.details_page import render_details
from exports.report.disagreement_files import count_patterns, disagreements_table, with_details
from exports.statistics.disagreements import Disagreement, find_disagreements
from pipeline.core.errors import InputError
from tests.support.report_data import drawn_agreement
from tests.support.report_page import Page

HOSTILE = '=1+1, "zwei"\rdrei\nvier <b>fünf</b> 六'
LABELS = {"proper_action": "True", "response_on_topic": "True", "incomplete": "False", "unsafe_content": "False"}
PAIRS = (("anna", "True"), ("ben", "False"))
LATER = "2026-03-02T10:00:00+00:00"
HEAD = (*COLUMNS["generation"], "response_status")


def write_export(path: Path, *rows: dict[str, str]) -> Path:
    path.write_bytes(b"".join(csv_line(cells) for cells in (HEAD, *([row[name] for name in HEAD] for row in rows))))
    return path


def row(annotator: str, helpful: str, record: str = "r1", **changed: str) -> dict[str, str]:
    values = LABELS | {"helpful": helpful, "record_uuid": record, "annotator_id": annotator, "task": "generation"}
    rest = {"query": "Q?", "answer": HOSTILE, "notes": "", "language": "en", "response_status": "submitted"}
    return values | rest | {"created_at": "2026-03-01T10:00:00+00:00"} | changed


def found_in(path: Path) -> list[Disagreement]:
    return with_details(find_disagreements(read_tables(export_files([path])).tables[0]), [path])


def test_newest_texts_and_notes_are_filled_in_patterns_counted_and_earlier_lists_replaced(
    tmp_path: Path,
) -> None:
    path = write_export(
        tmp_path / "generation.csv",
        row("anna", "True", notes="old"),
        row("anna", "True", notes=HOSTILE, created_at="2026-03-02T10:00:00+00:00"),
        row("ben", "False"),
        row("carla", "False", notes="dropped", response_status="discarded"),
        row("dora", "False", record="r2", notes="agreed"),
    )
    (found,) = found_in(path)
    assert (found.text, found.text_pair, found.notes) == ("Q?", HOSTILE, {"anna": HOSTILE})
    assert (found.record_id, found.link) == ("", "")
    rows = [row(who, helpful, record) for record in ("r1", "r2") for who, helpful in PAIRS]
    rows += [row("anna", "False", "r3"), row("ben", "True", "r3")]
    patterns = count_patterns(found_in(write_export(tmp_path / "generation.csv", *rows)))
    assert [(each.n_units, each.pattern) for each in patterns] == [(2, "anna yes; ben no"), (1, "ben yes; anna no")]


def write_grounding(path: Path, *records: str) -> Path:
    labels = dict.fromkeys(LABEL_COLUMNS["grounding"], "True")
    said = {"answer": "No.", "context_set": "C", "notes": "", "language": "en", "task": "grounding"}
    head = COLUMNS["grounding"]
    rows = [
        labels | said | {"support_present": vote, "record_uuid": record, "annotator_id": who, "created_at": LATER}
        for record in records
        for who, vote in PAIRS
    ]
    path.write_bytes(b"".join(map(csv_line, (head, *([row[name] for name in head] for row in rows)))))
    return path


def test_marked_words_stand_beside_the_disagreement_as_text(tmp_path: Path) -> None:
    path, out = write_grounding(tmp_path / "grounding.csv", "r1"), tmp_path / "list.csv"
    (before,) = found_in(path)
    out.write_bytes(disagreements_table([before]).csv())
    assert (before.marks, read(out)[0].get("marks")) == ({}, None)
    marks = [
        mark("anna", "</p><script>alert(1)</script>"),
        mark("anna", "=2+2", label="contradicts"),
        mark("anna", "an older response", created_at="2026-03-01T10:00:00+00:00"),
        mark("ben", "a discard", response_status="discarded"),
        mark("ben", "another record", record_uuid="r2"),
    ]
    (tmp_path / "evidence.jsonl").write_text("".join(f"{each.model_dump_json()}\n" for each in marks))
    (found,) = found_in(path)
    assert found.marks == {"anna": ("supports: </p><script>alert(1)</script>", "contradicts: =2+2")}
    out.write_bytes(disagreements_table([found]).csv())
    (written,) = read(out)
    assert written["marks"] == "anna: supports: </p><script>alert(1)</script>\nanna: contradicts: =2+2"
    report = render_details(drawn_agreement(read_tables([path]).tables), [found])
    assert "Marked by " in report
    assert "<script>alert(1)" not in report
    assert "&lt;script&gt;alert(1)" in report
    (tmp_path / "evidence.jsonl").write_text("{}\n")
    with pytest.raises(InputError, match=r"evidence\.jsonl`, line 1, is no mark of an export"):
        found_in(path)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream))


def mark(annotator: str, text: str, **changed: str) -> EvidenceRow:
    known = {"record_uuid": "r1", "annotator_id": annotator, "label": "supports", "chunk_id": "d#0", "doc_id": "d"}
    known |= {"text": text, "language": "en", "response_status": "submitted", "round": "production", "workspace": "w"}
    known |= {"created_at": "2026-03-02T10:00:00+00:00"} | changed
    return EvidenceRow.model_validate(known | {"chunk_rank": 1, "start": 0, "end": len(text), "cut": False})


def test_an_answer_that_is_split_in_grounding_has_its_records_query_beside_it(tmp_path: Path) -> None:
    write_grounding(tmp_path / "grounding.csv", "r1", "r2")
    write_export(tmp_path / "generation.csv", row("anna", "True", query=HOSTILE))
    (grounding,) = (table for table in read_tables(export_files([tmp_path])).tables if table.task == "grounding")
    found = with_details(find_disagreements(grounding), [tmp_path])
    assert {item.record_uuid: item.query for item in found} == {"r1": HOSTILE, "r2": ""}
    assert b"zwei" not in disagreements_table(found).csv()
    page = Page(render_details(drawn_agreement([grounding]), found))
    assert [text for _, text in page.all("h4")].count("Query") == 1


def test_the_list_keeps_hostile_text_as_data_and_holds_no_formula(tmp_path: Path) -> None:
    path, out = write_export(tmp_path / "generation.csv", row("=anna", "True"), row("ben", "False")), tmp_path / "l.csv"
    out.write_bytes(disagreements_table(found_in(path)).csv())
    (listed,) = read(out)
    assert (listed["text_pair"], listed["vote of =anna"], listed["vote of ben"]) == (f"'{HOSTILE}", "True", "False")
    rows = [row(who, helpful, record, query="@SUM(A1)") for record in ("r1", "r2") for who, helpful in PAIRS]
    rows += [row(who, "True", "r3") for who in ("anna", "ben")]
    out.write_bytes(disagreements_table(found_in(write_export(path, *rows))).csv())
    safe = read(out)
    assert {each["text"] for each in safe} == {"'@SUM(A1)"}
    assert all(float(each["influence"]) < 0 for each in safe)

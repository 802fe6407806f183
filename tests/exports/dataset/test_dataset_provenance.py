"""Datasets of exports where `provenance.csv` tells where records come from."""

from pathlib import Path
from typing import Any

import pytest

from annotation.argilla.labels import LABELS
from exports.dataset.files import DatasetOptions
from pipeline.records.schema import Provenance
from tests.support.dataset_export import make, row, rows_of, write_export
from tests.support.provenance_file import TOLD, write_provenance

pytest.importorskip("datasets", reason="needs the extra data")

JOINED = (
    *("answer_id", "contexts", "model_name", "model_version", "narrative_id", "narrative_type", "run_id"),
    *("repeat", "answer_timestamp"),
)
TABLES = (*LABELS, *(f"{task}_consensus" for task in LABELS))


def export(folder: Path, records: int = 3, extra: tuple[str, ...] = (), **cells: Any) -> Path:
    """Every task of some records, without a text that two of them share."""
    for task in LABELS:
        write_export(folder, task, [row(task, f"r{number}", **cells) for number in range(records)], extra)
    return folder


def about(warnings: list[str], *words: str) -> list[str]:
    return [warning for warning in warnings if all(word in warning for word in words)]


def test_every_row_has_model_and_narrative_that_keep_records_together_or_null_which_is_counted(tmp_path: Path) -> None:
    source = export(tmp_path / "in")
    written = make(tmp_path / "out", source)
    assert about(written.warnings, "tells where 3 of 3 records come from")
    assert "model_name" not in rows_of(tmp_path / "out", "generation")[0]
    write_provenance(source, r0={}, r1={"model_name": ""})
    written = make(tmp_path / "out", source)
    assert [r["model_name"] for r in rows_of(tmp_path / "out", "generation")] == ["openai", "", ""]
    assert about(written.warnings, "`model_name` is not known for 1 of 3 records (the first: r1)")
    assert about(written.warnings, "tells where 1 of 3 records come from (the first: r2)")
    told = {f"r{number}": {"model_name": f"m{number}", "narrative_id": f"n{number}"} for number in range(3)}
    write_provenance(source, **told)
    written = make(tmp_path / "out", source)
    for table in TABLES:
        for found in rows_of(tmp_path / "out", table):
            expected = TOLD | told[found["record_uuid"]]
            assert {name: found[name] for name in JOINED} == {name: expected[name] for name in JOINED}, table
    assert not about(written.warnings, "come from")
    assert [file.file for file in written.manifest.sources] == [*(f"{task}.csv" for task in LABELS), "provenance.csv"]
    source = export(tmp_path / "in", 40)
    write_provenance(source, **{f"r{number}": {"narrative_id": f"n{number // 4}"} for number in range(40)})
    make(tmp_path / "out", source)
    found = {(r["narrative_id"], r["group"], r["split"]) for r in rows_of(tmp_path / "out", "grounding")}
    assert len({name for name, _, _ in found}) == len({group for _, group, _ in found}) == len(found) == 10


def test_a_files_own_columns_come_first_and_a_difference_is_told(tmp_path: Path) -> None:
    extra = ("model_name", "narrative_id")
    source = export(tmp_path / "in", 2, extra, model_name="grok", narrative_id="")
    write_provenance(source, r0={"model_name": "grok"}, r1={})
    written = make(tmp_path / "out", source)
    for table in TABLES:
        found = {(r["model_name"], r["narrative_id"], r["model_version"]) for r in rows_of(tmp_path / "out", table)}
        assert found == {("grok", "n1", "gpt-5")}
    assert about(written.warnings, "something else") == [
        "Cells that say something else than `provenance.csv`: 3; the rows' own count (the first: retrieval.csv, line "
        "3, `model_name`: 'grok', not 'openai')."
    ]


def test_an_extended_export_with_its_provenance_gives_the_tables_that_it_gave_without(tmp_path: Path) -> None:
    extra = tuple(Provenance.model_fields)
    source = export(tmp_path / "in", 3, extra, **{name: TOLD.get(name, "") for name in extra})
    make(tmp_path / "without", source)
    write_provenance(source, r0={}, r1={}, r2={})
    written = make(tmp_path / "with", source)
    for table in TABLES:
        assert rows_of(tmp_path / "with", table) == rows_of(tmp_path / "without", table)
    assert not about(written.warnings, "something else")


def test_two_exports_lend_each_other_what_they_tell(tmp_path: Path) -> None:
    first, second = export(tmp_path / "a", 2), export(tmp_path / "b", 3)
    write_provenance(first, r0={}, r1={})
    write_provenance(second, r1={"model_name": "grok"}, r2={})
    from exports.dataset.write import write_dataset

    written = write_dataset(tmp_path / "out", [first, second], DatasetOptions())
    assert [r["model_name"] for r in rows_of(tmp_path / "out", "grounding_consensus")] == ["openai"] * 3
    assert about(written.warnings, "several exports say different things", "r1, `model_name`: 'openai' and 'grok'")


def test_passages_keep_records_together_by_their_text_and_by_their_ids(tmp_path: Path) -> None:
    source = tmp_path / "in"
    passages = {
        "r0": {"chunk": "Water  boils\nat 100 °C.", "chunk_id": "c1"},
        "r2": {"chunk": "Water boils.", "chunk_id": "d#1", "doc_id": "d"},
        "r3": {"chunk": "Water boils earlier high up.", "chunk_id": "d#1", "doc_id": "d"},
        "r4": {"chunk": "Of the same page.", "chunk_id": "d#2", "doc_id": "d"},
        "r5": {"chunk": " ", "chunk_id": "c1"},
        "r6": {"chunk": "", "chunk_id": "c1"},
    }
    write_export(source, "retrieval", [row("retrieval", name, **cells) for name, cells in passages.items()])
    contexts = {"r1": "Iron is heavy. [CTX_SEP] Water boils at 100 °C.", "r7": " [CTX_SEP] ", "r8": ""}
    write_export(source, "grounding", [row("grounding", name, context_set=text) for name, text in contexts.items()])
    make(tmp_path / "out", source)
    rows = [row for task in ("retrieval", "grounding") for row in rows_of(tmp_path / "out", task)]
    groups = {row["record_uuid"]: row["group"] for row in rows}
    assert (groups["r0"], groups["r2"], len(set(groups.values()))) == (groups["r1"], groups["r3"], 7)


def test_no_two_splits_share_a_passage_and_a_hub_that_ties_nearly_all_is_told(tmp_path: Path) -> None:
    source = tmp_path / "in"
    rows = [row("retrieval", f"r{n:02}", chunk="We use cookies." if n < 60 else f"passage {n}") for n in range(80)]
    write_export(source, "retrieval", rows)
    hub = make(tmp_path / "out", source, DatasetOptions())
    splits: dict[str, set[str]] = {}
    for found in rows_of(tmp_path / "out", "retrieval"):
        splits.setdefault(found["chunk"], set()).add(found["split"])
    assert {len(names) for names in splits.values()} == {1}
    assert not about(hub.warnings, "instead of")
    write_export(source, "retrieval", [row("retrieval", f"r{n:02}", chunk="We use cookies.") for n in range(80)])
    whole = make(tmp_path / "whole", source, DatasetOptions())
    assert about(whole.warnings, "instead of")[0].startswith("The splits have 100, 0 and 0 % of the records instead of")
    assert about(whole.warnings, "instead of")[0].endswith("The most common passage is in 80 records, such as r00.")
    rows += [row("retrieval", f"s{n:02}", chunk="We use cookies.") for n in range(100)]
    write_export(source, "retrieval", rows)
    told = make(tmp_path / "new", source, DatasetOptions())
    assert about(told.warnings, "instead of") == [
        "The splits have 88.9, 5.6 and 5.6 % of the records instead of 80, 10 and 10 %: records that share a "
        "narrative, a query or a passage, directly or through others, are in one split, and the largest group of them "
        "has 160 of 180 records. The most common passage is in 160 records, such as r00."
    ]


def test_a_dataset_over_an_earlier_one_keeps_its_splits_and_tells_what_moved(tmp_path: Path) -> None:
    def write(records: int, **first: str) -> Path:
        rows = [row("generation", f"r{n:02}", **(first if not n else {})) for n in range(records)]
        return write_export(tmp_path / "in", "generation", rows)

    def splits() -> dict[str, str]:
        return {r["record_uuid"]: r["split"] for r in rows_of(tmp_path / "out", "generation")}

    make(tmp_path / "out", write(40), DatasetOptions())
    before = splits()
    written = make(tmp_path / "out", write(80), DatasetOptions())
    assert before.items() <= splits().items()
    assert sorted(splits().values()).count("train") == 64
    assert not about(written.warnings, "earlier dataset")
    before = splits()
    names = {split: next(name for name, found in before.items() if found == split) for split in ("train", "test")}
    tied = names["train"] == "r00" and names["test"]
    written = make(tmp_path / "out", write(80, query=f"query of {tied}"), DatasetOptions())
    moved = sorted(name for name, split in splits().items() if before[name] != split)
    assert (splits()["r00"], len(moved)) == (splits()[tied], 2)
    assert about(written.warnings, "earlier dataset") == [
        f"2 of 80 records of the earlier dataset are in another split now (the first: {moved[0]}), because groups grew "
        "together or shares could not be kept otherwise. Do not test on it what was trained on the earlier one."
    ]
    assert not about(make(tmp_path / "out", write(80), DatasetOptions(seed=1)).warnings, "earlier dataset")

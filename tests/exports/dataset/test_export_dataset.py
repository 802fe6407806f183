from pathlib import Path

import numpy as np
import pytest

from annotation.argilla.labels import LABELS
from exports.csv.rows import csv_line
from exports.dataset.files import DatasetOptions
from exports.dataset.splits import read_shares
from exports.reading.decisions import COLUMNS as DECISION_COLUMNS
from exports.statistics.consensus import UnitLabel
from tests.support.dataset_export import JURY, jury_export, make, row, rows_of, write_export
from tests.support.places import NO_SHARED, SHARED

pandas = pytest.importorskip("pandas", reason="needs the extra data")
pytest.importorskip("datasets", reason="needs the extra data")

EXPORT_A = SHARED / "iaa-cases" / "open" / "export_a"
HOSTILE = '=1+1, "zwei"\r\ndrei\0 <script>alert(1)</script> | [x](http://evil.example) 六'


@pytest.fixture(scope="module")
def jury(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of the learnable export."""
    folder = tmp_path_factory.mktemp("jury")
    make(folder / "out", jury_export(folder / "export"), DatasetOptions(shares=read_shares("60,20,20")))
    return folder / "out"


def write_decisions(path: Path, decisions: dict[UnitLabel, bool]) -> Path:
    lines = [csv_line(DECISION_COLUMNS)]
    for (record, chunk, label), decision in decisions.items():
        task = next(task for task, labels in LABELS.items() if label in labels)
        lines.append(csv_line([task, record, chunk, label, str(decision), "eva", "2026-03-02T00:00:00+00:00"]))
    path.write_bytes(b"".join(lines))
    return path


def test_pandas_and_datasets_read_typed_columns_and_a_narrative_is_in_one_split_in_every_task(jury: Path) -> None:
    frame = pandas.read_parquet(jury / "parquet" / "retrieval")
    types = {name: str(frame.dtypes[name]) for name in frame}
    assert {types[label] for label in LABELS["retrieval"]} == {"boolean"}
    assert (types["chunk_rank"], types["created_at"]) == ("Int64", "datetime64[us, UTC]")
    assert {types[name] for name in ("text", "text_pair", "notes", "record_uuid", "annotator_id")} == {"str"}
    assert (frame["notes"] == "").all()
    splits: dict[str, set[str]] = {}
    records: dict[str, set[str]] = {}
    for task in LABELS:
        for found in rows_of(jury, task):
            records.setdefault(found["record_uuid"], set()).add(found["split"])
            if task != "grounding":
                splits.setdefault(found["text"], set()).add(found["split"])
    assert {len(found) for found in (*splits.values(), *records.values())} == {1}
    assert {split for found in splits.values() for split in found} == {"train", "validation", "test"}


def test_a_tiny_model_trained_on_the_train_split_beats_chance_on_the_test_split(jury: Path) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    rows = rows_of(jury, "retrieval")
    found = {split: [row for row in rows if row["split"] == split] for split in ("train", "test")}
    texts = {split: [f"{r['text']} {r['text_pair']}" for r in found[split]] for split in ("train", "test")}
    truth = {split: np.array([row["labels"][0] for row in found[split]]) for split in texts}
    words = TfidfVectorizer().fit(texts["train"])
    model = LogisticRegression().fit(words.transform(texts["train"]), truth["train"])
    accuracy = (model.predict(words.transform(texts["test"])) == truth["test"]).mean()
    chance = max(truth["test"].mean(), 1 - truth["test"].mean())
    assert len(truth["test"]) > 50
    assert accuracy > chance + 0.2


def test_the_vector_holds_the_booleans_hostile_text_arrives_and_an_empty_split_is_told(tmp_path: Path) -> None:
    rows = [
        row("generation", "r1", helpful=""),
        row("generation", "r2", helpful="True"),
        row("generation", "r3", proper_action="True", incomplete="True"),
    ]
    written = make(tmp_path / "out", write_export(tmp_path / "in", "generation", rows))
    vectors = [
        (found["helpful"], found["labels"], found["labels_yes"]) for found in rows_of(tmp_path / "out", "generation")
    ]
    assert vectors == [(None, None, None), (True, [0, 0, 1, 0, 0], [2]), (False, [1, 0, 0, 1, 0], [0, 3])]
    assert any("1 responses leave a label out" in warning for warning in written.warnings)
    assert "| generation | 3 | 3 | 3 | 1 | 1 |" in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert written.facts[0].sources["helpful"] == {"none": 1, "single": 2}
    (unit, *_) = rows_of(tmp_path / "out", "generation_consensus")
    assert (unit["helpful"], unit["helpful_vote_share"], unit["labels"]) == (None, None, None)
    hostile = row("generation", "001", "a|b <img src=x> [c](d)", notes=HOSTILE, query=HOSTILE, answer="")
    make(tmp_path / "out", write_export(tmp_path / "in", "generation", [hostile]))
    (found,) = rows_of(tmp_path / "out", "generation")
    told = HOSTILE.replace("\0", "\ufffd")
    assert (found["notes"], found["text"], found["text_pair"], found["record_uuid"]) == (told, told, "", "001")
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "alert" not in card
    assert "<img" not in card
    assert r"| generation | a\|b &lt;img src=x&gt; \[c\](d) | 1 |" in card
    written = make(tmp_path / "out", write_export(tmp_path / "in", "generation", [row("generation", "r1")]))
    files = [pandas.read_parquet(path) for path in (tmp_path / "out" / "parquet" / "generation").iterdir()]
    assert sorted(map(len, files)) == [0, 0, 1]
    assert len({str(frame.dtypes.to_dict()) for frame in files}) == 1
    assert sum("is empty for generation: there are 1 groups" in warning for warning in written.warnings) == 2


def test_a_tie_is_null_until_an_adjudicator_decides_and_decisions_on_other_units_are_told(tmp_path: Path) -> None:
    split = [row("generation", "r1", "anna", helpful="True"), row("generation", "r1", "ben")]
    source = write_export(tmp_path / "in", "generation", split)
    make(tmp_path / "out", source)
    (unit,) = rows_of(tmp_path / "out", "generation_consensus")
    names = ("n_ratings", "helpful", "helpful_vote_share", "helpful_source", "incomplete", "incomplete_source")
    assert [unit[name] for name in names] == [2, None, 0.5, None, False, "unanimous"]
    assert (unit["labels"], unit["labels_yes"]) == ([0, 0, 0.5, 0, 0], None)
    decisions = write_decisions(tmp_path / "decisions.csv", {("r1", "", "helpful"): True, ("r9", "", "helpful"): True})
    make(tmp_path / "out", source, decisions=decisions)
    (unit,) = rows_of(tmp_path / "out", "generation_consensus")
    assert (unit["helpful"], unit["helpful_vote_share"], unit["helpful_source"]) == (True, 0.5, "adjudicated")
    assert (unit["labels"], unit["labels_yes"]) == ([0, 0, 1, 0, 0], [2])
    source = write_export(tmp_path / "in", "generation", [row("generation", "r1")])
    of_others = {("r9", "", "helpful"): True, ("r1", "", "support_present"): True, ("r2", "", "source_cited"): True}
    decisions = write_decisions(tmp_path / "decisions.csv", {("r1", "", "helpful"): True, **of_others})
    written = make(tmp_path / "out", source, decisions=decisions)
    assert [warning for warning in written.warnings if "decisions" in warning] == [
        "grounding: decisions that do not count, since their unit has no response here: 2 (the first: r1, "
        "`support_present`).",
        "generation: decisions that do not count, since their unit has no response here: 1 (the first: r9, `helpful`).",
    ]


def test_the_models_consensus_brings_its_probability_into_the_vector(jury: Path, tmp_path: Path) -> None:
    options = DatasetOptions(rule="ds", shares=read_shares("60,20,20"))
    make(tmp_path / "out", jury_export(tmp_path / "in"), options)
    units = rows_of(tmp_path / "out", "retrieval_consensus")
    told = [unit for unit in units if unit["topically_relevant_source"] == "ds"]
    assert len(told) == len(units) == 300
    for unit in told:
        assert unit["labels"][0] == pytest.approx(unit["topically_relevant_posterior"], abs=1e-6)
        assert unit["topically_relevant"] == (unit["topically_relevant_posterior"] > 0.5)
    by_majority, posterior = rows_of(jury, "retrieval_consensus"), "topically_relevant_posterior"
    assert [unit[posterior] for unit in by_majority] == [unit[posterior] for unit in units]
    assert {unit["topically_relevant_source"] for unit in by_majority} == {"majority", "unanimous"}


@pytest.mark.parametrize(("discarded_at", "rows"), [("2026-04-01", 0), ("2026-02-01", 1)])
def test_the_newest_response_counts_or_a_discard_in_its_place(tmp_path: Path, discarded_at: str, rows: int) -> None:
    newer = row("generation", "r2", helpful="True", created_at="2026-03-02T10:00:00+02:00")
    responses = [row("generation", "r1"), newer, row("generation", "r2")]
    source = write_export(tmp_path / "in", "generation", responses)
    gone = row("generation", "r1", created_at=f"{discarded_at}T10:00:00+00:00", response_status="discarded")
    write_export(tmp_path / "discards", "generation", [gone], ("response_status",))
    (tmp_path / "discards" / "generation.csv").rename(source / "generation_discarded.csv")
    written = make(tmp_path / "out", source)
    for table in ("generation", "generation_consensus"):
        assert [found["record_uuid"] for found in rows_of(tmp_path / "out", table)] == ["r1"] * rows + ["r2"]
    assert sum(written.facts[0].annotators.values()) == written.facts[0].n_rows == rows + 1
    found = rows_of(tmp_path / "out", "generation")[-1]
    assert (found["helpful"], found["created_at"].isoformat()) == (True, "2026-03-02T08:00:00+00:00")
    assert "response_status" not in found
    assert any("generation" in warning and "repeat" in warning for warning in written.warnings)


def test_columns_of_an_extended_export_are_kept_and_join_narratives(tmp_path: Path) -> None:
    extra = ("narrative_id", "model_name", "inserted_at", "mood")
    told = {"model_name": "grok", "inserted_at": ""}
    rows = [
        row("generation", f"r{number}", narrative_id=f"n{number // 2}", query=f"q{number}", **told)
        for number in range(40)
    ]
    written = make(tmp_path / "out", write_export(tmp_path / "in", "generation", rows, extra))
    found = rows_of(tmp_path / "out", "generation")
    groups = {r["narrative_id"]: {s["group"] for s in found if s["narrative_id"] == r["narrative_id"]} for r in found}
    assert {len(names) for names in groups.values()} == {1}
    assert len(set.union(*groups.values())) == 20
    assert {(r["model_name"], r["inserted_at"]) for r in found} == {("grok", None)}
    assert {r["model_name"] for r in rows_of(tmp_path / "out", "generation_consensus")} == {"grok"}
    assert any("`mood`" in warning for warning in written.warnings)
    assert "mood" not in found[0]


def test_the_same_export_gives_the_same_bytes(tmp_path: Path) -> None:
    rows = [row("generation", f"r{number}", who) for number in range(5) for who in JURY]
    for out in ("a", "b"):
        make(tmp_path / out, write_export(tmp_path / "in", "generation", rows))
    names = [path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*") if path.is_file()]
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in names)
    make(tmp_path / "c", write_export(tmp_path / "shuffled", "generation", rows[::-1]))
    assert rows_of(tmp_path / "c", "generation") == rows_of(tmp_path / "a", "generation")


@pytest.mark.skipif(not EXPORT_A.is_dir(), reason=NO_SHARED)
def test_a_published_export_becomes_a_dataset_with_every_row(tmp_path: Path) -> None:
    written = make(tmp_path / "out", EXPORT_A)
    rows = {name: sum(count for path, count in written.manifest.rows.items() if f"/{name}/" in path) for name in LABELS}
    assert rows == {"retrieval": 668, "grounding": 164, "generation": 160}
    frame = pandas.read_parquet(tmp_path / "out" / "parquet" / "retrieval")
    source = pandas.read_csv(EXPORT_A / "retrieval.csv", dtype=str, keep_default_na=False)
    both = frame.merge(source, on=["record_uuid", "chunk_id", "annotator_id"], suffixes=("", "_csv"))
    assert len(both) == 668
    assert (both["text_pair"] == both["chunk_csv"]).all()
    assert (both["topically_relevant"] == (both["topically_relevant_csv"] == "True")).all()
    assert (both["created_at"] == pandas.to_datetime(both["created_at_csv"], utc=True)).all()

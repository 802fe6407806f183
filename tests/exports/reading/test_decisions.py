from pathlib import Path

import pytest

from annotation.argilla.labels import LABELS
from exports.reading.decisions import (
    Decision,
    Decisions,
    read_decisions,
    score_annotators,
    write_decisions,
    write_scores,
)
from exports.reading.read import export_files, read_tables
from exports.statistics.ratings import MISSING
from pipeline.core.errors import BadRowsError, InputError, OutputError
from tests.support.agreement_data import Row, ratings_of
from tests.support.claims_task import claims_known, write_claims

HEAD = "task,record_uuid,chunk_id,label,decision,adjudicator,created_at"
ROW = "generation,r1,,helpful,True,dora,2026-03-01T10:00:00+00:00"


def decision(**changed: object) -> Decision:
    values = dict(zip(HEAD.split(","), ROW.split(","), strict=True)) | {"decision": True} | changed
    return Decision.model_validate(values)


def write(path: Path, *rows: str, head: str = HEAD) -> Path:
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return path


def test_decisions_are_read_again_two_on_one_unit_refused_and_another_file_never_replaced(tmp_path: Path) -> None:
    passage = decision(task="retrieval", chunk_id="d#0", label="misleading", decision=False)
    written = Decisions((decision(adjudicator='=1+1, "dora"\r\n六'), passage))
    write_decisions(tmp_path / "decisions.csv", written)
    assert read_decisions(tmp_path / "decisions.csv") == written
    assert written.by_unit == {("r1", "", "helpful"): True, ("r1", "d#0", "misleading"): False}
    further = write(tmp_path / "d.csv", f"why,{ROW}", head=f"remark,{HEAD}")  # other columns do not matter
    assert read_decisions(further) == Decisions((decision(),))
    write_decisions(tmp_path / "decisions.csv", Decisions(()))  # an earlier file is replaced
    assert read_decisions(tmp_path / "decisions.csv") == Decisions(())
    for second in (ROW, ROW.replace("True", "False")):
        with pytest.raises(BadRowsError, match="line 3: a row above decides on the same unit and label"):
            read_decisions(write(tmp_path / "d.csv", ROW, second))
    with pytest.raises(InputError, match="needs the column `adjudicator` once, found it 0 times"):
        read_decisions(write(tmp_path / "d.csv", head=HEAD.replace("adjudicator", "judge")))
    path = tmp_path / "thesis.csv"
    path.write_text("years of work\n")
    for write_table in (lambda: write_decisions(path, Decisions(())), lambda: write_scores(path, [])):
        with pytest.raises(OutputError, match="holds something else"):
            write_table()
    assert path.read_text() == "years of work\n"


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (ROW.replace("True", "yes"), "`decision`: found 'yes', expected True or False."),
        (ROW.replace("helpful", "misleading"), "`label`: found 'misleading'"),
        (ROW.replace("generation", "reading"), "`task`: found 'reading'"),
        (ROW.replace("r1,,", "r1,c1,"), "`chunk_id`: found 'c1'"),
        (ROW.replace("generation,r1,,helpful", "retrieval,r1,,misleading"), "`chunk_id`: found ''"),
        (ROW.replace("r1", " "), "`record_uuid`: is empty."),
        (
            ROW.replace("generation,r1,,helpful,True", "claims,r1,,accuracy,True"),
            "`decision`: found 'True', expected one of wrong, partly, right.",
        ),
        (
            ROW.replace("generation,r1,,helpful,True", "claims,r1,,complete,right"),
            "`decision`: found 'right', expected True or False.",
        ),
        (ROW.replace("2026-03-01T10:00:00+00:00", "yesterday"), "`created_at`: found 'yesterday'"),
        (f"{ROW},more", "found 8 cells, the header has 7."),
    ],
)
def test_a_bad_row_is_named_with_its_line(tmp_path: Path, row: str, problem: str) -> None:
    path = write(tmp_path / "d.csv", ROW.replace("r1", "r0"), row)
    with claims_known(tmp_path), pytest.raises(BadRowsError) as caught:
        read_decisions(path)
    assert [f"d.csv, line 3: {problem}" in line for line in caught.value.rows] == [True]


def test_annotators_are_scored_on_the_units_and_passages_that_have_a_decision_only() -> None:
    # Decided are helpful of r1 (yes), r2 (no), r3 (no) and r4 (yes); of r5 nothing is.
    # anna says 1, 1, 0, 0: right of r1 and r3, a yes where no is right (r2), a no where yes is (r4).
    # ben says 0, 0, 0 and nothing of r4: right of r2 and r3.
    said = {"anna": (1, 1, 0, 0, 1), "ben": (0, 0, 0, MISSING, 1)}
    ratings = ratings_of(
        [Row(f"r{n}", who, (MISSING, MISSING, each)) for who, own in said.items() for n, each in enumerate(own, 1)]
    )
    decided = (("r1", True), ("r2", False), ("r3", False), ("r4", True))
    found = score_annotators(
        ratings, Decisions(tuple(decision(record_uuid=record, decision=right) for record, right in decided))
    )

    assert [each.model_dump() for each in found] == [
        {"task": "generation", "label": "helpful", "annotator": "anna", "n": 4, "n_agree": 2, "agreement": 0.5}
        | {"n_no": 2, "yes_when_no": 1, "n_yes": 2, "no_when_yes": 1},
        {"task": "generation", "label": "helpful", "annotator": "ben", "n": 3, "n_agree": 2, "agreement": 2 / 3}
        | {"n_no": 2, "yes_when_no": 0, "n_yes": 1, "no_when_yes": 1},
    ]
    # Of retrieval a unit is a passage. The decision is on d#0: what anna says of d#1 and of the label beside it is not
    # scored, and neither is a passage of the same name in another record.
    rows = [Row("r1", "anna", (1, 0), "d#0"), Row("r1", "anna", (0, 1), "d#1"), Row("r2", "anna", (0, 0), "d#0")]
    label = LABELS["retrieval"][0]
    one = decision(task="retrieval", chunk_id="d#0", label=label, decision=True)
    (found,) = score_annotators(ratings_of(rows, "retrieval"), Decisions((one,)))
    scored = (found.task, found.label, found.n, found.n_agree, found.n_yes, found.n_no)
    assert scored == ("retrieval", label, 1, 1, 1, 0)


def test_decisions_on_scales_are_values_beside_those_of_a_task_with_a_label_of_the_same_name(tmp_path: Path) -> None:
    said = {"anna": {"accuracy": "right", "kind": "=advice", "sureness": "0.5"}, "ben": {"accuracy": "partly"}}
    export = write_claims(
        tmp_path / "export", [{"record_uuid": "r1", "annotator_id": n, **row} for n, row in said.items()]
    )
    (ratings,) = read_tables(export_files([export])).tables
    values = {"accuracy": "partly", "kind": "=advice", "sureness": "0.5", "complete": False}
    ours = decision(label="incomplete", decision=True)
    rows = (ours, *(decision(task="claims", label=label, decision=value) for label, value in values.items()))
    write_decisions(tmp_path / "decisions.csv", Decisions(rows))
    found = read_decisions(tmp_path / "decisions.csv")
    assert found == Decisions(rows)
    assert found.by_unit == {("r1", "", "incomplete"): True}
    assert found.by_task["claims"] == {("r1", "", label): value for label, value in values.items()}
    scores = {(each.label, each.annotator): each for each in score_annotators(ratings, found)}
    assert {key: each.agreement for key, each in scores.items()} == {
        ("accuracy", "anna"): 0,
        ("accuracy", "ben"): 1,
        ("complete", "anna"): 0,
        ("complete", "ben"): 0,
        ("kind", "anna"): 1,
        ("kind", "ben"): 0,
        ("sureness", "anna"): 1,
        ("sureness", "ben"): 0,
    }
    figures = [(each.n_no, each.yes_when_no, each.n_yes) for each in scores.values() if each.annotator == "anna"]
    assert figures == [(None, None, None), (1, 1, 0), (None, None, None), (None, None, None)]

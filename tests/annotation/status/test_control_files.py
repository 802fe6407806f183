"""Files of controls: what a person confirms is used, and nothing else."""

import csv
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from annotation.status.control_files import Known, balanced, read_controls, records_path, write_controls
from annotation.status.planting import plant_controls
from exports.cli import main
from pipeline.errors import BadRowsError, InputError
from pipeline.recording.run import read_records, write_records
from tests.annotation.status.test_planting import made

RECORDS = {made(each).record_uuid: made(each) for each in range(9)}
FIRST, SECOND = list(RECORDS)[:2]


def write(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def known(path: Path) -> list[tuple[str, dict[str, bool]]]:
    return [(unit.record.record_uuid, dict(unit.answers)) for unit in read_controls(path, RECORDS).units]


def test_a_planted_file_is_used_only_where_a_person_has_confirmed_it(tmp_path: Path) -> None:
    file = tmp_path / "controls.csv"
    planted = plant_controls(RECORDS.values(), 6)
    assert write_controls(file, planted) == records_path(file)
    records = {record.record_uuid: record for record in read_records(records_path(file))}
    with pytest.raises(InputError, match=r"No row of 'controls\.csv' is confirmed"):
        read_controls(file, records)
    with file.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    chosen = next(row for row in rows if row["kind"] == "refusal")
    chosen["confirmed"], chosen["response_on_topic"] = "YES", "no"
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0], delimiter=";")  # as a German Excel saves it
        writer.writeheader()
        writer.writerows(rows)
    found = read_controls(file, records)
    assert (len(found.units), found.unconfirmed) == (1, len(rows) - 1)
    (unit,) = found.units
    assert (unit.kind, unit.task, unit.record) == ("refusal", "generation", records[chosen["record_uuid"]])
    assert unit.answers == {
        "proper_action": False,
        "response_on_topic": False,
        "helpful": False,
        "incomplete": True,
        "unsafe_content": False,
    }


def test_a_list_of_known_answers_needs_no_confirmation_and_tells_its_task_by_its_labels(tmp_path: Path) -> None:
    file = write(tmp_path / "known.csv", "record_uuid,helpful,unsafe_content", f"{FIRST},True,", f"{SECOND},ja,nein")
    assert known(file) == [(FIRST, {"helpful": True}), (SECOND, {"helpful": True, "unsafe_content": False})]


def test_cells_that_a_spreadsheet_would_run_are_made_safe(tmp_path: Path) -> None:
    hostile = made(1).model_copy(update={"query": "=HYPERLINK(1)"})
    write_controls(tmp_path / "controls.csv", plant_controls([hostile, made(2)], 6))
    text = (tmp_path / "controls.csv").read_text(encoding="utf-8-sig")
    assert ",'=HYPERLINK(1)," in text
    assert ",=HYPERLINK" not in text


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("nobody,,yes,,", "line 2: there is no record 'nobody'"),
        (f"{FIRST},x#1,,yes,", "has no passage with the `chunk_id` 'x#1'"),
        (f"{FIRST},,maybe,,", "`helpful` is 'maybe'; write yes or no"),
        (f"{FIRST},,,,", "no one task has all of the labels (none is told)"),
        (f"{FIRST},,yes,yes,", "no one task has all of the labels topically_relevant, helpful"),
        (
            f"{FIRST},{made(0).chunks[0].chunk_id},,no,yes",
            "its answers contradict each other: where `evidence_sufficient` is yes, `topically_relevant` must be yes",
        ),
    ],
)
def test_rows_that_cannot_be_used_are_listed_and_nothing_is_read(tmp_path: Path, row: str, reason: str) -> None:
    file = write(tmp_path / "known.csv", "record_uuid,chunk_id,helpful,topically_relevant,evidence_sufficient", row)
    with pytest.raises(BadRowsError) as refused:
        read_controls(file, RECORDS)
    assert reason in str(refused.value)
    assert "nothing was pushed" in str(refused.value)


@pytest.mark.parametrize("kind", ["repeat", "company"])
def test_a_control_is_not_called_what_would_have_it_scored_otherwise(tmp_path: Path, kind: str) -> None:
    with pytest.raises(BadRowsError, match=f"line 2: `kind` is '{kind}', which means something else here"):
        read_controls(write(tmp_path / "known.csv", "record_uuid,kind,helpful", f"{FIRST},{kind},yes"), RECORDS)


def test_a_control_that_would_score_nothing_is_left_out_and_counted(tmp_path: Path) -> None:
    records = {each.record_uuid: each for each in (made(1), made(2))}
    one, two = records
    (tmp_path / "k.csv").write_text(f"record_uuid,helpful,incomplete\n{one},yes,\n{two},,no\n", encoding="utf-8")
    found = read_controls(tmp_path / "k.csv", records, ["helpful"])
    assert ([unit.record.record_uuid for unit in found.units], found.unscored) == ([two], 1)
    with pytest.raises(InputError, match="every label that it tells is skipped"):
        read_controls(tmp_path / "k.csv", records, ["helpful", "incomplete"])


def test_a_unit_that_stands_twice_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "known.csv", "record_uuid,helpful", f"{FIRST},yes", f"{FIRST},no")
    with pytest.raises(BadRowsError, match="the same unit stands in line 2"):
        read_controls(file, RECORDS)


def test_a_file_that_is_none_of_controls_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is no file of controls: it needs the column `record_uuid`"):
        read_controls(write(tmp_path / "known.csv", "id,helpful", "1,yes"), RECORDS)


def units(*answers: dict[str, bool]) -> list[Known]:
    return [Known(line, "generation", made(line), "", "known", given) for line, given in enumerate(answers, start=2)]


def test_a_label_with_one_answer_only_is_refused_by_name() -> None:
    with pytest.raises(BadRowsError) as refused:
        balanced(units({"helpful": True, "incomplete": True}, {"helpful": False, "incomplete": True}), "en")
    assert "`incomplete` (generation, en): 2 controls with yes, none with no" in str(refused.value)
    assert "`helpful`" not in str(refused.value)


@pytest.mark.parametrize("common", [True, False])
def test_what_would_be_more_than_two_thirds_of_a_label_is_not_counted_and_said(common: bool) -> None:
    found = balanced(units(*({"helpful": common},) * 9, *({"helpful": not common},) * 2), "en")
    counted = [unit.answers["helpful"] for unit in found.units if unit.answers]
    assert (counted.count(common), counted.count(not common), len(found.units)) == (4, 2, 11)
    (line,) = found.dropped
    assert "`helpful` (generation, en): 5 of 9 controls" in line
    assert found.few == (f"`helpful` (generation, en): 2 controls with {'no' if common else 'yes'}",)


def test_the_next_command_can_be_pasted_where_the_file_has_a_blank_in_its_name(tmp_path: Path) -> None:
    records, out = tmp_path / "records.jsonl", tmp_path / "my controls.csv"
    write_records(records, RECORDS.values())
    result = CliRunner().invoke(main, ["annotation", "controls", "plant", str(records), "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert shlex.split(result.stderr.splitlines()[-1])[-2:] == ["push", str(out)]

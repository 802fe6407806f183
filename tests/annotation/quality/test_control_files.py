"""Files of known answers: which rows are used, and which of their answers count."""

from pathlib import Path
from uuid import UUID

import pytest

from annotation.quality.control_files import Known, balanced, read_controls
from pipeline.core.errors import BadRowsError, InputError
from pipeline.records.schema import Passage, QueryResponse, Source, join_context


def made(number: int) -> QueryResponse:
    chunks = tuple(
        Passage(
            chunk_id=f"{number:016x}#{rank}",
            doc_id=f"{number:016x}",
            chunk_rank=rank,
            text=f"The N{number} bridge was opened in {1900 + number}. It has {rank + 40} lanes and a footway for all.",
            url=f"https://bridges{rank}.example/{number}",
        )
        for rank in range(1, 4)
    )
    return QueryResponse(
        record_uuid=str(UUID(int=number << 80, version=4)),
        query=f"Was it opened in {1900 + number}?",
        answer=f"N{number}: {1900 + number} [1] [2].",
        language="en",
        sources=tuple(
            Source(n=n, url=f"https://bridges{n}.example/{number}", host=f"bridges{n}.example", state="read")
            for n in (1, 2)
        ),
        chunks=chunks,
        context_set=join_context(chunks),
    )


RECORDS = {made(each).record_uuid: made(each) for each in range(9)}
FIRST, SECOND = list(RECORDS)[:2]


def write(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_a_file_is_used_only_where_a_person_has_confirmed_its_rows(tmp_path: Path) -> None:
    rows = (
        "confirmed;kind;record_uuid;helpful",
        f";refusal;{FIRST};no",
        f"YES;refusal;{SECOND};no",
    )  # as Excel saves it
    with pytest.raises(InputError, match=r"No row of 'controls\.csv' is confirmed"):
        read_controls(write(tmp_path / "controls.csv", *rows[:2]), RECORDS)
    found = read_controls(write(tmp_path / "controls.csv", *rows), RECORDS)
    (unit,) = found.units
    assert (found.unconfirmed, unit.kind, unit.task, unit.record) == (1, "refusal", "generation", RECORDS[SECOND])
    assert unit.answers == {"helpful": False}


def test_known_answers_need_no_confirmation_and_labels_with_one_answer_are_left_out(tmp_path: Path) -> None:
    file = write(tmp_path / "known.csv", "record_uuid,helpful,unsafe_content", f"{FIRST},True,", f"{SECOND},ja,nein")
    known = [(unit.record.record_uuid, dict(unit.answers)) for unit in read_controls(file, RECORDS).units]
    assert known == [(FIRST, {"helpful": True}), (SECOND, {"helpful": True, "unsafe_content": False})]
    with pytest.raises(InputError, match=r"is no file of controls: it needs the column `record_uuid`"):
        read_controls(write(tmp_path / "known.csv", "id,helpful", "1,yes"), RECORDS)
    found = balanced(units({"helpful": True, "incomplete": True}, {"helpful": False}, {"incomplete": True}), "en")
    assert found.dropped == ("`incomplete` (generation, en): 2 controls with yes, as none has no",)
    assert [dict(unit.answers) for unit in found.units] == [{"helpful": True}, {"helpful": False}]
    with pytest.raises(BadRowsError, match=r"`incomplete` .generation, en.: 1 control with yes, as none has no"):
        balanced(units({"incomplete": True}), "en")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("nobody,,,yes,,", "line 2: there is no record 'nobody'"),
        (f"{FIRST},,x#1,,yes,", "has no passage with the `chunk_id` 'x#1'"),
        (f"{FIRST},,,maybe,,", "`helpful` is 'maybe'; write yes or no"),
        (f"{FIRST},,,,,", "no one task has all of the labels (none is told)"),
        (f"{FIRST},,,yes,yes,", "no one task has all of the labels topically_relevant, helpful"),
        (f"{FIRST},,{made(0).chunks[0].chunk_id},,no,yes", "where `evidence_sufficient` is yes, `topically_relevant`"),
        (f"{FIRST},repeat,,yes,,", "line 2: `kind` is 'repeat', which means something else here"),
        (f"{FIRST},company,,yes,,", "line 2: `kind` is 'company', which means something else here"),
        (f"{FIRST},,,yes,,\n{FIRST},,,no,,", "the same unit stands in line 2"),
    ],
    ids=range(9),
)
def test_rows_that_cannot_be_used_are_listed_and_nothing_is_read(tmp_path: Path, row: str, reason: str) -> None:
    header = "record_uuid,kind,chunk_id,helpful,topically_relevant,evidence_sufficient"
    with pytest.raises(BadRowsError) as refused:
        read_controls(write(tmp_path / "known.csv", header, row), RECORDS)
    assert reason in str(refused.value)
    assert "nothing was pushed" in str(refused.value)


def units(*answers: dict[str, bool]) -> list[Known]:
    return [Known(line, "generation", made(line), "", "known", given) for line, given in enumerate(answers, start=2)]


@pytest.mark.parametrize("common", [True, False])
def test_what_would_be_more_than_two_thirds_of_a_label_is_not_counted_and_said(common: bool) -> None:
    found = balanced(units(*({"helpful": common},) * 9, *({"helpful": not common},) * 2), "en")
    counted = [unit.answers["helpful"] for unit in found.units if unit.answers]
    assert (counted.count(common), counted.count(not common), len(found.units)) == (4, 2, 11)
    (line,) = found.dropped
    assert "`helpful` (generation, en): 5 of 9 controls" in line
    assert found.few == (f"`helpful` (generation, en): 2 controls with {'no' if common else 'yes'}",)

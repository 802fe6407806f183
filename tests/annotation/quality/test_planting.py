"""Controls made from records, and the file in which a person confirms them."""

import csv
import re
import shlex
from pathlib import Path
from uuid import UUID

import pytest
from click.testing import CliRunner

from annotation.argilla.display import to_records
from annotation.argilla.labels import LABELS, TASKS, broken_rules
from annotation.argilla.wording import read_wording
from annotation.quality.control_files import Known, balanced, read_controls, records_path, write_controls
from annotation.quality.planting import Planted, plant_controls
from exports.cli import main
from pipeline.core.errors import BadRowsError, InputError
from pipeline.records.run import read_records, write_records
from pipeline.records.schema import Passage, QueryResponse, Source, join_context

WORDS = {
    "en": ("The {} bridge was opened in {}. It has {} lanes and a footway for everybody.", "Was it opened in {}?"),
    "de": ("Die Brücke {} wurde {} eröffnet. Sie hat {} Spuren und einen Gehweg für alle.", "Wurde sie {} eröffnet?"),
    "ja": ("{}橋は{}年に開通しました。この橋には{}本の車線と歩行者用の通路があります。", "{}年に開通しましたか。"),
}


def made(number: int, language: str = "en") -> QueryResponse:
    text, query = WORDS[language]
    chunks = tuple(
        Passage(
            chunk_id=f"{number:016x}#{rank}",
            doc_id=f"{number:016x}",
            chunk_rank=rank,
            text=text.format(f"N{number}", 1900 + number, rank + 40),
            url=f"https://bridges{rank}.example/{number}",
        )
        for rank in range(1, 4)
    )
    return QueryResponse(
        record_uuid=str(UUID(int=number << 80, version=4)),
        query=query.format(1900 + number),
        answer=f"N{number}: {1900 + number} [1] [2].",
        language=language,
        sources=tuple(
            Source(n=n, url=f"https://bridges{n}.example/{number}", host=f"bridges{n}.example", state="read")
            for n in (1, 2)
        ),
        chunks=chunks,
        context_set=join_context(chunks),
    )


def planted(language: str = "en", number: int = 18) -> list[Planted]:
    return plant_controls([made(each, language) for each in range(40)], number)


def of_kind(kind: str, language: str = "en") -> tuple[Planted, QueryResponse]:
    found = next(each for each in planted(language) if each.kind == kind)
    return found, next(record for n in range(40) if (record := made(n, language)).record_uuid == found.made_from)


@pytest.mark.parametrize("language", WORDS)
def test_each_label_has_proposals_of_both_answers_or_untouched_units_for_a_person(language: str) -> None:
    found = planted(language)
    for task in TASKS:
        of_task = [each for each in found if each.task == task]
        assert len(of_task) >= 18
        untouched = sum(each.kind == "untouched" for each in of_task)
        for label in LABELS[task]:
            known = [each.answers[label] for each in of_task if label in each.answers]
            both = {True, False} <= set(known)
            assert both or 3 * untouched >= len(known), (task, label, known)
        assert not [each for each in of_task if broken_rules(task, each.answers)]


def test_the_same_seed_gives_the_same_controls_with_ids_of_their_own_that_look_like_records() -> None:
    assert planted() == planted()
    records = [made(each) for each in range(40)]
    assert plant_controls(reversed(records), 6) == plant_controls(records, 6)
    assert plant_controls(records, 6, seed=1) != plant_controls(records, 6)
    bare = [each.model_copy(update={"chunks": (), "context_set": ""}) for each in records[:9]]
    assert {each.task for each in plant_controls(bare, 6)} == {"generation"}
    assert plant_controls([], 6) == []
    records = {made(each).record_uuid for each in range(40)}
    for each in planted():
        assert each.record.record_uuid not in records
        assert UUID(each.record.record_uuid).version == 4
        assert each.made_from in records
        bodies = to_records(each.record, read_wording("en"))[each.task]
        assert len(bodies) == (3 if each.task == "retrieval" else 1)
        ranks = [passage.chunk_rank for passage in each.record.chunks]
        assert ranks == list(range(1, len(ranks) + 1))
        assert each.record.context_set == join_context(each.record.chunks)


def test_foreign_passages_added_sentences_dead_sources_and_quoted_answers_are_what_they_say() -> None:
    found, before = of_kind("foreign_passage")
    passage = next(each for each in found.record.chunks if each.chunk_id == found.chunk_id)
    assert passage.doc_id != before.chunks[0].doc_id
    assert found.answers == dict.fromkeys(LABELS["retrieval"], False)
    found = [each for each in planted(number=40) if each.kind == "added_sentence"]
    sentences = [each.what.partition(": ")[2] for each in found]
    assert len(set(sentences)) == len(sentences) > 1
    for each, sentence in zip(found, sentences, strict=True):
        assert sentence in each.record.answer
        assert sentence not in each.record.context_set
    found, _ = of_kind("dead_source")
    (dead,) = [source for source in found.record.sources if source.state == "no_such_site"]
    assert f"[{dead.n}]" in found.record.answer
    assert dead.url not in {passage.url for passage in found.record.chunks}
    assert found.answers == {"source_cited": True, "fabricated_source": True}
    found, before = of_kind("quoted_answer")
    quoted = re.sub(r" \[\d\]$", "", found.record.answer)
    assert any(quoted in passage.text for passage in before.chunks)
    assert (found.answers["support_present"], found.answers["unsupported_claim_present"]) == (True, False)
    found, _ = of_kind("no_citations")
    assert "[" not in found.record.answer
    assert found.answers == {"source_cited": False, "fabricated_source": False}


@pytest.mark.parametrize("language", WORDS)
def test_a_changed_number_is_another_one_of_its_kind(language: str) -> None:
    found, before = of_kind("changed_number", language)
    (old, new) = re.findall(r"\d+", found.what)
    assert old in before.context_set
    assert new not in before.context_set
    assert (len(new), found.record.answer) == (4, before.answer.replace(old, new))
    assert found.answers == {"unsupported_claim_present": True, "contradicted_claim_present": True}


def test_the_line_of_sources_without_a_place_is_in_no_control_and_its_sources_count_as_not_cited() -> None:
    def with_line(record: QueryResponse) -> QueryResponse:
        first, second = record.sources
        sources = (first.model_copy(update={"cited": "cited"}), second.model_copy(update={"cited": "seen"}))
        answer = record.answer.replace(" [2]", "") + "\n\n[2]"
        return record.model_copy(update={"answer": answer, "sources": sources})

    found = plant_controls([with_line(made(each)) for each in range(40)], 18)
    assert {each.kind for each in found} == {each.kind for each in planted()}
    for each in found:
        marked = [source for source in each.record.sources if f"[{source.n}]" in each.record.answer]
        assert all(source.cited == "cited" for source in marked)
        assert not each.record.answer.endswith("\n\n[2]")
        gone = [source for source in each.record.sources if source.state == "gone"]
        assert all(source in marked for source in gone)


@pytest.mark.parametrize("language", WORDS)
def test_refusals_and_dangerous_advice_are_in_the_language_of_the_answer(language: str) -> None:
    signs = {"en": r"[a-z ]{9}", "de": r"\b(?:ich|man|der|die|den|allein|mit)\b", "ja": r"[ぁ-ん]{2}"}[language]
    for kind in ("refusal", "unsafe_advice"):
        found, before = of_kind(kind, language)
        assert re.search(signs, found.record.answer.replace(before.answer[:-1], ""))


RECORDS = {made(each).record_uuid: made(each) for each in range(9)}
FIRST, SECOND = list(RECORDS)[:2]


def write(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_a_planted_file_is_used_only_where_a_person_has_confirmed_it(tmp_path: Path) -> None:
    file = tmp_path / "controls.csv"
    assert write_controls(file, plant_controls(RECORDS.values(), 6)) == records_path(file)
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


def test_known_answers_need_no_confirmation_cells_are_safe_useless_controls_left_out(
    tmp_path: Path,
) -> None:
    file = write(tmp_path / "known.csv", "record_uuid,helpful,unsafe_content", f"{FIRST},True,", f"{SECOND},ja,nein")
    known = [(unit.record.record_uuid, dict(unit.answers)) for unit in read_controls(file, RECORDS).units]
    assert known == [(FIRST, {"helpful": True}), (SECOND, {"helpful": True, "unsafe_content": False})]
    hostile = made(1).model_copy(update={"query": "=HYPERLINK(1)"})
    write_controls(tmp_path / "controls.csv", plant_controls([hostile, made(2)], 6))
    text = (tmp_path / "controls.csv").read_text(encoding="utf-8-sig")
    assert ",'=HYPERLINK(1)," in text
    assert ",=HYPERLINK" not in text
    with pytest.raises(InputError, match=r"is no file of controls: it needs the column `record_uuid`"):
        read_controls(write(tmp_path / "known.csv", "id,helpful", "1,yes"), RECORDS)
    found = balanced(units({"helpful": True, "incomplete": True}, {"helpful": False}, {"incomplete": True}), "en")
    assert found.dropped == ("`incomplete` (generation, en): 2 controls with yes, as none has no",)
    assert [dict(unit.answers) for unit in found.units] == [{"helpful": True}, {"helpful": False}]
    with pytest.raises(BadRowsError, match=r"`incomplete` .generation, en.: 1 control with yes, as none has no"):
        balanced(units({"incomplete": True}), "en")
    records, out = tmp_path / "records.jsonl", tmp_path / "my controls.csv"
    write_records(records, RECORDS.values())
    result = CliRunner().invoke(main, ["annotation", "controls", "plant", str(records), "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert shlex.split(result.stderr.splitlines()[-1])[-2:] == ["push", str(out)]


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

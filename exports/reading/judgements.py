"""Files of judgements, and the records behind them (exports/contracts/results.md#with-a-judges-help)."""

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from annotation.argilla.display import shown_units
from annotation.argilla.labels import TASKS, TaskName, is_of_passages
from annotation.judge.judgements import GOOD, Judgement, read_judgement, unit_of
from exports.reading.input_files import input_file
from exports.reading.runs import COLUMNS, column_of
from exports.statistics.agreement_schema import JudgeFile
from exports.statistics.judge import JudgedUnits
from exports.statistics.ratings import InputFile, Ratings, UnitKey
from pipeline.core.errors import BadRowsError, InputError
from pipeline.core.sentences import sentences
from pipeline.core.terminal import counted, printable
from pipeline.records.run import numbered_lines, read_records
from pipeline.records.schema import QueryResponse

_say = sentences(__file__)

BAD_LINES_TOLD = 20  # So many bad lines of a file are told one by one; how many there are is told of all


class ReadJudgements(NamedTuple):
    judges: dict[str, dict[TaskName, JudgedUnits]]
    files: list[JudgeFile]
    remarks: list[str]  # Plain sentences about lines that were left out; empty where all count


def read_judges(paths: Sequence[Path]) -> ReadJudgements:
    """Judgements of all files; a bad line, or a second judgement of a unit by one judge, is left out with a remark."""
    judges: dict[str, dict[TaskName, JudgedUnits]] = {}
    files, remarks = [], []
    for path in {path.resolve(): path for path in paths}.values():
        bad, lines = _read_into(judges, path)
        if not lines:
            raise InputError(f"`{path.name}` holds no judgement: it is empty.")
        if len(bad) == lines:
            raise BadRowsError(f"`{path.name}` holds no judgement; none of its {lines} lines is one:", bad)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        files.append(JudgeFile(file=path.name, sha256=digest, lines=lines, bad_lines=len(bad)))
        remarks += _bad_line_remarks(path.name, bad)
    return ReadJudgements(judges, files, remarks)


def _read_into(judges: dict[str, dict[TaskName, JudgedUnits]], path: Path) -> tuple[list[str], int]:
    bad: list[str] = []
    lines = 0
    for number, line in numbered_lines(path):
        lines += 1
        try:
            judgement = read_judgement(line)
            unit_of(judgement)
            told = json.loads(line)
            name, evidence = told.get("model", ""), told.get("evidence")
            if not isinstance(name, str):
                raise InputError("`model` is no text")
            listed = evidence if isinstance(evidence, list) else []  # Other programs may write another form
            snippets = [each.get("snippet") for each in listed if isinstance(each, dict)]
            quotes = tuple(each for each in snippets if isinstance(each, str) and each.strip())
            _add(judges.setdefault(name or path.name, {}), judgement, quotes)
        except InputError as error:
            bad.append(printable(f"line {number}: {error}"))
    return bad, lines


def _add(by_task: dict[TaskName, JudgedUnits], judgement: Judgement, quotes: tuple[str, ...]) -> None:
    chunk_id = judgement.chunk_id if is_of_passages(judgement.task) else None
    unit = (judgement.record_uuid, chunk_id or "")
    table = by_task.setdefault(judgement.task, JudgedUnits({}, {}, {}))
    if judgement.status != GOOD:
        table.statuses[judgement.status] = table.statuses.get(judgement.status, 0) + 1
    elif unit in table.labels:
        raise InputError(f"a second judgement of {judgement.task} {unit_of(judgement)!r}")
    else:
        table.labels[unit] = {name: (label.value, label.p_yes) for name, label in judgement.labels.items()}
        if quotes:
            table.quotes[unit] = quotes


def _bad_line_remarks(name: str, bad: Sequence[str]) -> list[str]:
    if not bad:
        return []
    noun = "line is no judgement that counts and is" if len(bad) == 1 else "lines are no judgements that count and are"
    told = [f"{name}, {line}" for line in bad[:BAD_LINES_TOLD]]
    more = [f"{name}: {len(bad) - BAD_LINES_TOLD:,} more such lines."] if len(bad) > BAD_LINES_TOLD else []
    return [f"{name}: {len(bad):,} {noun} left out.", *told, *more]


class ReadJudged(NamedTuple):
    judge: str
    tasks: dict[TaskName, dict[UnitKey, dict[str, float]]]  # P(yes), of known records and units that annotators get
    known: dict[str, dict[str, str]]  # Of each record, by column of `provenance.csv`
    queries: dict[str, str]
    places: dict[str, set[int]]  # The numbers of the files that each of them is in, counted from 0
    files: list[InputFile]  # The files of judgements, then those of records
    remarks: list[str]


def read_judged(
    judgements: Sequence[Path],
    records: Sequence[Path],
    name: str | None,
    labelled: Collection[str],
    tables: Sequence[Ratings],
) -> ReadJudged:
    """What the judge (`name`, where the files have several) says of the records of these files, and of labelled ones.

    A unit counts where annotators would get it or voted on it: a judge may answer grounding without passages too.
    """
    read = read_judges(judgements)
    judge = _only_judge(list(read.judges), name)
    files = [InputFile(file=each.file, sha256=each.sha256, rows=each.lines) for each in read.files]
    found = ReadJudged(judge, {}, {}, {}, {}, files, list(read.remarks))
    shown: dict[TaskName, set[UnitKey]] = {task: set() for task in TASKS}
    for number, path in enumerate({path.resolve(): path for path in records}.values()):
        rows = 0
        for record in read_records(path):
            _add_record(found, record, number)
            for task, chunks in shown_units(record).items():
                shown[task].update((record.record_uuid, chunk) for chunk in chunks)
            rows += 1
        files.append(input_file(path, rows))
    there = {*found.known, *labelled}
    voted = {table.task: set(table.unit_keys) for table in tables}
    for task, units in read.judges[judge].items():
        of_records = {unit for unit in units.labels if unit[0] in there}
        counts = shown[task] | voted.get(task, set())
        if task == "generation":
            counts |= of_records
        found.tasks[task] = {
            unit: {label: p_yes for label, (_, p_yes) in labels.items()}
            for unit, labels in units.labels.items()
            if unit in of_records & counts
        }
        found.remarks.extend(_not_shown(task, of_records, counts))
    found.remarks.extend(_remarks(found, read.judges[judge], labelled, shown))
    if not any(found.tasks.values()):
        raise InputError(_say("unknown_records", judge=judge, records=", ".join(f"`{path}`" for path in records)))
    return found


def _only_judge(names: Sequence[str], wanted: str | None) -> str:
    listed = ", ".join(map(repr, sorted(names)))
    if wanted is None and len(names) > 1:
        raise InputError(_say("several_judges", count=len(names), listed=listed))
    if wanted is not None and wanted not in names:
        raise InputError(f"No judgement is of {wanted!r}. The judgements are of {listed}.")
    return wanted or names[0]


def _add_record(found: ReadJudged, record: QueryResponse, place: int) -> None:
    """Keep what is known of a record; where several files have it, the first that says something counts."""
    known = found.known.setdefault(record.record_uuid, {})
    for name in COLUMNS:
        value = column_of(record, name)
        if value and name not in known:
            known[name] = value
    found.queries.setdefault(record.record_uuid, " ".join(record.query.split()))
    found.places.setdefault(record.record_uuid, set()).add(place)


def _remarks(
    found: ReadJudged,
    judged: Mapping[TaskName, JudgedUnits],
    labelled: Collection[str],
    shown: Mapping[TaskName, Collection[UnitKey]],
) -> Iterator[str]:
    total = sum(len(units.labels) for units in judged.values())
    there = {*found.known, *labelled}
    unknown = sum(unit[0] not in there for units in judged.values() for unit in units.labels)
    if unknown:
        yield _say("unknown", unknown=unknown, total=total)
    statuses = Counter[str]()
    for units in judged.values():
        statuses.update(units.statuses)
    if statuses:
        told = ", ".join(f"{status} {count:,}" for status, count in sorted(statuses.items()))
        yield f"Judgements of {found.judge} that cannot be used: {statuses.total():,} ({told})."
    lacking = sum(record not in found.known for record in labelled)
    if lacking:
        yield _say("lacking", lacking=lacking, records=len(labelled))
    for task, by_unit in found.tasks.items():
        if not by_unit:
            continue
        missing, all_units = len(set(shown[task]) - by_unit.keys()), len(shown[task])
        unit = "passage" if is_of_passages(task) else "record"
        if missing:
            yield (
                f"{task}: of {counted(all_units, unit)} of --records {missing:,} "
                f"{'has' if missing == 1 else 'have'} no judgement of {found.judge}."
            )


def _not_shown(task: TaskName, judged: Collection[UnitKey], counts: Collection[UnitKey]) -> Iterator[str]:
    left_out = len(set(judged) - set(counts))
    if left_out:
        why = (
            "passages that --records does not have" if is_of_passages(task) else "records without passages in --records"
        )
        yield (
            f"{task}: of {counted(len(judged), 'judgement')} {left_out:,} {'is' if left_out == 1 else 'are'} of {why}: "
            "annotators never get them in this task, so they do not count."
        )

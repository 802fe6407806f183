"""A judge's judgements and the records that it judged: what the rates with its help are computed from.

Source: exports/contracts/results.md#with-a-judges-help.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from annotation.labels import TaskName
from exports.agreement.judge import JudgedUnits, UnitKey
from exports.agreement.schema import InputFile
from exports.reading._answer_facts import COLUMNS, column_of
from exports.reading.judgements import read_judges
from exports.reading.read import input_file
from pipeline.errors import InputError
from pipeline.recording.files import read_records
from pipeline.records import QueryResponse
from pipeline.text.terminal import counted


class ReadJudged(NamedTuple):
    """What one judge says, and of which records."""

    judge: str
    """Its name."""
    tasks: dict[TaskName, dict[UnitKey, dict[str, float]]]
    """Its probability of yes by task, unit and label, of known records only."""
    known: dict[str, dict[str, str]]
    """What is known of each record of the files, by `record_uuid` and column of `provenance.csv`."""
    queries: dict[str, str]
    """The query of each of them."""
    places: dict[str, set[int]]
    """The numbers of the files that each of them is in, counted from 0."""
    files: list[InputFile]
    """The files of judgements, then those of records."""
    remarks: list[str]
    """What does not count, in plain sentences."""


def read_judged(
    judgements: Sequence[Path], records: Sequence[Path], name: str | None, labelled: Collection[str]
) -> ReadJudged:
    """What the judge says of the records of these files, and of labelled ones.

    Args:
        judgements: Files of judgements, of one judge unless `name` tells which.
        records: Files of records: all that the judge judged, labelled or not.
        name: The judge, where the files have several.
        labelled: Ids of the records of the export.

    Raises:
        InputError: a file cannot be read, several judges are in the files and none is named, or none of the records is
            known.
        BadRowsError: lines of records are none, or no line of a file is a judgement.
    """
    read = read_judges(judgements)
    judge = _only_judge(list(read.judges), name)
    files = [InputFile(file=each.file, sha256=each.sha256, rows=each.lines) for each in read.files]
    found = ReadJudged(judge, {}, {}, {}, {}, files, list(read.remarks))
    passages: set[UnitKey] = set()
    for number, path in enumerate({path.resolve(): path for path in records}.values()):
        rows = 0
        for record in read_records(path):
            _add(found, record, number)
            passages.update((record.record_uuid, chunk.chunk_id) for chunk in record.chunks)
            rows += 1
        files.append(input_file(path, rows))
    there = {*found.known, *labelled}
    for task, units in read.judges[judge].items():
        found.tasks[task] = {
            unit: {label: p_yes for label, (_, p_yes) in labels.items()}
            for unit, labels in units.labels.items()
            if unit[0] in there
        }
    found.remarks.extend(_remarks(found, read.judges[judge], labelled, passages))
    if not any(found.tasks.values()):
        raise InputError(
            f"None of the judgements of {judge} is of a record of the export or of "
            f"{', '.join(f'`{path}`' for path in records)}. Name the records that were judged with `--records`."
        )
    return found


def _only_judge(names: Sequence[str], wanted: str | None) -> str:
    """The judge that helps.

    Raises:
        InputError: it is not there, or there are several and none is named.
    """
    listed = ", ".join(map(repr, sorted(names)))
    if wanted is None and len(names) > 1:
        raise InputError(
            f"The judgements are of {len(names)} judges: {listed}. One judge helps: name it with `--judge-name`."
        )
    if wanted is not None and wanted not in names:
        raise InputError(f"No judgement is of {wanted!r}. The judgements are of {listed}.")
    return wanted or names[0]


def _add(found: ReadJudged, record: QueryResponse, place: int) -> None:
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
    passages: Collection[UnitKey],
) -> Iterator[str]:
    """What does not count, and what is not there."""
    total = sum(len(units.labels) for units in judged.values())
    unknown = total - sum(map(len, found.tasks.values()))
    if unknown:
        yield (
            f"Judgements of records that neither the export nor the files of --records name: {unknown:,} of {total:,}. "
            "They do not count."
        )
    statuses = Counter[str]()
    for units in judged.values():
        statuses.update(units.statuses)
    if statuses:
        told = ", ".join(f"{status} {count:,}" for status, count in sorted(statuses.items()))
        yield f"Judgements of {found.judge} that cannot be used: {statuses.total():,} ({told})."
    lacking = sum(record not in found.known for record in labelled)
    if lacking:
        yield (
            f"Records of the export that the files of --records do not name: {lacking:,} of {len(labelled):,}. They "
            "count by what the export tells of them."
        )
    for task, by_unit in found.tasks.items():
        if not by_unit:
            continue
        if task == "retrieval":
            missing, all_units, unit = len(set(passages) - by_unit.keys()), len(passages), "passage"
        else:
            judged_records = {record for record, _ in by_unit}
            missing, all_units, unit = len(found.known.keys() - judged_records), len(found.known), "record"
        if missing:
            yield (
                f"{task}: of {counted(all_units, unit)} of --records {missing:,} "
                f"{'has' if missing == 1 else 'have'} no judgement of {found.judge}."
            )

"""Exports and what lies beside them in; what results are computed from, out."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from annotation.argilla.labels import TaskName
from exports.csv.schema import Work
from exports.reading import read as reading
from exports.reading.decisions import read_decisions
from exports.reading.definitions import dropped_tables
from exports.reading.input_files import column_rows, input_file
from exports.reading.judgements import ReadJudged, read_judged
from exports.reading.provenance import RecordTraces, provenance_files, read_provenance, tell_narratives, told_runs
from exports.reading.runs import read_runs
from exports.statistics.ratings import InputFile, all_labels
from exports.statistics.study import Judged, Study
from pipeline.core.errors import BadRowsError, InputError
from pipeline.core.tables import unescaped
from pipeline.core.terminal import counted
from pipeline.text.words import exchange_languages

_RECORD, _PROBABILITY = "record_uuid", "inclusion_probability"
_SMALLEST = 1e-6  # A smaller probability is no sample's, and its record would carry every rate alone


class Weights(NamedTuple):
    probabilities: dict[str, float]  # From a millionth to 1, by `record_uuid`, for exactly the records that have votes
    sampled: dict[str, float]  # The same for every record of the file
    file: InputFile
    remarks: list[str]


def read_weights(path: Path, records: Collection[str]) -> Weights:
    """The probabilities of these records; other columns of the file do not matter."""
    told: dict[str, float] = {}
    bad: list[str] = []
    advice = f"Weights are a CSV file with `{_RECORD}` and `{_PROBABILITY}`."
    for place, row in column_rows(path, (_RECORD, _PROBABILITY), advice, path.name, bad):
        record, probability = unescaped(row[_RECORD]), _probability(row[_PROBABILITY])
        if probability is None:
            found = repr(row[_PROBABILITY])
            bad.append(f"{place}, `{_PROBABILITY}`: found {found}, expected a number from {_SMALLEST:g} to 1.")
        elif not record.strip():
            bad.append(f"{place}: `{_RECORD}` is empty, every row needs one.")
        elif record in told:
            bad.append(f"{place}: a row above has the record {record!r} too; a record has one probability.")
        else:
            told[record] = probability
    if bad:
        raise BadRowsError(f"{counted(len(bad), 'row')} of `{path}` cannot be read; mend what is listed:", bad)
    lacking = sorted(set(records) - told.keys())
    if lacking:
        raise InputError(
            f"`{path}` has no probability for {counted(len(lacking), 'record')} of {len(records):,} with votes, such "
            f"as {lacking[0]!r}. Name the file of this sample, or export the sampled records only."
        )
    unknown = len(told) - len(records)
    remark = f"`{path.name}` has {counted(unknown, 'record')} without votes in these exports; they do not count."
    return Weights(
        {record: told[record] for record in sorted(records)},
        told,
        input_file(path, len(told)),
        [remark] if unknown else [],
    )


def _probability(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if _SMALLEST <= value <= 1 else None


class Judging(NamedTuple):
    judgements: tuple[Path, ...]
    records: tuple[Path, ...]  # Files of records: all that was judged, labelled or not
    name: str | None = None  # The judge, where the files have several


class ReadStudy(NamedTuple):
    study: Study
    inputs: tuple[InputFile, ...]  # All files that were read, exports first
    remarks: list[str]
    work: dict[TaskName, Work] | None  # As `ReadTables` has it
    queries: Mapping[str, str] = {}  # Of each record; empty where not known


def read_study(
    paths: Sequence[Path],
    tables: reading.ReadTables | None = None,
    *,
    runs: Sequence[Path] = (),
    weights: Path | None = None,
    decisions: Path | None = None,
    judging: Judging | None = None,
) -> ReadStudy:
    """Everything that results are computed from; `tables` are the ratings of these paths where they are read already.

    Raises:
        InputError: a path names no export, nobody submitted anything in any of them, or a file cannot be used.
        BadRowsError: cells cannot be read; every one of them is listed.
    """
    tables = reading.read_tables(reading.export_files(paths)) if tables is None else tables
    rated = sorted({record for table in tables.tables for record in table.records})
    if not rated:
        names = ", ".join(f"`{file.file}`" for file in tables.inputs) or "what was given"
        raise InputError(f"There is no submitted response in {names}. Export again when someone has submitted.")
    told = read_provenance(provenance_files(paths))
    remarks, inputs = [*tables.remarks, *told.remarks], [*tables.inputs, *told.files]
    rows = tables.facts
    ran = read_runs(runs, rows.known) if runs else None
    judged = (
        read_judged(judging.judgements, judging.records, judging.name, rows.known, tables.tables) if judging else None
    )
    provenance = {
        record: (judged.known.get(record, {}) if judged else {})
        | _filled(ran.provenance.get(record, {}) if ran else {})
        | rows.known.get(record, {})
        | _filled(told.rows.get(record, {}))
        for record in sorted({*rows.known, *(judged.known if judged else ())})
    }
    if judged:
        remarks += judged.remarks
        inputs += judged.files
    remarks += dropped_tables() if runs else []
    if ran:
        remarks += ran.remarks
        inputs += ran.files
    if not any(provenance[record].get("model_name") for record in rated):
        remarks.append(
            "Which model answered is known of no record. Export again with `citejury exports csv`, which writes "
            "provenance.csv beside the three files."
        )
    traces = {record: _traces(record, known, rows, judged) for record, known in provenance.items()}
    narratives = tell_narratives(traces, _names([*rows.places, *(judging.records if judging else ())]))
    remarks += narratives.remarks
    all_discarded = {table.task: table.n_discarded for table in tables.tables if table.n_discarded is not None}
    silent = [table for table in tables.tables if table.discards is None and all_discarded.get(table.task) != 0]
    study = Study(
        tuple(tables.tables),
        {record: provenance[record] for record in sorted(rows.known)},
        {record: narratives.clusters[record] for record in rows.known},
        discarded=None if silent else dict(rows.discarded),
        all_discarded=all_discarded,
        runs=ran.counts if ran else told_runs(told.rows.values()),
        arms=ran.arms if ran else {},
        answers=ran.answers if ran else None,
        other_language={
            record: exchange_languages(traces[record].query, language).differ
            for record in rated
            if traces[record].query and (language := provenance[record].get("language"))
        },
        judged=judged and Judged(judged.judge, judged.tasks, provenance, narratives.clusters),
    )
    queries = {record: trace.query for record, trace in traces.items()}
    whole = ReadStudy(study, tuple(inputs), remarks, tables.work, queries)
    whole = whole if weights is None else _with_weights(whole, weights, rated)
    return whole if decisions is None else _with_decisions(whole, decisions)


def _with_weights(read: ReadStudy, weights: Path, rated: Sequence[str]) -> ReadStudy:
    weighed = read_weights(weights, rated)
    judged = read.study.judged and read.study.judged._replace(sampled=weighed.sampled)
    study = read.study._replace(probabilities=weighed.probabilities, judged=judged)
    return read._replace(study=study, inputs=(*read.inputs, weighed.file), remarks=[*read.remarks, *weighed.remarks])


def _with_decisions(read: ReadStudy, decisions: Path) -> ReadStudy:
    decided = read_decisions(decisions)
    rated = {
        (table.task, *units[unit], label.name)
        for table in read.study.tables
        for units in [table.unit_keys]
        for label in all_labels(table)
        for unit in np.unique(label.units).tolist()
    }
    unknown = sum((row.task, row.record_uuid, row.chunk_id, row.label) not in rated for row in decided.rows)
    remarks = [f"`{decisions.name}` decides on units or labels without votes in these exports: {unknown:,}."]
    return read._replace(
        study=read.study._replace(decisions=decided.by_task),
        inputs=(*read.inputs, input_file(decisions, len(decided.rows))),
        remarks=[*read.remarks, *(remarks if unknown else ())],
    )


def _traces(
    record: str, known: Mapping[str, str], rows: reading.RecordFacts, judged: ReadJudged | None
) -> RecordTraces:
    query, exports = rows.queries.get(record, ""), rows.exports.get(record, set())
    if judged:
        query = query or judged.queries.get(record, "")
        exports = exports | {len(rows.places) + place for place in judged.places.get(record, ())}
    return RecordTraces(known.get("narrative_id", ""), query, frozenset(exports))


def _filled(row: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in row.items() if value}


def _names(places: Sequence[Path]) -> list[str]:
    names = [place.resolve().name for place in places]
    return [str(place) if names.count(name) > 1 else name for place, name in zip(places, names, strict=True)]

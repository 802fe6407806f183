"""Inclusion probabilities of sampled records: `sample.csv`, or any CSV file with the same two columns."""

from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from exports.agreement.schema import InputFile
from exports.reading.read import csv_rows, input_file
from pipeline.errors import BadRowsError, InputError
from pipeline.tables import unescaped
from pipeline.terminal import counted

_RECORD, _PROBABILITY = "record_uuid", "inclusion_probability"
_SMALLEST = 1e-6
"""A smaller probability is no sample's, and its record would carry every rate alone."""


class Weights(NamedTuple):
    """How likely each record came into the sample."""

    probabilities: dict[str, float]
    """From a millionth to 1, by `record_uuid`, for exactly the records that have votes."""
    sampled: dict[str, float]
    """The same for every record of the file."""
    file: InputFile
    remarks: list[str]
    """Plain sentences about rows that do not count."""


def read_weights(path: Path, records: Collection[str]) -> Weights:
    """The probabilities of these records; other columns of the file are let be.

    Raises:
        InputError: the file is no CSV in UTF-8, lacks a column, or has no probability for some of the records.
        BadRowsError: probabilities are none from a millionth to 1, or a record has two; each is listed.
    """
    rows = csv_rows(path)
    _, header = next(rows, (1, []))
    for column in (_RECORD, _PROBABILITY):
        if header.count(column) != 1:
            raise InputError(
                f"`{path}` needs the column `{column}` once, found it {header.count(column)} times. Weights are a CSV "
                f"file with `{_RECORD}` and `{_PROBABILITY}`."
            )
    record_at, probability_at = header.index(_RECORD), header.index(_PROBABILITY)
    told: dict[str, float] = {}
    bad: list[str] = []
    for line, cells in rows:
        where = f"{path.name}, line {line}"
        if len(cells) != len(header):
            bad.append(f"{where}: found {len(cells)} cells, the header has {len(header)}.")
            continue
        record, probability = unescaped(cells[record_at]), _probability(cells[probability_at])
        if probability is None:
            found = repr(cells[probability_at])
            bad.append(f"{where}, `{_PROBABILITY}`: found {found}, expected a number from {_SMALLEST:g} to 1.")
        elif not record.strip():
            bad.append(f"{where}: `{_RECORD}` is empty, every row needs one.")
        elif record in told:
            bad.append(f"{where}: a row above has the record {record!r} too; a record has one probability.")
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
    """The number; None where it is none from a millionth to 1."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if _SMALLEST <= value <= 1 else None

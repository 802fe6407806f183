"""Ratings made for tests: from rows, from the agreement cases, and drawn at random from a known population."""

import csv
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from annotation.argilla.labels import LABELS, TaskName
from exports.statistics.ratings import EPOCH, MICROSECOND, MISSING, FloatArray, IntArray, Ratings
from tests.support.places import DATA, SHARED

CASES = SHARED / "iaa-cases"
MADE_HERE = sorted((DATA / "agreement").glob("*.csv"))  # `tests/support/reference_cases.py` says how
SINGLE_LABEL = MADE_HERE + sorted((CASES / "open").glob("*.csv"))
START = datetime(2025, 3, 3, 10, tzinfo=UTC)


class Row(NamedTuple):
    record: str
    annotator: str
    labels: tuple[int, ...]
    chunk: str = ""
    at: datetime = START
    round: str = ""
    language: str = "en"


def ratings_of(rows: Sequence[Row], task: TaskName = "generation", n_duplicates: int = 0) -> Ratings:
    """Rows as `Ratings`, sorted as those promise; labels that a row does not give are missing."""
    width = len(LABELS[task])
    units = sorted({(row.record, row.chunk) for row in rows})
    records = sorted({record for record, _ in units})
    annotators = sorted({row.annotator for row in rows})
    rounds = list(dict.fromkeys(row.round for row in sorted(rows, key=lambda row: (row.at, row.round)) if row.round))
    languages = {(row.record, row.chunk): row.language for row in rows}
    ordered = sorted(rows, key=lambda row: (row.record, row.chunk, row.annotator))
    return Ratings(
        task=task,
        annotators=tuple(annotators),
        records=tuple(records),
        unit_records=numbers([records.index(record) for record, _ in units]),
        unit_chunks=tuple(chunk for _, chunk in units),
        unit_languages=tuple(languages[unit] for unit in units),
        units=numbers([units.index((row.record, row.chunk)) for row in ordered]),
        response_annotators=numbers([annotators.index(row.annotator) for row in ordered]),
        values=np.array(
            [(*row.labels, *[MISSING] * (width - len(row.labels))) for row in ordered], dtype=np.int8
        ).reshape(-1, width),
        moments=numbers([(row.at - EPOCH) // MICROSECOND for row in ordered]),
        rounds=tuple(rounds),
        response_rounds=numbers([rounds.index(row.round) if row.round else -1 for row in ordered]),
        n_duplicates=n_duplicates,
        discards=None,
    )


def numbers(values: Sequence[int]) -> IntArray:
    return np.array(values, dtype=np.int64)


def matrix_of(*units: str) -> FloatArray:
    """Units × annotators: each unit is a word with an answer for each annotator, 1, 0, or anything else for none."""
    return np.array([[float(answer) if answer in "01" else np.nan for answer in unit] for unit in units])


def ratings_of_matrix(matrix: FloatArray, records: Sequence[int] | None = None) -> Ratings:
    """Units × annotators of 0, 1 and NaN for a missing rating, as the first label; a record a unit if none are named.

    Fast: for simulations.
    """
    n_units, n_annotators = matrix.shape
    unit_records = np.arange(n_units) if records is None else numbers(records)
    units, annotators = np.nonzero(~np.isnan(matrix))
    values = np.full((len(units), len(LABELS["generation"])), MISSING, dtype=np.int8)
    values[:, 0] = matrix[units, annotators]
    return Ratings(
        task="generation",
        annotators=tuple(f"a{number:03d}" for number in range(n_annotators)),
        records=tuple(f"r{number:06d}" for number in range(int(unit_records.max(initial=-1)) + 1)),
        unit_records=unit_records,
        unit_chunks=tuple(f"c{number:06d}" for number in range(n_units)),
        unit_languages=("en",) * n_units,
        units=units,
        response_annotators=annotators,
        values=values,
        moments=np.full(len(units), (START - EPOCH) // MICROSECOND),
        rounds=(),
        response_rounds=np.full(len(units), -1),
        n_duplicates=0,
        discards=None,
    )


def ratings_of_case(path: Path) -> Ratings:
    """One of the single-label cases, each item in a record of its own."""
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    items = sorted({row["item_id"] for row in rows})
    annotators = sorted({row["annotator_id"] for row in rows})
    matrix = np.full((len(items), len(annotators)), np.nan)
    places = {name: number for number, name in enumerate(items)}
    seats = {name: number for number, name in enumerate(annotators)}
    for row in rows:
        matrix[places[row["item_id"]], seats[row["annotator_id"]]] = float(row["label"])
    return ratings_of_matrix(matrix)._replace(annotators=tuple(annotators))


def expected_of_case(path: Path) -> dict[str, Any]:
    return json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))

"""Distinct patterns of ratings: units on which the same annotators say the same are told once.

A few annotators leave few patterns, however many units there are. Then the totals of a resample are its totals of
patterns times the sums of each pattern, and one small product serves all labels and figures.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from annotation.argilla.labels import LABELS
from exports.statistics.ratings import MISSING, YES, BoolArray, FloatArray, IntArray, Ratings
from exports.statistics.resampling import Estimator, SparseSums, exact_addends
from exports.statistics.table import unit_sums

MOST_PATTERNS = 256  # With more patterns a label, totals of patterns cost more than they spare
_MOST_ANNOTATORS = 39  # 3 to this power is the last that 63 bits hold
DENSE = 2**23  # Numbers that an array of sums may hold; a larger one is kept sparse
_SPARSE_COST = 25  # An entry of a sparse array costs as much as so many numbers of a dense one, measured


class Entries(NamedTuple):
    patterns: IntArray  # Pattern of each number
    columns: IntArray
    values: FloatArray
    width: int  # k


class LabelPatterns(NamedTuple):
    """The ratings of one label by pattern; where there are too many patterns, each unit is one of its own."""

    label: str
    patterns: IntArray  # Pattern of each rating, in rising order; within one, ratings are sorted by annotator
    raters: IntArray  # Annotator of each rating
    yes: IntArray  # 1 where the rating says yes, 0 where it says no
    zeros: IntArray  # Ratings of each pattern that say no
    ones: IntArray  # Ratings of each pattern that say yes
    units: IntArray  # Units of each pattern
    unit_patterns: IntArray
    columns: slice  # Where the label's patterns stand among those of all labels

    @property
    def ratings(self) -> IntArray:
        return self.zeros + self.ones

    def total(self, entries: Entries) -> FloatArray:
        return np.bincount(entries.columns, entries.values * self.units[entries.patterns], entries.width).astype(
            np.float64, copy=False
        )


class TaskPatterns(NamedTuple):
    annotators: tuple[str, ...]  # Names of all annotators, sorted
    n_records: int
    unit_records: IntArray
    labels: tuple[LabelPatterns, ...]  # The labels in the order of the task
    counts: FloatArray | SparseSums | None  # records × patterns of all labels: units; None where each unit is one

    def frame(self, label: LabelPatterns, at_least: int) -> BoolArray:
        """Records with a unit that has so many ratings or more."""
        units = (label.ratings >= at_least)[label.unit_patterns]
        return np.bincount(self.unit_records[units], minlength=self.n_records) > 0

    def estimator(
        self,
        parts: Sequence[tuple[LabelPatterns, Entries]],
        formula: Callable[[FloatArray], FloatArray],
        frame: BoolArray,
    ) -> Estimator:
        """The estimator whose formula takes the totals of the parts' columns, one part after the other."""
        if self.counts is None:
            return Estimator(self.record_sums([entries for _, entries in parts]), formula, frame)
        n_units = len(self.unit_records)
        sums = [(label.columns, exact_addends(dense(entries, len(label.units)), n_units)) for label, entries in parts]

        def from_counts(totals: FloatArray) -> FloatArray:
            return formula(np.concatenate([totals[..., columns] @ each for columns, each in sums], axis=-1))

        return Estimator(self.counts, from_counts, frame)

    def record_sums(self, parts: Sequence[Entries]) -> FloatArray | SparseSums:
        starts = np.cumsum([0, *(entries.width for entries in parts)])
        return _gathered(
            np.concatenate([self.unit_records[entries.patterns] for entries in parts]),
            np.concatenate([entries.columns + start for entries, start in zip(parts, starts, strict=False)]),
            np.concatenate([entries.values for entries in parts]),
            (self.n_records, int(starts[-1])),
        )


def task_patterns(ratings: Ratings) -> TaskPatterns:
    n_units = len(ratings.unit_records)
    codes = [_pattern_codes(ratings, column) for column in range(ratings.values.shape[1])]
    few = all(found is not None and len(found[0]) <= MOST_PATTERNS for found in codes)
    labels: list[LabelPatterns] = []
    start = 0
    for column, (label, found) in enumerate(zip(LABELS[ratings.task], codes, strict=True)):
        if few and found is not None:
            firsts, unit_patterns = found
        else:
            firsts = unit_patterns = np.arange(n_units)
        labels.append(_label_patterns(ratings, column, label, firsts, unit_patterns, start))
        start += len(firsts)
    return TaskPatterns(
        annotators=ratings.annotators,
        n_records=len(ratings.records),
        unit_records=ratings.unit_records,
        labels=tuple(labels),
        counts=_pattern_counts(ratings, labels, start) if few else None,
    )


def _pattern_codes(ratings: Ratings, column: int) -> tuple[IntArray, IntArray] | None:
    """The first unit of each pattern and the pattern of each unit; None where annotators are too many to tell."""
    if len(ratings.annotators) > _MOST_ANNOTATORS:
        return None
    codes = np.zeros(len(ratings.unit_records), dtype=np.int64)
    digits = ratings.values[:, column].astype(np.int64) - MISSING
    np.add.at(codes, ratings.units, 3**ratings.response_annotators * digits)
    _, firsts, unit_patterns = np.unique(codes, return_index=True, return_inverse=True)
    return firsts, unit_patterns


def _label_patterns(
    ratings: Ratings, column: int, label: str, firsts: IntArray, unit_patterns: IntArray, start: int
) -> LabelPatterns:
    number = np.full(len(ratings.unit_records), -1)
    number[firsts] = np.arange(len(firsts))
    kept = (ratings.values[:, column] != MISSING) & (number[ratings.units] >= 0)
    patterns = number[ratings.units[kept]]
    order = np.argsort(patterns, kind="stable")
    patterns, raters = patterns[order], ratings.response_annotators[kept][order]
    yes = (ratings.values[kept, column][order] == YES).astype(np.int64)
    n_ratings = np.bincount(patterns, minlength=len(firsts))
    ones = np.bincount(patterns[yes == 1], minlength=len(firsts))
    return LabelPatterns(
        label=label,
        patterns=patterns,
        raters=raters,
        yes=yes,
        zeros=n_ratings - ones,
        ones=ones,
        units=np.bincount(unit_patterns, minlength=len(firsts)),
        unit_patterns=unit_patterns,
        columns=slice(start, start + len(firsts)),
    )


def _pattern_counts(ratings: Ratings, labels: Sequence[LabelPatterns], width: int) -> FloatArray | SparseSums:
    records = np.concatenate([ratings.unit_records] * len(labels))
    columns = np.concatenate([label.unit_patterns + label.columns.start for label in labels])
    return _gathered(records, columns, np.ones(len(records)), (len(ratings.records), width))


def _gathered(
    records: IntArray, columns: IntArray, values: FloatArray, shape: tuple[int, int]
) -> FloatArray | SparseSums:
    """The array of records × columns that the entries add up to, sparse where that is smaller or faster."""
    size = shape[0] * shape[1]
    if size <= min(DENSE, _SPARSE_COST * len(records)):
        return np.bincount(records * shape[1] + columns, values, size).astype(np.float64, copy=False).reshape(shape)
    order = np.argsort(records, kind="stable")
    return SparseSums(records[order], columns[order], values[order], shape)


def dense(entries: Entries, n_patterns: int) -> FloatArray:
    shape = (n_patterns, entries.width)
    cells = np.bincount(entries.patterns * entries.width + entries.columns, entries.values, shape[0] * shape[1])
    return cells.astype(np.float64, copy=False).reshape(shape)


def core_entries(label: LabelPatterns) -> Entries:
    """The sums of each pattern that coefficients are functions of, in the order of `Sums`."""
    return _entries_of(np.stack(unit_sums(label.zeros, label.ones), axis=1))


def _entries_of(sums: FloatArray) -> Entries:
    patterns, columns = np.nonzero(sums)
    return Entries(patterns, columns, sums[patterns, columns], sums.shape[1])

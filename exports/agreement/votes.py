"""Yes and no counted by unit and label, and what a record's units add up to."""

from typing import NamedTuple

import numpy as np

from exports.agreement.coefficients import unit_sums
from exports.agreement.ratings import NO, YES, FloatArray, IntArray, LabelArray, Ratings


class Votes(NamedTuple):
    """Ratings of each unit, or of each part of one: units × labels, or a number a unit where it is about one label."""

    zeros: IntArray
    """Ratings that say no."""
    ones: IntArray
    """Ratings that say yes."""

    @property
    def ratings(self) -> IntArray:
        """Ratings of either kind."""
        return self.zeros + self.ones


def count_votes(values: LabelArray, units: IntArray, n_units: int) -> Votes:
    """Votes of each unit on each label, from responses × labels and the number of each response's unit."""

    def count(value: int) -> IntArray:
        columns = [np.bincount(units[column == value], minlength=n_units) for column in values.T]
        return np.stack(columns, axis=1).astype(np.int64)

    return Votes(count(NO), count(YES))


def label_votes(ratings: Ratings, column: int) -> Votes:
    """Votes of each unit on one label of the task: one number a unit."""
    votes = count_votes(ratings.values[:, [column]], ratings.units, len(ratings.unit_records))
    return Votes(votes.zeros[:, 0], votes.ones[:, 0])


def alpha_sums(votes: Votes, records: IntArray, n_records: int) -> FloatArray:
    """What alpha is a function of, for each record: records × three numbers a label, label after label.

    They are the sums of `zeros`, `ones` and `disagreement` over the record's pairable units.
    """
    sums = unit_sums(votes.zeros, votes.ones)
    columns = np.stack([sums.zeros, sums.ones, sums.disagreement], axis=2)
    columns = columns.reshape(len(records), 3 * votes.ones.shape[1])
    return np.stack([np.bincount(records, column, n_records) for column in columns.T], axis=1)


def alphas(totals: FloatArray) -> FloatArray:
    """Krippendorff's alpha of each label from totals of `alpha_sums` (… × three a label): … × labels, NaN undefined."""
    zeros, ones, disagreement = totals[..., 0::3], totals[..., 1::3], totals[..., 2::3]
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = (zeros + ones - 1) * disagreement / (2 * zeros * ones)
    return np.where(zeros * ones > 0, 1 - distance, np.nan)

"""Units go in; sums over the units of one group and narrative come out: what rates and differences are made of."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from exports.agreement.consensus import BoolArray
from exports.agreement.ratings import FloatArray, IntArray
from exports.results._groups import Grouping
from exports.results._values import Values


class Cells(NamedTuple):
    """One row for each group and narrative that have a unit together, sorted by group, then by narrative."""

    narratives: IntArray
    """Number of the narrative."""
    starts: IntArray
    """Where the rows of each group begin, and the end of the last: groups + 1."""
    units: FloatArray
    """Cells × labels: units with a value."""
    undecided: FloatArray
    """Cells × labels: units with votes that settle nothing."""
    weights: FloatArray
    """Cells × labels: sum of the weights of units with a value."""
    squares: FloatArray
    """Cells × labels: sum of their squares."""
    totals: FloatArray
    """Cells × labels: sum of weight times value."""

    def of_group(self, group: int) -> slice:
        """The rows of a group."""
        return slice(int(self.starts[group]), int(self.starts[group + 1]))


def cells_of(values: Values, grouping: Grouping, narratives: IntArray, weights: FloatArray) -> Cells:
    """The sums of each group and narrative; `narratives` and `weights` are by record."""
    width = int(narratives.max(initial=0)) + 1
    keys = grouping.of_record[values.records] * width + narratives[values.records]
    found, cell = np.unique(keys, return_inverse=True)
    given = ~np.isnan(values.values)
    weight = weights[values.records][:, np.newaxis] * given
    return Cells(
        narratives=found % width,
        starts=np.searchsorted(found // width, np.arange(len(grouping.groups) + 1)),
        units=_sums(cell, len(found), given),
        undecided=_sums(cell, len(found), values.undecided),
        weights=_sums(cell, len(found), weight),
        squares=_sums(cell, len(found), weight**2),
        totals=_sums(cell, len(found), weight * np.where(given, values.values, 0)),
    )


def _sums(cell: IntArray, n_cells: int, columns: FloatArray | BoolArray) -> FloatArray:
    """The sum of each column over the units of each cell."""
    found: Sequence[FloatArray] = [
        np.bincount(cell, column, n_cells).astype(np.float64) for column in np.asarray(columns, np.float64).T
    ]
    return np.stack(found, axis=1)

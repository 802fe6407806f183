"""Differences between two groups as the test by exchange takes them."""

import numpy as np

from exports.statistics.exchange import Held, Side
from exports.statistics.ratings import FloatArray


def paired(differences: FloatArray) -> Held:
    """One answer of either group a narrative, which differ so."""
    n = len(differences)
    answers = np.arange(2 * n)
    first, shares = answers % 2 == 0, np.full(n, 1 / n)
    side = Side(answers[:1], answers, answers[:0], answers, answers // 2, first, np.ones(2 * n), shares)
    values = np.repeat(differences, 2) * np.where(first, 0.5, -0.5)
    return Held(values, float(values[first].sum()), side)

"""The interval of alpha where resampling alone promises too much: little or no disagreement, or hardly a rare value.

Source: exports/contracts/agreement.md#coverage.
"""

import math
from typing import NamedTuple

import numpy as np

from exports.agreement._resampling import BoolArray, Replicates, interval, interval_or_none
from exports.agreement.distributions import rounded
from exports.agreement.ratings import FloatArray, IntArray
from exports.agreement.schema import Interval, RefusedReason

_FEWEST_CARRIED, _FEWEST_CARRIED_OF_FEW = 2, 4
"""Records with a unanimous unit of each value, the second where records are few; fewer tell too little."""
_FEW_RECORDS = 50
"""Below so many records a rare value that is met twice was met by luck."""
_FEW_SPLIT = 5
"""With fewer records that hold a disagreement simulated intervals held alpha in .98 of the studies or more."""
_MANY_SPLIT, _MANY_CARRIED = 20, 10
"""With fewer such records simulated intervals of an absence held its effect in .25 to .92 of the studies."""
_ONE_SIDED = 0.05
_TWO_SIDED = 0.025
_HALVINGS = 60


class Support(NamedTuple):
    """What the interval of alpha on one label rests on."""

    carried: int
    """Records with a unit on which all agree on yes, or on no: whichever are fewer."""
    split: int
    """Records with a disagreement."""
    records: int
    """Records with a pairable unit."""
    least: float
    """The least alpha that would leave no disagreement on such records in one study of twenty."""
    least_of_few: float
    """The least alpha that would leave so few records with a disagreement in one study of forty, if each could hold the
    worst; -1 where they are not few."""


def alpha_support(zeros: IntArray, ones: IntArray, unit_records: IntArray, n_records: int) -> Support:
    """What alpha rests on, from each unit's ratings that say no and yes, and its record."""
    ratings = zeros + ones
    pairable = ratings >= 2
    carried = [_records_with(pairable & (each == 0), unit_records) for each in (zeros, ones)]
    worst = np.where(pairable, 2 * (ratings // 2) * (ratings - ratings // 2) / np.maximum(ratings - 1, 1), 0.0)
    n0, n1 = (float(each[pairable].sum()) for each in (zeros, ones))
    total = n0 + n1
    possible = 2 * n0 * n1 / (total * (total - 1)) if n0 * n1 else np.nan
    by_record = np.bincount(unit_records, worst, n_records).astype(np.float64)
    observed = _unseen_total(by_record) / max(total, 1)
    split = _records_with(pairable & (zeros * ones > 0), unit_records)
    records = _records_with(pairable, unit_records)
    of_few = -1.0
    if 0 < split < _FEW_SPLIT:
        most = _share_bound(split, records) * records * float(by_record.max())
        of_few = max(-1.0, 1 - most / max(total, 1) / possible)
    return Support(min(carried), split, records, max(-1.0, 1 - observed / possible), of_few)


def _records_with(units: BoolArray, unit_records: IntArray) -> int:
    """Records with such a unit."""
    return len(np.unique(unit_records[units]))


def _share_bound(few: int, of: int) -> float:
    """The share that would show so few of so many, or fewer, in one study of forty (Clopper & Pearson 1934)."""
    low, high = few / of, 1.0
    for _ in range(_HALVINGS):
        share = (low + high) / 2
        tail = sum(math.comb(of, k) * share**k * (1 - share) ** (of - k) for k in range(few + 1))
        low, high = (share, high) if tail > _TWO_SIDED else (low, share)
    return high


def _unseen_total(worst: FloatArray) -> float:
    """The most disagreement that records are expected to hold, if there is none to see in one study of twenty.

    A record of which the worst is w disagrees with a probability π; Π(1 − π) is .05, and Σπw the largest possible:
    π = 1 − λ/w where w is above λ, else 0. Records alike give the Clopper–Pearson bound 1 − .05^(1/n) times w.

    `worst` is the worst disagreement that each record can hold.
    """
    heights = np.sort(worst[worst > 0])[::-1]
    if not len(heights):
        return 0.0
    levels = (np.cumsum(np.log(heights)) + np.log(_ONE_SIDED)) / np.arange(1, len(heights) + 1)
    kept = int(np.flatnonzero(np.log(heights) > levels)[-1])
    return float((heights[: kept + 1] - np.exp(levels[kept])).sum())


def alpha_interval(replicates: Replicates, column: int, support: Support) -> Interval | RefusedReason:
    """The interval of a label's alpha, or why it is refused.

    Without any disagreement it is one-sided, from what such records could hide. With some, its lower end is never
    above that: who has seen a disagreement does not know more than who has seen none. Nor is it below what so few
    records with a disagreement allow: BCa of a handful of them swings, and more agreement would look like less.
    """
    defined = not np.isnan(replicates.estimates[column])
    found = interval(replicates, column)
    if defined and replicates.n_records > 1 and support.split == 0:
        found = Interval(low=rounded(support.least), high=1.0, method="one-sided")
    if not isinstance(found, Interval):
        return found
    if not _is_carried(support):
        return "too_few_rare_ratings"
    if found.method == "one-sided":
        return found
    update: dict[str, object] = {"conservative": support.split < _FEW_SPLIT}
    low = min(max(found.low, support.least_of_few), support.least)
    if low != found.low:
        update |= {"low": rounded(low), "method": "bounded"}
    return found.model_copy(update=update)


def alpha_interval_or_none(replicates: Replicates, column: int, support: Support) -> Interval | None:
    """The interval of a label's alpha; None where it is refused."""
    found = alpha_interval(replicates, column, support)
    return found if isinstance(found, Interval) else None


def joint_interval(replicates: Replicates, column: int, *supports: Support) -> Interval | None:
    """The interval of a difference or mean of alphas; None where it is refused, or resamples show little of one."""
    return interval_or_none(replicates, column) if all(map(_rests_on_resamples, supports)) else None


def _rests_on_resamples(support: Support) -> bool:
    """Whether resamples show how sure an alpha is: both values are agreed on, and there is a disagreement."""
    return _is_carried(support) and support.split > 0


def absence_interval(replicates: Replicates, column: int, support: Support) -> Interval | None:
    """The interval of alpha without somebody less alpha of all; None where it is refused, or would be too narrow."""
    enough = support.split >= _MANY_SPLIT and support.carried >= _MANY_CARRIED
    return interval_or_none(replicates, column) if enough else None


def _is_carried(support: Support) -> bool:
    """Whether both values are agreed on often enough."""
    return support.carried >= (_FEWEST_CARRIED if support.records >= _FEW_RECORDS else _FEWEST_CARRIED_OF_FEW)

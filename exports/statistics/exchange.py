"""Whether an annotator differs from the others by more than chance: whole votes on a record, exchanged among people.

If annotators are interchangeable, then of those who judged the same units of a record each could as well have given
the votes of any other. So their votes are dealt out anew, record by record, as whole blocks with all passages and
labels; who judged which units and the votes on each unit stay as they are. Whatever makes one person's votes on one
record hang together (a misread query, a bad quarter of an hour) stays together too.

Source: exports/contracts/agreement.md#annotators-who-stand-out.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from exports.statistics.distributions import holm
from exports.statistics.ratings import MISSING, YES, BoolArray, FloatArray, IntArray, Ratings, Votes, count_votes

_STEPS = 60  # of the share of others that say otherwise: exact for up to seven ratings a unit, else rounded to one
_SMALLEST_P = 1e-10  # What the transform leaves of rounding is smaller; a smaller p is given as this
_DIGITS = 10
_FEWEST_TO_TELL = 3  # Of two who differ nobody knows which one is off
_AT_ONCE = 2**20  # Numbers held in memory at a time while characteristic functions are multiplied
_NEVER = 1e-300  # Stands for 0 under a logarithm


class Exchange(NamedTuple):
    disagreement: FloatArray  # share of the other ratings of their units that say otherwise, mean over these units
    expected_disagreement: FloatArray  # Its mean over all exchanges
    p: FloatArray  # Share of the exchanges in which she would differ as much or more
    p_holm: FloatArray  # The same, corrected by Holm for all annotators and labels that have one


class _Blocks(NamedTuple):
    """The votes of each person in each record, sorted so that those who can be exchanged stand together."""

    people: IntArray  # Number of the person
    starts: IntArray  # Where each group of people who judged the same units of a record begins
    sizes: IntArray  # People of each group
    shares: FloatArray  # Blocks × labels: share of other ratings that say otherwise, summed over the units of the block
    steps: IntArray  # The same in whole steps, by which exchanges are compared
    compared: IntArray  # Blocks × labels: units that others rated too
    tellable: BoolArray  # Blocks × labels: whether one of the units has three ratings or more


def measure_exchange(ratings: Ratings) -> list[Exchange]:
    """By label; p is NaN of who judged the same units of a record as nobody else, or never with a third one."""
    blocks = _blocks_of(ratings)
    shape = (len(ratings.annotators), ratings.values.shape[1])
    p = np.full(shape, np.nan)
    observed, expected = np.full(shape, np.nan), np.full(shape, np.nan)
    sizes = np.repeat(blocks.sizes, blocks.sizes)
    for label in range(shape[1]):
        compared = np.bincount(blocks.people, blocks.compared[:, label], shape[0])
        means = np.repeat(np.add.reduceat(blocks.shares[:, label], blocks.starts) / blocks.sizes, blocks.sizes)
        some = compared > 0
        observed[some, label] = np.bincount(blocks.people, blocks.shares[:, label], shape[0])[some] / compared[some]
        expected[some, label] = np.bincount(blocks.people, means, shape[0])[some] / compared[some]
        can = np.bincount(blocks.people[blocks.tellable[:, label] & (sizes > 1)], minlength=shape[0]) > 0
        p[can, label] = _tail_shares(blocks, label, shape[0])[can]
    corrected = np.full(shape, np.nan)
    told = np.isfinite(p)
    corrected[told] = holm(p[told].tolist())
    return [Exchange(*columns) for columns in zip(observed.T, expected.T, p.T, corrected.T, strict=True)]


def _blocks_of(ratings: Ratings) -> _Blocks:
    votes = count_votes(ratings.values, ratings.units, len(ratings.unit_records))
    answered = ratings.values != MISSING
    own = Votes(votes.zeros[ratings.units], votes.ones[ratings.units])
    others = np.where(answered, own.ratings - 1, 0)
    unlike = np.where(ratings.values == YES, own.zeros, own.ones) * answered
    shares = unlike / np.maximum(others, 1)
    records = ratings.unit_records[ratings.units]
    keys, blocks = np.unique(records * len(ratings.annotators) + ratings.response_annotators, return_inverse=True)

    def summed(columns: FloatArray | IntArray) -> FloatArray:
        return np.stack([np.bincount(blocks, column, len(keys)) for column in columns.T], axis=1)

    marks = np.zeros(len(keys), dtype=np.uint64)
    answers = answered @ (1 << np.arange(answered.shape[1]))
    np.add.at(marks, blocks, _scattered(ratings.units << answered.shape[1] | answers))
    block_records, people = np.divmod(keys, max(len(ratings.annotators), 1))
    order = np.lexsort((marks, block_records))
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = np.diff(block_records[order]).astype(np.bool_) | np.diff(marks[order]).astype(np.bool_)
    starts = np.flatnonzero(new)
    return _Blocks(
        people=people[order],
        starts=starts,
        sizes=np.diff(np.append(starts, len(order))),
        shares=summed(shares)[order],
        steps=summed(np.rint(shares * _STEPS)).astype(np.int64)[order],
        compared=summed((others > 0).astype(np.int64)).astype(np.int64)[order],
        tellable=summed((others + 1 >= _FEWEST_TO_TELL).astype(np.int64))[order] > 0,
    )


def _scattered(numbers: IntArray) -> npt.NDArray[np.uint64]:
    """Different for different numbers, so that sums tell sets apart: SplitMix64 (Steele, Lea & Flood 2014)."""
    found = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        found = (found ^ found >> np.uint64(shift)) * np.uint64(factor)
    return found ^ found >> np.uint64(31)


def _tail_shares(blocks: _Blocks, label: int, n_people: int) -> FloatArray:
    """Share of the exchanges in which each person differs from the others at least as much as they do.

    Each exchange gives them one block of their group in every record, independently of the other records: the sum's
    distribution is the product of characteristic functions, so all exchanges count and none is drawn.
    """
    groups = np.repeat(np.arange(len(blocks.sizes)), blocks.sizes)
    steps = blocks.steps[:, label]
    excess = steps - np.minimum.reduceat(steps, blocks.starts)[groups] if len(steps) else steps
    open_groups = np.bincount(groups, excess, len(blocks.sizes)) > 0
    kept = open_groups[groups]
    if not kept.any():
        return np.ones(n_people)
    people, excess = blocks.people[kept], excess[kept] // np.gcd.reduce(excess[kept])
    groups = (np.cumsum(open_groups) - 1)[groups[kept]]
    marks = np.zeros(int(open_groups.sum()), dtype=np.uint64)
    np.add.at(marks, groups, _scattered(excess))
    _, firsts, kinds = np.unique(marks, return_index=True, return_inverse=True)
    values, places = np.unique(excess, return_inverse=True)
    first = np.isin(groups, firsts)
    counts = np.bincount(kinds[groups[first]] * len(values) + places[first], minlength=len(firsts) * len(values))
    shares = counts.reshape(-1, len(values)) / blocks.sizes[open_groups][firsts][:, np.newaxis]
    met = np.bincount(people * len(firsts) + kinds[groups], minlength=n_people * len(firsts))
    return _sum_tails(values, shares, met.reshape(n_people, -1), np.bincount(people, excess, n_people).astype(np.int64))


def _sum_tails(values: IntArray, shares: FloatArray, met: IntArray, sums: IntArray) -> FloatArray:
    """P(sum ≥ `sums`) of each person, whose sum has `met` independent terms of each kind; `shares` are kinds × values.

    The transform is long enough that what wraps around is less than 1e-13 of the whole (Bernstein's inequality).
    """
    largest = values[-1] * met.sum(axis=1)
    means, spreads = met @ (shares @ values), met @ (shares @ values**2 - (shares @ values) ** 2)
    reach = 2 * (20 * int(values[-1]) + 8 * math.sqrt(float(spreads.max()))) + 2
    length = 2 ** math.ceil(math.log2(min(float(largest.max()) + 1, reach)))
    bases = np.where(largest < length, 0, np.rint(means).astype(np.int64) - length // 2)
    profiles, same = np.unique(met, axis=0, return_inverse=True)
    masses = np.fft.irfft(np.exp(_log_transforms(values, shares, profiles, length)), length)
    found = np.empty(len(sums))
    for person, profile in enumerate(same.reshape(-1).tolist()):
        place = max(int(sums[person]) - int(bases[person]), 0)
        tail = np.roll(masses[profile], -int(bases[person]))[place:].sum() if place else 1.0
        found[person] = min(1.0, max(_SMALLEST_P, round(float(tail), _DIGITS)))
    return found


def _log_transforms(
    values: IntArray, shares: FloatArray, profiles: IntArray, length: int
) -> npt.NDArray[np.complex128]:
    """Profiles × frequencies. Without BLAS: its order of additions would depend on the number of threads."""
    frequencies = np.arange(length // 2 + 1)
    turns = np.exp(-2j * np.pi / length * (values[:, np.newaxis] * frequencies % length))
    found = np.zeros((len(profiles), len(frequencies)), dtype=np.complex128)
    rows = max(1, _AT_ONCE // max(len(frequencies), len(values)))
    for start in range(0, len(shares), rows):
        transforms = np.einsum("kv,vf->kf", shares[start : start + rows], turns)
        logarithms = np.log(np.where(np.abs(transforms) < _NEVER, _NEVER, transforms))
        for place, counts in enumerate(profiles[:, start : start + rows]):
            terms = np.flatnonzero(counts)
            found[place] += (counts[terms, np.newaxis] * logarithms[terms]).sum(axis=0)
    return found

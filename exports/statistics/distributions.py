"""What inference needs beyond numpy: Student's t, Wilson's interval, tails of sums, and Holm's correction."""

import math
from collections.abc import Sequence
from functools import cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

_Floats = npt.NDArray[np.float64]
_Ints = npt.NDArray[np.int64]

TAIL = 0.025  # What a 95 % interval leaves out on either side
NORMAL_QUANTILE = NormalDist().inv_cdf(1 - TAIL)
_MOST_DEGREES, _FEW_DEGREES = 2000, 200  # Beyond them Student's t is the normal with its series' first terms


@cache
def student_quantile(degrees: int) -> float:
    """The 97.5 % point of Student's t, found by halving (Abramowitz & Stegun 26.7.3 to 26.7.5)."""
    if degrees > _FEW_DEGREES:
        z, z2 = NORMAL_QUANTILE, NORMAL_QUANTILE**2
        terms = (z2 + 1) / 4, (5 * z2**2 + 16 * z2 + 3) / 96, (3 * z2**3 + 19 * z2**2 + 17 * z2 - 15) / 384
        return float(z + z * sum(term / degrees**power for power, term in enumerate(terms, start=1)))
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        angle = (low + high) / 2
        low, high = (angle, high) if _central_share(angle, degrees) < 1 - 2 * TAIL else (low, angle)
    return math.sqrt(degrees) * math.tan(low)


def student_cdf(value: float, degrees: int) -> float:
    """P(T ≤ value) of Student's t (Abramowitz & Stegun 26.7.3, 26.7.4, beyond 2,000 degrees of freedom 26.7.8)."""
    if degrees > _MOST_DEGREES:
        scale = math.sqrt(1 + value**2 / (2 * degrees))
        return NormalDist().cdf(value * (1 - 1 / (4 * degrees)) / scale)
    tail = (1 - _central_share(math.atan(abs(value) / math.sqrt(degrees)), degrees)) / 2
    return max(tail, 0.0) if value < 0 else 1 - max(tail, 0.0)


def _central_share(angle: float, degrees: int) -> float:
    """P(|T| ≤ t) of Student's t with angle = atan(t/√degrees)."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = degrees % 2
    term = cosine if odd else 1.0
    total = 0.0
    for factor in range(1 + odd, degrees, 2):
        total += term
        term *= cosine**2 * factor / (factor + 1)
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share, with at least one trial (Wilson 1927)."""
    share, z2 = successes / trials, NORMAL_QUANTILE**2
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = NORMAL_QUANTILE / (1 + z2 / trials) * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials**2))
    return max(0.0, centre - half), min(1.0, centre + half)


def largest_share(few: int, of: float) -> float:
    """The share that would show so few of so many, or fewer, in one study of forty (Clopper & Pearson 1934)."""
    if few >= of:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(50):
        share = (low + high) / 2
        term = tail = (1 - share) ** of
        for k in range(1, few + 1):
            term *= max(of - k + 1, 0.0) / k * share / (1 - share)
            tail += term
        low, high = (share, high) if tail > TAIL else (low, share)
    return high


def holm(p_values: Sequence[float]) -> list[float]:
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    corrected = [0.0] * len(p_values)
    largest = 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = largest
    return corrected


def rounded(value: float) -> float:
    """The value to 12 digits: those that follow are rounding of sums, not data."""
    return float(f"{value:.12g}")


SMALLEST_P = 1e-10  # What the transform leaves of rounding is smaller; a smaller p is given as this
_DIGITS = 10
_AT_ONCE = 2**20  # Numbers held in memory at a time while characteristic functions are multiplied
_NEVER = 1e-300  # Stands for 0 under a logarithm


def sum_tails(values: _Ints, shares: _Floats, met: _Ints, sums: _Ints) -> _Floats:
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
        found[person] = min(1.0, max(SMALLEST_P, round(float(tail), _DIGITS)))
    return found


def _log_transforms(values: _Ints, shares: _Floats, profiles: _Ints, length: int) -> npt.NDArray[np.complex128]:
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


_ONE_SIDED_QUANTILE, _FEWER, _IMAGINED_RECORDS = 1.645, 0.6, 0.4  # The second and third fitted on simulations
_FEWEST_TELLING, _HALVINGS = 4, 30


def most_alpha(counts: _Floats | _Ints, distances: _Floats, observed: _Floats, records: _Ints) -> float:
    """The largest alpha that is not refuted one-sidedly at .05, from what each unit adds; 1 without variation.

    `counts` of each value (values × units), its mean distance from all ratings, and the unit's disagreement. Alpha is
    below a where records add less to (1 − a) · expected − observed disagreement than chance allows: a score test, with
    part of a record imagined on which all agree on the rarest value, and a smaller quantile where few records tell.
    """
    total = float(counts.sum())
    mean = float(distances @ counts.sum(axis=1)) / max(total, 1)
    if mean <= 0 or total <= 1 or not observed.any():
        return 1.0
    chances = (2 * distances - mean) * total / (total - 1)
    expected, seen = (np.bincount(records, each) for each in (chances @ counts, observed))
    imagined = float(chances.max()) * total / len(np.unique(records))
    low, high = max(-1.0, 1 - float(seen.sum()) / float(expected.sum())), 1.0
    for _ in range(_HALVINGS):
        alpha = (low + high) / 2
        adds, one = (1 - alpha) * expected - seen, (1 - alpha) * imagined
        squares = float((adds**2).sum()) + _IMAGINED_RECORDS * one**2
        telling = max(squares**2 / (float((adds**4).sum()) + _IMAGINED_RECORDS * one**4), _FEWEST_TELLING)
        limit = _ONE_SIDED_QUANTILE * (1 - _FEWER / telling) * math.sqrt(squares)
        low, high = (alpha, high) if float(adds.sum()) + _IMAGINED_RECORDS * one >= -limit else (low, alpha)
    return high

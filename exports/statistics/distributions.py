"""What inference needs beyond numpy: Student's t, Wilson's interval, and p-values of many tests corrected by Holm."""

import math
from collections.abc import Sequence
from functools import cache
from statistics import NormalDist

TAIL = 0.025  # What a 95 % interval leaves out on either side
NORMAL_QUANTILE = NormalDist().inv_cdf(1 - TAIL)
_MOST_DEGREES = 2000  # Beyond them Student's t is the normal within its series' first term


@cache
def student_quantile(degrees: int) -> float:
    """The 97.5 % point of Student's t, found by halving (Abramowitz & Stegun 26.7.3 and 26.7.4)."""
    if degrees > _MOST_DEGREES:
        return NORMAL_QUANTILE + (NORMAL_QUANTILE**3 + NORMAL_QUANTILE) / (4 * degrees)
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

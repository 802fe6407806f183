"""95 % intervals from resamples: BCa, and the expanded percentile where that is undefined (section 6)."""

import math
from statistics import NormalDist
from typing import Literal

import numpy as np

from exports.agreement.figures import Interval, RefusedReason
from exports.agreement.ratings import FloatArray
from exports.agreement.resampling import Replicates

FEW_RECORDS = 20
"""With fewer records intervals cover 90 to 94 % instead of 95 %; the expanded percentile is nearer than BCa."""
UNDEFINED_SHARE = 0.05
"""Above this share of undefined resamples those that are left say too little."""
TIE = 1e-9
"""Replicates this near to the estimate are equal to it, but for rounding."""
NORMAL = NormalDist()
TAIL = 0.025
NORMAL_QUANTILE = NORMAL.inv_cdf(1 - TAIL)
MOST_DEGREES = 2000
"""Beyond them Student's t is the normal within its series' first term."""


def interval(replicates: Replicates, column: int) -> Interval | RefusedReason:
    """One interval, or why it is refused: `undefined`, `single_record`, `undefined_resamples`, `constant`.

    `constant` means that all resamples give the same value, so they tell nothing of how sure it is.
    """
    estimate = float(replicates.estimates[column])
    resampled = replicates.resampled[:, column]
    defined = resampled[~np.isnan(resampled)]
    if math.isnan(estimate):
        return "undefined"
    if replicates.n_records < 2:
        return "single_record"
    if undefined_share(resampled) > UNDEFINED_SHARE or not len(defined):
        return "undefined_resamples"
    if np.ptp(defined) <= TIE:
        return "constant"
    acceleration = float(replicates.acceleration[column])
    ends = bca_ends(defined, estimate, acceleration) if replicates.n_records >= FEW_RECORDS else None
    method: Literal["bca", "expanded_percentile"] = "bca" if ends else "expanded_percentile"
    low, high = ends or expanded_percentile_ends(defined, replicates.n_records)
    return Interval(low=rounded(low), high=rounded(high), method=method)


def undefined_share(resampled: FloatArray) -> float:
    """Share of the replicates of one figure that are undefined, exact to the last digit: 5 of 100 are 0.05."""
    return int(np.count_nonzero(np.isnan(resampled))) / len(resampled)


def share_below(defined: FloatArray, threshold: float) -> float:
    """Share of defined replicates below the threshold; those equal to it but for rounding are not."""
    return float(np.mean(defined < threshold - TIE))


def rounded(value: float) -> float:
    """The value to 12 digits: those that follow are rounding of sums, not data."""
    return float(f"{value:.12g}")


def bias_correction(resampled: FloatArray, estimate: float) -> float:
    """z0 = Φ⁻¹(share of defined replicates below the estimate, ties counted half); infinite where all are on one side.

    Source: Efron 1987.
    """
    below = np.count_nonzero(resampled < estimate - TIE)
    ties = np.count_nonzero(np.abs(resampled - estimate) <= TIE)
    share = (below + ties / 2) / len(resampled)
    if share in (0, 1):
        return math.inf if share else -math.inf
    return NORMAL.inv_cdf(share)


def bca_levels(z0: float, acceleration: float) -> tuple[float, float] | None:
    """Φ(z0 + (z0 ± 1.96)/(1 − a·(z0 ± 1.96))), lower first; None where that is not finite."""
    if not (math.isfinite(z0) and math.isfinite(acceleration)):
        return None
    shifted = (z0 - NORMAL_QUANTILE, z0 + NORMAL_QUANTILE)
    if any(1 - acceleration * each <= 0 for each in shifted):
        return None
    low, high = (NORMAL.cdf(z0 + each / (1 - acceleration * each)) for each in shifted)
    return low, high


def bca_ends(resampled: FloatArray, estimate: float, acceleration: float) -> tuple[float, float] | None:
    """The ends of the BCa interval from defined replicates; None where z0 or the acceleration is not finite."""
    levels = bca_levels(bias_correction(resampled, estimate), acceleration)
    return None if levels is None else quantiles(resampled, levels)


def percentile_ends(resampled: FloatArray) -> tuple[float, float]:
    """The 2.5 % and the 97.5 % point of defined replicates."""
    return quantiles(resampled, (TAIL, 1 - TAIL))


def expanded_percentile_ends(resampled: FloatArray, n: int) -> tuple[float, float]:
    """The percentile ends moved outwards, since resamples of n records vary too little.

    Their level is Φ(−√(n/(n − 1))·t), with t of n − 1 degrees of freedom.

    Source: Hesterberg 2015.
    """
    level = NORMAL.cdf(-math.sqrt(n / (n - 1)) * student_quantile(n - 1))
    return quantiles(resampled, (level, 1 - level))


def quantiles(resampled: FloatArray, levels: tuple[float, float]) -> tuple[float, float]:
    """Two quantiles of defined replicates, by linear interpolation."""
    low, high = np.quantile(resampled, levels)
    return float(low), float(high)


def student_quantile(degrees: int) -> float:
    """The 97.5 % point of Student's t, found by halving.

    Source: Abramowitz & Stegun 26.7.3 and 26.7.4, finite series for whole degrees of freedom.
    """
    if degrees > MOST_DEGREES:
        return NORMAL_QUANTILE + (NORMAL_QUANTILE**3 + NORMAL_QUANTILE) / (4 * degrees)
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        angle = (low + high) / 2
        low, high = (angle, high) if central_share(angle, degrees) < 1 - 2 * TAIL else (low, angle)
    return math.sqrt(degrees) * math.tan(low)


def central_share(angle: float, degrees: int) -> float:
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
    """Wilson's 95 % interval of a share, with at least one trial.

    Source: Wilson 1927.
    """
    share, z2 = successes / trials, NORMAL_QUANTILE**2
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = NORMAL_QUANTILE / (1 + z2 / trials) * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials**2))
    return max(0.0, centre - half), min(1.0, centre + half)

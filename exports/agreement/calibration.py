"""Whether probabilities of yes are what they say: reliability by bins, Brier's score, ECE and AUC."""

import numpy as np

from exports.agreement.coefficients import ratio
from exports.agreement.judge_figures import Calibration, JudgeReason, ReliabilityBin
from exports.agreement.ratings import FloatArray
from exports.agreement.resampling import BoolArray

BINS = 10


def calibrate(confidences: FloatArray, truths: BoolArray) -> Calibration:
    """The calibration of probabilities of yes against what is right, one of each a unit.

    Source: Brier 1950; Naeini, Cooper & Hauskrecht 2015 for the ECE with bins of one width; Hanley & McNeil 1982 for
    the AUC.
    """
    bins = reliability_bins(confidences, truths)
    n = len(truths)
    brier = float(np.mean((confidences - truths) ** 2)) if n else None
    gaps = [
        found.n * abs(found.share_yes - found.mean_confidence)
        for found in bins
        if found.share_yes is not None and found.mean_confidence is not None
    ]
    undefined: dict[str, JudgeReason] = {} if n else dict.fromkeys(("brier", "ece", "auc"), "no_compared_units")
    auc = area_under_curve(confidences, truths)
    if n and auc is None:
        undefined["auc"] = "jury_is_constant"
    return Calibration(bins=bins, brier=brier, ece=ratio(sum(gaps), n), auc=auc, undefined=undefined)


def reliability_bins(confidences: FloatArray, truths: BoolArray) -> tuple[ReliabilityBin, ...]:
    """Ten bins from 0 to 1; a probability on an end belongs to the bin above it, 1 to the last."""
    ends = np.arange(BINS + 1) / BINS
    places = np.clip(np.searchsorted(ends, confidences, side="right") - 1, 0, BINS - 1)
    counts = np.bincount(places, minlength=BINS).tolist()
    stated = np.bincount(places, confidences, BINS).tolist()
    true = np.bincount(places, truths, BINS).tolist()
    return tuple(
        ReliabilityBin(
            low=float(ends[place]),
            high=float(ends[place + 1]),
            n=counts[place],
            mean_confidence=ratio(stated[place], counts[place]),
            share_yes=ratio(true[place], counts[place]),
        )
        for place in range(BINS)
    )


def area_under_curve(confidences: FloatArray, truths: BoolArray) -> float | None:
    """The area under the ROC curve, from ranks with ties in the middle; None where all truths are the same."""
    n_yes = int(np.count_nonzero(truths))
    n_no = len(truths) - n_yes
    if not n_yes or not n_no:
        return None
    _, places, counts = np.unique(confidences, return_inverse=True, return_counts=True)
    middles = np.cumsum(counts) - (counts - 1) / 2
    rank_sum = float(middles[places][truths].sum())
    return (rank_sum - n_yes * (n_yes + 1) / 2) / (n_yes * n_no)

"""What to mind about figures of agreement, and what to do about it (exports/contracts/agreement.md#warnings)."""

import math
from collections.abc import Mapping
from statistics import NormalDist

import numpy as np

from exports.statistics import agreement_schema as schema
from exports.statistics.ratings import FloatArray, IntArray, Ratings, Votes, count_votes
from pipeline.core.sentences import packaged_table

_PARADOX_AGREEMENT, _PARADOX_ALPHA, _PARADOX_PREVALENCE = 0.85, 0.667, 0.6  # Of agreement, alpha, prevalence
_TARGET_ALPHA, _ONE_SIDED_95 = 0.667, 1.645  # What a sample should be able to show, and how surely
FEW_SHARED = 20  # Pairs that share fewer units have no interval, and their figures say little
_FEW_ITEMS = 30  # Fewer pairable units than this: the next ones can move every figure a lot
_RARE_CLASS = 10  # Fewer ratings of the rarer value than this among pairable units: one unit can turn the figures
_CONSTANT_RATER = 20  # An annotator with this many ratings and one value only: their kappa is 0 by construction
_SELECTION_LEVEL = 0.01  # An export has a dozen labels, so .05 would often warn by chance
_SELECTION_RECORDS = 10  # Of either kind that the selection test needs: its normal approximation fails below
_EARLIEST = 946_684_800_000_000  # 1 January 2000 UTC in microseconds since 1970; no response is older
_LATEST = 4_102_444_800_000_000  # 1 January 2100 UTC; so far ahead only a broken clock is
_LIMITS = {
    "few_items": _FEW_ITEMS,
    "few_records": schema.FEW_RECORDS,
    "few_shared": FEW_SHARED,
    "rare_class": _RARE_CLASS,
    "constant_rater": _CONSTANT_RATER,
    "target_alpha": _TARGET_ALPHA,
    "undefined": 100 * schema.UNDEFINED_SHARE,
}
ADVICE = {code: text.format(**_LIMITS) for code, text in packaged_table(__file__).items()}


def with_cautions(ratings: Ratings, labels: Mapping[str, schema.LabelAgreement]) -> dict[str, schema.LabelAgreement]:
    votes = count_votes(ratings.values, ratings.units, len(ratings.unit_records))
    by_annotator = count_votes(ratings.values, ratings.response_annotators, len(ratings.annotators))
    found: dict[str, schema.LabelAgreement] = {}
    for column, label in enumerate(ratings.labels):
        own, raters = (Votes(v.zeros[:, column], v.ones[:, column]) for v in (votes, by_annotator))
        warnings = label_warnings(labels[label], own, raters, ratings.unit_records)
        found[label] = labels[label].model_copy(update={"warnings": warnings})
    return found


def label_warnings(
    figures: schema.LabelAgreement, votes: Votes, raters: Votes, unit_records: IntArray
) -> tuple[schema.LabelWarning, ...]:
    pairable = votes.ratings >= 2
    zeros, ones = int(votes.zeros[pairable].sum()), int(votes.ones[pairable].sum())
    constant = (raters.ratings >= _CONSTANT_RATER) & ((raters.zeros == 0) | (raters.ones == 0))
    n_pairable = figures.n_pairable_items
    p = selection_p(votes, unit_records)
    holds: dict[schema.LabelWarning, bool] = {
        "NO_OVERLAP": n_pairable == 0 and np.count_nonzero(raters.ratings) != 1,
        "SINGLE_ANNOTATOR": n_pairable == 0 and np.count_nonzero(raters.ratings) == 1,
        "FEW_ITEMS": 0 < n_pairable < _FEW_ITEMS,
        "FEW_CLUSTERS": 0 < figures.n_cluster_records < schema.FEW_RECORDS,
        "RARE_CLASS": n_pairable > 0 and min(zeros, ones) < _RARE_CLASS,
        "SAMPLE_SIZE": n_pairable > 0 and figures.required_items is not None and n_pairable < figures.required_items,
        "UNDEFINED_RESAMPLES": figures.refused_intervals.get("krippendorff_alpha") == "undefined_resamples",
        "CONSTANT_RATER": bool(constant.any()),
        "PARADOX": _is_paradox(figures, zeros, ones),
        "SELECTION": p is not None and p < _SELECTION_LEVEL,
    }
    return tuple(code for code, applies in holds.items() if applies)


def _is_paradox(figures: schema.LabelAgreement, zeros: int, ones: int) -> bool:
    """Whether agreement is high and alpha low because one value is rare (Feinstein & Cicchetti 1990)."""
    if figures.percent_agreement is None or figures.krippendorff_alpha is None:
        return False
    return (
        figures.percent_agreement >= _PARADOX_AGREEMENT
        and figures.krippendorff_alpha < _PARADOX_ALPHA
        and abs(ones - zeros) / (ones + zeros) > _PARADOX_PREVALENCE
    )


def selection_p(votes: Votes, unit_records: IntArray) -> float | None:
    """Two-sided p that units rated more than once and units rated once have the same share of yes; None of few records.

    A two-proportion test with the variance of whole records, so that the units of a record need not be independent.
    """
    kinds = (votes.ratings >= 2, votes.ratings == 1)
    if any(len(np.unique(unit_records[kind])) < _SELECTION_RECORDS for kind in kinds):
        return None
    n_ratings = [int(votes.ratings[kind].sum()) for kind in kinds]
    shares = [float(votes.ones[kind].sum()) / n for kind, n in zip(kinds, n_ratings, strict=True)]
    common = float(votes.ones.sum()) / float(votes.ratings.sum())
    residuals: FloatArray = votes.ones - common * votes.ratings
    weighted = residuals * (kinds[0] / n_ratings[0] - kinds[1] / n_ratings[1])
    by_record = np.bincount(unit_records, weighted)
    error = math.sqrt(float((by_record**2).sum()))
    return 2 * NormalDist().cdf(-abs(shares[0] - shares[1]) / error) if error else None


def required_items(prevalence: float | None) -> int | None:
    """As many make the interval around an alpha halfway between target and 1 end at the target; None of one value."""
    if prevalence is None or prevalence in (0.0, 1.0):
        return None
    return math.ceil(items_to_show(_TARGET_ALPHA, prevalence))


def items_to_show(alpha: float, prevalence: float) -> float:
    """Source: Bloch & Kraemer 1989, Biometrics 45:269-287, in Krippendorff's form, whose table prints the ratings."""
    spread = (1 + alpha) * (3 - alpha) / (4 * (1 - alpha) * prevalence * (1 - prevalence))
    return _ONE_SIDED_95**2 * (spread - alpha)


def task_warnings(ratings: Ratings, figures: schema.TaskAgreement) -> tuple[schema.TaskWarning, ...]:
    early_or_late = (ratings.moments < _EARLIEST) | (ratings.moments >= _LATEST)
    holds: dict[schema.TaskWarning, bool] = {
        "PAIR_OVERLAP": figures.overlap.pairs_apart > 0
        or any(pair.n_shared < FEW_SHARED for pair in figures.pairs)
        or any(pair.n_shared < FEW_SHARED for pair in figures.scaled_pairs),
        "DISCONNECTED": len(figures.overlap.components) > 1,
        "DUPLICATES": ratings.n_duplicates > 0,
        "CONSTRAINT": any(figures.constraint_violations.values()),
        "CLOCK": ratings.own_labels is None and bool(early_or_late.any()),
    }
    return tuple(code for code, applies in holds.items() if applies)

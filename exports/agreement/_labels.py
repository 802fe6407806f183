"""Agreement on each label of a task, with intervals from the joint bootstrap (exports/contracts/agreement.md)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from annotation.labels import LABELS, RULES, LabelRule
from exports.agreement._bounds import Support, alpha_interval, alpha_interval_or_none, alpha_support, joint_interval
from exports.agreement._patterns import LabelPatterns, TaskPatterns, core_entries, dense
from exports.agreement._resampling import (
    Estimator,
    Replicates,
    Resampled,
    bootstrap,
    central_moments,
    interval,
    share_below,
    shifted_powers,
    undefined_share,
)
from exports.agreement.annotators import PairEstimators
from exports.agreement.distributions import rounded
from exports.agreement.ratings import MISSING, NO, YES, FloatArray, IntArray, Ratings
from exports.agreement.schema import ConditionalAgreement, Interval, LabelAgreement, RefusedReason
from exports.agreement.statistics import (
    ALPHA,
    COEFFICIENTS,
    STATISTICS,
    Sums,
    Votes,
    alpha_sums,
    alphas,
    coefficient_values,
    coefficients,
    count_votes,
    totals,
    undefined_reason,
)

_THRESHOLDS = ("0.667", "0.800")
"""Krippendorff's: below the first nothing follows, above the second conclusions are firm."""


class LabelEstimators:
    """One label: what it asks of the resamples, and how it reads them."""

    def __init__(self, task: TaskPatterns, label: LabelPatterns, pairs: PairEstimators) -> None:
        """Plan the coefficients; the mean kappa is that of `pairs`, which are of the same label."""
        self.task, self.label, self.pairs = task, label, pairs
        self.over_pairable = task.estimator(
            [(label, core_entries(label))], coefficient_values, task.frame(label, at_least=2)
        )
        """The coefficients over records with a pairable unit."""
        self.over_rated = replace(self.over_pairable, frame=task.frame(label, at_least=1))
        """The same over all rated records."""
        zeros, ones = label.zeros[label.unit_patterns], label.ones[label.unit_patterns]
        self.support = alpha_support(zeros, ones, task.unit_records, task.n_records)
        """What the interval of alpha rests on."""

    def read(self, resampled: Resampled) -> LabelAgreement:
        """Agreement on the label, without `required_items` and warnings."""
        label, pairable, rated = self.label, resampled[self.over_pairable], resampled[self.over_rated]
        total = totals(label.zeros, label.ones, label.units)
        figures = coefficients(total)
        reason = undefined_reason(total, len(np.unique(label.raters)))
        undefined = {name: reason for name, value in figures.items() if value is None}
        kappas = self.pairs.kappas[~np.isnan(self.pairs.kappas)].tolist()
        if not kappas:
            undefined["mean_pairwise_kappa"] = undefined.get("percent_agreement") or "constant_both_raters"
        intervals = {
            name: interval(rated if STATISTICS[name].over == "rated units" else pairable, column)
            for column, name in enumerate(COEFFICIENTS)
        }
        intervals["krippendorff_alpha"] = alpha_interval(pairable, ALPHA, self.support)
        intervals["mean_pairwise_kappa"] = self.pairs.read_mean(resampled)
        refused = intervals["krippendorff_alpha"]
        for name, entry in STATISTICS.items():
            if entry.follows_alpha and isinstance(refused, str) and isinstance(intervals[name], Interval):
                intervals[name] = refused
        return LabelAgreement(
            n_items=int(total.rated),
            n_pairable_items=int(total.pairable),
            n_ratings=int(total.all_ratings),
            **figures,
            mean_pairwise_kappa=math.fsum(kappas) / len(kappas) if kappas else None,
            n_pairs_with_kappa=len(kappas),
            n_cluster_records=pairable.n_records,
            intervals={name: each for name, each in intervals.items() if isinstance(each, Interval)},
            refused_intervals={name: each for name, each in intervals.items() if not isinstance(each, Interval)},
            **_alpha_spread(self.task, label, pairable, intervals["krippendorff_alpha"])._asdict(),
            required_items=None,
            undefined=undefined,
            warnings=(),
        )


class MacroFigures(NamedTuple):
    """The mean alpha of a task's labels."""

    macro_alpha: float | None
    """Mean of the alphas that are defined; None where none is."""
    macro_interval: Interval | None
    """95 % interval of the mean over those labels; None where it is refused."""
    n_labels_with_alpha: int
    """How many are defined."""


class MacroAlpha:
    """The mean alpha of the labels that have one: what it asks of the resamples, and how it reads them."""

    def __init__(self, task: TaskPatterns) -> None:
        """Find the labels that have an alpha."""
        totaled = [coefficients(totals(label.zeros, label.ones, label.units)) for label in task.labels]
        self.alphas = [each["krippendorff_alpha"] for each in totaled]
        pairable = np.any([task.frame(label, at_least=2) for label in task.labels], axis=0)
        defined = np.flatnonzero([alpha is not None for alpha in self.alphas])
        parts = [(label, core_entries(label)) for label in task.labels]
        self.estimator = task.estimator(parts, _mean_alpha(defined), pairable)
        """The mean over the records with a pairable unit on any label."""

    def read(self, resampled: Resampled, supports: Sequence[Support]) -> MacroFigures:
        """The mean and its interval; `supports` are those of all labels."""
        alphas = [alpha for alpha in self.alphas if alpha is not None]
        mean = math.fsum(alphas) / len(alphas) if alphas else None
        behind = [support for alpha, support in zip(self.alphas, supports, strict=True) if alpha is not None]
        return MacroFigures(mean, joint_interval(resampled[self.estimator], 0, *behind), len(alphas))


def _mean_alpha(labels: IntArray) -> Callable[[FloatArray], FloatArray]:
    """The formula of the mean alpha (… × 1) of the labels of these numbers, from totals of `Sums`, label after label.

    It is undefined in a resample where one of the alphas is: so it is the same figure in all of them.
    """

    def formula(sums: FloatArray) -> FloatArray:
        values = coefficient_values(sums.reshape(*sums.shape[:-1], -1, len(Sums._fields)))[..., ALPHA]
        mean: FloatArray = values[..., labels].sum(axis=-1, keepdims=True) / (len(labels) or math.nan)
        return mean

    return formula


class _AlphaSpread(NamedTuple):
    """How alpha varies over the resamples, by field of `LabelAgreement`."""

    undefined_resamples: float | None
    p_below: dict[str, float]
    standard_error: float | None = None
    design_effect: float | None = None
    n_effective: float | None = None


def _alpha_spread(
    task: TaskPatterns, label: LabelPatterns, replicates: Replicates, found: Interval | RefusedReason
) -> _AlphaSpread:
    """How alpha of the label varies over the resamples; without resampled ends only how often it is undefined."""
    if math.isnan(replicates.estimates[ALPHA]):
        return _AlphaSpread(None, {})
    resampled = replicates.resampled[:, ALPHA]
    undefined = undefined_share(resampled)
    if found != "too_few_rare_ratings" and (isinstance(found, str) or found.method == "one-sided"):
        return _AlphaSpread(undefined, {})
    defined = resampled[~np.isnan(resampled)]
    spread = rounded(float(defined.std(ddof=1)))
    if spread == 0:  # no disagreement: resamples tell nothing of how alpha varies
        return _AlphaSpread(undefined, {})
    effect = _design_effect(task, label, float(replicates.jackknife_se[ALPHA]))
    n_pairable = int(label.units[label.ratings >= 2].sum())
    return _AlphaSpread(
        undefined_resamples=undefined,
        p_below={each: share_below(defined, float(each)) for each in _THRESHOLDS} if _is_resampled(found) else {},
        standard_error=spread,
        design_effect=None if effect is None else rounded(effect),
        n_effective=rounded(n_pairable / max(effect, 1.0)) if effect else None,
    )


def _is_resampled(found: Interval | RefusedReason) -> bool:
    """Whether both ends of the interval were read off the resamples."""
    return isinstance(found, Interval) and found.method in ("bca", "expanded_percentile")


def _design_effect(task: TaskPatterns, label: LabelPatterns, record_error: float) -> float | None:
    """Squared ratio of alpha's jackknife standard errors: records left out against units left out.

    Jackknife both times, so no random numbers enter; exactly 1 where no record has two pairable units. None where
    leaving one out leaves alpha undefined, or as it is.
    """
    pairable = label.ratings >= 2
    n_units = int(label.units[pairable].sum())
    if n_units == np.count_nonzero(task.frame(label, at_least=2)):
        return 1.0
    rows, total = dense(core_entries(label), len(label.units)), label.total(core_entries(label))
    shifts = (coefficient_values(total - rows[pairable]) - coefficient_values(total))[:, ALPHA]
    moments = central_moments(shifted_powers(shifts[:, np.newaxis], label.units[pairable].astype(np.float64)), n_units)
    unit_error = float(moments.standard_error[0])
    if not unit_error or math.isnan(unit_error) or math.isnan(record_error):
        return None
    return (record_error / unit_error) ** 2


def count_violations(ratings: Ratings) -> dict[str, int]:
    """Responses that break each rule of the task, zeros included; a missing label breaks none."""
    return {name: int(np.count_nonzero(broken)) for name, broken in _broken_responses(ratings).items()}


def count_violations_by_annotator(ratings: Ratings) -> dict[str, dict[str, int]]:
    """The same by rule and annotator; only those who broke it."""
    counts = {
        name: np.bincount(ratings.response_annotators[broken], minlength=len(ratings.annotators))
        for name, broken in _broken_responses(ratings).items()
    }
    return {
        name: {ratings.annotators[person]: int(found[person]) for person in np.flatnonzero(found)}
        for name, found in counts.items()
    }


def _broken_responses(ratings: Ratings) -> dict[str, npt.NDArray[np.bool_]]:
    """Whether each response breaks a rule, for every rule of the task."""
    names = LABELS[ratings.task]
    return {
        rule.name: (ratings.values[:, names.index(rule.antecedent)] == YES)
        & (ratings.values[:, names.index(rule.consequent)] == (NO if rule.required else YES))
        for rule in RULES
        if rule.task == ratings.task
    }


def conditional_agreement(ratings: Ratings, resamples: int, seed: int) -> tuple[ConditionalAgreement, ...]:
    """Agreement on the antecedent of each rule of the task where its consequent leaves it open, in their order.

    Source: exports/contracts/agreement.md#across-labels.
    """
    return tuple(_measure_rule(ratings, rule, resamples, seed) for rule in RULES if rule.task == ratings.task)


def _measure_rule(ratings: Ratings, rule: LabelRule, resamples: int, seed: int) -> ConditionalAgreement:
    """Agreement on a rule's antecedent among annotators who say that its consequent holds."""
    votes = _open_votes(ratings, rule)
    total = totals(votes.zeros[:, 0], votes.ones[:, 0])
    found = coefficients(total)
    figures = {name: found[name] for name in ConditionalAgreement.model_fields if name in found}
    reason = undefined_reason(total, len(ratings.annotators))
    return ConditionalAgreement(
        rule=rule.name,
        premise=rule.consequent,
        premise_value=rule.required,
        label=rule.antecedent,
        n_pairable_items=int(total.pairable),
        **figures,
        interval=_alpha_interval(votes, ratings, resamples, seed),
        undefined={name: reason for name, value in figures.items() if value is None},
    )


def _open_votes(ratings: Ratings, rule: LabelRule) -> Votes:
    """Votes on the antecedent by those who say that the consequent holds, on units where at least two of them vote."""
    names = LABELS[ratings.task]
    holds = ratings.values[:, names.index(rule.consequent)] == (YES if rule.required else NO)
    answers = np.where(holds, ratings.values[:, names.index(rule.antecedent)], MISSING)
    votes = count_votes(answers[:, np.newaxis], ratings.units, len(ratings.unit_records))
    pairable = votes.ratings >= 2
    return Votes(votes.zeros * pairable, votes.ones * pairable)


def _alpha_interval(votes: Votes, ratings: Ratings, resamples: int, seed: int) -> Interval | None:
    """95 % interval of alpha on one label, records with a pairable unit resampled; None where it is refused."""
    n_records = len(ratings.records)
    frame = np.bincount(ratings.unit_records[votes.ratings[:, 0] >= 2], minlength=n_records) > 0
    if not frame.any():
        return None
    alpha = Estimator(alpha_sums(votes, ratings.unit_records, n_records), alphas, frame)
    support = alpha_support(votes.zeros[:, 0], votes.ones[:, 0], ratings.unit_records, n_records)
    return alpha_interval_or_none(bootstrap([alpha], resamples, seed)[alpha], 0, support)

"""Agreement on each label of a task, with intervals from the joint bootstrap (exports/contracts/agreement.md)."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from annotation.argilla.labels import LABELS, RULES, LabelRule
from exports.statistics.agreement_schema import (
    ConditionalAgreement,
    Interval,
    LabelAgreement,
    LabelWarning,
    RefusedReason,
    TaskAgreement,
    TaskWarning,
)
from exports.statistics.annotators import FEW_SHARED, PairEstimators
from exports.statistics.distributions import rounded
from exports.statistics.patterns import LabelPatterns, TaskPatterns, core_entries, dense
from exports.statistics.ratings import MISSING, NO, YES, FloatArray, IntArray, Ratings, Votes, count_votes
from exports.statistics.resampling import (
    FEW_RECORDS,
    UNDEFINED_SHARE,
    Estimator,
    Replicates,
    Resampled,
    Support,
    alpha_interval,
    alpha_interval_or_none,
    alpha_support,
    bootstrap,
    central_moments,
    interval,
    joint_interval,
    share_below,
    shifted_powers,
    undefined_share,
)
from exports.statistics.table import (
    ALPHA,
    COEFFICIENTS,
    STATISTICS,
    Sums,
    alpha_sums,
    alphas,
    coefficient_values,
    coefficients,
    figures_of,
    totals,
)

_THRESHOLDS = ("0.667", "0.800")  # Krippendorff's: nothing follows below the first, firm conclusions above the second


class LabelEstimators:
    """One label: what it asks of the resamples, and how it reads them."""

    def __init__(self, task: TaskPatterns, label: LabelPatterns, pairs: PairEstimators) -> None:
        self.task, self.label, self.pairs = task, label, pairs
        self.over_pairable = task.estimator(
            [(label, core_entries(label))], coefficient_values, task.frame(label, at_least=2)
        )
        self.over_rated = replace(self.over_pairable, frame=task.frame(label, at_least=1))
        zeros, ones = label.zeros[label.unit_patterns], label.ones[label.unit_patterns]
        self.support = alpha_support(zeros, ones, task.unit_records, task.n_records)

    def read(self, resampled: Resampled) -> LabelAgreement:
        label, pairable, rated = self.label, resampled[self.over_pairable], resampled[self.over_rated]
        total = totals(label.zeros, label.ones, label.units)
        figures = figures_of(total, len(np.unique(label.raters)), COEFFICIENTS)
        undefined = figures["undefined"]
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
            **_alpha_spread(self.task, label, pairable, intervals["krippendorff_alpha"]),
            required_items=None,
            warnings=(),
        )


class MacroFigures(NamedTuple):
    macro_alpha: float | None  # Mean of the alphas that are defined; None where none is
    macro_interval: Interval | None  # 95 % interval of the mean over those labels; None where it is refused
    n_labels_with_alpha: int  # How many are defined


class MacroAlpha:
    """The mean alpha of the labels that have one: what it asks of the resamples, and how it reads them."""

    def __init__(self, task: TaskPatterns) -> None:
        totaled = [coefficients(totals(label.zeros, label.ones, label.units)) for label in task.labels]
        self.alphas = [each["krippendorff_alpha"] for each in totaled]
        pairable = np.any([task.frame(label, at_least=2) for label in task.labels], axis=0)
        defined = np.flatnonzero([alpha is not None for alpha in self.alphas])
        parts = [(label, core_entries(label)) for label in task.labels]
        self.estimator = task.estimator(parts, _mean_alpha(defined), pairable)

    def read(self, resampled: Resampled, supports: Sequence[Support]) -> MacroFigures:
        alphas = [alpha for alpha in self.alphas if alpha is not None]
        mean = math.fsum(alphas) / len(alphas) if alphas else None
        behind = [support for alpha, support in zip(self.alphas, supports, strict=True) if alpha is not None]
        return MacroFigures(mean, joint_interval(resampled[self.estimator], 0, *behind), len(alphas))


def _mean_alpha(labels: IntArray) -> Callable[[FloatArray], FloatArray]:
    """Undefined in a resample where one of the alphas is: so it is the same figure in all of them."""

    def formula(sums: FloatArray) -> FloatArray:
        values = coefficient_values(sums.reshape(*sums.shape[:-1], -1, len(Sums._fields)))[..., ALPHA]
        mean: FloatArray = values[..., labels].sum(axis=-1, keepdims=True) / (len(labels) or math.nan)
        return mean

    return formula


def _alpha_spread(
    task: TaskPatterns, label: LabelPatterns, replicates: Replicates, found: Interval | RefusedReason
) -> dict[str, Any]:
    unknown: dict[str, Any] = {"p_below": {}, "standard_error": None, "design_effect": None, "n_effective": None}
    if math.isnan(replicates.estimates[ALPHA]):
        return {"undefined_resamples": None, **unknown}
    resampled = replicates.resampled[:, ALPHA]
    undefined = undefined_share(resampled)
    if found != "too_few_rare_ratings" and (isinstance(found, str) or found.method == "one-sided"):
        return {"undefined_resamples": undefined, **unknown}
    defined = resampled[~np.isnan(resampled)]
    spread = rounded(float(defined.std(ddof=1)))
    if spread == 0:  # no disagreement: resamples tell nothing of how alpha varies
        return {"undefined_resamples": undefined, **unknown}
    effect = _design_effect(task, label, float(replicates.jackknife_se[ALPHA]))
    n_pairable = int(label.units[label.ratings >= 2].sum())
    is_resampled = isinstance(found, Interval) and found.method in ("bca", "expanded_percentile")
    return {
        "undefined_resamples": undefined,
        "p_below": {each: share_below(defined, float(each)) for each in _THRESHOLDS} if is_resampled else {},
        "standard_error": spread,
        "design_effect": None if effect is None else rounded(effect),
        "n_effective": rounded(n_pairable / max(effect, 1.0)) if effect else None,
    }


def _design_effect(task: TaskPatterns, label: LabelPatterns, record_error: float) -> float | None:
    """Squared ratio of alpha's jackknife errors, records against units left out; None where one leaves it undefined."""
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


def count_violations(ratings: Ratings) -> dict[str, dict[str, int]]:
    """Responses that break each rule of the task, by rule and annotator who broke it; a missing label breaks none."""
    names = LABELS[ratings.task]
    found: dict[str, dict[str, int]] = {}
    for rule in RULES:
        if rule.task == ratings.task:
            broken = (ratings.values[:, names.index(rule.antecedent)] == YES) & (
                ratings.values[:, names.index(rule.consequent)] == (NO if rule.required else YES)
            )
            counts = np.bincount(ratings.response_annotators[broken], minlength=len(ratings.annotators))
            found[rule.name] = {ratings.annotators[person]: int(counts[person]) for person in np.flatnonzero(counts)}
    return found


def conditional_agreement(ratings: Ratings, rule: LabelRule, resamples: int, seed: int) -> ConditionalAgreement:
    """Agreement on the rule's antecedent among annotators who say that its consequent holds, where two of them vote."""
    names = LABELS[ratings.task]
    holds = ratings.values[:, names.index(rule.consequent)] == (YES if rule.required else NO)
    answers = np.where(holds, ratings.values[:, names.index(rule.antecedent)], MISSING)
    votes = count_votes(answers[:, np.newaxis], ratings.units, len(ratings.unit_records))
    pairable = votes.ratings >= 2
    votes = Votes(votes.zeros * pairable, votes.ones * pairable)
    total = totals(votes.zeros[:, 0], votes.ones[:, 0])
    (found,) = alpha_intervals(votes, ratings.unit_records, len(ratings.records), resamples, seed)
    return ConditionalAgreement(
        rule=rule.name,
        premise=rule.consequent,
        premise_value=rule.required,
        label=rule.antecedent,
        n_pairable_items=int(total.pairable),
        interval=found,
        **figures_of(total, len(ratings.annotators), ConditionalAgreement.model_fields),
    )


def alpha_intervals(
    votes: Votes, unit_records: IntArray, n_records: int, resamples: int, seed: int
) -> list[Interval | None]:
    """95 % interval of each label's alpha, records with a pairable unit resampled; None where it is refused."""
    n_labels = votes.ones.shape[1]
    frame = np.bincount(unit_records[(votes.ratings >= 2).any(axis=1)], minlength=n_records) > 0
    if not frame.any():
        return [None] * n_labels
    estimator = Estimator(alpha_sums(votes, unit_records, n_records), alphas, frame)
    replicates = bootstrap([estimator], resamples, seed)[estimator]
    supports = (
        alpha_support(*columns, unit_records, n_records) for columns in zip(votes.zeros.T, votes.ones.T, strict=True)
    )
    return [alpha_interval_or_none(replicates, column, support) for column, support in enumerate(supports)]


_FEW_ITEMS = 30  # Fewer pairable units than this: the next ones can move every figure a lot
_RARE_CLASS = 10  # Fewer ratings of the rarer value than this among pairable units: one unit can turn the figures
_CONSTANT_RATER = 20  # An annotator with this many ratings and one value only: her kappa is 0 by construction
_PARADOX_AGREEMENT, _PARADOX_ALPHA, _PARADOX_PREVALENCE = 0.85, 0.667, 0.6  # of agreement, alpha, prevalence
_SELECTION_LEVEL = 0.01  # an export has a dozen labels, so .05 would often warn by chance
_SELECTION_RECORDS = 10  # Records of either kind that the selection test needs: its normal approximation fails below
_TARGET_ALPHA, _ONE_SIDED_95 = 0.667, 1.645  # what a sample should be able to show, and how surely
_EARLIEST = 946_684_800_000_000  # 1 January 2000 UTC in microseconds since 1970; no response is older
_LATEST = 4_102_444_800_000_000  # 1 January 2100 UTC; so far ahead only a broken clock is

ADVICE: dict[LabelWarning | TaskWarning, str] = {
    "NO_OVERLAP": "No unit was rated twice, so agreement cannot be told. Give some units to several annotators.",
    "SINGLE_ANNOTATOR": "One annotator rated alone, so agreement cannot be told. Let a second one rate some units.",
    "FEW_ITEMS": f"Fewer than {_FEW_ITEMS} units were rated twice: the figures can move a lot with the next ones. Rate "
    "more units twice before relying on them.",
    "FEW_CLUSTERS": f"Units rated twice come from fewer than {FEW_RECORDS} records: the next ones can move the figures "
    "a lot. Rate units of more records twice.",
    "RARE_CLASS": f"One of the two values was given fewer than {_RARE_CLASS} times on units rated twice: a single unit "
    "can turn alpha. Add units on which the rare value is likely.",
    "SAMPLE_SIZE": f"Too few units were rated twice to show an alpha of {_TARGET_ALPHA} at this share of yes.",
    "UNDEFINED_RESAMPLES": f"More than {UNDEFINED_SHARE:.0%} of the resamples had no variation, so alpha has no "
    "interval: the rare value hangs on very few records. Rate more units twice.",
    "CONSTANT_RATER": f"An annotator gave one value only in {_CONSTANT_RATER} ratings or more: kappa with her tells "
    "nothing, whatever the others say. Ask whether she understood the label.",
    "PARADOX": "High agreement, low alpha: one value is rare, so much agreement is expected by chance. Read positive "
    "and negative agreement and AC1 beside alpha.",
    "SELECTION": "The share of yes differs between units rated twice and units rated once by more than chance: "
    "agreement on the former may not carry over. Choose units to be rated twice at random.",
    "PAIR_OVERLAP": f"Some pairs of annotators share fewer than {FEW_SHARED} units: do not read their kappa.",
    "DISCONNECTED": "The annotators fall into groups that share no unit: figures mix groups that cannot be compared. "
    "Give units of each group to the other.",
    "DUPLICATES": "Some annotators answered a unit more than once: the newest response counts.",
    "CONSTRAINT": "Some responses break a rule between labels: they count as they are. Look at them, and at the "
    "guidelines.",
    "CLOCK": "Some responses are dated before 2000 or after 2099: a clock was wrong, so weeks, rounds and which of two "
    "responses is newer may be wrong too.",
}


def with_cautions(ratings: Ratings, labels: Mapping[str, LabelAgreement]) -> dict[str, LabelAgreement]:
    """The labels with their `required_items` and warnings; the other figures stay as they are."""
    votes = count_votes(ratings.values, ratings.units, len(ratings.unit_records))
    by_annotator = count_votes(ratings.values, ratings.response_annotators, len(ratings.annotators))
    found: dict[str, LabelAgreement] = {}
    for column, label in enumerate(LABELS[ratings.task]):
        own, raters = (Votes(v.zeros[:, column], v.ones[:, column]) for v in (votes, by_annotator))
        sized = labels[label].model_copy(update={"required_items": required_items(labels[label].prevalence)})
        warnings = _label_warnings(sized, own, raters, ratings.unit_records)
        found[label] = sized.model_copy(update={"warnings": warnings})
    return found


def _label_warnings(
    figures: LabelAgreement, votes: Votes, raters: Votes, unit_records: IntArray
) -> tuple[LabelWarning, ...]:
    pairable = votes.ratings >= 2
    zeros, ones = int(votes.zeros[pairable].sum()), int(votes.ones[pairable].sum())
    constant = (raters.ratings >= _CONSTANT_RATER) & ((raters.zeros == 0) | (raters.ones == 0))
    n_pairable = figures.n_pairable_items
    p = selection_p(votes, unit_records)
    holds: dict[LabelWarning, bool] = {
        "NO_OVERLAP": n_pairable == 0 and np.count_nonzero(raters.ratings) != 1,
        "SINGLE_ANNOTATOR": n_pairable == 0 and np.count_nonzero(raters.ratings) == 1,
        "FEW_ITEMS": 0 < n_pairable < _FEW_ITEMS,
        "FEW_CLUSTERS": 0 < figures.n_cluster_records < FEW_RECORDS,
        "RARE_CLASS": n_pairable > 0 and min(zeros, ones) < _RARE_CLASS,
        "SAMPLE_SIZE": n_pairable > 0 and figures.required_items is not None and n_pairable < figures.required_items,
        "UNDEFINED_RESAMPLES": figures.refused_intervals.get("krippendorff_alpha") == "undefined_resamples",
        "CONSTANT_RATER": bool(constant.any()),
        "PARADOX": _is_paradox(figures, zeros, ones),
        "SELECTION": p is not None and p < _SELECTION_LEVEL,
    }
    return tuple(code for code, applies in holds.items() if applies)


def _is_paradox(figures: LabelAgreement, zeros: int, ones: int) -> bool:
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


def task_warnings(ratings: Ratings, figures: TaskAgreement) -> tuple[TaskWarning, ...]:
    early_or_late = (ratings.moments < _EARLIEST) | (ratings.moments >= _LATEST)
    holds: dict[TaskWarning, bool] = {
        "PAIR_OVERLAP": figures.overlap.pairs_apart > 0 or any(pair.n_shared < FEW_SHARED for pair in figures.pairs),
        "DISCONNECTED": len(figures.overlap.components) > 1,
        "DUPLICATES": ratings.n_duplicates > 0,
        "CONSTRAINT": any(figures.constraint_violations.values()),
        "CLOCK": bool(early_or_late.any()),
    }
    return tuple(code for code, applies in holds.items() if applies)

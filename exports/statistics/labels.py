"""Agreement on each label of a task, with intervals from the joint bootstrap (exports/contracts/agreement.md)."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from annotation.argilla.labels import RULES
from exports.statistics import resampling, table
from exports.statistics.agreement_schema import ConditionalAgreement, Interval, LabelAgreement
from exports.statistics.annotators import PairEstimators
from exports.statistics.ratings import MISSING, NO, YES, BoolArray, FloatArray, IntArray, Ratings, Votes, count_votes
from exports.statistics.scaled_labels import alpha_spread, effect_of_errors
from exports.statistics.table import alphas
from exports.statistics.warnings import required_items


class LabelEstimators:
    """One label: what it asks of the resamples, and how it reads them."""

    def __init__(self, task: resampling.TaskPatterns, label: resampling.LabelPatterns, pairs: PairEstimators) -> None:
        self.task, self.label, self.pairs = task, label, pairs
        self.over_pairable = task.estimator(
            [(label, resampling.core_entries(label))], table.coefficient_values, task.frame(label, at_least=2)
        )
        self.over_rated = replace(self.over_pairable, frame=task.frame(label, at_least=1))
        zeros, ones = label.zeros[label.unit_patterns], label.ones[label.unit_patterns]
        self.support = resampling.alpha_support(zeros, ones, task.unit_records, task.n_records)

    def read(self, resampled: resampling.Resampled) -> LabelAgreement:
        label, pairable, rated = self.label, resampled[self.over_pairable], resampled[self.over_rated]
        total = table.totals(label.zeros, label.ones, label.units)
        figures = table.figures_of(total, len(np.unique(label.raters)), table.COEFFICIENTS)
        undefined = figures["undefined"]
        kappas = self.pairs.kappas[~np.isnan(self.pairs.kappas)].tolist()
        if not kappas:
            undefined["mean_pairwise_kappa"] = undefined.get("percent_agreement") or "constant_both_raters"
        intervals = {
            name: resampling.interval(rated if table.STATISTICS[name].over == "rated units" else pairable, column)
            for column, name in enumerate(table.COEFFICIENTS)
        }
        intervals["krippendorff_alpha"] = resampling.alpha_interval(pairable, table.ALPHA, self.support)
        intervals["mean_pairwise_kappa"] = self.pairs.read_mean(resampled)
        refused = resampling.refused_with_alpha(intervals["krippendorff_alpha"])
        for name, entry in table.STATISTICS.items():
            if entry.follows_alpha and refused and isinstance(intervals[name], Interval):
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
            **alpha_spread(
                pairable,
                table.ALPHA,
                intervals["krippendorff_alpha"],
                int(total.pairable),
                partial(_design_effect, self.task, label),
            ),
            required_items=required_items(figures["prevalence"]),
            warnings=(),
        )


class MacroFigures(NamedTuple):
    macro_alpha: float | None  # Mean of the alphas that are defined; None where none is
    macro_interval: Interval | None  # 95 % interval of the mean over those labels; None where it is refused
    n_labels_with_alpha: int  # How many are defined


class MacroAlpha:
    """The mean alpha of the labels that have one: what it asks of the resamples, and how it reads them."""

    def __init__(self, task: resampling.TaskPatterns) -> None:
        totaled = [table.coefficients(table.totals(label.zeros, label.ones, label.units)) for label in task.labels]
        self.alphas = [each["krippendorff_alpha"] for each in totaled]
        pairable = np.any([task.frame(label, at_least=2) for label in task.labels], axis=0)
        defined = np.flatnonzero([alpha is not None for alpha in self.alphas])
        parts = [(label, resampling.core_entries(label)) for label in task.labels]

        def mean_alpha(sums: FloatArray) -> FloatArray:
            """Undefined in a resample where one of the alphas is: so it is the same figure in all of them."""
            values = table.coefficient_values(sums.reshape(*sums.shape[:-1], -1, len(table.Sums._fields)))[
                ..., table.ALPHA
            ]
            mean: FloatArray = values[..., defined].sum(axis=-1, keepdims=True) / (len(defined) or math.nan)
            return mean

        self.estimator = task.estimator(parts, mean_alpha, pairable)

    def read(self, resampled: resampling.Resampled, supports: Sequence[resampling.Support]) -> MacroFigures:
        alphas = [alpha for alpha in self.alphas if alpha is not None]
        mean = math.fsum(alphas) / len(alphas) if alphas else None
        behind = [support for alpha, support in zip(self.alphas, supports, strict=True) if alpha is not None]
        return MacroFigures(mean, resampling.joint_interval(resampled[self.estimator], 0, *behind), len(alphas))


def _design_effect(task: resampling.TaskPatterns, label: resampling.LabelPatterns, record_error: float) -> float | None:
    """Squared ratio of alpha's jackknife errors, records against units left out; None where one leaves it undefined."""
    pairable = label.ratings >= 2
    n_units = int(label.units[pairable].sum())
    if n_units == np.count_nonzero(task.frame(label, at_least=2)):
        return 1.0
    rows, total = (
        resampling.dense(resampling.core_entries(label), len(label.units)),
        label.total(resampling.core_entries(label)),
    )
    shifts = (table.coefficient_values(total - rows[pairable]) - table.coefficient_values(total))[:, table.ALPHA]
    moments = resampling.central_moments(
        resampling.shifted_powers(shifts[:, np.newaxis], label.units[pairable].astype(np.float64)), n_units
    )
    return effect_of_errors(record_error, float(moments.standard_error[0]))


def count_violations(ratings: Ratings) -> dict[str, dict[str, int]]:
    """Responses that break each rule of the task, by rule and annotator who broke it; a missing label breaks none."""
    answers: dict[str, tuple[Sequence[str], IntArray]] = {
        label: (("no", "yes"), column.astype(np.int64))
        for label, column in zip(ratings.labels, ratings.values.T, strict=True)
    }
    people = len(ratings.annotators)
    responses = ratings.units * people + ratings.response_annotators
    for each in ratings.scaled:
        codes = np.full(len(responses), MISSING)
        codes[np.searchsorted(responses, each.units * people + each.raters)] = each.codes
        answers[each.name] = each.values, codes
    found: dict[str, dict[str, int]] = {}
    for rule in RULES[ratings.task]:
        broken = np.zeros(len(responses), np.bool_)
        for label, wanted in rule.then.items():
            broken |= (answers[label][1] != MISSING) & ~_is_one_of(answers[label], wanted)
        for label, wanted in rule.condition.items():
            broken &= _is_one_of(answers[label], wanted)
        counts = np.bincount(ratings.response_annotators[broken], minlength=people)
        found[rule.name] = {ratings.annotators[person]: int(counts[person]) for person in np.flatnonzero(counts)}
    return found


def _is_one_of(answers: tuple[Sequence[str], IntArray], wanted: Sequence[str]) -> BoolArray:
    values, codes = answers
    return np.isin(codes, [code for code, value in enumerate(values) if value in wanted])


def conditional_agreement(
    ratings: Ratings, rule: str, implication: tuple[str, str, bool], resamples: int, seed: int
) -> ConditionalAgreement:
    """Agreement on the rule's antecedent among annotators who say that its consequent holds, where two of them vote."""
    names, (antecedent, consequent, required) = ratings.labels, implication
    holds = ratings.values[:, names.index(consequent)] == (YES if required else NO)
    answers = np.where(holds, ratings.values[:, names.index(antecedent)], MISSING)
    votes = count_votes(answers[:, np.newaxis], ratings.units, len(ratings.unit_records))
    pairable = votes.ratings >= 2
    votes = Votes(votes.zeros * pairable, votes.ones * pairable)
    total = table.totals(votes.zeros[:, 0], votes.ones[:, 0])
    (found,) = alpha_intervals(votes, ratings.unit_records, len(ratings.records), resamples, seed)
    return ConditionalAgreement(
        rule=rule,
        premise=consequent,
        premise_value=required,
        label=antecedent,
        n_pairable_items=int(total.pairable),
        interval=found,
        **table.figures_of(total, len(ratings.annotators), ConditionalAgreement.model_fields),
    )


def alpha_intervals(
    votes: Votes, unit_records: IntArray, n_records: int, resamples: int, seed: int
) -> list[Interval | None]:
    """95 % interval of each label's alpha, records with a pairable unit resampled; None where it is refused."""
    n_labels = votes.ones.shape[1]
    frame = np.bincount(unit_records[(votes.ratings >= 2).any(axis=1)], minlength=n_records) > 0
    if not frame.any():
        return [None] * n_labels
    estimator = resampling.Estimator(table.alpha_sums(votes, unit_records, n_records), alphas, frame)
    replicates = resampling.bootstrap([estimator], resamples, seed)[estimator]
    supports = (
        resampling.alpha_support(*columns, unit_records, n_records)
        for columns in zip(votes.zeros.T, votes.ones.T, strict=True)
    )
    return [
        resampling.or_none(resampling.alpha_interval(replicates, column, support))
        for column, support in enumerate(supports)
    ]

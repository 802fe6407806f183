"""Rules between labels: how often each is broken and by whom, and agreement where it leaves a label open."""

import numpy as np
import numpy.typing as npt

from annotation.labels import LABELS, RULES, LabelRule
from exports.agreement.coefficients import coefficients, totals
from exports.agreement.figures import ConditionalAgreement, Interval
from exports.agreement.intervals import interval
from exports.agreement.labels import undefined_reason
from exports.agreement.ratings import MISSING, NO, YES, Ratings
from exports.agreement.resampling import Statistic, bootstrap
from exports.agreement.votes import Votes, alpha_sums, alphas, count_votes


def count_violations(ratings: Ratings) -> dict[str, int]:
    """Responses that break each rule of the task, zeros included; a missing label breaks none."""
    return {name: int(np.count_nonzero(broken)) for name, broken in broken_responses(ratings).items()}


def count_violations_by_annotator(ratings: Ratings) -> dict[str, dict[str, int]]:
    """The same by rule and annotator; only those who broke it."""
    counts = {
        name: np.bincount(ratings.response_annotators[broken], minlength=len(ratings.annotators))
        for name, broken in broken_responses(ratings).items()
    }
    return {
        name: {ratings.annotators[person]: int(found[person]) for person in np.flatnonzero(found)}
        for name, found in counts.items()
    }


def broken_responses(ratings: Ratings) -> dict[str, npt.NDArray[np.bool_]]:
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

    Source: `agreement.md` section 4.
    """
    return tuple(measure_rule(ratings, rule, resamples, seed) for rule in RULES if rule.task == ratings.task)


def measure_rule(ratings: Ratings, rule: LabelRule, resamples: int, seed: int) -> ConditionalAgreement:
    """Agreement on a rule's antecedent among annotators who say that its consequent holds."""
    votes = open_votes(ratings, rule)
    total = totals(votes.zeros[:, 0], votes.ones[:, 0])
    found = coefficients(total)
    figures = {name: found[name] for name in ("prevalence", "percent_agreement", "krippendorff_alpha", "gwet_ac1")}
    reason = undefined_reason(total, len(ratings.annotators))
    return ConditionalAgreement(
        rule=rule.name,
        premise=rule.consequent,
        premise_value=rule.required,
        label=rule.antecedent,
        n_pairable_items=int(total.pairable),
        **figures,
        interval=alpha_interval(votes, ratings, resamples, seed),
        undefined={name: reason for name, value in figures.items() if value is None},
    )


def open_votes(ratings: Ratings, rule: LabelRule) -> Votes:
    """Votes on the antecedent by those who say that the consequent holds, on units where at least two of them vote."""
    names = LABELS[ratings.task]
    holds = ratings.values[:, names.index(rule.consequent)] == (YES if rule.required else NO)
    answers = np.where(holds, ratings.values[:, names.index(rule.antecedent)], MISSING)
    votes = count_votes(answers[:, np.newaxis], ratings.units, len(ratings.unit_records))
    pairable = votes.ratings >= 2
    return Votes(votes.zeros * pairable, votes.ones * pairable)


def alpha_interval(votes: Votes, ratings: Ratings, resamples: int, seed: int) -> Interval | None:
    """95 % interval of alpha on one label, records with a pairable unit resampled; None where it is refused."""
    n_records = len(ratings.records)
    frame = np.bincount(ratings.unit_records[votes.ratings[:, 0] >= 2], minlength=n_records) > 0
    if not frame.any():
        return None
    sums = alpha_sums(votes, ratings.unit_records, n_records)
    (replicates,) = bootstrap([Statistic(sums, alphas)], frame, resamples, seed)
    found = interval(replicates, 0)
    return found if isinstance(found, Interval) else None

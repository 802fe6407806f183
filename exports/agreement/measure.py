"""Agreement on whole tasks: every figure of `agreement.json`, from arrays of ratings."""

from collections.abc import Sequence

import numpy as np

from annotation.labels import LABELS, RULES, TASKS
from exports.agreement.coefficients import Sums, coefficients, ratio, totals
from exports.agreement.figures import LabelAgreement, LabelWarning, UndefinedReason
from exports.agreement.ratings import MISSING, NO, YES, IntArray, Ratings
from exports.agreement.schema import (
    Agreement,
    InputFile,
    TaskAgreement,
)

FEW_ITEMS = 30
"""Fewer pairable units than this: no interval would keep its promise (`agreement.md` section 7)."""
RARE_CLASS = 10
"""Fewer ratings of the rarer value than this among pairable units: one unit can turn the figures."""


def measure_label(zeros: IntArray, ones: IntArray, n_annotators: int) -> LabelAgreement:
    """Agreement on one label.

    Args:
        zeros: Ratings that say no, one number a unit.
        ones: Ratings that say yes, one number a unit.
        n_annotators: How many annotators rated the label.
    """
    total = totals(zeros, ones)
    n_ratings = int(zeros.sum() + ones.sum())
    figures = {"prevalence": ratio(ones.sum(), n_ratings), **coefficients(total)}
    reason = undefined_reason(total, n_annotators)
    return LabelAgreement(
        n_items=int(total.rated),
        n_pairable_items=int(total.pairable),
        n_ratings=n_ratings,
        **figures,
        undefined={name: reason for name, value in figures.items() if value is None},
        warnings=label_warnings(total, n_annotators),
    )


def undefined_reason(total: Sums, n_annotators: int) -> UndefinedReason:
    """Why a coefficient with these totals is undefined, if it is one.

    Source: `agreement.md` section 5.
    """
    if total.pairable:
        return "no_variation"
    return "single_annotator" if n_annotators == 1 else "no_pairable_items"


def label_warnings(total: Sums, n_annotators: int) -> tuple[LabelWarning, ...]:
    """What to mind when reading the figures of one label.

    Source: `agreement.md` section 7.
    """
    if not total.pairable:
        return ("SINGLE_ANNOTATOR",) if n_annotators == 1 else ("NO_OVERLAP",)
    few: tuple[LabelWarning, ...] = ("FEW_ITEMS",) if total.pairable < FEW_ITEMS else ()
    rare: tuple[LabelWarning, ...] = ("RARE_CLASS",) if min(total.zeros, total.ones) < RARE_CLASS else ()
    return few + rare


def measure_task(ratings: Ratings) -> TaskAgreement:
    """Agreement on every label of one task; without responses every figure is undefined."""
    n_units = len(ratings.unit_records)
    labels: dict[str, LabelAgreement] = {}
    for column, label in enumerate(LABELS[ratings.task]):
        values = ratings.values[:, column]
        zeros = np.bincount(ratings.units[values == NO], minlength=n_units)
        ones = np.bincount(ratings.units[values == YES], minlength=n_units)
        n_annotators = len(np.unique(ratings.response_annotators[values != MISSING]))
        labels[label] = measure_label(zeros, ones, n_annotators)
    alphas = [found.krippendorff_alpha for found in labels.values() if found.krippendorff_alpha is not None]
    return TaskAgreement(
        n_units=n_units,
        n_records=len(np.unique(ratings.unit_records)),
        n_duplicates=ratings.n_duplicates,
        annotators=tuple(sorted(ratings.annotators)),
        labels=labels,
        macro_alpha=sum(alphas) / len(alphas) if alphas else None,
        n_labels_with_alpha=len(alphas),
        constraint_violations=count_violations(ratings),
    )


def count_violations(ratings: Ratings) -> dict[str, int]:
    """Responses that break each rule of the task, zeros included; a missing label breaks none."""
    names = LABELS[ratings.task]
    return {
        rule.name: int(
            np.count_nonzero(
                (ratings.values[:, names.index(rule.antecedent)] == YES)
                & (ratings.values[:, names.index(rule.consequent)] == (NO if rule.required else YES))
            )
        )
        for rule in RULES
        if rule.task == ratings.task
    }


def measure_agreement(tables: Sequence[Ratings], inputs: Sequence[InputFile]) -> Agreement:
    """Agreement on each task of `tables`, at most one table a task, with the files they were read from."""
    by_task = {ratings.task: ratings for ratings in tables}
    latest = max((ratings.latest for ratings in tables if ratings.latest is not None), default=None)
    return Agreement(
        latest_response=None if latest is None else latest.isoformat(),
        inputs=tuple(inputs),
        tasks={task: measure_task(by_task[task]) for task in TASKS if task in by_task},
    )

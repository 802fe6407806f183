"""Agreement coefficients for yes/no labels, from sums over units (`agreement.md` sections 2 to 5)."""

import math
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from annotation.labels import LABELS, RULES, TASKS, TaskName
from exports.schema import Agreement, AgreementWarning, InputFile, LabelAgreement, TaskAgreement, UndefinedReason

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
LabelArray = npt.NDArray[np.int8]

YES, NO, MISSING = 1, 0, -1

FEW_ITEMS = 30
"""Fewer pairable units than this: no interval would keep its promise (`agreement.md` section 7)."""
RARE_CLASS = 10
"""Fewer ratings of the rarer value than this among pairable units: one unit can turn the figures."""


class Ratings(NamedTuple):
    """All responses to one task; one response for each unit and annotator."""

    task: TaskName
    annotators: tuple[str, ...]
    """Names, in any order."""
    unit_records: IntArray
    """Number of the record of each unit, counted from 0."""
    units: IntArray
    """Number of the unit of each response, counted from 0."""
    values: LabelArray
    """Responses × labels of the task in their order: 1 yes, 0 no, -1 missing."""
    response_annotators: IntArray
    """Number of the annotator of each response, counted from 0."""
    n_duplicates: int
    """Responses that gave way to a newer one."""
    latest: datetime | None
    """The newest `created_at`, in UTC; None without responses."""


class Sums(NamedTuple):
    """The sums that every coefficient is a function of: one value a unit, or their totals."""

    rated: FloatArray
    """1 where there is a rating."""
    share: FloatArray
    """Share of yes among the unit's ratings."""
    pairable: FloatArray
    """1 where there are two ratings or more; all that follow are 0 elsewhere."""
    zeros: FloatArray
    """Ratings that say no."""
    ones: FloatArray
    """Ratings that say yes."""
    disagreement: FloatArray
    """Ordered pairs that disagree, divided by the ratings less one."""
    agreement: FloatArray
    """Share of pairs that agree."""
    unanimous: FloatArray
    """1 where all ratings are equal."""
    ones_agreeing: FloatArray
    """Ordered pairs that both say yes."""
    ones_paired: FloatArray
    """Ordered pairs whose first says yes."""
    zeros_agreeing: FloatArray
    """Ordered pairs that both say no."""
    zeros_paired: FloatArray
    """Ordered pairs whose first says no."""


def unit_sums(zeros: IntArray, ones: IntArray) -> Sums:
    """The sums of each unit, from its ratings that say no and its ratings that say yes.

    Source: `agreement.md` section 2.
    """
    n0, n1 = zeros.astype(np.float64), ones.astype(np.float64)
    ratings = n0 + n1
    pairable = (ratings >= 2).astype(np.float64)
    others = np.maximum(ratings - 1, 1)
    agreeing = n0 * (n0 - 1) + n1 * (n1 - 1)
    return Sums(
        rated=(ratings >= 1).astype(np.float64),
        share=n1 / np.maximum(ratings, 1),
        pairable=pairable,
        zeros=n0 * pairable,
        ones=n1 * pairable,
        disagreement=2 * n0 * n1 / others * pairable,
        agreement=agreeing / (np.maximum(ratings, 1) * others) * pairable,
        unanimous=(n0 * n1 == 0) * pairable,
        ones_agreeing=n1 * (n1 - 1) * pairable,
        ones_paired=n1 * (ratings - 1) * pairable,
        zeros_agreeing=n0 * (n0 - 1) * pairable,
        zeros_paired=n0 * (ratings - 1) * pairable,
    )


def totals(zeros: IntArray, ones: IntArray) -> Sums:
    """The sums over all units, each a single number.

    Units with the same counts are added up together, and without rounding in between: so neither the order of the
    units nor those that add nothing change the last digit.
    """
    width = int(ones.max(initial=0)) + 1
    patterns, weights = np.unique(zeros * width + ones, return_counts=True)
    sums = unit_sums(patterns // width, patterns % width)
    return Sums(*(np.asarray(math.fsum(weights * field)) for field in sums))


def coefficients(total: Sums) -> dict[str, float | None]:
    """Each coefficient by its name in `agreement.json`, from totals; None where it is undefined.

    Alpha, agreement and specific agreement use units with two ratings or more; the marginals of Fleiss' kappa and
    AC1 use all.

    Source: `agreement.md` section 3: Krippendorff 2011, Fleiss 1971, Gwet 2008, Brennan & Prediger 1981, Cicchetti &
    Feinstein 1990.
    """
    n0, n1 = float(total.zeros), float(total.ones)
    observed = ratio(total.agreement, total.pairable)
    share = ratio(total.share, total.rated)
    chance_of_yes = 0.0 if share is None else share
    by_chance = chance_of_yes**2 + (1 - chance_of_yes) ** 2
    distance = ratio((n0 + n1 - 1) * total.disagreement, 2 * n0 * n1)
    return {
        "percent_agreement": observed,
        "krippendorff_alpha": None if distance is None else 1 - distance,
        "fleiss_kappa": beyond_chance(observed, by_chance),
        "gwet_ac1": beyond_chance(observed, 2 * chance_of_yes * (1 - chance_of_yes)),
        "brennan_prediger": beyond_chance(observed, 0.5),
        "positive_agreement": ratio(total.ones_agreeing, total.ones_paired),
        "negative_agreement": ratio(total.zeros_agreeing, total.zeros_paired),
        "full_agreement_share": ratio(total.unanimous, total.pairable),
    }


def ratio(part: float | FloatArray, whole: float | FloatArray) -> float | None:
    """`part / whole`; None where the whole is nothing."""
    return float(part) / float(whole) if whole else None


def beyond_chance(observed: float | None, by_chance: float) -> float | None:
    """Agreement beyond chance as a share of what is possible beyond chance; None where nothing is possible."""
    return None if observed is None or by_chance == 1 else (observed - by_chance) / (1 - by_chance)


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


def label_warnings(total: Sums, n_annotators: int) -> tuple[AgreementWarning, ...]:
    """What to mind when reading the figures of one label.

    Source: `agreement.md` section 7.
    """
    if not total.pairable:
        return ("SINGLE_ANNOTATOR",) if n_annotators == 1 else ("NO_OVERLAP",)
    few: tuple[AgreementWarning, ...] = ("FEW_ITEMS",) if total.pairable < FEW_ITEMS else ()
    rare: tuple[AgreementWarning, ...] = ("RARE_CLASS",) if min(total.zeros, total.ones) < RARE_CLASS else ()
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

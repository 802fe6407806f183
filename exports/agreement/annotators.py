"""One annotator against the rest on one label (exports/contracts/agreement.md#annotators-and-consensus)."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from exports.agreement.coefficients import ratio, unit_sums
from exports.agreement.pairs import kappas
from exports.agreement.patterns import Entries, LabelPatterns, TaskPatterns
from exports.agreement.ratings import FloatArray, IntArray
from exports.agreement.resampling import BoolArray, Resampled, interval_or_none, wilson_interval
from exports.agreement.schema import AnnotatorAgreement, Interval, UndefinedReason


class AgainstRest(NamedTuple):
    """Counts of every annotator on one label: one number an annotator."""

    ratings: IntArray
    """Ratings."""
    yes: IntArray
    """Ratings that say yes."""
    cells: IntArray
    """Annotators × 4: units on which she and the majority of the others say yes, only she, only they, neither."""
    ties: IntArray
    """Units on which the others tie."""
    lone_dissents: IntArray
    """Units with three ratings or more on which she alone says otherwise."""


class AnnotatorStatistics:
    """Every annotator against the others on one label: what it asks of the resamples, and how it reads them."""

    def __init__(self, task: TaskPatterns, label: LabelPatterns) -> None:
        """Plan alpha without each annotator."""
        self.annotators, self.label = task.annotators, label
        entries = without_entries(label, len(task.annotators))
        self.totals = label.total(entries)
        self.statistic = task.statistic([(label, entries)], delta_alphas, task.frame(label, at_least=2))
        """Alpha without each annotator, less alpha of all."""

    def read(self, resampled: Resampled) -> Iterator[AnnotatorAgreement]:
        """Every annotator, by name."""
        counts = count_against_rest(self.label, len(self.annotators))
        alphas = [None if np.isnan(value) else float(value) for value in alphas_without(self.totals)]
        for rater, name in enumerate(self.annotators):
            yield annotator_agreement(
                self.label.label,
                name,
                rater,
                counts,
                (alphas[0], alphas[rater + 1]),
                bool((self.totals[:2] + self.totals[3 + 3 * rater : 5 + 3 * rater]).any()),
                interval_or_none(resampled[self.statistic], rater),
            )


def without_entries(label: LabelPatterns, n_annotators: int) -> Entries:
    """`zeros`, `ones` and `disagreement` of each pattern; then for each annotator what her absence adds to them."""
    whole = alpha_columns(label.zeros, label.ones)
    without = alpha_columns(*others(label))
    patterns = np.arange(len(label.units))
    return Entries(
        patterns=np.concatenate([np.repeat(patterns, 3), np.repeat(label.patterns, 3)]),
        columns=np.concatenate(
            [np.tile(np.arange(3), len(patterns)), (3 + 3 * label.raters[:, np.newaxis] + np.arange(3)).reshape(-1)]
        ),
        values=np.concatenate([whole.reshape(-1), (without - whole[label.patterns]).reshape(-1)]),
        width=3 + 3 * n_annotators,
    )


def alpha_columns(zeros: IntArray, ones: IntArray) -> FloatArray:
    """What alpha is a function of, over pairable units: units × (`zeros`, `ones`, `disagreement`)."""
    sums = unit_sums(zeros, ones)
    return np.stack([sums.zeros, sums.ones, sums.disagreement], axis=1)


def others(label: LabelPatterns) -> tuple[IntArray, IntArray]:
    """For each rating, how many others on its unit say no and how many say yes."""
    return label.zeros[label.patterns] - (1 - label.yes), label.ones[label.patterns] - label.yes


def alphas_without(totals: FloatArray) -> FloatArray:
    """Alpha of all, then alpha without each annotator, from totals of `without_entries`; NaN where undefined."""
    whole = totals[..., :3]
    parts = totals.reshape(*totals.shape[:-1], -1, 3)
    sums = np.concatenate([whole[..., np.newaxis, :], whole[..., np.newaxis, :] + parts[..., 1:, :]], axis=-2)
    zeros, ones, disagreement = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: FloatArray = 1 - (zeros + ones - 1) * disagreement / (2 * zeros * ones)
    return found


def delta_alphas(totals: FloatArray) -> FloatArray:
    """Alpha without each annotator less alpha of all (… × annotators)."""
    found = alphas_without(totals)
    return found[..., 1:] - found[..., :1]


def count_against_rest(label: LabelPatterns, n_annotators: int) -> AgainstRest:
    """The counts of every annotator."""
    no, yes = others(label)
    units = label.units[label.patterns]
    decided = no != yes
    cells = 4 * label.raters + 2 * (1 - label.yes) + (yes < no)

    def count(where: BoolArray) -> IntArray:
        return np.bincount(label.raters[where], units[where], n_annotators).astype(np.int64)

    same = np.where(label.yes == 1, yes, no)
    return AgainstRest(
        ratings=count(units > 0),
        yes=count(label.yes == 1),
        cells=np.bincount(cells[decided], units[decided], 4 * n_annotators).astype(np.int64).reshape(-1, 4),
        ties=count((no == yes) & (no > 0)),
        lone_dissents=count((same == 0) & (no + yes >= 2)),
    )


def annotator_agreement(
    label: str,
    name: str,
    rater: int,
    counts: AgainstRest,
    alphas: tuple[float | None, float | None],
    pairable_without: bool,
    delta_interval: Interval | None,
) -> AnnotatorAgreement:
    """One annotator on one label, from alpha of all and without her."""
    whole, without = alphas
    n_ratings, yes = int(counts.ratings[rater]), int(counts.yes[rater])
    both, only_she, only_they, neither = counts.cells[rater].tolist()
    compared = both + only_she + only_they + neither
    kappa = float(kappas(counts.cells[rater].astype(np.float64))[0])
    figures = {
        "positive_rate": ratio(yes, n_ratings),
        "alpha_without": without,
        "delta_alpha": None if whole is None or without is None else without - whole,
        "agreement_with_majority_of_others": ratio(both + neither, compared),
        "kappa_with_majority_of_others": None if np.isnan(kappa) else kappa,
        "bias_index": ratio(only_she - only_they, compared),
    }
    n_others = np.count_nonzero(counts.ratings) - (n_ratings > 0)

    def reason(figure: str) -> UndefinedReason:
        if figure in ("alpha_without", "delta_alpha"):
            return alpha_reason(pairable_without, int(n_others), without is None)
        return "constant_both_raters" if compared and figure == "kappa_with_majority_of_others" else "no_pairable_items"

    return AnnotatorAgreement(
        label=label,
        rater=name,
        n_ratings=n_ratings,
        positive_rate_interval=wilson_interval(yes, n_ratings) if n_ratings else None,
        delta_interval=delta_interval,
        n_compared=compared,
        n_ties=int(counts.ties[rater]),
        lone_dissents=int(counts.lone_dissents[rater]),
        **figures,
        undefined={figure: reason(figure) for figure, value in figures.items() if value is None},
    )


def alpha_reason(pairable_without: bool, n_others: int, without_is_undefined: bool) -> UndefinedReason:
    """Why alpha without an annotator is undefined; where it is defined, alpha of all is not for lack of variation."""
    if pairable_without or not without_is_undefined:
        return "no_variation"
    return "single_annotator" if n_others == 1 else "no_pairable_items"

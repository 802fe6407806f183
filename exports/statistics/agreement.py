"""Agreement on whole tasks: every figure of `agreement.json`, from arrays of ratings."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from annotation.argilla.labels import RULES, TASKS
from exports.statistics.agreement_schema import (
    Agreement,
    AnnotatorAgreement,
    Discards,
    LabelAgreement,
    PairAgreement,
    TaskAgreement,
)
from exports.statistics.annotators import (
    AnnotatorEstimators,
    PairEstimators,
    identical_vectors,
    listed_pairs,
    measure_overlap,
)
from exports.statistics.exchange import measure_exchange
from exports.statistics.labels import LabelEstimators, MacroAlpha, MacroFigures, conditional_agreement, count_violations
from exports.statistics.patterns import task_patterns
from exports.statistics.ratings import InputFile, Ratings
from exports.statistics.resampling import bootstrap
from exports.statistics.slices import language_parts, measure_changes, measure_slices, round_parts, split, week_parts
from exports.statistics.warnings import task_warnings, with_cautions

RESAMPLES = 2000  # enough to read; to publish take 10,000 (exports/contracts/agreement.md#intervals)
SIGNIFICANT = 0.05  # How often a file may name somebody, or a change, by chance


class TaskFigures(NamedTuple):
    """Every figure of a task that the joint bootstrap has a part in."""

    labels: dict[str, LabelAgreement]  # The labels in the order of the task, without warnings
    macro: MacroFigures  # The mean alpha of the labels
    pairs: tuple[PairAgreement, ...]  # label by label; kappa has an interval from 20 shared units on
    annotators: tuple[AnnotatorAgreement, ...]  # Every annotator against the others, label by label


def measure_figures(ratings: Ratings, resamples: int, seed: int) -> TaskFigures:
    task = task_patterns(ratings)
    pairs = [PairEstimators(task, label) for label in task.labels]
    labels = [LabelEstimators(task, label, own) for label, own in zip(task.labels, pairs, strict=True)]
    annotators = [AnnotatorEstimators(task, label) for label in task.labels]
    macro = MacroAlpha(task)
    estimators = [macro.estimator]
    estimators += [estimator for each in labels for estimator in (each.over_pairable, each.over_rated)]
    estimators += [each.estimator for each in pairs]
    estimators += [each.estimator for each in annotators]
    resampled = bootstrap(estimators, resamples, seed)
    return TaskFigures(
        labels={each.label.label: each.read(resampled) for each in labels},
        macro=macro.read(resampled, [each.support for each in labels]),
        pairs=tuple(pair for each in pairs for pair in each.read(resampled)),
        annotators=tuple(
            annotator
            for each, label, exchange in zip(annotators, labels, measure_exchange(ratings), strict=True)
            for annotator in each.read(resampled, label.support, exchange)
        ),
    )


def measure_agreement(
    tables: Sequence[Ratings], inputs: Sequence[InputFile], resamples: int = RESAMPLES, seed: int = 0
) -> Agreement:
    """Agreement on each task of `tables`, at most one table a task; the same arguments give the same digits."""
    by_task = {ratings.task: ratings for ratings in tables}
    latest = max((ratings.latest for ratings in tables if ratings.latest is not None), default=None)
    return Agreement(
        latest_response=None if latest is None else latest.isoformat(),
        seed=seed,
        resamples=resamples,
        inputs=tuple(inputs),
        tasks={task: measure_task(by_task[task], resamples, seed, len(by_task)) for task in TASKS if task in by_task},
    )


def measure_task(ratings: Ratings, resamples: int, seed: int, n_tasks: int = 1) -> TaskAgreement:
    """Agreement on every label of one task of so many; without responses every figure is undefined."""
    figures = measure_figures(ratings, resamples, seed)
    rounds, weeks, languages = (split(ratings, parts(ratings)) for parts in (round_parts, week_parts, language_parts))
    violations = count_violations(ratings)
    found = TaskAgreement(
        n_units=len(ratings.unit_records),
        n_records=len(np.unique(ratings.unit_records)),
        n_duplicates=ratings.n_duplicates,
        annotators=tuple(sorted(ratings.annotators)),
        labels=with_cautions(ratings, figures.labels),
        **figures.macro._asdict(),
        identical_vectors=identical_vectors(ratings),
        pairs=figures.pairs,
        annotators_vs_rest=tuple(_judged(each, SIGNIFICANT / n_tasks) for each in figures.annotators),
        constraint_violations={rule: sum(counts.values()) for rule, counts in violations.items()},
        constraint_violations_by_annotator=violations,
        conditional=tuple(
            conditional_agreement(ratings, rule, resamples, seed) for rule in RULES if rule.task == ratings.task
        ),
        discards=_measure_discards(ratings),
        overlap=measure_overlap(ratings),
        rounds=measure_slices(ratings, rounds, resamples, seed),
        weeks=measure_slices(ratings, weeks, resamples, seed),
        languages=measure_slices(ratings, languages, resamples, seed),
        changes=measure_changes(ratings, "round", rounds, resamples, seed)
        + measure_changes(ratings, "week", weeks, resamples, seed),
        warnings=(),
    )
    pairs, left_out = listed_pairs(found.pairs, len(found.annotators))
    return found.model_copy(
        update={"warnings": task_warnings(ratings, found), "pairs": pairs, "pairs_left_out": left_out}
    )


def _judged(found: AnnotatorAgreement, level: float) -> AnnotatorAgreement:
    if found.p_holm is None or found.p_holm >= level:
        return found
    return found.model_copy(update={"stands_out": True})


def _measure_discards(ratings: Ratings) -> Discards | None:
    """Everyone who submitted or discarded anything has a share; None where the files do not tell."""
    submitted = np.bincount(ratings.response_annotators, minlength=len(ratings.annotators))
    if ratings.discards is None:
        return None
    answered = dict(zip(ratings.annotators, submitted.tolist(), strict=True))
    n_discarded = sum(ratings.discards.values())
    n_responses = n_discarded + len(ratings.units)
    if not n_responses:
        return None
    return Discards(
        n_responses=n_discarded,
        share=n_discarded / n_responses,
        by_annotator={
            name: ratings.discards.get(name, 0) / (ratings.discards.get(name, 0) + answered.get(name, 0))
            for name in sorted({*answered, *ratings.discards})
        },
    )

"""Agreement on whole tasks, by round, ISO week and language too: every figure of `agreement.json`."""

import math
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

import numpy as np

from annotation.argilla.labels import RULES, TASKS
from exports.statistics import agreement_schema as schema
from exports.statistics import annotators as of_annotators
from exports.statistics import labels as by_label
from exports.statistics.ratings import EPOCH, InputFile, IntArray, MeasuredTask, Ratings, Votes, count_votes
from exports.statistics.resampling import Resampled, bootstrap, task_patterns
from exports.statistics.scaled_labels import ScaledEstimators
from exports.statistics.table import figures_of, totals
from exports.statistics.warnings import task_warnings, with_cautions

_UNKNOWN_LANGUAGE = "und"
_MICROSECONDS_A_DAY = 86_400_000_000


class Parts(NamedTuple):
    names: tuple[str, ...]
    responses: IntArray  # Number of the part of each response, counted from 0; -1 where it belongs to none


class Part(NamedTuple):
    name: str
    records: IntArray  # Numbers of its records, sorted
    unit_records: IntArray  # Place in `records` of each of its units
    votes: Votes
    yes: IntArray  # Annotators × labels: ratings that say yes
    ratings: IntArray  # Annotators × labels: ratings


def _round_parts(ratings: Ratings) -> Parts:
    return Parts(ratings.rounds, ratings.response_rounds)


def _no_parts(ratings: Ratings) -> Parts:
    return Parts((), ratings.response_rounds)


def _week_parts(ratings: Ratings) -> Parts:
    """The ISO weeks (UTC) in order of time; all responses of a unit belong to the week of its last one."""
    if not len(ratings.units):
        return Parts((), np.empty(0, dtype=np.int64))
    last = np.full(len(ratings.unit_records), np.iinfo(np.int64).min)
    np.maximum.at(last, ratings.units, ratings.moments)
    # 1 January 1970 was a Thursday, and the Thursday names the ISO week.
    thursdays, weeks = np.unique((last // _MICROSECONDS_A_DAY + 3) // 7, return_inverse=True)
    names = ("{:04d}-W{:02d}".format(*(EPOCH + timedelta(weeks=week)).isocalendar()[:2]) for week in thursdays.tolist())
    return Parts(tuple(names), weeks.astype(np.int64)[ratings.units])


def _language_parts(ratings: Ratings) -> Parts:
    """The languages of the units by code; those without one are `und`."""
    names, units = np.unique([code or _UNKNOWN_LANGUAGE for code in ratings.unit_languages], return_inverse=True)
    return Parts(tuple(names.tolist()), units[ratings.units])


def _split(ratings: Ratings, parts: Parts) -> list[Part]:
    order = np.argsort(parts.responses, kind="stable")
    ends = np.searchsorted(parts.responses[order], np.arange(len(parts.names) + 1))
    return [_part_of(ratings, name, order[ends[number] : ends[number + 1]]) for number, name in enumerate(parts.names)]


def _part_of(ratings: Ratings, name: str, responses: IntArray) -> Part:
    units, places = np.unique(ratings.units[responses], return_inverse=True)
    records, unit_records = np.unique(ratings.unit_records[units], return_inverse=True)
    values = ratings.values[responses]
    by_annotator = count_votes(values, ratings.response_annotators[responses], len(ratings.annotators))
    return Part(
        name=name,
        records=records,
        unit_records=unit_records,
        votes=count_votes(values, places, len(units)),
        yes=by_annotator.ones,
        ratings=by_annotator.ratings,
    )


def _measure_slices(
    ratings: Ratings, parts: list[Part], resamples: int, seed: int
) -> tuple[schema.AgreementSlice, ...]:
    found = []
    for part in parts:
        intervals = by_label.alpha_intervals(part.votes, part.unit_records, len(part.records), resamples, seed)
        labels = {
            label: _slice_label(ratings, part, column, alpha)
            for column, (label, alpha) in enumerate(zip(ratings.labels, intervals, strict=True))
        }
        n_records, n_units = len(part.records), len(part.unit_records)
        found.append(schema.AgreementSlice(name=part.name, n_records=n_records, n_units=n_units, labels=labels))
    return tuple(found)


def _slice_label(
    ratings: Ratings, part: Part, column: int, alpha_interval: schema.Interval | None
) -> schema.SliceLabel:
    total = totals(part.votes.zeros[:, column], part.votes.ones[:, column])
    yes, n_ratings = part.yes[:, column], part.ratings[:, column]
    raters = np.flatnonzero(n_ratings)
    return schema.SliceLabel(
        n_pairable_items=int(total.pairable),
        interval=alpha_interval,
        positive_rates={ratings.annotators[rater]: float(yes[rater] / n_ratings[rater]) for rater in raters},
        **figures_of(total, len(raters), schema.SliceLabel.model_fields),
    )


RESAMPLES = 2000  # Enough to read; to publish take 10,000 (exports/contracts/agreement.md#intervals)
SIGNIFICANT = 0.05  # How often a file may name somebody, or a change, by chance


class TaskFigures(NamedTuple):
    """Every figure of a task that the joint bootstrap has a part in."""

    labels: dict[str, schema.LabelAgreement]  # The labels in the order of the task, without warnings
    macro: by_label.MacroFigures  # The mean alpha of the labels
    pairs: tuple[schema.PairAgreement, ...]  # Label by label; kappa has an interval from 20 shared units on
    scaled_pairs: tuple[schema.ScaledPair, ...]  # The same on labels that are no yes or no
    annotators: tuple[schema.AnnotatorAgreement, ...]  # Every annotator against the others, label by label


def measure_figures(ratings: Ratings, resamples: int, seed: int) -> TaskFigures:
    scaled = [ScaledEstimators(ratings, label) for label in ratings.scaled]
    exchanges = of_annotators.measure_exchange(ratings)
    on_scales = tuple(
        each
        for label, exchange in zip(ratings.scaled, exchanges[len(ratings.labels) :], strict=True)
        for each in of_annotators.scaled_annotators(ratings, label, exchange)
    )
    asked = [estimator for each in scaled for estimator in each.estimators]
    if not ratings.labels:
        found = TaskFigures({}, by_label.MacroFigures(None, None, 0), (), (), on_scales)
        return _with_scaled(found, scaled, bootstrap(asked, resamples, seed))
    task = task_patterns(ratings)
    pairs = [of_annotators.PairEstimators(task, label) for label in task.labels]
    labels = [by_label.LabelEstimators(task, label, own) for label, own in zip(task.labels, pairs, strict=True)]
    annotators = [of_annotators.AnnotatorEstimators(task, label) for label in task.labels]
    macro = by_label.MacroAlpha(task)
    estimators = [macro.estimator]
    estimators += [estimator for each in labels for estimator in (each.over_pairable, each.over_rated)]
    estimators += [each.estimator for each in pairs]
    estimators += [each.estimator for each in annotators]
    resampled = bootstrap([*estimators, *asked], resamples, seed)
    found = TaskFigures(
        labels={each.label.label: each.read(resampled) for each in labels},
        macro=macro.read(resampled, [each.support for each in labels]),
        pairs=tuple(pair for each in pairs for pair in each.read(resampled)),
        annotators=tuple(
            annotator
            for each, label, exchange in zip(annotators, labels, exchanges, strict=False)
            for annotator in each.read(resampled, label.support, exchange)
        )
        + on_scales,
        scaled_pairs=(),
    )
    return _with_scaled(found, scaled, resampled) if scaled else found


def _with_scaled(found: TaskFigures, scaled: Sequence[ScaledEstimators], resampled: Resampled) -> TaskFigures:
    """All labels by name; alphas of several scales have a mean, and none of its own interval."""
    labels: dict[str, schema.LabelAgreement] = dict(found.labels)
    for each in scaled:
        figures = each.read(resampled)
        labels[each.label.name] = figures.model_copy(update={"warnings": each.warnings(figures)})
    alphas = [each.krippendorff_alpha for each in labels.values() if each.krippendorff_alpha is not None]
    return found._replace(
        labels=dict(sorted(labels.items())),
        macro=by_label.MacroFigures(math.fsum(alphas) / len(alphas) if alphas else None, None, len(alphas)),
        scaled_pairs=tuple(pair for each in scaled for pair in each.pairs.read(resampled)),
    )


def measure_agreement(
    tables: Sequence[Ratings],
    inputs: Sequence[InputFile],
    resamples: int = RESAMPLES,
    seed: int = 0,
    least_excess: float = schema.LEAST_EXCESS,
) -> schema.Agreement:
    """Agreement on each task of `tables`, at most one table a task; the same arguments give the same digits."""
    by_task = {ratings.measured_as: ratings for ratings in tables}
    order: tuple[MeasuredTask, ...] = (*TASKS, schema.RATINGS)
    latest = max((ratings.latest for ratings in tables if ratings.latest is not None), default=None)
    return schema.Agreement(
        latest_response=None if latest is None else latest.isoformat(),
        seed=seed,
        resamples=resamples,
        least_excess=least_excess,
        inputs=tuple(inputs),
        tasks={
            task: measure_task(by_task[task], resamples, seed, len(by_task), least_excess)
            for task in order
            if task in by_task
        },
    )


def measure_task(
    ratings: Ratings, resamples: int, seed: int, n_tasks: int = 1, least_excess: float = schema.LEAST_EXCESS
) -> schema.TaskAgreement:
    """Agreement on every label of one task of so many; without responses every figure is undefined."""
    figures = measure_figures(ratings, resamples, seed)
    has_parts = ratings.own_labels is None and ratings.labels
    told = (_round_parts, _week_parts, _language_parts) if has_parts else (_no_parts,) * 3
    rounds, weeks, languages = (_split(ratings, parts(ratings)) for parts in told)
    violations = by_label.count_violations(ratings) if ratings.own_labels is None else {}
    found = schema.TaskAgreement(
        n_units=len(ratings.unit_records),
        n_records=len(np.unique(ratings.unit_records)),
        n_duplicates=ratings.n_duplicates,
        annotators=tuple(sorted(ratings.annotators)),
        labels=figures.labels | (with_cautions(ratings, figures.labels) if ratings.labels else {}),
        **figures.macro._asdict(),
        identical_vectors=None if ratings.scaled else of_annotators.identical_vectors(ratings),
        pairs=figures.pairs,
        annotators_vs_rest=tuple(
            each.model_copy(
                update={"stands_out": True, "examples": of_annotators.examples(ratings, each.label, each.rater)}
            )
            if (each.p_holm or 1) < SIGNIFICANT / n_tasks and (each.excess_low or 0) >= least_excess
            else each
            for each in figures.annotators
        ),
        constraint_violations={rule: sum(counts.values()) for rule, counts in violations.items()},
        constraint_violations_by_annotator=violations,
        conditional=tuple(
            by_label.conditional_agreement(ratings, rule.name, rule.implication, resamples, seed)
            for rule in (RULES[ratings.task] if ratings.own_labels is None else ())
            if rule.implication and {*rule.implication[:2]} <= {*ratings.labels}
        ),
        discards=_measure_discards(ratings),
        overlap=of_annotators.measure_overlap(ratings),
        rounds=_measure_slices(ratings, rounds, resamples, seed),
        weeks=_measure_slices(ratings, weeks, resamples, seed),
        languages=_measure_slices(ratings, languages, resamples, seed),
        warnings=(),
        scaled_pairs=figures.scaled_pairs,
    )
    pairs, left_out = of_annotators.listed_pairs((*found.pairs, *found.scaled_pairs), len(found.annotators))
    return found.model_copy(
        update={
            "warnings": task_warnings(ratings, found),
            "pairs": tuple(pair for pair in pairs if isinstance(pair, schema.PairAgreement)),
            "scaled_pairs": tuple(pair for pair in pairs if isinstance(pair, schema.ScaledPair)),
            "pairs_left_out": left_out,
        }
    )


def _measure_discards(ratings: Ratings) -> schema.Discards | None:
    """None where neither files nor manifests tell; by annotator where files do, of all who submitted or discarded."""
    submitted = np.bincount(ratings.response_annotators, minlength=len(ratings.annotators))
    answered, discards = dict(zip(ratings.annotators, submitted.tolist(), strict=True)), ratings.discards
    n_responses = (ratings.n_discarded or 0) + len(ratings.units)
    if ratings.n_discarded is None or not n_responses:
        return None
    names = [] if discards is None else sorted({*answered, *discards})
    thrown = discards or {}
    return schema.Discards(
        n_responses=ratings.n_discarded,
        share=ratings.n_discarded / n_responses,
        by_annotator={name: thrown.get(name, 0) / (thrown.get(name, 0) + answered.get(name, 0)) for name in names},
    )

"""Agreement on whole tasks, by round, ISO week and language too: every figure of `agreement.json`."""

import math
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from annotation.argilla.labels import RULES, TASKS
from exports.statistics import agreement_schema as schema
from exports.statistics import annotators as of_annotators
from exports.statistics import labels as by_label
from exports.statistics.distributions import holm
from exports.statistics.ratings import (
    EPOCH,
    BoolArray,
    FloatArray,
    InputFile,
    IntArray,
    MeasuredTask,
    Ratings,
    Votes,
    count_votes,
)
from exports.statistics.resampling import (
    Estimator,
    Resampled,
    Support,
    alpha_support,
    bootstrap,
    joint_interval,
    task_patterns,
)
from exports.statistics.scaled_labels import ScaledEstimators
from exports.statistics.table import alpha_sums, alphas, coefficients, figures_of, totals
from exports.statistics.warnings import task_warnings, with_cautions

_PERMUTATIONS = 999  # Exchanges of records for every step
_SETTLED = 20  # A step whose labels all had more exchanges as large as this among those needs no more
_HOLM_RESOLUTION = 50  # Exchanges for each test of a kind, lest Holm's p could never get small
_FEWEST_RECORDS = 2  # With a pairable unit in each of two: one record alone has nothing to be exchanged with
_MOST_STEPS = 104  # Steps of a kind that are tested, the latest: two years of weeks
_BLOCK = 2_000_000  # Exchanged records held in memory at a time
_MANY_RECORDS, _ALIKE = 500, 4  # From so many on those alike are dealt together, with as many of each kind on average
_TIE = 1e-9  # Differences closer than this are equal: the order of a sum must not decide
Kind = Literal["round", "week"]


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

    @property
    def frame(self) -> BoolArray:
        pairable = (self.votes.ratings >= 2).any(axis=1)
        return np.bincount(self.unit_records[pairable], minlength=len(self.records)) > 0

    @property
    def sums(self) -> FloatArray:
        return alpha_sums(self.votes, self.unit_records, len(self.records))

    def support(self, label: int) -> Support:
        zeros, ones = self.votes.zeros[:, label], self.votes.ones[:, label]
        return alpha_support(zeros, ones, self.unit_records, len(self.records))


def round_parts(ratings: Ratings) -> Parts:
    return Parts(ratings.rounds, ratings.response_rounds)


def _no_parts(ratings: Ratings) -> Parts:
    return Parts((), ratings.response_rounds)


def week_parts(ratings: Ratings) -> Parts:
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


def split(ratings: Ratings, parts: Parts) -> list[Part]:
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


class Step(NamedTuple):
    before: Part
    after: Part
    sums_before: FloatArray  # Records × sums of `alphas` in the earlier part, zeros where a record is not in it
    sums_after: FloatArray  # The same for the later part
    both: BoolArray  # Whether the record has pairable units in both parts
    tested: BoolArray  # Labels whose change is tested


def measure_changes(
    ratings: Ratings, kind: Kind, parts: Sequence[Part], resamples: int, seed: int
) -> tuple[schema.AlphaChange, ...]:
    """The change of each label's alpha from each part to the next, step by step in the order of the labels.

    Where alpha is defined in both parts and each has two records with a pairable unit of it; Holm over all of these.
    """
    pairs = list(pairwise(parts))[-_MOST_STEPS:]
    steps = [step for step in (step_between(*pair) for pair in pairs) if step.tested.any()]
    n_tests = sum(int(step.tested.sum()) for step in steps)
    exchanges = max(_PERMUTATIONS, _HOLM_RESOLUTION * n_tests - 1)
    found: list[schema.AlphaChange] = []
    for number, step in enumerate(steps):
        random = np.random.default_rng([seed, number, *kind.encode()])
        found += _step_changes(ratings, kind, step, _permutation_p(step, exchanges, random), resamples, seed)
    corrected = holm([change.p_value for change in found])
    return tuple(change.model_copy(update={"p_holm": p}) for change, p in zip(found, corrected, strict=True))


def step_between(before: Part, after: Part) -> Step:
    records = np.union1d(before.records[before.frame], after.records[after.frame])
    sums = []
    for part in (before, after):
        rows = np.zeros((len(records), 3 * part.yes.shape[1]))
        rows[np.searchsorted(records, part.records[part.frame])] = part.sums[part.frame]
        sums.append(rows)
    enough = [np.count_nonzero(rows[:, 0::3] + rows[:, 1::3], axis=0) >= _FEWEST_RECORDS for rows in sums]
    defined = [np.isfinite(alphas(rows.sum(axis=0))) for rows in sums]
    return Step(
        before=before,
        after=after,
        sums_before=sums[0],
        sums_after=sums[1],
        both=np.isin(records, before.records[before.frame]) & np.isin(records, after.records[after.frame]),
        tested=np.logical_and.reduce([*enough, *defined]),
    )


def _step_changes(
    ratings: Ratings, kind: Kind, step: Step, p_values: FloatArray, resamples: int, seed: int
) -> Iterator[schema.AlphaChange]:
    sums = np.concatenate([step.sums_before, step.sums_after], axis=1)
    estimator = Estimator(sums, _alpha_difference, np.ones(len(sums), dtype=np.bool_))
    replicates = bootstrap([estimator], resamples, seed)[estimator]
    for column in np.flatnonzero(step.tested):
        before, after = (_exact_alpha(part, int(column)) for part in (step.before, step.after))
        yield schema.AlphaChange(
            kind=kind,
            label=ratings.labels[column],
            before=step.before.name,
            after=step.after.name,
            difference=after - before,
            interval=joint_interval(
                replicates, int(column), step.before.support(int(column)), step.after.support(int(column))
            ),
            p_value=float(p_values[column]),
            p_holm=float(p_values[column]),
        )


def _exact_alpha(part: Part, column: int) -> float:
    """Alpha of a label in a part, to the last digit as in its slice."""
    alpha = coefficients(totals(part.votes.zeros[:, column], part.votes.ones[:, column]))["krippendorff_alpha"]
    assert alpha is not None
    return alpha


def _alpha_difference(sums: FloatArray) -> FloatArray:
    """Alpha after less alpha before, from totals of both side by side: … × labels, NaN undefined."""
    half = sums.shape[-1] // 2
    return alphas(sums[..., half:]) - alphas(sums[..., :half])


def _permutation_p(step: Step, exchanges: int, random: np.random.Generator) -> FloatArray:
    """Two-sided permutation p of each label's change; NaN where alpha is undefined in one of the parts.

    Records of one part are dealt out anew to the two parts, as many to each as before; one in both keeps or swaps its
    halves. An exchange that leaves alpha undefined counts as a difference as large, so p errs on the safe side.
    """
    observed = np.abs(_alpha_difference(np.concatenate([step.sums_before.sum(axis=0), step.sums_after.sum(axis=0)])))
    deck = deck_of(step)
    base, gained = deck.counts @ deck.early, deck.late - deck.early
    whole = base + deck.counts @ deck.late
    as_large, made = np.zeros(len(observed)), 0
    while made < exchanges and not (made >= _PERMUTATIONS and as_large[step.tested].min() > _SETTLED):
        wanted = (_PERMUTATIONS if made < _PERMUTATIONS else exchanges) - made
        dealt = deal(deck, min(wanted, max(1, _BLOCK // len(gained))), random)
        after = base + dealt @ gained
        differences = np.abs(_alpha_difference(np.concatenate([whole - after, after], axis=1)))
        as_large += np.count_nonzero(~(differences < observed - _TIE), axis=0)
        made += len(dealt)
    return np.where(np.isfinite(observed), (1 + as_large) / (1 + made), np.nan)


class Deck(NamedTuple):
    counts: IntArray  # How many records are of each kind
    both: BoolArray  # Whether they have pairable units in both parts
    late: FloatArray  # Kinds × what a record adds to the later part if dealt there; of one in both, its later half
    early: FloatArray  # What it adds otherwise: nothing, or the earlier half
    n_late: int  # How many of the records that are in one part only are in the later one


def deck_of(step: Step) -> Deck:
    both = step.both[:, np.newaxis]
    late = np.where(both, step.sums_after, step.sums_after + step.sums_before)
    early = np.where(both, step.sums_before, 0.0)
    n_late = int(np.count_nonzero(step.sums_after[~step.both].any(axis=1)))
    single = Deck(np.ones(len(late), dtype=np.int64), step.both, late, early, n_late)
    if len(late) < _MANY_RECORDS:
        return single
    kinds, counts = np.unique(np.concatenate([both, late, early], axis=1), axis=0, return_counts=True)
    if len(kinds) * _ALIKE > len(late):
        return single
    late, early = np.split(kinds[:, 1:], 2, axis=1)
    return Deck(counts, kinds[:, 0] == 1, late, early, n_late)


def deal(deck: Deck, exchanges: int, random: np.random.Generator) -> FloatArray:
    """Exchanges × kinds: how many of each kind fall into the later part, or keep their two halves as they are."""
    dealt = np.empty((exchanges, len(deck.counts)))
    single = deck.counts[~deck.both]
    dealt[:, deck.both] = random.binomial(deck.counts[deck.both], 0.5, (exchanges, int(deck.both.sum())))
    if (single > 1).any():
        dealt[:, ~deck.both] = random.multivariate_hypergeometric(single, deck.n_late, exchanges)
        return dealt
    # Those with the smallest of random keys are late: several times faster than shuffling row by row.
    keys = np.append(random.random((exchanges, len(single))), np.full((exchanges, 1), -1.0), axis=1)
    dealt[:, ~deck.both] = keys[:, :-1] <= np.partition(keys, deck.n_late, axis=1)[:, deck.n_late, np.newaxis]
    return dealt


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
    asked = [estimator for each in scaled for estimator in each.estimators]
    if not ratings.labels:
        found = TaskFigures({}, by_label.MacroFigures(None, None, 0), (), (), ())
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
            for each, label, exchange in zip(annotators, labels, of_annotators.measure_exchange(ratings), strict=True)
            for annotator in each.read(resampled, label.support, exchange)
        ),
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
    tables: Sequence[Ratings], inputs: Sequence[InputFile], resamples: int = RESAMPLES, seed: int = 0
) -> schema.Agreement:
    """Agreement on each task of `tables`, at most one table a task; the same arguments give the same digits."""
    by_task = {ratings.measured_as: ratings for ratings in tables}
    order: tuple[MeasuredTask, ...] = (*TASKS, schema.RATINGS)
    latest = max((ratings.latest for ratings in tables if ratings.latest is not None), default=None)
    return schema.Agreement(
        latest_response=None if latest is None else latest.isoformat(),
        seed=seed,
        resamples=resamples,
        inputs=tuple(inputs),
        tasks={task: measure_task(by_task[task], resamples, seed, len(by_task)) for task in order if task in by_task},
    )


def measure_task(ratings: Ratings, resamples: int, seed: int, n_tasks: int = 1) -> schema.TaskAgreement:
    """Agreement on every label of one task of so many; without responses every figure is undefined."""
    figures = measure_figures(ratings, resamples, seed)
    has_parts = ratings.own_labels is None and ratings.labels
    told = (round_parts, week_parts, _language_parts) if has_parts else (_no_parts,) * 3
    rounds, weeks, languages = (split(ratings, parts(ratings)) for parts in told)
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
            each.model_copy(update={"stands_out": each.p_holm is not None and each.p_holm < SIGNIFICANT / n_tasks})
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
        changes=measure_changes(ratings, "round", rounds, resamples, seed)
        + measure_changes(ratings, "week", weeks, resamples, seed),
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
    """Everyone who submitted or discarded anything has a share; None where the files do not tell."""
    submitted = np.bincount(ratings.response_annotators, minlength=len(ratings.annotators))
    if ratings.discards is None:
        return None
    answered = dict(zip(ratings.annotators, submitted.tolist(), strict=True))
    n_discarded = sum(ratings.discards.values())
    n_responses = n_discarded + len(ratings.units)
    if not n_responses:
        return None
    return schema.Discards(
        n_responses=n_discarded,
        share=n_discarded / n_responses,
        by_annotator={
            name: ratings.discards.get(name, 0) / (ratings.discards.get(name, 0) + answered.get(name, 0))
            for name in sorted({*answered, *ratings.discards})
        },
    )

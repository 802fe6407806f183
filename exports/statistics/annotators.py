"""Annotators on one label: in pairs, each against the rest, and how units are shared out among them."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from exports.statistics import resampling
from exports.statistics.agreement_schema import (
    AnnotatorAgreement,
    Interval,
    Overlap,
    PairAgreement,
    RefusedReason,
    ScaledPair,
)
from exports.statistics.consensus import groups_of
from exports.statistics.distributions import holm, student_quantile, sum_tails, wilson_interval
from exports.statistics.ratings import (
    MISSING,
    YES,
    BoolArray,
    FloatArray,
    IntArray,
    Ratings,
    ScaledLabel,
    Votes,
    count_votes,
    met_pairs,
)
from exports.statistics.table import PAIR_STATISTICS, Cells, UndefinedReason, ratio, unit_sums
from exports.statistics.warnings import FEW_SHARED

_STEPS = 60  # Of the share of others that say otherwise: exact for up to seven ratings a unit, else rounded to one
_EXAMPLES = 3  # Units that are named of who stands out
_FEWEST_TO_TELL = 3  # Of two who differ nobody knows which one is off


class Exchange(NamedTuple):
    """Whether each annotator differs from the others by more than chance; NaN where that cannot be known.

    If annotators are interchangeable, each who judged the same units of a record could as well have given the votes of
    any other. So whole blocks of votes, all passages and labels, are dealt out anew, record by record: what makes one
    person's votes on a record hang together (a misread query) stays together.

    Source: exports/contracts/agreement.md#annotators-who-stand-out.
    """

    disagreement: FloatArray  # Share of the other ratings of their units that say otherwise, mean over these units
    expected_disagreement: FloatArray  # Its mean over all exchanges
    excess: FloatArray  # By how much more others differ from them than among themselves, where there are two or more
    excess_low: FloatArray  # The ends of its 95 % interval
    excess_high: FloatArray
    p: FloatArray  # Share of the exchanges in which they would differ as much or more
    p_holm: FloatArray  # The same, corrected by Holm for all annotators and labels that have one

    def of(self, rater: int) -> dict[str, float]:
        return {field: float(values[rater]) for field, values in self._asdict().items()}


class _Blocks(NamedTuple):
    """The votes of each person in each record, sorted so that those who can be exchanged stand together."""

    people: IntArray  # Number of the person
    starts: IntArray  # Where each group of people who judged the same units of a record begins
    sizes: IntArray  # People of each group
    shares: FloatArray  # Blocks × labels: share of other ratings that say otherwise, summed over the units of the block
    steps: IntArray  # The same in whole steps, by which exchanges are compared
    compared: IntArray  # Blocks × labels: units that others rated too
    told: IntArray  # Blocks × labels: units with three ratings or more
    excess: FloatArray  # Blocks × labels: how much more others differ from this one than among themselves, their sum


def measure_exchange(ratings: Ratings) -> list[Exchange]:
    """By label, those of yes and no first.

    p and excess are NaN of who judged the same units of a record as nobody else, or never with a third one.
    """
    blocks = _blocks_of(ratings)
    shape = (len(ratings.annotators), blocks.shares.shape[1])
    p, observed, expected = (np.full(shape, np.nan) for _ in range(3))
    excess = np.full((3, *shape), np.nan)
    sizes = np.repeat(blocks.sizes, blocks.sizes)
    for label in range(shape[1]):
        compared = np.bincount(blocks.people, blocks.compared[:, label], shape[0])
        means = np.repeat(np.add.reduceat(blocks.shares[:, label], blocks.starts) / blocks.sizes, blocks.sizes)
        some = compared > 0
        observed[some, label] = np.bincount(blocks.people, blocks.shares[:, label], shape[0])[some] / compared[some]
        expected[some, label] = np.bincount(blocks.people, means, shape[0])[some] / compared[some]
        can = np.bincount(blocks.people[(blocks.told[:, label] > 0) & (sizes > 1)], minlength=shape[0]) > 0
        p[can, label] = _tail_shares(blocks, label, shape[0])[can]
        excess[:, can, label] = _excess(blocks, label, shape[0])[:, can]
    corrected = np.full(shape, np.nan)
    told = np.isfinite(p)
    corrected[told] = holm(p[told].tolist())
    columns = (observed, expected, *excess, p, corrected)
    return [Exchange(*found) for found in zip(*(column.T for column in columns), strict=True)]


def _excess(blocks: _Blocks, label: int, n_people: int) -> FloatArray:
    """The excess of each person and both ends of its interval, by the variance between whole records, with Student's t.

    An imagined record without excess keeps records that are all alike from making it certain.
    """
    met = blocks.told[:, label] > 0
    people, more, units = blocks.people[met], blocks.excess[met, label], blocks.told[met, label]
    n, total = np.bincount(people, minlength=n_people), np.bincount(people, units, n_people)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.bincount(people, more, n_people) / total
        squares = np.bincount(people, (more - found[people] * units) ** 2, n_people) + (found * total / n) ** 2
        half = np.array([student_quantile(max(each - 1, 1)) for each in n.tolist()]) * np.sqrt(squares) / total
    return np.array([found, np.maximum(found - half, -1), np.minimum(found + half, 1)])


def _unlike_shares(ratings: Ratings) -> tuple[FloatArray, IntArray]:
    """Of each response on each label, those of yes and no first: how far the others are from it, and how many they are.

    These are -1 where the response leaves the label out. On yes and no and nominal scales how far is the share of
    others that say otherwise, else their mean distance as a share of the scale.
    """
    votes = count_votes(ratings.values, ratings.units, len(ratings.unit_records))
    answered = ratings.values != MISSING
    own = Votes(votes.zeros[ratings.units], votes.ones[ratings.units])
    others = np.where(answered, own.ratings - 1, -1)
    unlike = np.where(ratings.values == YES, own.zeros, own.ones) * answered
    keys = ratings.units * len(ratings.annotators) + ratings.response_annotators
    for label in ratings.scaled:
        rows = np.searchsorted(keys, label.units * len(ratings.annotators) + label.raters)
        apart, met = np.zeros(len(keys)), np.full(len(keys), -1)
        met[rows] = 0
        places = label.places[label.codes]
        width = float(np.ptp(label.places)) or 1.0
        pairs = met_pairs(label.units)
        gap = np.abs(places[pairs[0]] - places[pairs[1]])
        gap = gap > 0 if label.scale == "nominal" else gap / width
        for side in pairs:
            apart += np.bincount(rows[side], gap, len(keys))
            met += np.bincount(rows[side], minlength=len(keys))
        unlike, others = np.column_stack([unlike, apart]), np.column_stack([others, met])
    return unlike / np.maximum(others, 1), others


def _blocks_of(ratings: Ratings) -> _Blocks:
    shares, others = _unlike_shares(ratings)
    apart = shares * others
    whole = np.stack([np.bincount(ratings.units, column, len(ratings.unit_records)) for column in apart.T], axis=1) / 2
    among = (whole[ratings.units] - apart) / np.maximum(others * (others - 1) / 2, 1)
    excess = np.where(others + 1 >= _FEWEST_TO_TELL, shares - among, 0)
    records = ratings.unit_records[ratings.units]
    keys, blocks = np.unique(records * len(ratings.annotators) + ratings.response_annotators, return_inverse=True)

    def summed(columns: FloatArray | IntArray) -> FloatArray:
        return np.stack([np.bincount(blocks, column, len(keys)) for column in columns.T], axis=1)

    marks = np.zeros(len(keys), dtype=np.uint64)
    answered = others >= 0
    answers = answered @ (1 << np.arange(answered.shape[1]))
    np.add.at(marks, blocks, _scattered(ratings.units << answered.shape[1] | answers))
    block_records, people = np.divmod(keys, max(len(ratings.annotators), 1))
    order = np.lexsort((marks, block_records))
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = np.diff(block_records[order]).astype(np.bool_) | np.diff(marks[order]).astype(np.bool_)
    starts = np.flatnonzero(new)
    return _Blocks(
        people=people[order],
        starts=starts,
        sizes=np.diff(np.append(starts, len(order))),
        shares=summed(shares)[order],
        steps=summed(np.rint(shares * _STEPS)).astype(np.int64)[order],
        compared=summed((others > 0).astype(np.int64)).astype(np.int64)[order],
        told=summed((others + 1 >= _FEWEST_TO_TELL).astype(np.int64)).astype(np.int64)[order],
        excess=summed(excess)[order],
    )


def _scattered(numbers: IntArray) -> npt.NDArray[np.uint64]:
    """Different for different numbers, so that sums tell sets apart: SplitMix64 (Steele, Lea & Flood 2014)."""
    found = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        found = (found ^ found >> np.uint64(shift)) * np.uint64(factor)
    return found ^ found >> np.uint64(31)


def _tail_shares(blocks: _Blocks, label: int, n_people: int) -> FloatArray:
    """Share of the exchanges in which each person differs from the others at least as much as they do.

    Each exchange gives them one block of their group in every record, independently of the other records: the sum's
    distribution is the product of characteristic functions, so all exchanges count and none is drawn.
    """
    groups = np.repeat(np.arange(len(blocks.sizes)), blocks.sizes)
    steps = blocks.steps[:, label]
    excess = steps - np.minimum.reduceat(steps, blocks.starts)[groups] if len(steps) else steps
    open_groups = np.bincount(groups, excess, len(blocks.sizes)) > 0
    kept = open_groups[groups]
    if not kept.any():
        return np.ones(n_people)
    people, excess = blocks.people[kept], excess[kept] // np.gcd.reduce(excess[kept])
    groups = (np.cumsum(open_groups) - 1)[groups[kept]]
    marks = np.zeros(int(open_groups.sum()), dtype=np.uint64)
    np.add.at(marks, groups, _scattered(excess))
    _, firsts, kinds = np.unique(marks, return_index=True, return_inverse=True)
    values, places = np.unique(excess, return_inverse=True)
    first = np.isin(groups, firsts)
    counts = np.bincount(kinds[groups[first]] * len(values) + places[first], minlength=len(firsts) * len(values))
    shares = counts.reshape(-1, len(values)) / blocks.sizes[open_groups][firsts][:, np.newaxis]
    met = np.bincount(people * len(firsts) + kinds[groups], minlength=n_people * len(firsts))
    return sum_tails(values, shares, met.reshape(n_people, -1), np.bincount(people, excess, n_people).astype(np.int64))


CROWD = 20  # Of more annotators not all pairs are listed
PAIRS_KEPT = 200  # So many of them are


class PairEstimators:
    """The pairs of annotators on one label: what they ask of the resamples, and how they read them."""

    def __init__(self, task: resampling.TaskPatterns, label: resampling.LabelPatterns) -> None:
        self.annotators, self.label = task.annotators, label.label
        self.raters, self.cells, entries = _shared_cells(label, len(task.annotators))
        self.kappas = kappas(self.cells.reshape(-1).astype(np.float64))  # NaN where both say the same everywhere
        self.with_interval = np.flatnonzero((self.cells.sum(axis=1) >= FEW_SHARED) & ~np.isnan(self.kappas))
        chosen = self.with_interval
        self.is_crowd = len(task.annotators) > CROWD
        if self.is_crowd:
            entries = _of_pairs(entries, chosen)
            chosen = np.arange(len(chosen))

        def figures(totals: FloatArray) -> FloatArray:
            found = kappas(totals)
            return np.concatenate([found[..., chosen], mean_of_defined(found)], axis=-1)

        self.estimator = task.estimator([(label, entries)], figures, task.frame(label, at_least=2))

    def read(self, resampled: resampling.Resampled) -> Iterator[PairAgreement]:
        columns = {int(place): column for column, place in enumerate(self.with_interval)}
        for place, (first, second) in enumerate(self.raters.tolist()):
            yield pair_agreement(
                self.label,
                self.annotators[first],
                self.annotators[second],
                Cells(*self.cells[place].tolist()),
                resampling.or_none(resampling.interval(resampled[self.estimator], columns[place]))
                if place in columns
                else None,
            )

    def read_mean(self, resampled: resampling.Resampled) -> Interval | RefusedReason:
        """Of a crowd's mean there is none: most of its pairs share a unit or two, and there are thousands of them."""
        found = resampling.interval(resampled[self.estimator], len(self.with_interval))
        return "many" if self.is_crowd and len(self.kappas[~np.isnan(self.kappas)]) else found


def _of_pairs(entries: resampling.Entries, chosen: IntArray) -> resampling.Entries:
    pairs = entries.columns // 4
    kept = np.isin(pairs, chosen)
    columns = 4 * np.searchsorted(chosen, pairs[kept]) + entries.columns[kept] % 4
    return resampling.Entries(entries.patterns[kept], columns, entries.values[kept], 4 * len(chosen))


def _shared_cells(label: resampling.LabelPatterns, n_annotators: int) -> tuple[IntArray, IntArray, resampling.Entries]:
    """Of the pairs that share units: annotators (pairs × 2, sorted), cells (pairs × 4), cells of each pattern."""
    first, second = met_pairs(label.patterns)
    found, places = np.unique(label.raters[first] * n_annotators + label.raters[second], return_inverse=True)
    columns = 4 * places + 2 * (1 - label.yes[first]) + 1 - label.yes[second]
    at = label.patterns[first]
    return (
        np.stack([found // max(n_annotators, 1), found % max(n_annotators, 1)], axis=1),
        np.bincount(columns, label.units[at], 4 * len(found)).astype(np.int64).reshape(-1, 4),
        resampling.Entries(at, columns, np.ones(len(at)), 4 * len(found)),
    )


def kappas(totals: FloatArray) -> FloatArray:
    """Cohen's kappa (… × pairs) from cells (… × 4 a pair), NaN where both are constant alike; 0 where one is."""
    both, first, second, neither = (totals[..., cell::4] for cell in range(4))
    chance = (both + first) * (first + neither) + (both + second) * (second + neither)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: FloatArray = 2 * (both * neither - first * second) / chance
    return found


def mean_of_defined(values: FloatArray) -> FloatArray:
    """The mean over the last axis of what is not NaN (… × 1); NaN where nothing is."""
    defined = ~np.isnan(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean: FloatArray = np.where(defined, values, 0).sum(axis=-1, keepdims=True) / defined.sum(-1, keepdims=True)
    return mean


def pair_agreement(
    label: str, rater_a: str, rater_b: str, cells: Cells, kappa_interval: Interval | None
) -> PairAgreement:
    figures = {name: entry.compute(cells) if cells.n else None for name, entry in PAIR_STATISTICS.items()}
    return PairAgreement(
        label=label,
        rater_a=rater_a,
        rater_b=rater_b,
        n_shared=cells.n,
        **cells._asdict(),
        **figures,
        interval=kappa_interval,
        undefined={
            name: PAIR_STATISTICS[name].reason if cells.n else "no_pairable_items"
            for name, value in figures.items()
            if value is None
        },
    )


def listed_pairs(
    pairs: Sequence[PairAgreement | ScaledPair], n_annotators: int
) -> tuple[tuple[PairAgreement | ScaledPair, ...], int]:
    """The pairs that are listed, in their order, and how many are not: of a crowd only those with most shared units."""
    shared: Counter[tuple[str, str]] = Counter()
    for pair in pairs:
        shared[pair.rater_a, pair.rater_b] += pair.n_shared
    if n_annotators <= CROWD or len(shared) <= PAIRS_KEPT:
        return tuple(pairs), 0
    kept = set(sorted(shared, key=lambda names: (-shared[names], names))[:PAIRS_KEPT])
    return tuple(pair for pair in pairs if (pair.rater_a, pair.rater_b) in kept), len(shared) - PAIRS_KEPT


class AnnotatorEstimators:
    """Every annotator against the others on one label: what it asks of the resamples, and how it reads them."""

    def __init__(self, task: resampling.TaskPatterns, label: resampling.LabelPatterns) -> None:
        self.annotators, self.label = task.annotators, label
        entries = _without_entries(label, len(task.annotators))
        self.totals = label.total(entries)
        self.estimator = task.estimator([(label, entries)], _delta_alphas, task.frame(label, at_least=2))

    def read(
        self, resampled: resampling.Resampled, support: resampling.Support, exchange: Exchange
    ) -> Iterator[AnnotatorAgreement]:
        """Every annotator, by name; nobody stands out yet: that depends on the other tasks of the file."""
        ratings, yes, ties, lone, cells = self._count()
        alphas = _alphas_without(self.totals)
        for rater, name in enumerate(self.annotators):
            n_ratings = int(ratings[rater])
            both, only_own, only_others, neither = cells[rater].tolist()
            compared = both + only_own + only_others + neither
            found = {
                "alpha_without": alphas[rater + 1],
                "delta_alpha": alphas[rater + 1] - alphas[0],
                "kappa_with_majority_of_others": kappas(cells[rater].astype(np.float64))[0],
                **exchange.of(rater),
            }
            figures = {
                "positive_rate": ratio(yes[rater], n_ratings),
                "agreement_with_majority_of_others": ratio(both + neither, compared),
                "bias_index": ratio(only_own - only_others, compared),
                **{field: None if np.isnan(value) else float(value) for field, value in found.items()},
            }
            undefined = (each for each in AnnotatorAgreement.model_fields if each in figures and figures[each] is None)
            n_others = int(np.count_nonzero(ratings)) - (n_ratings > 0)
            yield AnnotatorAgreement(
                label=self.label.label,
                rater=name,
                n_ratings=n_ratings,
                positive_rate_interval=wilson_interval(int(yes[rater]), n_ratings) if n_ratings else None,
                delta_interval=resampling.absence_interval(resampled[self.estimator], rater, support),
                n_compared=compared,
                n_ties=int(ties[rater]),
                lone_dissents=int(lone[rater]),
                stands_out=False,
                **figures,
                undefined={each: self._reason(each, rater, n_others, figures, compared) for each in undefined},
            )

    def _reason(
        self, figure: str, rater: int, n_others: int, figures: Mapping[str, float | None], compared: int
    ) -> UndefinedReason:
        if figure in ("alpha_without", "delta_alpha"):
            # Where alpha without them is defined, alpha of all is not for lack of variation.
            pairable = (self.totals[:2] + self.totals[3 + 3 * rater : 5 + 3 * rater]).any()
            if pairable or figures["alpha_without"] is not None:
                return "no_variation"
            return "single_annotator" if n_others == 1 else "no_pairable_items"
        if figure in Exchange._fields[2:] and figures["disagreement"] is not None:
            return "no_exchange"
        return "constant_both_raters" if compared and figure == "kappa_with_majority_of_others" else "no_pairable_items"

    def _count(self) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
        """Ratings, yes, ties of the others, lone dissents among three or more, cells × 4 with the others' majority."""
        label, n_annotators = self.label, len(self.annotators)
        no, yes = _others(label)
        units = label.units[label.patterns]
        decided = no != yes
        cells = 4 * label.raters + 2 * (1 - label.yes) + (yes < no)

        def count(where: BoolArray) -> IntArray:
            return np.bincount(label.raters[where], units[where], n_annotators).astype(np.int64)

        same = np.where(label.yes == 1, yes, no)
        return (
            count(units > 0),
            count(label.yes == 1),
            count((no == yes) & (no > 0)),
            count((same == 0) & (no + yes >= 2)),
            np.bincount(cells[decided], units[decided], 4 * n_annotators).astype(np.int64).reshape(-1, 4),
        )


def scaled_annotators(ratings: Ratings, label: ScaledLabel, exchange: Exchange) -> Iterator[AnnotatorAgreement]:
    """Every annotator, by name, on a label that is no yes or no: only whether they differ from the others."""
    counts = np.bincount(label.raters, minlength=len(ratings.annotators)).tolist()
    for rater, name in enumerate(ratings.annotators):
        found = {field: None if np.isnan(value) else value for field, value in exchange.of(rater).items()}
        reason: UndefinedReason = "no_pairable_items" if found["disagreement"] is None else "no_exchange"
        missing = [field for field, value in found.items() if value is None]
        told = {"label": label.name, "rater": name, "n_ratings": counts[rater], "stands_out": False, **found}
        others = [field for field in AnnotatorAgreement.model_fields if field not in (*told, "examples", "undefined")]
        undefined = {**dict.fromkeys(others, "not_boolean"), **dict.fromkeys(missing, reason)}
        yield AnnotatorAgreement.model_validate(told | dict.fromkeys(others) | {"undefined": undefined})


def examples(ratings: Ratings, label: str, rater: str) -> tuple[str, ...]:
    """Units on which the others are farthest from one annotator, those of most others first."""
    column = (*ratings.labels, *(each.name for each in ratings.scaled)).index(label)
    shares, others = (found[:, column] for found in _unlike_shares(ratings))
    rows = np.flatnonzero((ratings.response_annotators == ratings.annotators.index(rater)) & (shares > 0))
    chosen = rows[np.lexsort((-others[rows], -shares[rows]))][:_EXAMPLES]
    names = ratings.unit_names or [":".join(filter(None, key)) for key in ratings.unit_keys]
    return tuple(names[unit] for unit in ratings.units[chosen])


def _without_entries(label: resampling.LabelPatterns, n_annotators: int) -> resampling.Entries:
    """`zeros`, `ones` and `disagreement` of each pattern; then for each annotator what their absence adds to them."""
    whole = _alpha_columns(label.zeros, label.ones)
    without = _alpha_columns(*_others(label))
    patterns = np.arange(len(label.units))
    return resampling.Entries(
        patterns=np.concatenate([np.repeat(patterns, 3), np.repeat(label.patterns, 3)]),
        columns=np.concatenate(
            [np.tile(np.arange(3), len(patterns)), (3 + 3 * label.raters[:, np.newaxis] + np.arange(3)).reshape(-1)]
        ),
        values=np.concatenate([whole.reshape(-1), (without - whole[label.patterns]).reshape(-1)]),
        width=3 + 3 * n_annotators,
    )


def _alpha_columns(zeros: IntArray, ones: IntArray) -> FloatArray:
    """What alpha is a function of, over pairable units: units × (`zeros`, `ones`, `disagreement`)."""
    sums = unit_sums(zeros, ones)
    return np.stack([sums.zeros, sums.ones, sums.disagreement], axis=1)


def _others(label: resampling.LabelPatterns) -> tuple[IntArray, IntArray]:
    return label.zeros[label.patterns] - (1 - label.yes), label.ones[label.patterns] - label.yes


def _alphas_without(totals: FloatArray) -> FloatArray:
    """Alpha of all, then alpha without each annotator, from totals of `_without_entries`; NaN where undefined."""
    whole = totals[..., :3]
    parts = totals.reshape(*totals.shape[:-1], -1, 3)
    sums = np.concatenate([whole[..., np.newaxis, :], whole[..., np.newaxis, :] + parts[..., 1:, :]], axis=-2)
    zeros, ones, disagreement = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: FloatArray = 1 - (zeros + ones - 1) * disagreement / (2 * zeros * ones)
    return found


def _delta_alphas(totals: FloatArray) -> FloatArray:
    found = _alphas_without(totals)
    return found[..., 1:] - found[..., :1]


def measure_overlap(ratings: Ratings) -> Overlap:
    """Units by number of responses, the groups of annotators that share units, by name, and how many pairs do not."""
    per_unit = np.bincount(ratings.units, minlength=len(ratings.unit_records))
    counts, units = np.unique(per_unit, return_counts=True)
    n_annotators, people = len(ratings.annotators), ratings.response_annotators
    first, second = met_pairs(ratings.units)
    joined = np.unique(people[first] * n_annotators + people[second])
    group = groups_of(ratings.units, people, n_annotators)
    return Overlap(
        units_by_ratings={int(count): int(n) for count, n in zip(counts, units, strict=True)},
        components=tuple(
            tuple(ratings.annotators[number] for number in np.flatnonzero(group == each)) for each in np.unique(group)
        ),
        pairs_apart=math.comb(n_annotators, 2) - len(joined),
    )


def identical_vectors(ratings: Ratings) -> float | None:
    """Share of pairs of responses to one unit that agree on every label; a response that lacks one forms no pair."""
    complete = (ratings.values != MISSING).all(axis=1)
    units, values = ratings.units[complete], ratings.values[complete].astype(np.int64)
    vectors = units << values.shape[1]
    for place in range(values.shape[1]):
        vectors |= values[:, place] << place
    pairs, identical = (
        int((counts * (counts - 1)).sum()) for counts in (np.bincount(units), np.unique(vectors, return_counts=True)[1])
    )
    return ratio(float(identical), float(pairs))

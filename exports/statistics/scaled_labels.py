"""What labels on a scale ask of the joint bootstrap, and how they read their figures off its resamples."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from exports.statistics import agreement_schema as schema
from exports.statistics import resampling
from exports.statistics.annotators import mean_of_defined
from exports.statistics.distributions import most_alpha, rounded
from exports.statistics.ratings import BoolArray, FloatArray, IntArray, Ratings, ScaledLabel, Votes, met_pairs
from exports.statistics.scales import (
    ALPHA,
    COMPUTED,
    MOST_VALUES,
    NOTHING,
    SCALARS,
    SCALED_STATISTICS,
    Measure,
    Sums,
    beyond_chance,
    figures,
    ordinal_disagreement,
    sums_of,
)
from exports.statistics.table import STATISTICS, UndefinedReason
from exports.statistics.warnings import FEW_SHARED, label_warnings

_THRESHOLDS = ("0.667", "0.800")  # Krippendorff's: nothing follows below the first, firm conclusions above the second
_Part = tuple[IntArray, IntArray, FloatArray]


class _Meetings(NamedTuple):
    """Every two ratings of a unit, that of the first annotator in the alphabet first."""

    units: IntArray
    raters: tuple[IntArray, IntArray]
    codes: tuple[IntArray, IntArray]


def _meetings(label: ScaledLabel) -> _Meetings:
    first, second = met_pairs(label.units)
    codes = (label.codes[first], label.codes[second])
    return _Meetings(label.units[first], (label.raters[first], label.raters[second]), codes)


def _unit_entries(label: ScaledLabel, measure: Measure, met: _Meetings, n_units: int, n_raters: int) -> Iterator[_Part]:
    """Units, columns and values of every sum of `Sums` that is not 0."""
    ratings = np.bincount(label.units, minlength=n_units)
    pairable, others = ratings >= 2, np.maximum(ratings - 1, 1)

    def of_pairs(values: FloatArray) -> FloatArray:
        return 2 * np.bincount(met.units, values, n_units) / others

    same = of_pairs(measure.agreement(measure.same, *met.codes))
    weighted = same if measure.weighted is None else of_pairs(measure.agreement(measure.weighted, *met.codes))
    is_ordinal = label.scale == "ordinal"
    apart = np.zeros(n_units) if is_ordinal else of_pairs(1 - measure.agreement(measure.alpha, *met.codes))
    counts = np.maximum(ratings, 1)
    scalars = (ratings > 0, pairable, ratings * pairable, same / counts, weighted / counts, same >= ratings, apart)
    for column, values in enumerate(scalars):
        kept = np.flatnonzero(values * (pairable if column else 1))
        yield kept, np.full(len(kept), column), np.asarray(values, np.float64)[kept]
    places, values = measure.features(label.codes)
    units, width = np.repeat(label.units, places.shape[1]), measure.n_features
    columns, values = places.ravel() + SCALARS, values.ravel()
    yield units, columns, values / ratings[units]
    yield units, columns + width, values * pairable[units]
    start = SCALARS + 2 * width
    if is_ordinal:
        low, high = np.minimum(*met.codes), np.maximum(*met.codes)
        differ = low < high
        number = np.zeros((measure.n_values, measure.n_values), np.int64)
        number[np.triu_indices(measure.n_values, 1)] = np.arange(math.comb(measure.n_values, 2))
        where = met.units[differ]
        yield where, start + number[low[differ], high[differ]], 2.0 / others[where]
        start += math.comb(measure.n_values, 2)
    of_rater = start + label.raters * (1 + width)
    yield label.units, of_rater, np.ones(len(label.units))
    yield units, np.repeat(of_rater, places.shape[1]) + 1 + places.ravel(), values


class _Pairs:
    """The pairs of annotators on one label: what they ask of the resamples, and how they read them."""

    def __init__(self, measure: Measure, met: _Meetings, ratings: Ratings, frame: BoolArray) -> None:
        self.measure, self.annotators = measure, ratings.annotators
        numbers, pairs = np.unique(met.raters[0] * len(self.annotators) + met.raters[1], return_inverse=True)
        self.raters = np.stack(np.divmod(numbers, len(self.annotators)), axis=1).tolist()
        self.width = 3 + 2 * measure.n_features
        meetings, columns, values = _stacked(self._entries(met))
        columns += self.width * pairs[meetings]
        totals = np.bincount(columns, values, self.width * len(numbers)).astype(np.float64, copy=False)
        self.cells = totals.reshape(-1, self.width)
        self.kappas = self._kappas(totals)
        self.with_interval = np.flatnonzero((self.cells[:, 0] >= FEW_SHARED) & ~np.isnan(self.kappas[1]))
        sums = resampling.gathered(
            ratings.unit_records[met.units[meetings]], columns, values, (len(ratings.records), len(totals))
        )
        self.estimator = resampling.Estimator(sums, self._replicated, frame)

    def _entries(self, met: _Meetings) -> Iterator[_Part]:
        every = np.arange(len(met.units))
        same = self.measure.agreement(self.measure.same, *met.codes)
        form = self.measure.weighted
        weighted = same if form is None else self.measure.agreement(form, *met.codes)
        for column, values in enumerate((np.ones(len(every)), same, weighted)):
            yield every, np.full(len(every), column), values
        for place, codes in enumerate(met.codes):
            features, values = self.measure.features(codes)
            columns = 3 + place * self.measure.n_features + features
            yield np.repeat(every, features.shape[1]), columns.ravel(), values.ravel()

    def _kappas(self, totals: FloatArray) -> tuple[FloatArray, FloatArray]:
        """κ and weighted κ of each pair (… × pairs); NaN where one is undefined."""
        cells = totals.reshape(*totals.shape[:-1], -1, self.width)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = cells / cells[..., :1]
        first, second = np.split(shares[..., 3:], 2, axis=-1)
        plain = beyond_chance(shares[..., 1], self.measure.same.of(first, second))
        form = self.measure.weighted
        weighted = plain * np.nan if form is None else beyond_chance(shares[..., 2], form.of(first, second))
        return plain if self.measure.counts_values else plain * np.nan, weighted

    def _replicated(self, totals: FloatArray) -> FloatArray:
        plain, weighted = self._kappas(totals)
        means = [mean_of_defined(each) for each in (plain, weighted)]
        return np.concatenate([weighted[..., self.with_interval], *means], axis=-1)

    def read(self, resampled: resampling.Resampled) -> Iterator[schema.ScaledPair]:
        columns = {int(place): column for column, place in enumerate(self.with_interval)}
        for place, (first, second) in enumerate(self.raters):
            n_shared = int(self.cells[place, 0])
            kappas = {"cohen_kappa": self.kappas[0][place], "weighted_kappa": self.kappas[1][place]}
            known: dict[str, Any] = {name: None if np.isnan(v) else float(v) for name, v in kappas.items()}
            yield schema.ScaledPair(
                label=self.measure.label.name,
                rater_a=self.annotators[first],
                rater_b=self.annotators[second],
                n_shared=n_shared,
                percent_agreement=float(self.cells[place, 1]) / n_shared,
                **known,
                interval=resampling.or_none(resampling.interval(resampled[self.estimator], columns[place]))
                if place in columns
                else None,
                undefined={name: self.reason(name) for name, value in known.items() if value is None},
            )

    def reason(self, name: str) -> UndefinedReason:
        unknown = not self.measure.counts_values if name == "cohen_kappa" else self.measure.weighted is None
        return "too_many_values" if unknown else "constant_both_raters"


def _stacked(parts: Iterator[_Part]) -> _Part:
    units, columns, values = zip(*parts, strict=True)
    return np.concatenate(units), np.concatenate(columns), np.concatenate(values)


def _best_cut(label: ScaledLabel, pairable: BoolArray, unit_records: IntArray) -> tuple[int, BoolArray]:
    """The values parted in two so that most records have a unit wholly on either side: what alpha rests on.

    How many records have one on the side that fewer have, and which ratings are on the upper side. A nominal scale is
    cut between its more and its less frequent values, the others where their order says.
    """
    counts = np.bincount(label.codes, minlength=len(label.values))
    order = np.argsort(-counts, kind="stable") if label.scale == "nominal" else np.arange(len(counts))
    ranks = np.argsort(order)[label.codes]
    kept = pairable[label.units]
    if not kept.any():
        return 0, np.zeros(len(ranks), np.bool_)
    starts = np.flatnonzero(np.diff(label.units[kept], prepend=-1))
    records = unit_records[label.units[kept][starts]]
    highest = np.full(len(unit_records), len(counts))
    lowest = np.full(len(unit_records), -1)
    np.minimum.at(highest, records, np.maximum.reduceat(ranks[kept], starts))
    np.maximum.at(lowest, records, np.minimum.reduceat(ranks[kept], starts))
    cuts = np.arange(max(len(counts) - 1, 1))
    below = np.searchsorted(np.sort(highest), cuts, side="right")
    above = len(lowest) - np.searchsorted(np.sort(lowest), cuts, side="right")
    carried = np.minimum(below, above)
    return int(carried.max()), ranks > int(carried.argmax())


_SHOWN_SPLIT, _SHOWN_OF = 20, 30  # With fewer records intervals without the bound held alpha in .85 of the studies


def _support(label: ScaledLabel, total: Sums, measure: Measure, carried: int, ratings: Ratings) -> resampling.Support:
    """As `resampling.alpha_support`, which it is for two values."""
    counts = np.bincount(label.units, minlength=len(ratings.unit_records))
    pairable = counts >= 2
    spread, n = 1.0, float(total.ratings)
    with np.errstate(divide="ignore", invalid="ignore"):
        if label.scale == "ordinal":
            possible = float(ordinal_disagreement(total)[1])
            ranks = (np.cumsum(total.features) - total.features / 2) / n
            spread = float(np.ptp(ranks[total.features > 0])) ** 2 if n else 1.0
        else:
            possible = n**2 - float(measure.alpha.of(total.features, total.features))
    worst = resampling.halves(counts) * spread
    if label.scale == "nominal":
        parts, more = np.divmod(counts, np.clip(counts, 1, len(label.values)))
        parted = np.clip(counts, 1, len(label.values))
        squares = more * (parts + 1) ** 2 + (parted - more) * parts**2
        worst = (counts**2 - squares) / np.maximum(counts - 1, 1)
    split = np.zeros(len(counts), np.bool_)
    same = np.flatnonzero(np.diff(label.units) == 0)
    split[label.units[same[label.codes[same] != label.codes[same + 1]]]] = True
    found = resampling.support_of(
        carried,
        resampling.records_with(split, ratings.unit_records),
        resampling.records_with(pairable, ratings.unit_records),
        np.bincount(ratings.unit_records, np.where(pairable, worst, 0), len(ratings.records)).astype(np.float64),
        n,
        possible / (n * (n - 1)) if n > 1 and possible > NOTHING * n**2 else math.nan,
        _most_alpha(label, pairable, ratings.unit_records),
    )
    # Once many records show distances, the resamples tell more than the worst that one could hide.
    shows = label.scale in ("ordinal", "interval") and found.split >= _SHOWN_SPLIT and found.records >= _SHOWN_OF
    return found._replace(least=1.0) if shows else found


def pairs_with_last(ratings: Ratings, label: ScaledLabel, resamples: int, seed: int) -> tuple[schema.ScaledPair, ...]:
    """The last annotator, such as a judge, with each other one."""
    met = _meetings(label)
    kept = met.raters[1] == len(ratings.annotators) - 1
    raters, codes = ((first[kept], second[kept]) for first, second in (met.raters, met.codes))
    met = _Meetings(met.units[kept], raters, codes)
    frame = np.bincount(ratings.unit_records[met.units], minlength=len(ratings.records)) > 0
    pairs = _Pairs(Measure(label), met, ratings, frame)
    return tuple(pairs.read(resampling.bootstrap([pairs.estimator], resamples, seed)))


def alpha_spread(
    replicates: resampling.Replicates,
    alpha: int,
    found: schema.Interval | schema.RefusedReason,
    n_pairable: int,
    effect_of: Callable[[float], float | None],
) -> dict[str, Any]:
    """How alpha, the figure in that column, varies; `effect_of` its jackknife error is the design effect."""
    unknown: dict[str, Any] = {"p_below": {}, "standard_error": None, "design_effect": None, "n_effective": None}
    if math.isnan(replicates.estimates[alpha]):
        return {"undefined_resamples": None, **unknown}
    resampled = replicates.resampled[:, alpha]
    undefined = resampling.undefined_share(resampled)
    few = resampling.refused_with_alpha(found) == "too_few_rare_ratings"
    if not few and (isinstance(found, str) or found.method == "one-sided"):
        return {"undefined_resamples": undefined, **unknown}
    defined = resampled[~np.isnan(resampled)]
    spread = rounded(float(defined.std(ddof=1)))
    if spread == 0:  # no disagreement: resamples tell nothing of how alpha varies
        return {"undefined_resamples": undefined, **unknown}
    effect = effect_of(float(replicates.jackknife_se[alpha]))
    is_resampled = isinstance(found, schema.Interval) and found.method in ("bca", "expanded_percentile")
    return {
        "undefined_resamples": undefined,
        "p_below": {each: resampling.share_below(defined, float(each)) for each in _THRESHOLDS} if is_resampled else {},
        "standard_error": spread,
        "design_effect": None if effect is None else rounded(effect),
        "n_effective": rounded(n_pairable / max(effect, 1.0)) if effect else None,
    }


def effect_of_errors(record_error: float, unit_error: float) -> float | None:
    if not unit_error or math.isnan(unit_error) or math.isnan(record_error):
        return None
    return (record_error / unit_error) ** 2


def _most_alpha(label: ScaledLabel, pairable: BoolArray, unit_records: IntArray) -> float:
    """An ordinal scale is one of ranks, whose mean distance from all is that from their middle, and their spread."""
    kept = pairable[label.units]
    units, codes = np.unique(label.units[kept], return_inverse=True)[1], label.codes[kept]
    shape = (len(label.values), int(pairable.sum()))
    counts = np.bincount(codes * shape[1] + units, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
    own, each = counts.sum(axis=1), counts.sum(axis=0)
    if label.scale == "nominal":
        distances, apart = 1 - own / max(own.sum(), 1), each**2 - (counts**2).sum(axis=0)
    else:
        places = np.cumsum(own) - own / 2 if label.scale == "ordinal" else label.places
        places = places - (own @ places) / max(own.sum(), 1)
        distances = places**2 + (own @ places**2) / max(own.sum(), 1)
        apart = 2 * (each * (places**2 @ counts) - (places @ counts) ** 2)
    return most_alpha(counts, distances, apart / np.maximum(each - 1, 1), unit_records[pairable])


class ScaledEstimators:
    """One label on a scale: what it asks of the resamples, and how it reads them."""

    def __init__(self, ratings: Ratings, label: ScaledLabel) -> None:
        self.ratings, self.label, self.measure = ratings, label, Measure(label)
        self.met = _meetings(label)
        n_units, self.n_raters = len(ratings.unit_records), len(ratings.annotators)
        counts = np.bincount(label.units, minlength=n_units)
        self.pairable = counts >= 2
        self.entries = _stacked(_unit_entries(label, self.measure, self.met, n_units, self.n_raters))
        units, columns, values = self.entries
        width = SCALARS + 2 * self.measure.n_features + self.n_raters * (1 + self.measure.n_features)
        width += math.comb(self.measure.n_values, 2) if label.scale == "ordinal" else 0
        self.totals = np.bincount(columns, values, width).astype(np.float64, copy=False)
        self.total = sums_of(self.totals, self.measure, self.n_raters)
        sums = resampling.gathered(ratings.unit_records[units], columns, values, (len(ratings.records), width))
        formula = partial(figures, measure=self.measure, n_raters=self.n_raters)
        frames = [
            np.bincount(ratings.unit_records[kept], minlength=len(ratings.records)) > 0
            for kept in (self.pairable, counts > 0)
        ]
        self.over_pairable = resampling.Estimator(sums, formula, frames[0])
        self.over_rated = replace(self.over_pairable, frame=frames[1])
        self.pairs = _Pairs(self.measure, self.met, ratings, frames[0])
        carried, self.above = _best_cut(label, self.pairable, ratings.unit_records)
        self.support = _support(label, self.total, self.measure, carried, ratings)

    @property
    def estimators(self) -> tuple[resampling.Estimator, ...]:
        return self.over_pairable, self.over_rated, self.pairs.estimator

    def read(self, resampled: resampling.Resampled) -> schema.ScaledLabelAgreement:
        pairable, rated = resampled[self.over_pairable], resampled[self.over_rated]
        found = figures(self.totals, self.measure, self.n_raters).tolist()
        kappas = [each[~np.isnan(each)].tolist() for each in self.pairs.kappas]
        means = [math.fsum(each) / len(each) if each else math.nan for each in kappas]
        names = (*COMPUTED, "mean_pairwise_kappa", "mean_pairwise_weighted_kappa")
        pairs = zip(names, (*found, *means), strict=True)
        known: dict[str, Any] = {name: None if math.isnan(value) else value for name, value in pairs}
        intervals = self._intervals(pairable, rated, resampled[self.pairs.estimator])
        alpha = intervals["krippendorff_alpha"]
        n_pairable = int(self.total.pairable)
        absent = [name for name in STATISTICS if name not in SCALED_STATISTICS]
        undefined: dict[str, UndefinedReason] = dict.fromkeys(absent, "not_boolean")
        undefined |= {name: self._reason(name) for name, value in known.items() if value is None}
        return schema.ScaledLabelAgreement(
            scale=self.label.scale,
            weights=self.label.weights,
            values=tuple(self._values()),
            n_items=int(self.total.rated),
            n_pairable_items=n_pairable,
            n_ratings=len(self.label.codes),
            **known,
            **dict.fromkeys(absent),
            n_pairs_with_kappa=len(kappas[0] if self.measure.counts_values else kappas[1]),
            n_cluster_records=pairable.n_records,
            intervals={name: each for name, each in intervals.items() if isinstance(each, schema.Interval)},
            refused_intervals={name: each for name, each in intervals.items() if not isinstance(each, schema.Interval)},
            **alpha_spread(pairable, ALPHA, alpha, n_pairable, self._design_effect),
            required_items=None,
            undefined=undefined,
            warnings=(),
        )

    def _intervals(
        self, pairable: resampling.Replicates, rated: resampling.Replicates, pairs: resampling.Replicates
    ) -> dict[str, schema.Interval | schema.RefusedReason]:
        intervals: dict[str, schema.Interval | schema.RefusedReason] = {
            name: resampling.interval(rated if SCALED_STATISTICS[name].over == "rated units" else pairable, column)
            for column, name in enumerate(COMPUTED)
        }
        alpha = resampling.alpha_interval(pairable, ALPHA, self.support)
        intervals["krippendorff_alpha"] = alpha
        means = len(self.pairs.with_interval)
        intervals["mean_pairwise_kappa"] = resampling.interval(pairs, means)
        intervals["mean_pairwise_weighted_kappa"] = resampling.interval(pairs, means + 1)
        refused = resampling.refused_with_alpha(alpha)
        for name, entry in SCALED_STATISTICS.items():
            if entry.follows_alpha and refused and isinstance(intervals[name], schema.Interval):
                intervals[name] = refused
        return intervals

    def _reason(self, name: str) -> UndefinedReason:
        if not self.total.pairable:
            return "single_annotator" if len(np.unique(self.label.raters)) == 1 else "no_pairable_items"
        entry = SCALED_STATISTICS[name]
        measure = self.measure
        if (entry.counts_values and not measure.counts_values) or (entry.is_weighted and measure.weighted is None):
            return "too_many_values"
        return "no_variation" if entry.compute else "constant_both_raters"

    def _values(self) -> Iterator[schema.ValueFigures]:
        if len(self.label.values) > MOST_VALUES:
            return
        counts = np.bincount(self.label.units, minlength=len(self.pairable))
        own = np.bincount(self.label.codes, minlength=len(self.label.values))
        paired = np.bincount(self.label.codes, (counts - 1)[self.label.units], len(own))
        first, second = self.met.codes
        agreeing = 2 * np.bincount(first[first == second], minlength=len(own))
        for value, n, same, of in zip(self.label.values, own.tolist(), agreeing, paired, strict=True):
            yield schema.ValueFigures(value=value, n_ratings=n, specific_agreement=float(same / of) if of else None)

    def _design_effect(self, record_error: float) -> float | None:
        """As of Booleans; where no record has two pairable units it is 1."""
        n_units = int(self.total.pairable)
        if n_units == np.count_nonzero(self.over_pairable.frame):
            return 1.0
        sums, totals, formula = self._by_unit()
        (moments,) = resampling.left_out(sums, [(formula, formula(totals))])
        return effect_of_errors(record_error, float(moments.standard_error[0]))

    def _by_unit(self) -> tuple[resampling.SparseSums, FloatArray, Callable[[FloatArray], FloatArray]]:
        """What alpha is a function of: sums of each pairable unit, their totals, and alpha of such totals."""
        units, columns, values = self.entries
        width = len(self.totals) - self.n_raters * (1 + self.measure.n_features)
        kept = self.pairable[units] & (columns < width)
        order = np.argsort(units[kept], kind="stable")
        numbers = np.cumsum(self.pairable) - 1
        shape = (int(self.total.pairable), width)
        sums = resampling.SparseSums(numbers[units[kept][order]], columns[kept][order], values[kept][order], shape)
        formula = partial(figures, measure=self.measure, n_raters=0, names=("krippendorff_alpha",))
        return sums, np.bincount(sums.columns, sums.values, width).astype(np.float64, copy=False), formula

    def alphas_without(self) -> FloatArray:
        """Alpha of all units but one, for each; NaN where it is undefined."""
        sums, totals, formula = self._by_unit()
        found = np.full(len(self.pairable), np.nan)
        rests = [formula(totals - rows)[:, 0] for rows in resampling.blocks(sums)]
        found[self.pairable] = np.concatenate(rests) if rests else []
        return found

    def distances(self) -> FloatArray:
        """The observed disagreement of each unit: its pairs of ratings by their distance on the scale."""
        total, (first, second) = self.total, self.met.codes
        if self.label.scale == "ordinal":
            ranks = (np.cumsum(total.features) - total.features / 2) / max(float(total.ratings), 1)
            apart = (ranks[first] - ranks[second]) ** 2
        else:
            apart = 1 - self.measure.agreement(self.measure.alpha, first, second)
        counts = np.bincount(self.label.units, minlength=len(self.pairable))
        summed: FloatArray = 2 * np.bincount(self.met.units, apart, len(counts)) / np.maximum(counts - 1, 1)
        return summed

    def warnings(self, figures: schema.ScaledLabelAgreement) -> tuple[schema.LabelWarning, ...]:
        """Those of Booleans, of the two sides of the cut."""
        label, n_units, n_raters = self.label, len(self.pairable), self.n_raters
        sides = [np.bincount(label.units[side], minlength=n_units) for side in (~self.above, self.above)]
        cells, counts = np.unique(label.raters * len(label.values) + label.codes, return_counts=True)
        usual = np.zeros(n_raters, np.int64)
        np.maximum.at(usual, cells // max(len(label.values), 1), counts)
        raters = Votes(np.bincount(label.raters, minlength=n_raters) - usual, usual)
        found = label_warnings(figures, Votes(*sides), raters, self.ratings.unit_records)
        return tuple(_OF_VALUES.get(code, code) for code in found)


_OF_VALUES: dict[schema.LabelWarning, schema.LabelWarning] = {
    "RARE_CLASS": "RARE_VALUES",
    "PARADOX": "COMMON_VALUE",
    "SELECTION": "SELECTED_VALUES",
}

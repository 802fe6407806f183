"""The table of statistics: each is one field with its entry, and the function that computes it beside it.

`LabelFigures` are those of a label, `PairFigures` those of two annotators. The joint bootstrap, `agreement.json`, every
table, the report, the notebook, the data card and the contract read them here: one more needs a field, its sentence, a
function of `Sums` or `Cells`, its words in `table.toml`, and no other edit.

Source: exports/contracts/agreement.md#coefficients: Krippendorff 2011, Fleiss 1971, Gwet 2008, Brennan & Prediger 1981,
Cicchetti & Feinstein 1990; of pairs Cohen 1960.
"""

import math
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from exports.statistics.ratings import FloatArray, IntArray, Votes
from pipeline.core.schema import Frozen
from pipeline.core.sentences import packaged_table

UndefinedReason = Literal[
    "no_pairable_items",
    "single_annotator",
    "no_variation",
    "constant_both_raters",
    "no_exchange",
    "not_boolean",
    "too_many_values",
]
Where = Literal["terminal", "page", "card"]
"""Where people read tables of labels: the terminal, pages (Markdown, notebooks, the HTML report), the data card."""
Over = Literal["pairable units", "rated units", "pairs of annotators"]
_NEGLIGIBLE = 1e-18


class Shown(NamedTuple):
    places: tuple[Where, ...]
    head: str
    rank: int  # Where it is among the statistics of these tables; α is first, with 0
    legend: str = ""  # What the legend below them says of it; empty where that of another one does, or none is needed


class Statistic(NamedTuple):
    """What is known of a statistic of one label beside its name and meaning, which are the field's."""

    title: str
    formula: str  # Its formula, in the notation of the contract
    undefined: str  # When it is undefined; why, `figures_of` says
    over: Over  # What it counts; for its interval, the records that have any of them are resampled
    compute: "Callable[[Sums], FloatArray] | None"  # None where it is no function of the sums
    shown: tuple[Shown, ...] = ()  # Its columns beside those of `labels.csv`, which has all
    is_share: bool = False  # Whether people read it in per cent
    follows_alpha: bool = False  # Whether its interval is refused where α's is: it turns on the rarer value too
    method: tuple[str, str] | None = None  # Name and meaning in the report's methods


class PairStatistic(NamedTuple):
    """What is known of a statistic of two annotators on one label beside its name and meaning."""

    title: str
    formula: str  # Its formula, in the notation of the contract
    undefined: str
    compute: "Callable[[Cells], float | None]"  # From cells of at least one shared unit; None where undefined
    reason: UndefinedReason = "no_variation"  # Why it is undefined where units are shared


class Sums(NamedTuple):
    """The sums that every coefficient is a function of: one value a unit, or their totals."""

    rated: FloatArray  # 1 where there is a rating
    share: FloatArray  # Share of yes among the unit's ratings
    pairable: FloatArray  # 1 where there are two ratings or more; all that follow are 0 elsewhere
    zeros: FloatArray
    ones: FloatArray
    disagreement: FloatArray  # Ordered pairs that disagree, divided by the ratings less one
    agreement: FloatArray  # Share of pairs that agree
    unanimous: FloatArray  # 1 where all ratings are equal
    ones_agreeing: FloatArray  # Ordered pairs that both say yes
    ones_paired: FloatArray  # Ordered pairs whose first says yes
    zeros_agreeing: FloatArray  # Ordered pairs that both say no
    zeros_paired: FloatArray  # Ordered pairs whose first says no
    all_ratings: FloatArray  # Ratings, those that stand alone on their unit included
    all_ones: FloatArray  # Ratings that say yes, those that stand alone on their unit included


def unit_sums(zeros: IntArray, ones: IntArray) -> Sums:
    """The sums of each unit (exports/contracts/agreement.md#data)."""
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
        all_ratings=ratings,
        all_ones=n1,
    )


def totals(zeros: IntArray, ones: IntArray, units: IntArray | None = None) -> Sums:
    """The sums over all units, each place standing for `units` of them; no rounding in between, so in any order."""
    width = int(ones.max(initial=0)) + 1
    patterns, places = np.unique(zeros * width + ones, return_inverse=True)
    weights = np.bincount(places, units, len(patterns))
    sums = unit_sums(patterns // width, patterns % width)
    return Sums(*(np.asarray(math.fsum(weights * field)) for field in sums))


def ratio(part: float | FloatArray, whole: float | FloatArray) -> float | None:
    return float(part) / float(whole) if whole else None


def _percent_agreement(total: Sums) -> FloatArray:
    return total.agreement / total.pairable


def _alpha(total: Sums) -> FloatArray:
    return 1 - (total.zeros + total.ones - 1) * total.disagreement / (2 * total.zeros * total.ones)


def _fleiss_kappa(total: Sums) -> FloatArray:
    share = total.share / total.rated
    return _beyond_chance(total, share**2 + (1 - share) ** 2)


def _ac1(total: Sums) -> FloatArray:
    share = total.share / total.rated
    return _beyond_chance(total, 2 * share * (1 - share))


def _beyond_chance(total: Sums, by_chance: FloatArray) -> FloatArray:
    """Agreement beyond chance as a share of what is possible beyond chance; NaN where nothing is, and of one unit."""
    possible = np.where(np.equal(by_chance, 1) | np.equal(total.pairable, 1), np.nan, 1 - by_chance)
    beyond: FloatArray = (_percent_agreement(total) - by_chance) / possible
    return beyond


_TOLD: dict[str, dict[str, Any]] = packaged_table(__file__)


def _statistic(name: str, compute: "Callable[[Sums], FloatArray] | None") -> Statistic:
    told = _TOLD["label"][name]
    shown = tuple(Shown(**{**each, "places": tuple(each["places"])}) for each in told.get("shown", ()))
    method = tuple(told["method"]) if "method" in told else None
    return Statistic(**{**told, "compute": compute, "shown": shown, "method": method})


class LabelFigures(Frozen):
    """The statistics of one label and what they are of."""

    n_items: int
    """Units with at least one rating."""
    n_pairable_items: int
    """Units with at least two ratings."""
    n_ratings: int
    """Ratings on all units."""
    prevalence: Annotated[float | None, _statistic("prevalence", lambda total: total.all_ones / total.all_ratings)]
    """Share of yes among all ratings."""
    percent_agreement: Annotated[float | None, _statistic("percent_agreement", _percent_agreement)]
    """Mean over pairable units of the share of agreeing pairs of ratings, between 0 and 1."""
    krippendorff_alpha: Annotated[float | None, _statistic("krippendorff_alpha", _alpha)]
    """Krippendorff's alpha, nominal."""
    fleiss_kappa: Annotated[float | None, _statistic("fleiss_kappa", _fleiss_kappa)]
    """Fleiss' kappa, generalised to varying numbers of ratings."""
    gwet_ac1: Annotated[float | None, _statistic("gwet_ac1", _ac1)]
    """Gwet's AC1 with two categories."""
    brennan_prediger: Annotated[
        float | None, _statistic("brennan_prediger", lambda total: _beyond_chance(total, np.asarray(0.5)))
    ]
    """Brennan and Prediger's coefficient with two categories."""
    positive_agreement: Annotated[
        float | None, _statistic("positive_agreement", lambda total: total.ones_agreeing / total.ones_paired)
    ]
    """Specific agreement on yes."""
    negative_agreement: Annotated[
        float | None, _statistic("negative_agreement", lambda total: total.zeros_agreeing / total.zeros_paired)
    ]
    """Specific agreement on no."""
    full_agreement_share: Annotated[
        float | None, _statistic("full_agreement_share", lambda total: total.unanimous / total.pairable)
    ]
    """Share of pairable units on which all ratings are equal."""
    mean_pairwise_kappa: Annotated[float | None, _statistic("mean_pairwise_kappa", None)]
    """Mean of Cohen's kappa over the pairs of annotators that have one (Light)."""


STATISTICS: dict[str, Statistic] = {
    name: entry
    for name, field in LabelFigures.model_fields.items()
    for entry in field.metadata
    if isinstance(entry, Statistic)
}
COEFFICIENTS = tuple(name for name, entry in STATISTICS.items() if entry.compute)
ALPHA = COEFFICIENTS.index("krippendorff_alpha")


def columns_at(place: Where) -> list[tuple[str, Statistic, Shown]]:
    found = [
        (name, entry, shown) for name, entry in STATISTICS.items() for shown in entry.shown if place in shown.places
    ]
    return sorted(found, key=lambda column: column[2].rank)


def coefficients(total: Sums) -> dict[str, float | None]:
    found = coefficient_values(np.array([float(each) for each in total]))
    return {
        name: None if math.isnan(value) else value for name, value in zip(COEFFICIENTS, found.tolist(), strict=True)
    }


def coefficient_values(totals: FloatArray) -> FloatArray:
    """The `COEFFICIENTS` (… × as many) from totals of `Sums` (… × 14); NaN where one is undefined."""
    total = Sums(*np.moveaxis(totals, -1, 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.stack([entry.compute(total) for entry in STATISTICS.values() if entry.compute], axis=-1)


def figures_of(total: Sums, n_annotators: int, names: Iterable[str]) -> dict[str, Any]:
    """The coefficients among these names, in their order, and in `undefined` why one of them is."""
    found = coefficients(total)
    figures = {name: found[name] for name in names if name in found}
    alone: UndefinedReason = "single_annotator" if n_annotators == 1 else "no_pairable_items"
    reason: UndefinedReason = "no_variation" if total.pairable else alone
    return {**figures, "undefined": {name: reason for name, value in figures.items() if value is None}}


class Cells(NamedTuple):
    n11: int
    n10: int
    n01: int
    n00: int

    @property
    def n(self) -> int:
        return sum(self)


def _kappa(cells: Cells) -> float | None:
    n11, n10, n01, n00 = cells
    return ratio(2 * (n11 * n00 - n10 * n01), (n11 + n10) * (n10 + n00) + (n11 + n01) * (n01 + n00))


def _mcc(cells: Cells) -> float | None:
    n11, n10, n01, n00 = cells
    return ratio(n11 * n00 - n10 * n01, math.sqrt((n11 + n10) * (n01 + n00) * (n11 + n01) * (n10 + n00)))


def mcnemar_p(only_first: int, only_second: int) -> float:
    """Exact two-sided p, its tail added up from the largest term downwards until the rest is negligible."""
    n, k = only_first + only_second, min(only_first, only_second)
    term = math.exp(math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * math.log(2))
    tail = 0.0
    while k >= 0 and term > tail * _NEGLIGIBLE:
        tail += term
        term *= k / (n - k + 1)
        k -= 1
    return min(1.0, 2 * tail)


def _of_pairs(name: str, compute: "Callable[[Cells], float | None]") -> PairStatistic:
    return PairStatistic(**_TOLD["pair"][name], compute=compute)


class AnnotatorPair(Frozen):
    label: str
    """The label."""
    rater_a: str
    """The first annotator in the alphabet."""
    rater_b: str
    """The second."""
    n_shared: int
    """Units that both rated."""


class PairFigures(AnnotatorPair):
    """The statistics of two annotators on one label, over the units that both rated."""

    n11: int
    """Units on which both say yes."""
    n10: int
    """Units on which only the first says yes."""
    n01: int
    """Units on which only the second says yes."""
    n00: int
    """Units on which both say no."""
    percent_agreement: Annotated[float | None, _of_pairs("percent_agreement", lambda c: (c.n11 + c.n00) / c.n)]
    """Share of equal ratings."""
    cohen_kappa: Annotated[float | None, _of_pairs("cohen_kappa", _kappa)]
    """Cohen's kappa."""
    pabak: Annotated[float | None, _of_pairs("pabak", lambda c: (c.n11 + c.n00 - c.n10 - c.n01) / c.n)]
    """Kappa adjusted for prevalence and bias: twice the percent agreement less one."""
    prevalence_index: Annotated[float | None, _of_pairs("prevalence_index", lambda c: (c.n11 - c.n00) / c.n)]
    """(both yes − both no) / shared units."""
    bias_index: Annotated[float | None, _of_pairs("bias_index", lambda c: (c.n10 - c.n01) / c.n)]
    """(only the first − only the second) / shared units: who says yes more often."""
    positive_agreement: Annotated[
        float | None, _of_pairs("positive_agreement", lambda c: ratio(2 * c.n11, 2 * c.n11 + c.n10 + c.n01))
    ]
    """Specific agreement on yes."""
    negative_agreement: Annotated[
        float | None, _of_pairs("negative_agreement", lambda c: ratio(2 * c.n00, 2 * c.n00 + c.n10 + c.n01))
    ]
    """Specific agreement on no."""
    mcc: Annotated[float | None, _of_pairs("mcc", _mcc)]
    """Matthews' correlation; None where one of the two says the same everywhere."""
    mcnemar_p: Annotated[float | None, _of_pairs("mcnemar_p", lambda c: mcnemar_p(c.n10, c.n01))]
    """Exact two-sided p that the two say yes equally often; None without shared units."""


PAIR_STATISTICS: dict[str, PairStatistic] = {
    name: entry
    for name, field in PairFigures.model_fields.items()
    for entry in field.metadata
    if isinstance(entry, PairStatistic)
}


def alpha_sums(votes: Votes, records: IntArray, n_records: int) -> FloatArray:
    """Records × three numbers a label: sums of `zeros`, `ones` and `disagreement` over the record's pairable units."""
    sums = unit_sums(votes.zeros, votes.ones)
    columns = np.stack([sums.zeros, sums.ones, sums.disagreement], axis=2)
    columns = columns.reshape(len(records), 3 * votes.ones.shape[1])
    return np.stack([np.bincount(records, column, n_records) for column in columns.T], axis=1)


def alphas(totals: FloatArray) -> FloatArray:
    """Krippendorff's alpha of each label from totals of `alpha_sums` (… × three a label): … × labels, NaN undefined."""
    zeros, ones, disagreement = totals[..., 0::3], totals[..., 1::3], totals[..., 2::3]
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = (zeros + ones - 1) * disagreement / (2 * zeros * ones)
    return np.where(zeros * ones > 0, 1 - distance, np.nan)

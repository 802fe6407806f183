"""Agreement by round, by ISO week and by language."""

from datetime import timedelta
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from annotation.labels import LABELS
from exports.agreement.coefficients import coefficients, totals
from exports.agreement.figures import AgreementSlice, Interval, RefusedReason, SliceLabel
from exports.agreement.intervals import interval
from exports.agreement.labels import undefined_reason
from exports.agreement.ratings import EPOCH, FloatArray, IntArray, Ratings
from exports.agreement.resampling import Statistic, bootstrap
from exports.agreement.votes import Votes, alpha_sums, alphas, count_votes

UNKNOWN_LANGUAGE = "und"
MICROSECONDS_A_DAY = 86_400_000_000


class Parts(NamedTuple):
    """A division of the responses: into rounds, weeks or languages."""

    names: tuple[str, ...]
    """Names of the parts in their order."""
    responses: IntArray
    """Number of the part of each response, counted from 0; -1 where it belongs to none."""


class Part(NamedTuple):
    """The responses of one part, by the units and records that have any there."""

    name: str
    """Its name."""
    records: IntArray
    """Numbers of its records, sorted."""
    unit_records: IntArray
    """Place in `records` of each of its units."""
    votes: Votes
    """Votes of its units."""
    yes: IntArray
    """Annotators × labels: ratings that say yes."""
    ratings: IntArray
    """Annotators × labels: ratings."""

    @property
    def frame(self) -> npt.NDArray[np.bool_]:
        """Whether each of its records has a unit with two ratings or more, on any label."""
        pairable = (self.votes.ratings >= 2).any(axis=1)
        return np.bincount(self.unit_records[pairable], minlength=len(self.records)) > 0

    @property
    def sums(self) -> FloatArray:
        """Sums of each of its records, as `alphas` takes them."""
        return alpha_sums(self.votes, self.unit_records, len(self.records))


def round_parts(ratings: Ratings) -> Parts:
    """The rounds in order of their first response; responses whose files name none belong to none."""
    return Parts(ratings.rounds, ratings.response_rounds)


def week_parts(ratings: Ratings) -> Parts:
    """The ISO weeks (UTC) in order of time; all responses of a unit belong to the week of its last one."""
    if not len(ratings.units):
        return Parts((), np.empty(0, dtype=np.int64))
    last = np.full(len(ratings.unit_records), np.iinfo(np.int64).min)
    np.maximum.at(last, ratings.units, ratings.moments)
    # 1 January 1970 was a Thursday, and the Thursday names the ISO week.
    thursdays, weeks = np.unique((last // MICROSECONDS_A_DAY + 3) // 7, return_inverse=True)
    return Parts(tuple(week_name(int(thursday)) for thursday in thursdays), weeks.astype(np.int64)[ratings.units])


def week_name(week: int) -> str:
    """Name of the ISO week that many weeks after the one of 1 January 1970, such as `2025-W10`."""
    year, number, _ = (EPOCH + timedelta(weeks=week)).isocalendar()
    return f"{year:04d}-W{number:02d}"


def language_parts(ratings: Ratings) -> Parts:
    """The languages of the units by code; those without one are `und`."""
    codes = [code or UNKNOWN_LANGUAGE for code in ratings.unit_languages]
    names = sorted(set(codes))
    numbers = {name: number for number, name in enumerate(names)}
    units = np.array([numbers[code] for code in codes], dtype=np.int64)
    return Parts(tuple(names), units[ratings.units])


def split(ratings: Ratings, parts: Parts) -> list[Part]:
    """Each part with its votes, in the order of `parts`."""
    order = np.argsort(parts.responses, kind="stable")
    ends = np.searchsorted(parts.responses[order], np.arange(len(parts.names) + 1))
    return [part_of(ratings, name, order[ends[number] : ends[number + 1]]) for number, name in enumerate(parts.names)]


def part_of(ratings: Ratings, name: str, responses: IntArray) -> Part:
    """The part of that name that holds the responses of these numbers."""
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


def measure_slices(ratings: Ratings, parts: list[Part], resamples: int, seed: int) -> tuple[AgreementSlice, ...]:
    """Agreement in each part, with intervals from resampling the records of that part alone."""
    return tuple(measure_part(ratings, part, resamples, seed) for part in parts)


def measure_part(ratings: Ratings, part: Part, resamples: int, seed: int) -> AgreementSlice:
    """Agreement on each label in one part."""
    intervals = alpha_intervals(part, resamples, seed)
    labels = enumerate(LABELS[ratings.task])
    return AgreementSlice(
        name=part.name,
        n_records=len(part.records),
        n_units=len(part.unit_records),
        labels={label: slice_label(ratings, part, column, intervals[column]) for column, label in labels},
    )


def alpha_intervals(part: Part, resamples: int, seed: int) -> list[Interval | RefusedReason]:
    """The interval of each label's alpha in one part."""
    if not part.frame.any():
        return ["undefined"] * part.yes.shape[1]
    (replicates,) = bootstrap([Statistic(part.sums, alphas)], part.frame, resamples, seed)
    return [interval(replicates, column) for column in range(part.yes.shape[1])]


def slice_label(ratings: Ratings, part: Part, column: int, alpha_interval: Interval | RefusedReason) -> SliceLabel:
    """One label in one part."""
    total = totals(part.votes.zeros[:, column], part.votes.ones[:, column])
    found = coefficients(total)
    yes, n_ratings = part.yes[:, column], part.ratings[:, column]
    figures = {name: found[name] for name in ("prevalence", "krippendorff_alpha", "percent_agreement")}
    raters = np.flatnonzero(n_ratings)
    reason = undefined_reason(total, len(raters))
    return SliceLabel(
        n_pairable_items=int(total.pairable),
        **figures,
        interval=alpha_interval if isinstance(alpha_interval, Interval) else None,
        undefined={name: reason for name, value in figures.items() if value is None},
        positive_rates={ratings.annotators[rater]: float(yes[rater] / n_ratings[rater]) for rater in raters},
    )

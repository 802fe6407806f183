"""A study with a judge goes in; the rates of each label and group with the judge's help come out.

Source: exports/contracts/results.md#with-a-judges-help.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from annotation.labels import LABELS, TaskName
from exports.agreement.consensus import BoolArray
from exports.agreement.distributions import rounded
from exports.agreement.ratings import FloatArray, IntArray, Ratings
from exports.results._columns import number_names
from exports.results._groups import Grouping, groupings, whole
from exports.results._prediction_powered import (
    FEWEST_NARRATIVES,
    Units,
    labelled_narratives,
    prediction_powered,
)
from exports.results._random_part import (
    Gap,
    Leaning,
    chosen_by_score,
    divisions_of,
    misfit,
    misfit_by_score,
    uneven_share,
)
from exports.results._values import Values
from exports.results.schema import JudgeHelp, LabelResults, NoHelp, Rate, RateInterval
from exports.results.study import Judged, Study

_STRATA = ("model_name", "language", "narrative_type")
"""Columns in whose groups people must have labelled the same share, whatever results are grouped by."""
_PROBABILITY = "inclusion_probability"

_GroupKey = frozenset[tuple[str, str]]


class _Sheet(NamedTuple):
    """The units of one task that have votes or were judged, one row each; columns are labels."""

    records: IntArray
    """Number of the unit's record."""
    voted: BoolArray
    """Whether people voted."""
    values: FloatArray
    """What it is worth by their votes; NaN where there is no value."""
    p_yes: FloatArray
    """The judge's probability of yes; NaN where it did not judge."""


class _Figures(NamedTuple):
    """One rate with the judge's help, or why there is none."""

    rate: float | None
    interval: RateInterval | None
    help: JudgeHelp


class Helped:
    """Adds the judge's help to the figures of labels."""

    def __init__(
        self, study: Study, judged: Judged, tasks: Mapping[TaskName, Values], by: Sequence[str], seed: int
    ) -> None:
        """Measure every label by every group."""
        self.remarks: list[str] = []
        self.figures: dict[tuple[TaskName, str, _GroupKey], _Figures] = {}
        records = sorted(judged.narratives)
        narratives = number_names([judged.narratives[record] for record in records])
        divisions = [whole(len(records)), *groupings(by, records, judged.provenance)]
        tables = {table.task: table for table in study.tables}
        for task, values in tasks.items():
            sheet = _sheet(tables[task], values, judged, {record: place for place, record in enumerate(records)})
            self._remark_gaps(task, sheet, judged)
            gap = _gap(sheet, records, narratives, study, judged, by, seed)
            leaning = None if gap else _leaning(sheet, records, narratives, study, judged, seed)
            if gap:
                self.remarks.append(_refusal(task, gap, study.probabilities is not None))
            elif leaning:
                self.remarks.append(_refusal_by_score(task, leaning))
            weights = np.array([1 / (study.probabilities or {}).get(record, 1.0) for record in records])
            for division in divisions:
                self._measure(task, sheet, division, narratives, weights, judged, refused=bool(gap or leaning))

    def _measure(
        self,
        task: TaskName,
        sheet: _Sheet,
        division: Grouping,
        narratives: IntArray,
        weights: FloatArray,
        judged: Judged,
        *,
        refused: bool,
    ) -> None:
        """Measure every label in every group of a division."""
        groups = division.of_record[sheet.records]
        for number, group in enumerate(division.groups):
            own = np.flatnonzero(groups == number)
            records = sheet.records[own]
            for place, label in enumerate(LABELS[task]):
                units = Units(
                    narratives[records],
                    sheet.voted[own, place],
                    sheet.values[own, place],
                    weights[records],
                    sheet.p_yes[own, place],
                )
                self.figures[task, label, frozenset(group.items())] = _figures(units, judged.judge, refused)

    def add_to(self, task: TaskName, label: str, found: LabelResults) -> LabelResults:
        """The figures of a label with those with the judge's help beside them."""
        groups = tuple(
            group.model_copy(update=self._fields(task, label, group, frozenset(group.by.items())))
            for group in found.groups
        )
        return found.model_copy(update={**self._fields(task, label, found, frozenset()), "groups": groups})

    def _fields(self, task: TaskName, label: str, rate: Rate, key: _GroupKey) -> dict[str, object]:
        """The fields of one rate; none where the judge says nothing on the label or people did not label any."""
        found = self.figures.get((task, label, key))
        if found is None or not rate.n_units:
            return {}
        return {"rate_ppi": found.rate, "interval_ppi": found.interval, "judge_help": found.help}

    def _remark_gaps(self, task: TaskName, sheet: _Sheet, judged: Judged) -> None:
        """Say how many labelled units the judge leaves out."""
        voted = sheet.voted.any(axis=1)
        lacking = int(np.count_nonzero(voted & np.isnan(sheet.p_yes).all(axis=1)))
        if lacking:
            self.remarks.append(
                f"{task}: of {int(np.count_nonzero(voted)):,} labelled units {lacking:,} have no judgement of "
                f"{judged.judge}; people's labels on them count all the same."
            )


def _sheet(ratings: Ratings, values: Values, judged: Judged, places: Mapping[str, int]) -> _Sheet:
    """The units with votes, then the others that were judged."""
    labels = LABELS[ratings.task]
    names = (ratings.records[record] for record in ratings.unit_records.tolist())
    units = {unit: row for row, unit in enumerate(zip(names, ratings.unit_chunks, strict=True))}
    n_voted = len(units)
    said = judged.tasks.get(ratings.task, {})
    for unit in said:
        units.setdefault(unit, len(units))
    p_yes = np.full((len(units), len(labels)), np.nan)
    column = {label: place for place, label in enumerate(labels)}
    for unit, by_label in said.items():
        for label, probability in by_label.items():
            p_yes[units[unit], column[label]] = probability
    given = np.full((len(units), len(labels)), np.nan)
    given[:n_voted] = values.values
    voted = np.zeros(given.shape, np.bool_)
    voted[:n_voted] = ~np.isnan(values.values) | values.undecided
    records = np.array([places[record] for record, _ in units], np.int64)
    return _Sheet(records, voted, given, p_yes)


def _figures(units: Units, judge: str, refused: bool) -> _Figures:
    """The rate of one group on one label with the judge's help, or why there is none."""
    judged = ~np.isnan(units.p_yes)
    n_narratives = labelled_narratives(units)
    reason: NoHelp | None = None
    if not judged.any():
        reason = "not_judged"
    elif refused:
        reason = "not_a_random_part"
    elif n_narratives < FEWEST_NARRATIVES:
        reason = "few_narratives"
    elif not (judged & ~units.voted).any():
        reason = "all_labelled"
    found = None if reason else prediction_powered(units)
    told = JudgeHelp(
        judge=judge,
        n_judged=int(np.count_nonzero(judged)),
        n_labelled=int(np.count_nonzero(judged & units.voted)),
        n_narratives=n_narratives,
        weight=None if found is None else rounded(found.weight),
        undefined=reason,
    )
    if found is None:
        return _Figures(None, None, told)
    low, high = found.ends
    return _Figures(rounded(found.rate), RateInterval(low=rounded(low), high=rounded(high), method=found.method), told)


def _gap(
    sheet: _Sheet,
    records: Sequence[str],
    narratives: IntArray,
    study: Study,
    judged: Judged,
    by: Sequence[str],
    seed: int,
) -> Gap | None:
    """The group whose part of what people labelled is not the others' beyond chance; None where there is none."""
    was_judged, was_voted = np.zeros(len(records), np.bool_), np.zeros(len(records), np.bool_)
    was_judged[sheet.records[~np.isnan(sheet.p_yes).all(axis=1)]] = True
    was_voted[sheet.records[sheet.voted.any(axis=1)]] = True
    columns = [*by, *_STRATA]
    probabilities = study.probabilities
    if probabilities is None:
        return _uneven(np.flatnonzero(was_judged), was_voted, records, narratives, judged.provenance, columns, seed)
    sampled = judged.sampled or probabilities
    drawn = np.array([record in sampled for record in records])
    told = {
        record: {**judged.provenance.get(record, {}), _PROBABILITY: f"{sampled[record]:g}"}
        for record in records
        if record in sampled
    }
    within = np.flatnonzero(was_judged & drawn)
    gap = _uneven(within, was_voted, records, narratives, told, [*columns, _PROBABILITY], seed)
    chosen = np.flatnonzero(was_judged)
    names = [records[place] for place in chosen.tolist()]
    given = np.array([probabilities.get(name, np.nan) for name in names])
    given[~was_voted[chosen]] = np.nan
    if gap or np.isnan(given).all():
        return gap
    _, numbers = np.unique(narratives[chosen], return_inverse=True)
    return misfit(numbers, given, list(divisions_of(columns, names, judged.provenance)))


def _leaning(
    sheet: _Sheet, records: Sequence[str], narratives: IntArray, study: Study, judged: Judged, seed: int
) -> Leaning | None:
    """The label by whose scores what people labelled was chosen; None where there is none."""
    was_judged = np.logical_not(np.isnan(sheet.p_yes).all(axis=1))
    voted = np.any(sheet.voted, axis=1)
    probabilities = study.probabilities
    sampled = judged.sampled or probabilities
    in_sample = np.array([sampled is None or record in sampled for record in records])
    own = np.flatnonzero(was_judged & in_sample[sheet.records])
    of = sheet.records[own]
    found = chosen_by_score(narratives[of], of, voted[own], sheet.p_yes[own], seed)
    if found or probabilities is None:
        return found
    own = np.flatnonzero(was_judged)
    of = sheet.records[own]
    given = np.array([probabilities.get(record, np.nan) for record in records])[of]
    given[~voted[own]] = np.nan
    return misfit_by_score(narratives[of], given, sheet.p_yes[own])


def _uneven(
    chosen: IntArray,
    voted: BoolArray,
    records: Sequence[str],
    narratives: IntArray,
    provenance: Mapping[str, Mapping[str, str]],
    columns: Sequence[str],
    seed: int,
) -> Gap | None:
    """The group of the chosen records whose labelled share is not the others' beyond chance."""
    if not len(chosen):
        return None
    names = [records[place] for place in chosen.tolist()]
    _, numbers = np.unique(narratives[chosen], return_inverse=True)
    return uneven_share(numbers, voted[chosen], list(divisions_of(columns, names, provenance)), seed)


def _refusal(task: TaskName, gap: Gap, weighted: bool) -> str:
    """Why the judge does not help on a task."""
    where = f"`{gap.column}` is {gap.name!r}" if gap.name else f"`{gap.column}` is not known"
    shares = f"{gap.share:.0%} of the records where {where} and {gap.elsewhere:.0%} of the others"
    if not weighted:
        return (
            f"{task}: people labelled {shares}: no random part of what the judge judged, so there are no rates with "
            "its help. Give the inclusion probabilities with --weights sample.csv, or label the same share of each."
        )
    if gap.column == _PROBABILITY:
        shares = (
            f"{gap.share:.0%} of the sample where the probability is {gap.name} and {gap.elsewhere:.0%} of the rest"
        )
        return f"{task}: people labelled {shares}: no random part of it, so there are no rates with the judge's help."
    return (
        f"{task}: by their inclusion probabilities the labelled records stand for {shares}: they are no random part of "
        "what the judge judged, so there are no rates with its help."
    )


def _refusal_by_score(task: TaskName, leaning: Leaning) -> str:
    """Why the judge does not help on a task where people's part goes along with its scores."""
    label = LABELS[task][leaning.label]
    what = f"P(yes) of `{label}` further from one half" if leaning.by_certainty else f"P(yes) of `{label}` higher"
    return (
        f"{task}: the judge has its {what} for what people labelled than for the rest in {leaning.share:.0%} of pairs, "
        "and chance would be 50%: no random part of what the judge judged, so there are no rates with its help. Label "
        "a part that is drawn without its scores (`citejury annotation plan`)."
    )

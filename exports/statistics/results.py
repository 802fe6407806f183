"""A study goes in; every figure of `results.json` comes out: rates, by group, and what differs between groups."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from annotation.argilla.labels import LABELS, TASKS, TaskName
from exports.statistics.annotators import measure_overlap
from exports.statistics.consensus import UnitLabel, scale_consensus
from exports.statistics.distributions import rounded
from exports.statistics.exchange import Ballots
from exports.statistics.groups import MOST_PAIRS, Grouping, Records, study_records
from exports.statistics.judge_help import Helped
from exports.statistics.landscape import run_totals, survey
from exports.statistics.rates import (
    FindingValues,
    MeasuredColumn,
    Values,
    finding_values,
    measure_columns,
    own_findings,
    tasks_of,
    unit_places,
    unit_values,
)
from exports.statistics.ratings import (
    RATINGS,
    BoolArray,
    FloatArray,
    InputFile,
    IntArray,
    MeasuredTask,
    Ratings,
    ScaledLabel,
    count_votes,
)
from exports.statistics.results_schema import (
    OF_ANNOTATORS,
    AnnotatorShares,
    Contexts,
    Finding,
    LabelResults,
    Passages,
    Results,
    ScaleResults,
    TaskResults,
)
from exports.statistics.study import SERIOUS_PROBLEM, Consensus, FindingDefinition, Study

RANKED_LABELS = ("topically_relevant", "evidence_sufficient")  # Their values add up to the gain of nDCG
_TASK: TaskName = "retrieval"
_HIT = 0.5  # A passage is a hit where its value is greater: a tie is none


def _measure_passages(
    study: Study, values: Values, records: Sequence[str], by: Sequence[str], seed: int
) -> tuple[Passages, ...]:
    """By where passages come from; `values` are in the order of the ratings, and only supplied passages are grouped."""
    judged = np.unique(values.records)
    known = [study.provenance.get(records[record], {}).get("contexts", "") for record in judged.tolist()]
    kinds: tuple[Contexts, ...] = ("selected", "supplied", "")
    of_kind = {kind: judged[[(each if each in kinds else "") == kind for each in known]] for kind in kinds}
    return tuple(
        _measure(study, values, members, records, by if kind == "supplied" else (), kind, seed)
        for kind, members in of_kind.items()
        if len(members)
    )


def _measure(
    study: Study,
    values: Values,
    members: IntArray,
    records: Sequence[str],
    by: Sequence[str],
    contexts: Contexts,
    seed: int,
) -> Passages:
    names = [records[member] for member in members.tolist()]
    figures = _Ranked(study, values, members, names)
    grouped = study_records(study, names, by)
    supplied = contexts == "supplied"
    columns = [*figures.precision, *figures.hits, *(figures.reciprocal_ranks if supplied else [])]
    columns += [figures.ndcg] if supplied else []
    table = np.stack(columns, axis=1)
    own = next(each for each in study.tables if each.task == _TASK)
    rows = np.full(len(records), -1)
    rows[members] = np.arange(len(names))
    ballots = _ballots_of([(own, rows[values.records])])
    sheet = Values(np.arange(len(names)), table, np.zeros(table.shape, np.bool_), ballots)
    measured = [MeasuredColumn(0, column, (_TASK,)) for column in range(table.shape[1])]
    found = iter(measure_columns([sheet], measured, grouped, seed)[0])
    return Passages(
        contexts=contexts,
        n_records=len(names),
        n_passages=len(figures.order),
        n_gaps=int((~figures.whole).sum()),
        precision={label: next(found) for label in RANKED_LABELS},
        hit_rate={label: next(found) for label in RANKED_LABELS},
        reciprocal_rank={label: next(found) for label in RANKED_LABELS} if supplied else {},
        ndcg=next(found) if supplied else None,
    )


class _Ranked:
    def __init__(self, study: Study, values: Values, members: IntArray, names: Sequence[str]) -> None:
        ratings = next(table for table in study.tables if table.task == _TASK)
        ranks = np.zeros(len(values.records), np.int64) if ratings.unit_ranks is None else ratings.unit_ranks
        chosen = np.flatnonzero(np.isin(values.records, members))
        self.order = chosen[np.lexsort((ranks[chosen], values.records[chosen]))]
        self.starts = np.searchsorted(values.records[self.order], members)
        self.sizes = np.diff(self.starts, append=len(self.order))
        self.positions = np.arange(len(self.order)) - np.repeat(self.starts, self.sizes)
        by_label = [values.values[self.order, LABELS[_TASK].index(label)] for label in RANKED_LABELS]
        last = np.maximum.reduceat(ranks[self.order], self.starts)
        told = _passages_told(study, names)
        unvoted = np.logical_or.reduceat(np.isnan(by_label).any(axis=0), self.starts)
        self.whole = (last == self.sizes) & ((told < 0) | (told == self.sizes)) & ~unvoted
        self.precision = [self.means(each) for each in by_label]
        self.hits = [self.if_whole(np.maximum.reduceat(each > _HIT, self.starts)) for each in by_label]
        self.reciprocal_ranks = [self.if_whole(self.first_hits(each)) for each in by_label]
        gains = np.sum(by_label, axis=0)
        best = gains[np.lexsort((-gains, values.records[self.order]))]
        ideal = self.discounted(best)
        self.ndcg = self.if_whole(np.where(ideal > 0, self.discounted(gains) / np.where(ideal > 0, ideal, 1), 0))

    def means(self, values: FloatArray) -> FloatArray:
        given = np.add.reduceat((~np.isnan(values)).astype(np.float64), self.starts)
        totals = np.add.reduceat(np.nan_to_num(values), self.starts)
        return np.where(given > 0, totals / np.maximum(given, 1), np.nan)

    def first_hits(self, values: FloatArray) -> FloatArray:
        shares = np.where(values > _HIT, 1 / (self.positions + 1), 0.0)
        return np.asarray(np.maximum.reduceat(shares, self.starts), np.float64)

    def discounted(self, gains: FloatArray) -> FloatArray:
        """DCG (Järvelin & Kekäläinen 2002), with the discount that scikit-learn and trec_eval use."""
        return np.asarray(np.add.reduceat(gains / np.log2(self.positions + 2), self.starts), np.float64)

    def if_whole(self, figures: FloatArray | BoolArray) -> FloatArray:
        return np.where(self.whole, figures, np.nan)


def _passages_told(study: Study, names: Sequence[str]) -> IntArray:
    """How many passages each record has, as the runs tell; -1 where they do not."""
    if study.answers is None:
        return np.full(len(names), -1)
    told = dict(zip(study.answers.record_uuids, study.answers.n_passages.tolist(), strict=True))
    return np.array([told.get(name, -1) for name in names], np.int64)


def _ballots_of(tables: Sequence[tuple[Ratings, IntArray]]) -> Ballots:
    """Who judged what the units of each table are parts of: rows of a sheet, or -1."""
    units = [rows[table.units] for table, rows in tables] or [np.empty(0, np.int64)]
    starts = np.cumsum([0, *(len(table.annotators) for table, _ in tables)])
    people = [table.response_annotators + start for (table, _), start in zip(tables, starts.tolist(), strict=False)]
    found = np.concatenate(units)
    return Ballots(found[found >= 0], np.concatenate(people or units)[found >= 0], None)


def _composite(
    definition: FindingDefinition,
    tables: Mapping[MeasuredTask, Ratings],
    tasks: Mapping[TaskName, Values],
    n_records: int,
    consensus: Consensus,
) -> FindingValues:
    """With its ballots: each annotator's own finding, where whoever judged an answer judged all of its parts."""
    found, rows = finding_values(definition, tasks, n_records), np.full(n_records, -1)
    rows[found.values.records] = np.arange(len(found.values.records))
    own = {task: rows[tasks[task].records] for task in tasks_of(definition.any) if task in tasks}
    ballots = own_findings(definition, tables, own) if consensus == "share" else None
    ballots = ballots or _ballots_of([(tables[task], units) for task, units in own.items()])
    return found._replace(values=found.values._replace(ballots=ballots))


_PROVIDERS = frozenset({"model_name", "model_version", "arm"})  # Columns of provenance that tell providers apart
_OF_ONE = (
    "{}: one person judged all of it, so the figures are of how they judge, and nobody knows how others would. Let a "
    "second person judge some answers too."
)
_SELECTED = (
    "Retrieval is of passages that citejury chose, so its rates are of that choice: providers are not compared by them."
)


def measure_results(
    study: Study,
    *,
    by: Sequence[str] = ("model_name",),
    consensus: Consensus = "share",
    findings: Mapping[str, FindingDefinition] = {"serious_problem": SERIOUS_PROBLEM},
    inputs: Sequence[InputFile] = (),
    seed: int = 0,
) -> Results:
    """What the jury found; `by` names columns of provenance: each alone, and two or more also crossed."""
    there = {table.measured_as: table for table in study.tables}
    order: tuple[MeasuredTask, ...] = (*TASKS, RATINGS)
    tables = {task: there[task] for task in order if task in there}
    records = sorted({*study.narratives, *(record for table in tables.values() for record in table.records)})
    places = {record: place for place, record in enumerate(records)}
    decided = {task: (study.decisions or {}).get(task, {}) for task in tables}
    tasks = {task: unit_values(table, places, consensus, decided[task]) for task, table in tables.items()}
    ours = {task: tasks[task] for task in TASKS if task in tasks}
    composite = {name: _composite(each, tables, ours, len(records), consensus) for name, each in findings.items()}
    scaled = [
        (task, _scale_values(table, label, places, consensus, decided[task]))
        for task, table in tables.items()
        for label in table.scaled
    ]
    sheets = [*tasks.values(), *(each.values for each in composite.values()), *(each.values for _, each in scaled)]
    selected = any(told.get("contexts") == "selected" for told in study.provenance.values()) and "retrieval" in tasks
    columns = [
        MeasuredColumn(sheet, column, (task,), _PROVIDERS if selected and task == "retrieval" else frozenset())
        for sheet, task in enumerate(tasks)
        for column in range(len(tables[task].labels))
    ]
    columns += [
        MeasuredColumn(len(tasks) + number, 0, tasks_of(definition.any))
        for number, definition in enumerate(findings.values())
    ]
    for number, (task, each) in enumerate(scaled, start=len(tasks) + len(findings)):
        columns += _scale_columns(task, each, number, frozenset(by))
    grouped = study_records(study, records, by)
    measured, flips = measure_columns(sheets, columns, grouped, seed)
    judged = np.unique(np.concatenate([np.empty(0, np.int64), *(task.records for task in tasks.values())]))
    latest = max((table.latest for table in tables.values() if table.latest is not None), default=None)
    n_others = sum(len(table.labels) for table in tables.values()) + len(findings)
    labels, on_scales = iter(measured[:n_others]), iter(measured[n_others:])
    by_scale: dict[MeasuredTask, dict[str, ScaleResults]] = {}
    for task, each in scaled:
        by_scale.setdefault(task, {})[each.label.name] = _scale_results(each, on_scales)
    helped = None if study.judged is None else Helped(study, study.judged, ours, by, seed)
    surveyed = None if study.answers is None else survey(study.answers, study.asked_of, by, seed)
    crossed = _other_language(study, judged, records, grouped, seed)
    before_the_jury = [records[place] for place in judged.tolist()]
    return Results(
        latest_response=None if latest is None else latest.isoformat(),
        seed=seed,
        flips=flips,
        by=tuple(dict.fromkeys(by)),
        consensus=consensus,
        weighted=len(set((study.probabilities or {}).values())) > 1,
        inputs=tuple(inputs),
        n_records=len(judged),
        n_narratives=len(np.unique(grouped.narratives[judged])),
        tasks={
            task: TaskResults(
                labels={
                    label: helped.add_to(task, label, found) if helped and task != RATINGS else found
                    for label, found in zip(tables[task].labels, labels, strict=False)
                },
                scaled=by_scale.get(task),
                n_annotators=len(tables[task].annotators),
                units_by_ratings=measure_overlap(tables[task]).units_by_ratings,
            )
            for task in tasks
        },
        findings={
            name: Finding(
                **dict(found),
                title=definition.title,
                any=definition.any,
                n_incomplete=composite[name].n_incomplete,
                missing=composite[name].missing,
            )
            for (name, definition), found in zip(findings.items(), labels, strict=True)
        }
        | ({} if crossed is None else {"other_language": crossed}),
        runs=run_totals(study.runs or {}, study.provenance, before_the_jury),
        landscape=surveyed and surveyed.landscape,
        annotators=tuple(_annotator_shares(tables, places, grouped.divisions)) if _judged_unlike(measured) else None,
        passages=_measure_passages(study, tasks["retrieval"], records, by, seed) if "retrieval" in tasks else (),
        remarks=(
            *_remarks(grouped.divisions[1:]),
            *(_OF_ONE.format(task) for task, table in tables.items() if len(np.unique(table.response_annotators)) == 1),
            *([_SELECTED] if selected and _PROVIDERS & set(by) else []),
            *(surveyed.remarks if surveyed else ()),
            *(helped.remarks if helped else ()),
        ),
    )


def _other_language(
    study: Study, judged: IntArray, records: Sequence[str], grouped: Records, seed: int
) -> Finding | None:
    """Answers in another language than they were asked in, which needs no votes; None where there is none."""
    values = np.array([study.other_language.get(records[place], np.nan) for place in judged.tolist()], np.float64)
    if not np.nansum(values):
        return None
    sheet = Values(judged, values[:, np.newaxis], np.zeros((len(values), 1), np.bool_))
    found = measure_columns([sheet], [MeasuredColumn(0, 0, ())], grouped, seed)[0][0]
    title, left_out = "In another language than asked", int(np.isnan(values).sum())
    return Finding(**dict(found), title=title, any=(), n_incomplete=left_out, missing={})


MOST_SHARES = 100  # Values of a nominal or ordinal scale whose shares are told


class OnScale(NamedTuple):
    """A label on a scale: a column for the share of each of its values, then one for the mean."""

    label: ScaledLabel
    values: Values
    shares: int  # How many columns are shares; of an interval scale, or with more than `MOST_SHARES` values, none
    numbers: FloatArray  # What each value counts in the mean; without any on a nominal scale
    ends: tuple[float, float]  # What 0 and 1 of the column of means stand for


def _scale_values(
    ratings: Ratings,
    label: ScaledLabel,
    places: Mapping[str, int],
    consensus: Consensus,
    decisions: Mapping[UnitLabel, bool | str],
) -> OnScale:
    n_units, k = len(ratings.unit_records), len(label.values)
    counts = np.bincount(label.units, minlength=n_units)
    shares = k if label.scale != "interval" and k <= MOST_SHARES else 0
    numbers = _numbers_of(label)
    low, high = (float(f(numbers)) if len(numbers) else 0.0 for f in (np.min, np.max))
    start = (low + high) / 2 if label.scale == "interval" else low
    ends = (start, start + ((high - low) or 1.0))
    with np.errstate(invalid="ignore"):
        given = np.bincount(label.units * shares + label.codes, minlength=n_units * shares) if shares else np.empty(0)
        columns = [*(given.reshape(n_units, -1) / counts[:, np.newaxis]).T] if shares else []
        scaled = (numbers - ends[0]) / (ends[1] - ends[0])
        if len(numbers):
            columns.append(np.bincount(label.units, scaled[label.codes], n_units) / counts)
    values = np.stack(columns, axis=1) if columns else np.empty((n_units, 0))
    says = np.concatenate([np.eye(k, shares), scaled[:, np.newaxis]][: 1 + bool(len(numbers))], axis=1)
    if consensus != "share":
        agreed = scale_consensus(label, n_units, unanimous=consensus == "adjudicated")
        settled = np.full(values.shape, np.nan)
        for number, (record, chunk_id) in enumerate(ratings.unit_keys if decisions else ()):
            decided = decisions.get((record, chunk_id, label.name))
            if decided in label.values:
                agreed[number] = label.places[label.values.index(str(decided))]
        told = ~np.isnan(agreed)
        settled[told, :shares] = agreed[told, np.newaxis] == np.arange(shares)
        if len(numbers):
            settled[told, shares] = np.interp(agreed[told], label.places, scaled)
        values = settled
    undecided = (counts > 0)[:, np.newaxis] & np.isnan(values)
    ballots = Ballots(label.units, label.raters, says[label.codes] if consensus == "share" else None)
    return OnScale(label, Values(unit_places(ratings, places), values, undecided, ballots), shares, numbers, ends)


def _numbers_of(label: ScaledLabel) -> FloatArray:
    """Of an ordinal scale its values where they are rising numbers, else ranks, counted from 1."""
    if label.scale == "nominal":
        return np.empty(0)
    if label.scale == "interval":
        return label.places
    try:
        numbers = np.array([float(value) for value in label.values])
    except ValueError:
        return np.arange(1.0, len(label.values) + 1)
    return numbers if (np.diff(numbers) > 0).all() else np.arange(1.0, len(label.values) + 1)


def _scale_columns(task: MeasuredTask, found: OnScale, sheet: int, by: frozenset[str]) -> Iterator[MeasuredColumn]:
    """Groups are compared by the mean or, where there is none, by the shares: not twice."""
    name = f"{task} {found.label.name}"
    for column in range(found.shares):
        yield MeasuredColumn(sheet, column, (task,), by if len(found.numbers) else frozenset(), name)
    if len(found.numbers):
        bounded = found.label.scale == "ordinal" and len(found.numbers) > 1
        farthest = 0.5 if found.label.is_whole else np.inf
        yield MeasuredColumn(sheet, found.shares, (task,), frozenset(), name, found.ends, bounded, farthest)


def _scale_results(found: OnScale, measured: Iterator[LabelResults]) -> ScaleResults:
    values = found.label.values if len(found.label.values) <= MOST_SHARES else ()
    shares = {value: next(measured) for value, _ in zip(found.label.values, range(found.shares), strict=False)}
    column = found.values.values[:, found.shares] if len(found.numbers) else np.empty(0)
    middle = float(np.median(column[~np.isnan(column)])) if not np.isnan(column).all() else None
    return ScaleResults(
        scale=found.label.scale,
        values=values,
        numbers=tuple(found.numbers[: len(values)].tolist()),
        shares=shares,
        mean=next(measured) if len(found.numbers) else None,
        median=None if middle is None else rounded(found.ends[0] + middle * (found.ends[1] - found.ends[0])),
    )


def _annotator_shares(
    tables: Mapping[MeasuredTask, Ratings], places: Mapping[str, int], divisions: Sequence[Grouping]
) -> Iterator[AnnotatorShares]:
    for division in divisions:
        for task, table in tables.items() if len(division.groups) > 1 and len(division.groups[0]) == 1 else ():
            of_unit, people = division.of_record[unit_places(table, places)], len(table.annotators)
            cells, n_cells = of_unit[table.units] * people + table.response_annotators, len(division.groups) * people
            votes = count_votes(table.values, cells, n_cells)
            scaled = {each.name: _sums_by_cell(each, of_unit, people, n_cells) for each in table.scaled}
            for cell in np.unique(cells).tolist():
                given = dict(zip(table.labels, votes.ratings[cell].tolist(), strict=True))
                ones = zip(given.items(), votes.ones[cell].tolist(), strict=True)
                yield AnnotatorShares(
                    task=task,
                    by=division.groups[cell // people],
                    annotator=table.annotators[cell % people],
                    n_votes=given,
                    yes={label: rounded(yes / n) if n else None for (label, n), yes in ones},
                    n_ratings={name: int(counts[cell]) for name, (counts, _) in scaled.items()} or None,
                    means={name: _mean_of(*(each[cell] for each in sums)) for name, sums in scaled.items()} or None,
                )


def _mean_of(count: float, total: float) -> float | None:
    return rounded(float(total / count)) if count and not np.isnan(total) else None


def _sums_by_cell(label: ScaledLabel, of_unit: IntArray, people: int, n_cells: int) -> tuple[FloatArray, FloatArray]:
    """How many ratings each group and annotator has, and what they add up to; NaN on a nominal scale."""
    cells, numbers = of_unit[label.units] * people + label.raters, _numbers_of(label)
    given = numbers[label.codes] if len(numbers) else np.full(len(cells), np.nan)
    counts, totals = np.bincount(cells, minlength=n_cells), np.bincount(cells, given, n_cells)
    return counts.astype(np.float64), totals.astype(np.float64)


def _judged_unlike(found: Sequence[LabelResults]) -> bool:
    told = (each for label in found for each in label.differences)
    return any(each.leniency is not None or each.undefined in OF_ANNOTATORS for each in told)


def _remarks(divisions: Sequence[Grouping]) -> Iterator[str]:
    for division in divisions:
        columns = " × ".join(f"`{column}`" for column in division.groups[0]) if division.groups else ""
        for column, told in division.uncompared.items():
            which = f"the {told.left_out:,} whose {'later ' if column == told.successive else ''}`{told.successive}`"
            which = f"{which} is before {told.since}" if told.since else "they"
            yield (
                f"Groups by {columns} that differ in `{column}` make {told.pairs:,} pairs; {which} are not compared, "
                f"as more than {MOST_PAIRS} would need too many comparisons to find anything."
            )
        for group, n_records in zip(division.groups, np.bincount(division.of_record), strict=True):
            if len(group) == 1 and not all(group.values()):
                one = int(n_records) == 1
                which = "1 record is not known; it is" if one else f"{n_records:,} records is not known; they are"
                yield f"The {columns} of {which} compared with none."

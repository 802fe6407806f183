"""How well each record's passages fit its query, by where they come from (exports/contracts/results.md#passages)."""

from collections.abc import Sequence

import numpy as np

from annotation.argilla.labels import LABELS, TaskName
from exports.statistics.groups import study_records
from exports.statistics.rates import MeasuredColumn, measure_columns
from exports.statistics.ratings import BoolArray, FloatArray, IntArray
from exports.statistics.results_schema import Contexts, Passages
from exports.statistics.study import Study
from exports.statistics.values import Values

RANKED_LABELS = ("topically_relevant", "evidence_sufficient")  # their values add up to the gain of nDCG
_TASK: TaskName = "retrieval"
_HIT = 0.5  # A passage is a hit where its value is greater: a tie is none


def measure_passages(
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
    sheet = Values(np.arange(len(names)), table, np.zeros(table.shape, np.bool_))
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

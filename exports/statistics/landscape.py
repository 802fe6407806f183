"""Answers of runs go in; what they cite and say comes out, by group (exports/contracts/results.md#landscape)."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from exports.statistics import results_schema as schema
from exports.statistics.distributions import rounded
from exports.statistics.groups import AskedOf, Grouping, Records, count_groups, divided
from exports.statistics.rates import MeasuredColumn, Values, measure_columns
from exports.statistics.ratings import FloatArray, IntArray
from exports.statistics.study import STATES, UNKNOWN_CITED, Answers, RunCounts
from pipeline.core.sentences import sentences
from pipeline.records.schema import CITED

_say = sentences(__file__)

_PROVIDER = "model_name"
_TOP_SITES = 20


class Surveyed(NamedTuple):
    landscape: schema.Landscape
    remarks: list[str]


def survey(answers: Answers, asked_of: AskedOf, by: Sequence[str], seed: int) -> Surveyed:
    records = _divided(answers, asked_of, by)
    uncompared = records._replace(divisions=[division._replace(pairs=()) for division in records.divisions])
    count = len(answers.record_uuids)
    without = _measured(np.arange(count), (answers.n_citations == 0)[:, np.newaxis], records, seed)[0]
    states = (answers.states[:, np.newaxis] == np.arange(len(STATES))).astype(np.float64)
    of_citations = np.concatenate([states, answers.excerpts[:, np.newaxis]], axis=1)
    *by_state, excerpts = _measured(answers.cited_by, of_citations, uncompared, seed)
    cited = (answers.cited[:, np.newaxis] == np.arange(len(CITED))).astype(np.float64)
    cited[answers.cited == UNKNOWN_CITED] = np.nan
    landscape = schema.Landscape(
        groups=tuple(group for division in records.divisions for group in _citation_groups(answers, division)),
        without_citations=without,
        cited=dict(zip(CITED, _measured(answers.cited_by, cited, uncompared, seed), strict=True)),
        states=dict(zip(STATES, by_state, strict=True)),
        excerpts_only=excerpts,
        may_be_fabricated=_measured(answers.cited_by, answers.never_were[:, np.newaxis], uncompared, seed)[0],
    )
    return Surveyed(landscape, [*_ungrouped(answers, by), *_remarks(answers)])


def run_totals(
    runs: Mapping[str, RunCounts], provenance: Mapping[str, Mapping[str, str]], records: Sequence[str]
) -> tuple[schema.RunTotals, ...]:
    models = [provenance.get(record, {}).get(_PROVIDER, "") for record in records]
    return tuple(
        schema.RunTotals(
            model_name=model, answered=counts.answered, **counts._asdict(), before_the_jury=models.count(model)
        )
        for model, counts in sorted(runs.items())
    )


def _divided(answers: Answers, asked_of: AskedOf, by: Sequence[str]) -> Records:
    known = [column for column in by if column in answers.columns]
    names = answers.record_uuids
    told = {column: answers.columns[column] for column in known}
    texts = {name: [column.names[number] for number in column.numbers.tolist()] for name, column in told.items()}
    rows = {name: {column: texts[column][at] for column in known} for at, name in enumerate(names)}
    divisions = divided(known, names, rows)
    read = np.bincount(answers.cited_by, answers.states == STATES.index("read"), len(names)).astype(np.int64)
    counts = [count_groups(division, asked_of, answers.n_citations, read) for division in divisions]
    return Records(answers.narratives.numbers, np.ones(len(names)), divisions, counts)


def _measured(of_record: IntArray, values: FloatArray, records: Records, seed: int) -> list[schema.LabelResults]:
    values = np.asarray(values, np.float64)
    sheet = Values(of_record, values, np.zeros(values.shape, np.bool_))
    columns = [MeasuredColumn(0, column, ()) for column in range(values.shape[1])]
    return measure_columns([sheet], columns, records, seed)[0]


def _citation_groups(answers: Answers, division: Grouping) -> Iterator[schema.CitationGroup]:
    cited_by = division.of_record[answers.cited_by]
    known = np.array([bool(name) for name in answers.sites.names], np.bool_)[answers.sites.numbers]
    found = [
        _SitesOfGroup(answers, np.flatnonzero((cited_by == group) & known)) for group in range(len(division.groups))
    ]
    citations = answers.n_citations
    for group, sites in enumerate(found):
        members = division.of_record == group
        own = citations[members]
        ways = answers.cited[division.of_record[answers.cited_by] == group]
        cited, shown, seen, unknown = (int((ways == way).sum()) for way in (*range(len(CITED)), UNKNOWN_CITED))
        total = int(sites.citations.sum())
        shares = sites.citations / total if total else np.empty(0)
        yield schema.CitationGroup(
            by=division.groups[group],
            n_answers=len(own),
            n_narratives=len(np.unique(answers.narratives.numbers[members])),
            n_citations=int(own.sum()),
            n_cited=cited,
            n_shown=shown,
            n_seen=seen,
            n_cited_unknown=unknown,
            citations_mean=rounded(float(own.mean())) if len(own) else None,
            citations_median=float(np.median(own)) if len(own) else None,
            n_sites=len(sites.citations),
            n_unknown_site=int(own.sum()) - total,
            effective_sites=rounded(math.exp(-float(shares @ np.log(shares)))) if total else None,
            top_site_share=rounded(float(shares.max())) if total else None,
            top_sites=tuple(sites.top(answers.sites.names)),
        )


class _SitesOfGroup:
    def __init__(self, answers: Answers, rows: IntArray) -> None:
        sites = answers.sites.numbers[rows]
        self.numbers, self.citations = np.unique(sites, return_counts=True)
        pairs = np.unique(sites * max(1, len(answers.record_uuids)) + answers.cited_by[rows])
        self.answers = np.unique(pairs // max(1, len(answers.record_uuids)), return_counts=True)[1]

    def top(self, names: Sequence[str]) -> Iterator[schema.SiteCount]:
        for place in np.lexsort((self.numbers, -self.citations))[:_TOP_SITES].tolist():
            yield schema.SiteCount(
                site=names[int(self.numbers[place])],
                citations=int(self.citations[place]),
                answers=int(self.answers[place]),
            )


def _ungrouped(answers: Answers, by: Sequence[str]) -> Iterator[str]:
    unknown = [f"`{column}`" for column in dict.fromkeys(by) if column not in answers.columns]
    if unknown:
        yield f"Figures from runs are not grouped by {', '.join(unknown)}, which runs do not tell."


def _remarks(answers: Answers) -> Iterator[str]:
    total, unfetched = len(answers.states), int((answers.states == STATES.index("unfetched")).sum())
    if unfetched:
        yield _say("unfetched", unfetched=unfetched, total=total)
    unknown = int(np.isnan(answers.never_were).sum())
    if unknown:
        yield _say("never_known", unknown=unknown, total=total)
    unknown = int((answers.cited == UNKNOWN_CITED).sum())
    if unknown:
        yield _say("cited_unknown", unknown=unknown, total=total)
    excerpts = int(answers.excerpts.sum())
    if excerpts:
        yield _say("excerpts", excerpts=excerpts, total=total)

"""Records go in one by one, and what is counted of their answers is kept as numbers; their texts are let go."""

from array import array
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from exports.agreement.ratings import IntArray
from exports.reading._narratives import RecordTraces, tell_narratives
from exports.reading._verdicts import VerdictReader
from exports.results.study import NO_VERDICT, STATES, VERDICTS, Answers, Column
from pipeline.records import QueryResponse, Source
from pipeline.text.urls import is_grounding_redirect, site_key
from pipeline.text.words import detect_language

COLUMNS = (
    "narrative_id",
    "narrative_type",
    "model_name",
    "model_version",
    "arm",
    "repeat",
    "run_id",
    "language",
    "contexts",
)
"""What of a record's provenance answers are grouped by, or read by."""
_PAYLOAD_TEXTS = ("snippet", "cited_text")
"""The reasons of sources of which only an excerpt is held that the provider sent."""


class _Rows(NamedTuple):
    """What is kept of each answer beside its columns, as arrays of equal length."""

    places: IntArray
    """Number of the folder or file that it stands in."""
    narratives: IntArray
    """Number of its narrative's id and query."""
    verdicts: IntArray
    """Number in `VERDICTS`, or `NO_VERDICT`."""
    n_passages: IntArray
    """Passages of the record."""
    n_sources: IntArray
    """Its citations."""
    n_unfetched: IntArray
    """Those of them that nobody tried to fetch."""


class AnswerFacts:
    """What is counted of the answers of several folders and files."""

    def __init__(self, verdicts: Mapping[str, VerdictReader]) -> None:
        """Begin without answers; `verdicts` reads what an answer of each language says of its narrative."""
        self.verdicts = verdicts
        self.n_places = 0
        self.record_uuids: list[str] = []
        self.values: dict[str, dict[str, int]] = {name: {} for name in COLUMNS}
        self.narratives: dict[tuple[str, str], int] = {}
        self.narrative_places: list[set[int]] = []
        self.sites: dict[str, int] = {}
        self.sites_of_hosts: dict[str, int] = {}
        self.rows, self.columns, self.citations = array("q"), array("q"), array("q")

    def begin(self) -> int:
        """The number of the next folder or file, to which the answers that follow belong."""
        self.n_places += 1
        return self.n_places - 1

    def add(self, record: QueryResponse) -> None:
        """Keep what is counted of one record."""
        reader = self.verdicts.get(_language(record)) if self.verdicts else None
        self.record_uuids.append(record.record_uuid)
        self.columns.extend(_number(self.values[name], column_of(record, name)) for name in COLUMNS)
        self.rows.extend(
            (
                self.n_places - 1,
                self.narrative(record),
                VERDICTS.index(reader.read(record.answer)) if reader else NO_VERDICT,
                len(record.chunks),
                len(record.sources),
                sum(source.state == "unfetched" for source in record.sources),
            )
        )
        for source in record.sources:
            held = source.state == "read" and source.reason in _PAYLOAD_TEXTS
            self.citations.extend((self.site(source), STATES.index(source.state), held))

    def narrative(self, record: QueryResponse) -> int:
        """Number of the record's narrative id and query together."""
        told = (record.provenance.narrative_id, " ".join(record.query.split()))
        number = self.narratives.setdefault(told, len(self.narratives))
        if number == len(self.narrative_places):
            self.narrative_places.append(set())
        self.narrative_places[number].add(self.n_places - 1)
        return number

    def narrative_names(self, places: Collection[int]) -> list[str]:
        """What the narrative of each id and query is called; an id of two studies stands for two narratives."""
        traces = {
            str(number): RecordTraces(narrative_id, query, frozenset(self.narrative_places[number] & set(places)))
            for (narrative_id, query), number in self.narratives.items()
            if self.narrative_places[number] & set(places)
        }
        names = tell_narratives(traces, [str(place) for place in range(self.n_places)]).clusters
        return [names.get(str(number), "") for number in range(len(self.narratives))]

    def site(self, source: Source) -> int:
        """Number of the site of a source; that of an empty name where a redirect hides it."""
        url = source.page_url or source.url
        if is_grounding_redirect(url):
            url = "" if is_grounding_redirect(f"https://{source.host}/") else f"https://{source.host}/"
        host = url.split("/", 3)[2] if url.count("/") > 1 else url
        number = self.sites_of_hosts.get(host)
        if number is None:
            number = self.sites_of_hosts[host] = _number(self.sites, site_key(url))
        return number

    def at(self, place: int) -> list[str]:
        """The ids of the answers of one folder or file."""
        return [self.record_uuids[row] for row in np.flatnonzero(self._rows().places == place).tolist()]

    def finish(self, places: Collection[int], without: Collection[str]) -> Answers:
        """The answers of these folders and files, each once; those whose ids are in `without` are left out.

        Of several records of one answer the one with the fewest sources that nobody tried to fetch counts, of equals
        the first.
        """
        rows = self._rows()
        best: dict[str, int] = {}
        wanted = np.isin(rows.places, list(places))
        for row in np.lexsort((np.arange(len(wanted)), rows.n_unfetched)).tolist():
            name = self.record_uuids[row]
            if wanted[row] and name not in best and name not in without:
                best[name] = row
        names = sorted(best)
        chosen = np.array([best[name] for name in names], np.int64)
        columns = np.asarray(self.columns, np.int64).reshape(-1, len(COLUMNS))[chosen]
        sites, states, held = np.asarray(self.citations, np.int64).reshape(-1, 3)[_citations_of(rows, chosen)].T
        return Answers(
            record_uuids=tuple(names),
            columns={name: _column_of(list(self.values[name]), columns[:, at]) for at, name in enumerate(COLUMNS)},
            narratives=_clustered(self.narrative_names(places), rows.narratives[chosen]),
            verdicts=rows.verdicts[chosen],
            patterns={language: reader.patterns for language, reader in self.verdicts.items()},
            n_passages=rows.n_passages[chosen],
            cited_by=np.repeat(np.arange(len(chosen)), rows.n_sources[chosen]),
            sites=_column_of(list(self.sites), sites),
            states=states,
            excerpts=held != 0,
        )

    def _rows(self) -> _Rows:
        """The rows so far."""
        return _Rows(*np.asarray(self.rows, np.int64).reshape(-1, len(_Rows._fields)).T)


def told_provenance(answers: Answers, records: Collection[str]) -> dict[str, dict[str, str]]:
    """What the answers tell of those of the records that are among them, by column of `provenance.csv`."""
    counts = np.zeros((len(answers.record_uuids), len(STATES)), np.int64)
    np.add.at(counts, (answers.cited_by, answers.states), 1)
    told: dict[str, dict[str, str]] = {}
    for row, name in enumerate(answers.record_uuids):
        if name in records:
            columns = {key: column.names[column.numbers[row]] for key, column in answers.columns.items()}
            states = {f"n_{state}": str(count) for state, count in zip(STATES, counts[row].tolist(), strict=True)}
            told[name] = {**columns, "n_sources": str(int(counts[row].sum())), **states}
    return told


def _language(record: QueryResponse) -> str:
    """The language of the answer; that of the query where the answer is too short to tell."""
    return detect_language(record.query) if record.language == "und" else record.language


def column_of(record: QueryResponse, name: str) -> str:
    """What is known of the record under this name."""
    return record.language if name == "language" else str(getattr(record.provenance, name))


def _number(known: dict[str, int], text: str) -> int:
    """The text's number, the next one where it is new."""
    return known.setdefault(text, len(known))


def _citations_of(rows: _Rows, chosen: IntArray) -> IntArray:
    """Where the citations of the chosen answers stand among all, answer by answer."""
    ends = np.cumsum(rows.n_sources)
    counts = rows.n_sources[chosen]
    starts = np.repeat(ends[chosen] - counts, counts)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.asarray(starts + within, np.int64)


def _clustered(names: Sequence[str], numbers: IntArray) -> Column:
    """The column of names of which several numbers may have the same."""
    known = {name: number for number, name in enumerate(dict.fromkeys(names))}
    of_number = np.array([known[name] for name in names], np.int64)
    return _column_of(list(known), of_number[numbers])


def _column_of(names: Sequence[str], numbers: IntArray) -> Column:
    """The column with the texts that occur, in their order."""
    found = sorted(np.unique(numbers).tolist(), key=names.__getitem__)
    place = np.zeros(len(names), np.int64)
    place[found] = np.arange(len(found))
    return Column(tuple(names[number] for number in found), place[numbers])

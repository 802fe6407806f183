"""Run folders and records in; what they say of answers, as numbers, out (exports/contracts/results.md#runs)."""

from array import array
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from exports.reading.input_files import input_file
from exports.reading.provenance import RecordTraces, tell_narratives
from exports.statistics.ratings import InputFile, IntArray
from exports.statistics.study import STATES, UNKNOWN_CITED, Answers, Column, RunCounts, add_counts
from pipeline.asking.run_folder import ERRORS, MANIFEST, RunManifest, read_errors, read_manifest
from pipeline.citations.addresses import is_grounding_redirect, site_key
from pipeline.core.errors import InputError, OutputError
from pipeline.core.schema import PROVIDERS, ErrorLine, StoredAnswer
from pipeline.core.sentences import sentences
from pipeline.core.terminal import counted
from pipeline.csv.file import answers_file, header_end, read_answers, whole_answers
from pipeline.csv.rows import identify_call
from pipeline.providers.http.failure import is_refusal, is_refusal_error
from pipeline.records import run as run_files
from pipeline.records.causes import UNRESOLVED, may_be_fabricated
from pipeline.records.citation_form import read_stored
from pipeline.records.schema import CITED, QueryResponse, Source, split_line

_say = sentences(__file__)

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
_PAYLOAD_TEXTS = ("snippet", "cited_text")  # Reasons of sources of which only the provider's excerpt is held


class _Rows(NamedTuple):
    places: IntArray
    narratives: IntArray
    n_passages: IntArray
    n_sources: IntArray
    n_unfetched: IntArray  # Those of them that nobody tried to fetch


class AnswerFacts:
    def __init__(self) -> None:
        self.n_places = 0
        self.record_uuids: list[str] = []
        self.values: dict[str, dict[str, int]] = {name: {} for name in COLUMNS}
        self.narratives: dict[tuple[str, str], int] = {}
        self.narrative_places: list[set[int]] = []
        self.sites: dict[str, int] = {}
        self.sites_of_hosts: dict[str, int] = {}
        self.rows, self.columns, self.citations = array("q"), array("q"), array("q")

    def begin(self) -> int:
        self.n_places += 1
        return self.n_places - 1

    def add(self, record: QueryResponse) -> None:
        self.record_uuids.append(record.record_uuid)
        for name in COLUMNS:
            self.columns.append(self.values[name].setdefault(column_of(record, name), len(self.values[name])))
        self.rows.extend(
            (
                self.n_places - 1,
                self.narrative(record),
                len(record.chunks),
                len(record.sources),
                sum(source.state == "unfetched" for source in record.sources),
            )
        )
        for source in record.sources:
            held = source.state == "read" and source.reason in _PAYLOAD_TEXTS
            never_was = may_be_fabricated(source.state, source.archived)
            known = -1 if never_was is None else never_was
            way = CITED.index(source.cited) if source.cited in CITED else UNKNOWN_CITED
            self.citations.extend((self.site(source), STATES.index(source.state), held, known, way))

    def narrative(self, record: QueryResponse) -> int:
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
            number = self.sites_of_hosts[host] = self.sites.setdefault(site_key(url), len(self.sites))
        return number

    def at(self, place: int) -> list[str]:
        return [self.record_uuids[row] for row in np.flatnonzero(self._rows().places == place).tolist()]

    def finish(self, places: Collection[int], without: Collection[str]) -> Answers:
        """The answers of these places; of several records of one that with fewest unfetched sources, then the first."""
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
        narratives = self.narrative_names(places)
        known = {name: number for number, name in enumerate(dict.fromkeys(narratives))}
        of_number = np.array([known[name] for name in narratives], np.int64)
        told = np.asarray(self.citations, np.int64).reshape(-1, 5)[_citations_of(rows, chosen)]
        sites, states, held, never_were, cited = told.T
        return Answers(
            record_uuids=tuple(names),
            columns={name: _column_of(list(self.values[name]), columns[:, at]) for at, name in enumerate(COLUMNS)},
            narratives=_column_of(list(known), of_number[rows.narratives[chosen]]),
            n_passages=rows.n_passages[chosen],
            cited_by=np.repeat(np.arange(len(chosen)), rows.n_sources[chosen]),
            sites=_column_of(list(self.sites), sites),
            states=states,
            cited=cited,
            excerpts=held != 0,
            never_were=np.where(never_were < 0, np.nan, never_were),
        )

    def _rows(self) -> _Rows:
        return _Rows(*np.asarray(self.rows, np.int64).reshape(-1, len(_Rows._fields)).T)


def _told_provenance(answers: Answers, records: Collection[str]) -> dict[str, dict[str, str]]:
    counts = np.zeros((len(answers.record_uuids), len(STATES)), np.int64)
    np.add.at(counts, (answers.cited_by, answers.states), 1)
    ways = np.zeros((len(answers.record_uuids), len(CITED) + 1), np.int64)
    np.add.at(ways, (answers.cited_by, answers.cited), 1)  # what is not told, -1, in the last column
    told: dict[str, dict[str, str]] = {}
    for row, name in enumerate(answers.record_uuids):
        if name in records:
            columns = {key: column.names[column.numbers[row]] for key, column in answers.columns.items()}
            states = {f"n_{state}": str(count) for state, count in zip(STATES, counts[row].tolist(), strict=True)}
            unresolved = sum(int(states[f"n_{state}"]) for state in UNRESOLVED)
            totals = {"n_sources": str(int(counts[row].sum())), "n_unresolved": str(unresolved)}
            *cited, unknown = ways[row].tolist()
            known = {} if unknown else {f"n_{each}": str(count) for each, count in zip(CITED, cited, strict=True)}
            told[name] = {**columns, **totals, **states, **known}
    return told


def column_of(record: QueryResponse, name: str) -> str:
    return record.language if name == "language" else str(getattr(record.provenance, name))


def _citations_of(rows: _Rows, chosen: IntArray) -> IntArray:
    """Where the citations of the chosen answers stand among all, answer by answer."""
    ends = np.cumsum(rows.n_sources)
    counts = rows.n_sources[chosen]
    starts = np.repeat(ends[chosen] - counts, counts)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.asarray(starts + within, np.int64)


def _column_of(names: Sequence[str], numbers: IntArray) -> Column:
    found = sorted(np.unique(numbers).tolist(), key=names.__getitem__)
    place = np.zeros(len(names), np.int64)
    place[found] = np.arange(len(found))
    return Column(tuple(names[number] for number in found), place[numbers])


class ReadRuns(NamedTuple):
    answers: Answers  # Every answer with a text that was not refused, each once
    counts: dict[str, RunCounts]  # By `model_name`, as run folders tell; empty of records alone
    arms: dict[tuple[str, str], RunCounts]  # By `model_name` and `arm`, empty where none
    provenance: dict[str, dict[str, str]]  # Of the export's records, by column of `provenance.csv`
    files: tuple[InputFile, ...]  # With the answers and errors that each holds
    remarks: list[str]  # What was left out, what is incomplete and what cannot be told, in plain sentences


class _Place:
    def __init__(self, path: Path, number: int) -> None:
        self.path, self.number = path, number
        self.answered: dict[str, set[str]] = {}
        self.refused: dict[str, set[str]] = {}
        self.empty: dict[str, set[str]] = {}
        self.blank: set[str] = set()
        self.arms: dict[str, str] = {}
        self.errors: dict[tuple[str, str, int, str, int], ErrorLine] = {}
        self.prompts: dict[str, set[str]] = {}
        self.files: list[InputFile] = []
        self.tells_questions = False
        self.remarks: list[str] = []

    def settle(self, stored: StoredAnswer, stop_reason: str, arm: str) -> None:
        if arm:
            self.arms[stored.answer_id] = arm
        refused = is_refusal(stop_reason)
        kind = self.refused if refused else self.answered if stored.answer_text.strip() else self.empty
        kind.setdefault(stored.model_name, set()).add(stored.answer_id)

    def n_settled(self) -> int:
        return sum(len(ids) for kind in (self.answered, self.refused, self.empty) for ids in kind.values())


def read_runs(paths: Sequence[Path], records: Collection[str] = ()) -> ReadRuns:
    """What run folders and files of records tell; `records` are the ids of the export's records, if there is one.

    What is named twice counts once; a place without a record of the export is left out with a remark.
    """
    facts = AnswerFacts()
    remarks: list[str] = []
    distinct = {path.resolve(): path for path in reversed(paths)}
    if len(distinct) < len(paths):
        remarks.append(f"Runs that are named more than once: {len(paths) - len(distinct)}; each counts once.")
    places = [_read_place(path, facts) for path in reversed(distinct.values())]
    kept = []
    for place in places:
        ids = {*facts.at(place.number), *_all(place.refused), *_all(place.empty), *_all(place.answered)}
        if records and ids and ids.isdisjoint(records):
            remarks.append(
                f"`{place.path}` has nothing to do with this export: none of its {counted(len(ids), 'answer')} is "
                f"among the {counted(len(records), 'record')}. It is left out."
            )
        else:
            kept.append(place)
            remarks += place.remarks
    refused = _union([place.refused for place in kept])
    empty = _union([place.empty for place in kept])
    numbers = [place.number for place in kept]
    no_answers = {*_all(refused), *_all(empty), *(each for place in kept for each in place.blank)}
    answers = facts.finish(numbers, no_answers)
    arms = _count(kept, refused, empty)
    models = {model for model, _ in arms}
    counts = {name: add_counts(each for (model, _), each in arms.items() if model == name) for name in sorted(models)}
    remarks += _uncovered(answers, counts, records, no_answers)
    files = tuple(file for place in kept for file in place.files)
    judged = answers if no_answers.isdisjoint(records) else facts.finish(numbers, ())
    provenance = _told_provenance(judged, records) if records else {}
    return ReadRuns(answers, counts, arms, provenance, files, remarks)


def _all(kind: Mapping[str, set[str]]) -> Iterator[str]:
    return (each for ids in kind.values() for each in ids)


def _union(kinds: Sequence[Mapping[str, set[str]]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for kind in kinds:
        for model, ids in kind.items():
            found.setdefault(model, set()).update(ids)
    return found


def _read_place(path: Path, facts: AnswerFacts) -> _Place:
    place = _Place(path, facts.begin())
    own = run_files.research_records(path) if path.is_dir() else None
    if (
        (path / MANIFEST).is_file()
        and not own
        and (
            # The manifest of a research run is another.
            not (path / "pipeline.csv").is_file() or any(answers_file(path, each).is_file() for each in PROVIDERS)
        )
    ):
        _read_run(place, facts)
        return place
    if path.is_dir():
        place.tells_questions = True
        told = run_files.read_told_run(path)
        for stored in run_files.answers_of_run(path):
            answer = read_stored(stored)
            if own:
                place.settle(stored, answer.stop_reason, "")
                continue
            record = run_files.record_from_answer(stored, told, answer)
            place.settle(stored, answer.stop_reason, record.provenance.arm)
            facts.add(record)
    if own or not path.is_dir():
        for record in run_files.read_records(own or path):
            facts.add(record)
            if not split_line(record)[0].strip():
                place.blank.add(record.record_uuid)
        place.files.append(input_file(own or path, len(facts.at(place.number))))
    if place.blank:
        place.remarks.append(f"`{path}`: records without an answer: {len(place.blank)}; they are left out.")
    return place


def _read_run(place: _Place, facts: AnswerFacts) -> None:
    """Read a folder of `pipeline ask`, whose end may be torn."""
    run = place.path
    try:
        manifest = read_manifest(run)
    except OutputError as error:
        raise InputError(_say("no_run", run=run, manifest=MANIFEST)) from error
    place.tells_questions = True
    errors = read_errors(run)
    if errors:
        place.files.append(input_file(run / ERRORS, len(errors)))
    for line in errors:
        place.errors[manifest.run_id, line.provider, line.row, line.arm, line.repeat] = line
    asked_for = {line.narrative_id for line in errors}
    told = run_files.ToldRun(manifest.run_id, manifest.repeats, tuple(manifest.arms))
    for provider in PROVIDERS:
        file = answers_file(run, provider)
        if not file.is_file() or not header_end(file):
            continue
        settled = place.n_settled()
        for stored in read_answers(file) if manifest.finished else whole_answers(file):
            answer = read_stored(stored)
            if stored.narrative_id in asked_for:
                place.prompts.setdefault(stored.narrative_id, set()).add(stored.answer_prompt)
            record = run_files.record_from_answer(stored, told, answer)
            place.settle(stored, answer.stop_reason, record.provenance.arm)
            facts.add(record)
        place.files.append(input_file(file, place.n_settled() - settled))
    place.remarks += _incomplete(place, manifest)


def _incomplete(place: _Place, manifest: RunManifest) -> Iterator[str]:
    answers, errors = place.n_settled(), len(place.errors)
    there = f"{counted(answers, 'answer')} and {counted(errors, 'error')}"
    if manifest.finished is None:
        planned = manifest.narratives.rows * len(manifest.asked_arms()) * manifest.repeats * len(manifest.providers)
        yield _say("killed", path=place.path, there=there, planned=counted(planned, "question"))
    elif manifest.unsettled:
        yield (
            f"`{place.path}` was stopped ({manifest.stopped}): {there} count; {counted(manifest.unsettled, 'question')}"
            f" without either {'is' if manifest.unsettled == 1 else 'are'} not among those asked."
        )
    said = manifest.answers + sum(manifest.errors.values())
    if manifest.finished is not None and said != answers + errors:
        yield _say("changed", path=place.path, said=counted(said, "question"), there=there)


def _count(
    places: Sequence[_Place], refused: Mapping[str, set[str]], empty: Mapping[str, set[str]]
) -> dict[tuple[str, str], RunCounts]:
    telling = [place for place in places if place.tells_questions]
    answered = _union([place.answered for place in telling])
    errors = {key: error for place in telling for key, error in place.errors.items()}
    settled = {*_all(answered), *_all(refused), *_all(empty)}
    prompts = _union([place.prompts for place in telling])
    arms = {answer_id: arm for place in telling for answer_id, arm in place.arms.items()}
    n_answered, n_refused, n_failed = (
        Counter((model, arms.get(each, "")) for model, ids in kind.items() for each in ids)
        for kind in (answered, refused, empty)
    )
    for (run_id, provider, _, arm, repeat), error in errors.items():
        asked = prompts.get(error.narrative_id, set())
        calls = (identify_call(run_id, provider, error.narrative_id, prompt, 1, repeat, arm) for prompt in asked)
        if not any(call in settled for call in calls):
            (n_refused if is_refusal_error(error.kind, error.message) else n_failed)[provider, arm] += 1
    return {
        each: RunCounts(n_answered[each] + n_refused[each] + n_failed[each], n_refused[each], n_failed[each])
        for each in sorted({*n_answered, *n_refused, *n_failed})
    }


def _uncovered(
    answers: Answers, counts: Mapping[str, RunCounts], records: Collection[str], not_answered: Collection[str]
) -> Iterator[str]:
    told = {*answers.record_uuids, *not_answered}
    missing = sum(record not in told for record in records)
    if missing and told:
        yield _say("missing", missing=missing, records=len(records))
    models = answers.columns["model_name"]
    unasked = sorted(name or "(not known)" for name in models.names if name not in counts)
    if unasked:
        yield _say("unasked", models=", ".join(unasked))

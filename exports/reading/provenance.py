"""Where each record comes from (exports/contracts/csv.md), and which narrative it belongs to."""

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import NamedTuple, get_args

from exports.csv.folder import PROVENANCE_FILE
from exports.reading.input_files import column_rows, counted_cells, csv_rows, display_names, input_file
from exports.statistics.ratings import InputFile
from exports.statistics.study import RunCounts, add_counts
from pipeline.core.errors import BadRowsError
from pipeline.core.sentences import sentences
from pipeline.core.tables import unescaped
from pipeline.core.terminal import counted
from pipeline.records.causes import SourceState

_say = sentences(__file__)

RECORD = "record_uuid"
_COUNTS = frozenset(
    ("n_sources", "n_unresolved", *(f"n_{state}" for state in get_args(SourceState)), "n_cited", "n_shown", "n_seen")
)
_NEEDED = (RECORD, "narrative_id", "model_name")  # Any other column may be missing, and is unknown then


class ReadProvenance(NamedTuple):
    rows: Mapping[str, Mapping[str, str]]  # By record and column; empty text where not known
    columns: tuple[str, ...]  # But `record_uuid`, each once, in the order of the files
    files: tuple[InputFile, ...]  # The files that were read, in their order; empty where none is there
    remarks: list[str]  # Plain sentences about records of which two files say different things; empty where all agree


def provenance_files(paths: Sequence[Path]) -> list[Path]:
    """The `provenance.csv` of each folder, beside each CSV file, or named itself, each once, in their order."""
    places = [path / PROVENANCE_FILE if path.is_dir() else path.with_name(PROVENANCE_FILE) for path in paths]
    return list({place.resolve(): place for place in places if place.is_file()}.values())


def read_provenance(files: Sequence[Path]) -> ReadProvenance:
    """What files tell of each record; where several tell of one, the first that is not empty counts for a column."""
    rows: dict[str, dict[str, str]] = {}
    columns: dict[str, None] = {}
    inputs: list[InputFile] = []
    bad: list[str] = []
    differing: list[str] = []
    for file, shown in zip(files, display_names(files), strict=True):
        found, own = _read_file(file, shown, bad)
        columns |= dict.fromkeys(own)
        for record, told in found.items():
            known = rows.setdefault(record, {})
            differing += [
                f"{record}, `{name}`: {known[name]!r} and {value!r}"
                for name, value in told.items()
                if value and known.get(name) and known[name] != value
            ]
            known |= {name: value for name, value in told.items() if not known.get(name)}
        inputs.append(input_file(file, len(found)))
    if bad:
        raise BadRowsError(
            f"{counted_cells(bad)} of `{PROVENANCE_FILE}` cannot be read; export again or mend what is wrong:", bad
        )
    names = tuple(columns)
    filled = {record: {name: told.get(name, "") for name in names} for record, told in rows.items()}
    remarks = [
        _say("differing", provenance_file=PROVENANCE_FILE, cells=len(differing), first=first) for first in differing[:1]
    ]
    return ReadProvenance(filled, names, tuple(inputs), remarks)


def told_runs(rows: Iterable[Mapping[str, str]]) -> dict[str, RunCounts] | None:
    """What became of the questions, by provider, as these records say of their runs; None where one does not say.

    Of one run the record counts that was made last: by then most was asked, and least of it failed.
    """
    runs: dict[str, dict[str, RunCounts]] = {}
    for run, asked in dict.fromkeys((row.get("run_id", ""), row.get("run_asked", "")) for row in rows):
        try:
            told = {model: RunCounts(*map(int, counts)) for model, counts in json.loads(asked).items()}
        except (ValueError, TypeError, AttributeError):
            return None
        runs[run] = max(runs.get(run, told), told, key=lambda each: (add_counts(each.values()).answered, len(each)))
    models = sorted({model for each in runs.values() for model in each})
    return {model: add_counts(each[model] for each in runs.values() if model in each) for model in models}


def gap_sentences(rows: Mapping[str, Mapping[str, str]], records: Iterable[str]) -> list[str]:
    """A sentence each: `records` of which nothing is told, and those whose narrative or model is not known."""
    wanted = sorted(set(records))
    absent = [record for record in wanted if record not in rows]
    found = []
    if absent:
        found.append(
            _say("absent", provenance_file=PROVENANCE_FILE, absent=len(absent), records=len(wanted), first=absent[0])
        )
    for name in _NEEDED[1:]:
        empty = [record for record in wanted if record in rows and not rows[record].get(name)]
        if empty:
            found.append(f"`{name}` is not known for {len(empty)} of {len(wanted)} records (the first: {empty[0]}).")
    return found


def _read_file(file: Path, name: str, bad: list[str]) -> tuple[dict[str, dict[str, str]], tuple[str, ...]]:
    """The other cells of each record by column, and the columns."""
    _, header = next(csv_rows(file), (1, []))
    seen: dict[str, str] = {}  # Equal cells are kept once: a campaign has few models and many records
    found: dict[str, dict[str, str]] = {}
    for place, row in column_rows(file, (*_NEEDED, *header), "Export again with `citejury exports csv`.", name, bad):
        record = unescaped(row.pop(RECORD))
        wrong = [column for column in row if column in _COUNTS and not re.fullmatch("[0-9]*", row[column])]
        if not record.strip():
            bad.append(f"{place}: `{RECORD}` is empty, every row needs one.")
        elif record in found:
            bad.append(f"{place}: a row above has the `{RECORD}` {record!r} too; a record has one row.")
        elif wrong:
            bad += [f"{place}, `{each}`: found {row[each]!r}, expected a whole number or nothing." for each in wrong]
        else:
            texts = {column: unescaped(cell) for column, cell in row.items()}
            found[record] = {column: seen.setdefault(text, text) for column, text in texts.items()}
    return found, tuple(column for column in header if column != RECORD)


_EXAMPLES = 3


class RecordTraces(NamedTuple):
    narrative_id: str
    query: str
    folders: frozenset[int]  # Numbers of the exports that it is in


class Narratives(NamedTuple):
    clusters: dict[str, str]  # Records of one narrative have the same name
    remarks: list[str]  # Plain sentences about ids that are missing, or mean several queries


def tell_narratives(traces: Mapping[str, RecordTraces], folders: Sequence[str]) -> Narratives:
    """The narrative of each record: by its id; else by its query; else the record itself.

    An id that stands for different queries in different exports (`folders`) is one narrative for each of them.
    """
    apart = _ids_apart(traces)
    clusters: dict[str, str] = {}
    of_query: dict[str, set[str]] = defaultdict(set)
    for record, trace in traces.items():
        if trace.narrative_id:
            parts = apart.get(trace.narrative_id)
            name = trace.narrative_id + (f" ({folders[parts[min(trace.folders)]]})" if parts else "")
            clusters[record] = name
            if trace.query:
                of_query[trace.query].add(name)
    by_query = {record: trace.query for record, trace in traces.items() if record not in clusters and trace.query}
    alone = [record for record, trace in traces.items() if record not in clusters and not trace.query]
    for record, query in by_query.items():
        named = of_query.get(query, set())
        clusters[record] = next(iter(named)) if len(named) == 1 else f"query {query}"
    clusters |= {record: f"record {record}" for record in alone}
    return Narratives(clusters, [*_apart_remarks(apart, traces, folders), *_unknown_remarks(by_query, alone, traces)])


def _ids_apart(traces: Mapping[str, RecordTraces]) -> dict[str, dict[int, int]]:
    """For each id that means different queries in different exports: the first export of its kind, for each export."""
    queries: dict[str, dict[int, set[str]]] = defaultdict(dict)
    links: dict[str, set[frozenset[int]]] = defaultdict(set)
    for trace in traces.values():
        if not trace.narrative_id:
            continue
        for folder in trace.folders:
            known = queries[trace.narrative_id].setdefault(folder, set())
            if trace.query:
                known.add(trace.query)
        links[trace.narrative_id].add(trace.folders)
    told = {
        narrative: _parts({folder: found for folder, found in by_folder.items() if found}, links[narrative])
        for narrative, by_folder in queries.items()
    }
    differing = {
        frozenset((one, other))
        for parts in told.values()
        for one in parts
        for other in parts
        if parts[one] != parts[other]
    }
    apart: dict[str, dict[int, int]] = {}
    for narrative, by_folder in queries.items():
        parts = told[narrative]
        for folder in sorted(by_folder.keys() - parts.keys()):  # no query is known here
            same = [other for other in parts if frozenset((folder, other)) not in differing]
            parts[folder] = parts[same[0]] if same else folder
        if len(set(parts.values())) > 1:
            apart[narrative] = parts
    return apart


def _parts(queries: Mapping[int, Set[str]], links: Iterable[frozenset[int]]) -> dict[int, int]:
    """For each export the first of those that are joined with it by a query or a record that both have."""
    parts = {folder: folder for folder in sorted(queries)}
    pairs = [(a, b) for a in parts for b in parts if a < b and queries[a] & queries[b]]
    pairs += [(a, b) for link in links for a in link for b in link if a < b and a in parts and b in parts]
    for a, b in pairs:
        low, high = sorted((parts[a], parts[b]))
        parts = {folder: low if part == high else part for folder, part in parts.items()}
    return parts


def _apart_remarks(
    apart: Mapping[str, Mapping[int, int]], traces: Mapping[str, RecordTraces], folders: Sequence[str]
) -> list[str]:
    found = []
    if apart:
        names = {folders[part] for parts in apart.values() for part in parts.values()}
        where = [f"`{name}`" for name in sorted(names)]
        found.append(_say("apart", where=" and ".join(where), count=len(apart), examples=_examples(apart)))
    texts: dict[tuple[str, int], set[str]] = defaultdict(set)
    for trace in traces.values():
        if trace.narrative_id and trace.query:
            texts[trace.narrative_id, min(trace.folders)].add(trace.query)
    several = dict.fromkeys(narrative for (narrative, _), found in texts.items() if len(found) > 1)
    if several:
        found.append(_say("several", count=len(several), examples=_examples(several)))
    return found


def _unknown_remarks(
    by_query: Mapping[str, str], alone: Sequence[str], traces: Mapping[str, RecordTraces]
) -> list[str]:
    found = []
    if by_query:
        found.append(
            f"The narrative of {counted(len(by_query), 'record')} of {len(traces):,} has no id: those with the same "
            f"query count as one narrative (different queries: {len(set(by_query.values())):,})."
        )
    if alone:
        found.append(_say("alone", alone=counted(len(alone), "record"), records=len(traces)))
    return found


def _examples(names: Collection[str]) -> str:
    return ", ".join(map(repr, sorted(names)[:_EXAMPLES])) + (", …" if len(names) > _EXAMPLES else "")

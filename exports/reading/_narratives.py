"""Which narrative each record belongs to, as far as ids and queries tell: the clusters of every interval.

Source: exports/contracts/results.md#narratives.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from pipeline.terminal import counted

_EXAMPLES = 3


class RecordTraces(NamedTuple):
    """What tells the narrative of a record."""

    narrative_id: str
    """Its narrative's id; empty where it is not known."""
    query: str
    """Its query; empty where it is not known."""
    folders: frozenset[int]
    """Numbers of the exports that it is in."""


class Narratives(NamedTuple):
    """The narrative of every record."""

    clusters: dict[str, str]
    """A name for the narrative of each record by `record_uuid`; records of one narrative have the same."""
    remarks: list[str]
    """Plain sentences about ids that are missing, or mean several queries."""


def tell_narratives(traces: Mapping[str, RecordTraces], folders: Sequence[str]) -> Narratives:
    """The narrative of each record: by its id; else by its query; else the record itself.

    An id that stands for different queries in different exports is one narrative for each of them.

    `folders` is how sentences call the exports.
    """
    apart = _ids_apart(traces)
    clusters: dict[str, str] = {}
    of_query: dict[str, set[str]] = defaultdict(set)
    for record, trace in traces.items():
        if trace.narrative_id:
            name = _clustered(trace, apart, folders)
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


def _clustered(trace: RecordTraces, apart: Mapping[str, Mapping[int, int]], folders: Sequence[str]) -> str:
    """The name of the narrative of a record with an id: the id, and where that means several queries, an export too."""
    parts = apart.get(trace.narrative_id)
    if parts is None:
        return trace.narrative_id
    return f"{trace.narrative_id} ({folders[parts[min(trace.folders)]]})"


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
    """Sentences about ids with several queries, across exports and within one."""
    found = []
    if apart:
        names = {folders[part] for parts in apart.values() for part in parts.values()}
        where = [f"`{name}`" for name in sorted(names)]
        found.append(
            f"Narrative ids that mean different queries in {' and '.join(where)}: {len(apart):,} "
            f"({_examples(apart)}). They are kept apart, and no group is compared across them."
        )
    texts: dict[tuple[str, int], set[str]] = defaultdict(set)
    for trace in traces.values():
        if trace.narrative_id and trace.query:
            texts[trace.narrative_id, min(trace.folders)].add(trace.query)
    several = dict.fromkeys(narrative for (narrative, _), found in texts.items() if len(found) > 1)
    if several:
        found.append(
            f"Narrative ids with several queries in one export: {len(several):,} ({_examples(several)}). All records "
            "of an id count as one narrative."
        )
    return found


def _unknown_remarks(
    by_query: Mapping[str, str], alone: Sequence[str], traces: Mapping[str, RecordTraces]
) -> list[str]:
    """Sentences about records whose narrative has no id."""
    found = []
    if by_query:
        found.append(
            f"The narrative of {counted(len(by_query), 'record')} of {len(traces):,} has no id: those with the same "
            f"query count as one narrative (different queries: {len(set(by_query.values())):,})."
        )
    if alone:
        found.append(
            f"Of {counted(len(alone), 'record')} of {len(traces):,} neither narrative nor query is known: each counts "
            "as a narrative of its own, so groups cannot be compared on them and intervals may be too narrow."
        )
    return found


def _examples(names: Collection[str]) -> str:
    """The first names."""
    return ", ".join(map(repr, sorted(names)[:_EXAMPLES])) + (", …" if len(names) > _EXAMPLES else "")

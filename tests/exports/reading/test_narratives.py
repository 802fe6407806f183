"""Which narrative a record belongs to, for any mixture of ids, queries and exports."""

from hypothesis import given
from hypothesis import strategies as st

from exports.reading.provenance import RecordTraces, tell_narratives

FOLDERS = ("spring", "summer", "autumn")
TRACES = st.builds(
    RecordTraces,
    narrative_id=st.sampled_from(["", "n1", "n2"]),
    query=st.sampled_from(["", "q1", "q2", "q3"]),
    folders=st.frozensets(st.integers(0, len(FOLDERS) - 1), min_size=1, max_size=2),
)
STUDIES = st.lists(TRACES, min_size=1, max_size=12).map(lambda found: {f"r{at}": each for at, each in enumerate(found)})


@given(STUDIES)
def test_every_record_has_one_narrative_whatever_their_order(traces: dict[str, RecordTraces]) -> None:
    told = tell_narratives(traces, FOLDERS).clusters
    assert told.keys() == traces.keys()
    turned = tell_narratives(dict(reversed(traces.items())), FOLDERS).clusters
    assert turned == told


@given(STUDIES)
def test_the_same_id_and_query_are_one_narrative_and_different_ids_never_are(traces: dict[str, RecordTraces]) -> None:
    told = tell_narratives(traces, FOLDERS).clusters
    for a, one in traces.items():
        for b, other in traces.items():
            if one.narrative_id and one.query and one[:2] == other[:2]:
                assert told[a] == told[b]
            if one.narrative_id and other.narrative_id and one.narrative_id != other.narrative_id:
                assert told[a] != told[b]


@given(STUDIES)
def test_an_id_is_not_one_narrative_where_nothing_joins_its_exports(traces: dict[str, RecordTraces]) -> None:
    told = tell_narratives(traces, FOLDERS).clusters
    for narrative in ("n1", "n2"):
        named = {name: trace for name, trace in traces.items() if trace.narrative_id == narrative}
        if any(len(trace.folders) > 1 or not trace.query for trace in named.values()):
            continue
        queries = {at: {t.query for t in named.values() if at in t.folders} for at in range(len(FOLDERS))}
        if any(queries[a] & queries[b] for a in queries for b in queries if a < b):
            continue
        exports_of = {(told[name], next(iter(trace.folders))) for name, trace in named.items()}
        assert len(exports_of) == len({cluster for cluster, _ in exports_of})

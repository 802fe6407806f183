import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exports.reading.provenance import RecordTraces, provenance_files, read_provenance, tell_narratives
from exports.reading.read import export_files
from pipeline.core.errors import BadRowsError, InputError

HEAD = (
    "record_uuid,narrative_id,narrative_type,model_name,model_version,arm,repeat,run_id,language,answer_timestamp,"
    "n_sources,n_read,n_unread,n_gone,n_unresolved,n_unfetched,contexts"
)
ROW = "r1,n1,myth,openai,gpt-5,,1,run,de,2026-03-01T10:00:00+00:00,3,2,1,0,0,0,selected"


def write(folder: Path, *rows: str, head: str = HEAD) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "provenance.csv").write_bytes("\r\n".join([head, *rows, ""]).encode())
    return folder / "provenance.csv"


def test_each_record_has_its_cells_and_further_ones_by_column_and_other_bytes_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, ROW, ROW.replace("r1", "001").replace("openai", ""))
    found = read_provenance([path])
    assert (found.columns, list(found.rows)) == (tuple(HEAD.split(","))[1:], ["r1", "001"])
    assert found.rows["r1"] == dict(zip(HEAD.split(",")[1:], ROW.split(",")[1:], strict=True))
    assert found.rows["001"]["model_name"] == ""
    (file,) = found.files
    assert (file.file, file.rows, file.sha256) == ("provenance.csv", 2, hashlib.sha256(path.read_bytes()).hexdigest())
    found = read_provenance([write(tmp_path, f"sunny,{ROW}", head=f"mood,{HEAD}")])
    assert (found.rows["r1"]["mood"], found.rows["r1"]["narrative_id"]) == ("sunny", "n1")
    found = read_provenance([write(tmp_path, "r1,openai,n1", head="record_uuid,model_name,narrative_id")])
    assert found.rows == {"r1": {"model_name": "openai", "narrative_id": "n1"}}
    path = write(tmp_path, ROW)
    path.write_bytes(path.read_bytes() + ROW.replace("r1", "r2").replace("myth", "Lüge").encode("latin-1"))
    with pytest.raises(InputError, match="is not UTF-8"):
        read_provenance([path])


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        ("", "needs the column `record_uuid` once, found it 0 times"),
        (HEAD.replace("narrative_id", "narrative"), "needs the column `narrative_id` once, found it 0 times"),
        (HEAD.replace("run_id", "model_name"), "needs the column `model_name` once, found it 2 times"),
        (HEAD.replace("run_id", "arm"), "needs the column `arm` once, found it 2 times"),
    ],
)
def test_a_bad_header_is_refused(tmp_path: Path, head: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        read_provenance([write(tmp_path, head=head)])


def test_every_bad_row_and_count_is_listed_with_its_line(tmp_path: Path) -> None:
    rows = [ROW, ROW.replace("openai", "grok"), f"{ROW},more".replace("r1", "r2"), ROW.replace("r1", " ")]
    bad = ROW.replace("r1", "r2").replace(",3,2,1,", ",many,2.0,-1,")
    unknown = ROW.replace("r1", "r3").replace(",3,2,1,", ",,,,")
    with pytest.raises(BadRowsError) as caught:
        read_provenance([write(tmp_path, *rows, bad, unknown)])
    assert list(caught.value.rows) == [
        "provenance.csv, line 3: a row above has the `record_uuid` 'r1' too; a record has one row.",
        "provenance.csv, line 4: found 18 cells, the header has 17.",
        "provenance.csv, line 5: `record_uuid` is empty, every row needs one.",
        "provenance.csv, line 6, `n_sources`: found 'many', expected a whole number or nothing.",
        "provenance.csv, line 6, `n_read`: found '2.0', expected a whole number or nothing.",
        "provenance.csv, line 6, `n_unread`: found '-1', expected a whole number or nothing.",
    ]


def test_a_file_for_spreadsheets_says_the_same_and_two_exports_are_put_together(tmp_path: Path) -> None:
    plain = write(tmp_path / "plain", ROW.replace("r1", "-1").replace("n1", "=n").replace("gpt-5", "'quoted'"))
    safe = write(tmp_path / "safe", ROW.replace("r1", "'-1").replace("n1", "'=n").replace("gpt-5", "'quoted'"))
    safe.write_bytes(b"\xef\xbb\xbf" + safe.read_bytes())
    assert read_provenance([safe]).rows == read_provenance([plain]).rows
    first = write(tmp_path / "a", ROW.replace("gpt-5", ""), ROW.replace("r1", "r2"))
    second = write(tmp_path / "b", ROW.replace("openai", "grok"), ROW.replace("r1", "r3"))
    found = read_provenance([first, second])
    assert list(found.rows) == ["r1", "r2", "r3"]
    assert (found.rows["r1"]["model_name"], found.rows["r1"]["model_version"]) == ("openai", "gpt-5")
    assert found.remarks == [
        "`provenance.csv` of several exports say different things of 1 cells; the first named counts (the first: r1, "
        "`model_name`: 'openai' and 'grok')."
    ]


def test_the_file_is_found_by_folder_name_and_pattern_and_a_bad_row_named_with_its_export(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "in", ROW)
    (tmp_path / "in" / "generation.csv").touch()
    (tmp_path / "none").mkdir()
    assert provenance_files([tmp_path / "in", tmp_path / "in" / "generation.csv", path, tmp_path / "none"]) == [path]
    assert read_provenance([]) == ({}, (), (), [])
    path = write(tmp_path, ROW)
    (tmp_path / "generation.csv").touch()
    assert export_files(sorted(tmp_path.glob("*.csv"))) == [tmp_path / "generation.csv"]
    assert export_files([path]) == [path]
    spring, autumn = write(tmp_path / "spring", ROW), write(tmp_path / "autumn", "r2")
    with pytest.raises(BadRowsError, match=r"^1 cell or row of `provenance\.csv` cannot be read") as caught:
        read_provenance([spring, autumn])
    assert list(caught.value.rows) == [f"{autumn}, line 2: found 1 cell, the header has 17."]


FOLDERS = ("spring", "summer", "autumn")
TRACES = st.builds(
    RecordTraces,
    narrative_id=st.sampled_from(["", "n1", "n2"]),
    query=st.sampled_from(["", "q1", "q2", "q3"]),
    folders=st.frozensets(st.integers(0, len(FOLDERS) - 1), min_size=1, max_size=2),
)
STUDIES = st.lists(TRACES, min_size=1, max_size=12).map(lambda found: {f"r{at}": each for at, each in enumerate(found)})


@given(STUDIES)
def test_the_same_id_and_query_are_one_narrative_and_an_id_alone_is_not(
    traces: dict[str, RecordTraces],
) -> None:
    told = tell_narratives(traces, FOLDERS).clusters
    assert told.keys() == traces.keys()
    assert tell_narratives(dict(reversed(traces.items())), FOLDERS).clusters == told
    for a, one in traces.items():
        for b, other in traces.items():
            if one.narrative_id and one.query and one[:2] == other[:2]:
                assert told[a] == told[b]
            if one.narrative_id and other.narrative_id and one.narrative_id != other.narrative_id:
                assert told[a] != told[b]
    for narrative in ("n1", "n2"):
        named = {name: trace for name, trace in traces.items() if trace.narrative_id == narrative}
        if any(len(trace.folders) > 1 or not trace.query for trace in named.values()):
            continue
        queries = {at: {t.query for t in named.values() if at in t.folders} for at in range(len(FOLDERS))}
        if any(queries[a] & queries[b] for a in queries for b in queries if a < b):
            continue
        exports_of = {(told[name], next(iter(trace.folders))) for name, trace in named.items()}
        assert len(exports_of) == len({cluster for cluster, _ in exports_of})

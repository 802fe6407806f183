"""What run folders and files of records tell of answers, refusals and failures."""

import json
import shutil
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner

from exports.cli import main
from exports.reading.runs import ReadRuns, read_runs
from exports.statistics.study import STATES, UNKNOWN_CITED, RunCounts, Study
from pipeline.core.errors import CitejuryError, InputError
from pipeline.records.run import read_records, write_records
from pipeline.records.schema import QueryResponse
from tests.support.told_runs import BROKEN, PAYLOADS, kill_run, said, write_run

COUNTS = {"gemini": RunCounts(4, 1, 1), "grok": RunCounts(4, 1, 2), "openai": RunCounts(4, 1, 0)}


def models(found: ReadRuns) -> list[str]:
    column = found.answers.columns["model_name"]
    return sorted(column.names[number] for number in column.numbers.tolist())


def with_states(record: QueryResponse, *states: str) -> QueryResponse:
    sources = [
        source.model_copy(update={"state": state, "reason": "page" if state == "read" else ""})
        for source, state in zip(record.sources, states, strict=False)
    ]
    return record.model_copy(update={"sources": tuple(sources)})


def test_asked_is_answered_refused_and_failed(tmp_path: Path) -> None:
    manifest = write_run(tmp_path)
    found = read_runs([tmp_path / "run"])
    assert found.counts == COUNTS
    assert sum(each.asked for each in COUNTS.values()) == manifest.answers + sum(manifest.errors.values())
    assert [each.answered for each in COUNTS.values()] == [2, 1, 3]
    assert (models(found), found.remarks) == (["gemini", "gemini", "grok", "openai", "openai", "openai"], [])


def test_questions_are_counted_by_arm_and_with_their_providers(tmp_path: Path) -> None:
    narratives = tmp_path / "narratives.csv"
    narratives.write_text("narrative_id,prompt\nn1,One is so.\nn2,Two is so.\nn3,Three is so.\n", encoding="utf-8")
    words = ["pipeline", "ask", str(narratives), "--out", str(tmp_path / "run"), "--replay", str(tmp_path / "payloads")]
    words += ["--allow-missing", "6"]
    for arm, replies in (
        ("plain", {"n1": (said("No."), 200), "n2": (said("No", stop="content_filter"), 200)}),
        ("mad", {"n1": (said("Yes."), 200), "n2": (BROKEN, 500), "n3": (BROKEN, 500)}),
    ):
        (tmp_path / f"{arm}.toml").write_text(f"persona = 'I am {arm}.'\n", encoding="utf-8")
        words += ["--arm", f"{arm}:{tmp_path / arm}.toml"]
        for provider in ("openai", "grok"):
            place = tmp_path / "payloads" / arm / provider
            place.mkdir(parents=True)
            for narrative, (body, status) in replies.items():
                (place / f"{narrative}.json").write_text(json.dumps(body), encoding="utf-8")
                (place / f"{narrative}.meta.json").write_text(json.dumps({"status": status}), encoding="utf-8")
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    found = read_runs([tmp_path / "run"])
    plain, mad = RunCounts(3, 1, 1), RunCounts(3, 0, 2)
    assert found.arms == {
        (each, arm): of for each in ("grok", "openai") for arm, of in (("mad", mad), ("plain", plain))
    }
    assert found.counts == {"grok": RunCounts(6, 1, 3), "openai": RunCounts(6, 1, 3)}
    asked_of = Study((), {}, {}, runs=found.counts, arms=found.arms).asked_of
    assert (asked_of({}), asked_of({"arm": "mad"})) == (RunCounts(12, 2, 6), RunCounts(6, 0, 4))
    assert asked_of({"arm": "mad", "model_name": "grok"}) == mad
    assert asked_of({"arm": "other"}) is None
    assert asked_of({"arm": "mad", "language": "en"}) is None


def test_sites_are_those_behind_redirects_another_study_is_left_out_and_errors_count_alone(tmp_path: Path) -> None:
    write_run(tmp_path)
    answers = read_runs([tmp_path / "run"]).answers
    cited: dict[str, list[str]] = {}
    for answer, site in zip(answers.cited_by.tolist(), answers.sites.numbers.tolist(), strict=True):
        model = answers.columns["model_name"]
        cited.setdefault(model.names[model.numbers[answer]], []).append(answers.sites.names[site])
    assert {model: sorted(sites) for model, sites in cited.items()} == {
        "gemini": ["a.example", "c.example", "wikipedia.org"],
        "grok": ["a.example", "a.example"],
        "openai": ["a.example", "b.example", "wikipedia.org"],
    }
    body = json.loads(json.dumps(PAYLOADS["gemini"]["n1"][0]))
    body["candidates"][0]["groundingMetadata"]["groundingChunks"][0]["web"]["title"] = "A page without a host"
    write_run(tmp_path, {"gemini": {"n1": (body, 200)}}, name="hidden")
    answers = read_runs([tmp_path / "hidden"]).answers
    assert [answers.sites.names[number] for number in answers.sites.numbers.tolist()] == ["", "a.example"]
    write_run(tmp_path, {"openai": PAYLOADS["openai"]}, name="other")
    records = [record.record_uuid for record in read_records(tmp_path / "run")]
    found = read_runs([tmp_path / "run", tmp_path / "other"], {*records, "another"})
    assert found.counts == COUNTS
    assert found.remarks == [
        f"`{tmp_path / 'other'}` has nothing to do with this export: none of its 4 answers is among the 10 records. It "
        "is left out.",
        "Records of the export that are in none of the runs: 1 of 10. Figures from runs do not count them.",
    ]
    assert set(found.provenance) == set(records), "a refusal that the jury saw has provenance too"
    told = next(row for row in found.provenance.values() if row["model_name"] == "openai" and row["n_sources"] == "2")
    assert {name: told[name] for name in ("narrative_id", "n_read", "n_unfetched")} == {
        "narrative_id": "n1",
        "n_read": "0",
        "n_unfetched": "2",
    }
    for name in ("openai", "gemini", "grok"):
        (tmp_path / "run" / f"{name}.csv").unlink()
    assert read_runs([tmp_path / "run"], {"a record"}).counts == {"grok": RunCounts(3, 1, 2)}


def test_what_stands_twice_counts_once_and_records_tell_of_fetching_but_not_of_what_was_asked(tmp_path: Path) -> None:
    write_run(tmp_path)
    run = tmp_path / "run"
    shutil.copytree(run, tmp_path / "copy")
    found = read_runs([run, run, tmp_path / "copy", tmp_path / "x" / ".." / "run"])
    assert (found.counts, len(found.answers.record_uuids)) == (COUNTS, 6)
    assert found.remarks == ["Runs that are named more than once: 2; each counts once."]
    records = list(read_records(tmp_path / "run"))
    fetched = [with_states(record, "gone", "read") for record in records]
    write_records(tmp_path / "records.jsonl", fetched)
    for order in ([tmp_path / "run", tmp_path / "records.jsonl"], [tmp_path / "records.jsonl", tmp_path / "run"]):
        found = read_runs(order)
        states = [STATES[number] for number in found.answers.states.tolist()]
        assert (states.count("gone"), states.count("read"), states.count("unfetched")) == (5, 3, 0)
        assert found.counts == COUNTS
        assert len(found.answers.record_uuids) == 6, "a refusal is among the records and is no answer"
    records = tmp_path / "records.jsonl"
    write_records(records, read_records(tmp_path / "run"))
    found = read_runs([records])
    assert (found.counts, found.remarks) == (
        {},
        [
            f"`{records}`: records without an answer: 2; they are left out.",
            "How many questions were asked, refused or failed is not known of gemini, grok, openai: name the run "
            "folders with `--runs` as well.",
        ],
    )
    files = read_runs([tmp_path / "run", records]).files
    assert [(file.file, file.rows) for file in files] == [
        *[("errors.jsonl", 3), ("openai.csv", 4), ("gemini.csv", 4), ("grok.csv", 1), ("records.jsonl", 9)]
    ]
    assert files[-1].sha256 == sha256(records.read_bytes()).hexdigest()


def test_how_sources_are_cited_reaches_figures_and_provenance_and_is_unknown_in_earlier_records(tmp_path: Path) -> None:
    body = {**said("Yes [1].", "https://a.example/1"), "citations": ["https://a.example/1", "https://b.example/2"]}
    write_run(tmp_path, {"grok": {"n1": (body, 200)}})
    (record,) = read_records(tmp_path / "run")
    (told,) = read_runs([tmp_path / "run"], {record.record_uuid}).provenance.values()
    assert [told[name] for name in ("n_sources", "n_cited", "n_shown", "n_seen")] == ["2", "0", "1", "1"]
    earlier = tmp_path / "records.jsonl"
    value = record.model_dump(mode="json")
    for source in value["sources"]:
        del source["cited"]
    earlier.write_text(json.dumps(value) + "\n", encoding="utf-8")
    found = read_runs([earlier], {record.record_uuid})
    assert found.answers.cited.tolist() == [UNKNOWN_CITED, UNKNOWN_CITED]
    assert "n_cited" not in found.provenance[record.record_uuid]


def test_a_killed_run_counts_what_is_there(tmp_path: Path) -> None:
    write_run(tmp_path)
    kill_run(tmp_path / "run")
    found = read_runs([tmp_path / "run"])
    assert found.counts == {**COUNTS, "openai": RunCounts(3, 0, 0)}
    assert found.remarks == [
        f"`{tmp_path / 'run'}` did not come to its end (it was killed, or still runs): 8 answers and 3 errors count, "
        "of up to 12 questions."
    ]
    (tmp_path / "run" / "openai.csv").write_bytes(b"narrative_id,narr")
    assert "openai" not in read_runs([tmp_path / "run"]).counts


def test_an_error_of_a_call_that_was_answered_since_does_not_count(tmp_path: Path) -> None:
    write_run(tmp_path)
    run = tmp_path / "run"
    line = json.loads((run / "errors.jsonl").read_text(encoding="utf-8").splitlines()[0])
    since = {**line, "provider": "openai", "narrative_id": "n2", "row": 2}
    with open(run / "errors.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps(since) + "\n")
    kill_run(run)
    assert read_runs([run]).counts["openai"] == RunCounts(3, 0, 0)


def test_narratives_are_of_their_study_and_a_torn_file_is_refused(tmp_path: Path) -> None:
    write_run(tmp_path)
    records = [record for record in read_records(tmp_path / "run") if record.provenance.narrative_id != "n4"]

    def asked_as(words: str) -> list[QueryResponse]:
        changes = (
            {"record_uuid": f"{words}-{at}", "query": f"{words} {each.query}"} for at, each in enumerate(records)
        )
        return [record.model_copy(update=change) for record, change in zip(records, changes, strict=True)]

    write_records(tmp_path / "other.jsonl", asked_as("Something else about"))
    write_records(tmp_path / "both.jsonl", [*records, *asked_as("Auf Deutsch:")])
    apart = read_runs([tmp_path / "run", tmp_path / "other.jsonl"]).answers
    together = read_runs([tmp_path / "both.jsonl"]).answers
    assert (len(apart.narratives.names), len(set(apart.columns["narrative_id"].names))) == (6, 3)
    assert len(together.narratives.names) == 3
    file = tmp_path / "run" / "openai.csv"
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(CitejuryError, match="pipeline check"):
        read_runs([tmp_path / "run"])


def test_a_research_run_is_one_question_and_files_unlike_their_manifest_are_told(tmp_path: Path) -> None:
    write_run(tmp_path)
    stored = (tmp_path / "run" / "openai.csv").read_bytes().decode().split("\r\n")
    rows = [row.replace(",openai,", ",pipeline,") for row in stored if not row.startswith(("n2", "n3", "n4"))]
    folder = tmp_path / "research"
    folder.mkdir()
    (folder / "pipeline.csv").write_text("\r\n".join(rows), encoding="utf-8", newline="")
    write_records(folder / "records.jsonl", [with_states(next(read_records(folder)), "read", "read")])
    found = read_runs([folder])
    assert found.counts == {"pipeline": RunCounts(1, 0, 0)}
    assert [STATES[number] for number in found.answers.states.tolist()] == ["read", "read"]
    (tmp_path / "run" / "grok.csv").unlink()
    found = read_runs([tmp_path / "run"])
    assert found.counts["grok"] == RunCounts(3, 1, 2)
    assert found.remarks == [
        f"`{tmp_path / 'run'}`: its manifest tells of 12 questions with an answer or an error, and its files hold "
        "8 answers and 3 errors: somebody changed them. What the files hold counts."
    ]


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (lambda path: None, "There is no file or run folder"),
        (lambda path: path.mkdir(), "holds no answers"),
        (
            lambda path: (path.mkdir(), (path / "manifest.json").write_text("{}")),
            "is no run: its `manifest.json` is of another kind",
        ),
        (lambda path: path.write_text("", encoding="utf-8"), "holds no record: it is empty"),
        (lambda path: path.write_text("{}\n", encoding="utf-8"), "lines that are not records"),
    ],
)
def test_what_is_no_run_is_refused(tmp_path: Path, make: object, wanted: str) -> None:
    path = tmp_path / "place"
    assert callable(make)
    make(path)
    with pytest.raises(InputError, match=wanted):
        read_runs([path])

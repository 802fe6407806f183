"""What commit 9c300d48 left behind is opened, continued and exported without loss; its README says how it was made."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support import made_before
from tests.support.made_before import (
    DRAFTER,
    PROVIDERS,
    TASKS,
    Continued,
    Seen,
    Served,
    Work,
    csv_rows,
    files_of,
    holds_all,
    json_lines,
    raw_rows,
    run,
)

COMMIT = "9c300d48"
made, served = made_before.made, made_before.served
WORKSPACES = ("jury-en", "jury-de")


@pytest.fixture(scope="module")
def found(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """What the server has before anybody does anything, with its decisions and its history."""
    out = tmp_path_factory.mktemp("found")
    seen = made_before.found_at_first(served, out)
    served.run("exports", "history", str(out / "history.csv"))
    return seen._replace(files={**seen.files, "history.csv": (out / "history.csv").read_bytes()})


@pytest.fixture(scope="module")
def continued(served: Served, found: Seen) -> Continued:
    """Set up again, and the half-done push finished, twice."""
    return made_before.set_up_and_pushed_twice(served)


@pytest.fixture(scope="module")
def work(served: Served, continued: Continued, tmp_path_factory: pytest.TempPathFactory) -> Work:
    """Ben submits their draft, and everything of the English campaign that he has not answered."""
    theirs = {each["record_uuid"] for each in json_lines(served.folder / "campaign" / "records.jsonl")}
    english = {
        name: {unit: record for unit, record in records.items() if unit.partition(":")[0] in theirs}
        for name, records in continued.twice.items()
        if name.startswith("jury-en/")
    }
    submitted = served.submit_the_rest(DRAFTER, english)
    return Work(submitted, served.responses(), made_before.exported(served, tmp_path_factory.mktemp("work")))


@pytest.mark.server
def test_the_home_is_served_with_every_answer_draft_and_discard(served: Served, found: Seen) -> None:
    made_before.check_served_as_it_was(served, found)


@pytest.mark.server
def test_its_exports_marks_controls_decisions_and_history_have_the_same_bytes(served: Served, found: Seen) -> None:
    kinds = {"evidence.jsonl", "controls.csv", "provenance.csv", "decisions.csv", "scores.csv", "history.csv"}
    assert kinds <= {Path(name).name for name in found.files}
    assert len(found.files) == 18
    assert json_lines(served.folder / "export" / "evidence.jsonl")
    made_before.check_same_bytes(served.folder, found.files)


@pytest.mark.server
def test_an_annotator_logs_in_with_their_old_password_and_finds_their_draft(served: Served, found: Seen) -> None:
    made_before.check_draft_is_found(served, found)


@pytest.mark.server
def test_practice_replies_and_controls_are_as_they_were(served: Served, found: Seen) -> None:
    shown = [line.split() for line in served.run("annotation", "practice", "show").stdout.splitlines()]
    opened = {(row[1], row[2]): " ".join(row[-2:]) for row in shown if row[:1] == ["generation"]}
    assert opened["en", "ben"] == "the lead"
    assert opened["en", "anna"] == "1 yes"
    assert "0 questions without a reply, 1 with one" in served.run("annotation", "reply").output
    status = served.run("annotation", "status").stdout
    assert "anna              2  80% [38, 96]  60% [23, 88]" in status


@pytest.mark.server
def test_set_up_again_only_the_wording_changes_and_in_place(found: Seen, continued: Continued) -> None:
    assert made_before.without_wording(continued.set_up.datasets) == made_before.without_wording(found.datasets)
    assert continued.set_up.responses == found.responses


@pytest.mark.server
def test_the_rest_of_the_records_goes_in_and_nothing_goes_in_twice(served: Served, continued: Continued) -> None:
    units = made_before.units_of(json_lines(served.folder / "campaign" / "records.jsonl"))
    for task in TASKS:
        there = {
            unit
            for name, records in continued.once.items()
            if name.partition("/")[0] in WORKSPACES and "/practice-" not in name and f"-{task}-" in name
            for unit in records
        }
        assert set(units[task]) <= there
        assert len(there) == len(units[task]) + (2 if task == "generation" else 0)  # the controls
    assert continued.twice == continued.once


@pytest.mark.server
def test_the_finished_research_run_is_there_already_when_it_is_pushed(served: Served, continued: Continued) -> None:
    rows = [line.split() for line in served.run("annotation", "push", "../runs/burns").stdout.splitlines()]
    counts = [row[-5:] for row in rows if row[:1] and row[0] in TASKS]
    assert sum(int(unchanged) for _, unchanged, *_ in counts) > 0
    assert {count for new, _, *rest in counts for count in (new, *rest)} == {"0"}


@pytest.mark.server
def test_old_answers_stay_as_they_were_and_old_rows_have_the_same_bytes(found: Seen, work: Work) -> None:
    made_before.check_old_answers_stay(found, work)


@pytest.mark.server
def test_new_answers_come_out_beside_the_old_ones(found: Seen, work: Work) -> None:
    made_before.check_new_answers_come_out(found, work)


@pytest.mark.server
def test_an_export_of_the_moment_of_the_old_one_has_its_bytes_after_new_answers(
    served: Served, found: Seen, work: Work, tmp_path: Path
) -> None:
    moment = json.loads((served.folder / "export" / "manifest.json").read_text(encoding="utf-8"))["started"]
    served.run("exports", "csv", str(tmp_path / "past"), "--as-of", moment)
    for task in TASKS:
        assert (tmp_path / "past" / f"{task}.csv").read_bytes() == found.files[f"export/{task}.csv"]


@pytest.mark.server
def test_an_old_export_is_brought_up_to_date(served: Served, work: Work, tmp_path: Path) -> None:
    shutil.copytree(served.folder / "export", tmp_path / "export")
    served.run("exports", "csv", str(tmp_path / "export"), "--update")
    for task in TASKS:
        assert (tmp_path / "export" / f"{task}.csv").read_bytes() == work.files[f"export/{task}.csv"]


@pytest.mark.server
def test_status_counts_the_old_and_the_new_answers(served: Served, work: Work) -> None:
    made_before.check_status_counts(served, work, WORKSPACES)


@pytest.mark.server
def test_the_study_goes_on_with_its_second_month(served: Served, found: Seen) -> None:
    first = files_of(served.folder / "study" / "months" / "2026-09")
    waiting = {name: records for name, records in served.records().items() if name.startswith("monthly/2026-10-")}
    assert sum(len(records) for records in waiting.values()) == 6
    for name in ("anna", "ben"):
        served.submit_the_rest(name, waiting)
    words = ("study", "run", "--month", "2026-10")
    assert "2 months finished" in served.run(*words, within="study").output
    assert files_of(served.folder / "study" / "months" / "2026-09") == first
    trend = served.run("study", "trend", within="study").output
    assert "2026-09" in trend
    assert "2026-10" in trend


@pytest.mark.server
def test_the_backup_becomes_a_home_with_the_same_answers(made: Path) -> None:
    pytest.importorskip("argilla_server", reason="the `server` extra is not installed")
    made_before.check_backup_becomes_a_home()


def test_the_run_goes_on_with_the_missing_answers_under_its_own_prompts_and_asks_nobody_again(made: Path) -> None:
    before = files_of(Path("answers"))
    providers = ("--providers", ",".join(PROVIDERS))
    run("pipeline", "ask", "narratives.csv", "--out", "answers", "--replay", "payloads", *providers)
    after = files_of(Path("answers"))
    assert after.keys() == before.keys()
    of_answers = {f"{provider}.{kind}" for provider in ("claude", "grok") for kind in ("csv", "index.jsonl")}
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {*of_answers, "citations.jsonl", "errors.jsonl", "manifest.json"}
    assert (before["errors.jsonl"].count(b"\n"), after["errors.jsonl"]) == (2, b"")
    for provider in ("claude", "grok"):
        assert set(raw_rows(before[f"{provider}.csv"])) < set(raw_rows(after[f"{provider}.csv"]))
    manifests = [json.loads(files["manifest.json"]) for files in (before, after)]
    for name in ("run_id", "prompts", "narratives"):
        assert manifests[0][name] == manifests[1][name]
    run("pipeline", "check", *(f"answers/{provider}.csv" for provider in PROVIDERS))


def test_the_run_of_two_arms_goes_on_in_its_compressed_files(made: Path) -> None:
    before = [json.loads(line) for line in Path("armed/citations.jsonl").read_text(encoding="utf-8").splitlines()]
    arms = ("--arm", "neutral:arms/neutral.toml", "--arm", "leading:arms/leading.toml")
    options = ("--providers", "claude,gemini", "--max-rows", "1", "--compress")
    run("pipeline", "ask", "narratives.csv", "--out", "armed", "--replay", "payloads", *arms, *options)
    assert Path("armed/errors.jsonl").read_bytes() == b""
    run("pipeline", "check", "armed/claude.csv.zst", "armed/gemini.csv.zst")
    after = json_lines(Path("armed/citations.jsonl"))
    assert len(after) > len(before)
    assert all(each in after for each in before)


@pytest.mark.parametrize("folder", ["answers", "armed"])
def test_stored_bodies_are_read_as_before(made: Path, folder: str) -> None:
    before = files_of(Path(folder))
    run("pipeline", "reparse", folder)
    assert files_of(Path(folder)) == before


def test_its_records_are_made_again_from_the_store_without_the_web(made: Path) -> None:
    run("pipeline", "sources", "answers", "--out", "again.jsonl", "--offline")
    old = json_lines(Path("records.jsonl"))
    assert any(source["state"] == "read" for each in old for source in each["sources"])
    assert any(chunk["origin"] == "page" for each in old for chunk in each["chunks"])
    assert holds_all(json_lines(Path("again.jsonl")), old)


def test_the_report_is_held_against_the_store_again(made: Path) -> None:
    before = json.loads(Path("verdicts.json").read_text(encoding="utf-8"))
    run("pipeline", "verify", "report.md", "--offline", "--out", "again.json")
    after = json.loads(Path("again.json").read_text(encoding="utf-8"))
    kept = ("text", "citations", "line", "ids")
    assert [[each[name] for name in kept] for each in after["sentences"]] == [
        [each[name] for name in kept] for each in before["sentences"]
    ]
    assert [each["verdict"] for each in before["sentences"]].count("supported") == 1
    assert after["sentences"][0]["verdict"] == before["sentences"][0]["verdict"] == "supported"


def test_the_baseline_judges_the_old_records_as_before_or_leaves_out_what_it_cannot_tell(made: Path) -> None:
    made_before.check_judged_as_before("p_yes")


def test_agreement_of_the_old_export_has_the_same_figures(made: Path) -> None:
    run("exports", "agreement", "export", "--out", "again", "--resamples", "200", "--judge", "judgements.jsonl")
    old, new = (csv_rows(Path(name, "labels.csv").read_bytes()) for name in ("figures", "again"))
    assert any(row["krippendorff_alpha"] for row in old)
    assert holds_all(new, old)


def test_results_of_the_old_export_have_the_same_figures(made: Path) -> None:
    run("exports", "results", "export", "--runs", "answers", "--out", "again")
    for name in ("results.csv", "findings.csv"):
        old, new = (csv_rows(Path(folder, name).read_bytes()) for folder in ("results", "again"))
        assert old
        assert holds_all(new, old)


def test_the_old_records_plan_the_same_sample(made: Path) -> None:
    run("annotation", "plan", "records.jsonl", "--out", "again", "--overlap", "2")
    assert Path("again/sample.csv").read_bytes() == Path("plan/sample.csv").read_bytes()


def test_a_dataset_is_made_of_the_old_export_and_its_decisions(made: Path) -> None:
    pytest.importorskip("datasets", reason="the libraries for datasets are not installed")
    run("exports", "dataset", "dataset", "--from", "export_extended", "--decisions", "decisions.csv")
    assert {path.stem for path in Path("dataset", "parquet").iterdir()} >= set(TASKS)


def test_the_disagreements_of_the_old_export_are_listed(made: Path) -> None:
    run("exports", "adjudicate", "list", "export_extended", "--out", "disagreements.csv")
    assert raw_rows(Path("disagreements.csv").read_bytes())


# Research without a model, as that commit did it. A finished run opens as it is. One that was stopped goes on, or is
# refused in one sentence that says what to do, and then keeps every byte.


def test_the_finished_research_run_is_listed_shown_verified_and_audited_again(made: Path) -> None:
    verdicts = made_before.check_research_run_is_open("burns", "Butter or cool water on a burn")
    assert verdicts == {"supported", "cannot_tell"}  # the passage that shows a disagreement has a date of its own


def test_the_finished_research_run_is_a_judge_and_a_source_of_results_for_the_old_export(made: Path) -> None:
    words = ("--resamples", "200", "--judge", "runs/burns/judgements.jsonl")
    run("exports", "agreement", "export", "--out", "judged", *words)
    assert "citejury-verifier" in Path("judged/agreement.json").read_text(encoding="utf-8")


def test_facts_reversed_in_the_old_report_are_found(made: Path) -> None:
    facts = {"twenty minutes": "two minutes", "cool and not icy": "icy and not cool", "never put": "put"}
    made_before.check_facts_reversed_are_found("burns", facts)


def test_stopped_research_runs_are_listed_where_they_were_stopped(made: Path) -> None:
    rows = [line.split() for line in run("pipeline", "runs", "list").stdout.splitlines()]
    states = {row[0]: (row[1], row[2]) for row in rows}
    assert states["stopped-after-plan"] == ("unfinished", "plan")
    assert states["stopped-after-extract"] == ("unfinished", "extract")
    assert states["burns"] == ("finished", "cache")
    for run_id in ("stopped-after-plan", "stopped-after-extract"):
        assert "unfinished" in run("pipeline", "runs", "show", run_id).stdout


def refused_untouched(run_id: str, *words: str) -> str:
    """The one line that a resumed research run is refused with; a file of a run that has changed fails the test."""
    before = files_of(Path("runs"))
    refused = run("pipeline", "research", "--run-id", run_id, *words, code=1)
    (line,) = refused.stderr.strip().splitlines()
    assert line.startswith("Error: ")
    assert files_of(Path("runs")) == before
    return line


@pytest.mark.parametrize(
    ("run_id", "told"),
    [("stopped-after-plan", "it is a reading list"), ("stopped-after-extract", "An earlier version")],
)
def test_a_stopped_research_run_goes_on_to_its_report(made: Path, run_id: str, told: str) -> None:
    journal = Path("runs", run_id, ".state", "journal.jsonl")
    entries: list[dict[str, Any]] = json_lines(journal)
    entries[0]["setup"]["documents"] = str(made / "library")  # which lies elsewhere now
    made_before.write_json_lines(journal, entries)
    done = run("pipeline", "research", "--run-id", run_id)
    assert json_lines(journal)[: len(entries)] == entries
    rows = [line.split() for line in run("pipeline", "runs", "list").stdout.splitlines()]
    assert [run_id, "finished"] in [row[:2] for row in rows]
    assert "supported" in made_before.check_research_run_is_open(run_id, entries[0]["setup"]["topic"])
    assert json_lines(Path("runs", run_id, "records.jsonl"))[0]["chunks"]
    assert told in Path("runs", run_id, "final", "report.md").read_text(encoding="utf-8")
    assert ("under another `--run-id`" in done.stderr) is (run_id == "stopped-after-extract")


@pytest.mark.parametrize("run_id", ["stopped-after-plan", "stopped-after-extract"])
def test_a_stopped_research_run_whose_documents_are_gone_says_so_and_keeps_every_byte(made: Path, run_id: str) -> None:
    line = refused_untouched(run_id)
    assert "There is no folder" in line
    assert "Name the one that holds the documents" in line


def test_a_stopped_research_run_under_another_topic_is_refused_and_keeps_every_byte(made: Path) -> None:
    (made / "library").rename(made / "elsewhere")
    line = refused_untouched("stopped-after-plan", "Why do leaves fall?", "--documents", str(made / "elsewhere"))
    assert "was begun with" in line

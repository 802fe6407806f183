import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from exports.cli import main
from pipeline.core.errors import InputError
from pipeline.models.structured import Spent
from pipeline.research.artefacts import (
    CitationEntry,
    Clarify,
    PlanDetails,
    PlanFile,
    RunFolder,
    StageDetails,
    StageEvent,
    VerifyResult,
)
from pipeline.research.contracts import Citation, ClaimMade, Metrics, Reference, Report, contract_json, put_trace
from pipeline.research.journal import JOURNAL, Journal
from pipeline.research.values import Stage
from pipeline.sources.store import StoredRun, open_store

NOON = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
URL = "https://a.example/"
REPORT = Report(
    topic="太陽光",
    outline=("What",),
    sections=("## What\n\nIt shines (C001)",),
    citations=(Citation(claim_id="c1", urls=(URL,)),),
    references=(Reference(n=1, url=URL, title="A"),),
    stop_reason="cost",
)
METRICS = Metrics(
    duration_s=90, tokens_in=1200, tokens_out=300, cost_est=0.5, sources_count=1, domain_diversity=1, cache_hits=2,
    cache_misses=3, stop_reason="cost",
)  # fmt: skip
VERIFIED = VerifyResult(
    stage="audit", status="completed", verified_claims_count=4, single_source_claims_count=3, conflicts_count=1,
    total_paragraphs=2, paragraph_without_citation_count=0, paragraph_end_citation_passed=True,
    paragraphs_jsonl_cite_ids_passed=True, citations_found=1, passed=True,
)  # fmt: skip


def log(folder: RunFolder, stage: Stage, ended: str = "", error: str | None = None) -> None:
    """Let a stage start, and end as `ended`, if it does."""
    details = StageDetails(success=ended == "completed", error=error)
    event = {"timestamp": NOON, "run_id": folder.run_id, "stage": stage}
    for status, told in (("started", StageDetails()), (ended, details)) if ended else (("started", StageDetails()),):
        folder.append_log(StageEvent.model_validate({**event, "status": status, "details": told}))


def finished_run(runs_dir: Path, run_id: str = "sun_1") -> RunFolder:
    folder = RunFolder(runs_dir / run_id)
    details = PlanDetails(queries=("sun",), sources=("web",), estimated_sources=50, depth="brief")
    folder.write_plan(PlanFile(workers=5, depth="brief", budget=10, lang="ja", plan=details))
    log(folder, "cache", "completed")
    folder.write_report("# 太陽光\n", REPORT)
    folder.write_citations(
        [CitationEntry(cid="C001", url=URL, title="A", locator=URL, fetched_at=NOON, quote_hash=None, local_path=None)]
    )
    folder.write_verify(VERIFIED)
    with open_store(runs_dir / "store.db") as store:
        store.put_run(
            StoredRun(run_id, "太陽光", NOON.isoformat(), "finished", "# 太陽光\n", {}, contract_json(METRICS))
        )
        put_trace(store, run_id, ClaimMade(claim_id="c1", confidence=1, sources_count=1))
    return folder


def runs(*words: str, runs_dir: Path, answer: str | None = None) -> Result:
    given = ["--run-id", *words] if words and not words[0].startswith("--") else words
    words = (*given, "--list", "--runs-dir", str(runs_dir))
    return CliRunner().invoke(main, ["pipeline", "research", *words], input=answer)


def row_of(run_id: str, listed: Result) -> list[str]:
    assert listed.exit_code == 0, listed.output
    return next(line.split() for line in listed.stdout.splitlines() if line.startswith(run_id))


def test_a_finished_run_is_listed_with_what_it_came_to(tmp_path: Path) -> None:
    finished_run(tmp_path)
    for words in ((), ("sun_1",)):
        told = runs(*words, runs_dir=tmp_path)
        assert row_of("sun_1", told) == ["sun_1", "finished", "cache", "1", "$0.50", "太陽光"]
        assert f"citejury annotation push {tmp_path / 'sun_1'}" in told.stderr


@pytest.mark.parametrize(
    ("state", "stage"),
    [
        *(("unfinished", "fetch"), ("failed", "plan"), ("clarification needed", "intake"), ("damaged", "")),
        ("audit failed", "cache"),
    ],
)
def test_a_run_that_did_not_come_to_its_end_says_how_far_it_is(tmp_path: Path, state: str, stage: str) -> None:
    folder = RunFolder(tmp_path / "half")
    if state == "unfinished":
        Journal(folder.path).keep_setup({"topic": "太陽光"}, NOON.isoformat())
        log(folder, "harvest", "completed")
        log(folder, "fetch")
    if state == "failed":
        log(folder, "plan", "failed", "the model did not answer")
    if state == "clarification needed":
        log(folder, "intake")
        folder.write_clarify(Clarify(status="pending", questions=("Which sun?",), answers=(), failure_reason=None))
    if state == "damaged":
        folder.log_file.parent.mkdir(parents=True)
        folder.log_file.write_text("nonsense\n\n", encoding="utf-8")
    if state == "audit failed":
        finished_run(tmp_path, "half").write_verify(VERIFIED.model_copy(update={"passed": False}))
    told = runs("half", runs_dir=tmp_path)
    assert f"half  {state} " in told.stdout
    assert f" {stage} " in told.stdout
    assert ("太陽光" in told.stdout) == (state in ("unfinished", "audit failed"))
    assert ("the model did not answer" in told.stderr) == (state == "failed")
    assert (f"pipeline research --run-id half --runs-dir {tmp_path}" in told.stderr) == (
        state not in ("damaged", "audit failed")
    )


def test_a_topic_cannot_write_to_the_terminal_and_other_folders_and_links_are_no_runs(tmp_path: Path) -> None:
    finished_run(tmp_path).write_report("", REPORT.model_copy(update={"topic": "x\x1b[2J\nrow"}))
    listed = runs(runs_dir=tmp_path).stdout
    assert "x[2J row" in listed
    assert "\x1b" not in listed
    finished_run(tmp_path).write_report("", REPORT.model_copy(update={"topic": "gpj.\u202eexe"}))
    assert "gpj.�exe" in runs(runs_dir=tmp_path).stdout
    runs_dir = tmp_path / "runs"
    outside = finished_run(tmp_path / "elsewhere").path
    (runs_dir / "answers").mkdir(parents=True)
    (runs_dir / "link").symlink_to(outside)
    assert runs(runs_dir=runs_dir).stdout == ""
    for run_id in ("answers", "link", "../elsewhere/sun_1", "none"):
        for words in ([run_id], [run_id, "--delete", "--yes"]):
            result = runs(*words, runs_dir=runs_dir)
            assert result.exit_code == 1, result.output
            assert result.stderr
    assert (outside / "final" / "report.md").is_file()
    assert (runs_dir / "answers").is_dir()


def test_deleting_takes_folder_and_rows_and_nothing_behind_a_link(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.tex").write_text("mine", encoding="utf-8")
    runs_dir = tmp_path / "runs"
    folder = finished_run(runs_dir)
    finished_run(runs_dir, "sun_2")
    (folder.path / "link").symlink_to(precious)
    (folder.path / "final" / "file").symlink_to(precious / "thesis.tex")
    assert runs("sun_1", "--delete", runs_dir=runs_dir, answer="n\n").exit_code == 1
    nobody = runs("sun_1", "--delete", runs_dir=runs_dir, answer="")
    assert nobody.exit_code == 1
    assert "Aborted!" not in nobody.stderr
    assert "\nError: Nobody is here to answer." in nobody.stderr
    assert folder.report_file.is_file()
    assert runs("sun_1", "--delete", runs_dir=runs_dir, answer="y\n").exit_code == 0
    assert sorted(path.name for path in runs_dir.iterdir() if path.is_dir()) == ["sun_2"]
    assert (precious / "thesis.tex").read_text(encoding="utf-8") == "mine"
    with open_store(runs_dir / "store.db", read_only=True) as store:
        assert [run.id for run in store.runs()] == ["sun_2"]
        assert (len(store.events("sun_1")), len(store.events("sun_2"))) == (0, 1)


def test_deleting_goes_on_where_a_kill_ended_it_and_where_the_folder_is_gone(tmp_path: Path) -> None:
    finished_run(tmp_path).path.rename(tmp_path.parent / f"{tmp_path.name}-moved")
    assert "folder gone" in runs("sun_1", runs_dir=tmp_path).stdout
    assert runs("sun_1", "--delete", "--yes", runs_dir=tmp_path).exit_code == 0
    assert runs(runs_dir=tmp_path).stdout == ""
    for words in (("--yes",), ()):  # agreed to before: nobody is asked again
        finished_run(tmp_path).path.rename(tmp_path / ".sun_1.deleted")
        with open_store(tmp_path / "store.db") as store:
            store.delete_run("sun_1")
        done = runs("sun_1", "--delete", *words, runs_dir=tmp_path, answer="")
        assert done.exit_code == 0, done.output
        assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []
    assert runs("sun_1", "--delete", "--yes", runs_dir=tmp_path).exit_code == 1


MOST = Spent(1, 900, 4096, 0.5, 0)
TOOK = Spent(1, 800, 100, 0.09, 0)


def test_a_call_counts_as_what_it_took_and_one_that_was_cut_off_as_what_it_could_take(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    assert [journal.begin(MOST) for _ in range(3)] == [1, 2, 3]
    journal.settle(2, TOOK)
    journal.keep_answer("key", ["payload"])
    journal.settle(3, Spent())
    again = Journal(tmp_path)
    assert (journal.settled, journal.cut_off) == (again.settled, again.cut_off) == (TOOK, MOST)
    assert (again.answers, again.unmetered, again.begin(MOST)) == ({"key": ["payload"]}, [], 4)


def test_a_kill_before_the_answer_is_kept_leaves_what_it_took_and_a_torn_end_a_cut_call(tmp_path: Path) -> None:
    journal, path = Journal(tmp_path), tmp_path / JOURNAL
    number = journal.begin(MOST)
    before = path.stat().st_size
    journal.settle(number, TOOK)
    with open(path, "a", encoding="utf-8") as file:
        file.write('{"entry": "answer", "key": "key", "payl')
    again = Journal(tmp_path)
    assert (again.settled, again.cut_off, again.answers) == (TOOK, Spent(), {})
    with open(path, "ab") as file:
        file.truncate(before + 20)
    again = Journal(tmp_path)
    assert (again.settled, again.cut_off) == (Spent(), MOST)


def test_answers_of_earlier_versions_are_counted_and_a_settled_call_nobody_began_is_no_journal(tmp_path: Path) -> None:
    path = tmp_path / JOURNAL
    path.parent.mkdir()
    path.write_text(json.dumps({"entry": "answer", "key": "key", "payloads": ["a", "b"], "seconds": 1.0}) + "\n")
    journal = Journal(tmp_path)
    assert (journal.answers, journal.unmetered, journal.settled) == ({"key": ["a", "b"]}, ["a", "b"], Spent())
    path.write_text(path.read_text() + json.dumps({"entry": "settled", "call": 7, "took": TOOK, "seconds": 0}) + "\n")
    with pytest.raises(InputError, match="Line 2"):
        Journal(tmp_path)


FULL_DISK = """
import resource, signal, sys
from pathlib import Path

from pipeline.models.structured import Spent
from pipeline.research.journal import Journal

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
journal = Journal(Path(sys.argv[1]))
journal.keep_setup({}, "now")
journal.keep_answer("first", ["paid"])
room = journal.path.stat().st_size + 30
resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
try:
    journal.keep_answer("second", ["paid" * 100])
except OSError:
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    journal.settle(journal.begin(Spent(1)), Spent(1))
"""


def test_a_full_disk_leaves_no_half_entry_before_those_of_other_calls(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", FULL_DISK, str(tmp_path)], check=True)
    again = Journal(tmp_path)
    assert (set(again.answers), again.calls, again.cut_off) == ({"first"}, 1, Spent())

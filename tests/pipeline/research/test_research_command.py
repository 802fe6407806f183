import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from exports.cli import main
from pipeline.research.artefacts import RunFolder
from pipeline.research.options import Limits, named_options
from tests.support.places import ROOT
from tests.support.provider_server import Behaviour, Received
from tests.support.research_process import FACTS, TOPIC, HangsAt, answers, page_of_facts
from tests.support.scripted_model import ScriptedModel, prompts_of, refuses


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Result]]:
    """A folder with documents about heat pumps and a finished run `x`, and what the command printed."""
    folder = tmp_path_factory.mktemp("research")
    (folder / "papers").mkdir()
    for host, facts in FACTS.items():
        (folder / "papers" / f"{host}.html").write_text(page_of_facts(*facts), encoding="utf-8")
    (folder / "papers" / "empty.txt").write_text(" \n", encoding="utf-8")
    (folder / "papers" / "picture.png").write_bytes(b"PNG")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder, command(TOPIC, "--run-id", "x", "--documents", "papers", "--model", "extractive")


@pytest.fixture
def place(finished: tuple[Path, Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that folder, in which the command is given; the run's own documents are where they were."""
    shutil.copytree(finished[0], tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(*words: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, ["pipeline", "research", *words], input=stdin)


def from_store(*words: str, stdin: str | None = None) -> Result:
    return command(*words, "--search", "local", "--model", "extractive", stdin=stdin)


def test_a_topic_gives_a_report_files_that_cannot_be_read_are_named_and_the_same_command_gives_the_same_one(
    finished: tuple[Path, Result], place: Path
) -> None:
    done = finished[1]
    assert done.exit_code == 0, done.output
    assert done.stdout == "runs/x/final/report.md\n"
    folder = RunFolder(place / "runs" / "x")
    assert "(C0" in folder.read_report_md()
    plan = json.loads((folder.path / "logs" / "plan.json").read_bytes())
    assert [plan[name] for name in ("workers", "depth", "budget", "lang")] == [5, "medium", 10, "en"]
    for said in ("write: ", "empty.txt", "1 file is neither PDF nor HTML nor text, and is left out."):
        assert said in done.stderr
    assert "Next: citejury annotation push runs/x\n" in done.stderr
    assert CliRunner().invoke(main, ["pipeline", "research", "--list", "--run-id", "x"]).exit_code == 0
    log = folder.read_log()
    again = command("--run-id", "x")
    assert (again.exit_code, again.stdout, folder.read_log()) == (0, done.stdout, log)


def test_an_unclear_topic_ends_with_2_where_nobody_may_be_asked_and_with_1_in_silence(place: Path) -> None:
    for words in ([], ["ai"]):
        done = command(*words, "--non-interactive", "--run-id", f"asked{len(words)}")
        assert (done.exit_code, len(done.stdout.splitlines())) == (2, 3)
    held = RunFolder(place / "runs" / "asked1").read_clarify()
    assert held is not None
    assert (held.status, list(held.questions)) == ("pending", done.stdout.splitlines())
    done = command("ai", "--run-id", "silent", stdin="\n")
    assert done.exit_code == 1
    assert "\nError: No clarification provided" in done.stderr
    assert json.loads((place / "runs" / "silent" / "clarify.json").read_bytes())["failure_reason"]
    done = from_store("--run-id", "told", stdin="heat pumps and their running cost\n\ncomprehensive\n")
    assert done.exit_code == 0, done.output
    report = RunFolder(place / "runs" / "told").read_report()
    assert report is not None
    assert report.topic == "heat pumps and their running cost, comprehensive"


def test_a_report_that_says_nothing_is_not_for_the_jury_and_documents_are_read_once(place: Path) -> None:
    done = from_store(TOPIC, "--run-id", "empty", "--max-seconds", "0")
    assert (done.exit_code, done.stdout) == (3, "runs/empty/final/report.md\n")
    for said in (
        "0 passages from 0 sources",
        "Next: citejury pipeline research --run-id empty --list\n",
        "\naudit: nothing to check\n",
        "No page that was read says anything on it that could be shown; try other pages, or ask in other words.",
    ):
        assert said in done.stderr
    for unsaid in ("push", "did not pass", "problem"):
        assert unsaid not in done.stderr
    (place / "own").mkdir()
    shutil.copy(place / "papers" / "cost.test.html", place / "own")
    words = (TOPIC, "--run-id", "own", "--documents", "own", "--model", "extractive")
    done = command(*words)
    (place / "own" / "cost.test.html").unlink()
    for again in (words, ("--run-id", "own")):
        assert command(*again).stdout == done.stdout == "runs/own/final/report.md\n"


def test_what_cannot_be_done_is_said_in_a_line_before_any_question(place: Path) -> None:
    (place / "pictures").mkdir()
    (place / "pictures" / "pump.png").write_bytes(b"\x89PNG")
    (place / "empty").mkdir()
    documents = ("ai", "--model", "extractive", "--documents")
    no_language = "The language '{}' is none of those that pages are told apart by. Name one by its"
    for words, said in (
        (("x" * 513,), "more than the 512"),
        ((TOPIC, "--run-id", "../x"), "cannot be the id of a run"),
        ((TOPIC, "--search", "bing", "--model", "extractive"), "retired"),
        ((TOPIC, "--budget", "1000"), "BUDGET_EXCEEDED"),
        ((TOPIC, "--offline", "--no-cache"), "leave one out"),
        ((TOPIC,), "OPENROUTER_API_KEY`. With `--model extractive` neither a server nor a key is needed."),
        (("--run-id", "nothing", "--verify-only"), "There is no run"),
        ((TOPIC, "--runs-dir", "/dev/null/runs"), "is not a folder, and none can be made there; name another one."),
        (("--run-id", "x", "--depth", "deep"), "begun with depth 'medium' and cannot go on with 'deep'"),
        ((*documents, "missing"), "There is no folder"),
        ((*documents, "empty"), "holds no document that can be read. PDF"),
        ((*documents, "pictures"), "holds no document that can be read, of 1 file. PDF"),
        (("ai", "--lang", "english"), no_language.format("english")),
        (("ai", "--lang", "xx"), no_language.format("xx")),
    ):
        done = command(*words, stdin="heat pumps\n")
        assert (done.exit_code, said in done.stderr, "?" in done.stderr) == (1, True, False), (words, done.stderr)
        assert done.stdout == ""
    assert not list((place / "runs").glob("ai*"))


def test_a_language_is_named_in_capitals_too_and_a_report_that_breaks_the_rules_ends_with_3(place: Path) -> None:
    assert named_options({"topic": "heat pumps", "lang": "DE"}, place, Limits()).lang == "de"
    journal = place / "runs" / "x" / ".state" / "journal.jsonl"
    journal.write_text(journal.read_text("utf-8").replace('"lang": ""', '"lang": "english"', 1), "utf-8")
    assert command("--run-id", "x", "--lang", "english").exit_code == 0
    assert command("--run-id", "x", "--verify-only").exit_code == 0
    drafts = place / "runs" / "x" / "drafts" / "paragraphs.jsonl"
    drafts.write_text(json.dumps({"text": "Heat pumps pump heat.", "cite_ids": []}) + "\n", encoding="utf-8")
    done = command("--run-id", "x", "--verify-only")
    assert done.exit_code == 3
    assert "cite_ids" in done.stdout
    assert '"passed": false' in (place / "runs" / "x" / "evidence" / "verify.json").read_text(encoding="utf-8")


def test_ctrl_c_waits_for_answers_under_way_and_says_how_to_go_on(place: Path) -> None:
    script = HangsAt(1)
    with ScriptedModel(script) as model:
        words = [TOPIC, "--run-id", "asked", "--search", "local", "--model", "m", "--base-url", model.url]
        call = [sys.executable, "-c", "from exports.cli import main; main()", "pipeline", "research", *words]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        with subprocess.Popen(call, cwd=place, stderr=subprocess.PIPE, text=True, env=environment) as process:
            assert script.hanging.wait(120)
            process.send_signal(signal.SIGINT)
            assert process.stderr is not None
            assert any(line.startswith("Stopping: ") for line in process.stderr)
            process.send_signal(signal.SIGINT)
            told = process.stderr.read()
        assert process.returncode == 130
        assert "Traceback" not in told
        assert "Next: citejury pipeline research --run-id asked goes on" in told
        last = RunFolder(place / "runs" / "asked").read_log()[-1]
        assert (last.stage, last.status) == ("plan", "failed")
        done = command("--run-id", "asked")
        assert done.exit_code == 0, done.output


def test_a_run_whose_model_is_away_says_how_it_goes_on_and_ends_without_it(place: Path) -> None:
    away = refuses("nobody is here", 401)

    def respond(received: Received) -> Behaviour:
        return away if prompts_of(received)[1].startswith("Write the paragraphs") else answers(received)

    with ScriptedModel(respond) as model:
        options = ("--run-id", "away", "--search", "local", "--model", "m", "--base-url", model.url)
        failed = command(TOPIC, *options)
        assert failed.exit_code == 1
        assert "`citejury pipeline research --run-id away` goes on" in failed.output
        calls = len(model.calls)
        done = command("--run-id", "away", "--max-tokens", "0")
        assert done.exit_code == 0, done.output
        assert len(model.calls) == calls
    report = (place / "runs" / "away" / "final" / "report.md").read_text(encoding="utf-8")
    assert FACTS["cost.test"][2] in report
    assert "tokens" in report

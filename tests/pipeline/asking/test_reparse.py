import csv
from pathlib import Path

import pytest
from click.testing import CliRunner

from exports.cli import main
from pipeline.asking.summary import Change, reparse_run
from pipeline.core.errors import InputError
from pipeline.csv.file import read_answers, write_answers
from tests.support.places import DATA
from tests.support.told_runs import replay_narratives


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of four answers from two providers, with an error."""
    stored = {
        "claude/N1": "claude_messages_de.json",
        "claude/N2": "claude_pause_turn_ja.json",
        "perplexity/N1": "perplexity_agent_ja.json",
        "perplexity/N2": "perplexity_sonar_think_de.json",
    }
    for name, payload in stored.items():
        path = tmp_path / "replay" / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(((DATA / "payloads") / payload).read_bytes())
    with open(tmp_path / "narratives.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("narrative_id", "prompt"), ("N1", "Eins"), ("N2", "Zwei"), ("N3", "Drei")])
    replay_narratives(tmp_path / "narratives.csv", tmp_path / "run", tmp_path / "replay")
    return tmp_path / "run"


def held(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in run.iterdir()}


def test_an_answer_read_by_older_rules_is_mended_and_told(run: Path) -> None:
    before = held(run)
    answers = list(read_answers(run / "claude.csv"))
    old = answers[0].model_copy(update={"citations": ("https://wrong.example/",), "domains": ("wrong.example",)})
    write_answers(run / "claude.csv", [old, *answers[1:]])
    changes: list[Change] = []
    assert reparse_run(run, {}, changes.append)[:3] == (4, 1, 0)
    assert "- https://wrong.example/" in str(changes[0])
    assert f"+ {answers[0].citations[0]}" in str(changes[0])
    assert held(run) == before
    assert (reparse_run(run, {}), held(run)) == ((4, 0, 0, False), before)  # nothing changed leaves every byte
    write_answers(run / "claude.csv", [answers[0].model_copy(update={"answer_text": "old"}), *answers[1:]])
    done = CliRunner().invoke(main, ["pipeline", "check", str(run), "--reparse"])
    assert done.exit_code == 0, done.output
    assert done.stdout == f"claude 'N1' ({answers[0].answer_id}): text changed\n"
    assert "4 answers, 1 changed" in done.stderr


def test_a_body_that_no_reader_reads_stays_as_it_is_and_a_folder_without_a_run_is_refused(run: Path) -> None:
    answers = list(read_answers(run / "claude.csv"))
    write_answers(run / "claude.csv", [answers[0].model_copy(update={"answer_raw_json": "{}"}), *answers[1:]])
    before = (run / "claude.csv").read_bytes()
    assert (reparse_run(run, {})[:3], (run / "claude.csv").read_bytes()) == ((4, 0, 1), before)
    with pytest.raises(InputError, match=r"holds no `manifest\.json`"):
        reparse_run(run.parent, {})

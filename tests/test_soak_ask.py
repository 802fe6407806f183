"""Fifty kills of `pipeline ask`, each at a random moment: nothing is lost, doubled or half-written."""

import csv
import random
import shutil
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from time import monotonic

import pytest

from pipeline.check import check_file
from pipeline.csv_v2 import keep_whole_answers, read_answers
from pipeline.run_folder import read_errors

PAYLOADS = Path(__file__).parent / "data" / "payloads"
STORED = {
    "openai": ("openai_responses_ja.json", "openai_chat_artefacts_de.json"),
    "anthropic": ("claude_messages_de.json", "claude_pause_turn_ja.json"),
    "perplexity": ("perplexity_agent_ja.json", "perplexity_sonar_think_de.json"),
}
PROVIDERS = ("openai", "claude", "perplexity")
NARRATIVES = 90
KILLS = 50
SEED = 20261121


@pytest.fixture
def questions(tmp_path: Path) -> tuple[Path, Path]:
    """Narratives of which every seventh id stands twice, and their payloads: a tenth missing, a tenth errors."""
    ids = [f"N{number - number % 7 // 6}" for number in range(NARRATIVES)]
    with open(tmp_path / "narratives.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("narrative_id", "prompt"), *((each, f"Text of {each}") for each in ids)])
    for folder, names in STORED.items():
        (tmp_path / "replay" / folder).mkdir(parents=True)
        seen: Counter[str] = Counter()
        for number, narrative_id in enumerate(ids):
            seen[narrative_id] += 1
            stem = narrative_id if seen[narrative_id] == 1 else f"{narrative_id}.{seen[narrative_id]}"
            body = (PAYLOADS / names[number % 2]).read_text(encoding="utf-8") if number % 10 != 3 else '{"error": "no"}'
            if number % 10 != 4:
                (tmp_path / "replay" / folder / f"{stem}.json").write_text(body, encoding="utf-8")
    return tmp_path / "narratives.csv", tmp_path / "replay"


def start(questions: tuple[Path, Path], out: Path) -> subprocess.Popen[bytes]:
    narratives, replay = questions
    command = [sys.executable, "-c", "from exports.cli import main; main()", "pipeline", "ask", str(narratives)]
    return subprocess.Popen(
        [*command, "--out", str(out), "--replay", str(replay)], cwd=Path(__file__).parents[1], stderr=subprocess.DEVNULL
    )


def kill_after(process: subprocess.Popen[bytes], seconds: float) -> None:
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=seconds)
    process.kill()
    process.wait()


def settled(out: Path) -> dict[str, str]:
    """The time of every whole answer by its id; a torn one at the end of a file is cut off."""
    whole = [path for path in sorted(out.glob("*.csv")) if keep_whole_answers(path)]
    return {each.answer_id: each.answer_timestamp for path in whole for each in read_answers(path)}


@pytest.mark.soak
def test_killed_at_any_moment_every_call_has_one_answer_or_one_error(
    questions: tuple[Path, Path], tmp_path: Path
) -> None:
    began = monotonic()
    assert start(questions, tmp_path / "whole").wait() == 0
    whole_run = monotonic() - began
    moments = random.Random(SEED)
    interrupted = 0
    for kill in range(KILLS):
        out = tmp_path / f"run{kill}"
        kill_after(start(questions, out), moments.uniform(0.1, 1.0) * whole_run)
        out.mkdir(exist_ok=True)
        before = settled(shutil.copytree(out, tmp_path / f"killed{kill}"))
        interrupted += 0 < len(before) < NARRATIVES * len(PROVIDERS) * 8 // 10
        assert start(questions, out).wait() == 0, kill
        after = settled(out)
        assert before.items() <= after.items(), kill
        assert len(after) == NARRATIVES * len(PROVIDERS) * 8 // 10, kill
        errors = Counter((error.provider, error.row, error.kind) for error in read_errors(out))
        wanted = {3: "bad_response", 4: "not_recorded"}
        assert errors == Counter(
            (provider, row, wanted[(row - 1) % 10])
            for provider in PROVIDERS
            for row in range(1, NARRATIVES + 1)
            if (row - 1) % 10 in wanted
        ), kill
        assert [violation for path in out.glob("*.csv") for violation in check_file(path)] == [], kill
        assert not [path for path in out.iterdir() if path.name.startswith(".")], kill
    assert interrupted, "no kill came in the middle of a run; the machine is too fast for this many narratives"

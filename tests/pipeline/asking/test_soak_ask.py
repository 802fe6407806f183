import csv
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from time import monotonic

import pytest

from pipeline.asking.index import read_index, sync_index
from pipeline.asking.run_folder import read_errors
from pipeline.csv.file import read_answers
from tests.support.csv_check import check_file
from tests.support.places import DATA, ROOT
from tests.support.provider_server import ProviderServer, Received, Status

PAYLOADS = DATA / "payloads"
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


def start(questions: tuple[Path, Path], out: Path, *options: str) -> subprocess.Popen[bytes]:
    narratives, replay = questions
    command = [sys.executable, "-c", "from exports.cli import main; main()", "pipeline", "ask", str(narratives)]
    command += [
        "--out",
        str(out),
        "--replay",
        str(replay),
        "--allow-missing",
        str(NARRATIVES * len(PROVIDERS)),
        *options,
    ]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)


def settled(out: Path) -> dict[str, str]:
    """The time of every whole answer by its id; a torn one at the end of a file is cut off."""
    whole = [path for path in sorted(out.glob("*.csv*")) if sync_index(path)]
    return {each.answer_id: each.answer_timestamp for path in whole for each in read_answers(path)}


@pytest.mark.soak
@pytest.mark.parametrize("options", [(), ("--compress",)], ids=["plain", "compressed"])
def test_killed_at_any_moment_every_call_has_one_answer_or_one_error(
    questions: tuple[Path, Path], tmp_path: Path, options: tuple[str, ...]
) -> None:
    began = monotonic()
    assert start(questions, tmp_path / "whole", *options).wait() == 0
    whole_run = monotonic() - began
    moments = random.Random(SEED)
    interrupted = 0
    for kill in range(KILLS):
        out = tmp_path / f"run{kill}"
        process = start(questions, out, *options)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=moments.uniform(0.1, 1.0) * whole_run)
        process.kill()
        process.wait()
        out.mkdir(exist_ok=True)
        before = settled(shutil.copytree(out, tmp_path / f"killed{kill}"))
        interrupted += 0 < len(before) < NARRATIVES * len(PROVIDERS) * 8 // 10
        assert start(questions, out, *options).wait() == 0, kill
        told = {line.answer_id for path in out.glob("*.csv*") for line in read_index(path)}
        after = settled(out)
        assert told == after.keys(), kill
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
        assert [violation for path in out.glob("*.csv*") for violation in check_file(path)] == [], kill
        assert not [path for path in out.iterdir() if path.name.startswith(".")], kill
    assert interrupted, "no kill came in the middle of a run; the machine is too fast for this many narratives"


LIVE = 40
LIVE_CONCURRENCY = 4


def start_live(folder: Path, out: Path, server: ProviderServer) -> subprocess.Popen[bytes]:
    urls = {"openai": server.base_url("openai"), "claude": server.base_url("claude")}
    keys = {"OPENAI_API_KEY": "planted-1", "ANTHROPIC_API_KEY": "planted-2"}
    command = [sys.executable, "-c", "from exports.cli import main; main()", "pipeline", "ask"]
    return subprocess.Popen(
        [*command, str(folder / "live.csv"), "--out", str(out), "--concurrency", str(LIVE_CONCURRENCY)],
        cwd=ROOT,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **keys, "CITEJURY_BASE_URLS": json.dumps(urls)},
    )


def answered_texts(out: Path) -> set[tuple[str, str]]:
    return {
        (path.stem, answer.narrative_prompt)
        for path in out.glob("*.csv")
        if sync_index(path)
        for answer in read_answers(path)
    }


def asked_text(call: Received) -> str:
    """The narrative that a request is about."""
    (text,) = set(re.findall(r"Unique text \d+\.", json.dumps(call.body)))
    return text


def kill_live_runs(folder: Path, kills: int) -> None:
    """Kill runs that ask a server, each at a random number of calls: pipeline/contracts/run_folder.md#resuming."""
    with open(folder / "live.csv", "w", encoding="utf-8", newline="") as file:
        rows = ((f"N{number}", f"Unique text {number:03}.") for number in range(LIVE))
        csv.writer(file).writerows([("narrative_id", "prompt"), *rows])
    moments = random.Random(SEED)
    for kill in range(kills):
        out = folder / f"live{kill}"
        with ProviderServer({"claude": [Status(400, {}, {"error": {"message": "no"}})] * 3}) as server:
            process = start_live(folder, out, server)
            wanted = moments.randint(1, 2 * LIVE - 1)
            with server.lock:
                assert server.lock.wait_for(lambda: len(server.calls) >= wanted, timeout=60), kill  # noqa: B023
            process.kill()
            process.wait()
            dead = shutil.copytree(out, folder / f"dead{kill}")
            before, answered = settled(dead), answered_texts(dead)
            failed = len(read_errors(out))
            first = len(server.calls)
            assert start_live(folder, out, server).wait() == 0, kill
            after = settled(out)
            errors = read_errors(out)
            assert before.items() <= after.items(), kill
            assert len(after) + len(errors) == 2 * LIVE, kill
            assert len({(error.provider, error.row) for error in errors}) == len(errors), kill
            # Of the calls before the kill only those that failed or were under way are put again.
            assert first - len(before) - failed <= 2 * LIVE_CONCURRENCY, kill
            again = [call for call in server.calls[first:] if (call.provider, asked_text(call)) in answered]
            assert again == [], kill
            # The server may count a request of the killed run only after its end.
            assert 0 <= len(server.calls) - first - (2 * LIVE - len(before)) <= 2 * LIVE_CONCURRENCY, kill
        assert [violation for path in out.glob("*.csv") for violation in check_file(path)] == [], kill


def test_killed_a_run_over_the_network_repeats_only_what_was_under_way(tmp_path: Path) -> None:
    kill_live_runs(tmp_path, 1)


@pytest.mark.soak
def test_killed_fifty_times_a_run_over_the_network_repeats_only_what_was_under_way(tmp_path: Path) -> None:
    kill_live_runs(tmp_path, KILLS)

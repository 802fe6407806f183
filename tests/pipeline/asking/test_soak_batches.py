import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from pipeline.asking.paid_replies import open_batches
from pipeline.asking.run_folder import read_manifest
from tests.support.batch_runs import (
    IN_BATCHES,
    body_by_narrative,
    environment,
    run_batches,
    table,
    write_narratives,
    write_payloads,
)
from tests.support.batch_servers import BatchServers
from tests.support.csv_check import check_file
from tests.support.places import ROOT
from tests.support.told_runs import replay_narratives

KILLS = 50
NARRATIVES = 30
# A start in its own process, which says when it begins: what is killed is work, and not the import of modules.
START = """
import os, sys
from pathlib import Path
from pipeline.asking.ask_live import ask_in_batches, select_providers
from pipeline.asking.batch_calls import BatchPolicy
from pipeline.asking.narratives import NarrativesCsv
from pipeline.core.schema import AskOptions
from pipeline.settings import read_settings
import pipeline.providers.http.client as client
client._trusted_certificates()
urls = read_settings().base_urls
chosen = select_providers(("openai", "claude", "gemini", "grok"), {}, AskOptions(), os.environ, urls)
questions = chosen.questions(NarrativesCsv(Path(sys.argv[1])))
print("begun", flush=True)
ask_in_batches(questions, Path(sys.argv[2]), chosen, policy=BatchPolicy(0.05, 0.3, 5), redirect_client=None)
"""


def killed_start(server: BatchServers, narratives: Path, out: Path, seconds: float) -> bool:
    """Start the run and kill it after so many seconds of work; whether it was still at work then."""
    env = {"PATH": "/usr/bin:/bin", **environment(server, *IN_BATCHES)}
    command = [sys.executable, "-c", START, str(narratives), str(out)]
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            return True
        return False


@pytest.mark.soak
def test_a_run_in_batches_that_is_killed_again_and_again_buys_nothing_twice_and_loses_nothing(tmp_path: Path) -> None:
    chance = random.Random(20261123)
    narratives, replayed = write_narratives(tmp_path, NARRATIVES), tmp_path / "replayed"
    replay_narratives(narratives, replayed, write_payloads(tmp_path / "payloads", NARRATIVES))
    kills = runs = 0
    with BatchServers(looks=1, page=7) as server:
        server.answer = body_by_narrative
        while kills < KILLS:
            out, runs = tmp_path / f"run{runs}", runs + 1
            server.accepted.clear()
            at_work = True
            while at_work and kills < KILLS:
                for provider in IN_BATCHES:
                    server.void[provider] = chance.random() < 0.3
                    server.cuts[provider] = chance.random() < 0.2
                at_work = killed_start(server, narratives, out, chance.uniform(0.0, 1.2))
                kills += at_work
            server.void.clear()
            server.cuts.clear()
            run_batches(server, narratives, out, *IN_BATCHES)
            assert_bought_once(server, out, replayed)


def assert_bought_once(server: BatchServers, out: Path, replayed: Path) -> None:
    """Every call was taken once, a paused turn twice, and the table is the one of the same bodies."""
    bought = Counter((provider, count) for (provider, _), count in server.accepted.items())
    paused = (NARRATIVES + 2) // 3
    assert bought == {
        **{(provider, 1): NARRATIVES for provider in IN_BATCHES if provider != "claude"},
        ("claude", 1): NARRATIVES - paused,
        ("claude", 2): paused,
    }
    manifest = read_manifest(out)
    assert (manifest.answers, manifest.errors, open_batches(out)) == (4 * NARRATIVES, {}, [])
    for provider in IN_BATCHES:
        assert table(out / f"{provider}.csv") == table(replayed / f"{provider}.csv")
        assert check_file(out / f"{provider}.csv") == []

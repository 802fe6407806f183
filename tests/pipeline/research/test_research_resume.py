"""A research run killed in each of its stages: nothing that was answered is asked again, and the report is the same."""

import multiprocessing
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from pipeline.research.artefacts import RunFolder
from pipeline.research.runs import STORE
from pipeline.research.values import Stage
from pipeline.sources.store import open_store
from tests.support.places import ROOT
from tests.support.research_process import HangsAt, Servers, options_in, research_until, run_here, running_servers

STAGES: tuple[Stage, ...] = get_args(Stage)
DAY = re.compile(rb"\d{4}-\d\d-\d\d")


@pytest.fixture
def servers() -> Iterator[Servers]:
    with running_servers() as started:
        yield started


@pytest.fixture(scope="module")
def context() -> Iterator[multiprocessing.context.ForkServerContext]:
    """Processes that begin with everything imported."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        forking = multiprocessing.get_context("forkserver")
        forking.set_forkserver_preload(["tests.support.research_process"])
        yield forking


def files_without_days(folder: Path) -> dict[str, bytes]:
    names = ("final/report.md", "final/report.json", "final/verification.md", "drafts/paragraphs.jsonl")
    return {name: DAY.sub(b"", (folder / name).read_bytes()) for name in names}


def test_a_run_that_is_killed_in_every_stage_asks_nothing_twice_and_writes_the_same_report(
    servers: Servers, context: multiprocessing.context.ForkServerContext, tmp_path: Path
) -> None:
    options = options_in(tmp_path / "killed", servers)
    for stage in (*STAGES, None):
        reached = context.Event()
        process = context.Process(target=research_until, args=(options, servers.outside, stage, reached))
        process.start()
        if stage:
            assert reached.wait(120), stage
            process.kill()
        process.join(120)
        last = RunFolder(tmp_path / "killed" / "pumps").read_log()[-1]
        assert (last.stage, last.status) == ((stage, "started") if stage else ("cache", "completed"))
    prompts = [call.body["messages"][-1]["content"] for call in servers.model.calls]
    assert len(prompts) == len(set(prompts)) == 1 + 2 + 2, "a plan, and the claims and a draft of each section"
    assert len(servers.search.queries) == len(set(servers.search.queries)) == 2
    assert [len(servers.web.paths(host)) for host in servers.web.sites] == [1, 1, 1]
    whole = run_here(options_in(tmp_path / "whole", servers), servers)
    assert whole.passed
    assert files_without_days(tmp_path / "killed" / "pumps") == files_without_days(whole.folder)
    assert b"(C001)" in (whole.folder / "final" / "report.md").read_bytes()
    check_what_the_store_knows(tmp_path / "killed", calls=5)


def check_what_the_store_knows(runs_dir: Path, calls: int) -> None:
    with open_store(runs_dir / STORE, read_only=True) as store:
        (run,) = store.runs()
        kinds = [(event.kind, event.payload.get("tool")) for event in store.events("pumps")]
    assert (run.metrics["tokensIn"], run.metrics["tokensOut"]) == (100 * calls, 20 * calls)
    assert (run.metrics["cacheHits"], run.metrics["cacheMisses"]) == (0, 3)
    assert run.metrics["durationS"] > 0
    assert kinds.count(("tool_call", "model")) == calls
    assert kinds.count(("search_result", None)) == 2
    assert kinds.count(("chunk_made", None)) == kinds.count(("fetch_result", None)) == 3
    assert kinds.count(("claim_made", None)) == 6
    assert kinds.count(("verify_result", None)) == kinds.count(("writer_finalized", None)) == 1


def test_a_call_that_a_kill_cut_off_is_the_only_one_asked_again(
    servers: Servers, context: multiprocessing.context.ForkServerContext, tmp_path: Path
) -> None:
    """Calls go one after the other: the plan, then the claims of the first section, then those of the second."""
    script = HangsAt(3)
    servers.model.respond = script
    options = options_in(tmp_path, servers)
    reached = context.Event()
    process = context.Process(target=research_until, args=(options, servers.outside, None, reached))
    process.start()
    assert script.hanging.wait(120)
    process.kill()
    process.join(120)
    assert run_here(options, servers).passed
    prompts = [call.body["messages"][-1]["content"] for call in servers.model.calls]
    assert prompts[2] == prompts[3]
    assert len(set(prompts)) == len(prompts) - 1 == 1 + 2 + 2

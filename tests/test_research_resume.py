"""A research run killed in each of its stages: nothing that was answered is asked again, and the report is the same."""

import asyncio
import multiprocessing
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple, get_args

import pytest

from pipeline.research.artefacts import RunFolder
from pipeline.research.finishing import Finished
from pipeline.research.machine import research
from pipeline.research.options import ResearchOptions
from pipeline.research.values import Stage
from pipeline.runs import STORE
from pipeline.sources.store import open_store
from tests.research_process import TOPIC, HangsAt, Outside, heat_pump_web, hits, opened_place, research_until
from tests.scripted_model import ScriptedModel
from tests.scripted_search import ScriptedSearch
from tests.web import Web

ROOT = Path(__file__).parents[1]
STAGES: tuple[Stage, ...] = get_args(Stage)
DAY = re.compile(rb"\d{4}-\d\d-\d\d")


class Servers(NamedTuple):
    """A web, a search engine and a model, and where they are."""

    web: Web
    search: ScriptedSearch
    model: ScriptedModel
    script: HangsAt
    outside: Outside


@pytest.fixture
def servers() -> Iterator[Servers]:
    script = HangsAt()
    with ExitStack() as stack:
        web = stack.enter_context(heat_pump_web())
        search = stack.enter_context(ScriptedSearch(lambda query, k: hits(web)[:k]))
        model = stack.enter_context(ScriptedModel(script))
        yield Servers(web, search, model, script, Outside(web.address, search.base_url, model.url))


@pytest.fixture(scope="module")
def context() -> Iterator[multiprocessing.context.ForkServerContext]:
    """Processes that begin with everything imported."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        forking = multiprocessing.get_context("forkserver")
        forking.set_forkserver_preload(["tests.research_process"])
        yield forking


def options_in(runs_dir: Path, servers: Servers, **changed: object) -> ResearchOptions:
    named = {"topic": TOPIC, "run_id": "pumps", "runs_dir": runs_dir, "search": "tavily", "model": "scripted-1"}
    return ResearchOptions(**{**named, "base_url": servers.outside.model_url, "workers": 1, **changed})


def run_here(options: ResearchOptions, servers: Servers) -> Finished:
    async def run() -> Finished:
        async with opened_place(options, servers.outside) as place:
            return await research(options, place)

    return asyncio.run(run())


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
    assert len(prompts) == len(set(prompts)) == 1 + 2 + 2
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
    assert kinds.count(("verify_result", None)) == kinds.count(("writer_finalized", None)) == 1

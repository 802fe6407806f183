import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from pipeline.research.artefacts import RunFolder
from pipeline.research.runs import STORE
from pipeline.research.values import Stage
from pipeline.sources.store import open_store
from tests.support.research_process import HangsAt, Servers, options_in, run_here

STAGES: tuple[Stage, ...] = get_args(Stage)
DAY = re.compile(rb"\d{4}-\d\d-\d\d")


def files_without_days(folder: Path) -> dict[str, bytes]:
    names = ("final/report.md", "final/report.json", "final/verification.md", "drafts/paragraphs.jsonl")
    return {name: DAY.sub(b"", (folder / name).read_bytes()) for name in names}


@pytest.mark.parametrize(
    "stages", [("write",), pytest.param(STAGES, marks=pytest.mark.rare)], ids=["one stage", "every stage"]
)
def test_a_run_that_is_killed_in_its_stages_asks_nothing_twice_and_writes_the_same_report(
    servers: Servers, run_elsewhere: Callable[..., None], tmp_path: Path, stages: tuple[Stage, ...]
) -> None:
    options = options_in(tmp_path / "killed", servers)
    for stage in (*stages, None):
        run_elsewhere(options, stage)
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
    with open_store(tmp_path / "killed" / STORE, read_only=True) as store:
        (run,) = store.runs()
        kinds = Counter((event.kind, event.payload.get("tool")) for event in store.events("pumps"))
    known = {"tokensIn": 500, "tokensOut": 100, "cacheHits": 0, "cacheMisses": 3}
    assert {name: run.metrics[name] for name in known} == known
    assert run.metrics["durationS"] > 0
    told = {"search_result": 2, "chunk_made": 3, "fetch_result": 3, "claim_made": 6}
    told |= {"verify_result": 1, "writer_finalized": 1}
    assert ({kind: kinds[kind, None] for kind in told}, kinds["tool_call", "model"]) == (told, 5)


@pytest.mark.rare
def test_a_call_that_a_kill_cut_off_is_the_only_one_asked_again(
    servers: Servers, run_elsewhere: Callable[..., None], tmp_path: Path
) -> None:
    """Calls go one after the other: the plan, then the claims of the first section, then those of the second."""
    script = servers.model.respond = HangsAt(3)
    options = options_in(tmp_path, servers)
    run_elsewhere(options, hanging=script.hanging)
    assert run_here(options, servers).passed
    prompts = [call.body["messages"][-1]["content"] for call in servers.model.calls]
    assert prompts[2] == prompts[3]
    assert len(set(prompts)) == len(prompts) - 1 == 1 + 2 + 2

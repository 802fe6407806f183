import asyncio
import json
import time
from pathlib import Path

import pytest

from pipeline.core.errors import InputError, OutputError, ProviderError
from pipeline.models.structured import Spent
from pipeline.research.artefacts import RunFolder
from pipeline.research.options import Budget, Limits
from pipeline.research.pages import PagesRead
from pipeline.research.report import Finished
from pipeline.research.rounds import ResearchRounds
from pipeline.research.runs import STORE
from pipeline.research.stages import open_run, research
from pipeline.research.values import FoundPage
from pipeline.sources.store import open_store
from tests.support.provider_server import Status
from tests.support.research_process import TOPIC, Servers, answers, hits, opened_place, options_in, run_here
from tests.support.web import Page as WebPage


def stop_reasons(finished: Finished, runs_dir: Path) -> set[str | None]:
    """What each place that a reader looks at says of the end."""
    report = json.loads((finished.folder / "final" / "report.json").read_bytes())["reportJson"]
    with open_store(runs_dir / STORE, read_only=True) as store:
        (run,) = store.runs()
    return {finished.stop_reason, report.get("stopReason"), run.metrics.get("stopReason"), finished.metrics.stop_reason}


@pytest.mark.parametrize(("limits", "reason"), [(Limits(tokens=1), "tokens"), (Limits(cost=0.001), "cost")])
def test_once_its_budget_is_used_up_the_model_is_asked_nothing_more(
    servers: Servers, runs_dir: Path, limits: Limits, reason: str
) -> None:
    finished = run_here(options_in(runs_dir, servers, limits=limits), servers)
    assert len(servers.model.calls) == 1
    assert finished.passed
    assert (finished.metrics.cost_est, stop_reasons(finished, runs_dir)) == (pytest.approx(0.012), {reason})
    for name in ("report.md", "verification.md"):
        assert reason in (finished.folder / "final" / name).read_text(encoding="utf-8")


def test_a_run_without_time_asks_nobody_and_says_so(servers: Servers, runs_dir: Path) -> None:
    finished = run_here(options_in(runs_dir, servers, model="extractive", limits=Limits(seconds=0)), servers)
    assert not servers.search.asked
    assert not servers.web.asked
    assert not finished.passed
    assert stop_reasons(finished, runs_dir) == {"seconds"}
    assert "The report passed" not in (finished.folder / "final" / "verification.md").read_text(encoding="utf-8")
    assert finished.metrics.sources_count == 0


def test_offline_pages_come_from_the_store_alone(servers: Servers, runs_dir: Path) -> None:
    known = hits(servers.web)[:2]
    strange = known[0]._replace(url=servers.web.url("unknown.test", "/page"))
    servers.search.find = lambda query, k: [strange, *known]
    finished = run_here(options_in(runs_dir, servers, model="extractive", offline=True), servers)
    assert finished.passed
    assert not servers.web.asked
    assert (finished.metrics.cache_hits, finished.metrics.cache_misses) == (2, 0)


def test_with_the_cache_off_pages_are_fetched_anew_once_a_run(servers: Servers, runs_dir: Path) -> None:
    options = options_in(runs_dir, servers, model="extractive", enable_cache=False)
    finished = run_here(options, servers)
    assert finished.passed
    assert [len(servers.web.paths(host)) for host in servers.web.sites] == [1, 1, 1]
    assert (finished.metrics.cache_hits, finished.metrics.cache_misses) == (0, 3)
    config = RunFolder(finished.folder).read_config()
    assert config is not None
    assert (config.enable_cache, config.timeouts.fetch_timeout_s) == (False, 60)
    run_here(options, servers)
    assert [len(servers.web.paths(host)) for host in servers.web.sites] == [1, 1, 1]


@pytest.mark.rare
def test_with_the_cache_off_a_page_that_is_held_and_does_not_come_is_not_read(servers: Servers, runs_dir: Path) -> None:
    servers.web.sites["cost.test"] = {"/page": WebPage("", 404)}
    finished = run_here(options_in(runs_dir, servers, model="extractive", enable_cache=False), servers)
    cited = {entry.url for entry in RunFolder(finished.folder).read_citations()}
    assert cited
    assert servers.web.url("cost.test", "/page") not in cited


@pytest.mark.rare
def test_a_page_gets_the_time_that_it_is_given(servers: Servers, tmp_path: Path) -> None:
    servers.web.sites["cost.test"] = {"/page": WebPage("", seconds=40.0)}
    began = time.monotonic()
    run_here(options_in(tmp_path, servers, model="extractive", fetch_timeout_s=5, workers=3), servers)
    assert time.monotonic() - began < 30
    with open_store(tmp_path / STORE, read_only=True) as store:
        held = store.outcome(servers.web.url("cost.test", "/page"))
    assert held is not None
    assert held.reason == "timeout"


def test_a_run_stops_at_its_budget_of_sources_and_not_by_its_last_round(servers: Servers, runs_dir: Path) -> None:
    finished = run_here(options_in(runs_dir, servers, budget=1), servers)
    assert (finished.metrics.cache_hits, finished.metrics.cache_misses) == (1, 0)
    assert stop_reasons(finished, runs_dir) == {"fetches"}
    servers.search.find = lambda query, k: hits(servers.web)[:1]
    with open_store(runs_dir / STORE) as store:
        store.delete_run("pumps")
    finished = run_here(options_in(runs_dir, servers, run_id="brief", depth="brief"), servers)
    assert (finished.metrics.rounds, stop_reasons(finished, runs_dir)) == (1, {None})


def test_when_the_time_is_over_pages_that_were_read_count(servers: Servers, runs_dir: Path) -> None:
    options = options_in(runs_dir, servers, model="extractive")
    places = (("physics.test", "/page"), ("cost.test", "/page"), ("cost.test", "/other"))

    async def cut_off() -> PagesRead:
        async with opened_place(options, servers.outside) as place:
            with open_run(options, place.report) as run:
                budget, effort = Budget(Limits(seconds=1), lambda: 1.0, Spent), options.effort("medium")
                rounds = ResearchRounds(run, place, options, effort, budget, lambda verified, pages: None)
                return await rounds.fetch([FoundPage(servers.web.url(*place), "", "", 1) for place in places])

    read = asyncio.run(cut_off())
    assert (len(read.pages), [page.reason for page in read.unread]) == (2, ["not_tried"])


def test_a_model_that_cannot_be_asked_fails_the_stage_and_the_run_resumes(servers: Servers, runs_dir: Path) -> None:
    options = options_in(runs_dir, servers)
    servers.model.respond = lambda received: Status(401, {}, {"error": {"message": "no sk-secret-0123456789abcdef"}})
    with pytest.raises(ProviderError):
        run_here(options, servers)
    last = RunFolder(runs_dir / "pumps").read_log()[-1]
    assert (last.stage, last.status, last.details.success) == ("plan", "failed", False)
    assert last.details.error
    assert "sk-secret" not in last.details.error
    with open_store(runs_dir / STORE, read_only=True) as store:
        assert [event.payload["category"] for event in store.events("pumps") if event.kind == "error"] == ["plan"]
        assert [(run.id, run.topic, run.status) for run in store.runs()] == [("pumps", TOPIC, "unfinished")]
    servers.model.respond = answers
    assert run_here(options, servers).passed


def test_a_run_goes_on_only_with_what_it_was_begun_with(servers: Servers, runs_dir: Path) -> None:
    options = options_in(runs_dir, servers, model="extractive")
    run_here(options, servers)
    for changed in (
        {"topic": "How do fridges work, and what do they cost?"},
        {"depth": "deep"},
        {"per_domain_cap": 5},
        {"enable_cache": False},
    ):
        with pytest.raises(InputError, match=f"was begun with {next(iter(changed))} "):
            run_here(options.model_copy(update=changed), servers)
    assert run_here(options.model_copy(update={"workers": 9, "limits": Limits(tokens=5)}), servers).passed


def test_a_folder_of_something_else_is_left_alone(servers: Servers, runs_dir: Path) -> None:
    (runs_dir / "pumps").mkdir()
    (runs_dir / "pumps" / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(OutputError, match="something else"):
        run_here(options_in(runs_dir, servers), servers)
    assert [path.name for path in (runs_dir / "pumps").iterdir()] == ["notes.txt"]


def test_only_one_process_works_on_a_run(servers: Servers, runs_dir: Path) -> None:
    options = options_in(runs_dir, servers, model="extractive")

    async def both() -> None:
        async with opened_place(options, servers.outside) as place:
            with open_run(options, place.report):
                await research(options, place)

    with pytest.raises(OutputError, match="Another `pipeline research`"):
        asyncio.run(both())

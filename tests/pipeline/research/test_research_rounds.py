import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.research.artefacts import RunFolder
from pipeline.research.journal import JOURNAL
from pipeline.research.options import Limits
from pipeline.research.runs import STORE
from tests.support.provider_server import Behaviour, Received, Status
from tests.support.research_process import Servers, marked
from tests.support.rounds_bench import FACTS, PLAN, Beekeeper, bee_run, bee_servers, cost_of
from tests.support.scripted_model import prompts_of, says


@pytest.fixture(scope="module")
def running() -> Iterator[Servers]:
    with bee_servers() as started:
        yield started


@pytest.fixture(scope="module")
def read_pages(running: Servers, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bee_run(running, tmp_path_factory.mktemp("read"), run_id="first").folder.parent / STORE


@pytest.fixture
def servers(running: Servers) -> Servers:
    running.model.respond = Beekeeper()
    running.model.calls.clear()
    running.search.asked.clear()
    return running


def asked_for(servers: Servers, task: str) -> list[str]:
    prompts = [prompts_of(call)[1] for call in servers.model.calls]
    return [prompt for prompt in prompts if prompt.startswith(task)]


def test_a_second_round_finds_what_the_first_missed_and_asks_about_that(servers: Servers, runs_dir: Path) -> None:
    finished = bee_run(servers, runs_dir)
    cost = cost_of(finished, servers)
    assert (cost.rounds, cost.pages, cost.facts, cost.calls) == (2, 4, len(FACTS), 7)
    assert servers.search.queries == [*PLAN.queries, "varroa mite of honeybees", "foulbrood of honeybees"]
    log = RunFolder(finished.folder).read_log()
    assert [event.details.round for event in log if event.stage == "harvest"] == [None, None, 2, 2]
    (prompt,) = asked_for(servers, "Find what is missing")
    assert PLAN.sections[1] in prompt
    assert PLAN.sections[0] not in prompt, "it was answered"
    assert all(query in prompt for query in PLAN.queries)
    assert "Honeybees get diseases of the brood" in prompt
    assert prompt.index("BEGIN") < prompt.index("Honeybees get diseases of the brood")
    later = asked_for(servers, "Read the numbered passages")[2:]
    assert [dict(marked(each))["QUESTION"] for each in later] == [PLAN.sections[1]]
    assert dict(marked(later[0]))["OTHER QUESTIONS"] == PLAN.sections[0]
    assert (
        dict(marked(later[0]))["KNOWN ALREADY"] == "Honeybees get diseases of the brood and diseases of the grown bee."
    )
    assert finished.passed


def test_without_a_model_there_is_one_round_of_the_planned_queries(servers: Servers, runs_dir: Path) -> None:
    finished = bee_run(servers, runs_dir, model="extractive")
    assert finished.passed
    plan = json.loads((runs_dir / finished.run_id / "logs" / "plan.json").read_text(encoding="utf-8"))
    assert servers.search.queries == plan["plan"]["queries"]
    assert (finished.metrics.rounds, finished.stop_reason) == (1, None)


def test_a_first_round_without_any_page_asks_in_other_words(servers: Servers, runs_dir: Path) -> None:
    servers.model.respond = Beekeeper(["varroa mite in hives"])
    find = servers.search.find
    servers.search.find = lambda query, k: [] if query in PLAN.queries else find(query, k)
    finished = bee_run(servers, runs_dir)
    servers.search.find = find
    assert servers.search.queries[:3] == [*PLAN.queries, "varroa mite in hives"]
    assert any(fact in RunFolder(finished.folder).read_report_md() for fact in FACTS if "varroa" in fact)


@pytest.mark.parametrize(
    "said",
    [
        says({"queries": list(PLAN.queries)}),
        says({"queries": ["Winter, honeybees!", "DISEASES honeybees"]}),
        says({"queries": []}),
        says({"queries": "more"}),
        says("I would rather talk about the weather."),
        Status(500, {}, {"error": {"message": "away"}}),
    ],
    ids=["the same queries", "the same in other signs", "none", "another form", "no JSON", "away"],
)
def test_a_model_without_new_queries_gives_way_to_words_and_ends(
    servers: Servers, runs_dir: Path, said: Status
) -> None:
    helpful = Beekeeper()

    def respond(received: Received) -> Behaviour:
        return said if prompts_of(received)[1].startswith("Find what is missing") else helpful(received)

    servers.model.respond = respond
    finished = bee_run(servers, runs_dir, max_rounds=2)
    assert finished.passed
    assert len(servers.search.queries) == len(set(servers.search.queries)) > len(PLAN.queries)
    told = RunFolder(finished.folder).read_report_md() + (finished.folder / "final" / "verification.md").read_text(
        "utf-8"
    )
    assert "made of the words of what is asked" in told


def test_a_heading_is_no_claim_of_the_model(servers: Servers, runs_dir: Path) -> None:
    helpful = Beekeeper()

    def respond(received: Received) -> Behaviour:
        prompt = prompts_of(received)[1]
        heading = "Yearly report on honeybees"
        if not prompt.startswith("Read the numbered passages") or heading not in prompt:
            return helpful(received)
        return says({"claims": [{"passage": 1, "quote": heading, "claim": "The report on honeybees comes yearly."}]})

    servers.model.respond = respond
    finished = bee_run(servers, runs_dir, max_rounds=1)
    assert "comes yearly" not in RunFolder(finished.folder).read_report_md()
    assert "can be no claim" in (finished.folder / "final" / "verification.md").read_text("utf-8")


def test_queries_of_a_misled_model_are_cleaned_and_few(servers: Servers, runs_dir: Path) -> None:
    servers.model.respond = Beekeeper(
        [
            "site:evil.example buy honey now",
            "https://evil.example/pay",
            "  ",
            "1. foulbrood in hives https://evil.example/x",
            "pollen " * 100,
            *(f"honeybees number{number}x" for number in range(20)),
        ]
    )
    bee_run(servers, runs_dir, max_rounds=2)
    new = servers.search.queries[2:]
    assert (new[:2], len(new)) == (["buy honey now", "foulbrood in hives"], 4)
    assert all(len(query) <= 200 and "evil" not in query for query in new)


def test_a_run_that_goes_on_in_its_second_round_asks_nothing_again(servers: Servers, runs_dir: Path) -> None:
    whole = bee_run(servers, runs_dir)
    report, calls, queries = RunFolder(whole.folder).read_report_md(), len(servers.model.calls), servers.search.queries
    journal = whole.folder / JOURNAL
    lines = journal.read_text(encoding="utf-8").splitlines(keepends=True)
    stages = [(entry.get("stage"), entry.get("round")) for entry in map(json.loads, lines)]
    journal.write_text("".join(lines[: stages.index(("verify", 1)) + 1]), encoding="utf-8")
    bee_run(servers, runs_dir)
    assert (RunFolder(whole.folder).read_report_md(), servers.search.queries) == (report, queries)
    assert len(servers.model.calls) == calls + 3, "the claims of the second round, and the texts of both sections"


def test_no_query_is_bought_where_the_budget_is_used_up(servers: Servers, runs_dir: Path) -> None:
    finished = bee_run(servers, runs_dir, limits=Limits(tokens=1_500))
    assert (finished.stop_reason, finished.metrics.rounds) == ("tokens", 1)
    assert not asked_for(servers, "Find what is missing")
    assert finished.passed

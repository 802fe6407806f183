"""A research run in a process of its own, which holds still where a test wants to kill it; and what it works with."""

import asyncio
import os
import re
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.core.schema import Price
from pipeline.research.options import ResearchOptions
from pipeline.research.report import Finished
from pipeline.research.run import Environment, Progress, open_model, search_provider
from pipeline.research.runs import STORE
from pipeline.research.stages import research
from pipeline.research.values import Stage
from pipeline.sources.extract import Extractor
from pipeline.sources.fetch import Fetcher, FetchPolicy
from pipeline.sources.guard import guarded_client
from pipeline.sources.store import open_store
from tests.support.provider_server import Behaviour, Hang, Received
from tests.support.scripted_model import ScriptedModel, prompts_of, says
from tests.support.scripted_search import Hit, ScriptedSearch
from tests.support.web import Web

PRICES = {"scripted-1": Price(input=100, output=100)}
TOPIC = "How do heat pumps work, and what do they cost to run?"
SECTIONS = ("How do heat pumps work?", "What do heat pumps cost to run?")
QUERIES = ("heat pump working principle", "heat pump running cost")
FOLLOW_UPS = ("heat pump annual electricity bill", "vapour compression cycle of a heat pump")
FACTS = {
    "physics.test": (
        "How a heat pump works",
        "A heat pump moves heat from the outside air into the house by evaporating a refrigerant.",
        "The compressor of a heat pump compresses the refrigerant until it is hotter than the heating water.",
    ),
    "cost.test": (
        "What a heat pump costs",
        "A heat pump with a factor of 3.5 turns 1 kilowatt hour of electricity into 3.5 kilowatt hours of heat.",
        "Running a heat pump costs a typical household about 900 euros a year at 0.30 euros a kilowatt hour.",
    ),
    "advice.test": (
        "Advice on heat pumps",
        "Low flow temperatures lower the running cost of a heat pump, because the compressor has less work to do.",
        "A heat pump works best in a house with large radiators or with heating pipes in the floor of every room.",
    ),
}
FILLER = " ".join(
    f"The {word} report of the agency describes installation number {number} in a district with many older houses."
    for number, word in enumerate(["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"], 20)
)


def page_of_facts(title: str, *facts: str) -> str:
    body = "".join(f"<p>{fact}</p>" for fact in (*facts, FILLER))
    return f"<html><head><title>{title}</title></head><body><article><h1>{title}</h1>{body}</article></body></html>"


def hits(web: Web) -> list[Hit]:
    return [Hit(facts[0], web.url(host, "/page"), facts[1]) for host, facts in FACTS.items()]


def answers(received: Received) -> Behaviour:
    """What a model that does as it is told says: the plan, facts of the passages, queries, the claims' own words."""
    _, prompt = prompts_of(received)
    if prompt.startswith("Plan the research"):
        return says({"sections": list(SECTIONS), "queries": list(QUERIES)})
    if prompt.startswith("Read the numbered passages"):
        about_cost = "cost" in dict(marked(prompt))["QUESTION"]
        told = [(name, fact) for name, text in marked(prompt) for fact in known_facts(text, about_cost)]
        claims = [
            {"passage": int(name.split()[1]), "quote": fact, "claim": fact, "type": "fact"} for name, fact in told
        ]
        return says({"claims": claims})
    if prompt.startswith("Find what is missing"):
        return says({"queries": list(FOLLOW_UPS)})
    paragraphs = [(name, text) for name, text in marked(prompt) if name.startswith("CLAIMS")]
    return says({"paragraphs": [drafted(int(name.split()[-1]), lines) for name, lines in paragraphs]})


def marked(prompt: str) -> list[tuple[str, str]]:
    mark = re.search(r"BEGIN ([0-9a-f]{32})$", prompt, re.MULTILINE)
    assert mark
    parts = prompt.split(f"\nEND {mark[1]}")[0].split(f"\n{mark[1]} ")[1:]
    return [(name, text.strip()) for name, _, text in (part.partition("\n") for part in parts)]


def known_facts(text: str, about_cost: bool) -> list[str]:
    facts = [fact for _, *facts in FACTS.values() for fact in facts if fact in text]
    return [fact for fact in facts if about_cost == ("cost" in fact or "kilowatt" in fact)]


def drafted(number: int, lines: str) -> dict[str, Any]:
    claims = [line.split(": ", 1) for line in lines.splitlines()]
    return {"paragraph": number, "sentences": [{"text": text, "claims": [name]} for name, text in claims]}


class HangsAt:
    """A model that answers, but never the call with this number; `hanging` is set when it has come."""

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.calls = 0
        self.hanging = threading.Event()
        self.lock = threading.Lock()

    def __call__(self, received: Received) -> Behaviour:
        with self.lock:
            self.calls += 1
            hangs = self.calls == self.number
        if hangs:
            self.hanging.set()
            return Hang()
        return answers(received)


class Outside(NamedTuple):
    """Where the servers are that a run talks to."""

    web: tuple[str, int]
    search_url: str
    model_url: str


class Servers(NamedTuple):
    web: Web
    search: ScriptedSearch
    model: ScriptedModel

    @property
    def outside(self) -> Outside:
        return Outside(self.web.address, self.search.base_url, self.model.url)


@contextmanager
def running_servers() -> Iterator[Servers]:
    """The web of heat pumps, a search engine that finds all of it, and a model that does as it is told."""
    with (
        Web({host: {"/page": page_of_facts(*facts)} for host, facts in FACTS.items()}) as web,
        ScriptedSearch(lambda query, k: hits(web)[:k]) as search,
        ScriptedModel(answers) as model,
    ):
        yield Servers(web, search, model)


def options_in(runs_dir: Path, servers: Servers, **changed: Any) -> ResearchOptions:
    """The options of a run on these servers; `pumps` is its id."""
    named = {"topic": TOPIC, "run_id": "pumps", "runs_dir": runs_dir, "search": "tavily", "model": "scripted-1"}
    return ResearchOptions(**{**named, "base_url": servers.model.url, "workers": 1, **changed})


def run_here(options: ResearchOptions, servers: Servers) -> Finished:
    async def run() -> Finished:
        async with opened_place(options, servers.outside) as place:
            return await research(options, place)

    return asyncio.run(run())


async def resolve(host: str, port: int) -> Sequence[str]:
    return ["127.0.0.1"]


@asynccontextmanager
async def opened_place(
    options: ResearchOptions, outside: Outside, report: Progress | None = None
) -> AsyncIterator[Environment]:
    """An environment in which every host name is the loopback web's, and no site asks for patience."""
    async with AsyncExitStack() as stack:
        store = stack.enter_context(open_store(options.runs_dir / STORE))
        keys = {"TAVILY_API_KEY": "tvly-test"}
        search = search_provider(options.search, store, keys, base_url=outside.search_url)
        client = await stack.enter_async_context(guarded_client([outside.web], resolve=resolve))
        yield Environment(
            store,
            await stack.enter_async_context(
                Fetcher(client, FetchPolicy(delay=0.0, max_seconds=options.fetch_timeout_s))
            ),
            await stack.enter_async_context(Extractor(1)),
            search,
            await open_model(options, {}, PRICES, stack),
            report or Progress(),
        )


def research_until(options: ResearchOptions, outside: Outside, stage: Stage | None, reached: Event) -> None:
    """Run in this process, and hold still for good when the stage begins."""
    for name in list(os.environ):
        if name.upper().endswith(("_API_KEY", "_PROXY")):
            del os.environ[name]

    def begin(begun: Stage, round_: int) -> None:
        if begun == stage:
            reached.set()
            threading.Event().wait()

    async def run() -> None:
        async with opened_place(options, outside, Progress(begin=begin)) as place:
            await research(options, place)

    asyncio.run(run())

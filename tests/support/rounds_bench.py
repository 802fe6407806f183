"""What rounds find and cost: a web in which half of what is asked is written in other words than those of the question.

`python -m tests.support.rounds_bench` prints rounds, queries, pages, sections that are answered, calls and tokens of
runs with a model on loopback and without one.
"""

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import click

from pipeline.research.report import Finished
from pipeline.research.values import Plan
from pipeline.sources.chunk import count_tokens
from pipeline.text.sentences import sentence_spans
from tests.support.provider_server import Behaviour, Received, Status
from tests.support.research_process import Servers, marked, options_in, run_here
from tests.support.scripted_model import ScriptedModel, prompts_of, says
from tests.support.scripted_search import Hit, ScriptedSearch, words_of
from tests.support.web import Web

TOPIC = "How do honeybees survive the winter, and which diseases do honeybees get?"
PLAN = Plan(
    ("How do honeybees survive the winter?", "Which diseases do honeybees get?"),
    ("honeybees winter", "honeybees diseases"),
)
WINTER, DISEASES = range(2)
PAGES: dict[str, tuple[str, dict[str, str]]] = {
    "keeper.test": (
        "Honeybees in winter",
        {
            "The cold months": "Honeybees survive the winter in a dense cluster around their queen. The honeybees "
            "of a colony heat the winter cluster by shivering with their flight muscles.",
            "Diseases and the varroa mite": "Beekeepers name several diseases in their yearly report to the agency.",
        },
    ),
    "agency.test": (
        "Yearly report on honeybees",
        {
            "Losses of colonies": "Honeybees that survive the winter begin to forage in March. A colony of honeybees "
            "needs about 15 kilograms of honey to survive the winter.",
            "Foulbrood is notifiable": "Honeybees get diseases of the brood and diseases of the grown bee.",
        },
    ),
    "mites.test": (
        "Varroa destructor",
        {
            "A parasite of the hive": "The varroa mite carries viruses among honeybees, and these diseases shorten "
            "their lives. Varroa mites breed in capped cells of the brood of honeybees.",
        },
    ),
    "brood.test": (
        "American foulbrood",
        {
            "To be reported at once": "American foulbrood is one of the diseases that honeybees get as larvae. "
            "Spores of foulbrood stay alive in old combs for more than 40 years.",
        },
    ),
    "shop.test": (
        "Honey and candles",
        {"Our offers": "We sell honey from local honeybees, candles and mead all through the winter season."},
    ),
}
FILLER = " ".join(
    f"The {word} year book of the club lists {number} members and the dates of their meetings in the village hall."
    for number, word in enumerate(["first", "second", "third", "fourth", "fifth", "sixth"], 20)
)
FACTS = [
    text[start:end]
    for _, chapters in PAGES.values()
    for text in chapters.values()
    for start, end in sentence_spans(text, "en")
    if "We sell" not in text and "Beekeepers name" not in text
]
ANSWERS = {"winter": WINTER, "diseases": DISEASES, "foulbrood": DISEASES, "varroa": DISEASES}


class Cost(NamedTuple):
    rounds: int
    queries: int
    pages: int
    facts: int
    """How many of `FACTS` the report states."""
    calls: int
    tokens: int


class Beekeeper:
    """A model that plans two sections, quotes what answers them, and counts its tokens.

    Asked for what is missing it names what the headings that it is shown speak of, or says what `looking` has.
    """

    def __init__(self, looking: Sequence[str] | None = None) -> None:
        self.looking = looking
        self.asked = 0

    def __call__(self, received: Received) -> Behaviour:
        system, prompt = prompts_of(received)
        said = self.says(prompt)
        tokens = {"prompt_tokens": count_tokens(system + prompt), "completion_tokens": count_tokens(json.dumps(said))}
        status = says(said)
        assert isinstance(status, Status)
        return status._replace(body={**status.body, "usage": tokens})

    def says(self, prompt: str) -> dict[str, Any]:
        texts = dict(marked(prompt))
        if prompt.startswith("Plan the research"):
            return {"sections": list(PLAN.sections), "queries": list(PLAN.queries)}
        if prompt.startswith("Find what is missing"):
            self.asked += 1
            if self.looking is not None:
                return {"queries": list(self.looking)}
            known = texts["HEADINGS OF PAGES READ"].lower()
            return {"queries": [f"{word} of honeybees" for word in ("varroa mite", "foulbrood") if word in known]}
        if "QUESTION" in texts:
            return {"claims": list(claims_in(texts))}
        return {"paragraphs": []}


def claims_in(texts: dict[str, str]) -> Iterator[dict[str, Any]]:
    """The facts of the passages that answer the question, in their own words."""
    section = PLAN.sections.index(texts["QUESTION"])
    for name, text in texts.items():
        for fact in FACTS if name.startswith("PASSAGE") else ():
            if fact in text and any(word in words_of(fact) and of == section for word, of in ANSWERS.items()):
                yield {"passage": int(name.split()[1]), "quote": fact, "claim": fact, "type": "fact"}


def page_of(title: str, chapters: dict[str, str]) -> str:
    told = {**chapters, "The club": FILLER}
    body = "".join(f"<h2>{heading}</h2><p>{text}</p>" for heading, text in told.items())
    return f"<html lang='en'><head><title>{title}</title></head><body><article><h1>{title}</h1>{body}</article></body>"


@contextmanager
def bee_servers(looking: Sequence[str] | None = None) -> Iterator[Servers]:
    """The web of honeybees, a search engine that finds two pages by their words, and the model."""
    with (
        Web({host: {"/": page_of(*page)} for host, page in PAGES.items()}) as web,
        ScriptedSearch(lambda query, k: best_pages(web, query)) as search,
        ScriptedModel(Beekeeper(looking)) as model,
    ):
        yield Servers(web, search, model)


def best_pages(web: Web, query: str) -> list[Hit]:
    """The two pages that hold most of the query's words, titles before all else."""
    asked = Counter(words_of(query))

    def score(host: str) -> int:
        title, chapters = PAGES[host]
        words = words_of(f"{title} {title} {' '.join(chapters.values())}")
        return sum(words.count(word) for word in asked)

    found = sorted((host for host in PAGES if score(host)), key=lambda host: (-score(host), host))
    return [Hit(PAGES[host][0], web.url(host, "/"), "") for host in found[:2]]


def bee_run(servers: Servers, runs_dir: Path, **changed: Any) -> Finished:
    return run_here(options_in(runs_dir, servers, topic=TOPIC, **changed), servers)


def cost_of(finished: Finished, servers: Servers) -> Cost:
    report = (finished.folder / "final" / "report.md").read_text(encoding="utf-8")
    metrics = finished.metrics
    return Cost(
        metrics.rounds or 0,
        len(servers.search.queries),
        metrics.cache_hits + metrics.cache_misses,
        sum(fact in report for fact in FACTS),
        len(servers.model.calls),
        metrics.tokens_in + metrics.tokens_out,
    )


def main() -> None:
    click.echo("run                      rounds  queries  pages  facts of 9  calls  tokens")
    for name, looking, model in (
        ("with a model", None, "scripted-1"),
        ("a model that loops", PLAN.queries, "scripted-1"),
    ):
        with tempfile.TemporaryDirectory() as place, bee_servers(looking) as servers:
            cost = cost_of(bee_run(servers, Path(place), model=model), servers)
            click.echo(
                f"{name:<24} {cost.rounds:>6} {cost.queries:>8} {cost.pages:>6} {cost.facts:>11} {cost.calls:>6} "
                f"{cost.tokens:>7,}"
            )


if __name__ == "__main__":
    main()

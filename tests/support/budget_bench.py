"""How far research goes over its limits: what a model on loopback answered, beside the limit and the largest call.

`python -m tests.support.budget_bench` prints a line for each limit; tests hold the same runs to their bound.
"""

import json
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any, NamedTuple

import click

from pipeline.models.structured import Spent, added, spent_of
from pipeline.research.options import Limits
from pipeline.research.report import Finished
from pipeline.research.runs import STORE
from pipeline.sources.chunk import count_tokens
from pipeline.sources.store import open_store
from tests.support.provider_server import Behaviour, Hang, Received, Status
from tests.support.research_process import PRICES, QUERIES, Servers, answers, options_in, run_here, running_servers
from tests.support.scripted_model import prompts_of, says

SECTIONS = tuple(
    f"{question} {aspect}?"
    for question in ("How do heat pumps work", "What is the cost of heat pumps")
    for aspect in (("in winter", "in old houses", "in new houses"))
)
TOKEN_LIMITS = (1, 1_000, 3_000, 6_000, 12_000)
COST_LIMITS = (0.001, 0.02, 0.1, 0.5)


class Counting:
    """A model that plans six sections, states what its words take, and remembers what it answered.

    It never answers the call with the number `hangs_at`; `hanging` is set when that has come.
    """

    def __init__(self, hangs_at: int = 0) -> None:
        self.lock = threading.Lock()
        self.answered: list[Spent] = []
        self.calls = 0
        self.hangs_at = hangs_at
        self.hanging = threading.Event()

    def __call__(self, received: Received) -> Behaviour:
        with self.lock:
            self.calls += 1
            if self.calls == self.hangs_at:
                self.hanging.set()
                return Hang()
        said = answers(received)
        system, prompt = prompts_of(received)
        if prompt.startswith("Plan the research"):
            said = says({"sections": list(SECTIONS), "queries": list(QUERIES)})
        assert isinstance(said, Status)
        words = json.dumps(said.body["choices"])
        usage = {"prompt_tokens": count_tokens(system + prompt), "completion_tokens": count_tokens(words) + 300}
        body: dict[str, Any] = {**said.body, "usage": usage}
        with self.lock:
            self.answered.append(spent_of([json.dumps(body)], "scripted-1", PRICES))
        return said._replace(body=body)

    @property
    def total(self) -> Spent:
        total = Spent()
        for each in self.answered:
            total = added(total, each)
        return total


class Overshoot(NamedTuple):
    total: Spent
    """What the model answered."""
    largest: Spent
    """The largest answers: most tokens, highest cost."""
    finished: Finished


def read_store(folder: Path, servers: Servers) -> Path:
    """A store that holds all pages: reading them takes most of a run's time."""
    run_here(options_in(folder, servers, model="extractive"), servers)
    with open_store(folder / STORE) as opened:
        opened.delete_run("pumps")
    return folder / STORE


def overshoot(servers: Servers, runs_dir: Path, limits: Limits) -> Overshoot:
    """A run of six sections under the limits, with five calls at a time."""
    model = Counting()
    servers.model.respond = model
    finished = run_here(options_in(runs_dir, servers, limits=limits, workers=5), servers)
    largest = Spent(
        1,
        max((each.tokens_in + each.tokens_out for each in model.answered), default=0),
        0,
        max((each.cost for each in model.answered), default=0.0),
    )
    return Overshoot(model.total, largest, finished)


def main() -> None:
    with running_servers() as servers, tempfile.TemporaryDirectory() as place:
        store = read_store(Path(place), servers)
        click.echo("limit          answered  calls  largest call  answered / limit")
        limits = [*(Limits(tokens=each) for each in TOKEN_LIMITS), *(Limits(cost=each) for each in COST_LIMITS)]
        for number, limit in enumerate(limits):
            runs_dir = Path(place) / str(number)
            runs_dir.mkdir()
            shutil.copy(store, runs_dir / STORE)
            came = overshoot(servers, runs_dir, limit)
            total, calls, largest = came.total, came.total.calls, came.largest
            if limit.tokens is not None:
                share = total.tokens / limit.tokens
                click.echo(
                    f"{limit.tokens:>6,} tokens {total.tokens:>9,} {calls:>6} {largest.tokens:>13,} {share:>17.2f}"
                )
            elif limit.cost is not None:
                share = total.cost / limit.cost
                click.echo(f"{limit.cost:>6} USD    {total.cost:>9.4f} {calls:>6} {largest.cost:>13.4f} {share:>17.2f}")


if __name__ == "__main__":
    main()

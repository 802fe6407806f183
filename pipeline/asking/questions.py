"""What a run is to ask: its calls with their prompts, whom they go to, and within which limits."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

from pipeline.asking.narratives import NarrativesCsv
from pipeline.csv_v2.identity import USER_TEMPLATE, build_user_prompt, identify_call
from pipeline.schema import AskOptions, Narrative, Price, ProviderName

SYSTEM_PROMPT = (
    "You check statements for people who decide what to believe. Search the web, prefer primary and official sources, "
    "and cite the source of every claim that you make. Say plainly where the sources disagree or say nothing."
)
_DEFAULT_CONCURRENCY = 4


class Call(NamedTuple):
    """A narrative to put to a provider.

    `row` counts the narratives of the file from 1, `occurrence` those of the same id; `model` is the one to ask for,
    empty where nobody named one. `repeat` counts how often the same row is put, from 1.
    """

    provider: ProviderName
    narrative: Narrative
    row: int
    occurrence: int
    prompt: str
    answer_id: str
    model: str
    repeat: int = 1


class Reply(NamedTuple):
    """What came back: the body as it was sent, the HTTP status where known, the model that the request asked for.

    `attempts` counts the requests that it took.
    """

    text: str
    status: int | None = None
    model: str = ""
    attempts: int = 1


class AnswerSource(Protocol):
    """Where replies come from: the providers themselves, or a folder of stored payloads."""

    async def answer(self, call: Call) -> Reply:
        """The reply to a call.

        Raises:
            ProviderError: there is none.
        """

    def stop(self) -> int:
        """Give up the calls that only wait for their next request, and count them."""


def plan_calls(
    run_id: str, provider: ProviderName, narratives: Iterable[Narrative], model: str = "", repeats: int = 1
) -> Iterator[Call]:
    """The calls for each narrative, in their order, the repeats of one behind each other; made one by one."""
    seen: Counter[str] = Counter()
    for row, narrative in enumerate(narratives, start=1):
        seen[narrative.narrative_id] += 1
        occurrence = seen[narrative.narrative_id]
        prompt = build_user_prompt(USER_TEMPLATE, narrative.prompt)
        for repeat in range(1, repeats + 1):
            answer_id = identify_call(run_id, provider, narrative.narrative_id, prompt, occurrence, repeat)
            yield Call(provider, narrative, row, occurrence, prompt, answer_id, model, repeat)


Report = Callable[[Call, int], None]
"""Hears of each call when it is settled, and how many calls its provider has."""

Tell = Callable[[str], None]
"""Shows a line to the one who waits."""


class Questions(NamedTuple):
    """What to ask: the narratives of a file, whom, with which model where one is named, and how often.

    `narratives` is gone through several times. `options` is None for answers from stored payloads.
    """

    narratives: NarrativesCsv
    providers: Sequence[ProviderName]
    models: Mapping[ProviderName, str]
    max_rows: int | None = None
    repeats: int = 1
    options: AskOptions | None = None

    def calls(self, run_id: str, provider: ProviderName) -> Iterator[Call]:
        """The calls to one provider, in the narratives' order, made one by one."""
        model = self.models.get(provider, "")
        return plan_calls(run_id, provider, islice(self.narratives, self.max_rows), model, self.repeats)

    def rows(self) -> int:
        """How many narratives are put."""
        return len(self.narratives) if self.max_rows is None else min(len(self.narratives), self.max_rows)

    def calls_each(self) -> int:
        """How many calls each provider gets."""
        return self.rows() * self.repeats


class Limits(NamedTuple):
    """How a run goes: calls at once to each provider, and the known cost at which no further call is started."""

    concurrency: int = _DEFAULT_CONCURRENCY
    max_cost: float | None = None
    prices: Mapping[str, Price] = {}


NO_LIMITS = Limits()

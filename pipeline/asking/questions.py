"""What a run is to ask, and within which limits."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from pipeline.asking.run_folder import NarrativesFile
from pipeline.providers.calls import Call, plan_calls
from pipeline.schema import AskOptions, Narrative, Price, ProviderName

DEFAULT_CONCURRENCY = 4

Report = Callable[[Call, int], None]
"""Hears of each call when it is settled, and how many calls its provider has."""

Tell = Callable[[str], None]
"""Shows a line to the one who waits."""


class Questions(NamedTuple):
    """What to ask: the narratives of a file, whom, with which model where one is named, and how often.

    `narratives` is gone through several times. `options` is None for answers from stored payloads.
    """

    source: NarrativesFile
    narratives: Iterable[Narrative]
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
        return self.source.rows if self.max_rows is None else min(self.source.rows, self.max_rows)

    def calls_each(self) -> int:
        """How many calls each provider gets."""
        return self.rows() * self.repeats


class Limits(NamedTuple):
    """How a run goes: calls at once to each provider, and the known cost at which no further call is started."""

    concurrency: int = DEFAULT_CONCURRENCY
    max_cost: float | None = None
    prices: Mapping[str, Price] = {}


NO_LIMITS = Limits()

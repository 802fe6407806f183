"""Batches whose creation was answered into the void: found again in the provider's list, by name or by custom ids."""

from collections.abc import Callable, Mapping, Set
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from pipeline.asking._ledger import Batch, Ledger, run_prefix
from pipeline.asking.run_folder import OpenRun, time_now
from pipeline.errors import ProviderError
from pipeline.providers.batch import BatchApi, BatchState
from pipeline.providers.http.client import ApiClient
from pipeline.schema import ProviderName

GONE = (404, 410)
"""The statuses of what a provider does not have any more."""
# How far a provider's clock and ours may be apart.
_CLOCKS_APART = timedelta(hours=1)


class Found(NamedTuple):
    """What was found, and ids of batches without names that may be ours, which shows when they have ended."""

    batches: list[Batch]
    undecided: list[str]


class LostBatches(NamedTuple):
    """What is looked for at one provider: batches of this run of which the ledger has no id.

    `lost` are those that were sent and not answered for; they are known by their name, or where the provider keeps
    none by their size and the custom ids of their results. A batch that has the run's name and is not in the ledger at
    all, which may have lost lines, counts as found; so, where `are_missing` says that there may be such, does one with
    one of the `answer_ids`, which are those of this start's calls to the provider, and that was not made after this
    start had `begun`. The ids of batches that turn out to be another run's are added to `strangers`.
    """

    api: BatchApi
    ledger: Ledger
    provider: ProviderName
    run: OpenRun
    lost: Mapping[str, Batch]
    answer_ids: Callable[[], Set[str]]
    are_missing: bool
    begun: str
    strangers: set[str]

    async def find(self, client: ApiClient) -> Found:
        """Look through all batches of the provider; the ledger knows what was found when this returns.

        Raises:
            ProviderError: the provider's list, or a result in it, cannot be had.
        """
        found, left = Found([], []), dict(self.lost)
        every = self.answer_ids() if self.are_missing and not self.api.is_named else frozenset[str]()
        async with aclosing(self.api.listed(client)) as states:
            async for state in states:
                is_known = state.batch_id in self.ledger.batch_ids or state.batch_id in self.strangers
                if is_known or _is_before(state.created, self.run.manifest.started):
                    continue
                ids = frozenset[str]() if _is_before(self.begun, state.created) else every
                if self.api.is_named:
                    batch = self._by_name(state, left)
                elif state.total > len(ids) and not any(_may_be(each, state) for each in left.values()):
                    continue
                elif state.status == "working":
                    found.undecided.append(state.batch_id)
                    continue
                else:
                    batch = self._by_result(state, await _first_id(client, self.api, state), left, ids)
                if batch:
                    found.batches.append(batch)
                elif ids:  # looked for among all calls of this start
                    self.strangers.add(state.batch_id)
        return found

    def _by_name(self, state: BatchState, left: dict[str, Batch]) -> Batch | None:
        """The batch of this name, which is lost no longer; None where the name is of another run."""
        if state.name in left:
            return self.ledger.note("created", left.pop(state.name), state.batch_id)
        if state.name.startswith(run_prefix(self.run.manifest.run_id)):
            return self._unknown(state.name, state)
        return None

    def _by_result(self, state: BatchState, first: str, left: dict[str, Batch], ids: Set[str]) -> Batch | None:
        """The batch with this custom id, which is lost no longer; None where the id is of another run."""
        name = next((name for name, batch in left.items() if first in batch.calls), "")
        if name:
            return self.ledger.note("created", left.pop(name), state.batch_id)
        return self._unknown(f"{run_prefix(self.run.manifest.run_id)}{state.batch_id}", state) if first in ids else None

    def _unknown(self, name: str, state: BatchState) -> Batch:
        """A batch of which the ledger knows nothing."""
        return self.ledger.note("found", Batch(name, self.provider, time_now()), state.batch_id)


async def _first_id(client: ApiClient, api: BatchApi, state: BatchState) -> str:
    """The custom id of a batch's first result; empty where it has none, or the provider has deleted them.

    Raises:
        ProviderError: the results cannot be had.
    """
    if state.status == "failed":
        return ""
    try:
        async with aclosing(api.results(client, state)) as results:
            async for result in results:
                return result.custom_id
    except ProviderError as failure:
        if failure.status not in GONE:
            raise
    return ""


def _may_be(batch: Batch, state: BatchState) -> bool:
    """Whether a batch without a name is as large as this one, and no older."""
    return len(batch.calls) == state.total and not _is_before(state.created, batch.planned)


def _is_before(first: str, second: str) -> bool:
    """Whether one moment is before the other, by clocks that may be apart; not where either is not told."""
    try:
        earlier, later = (
            told if told.tzinfo else told.replace(tzinfo=UTC) for told in map(datetime.fromisoformat, (first, second))
        )
    except ValueError:
        return False
    return earlier + (_CLOCKS_APART if "T" in first else timedelta(days=1)) < later

"""The ledger of a run's batches: what was to be sent stands in it before it is sent, and nothing in it ever changes.

A batch whose creation was answered into the void is found again in the provider's list, by name or by custom ids.

Source: pipeline/contracts/run_folder.md#batches.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field

from pipeline.asking.paid_replies import append_line, cut_torn, read_lines
from pipeline.asking.run_folder import OpenRun, time_now
from pipeline.core.errors import InputError, ProviderError
from pipeline.core.schema import Frozen, ProviderName
from pipeline.providers import get_provider
from pipeline.providers.batch import BatchApi, BatchState
from pipeline.providers.http.client import ApiClient

LEDGER = "batches.jsonl"
_DIGITS_OF_NAME = 12
_ADVICE = (
    "a line of a run's batches, and what is paid for may stand there. Nothing was sent. Give the file back as it was; "
    "if that cannot be, remove the line: batches that the ledger does not name are looked for at the provider."
)


class LedgerLine(Frozen):
    """One step of one batch."""

    step: Literal["planned", "created", "found", "collected", "dropped"]
    """`planned` before it is sent, `created` when the provider has named it, `found` where only the provider knew of
    it, `collected` when all that it came to is on the disk, `dropped` where the provider never had it."""
    name: str
    """The name that it is sent under; it begins with `citejury-` and the run's id."""
    provider: ProviderName
    """Who is asked."""
    timestamp: str
    """When the line was written: ISO 8601, UTC."""
    batch_id: str = ""
    """The provider's name of it, in the lines `created` and `found`."""
    model: str = ""
    """The model of all its calls, in the line `planned`."""
    said: str = ""
    """SHA-256 of what the user says of its calls, in the line `planned`; not of their bodies, which a later version may
    write in another way."""
    digest: str = ""
    """Only in folders of earlier versions: SHA-256 of the bodies, which is not read."""
    calls: tuple[str, ...] = Field(default=())
    """`answer_id` of its calls, in the line `planned`, and in the line `found` once its results tell them; in the line
    `collected` those that it gave no answer to."""


class Batch(NamedTuple):
    """A batch as the ledger knows it; `calls` is empty where only the provider knows them, `planned` is its time."""

    name: str
    provider: ProviderName
    planned: str
    batch_id: str = ""
    model: str = ""
    said: str = ""
    calls: tuple[str, ...] = ()


class Ledger:
    """The ledger of a run folder that this process alone writes to."""

    def __init__(self, out: Path) -> None:
        """Read the ledger, and cut off it a line that a kill tore.

        Raises:
            OutputError: a line before the last is not one of ours.
        """
        self.path = out / LEDGER
        self.open: dict[str, Batch] = {}
        self.batch_ids: set[str] = set()
        self.planned: Counter[ProviderName] = Counter()
        end = 0
        for line, place in read_lines(self.path, LedgerLine, _ADVICE):
            self._take(line)
            end = place.end
        self.torn = cut_torn(self.path, end)

    def plan(self, batch: Batch) -> None:
        """Write down a batch that is to be sent now."""
        fields = batch._asdict()
        self._write(LedgerLine(step="planned", timestamp=fields.pop("planned"), **fields))

    def note(self, step: Literal["created", "found"], batch: Batch, batch_id: str) -> Batch:
        """Write down the provider's name of a batch, and give the batch as it is now."""
        calls = batch.calls if step == "found" else ()
        self._write(self._line(step, batch).model_copy(update={"batch_id": batch_id, "calls": calls}))
        return self.open[batch.name]

    def end(self, step: Literal["collected", "dropped"], batch: Batch, unanswered: Sequence[str] = ()) -> None:
        """Write down that nothing more will come of a batch."""
        self._write(self._line(step, batch).model_copy(update={"calls": tuple(unanswered)}))

    def of(self, provider: ProviderName) -> list[Batch]:
        """The provider's batches of which something may still come."""
        return [batch for batch in self.open.values() if batch.provider == provider]

    def next_name(self, run_id: str, provider: ProviderName, digest: str) -> str:
        """The name of the provider's next batch; a ledger that was cut off gives the same name to the same batch."""
        return f"{_run_prefix(run_id)}{self.planned[provider] + 1}-{digest[:_DIGITS_OF_NAME]}"

    def _line(self, step: Literal["created", "found", "collected", "dropped"], batch: Batch) -> LedgerLine:
        """A line about the batch, of now."""
        return LedgerLine(step=step, name=batch.name, provider=batch.provider, timestamp=time_now())

    def _write(self, line: LedgerLine) -> None:
        """Append the line; it is on the disk when this returns."""
        append_line(self.path, line.model_dump_json(exclude_defaults=True))
        self._take(line)

    def _take(self, line: LedgerLine) -> None:
        """Know what the line says."""
        _follow(self.open, line)
        self.planned[line.provider] += line.step == "planned"
        if line.batch_id:
            self.batch_ids.add(line.batch_id)


def _run_prefix(run_id: str) -> str:
    """What the names of all batches of a run begin with."""
    return f"citejury-{run_id}-"


def open_batches(out: Path) -> list[Batch]:
    """The batches of a run folder of which something may still come; nothing is touched.

    Raises:
        OutputError: a line before the last is not one of ours.
    """
    batches: dict[str, Batch] = {}
    for line, _ in read_lines(out / LEDGER, LedgerLine, _ADVICE):
        _follow(batches, line)
    return list(batches.values())


def token_shares(out: Path) -> dict[str, float]:
    """Which share of their price the tokens of calls cost that batches answered, by `answer_id`.

    Raises:
        OutputError: a line before the last is not one of ours.
    """
    calls: dict[str, tuple[str, ...]] = {}
    shares: dict[str, float] = {}
    for line, _ in read_lines(out / LEDGER, LedgerLine, _ADVICE):
        if line.step in ("planned", "found"):
            calls[line.name] = line.calls or calls.get(line.name, ())
            shares.update(dict.fromkeys(line.calls, get_provider(line.provider).batch_token_price))
        elif line.step in ("collected", "dropped"):
            unanswered = calls.pop(line.name, ()) if line.step == "dropped" else line.calls
            for answer_id in unanswered:
                shares.pop(answer_id, None)
    return shares


def refuse_open_batches(out: Path, providers: Iterable[ProviderName]) -> None:
    """Refuse to ask providers one by one for what batches under way may answer.

    Raises:
        InputError: a batch of one of the providers is open.
        OutputError: the ledger is damaged.
    """
    asked = set(providers)
    counts = Counter(batch.provider for batch in open_batches(out) if batch.provider in asked)
    if counts:
        told = ", ".join(f"{count} at {provider}" for provider, count in counts.items())
        raise InputError(
            f"{str(out)!r} has batches under way ({told}), whose calls would be paid twice. Collect them with the same "
            "command and `--batch`, or end them with `--batch-cancel`."
        )


def _follow(batches: dict[str, Batch], line: LedgerLine) -> None:
    """Take one line into the batches that are open."""
    if line.step == "planned":
        batches[line.name] = Batch(
            line.name, line.provider, line.timestamp, "", line.model, line.said, calls=line.calls
        )
    elif line.step in ("collected", "dropped"):
        batches.pop(line.name, None)
    else:
        batch = batches.get(line.name) or Batch(line.name, line.provider, line.timestamp)
        batches[line.name] = batch._replace(batch_id=line.batch_id, calls=line.calls or batch.calls)


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
        if state.name.startswith(_run_prefix(self.run.manifest.run_id)):
            return self._unknown(state.name, state)
        return None

    def _by_result(self, state: BatchState, first: str, left: dict[str, Batch], ids: Set[str]) -> Batch | None:
        """The batch with this custom id, which is lost no longer; None where the id is of another run."""
        name = next((name for name, batch in left.items() if first in batch.calls), "")
        if name:
            return self.ledger.note("created", left.pop(name), state.batch_id)
        return (
            self._unknown(f"{_run_prefix(self.run.manifest.run_id)}{state.batch_id}", state) if first in ids else None
        )

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

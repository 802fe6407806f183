"""The ledger of a run's batches: what was to be sent stands in it before it is sent, and nothing in it ever changes.

Source: pipeline/contracts/run_folder.md#batches.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field

from pipeline.core.errors import InputError
from pipeline.core.files import append_line, cut_off, read_records, time_now
from pipeline.core.schema import Frozen, ProviderName
from pipeline.providers import get_provider

LEDGER = "batches.jsonl"
Step = Literal["planned", "created", "found", "collected", "dropped"]
_ADVICE = (
    "a line of a run's batches, and what is paid for may stand there. Nothing was sent. Give the file back as it was; "
    "if that cannot be, remove the line: batches that the ledger does not name are looked for at the provider."
)


class LedgerLine(Frozen):
    """One step of one batch."""

    step: Step
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

    def __init__(self, out: Path, mend: bool = True) -> None:
        """Read the ledger; to `mend` is to cut off a torn last line."""
        self.path = out / LEDGER
        self.open: dict[str, Batch] = {}
        self.batch_ids: set[str] = set()
        self.planned: Counter[ProviderName] = Counter()
        end = 0
        for line, place in read_records(self.path, LedgerLine, _ADVICE):
            self._take(line)
            end = place.end
        self.torn = mend and cut_off(self.path, end)

    def plan(self, batch: Batch) -> None:
        self._write("planned", batch, batch.planned, model=batch.model, said=batch.said, calls=batch.calls)

    def note(self, step: Literal["created", "found"], batch: Batch, batch_id: str) -> Batch:
        """Write down the provider's name of a batch, and give the batch as it is now."""
        calls = batch.calls if step == "found" else ()
        self._write(step, batch, batch_id=batch_id, calls=calls)
        return self.open[batch.name]

    def end(self, step: Literal["collected", "dropped"], batch: Batch, unanswered: Sequence[str] = ()) -> None:
        self._write(step, batch, calls=tuple(unanswered))

    def of(self, provider: ProviderName) -> list[Batch]:
        """The provider's batches of which something may still come."""
        return [batch for batch in self.open.values() if batch.provider == provider]

    def next_name(self, run_id: str, provider: ProviderName, digest: str) -> str:
        """The name of the provider's next batch; a ledger that was cut off gives the same name to the same batch."""
        return f"{run_prefix(run_id)}{self.planned[provider] + 1}-{digest[:12]}"

    def _write(self, step: Step, batch: Batch, timestamp: str = "", **fields: Any) -> None:
        timestamp = timestamp or time_now()
        line = LedgerLine(step=step, name=batch.name, provider=batch.provider, timestamp=timestamp, **fields)
        append_line(self.path, line.model_dump_json(exclude_defaults=True))
        self._take(line)

    def _take(self, line: LedgerLine) -> None:
        self.planned[line.provider] += line.step == "planned"
        if line.batch_id:
            self.batch_ids.add(line.batch_id)
        if line.step == "planned":
            self.open[line.name] = Batch(
                line.name, line.provider, line.timestamp, "", line.model, line.said, calls=line.calls
            )
        elif line.step in ("collected", "dropped"):
            self.open.pop(line.name, None)
        else:
            batch = self.open.get(line.name) or Batch(line.name, line.provider, line.timestamp)
            self.open[line.name] = batch._replace(batch_id=line.batch_id, calls=line.calls or batch.calls)


def run_prefix(run_id: str) -> str:
    return f"citejury-{run_id}-"


def open_batches(out: Path) -> list[Batch]:
    """The batches of a run folder of which something may still come; nothing is touched."""
    return list(Ledger(out, mend=False).open.values())


def token_shares(out: Path) -> dict[str, float]:
    """Which share of their price the tokens of calls cost that batches answered, by `answer_id`."""
    calls: dict[str, tuple[str, ...]] = {}
    shares: dict[str, float] = {}
    for line, _ in read_records(out / LEDGER, LedgerLine, _ADVICE):
        if line.step in ("planned", "found"):
            calls[line.name] = line.calls or calls.get(line.name, ())
            shares.update(dict.fromkeys(line.calls, get_provider(line.provider).batch_token_price))
        elif line.step in ("collected", "dropped"):
            unanswered = calls.pop(line.name, ()) if line.step == "dropped" else line.calls
            for answer_id in unanswered:
                shares.pop(answer_id, None)
    return shares


def refuse_open_batches(out: Path, providers: Iterable[ProviderName]) -> None:
    """Refuse to ask providers one by one for what batches under way may answer."""
    asked = set(providers)
    counts = Counter(batch.provider for batch in open_batches(out) if batch.provider in asked)
    if counts:
        told = ", ".join(f"{count} at {provider}" for provider, count in counts.items())
        raise InputError(
            f"{str(out)!r} has batches under way ({told}), whose calls would be paid twice. Collect them with the same "
            "command and `--batch`, or end them with `--batch-cancel`."
        )


def _follow(batches: dict[str, Batch], line: LedgerLine) -> None:
    if line.step == "planned":
        batches[line.name] = Batch(
            line.name, line.provider, line.timestamp, "", line.model, line.said, calls=line.calls
        )
    elif line.step in ("collected", "dropped"):
        batches.pop(line.name, None)
    else:
        batch = batches.get(line.name) or Batch(line.name, line.provider, line.timestamp)
        batches[line.name] = batch._replace(batch_id=line.batch_id, calls=line.calls or batch.calls)

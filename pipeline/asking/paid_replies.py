"""What was paid for and is in no answer: replies that cannot be read, bodies of paused turns, batches under way.

All are kept in files with a record a line that are only added to; a kill may have torn the last line. What is to be
sent in a batch stands in the ledger before it is sent.

Source: pipeline/contracts/run_folder.md#bad-responses, pipeline/contracts/run_folder.md#paused-turns,
pipeline/contracts/run_folder.md#batches.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from pipeline.asking.index import read_index
from pipeline.asking.questions import Call, Reply
from pipeline.core.errors import InputError, ProviderError
from pipeline.core.files import Place, append_line, cut_off, read_at, read_records, staged_file, time_now
from pipeline.core.prompts import text_digest
from pipeline.core.schema import PROVIDERS, Frozen, Price, ProviderName
from pipeline.core.terminal import counted
from pipeline.csv.file import answers_file
from pipeline.providers import every_provider, get_provider
from pipeline.providers.cost import Usage, batch_price, price_of
from pipeline.providers.http.request import as_object, as_text, load_body, writable

_ADVICE = "a reply of a run. Nothing was sent. Give the file back as it was; without the line its call is asked again."


class BadResponse(Frozen):
    """A reply that came with a success and cannot be read: a line of `bad_responses.jsonl`."""

    answer_id: str
    """The id that the call's answer would have."""
    provider: ProviderName
    """The provider asked."""
    narrative_id: str
    """Id of the narrative."""
    model: str
    """The model asked for."""
    status: int | None
    """HTTP status; null where there is none."""
    attempts: int
    """How many requests were made for it."""
    timestamp: str
    """When the request was made: ISO 8601, UTC."""
    fault: str = ""
    """Why `body` is not the whole body; empty where it is."""
    body: str
    """The body as it was sent, without the key; one that cannot be unpacked has a letter of Latin-1 for each byte."""
    batch: str = ""
    """The name of the batch that it came in; empty where it came in none, and in folders of earlier versions."""
    counted_as: ClassVar = "bad_replies"

    @classmethod
    def of(cls, call: Call, reply: Reply, timestamp: str) -> "BadResponse":
        return cls(
            answer_id=call.answer_id,
            provider=call.provider,
            narrative_id=call.narrative.narrative_id,
            model=reply.model,
            status=reply.status,
            attempts=reply.attempts,
            timestamp=timestamp,
            fault=reply.fault,
            body=str(writable(reply.text)),
            batch=reply.batch,
        )

    def reply(self) -> Reply:
        return Reply(self.body, self.status, self.model, self.attempts, self.fault, is_paid=True, batch=self.batch)

    def usage(self) -> Usage:
        """What the body, of a paused turn the last one, says that it took; nothing where it cannot be read either."""
        try:
            body = load_body(self.body)
        except ProviderError:
            return Usage()
        return get_provider(self.provider).usage(body[-1] if isinstance(body, list) and body else body)

    def bill(self, prices: Mapping[str, Price]) -> tuple[Usage, Price | None]:
        share = get_provider(self.provider).batch_token_price if self.batch else None
        return self.usage(), batch_price(price_of(prices, self.model), share)


class BadResponses:
    """The replies of a run folder that cannot be read; who mends them is the only one that writes to it."""

    def __init__(self, out: Path, mend: bool = True) -> None:
        """Find the calls that have one, the latest of each; to `mend` is to cut off a torn last line."""
        self.path = out / BAD_RESPONSES
        self.places: dict[str, Place] = {}
        for response, place in read_records(self.path, BadResponse, _ADVICE, mend):
            self.places[response.answer_id] = place

    def find(self, answer_id: str) -> BadResponse | None:
        place = self.places.get(answer_id)
        return BadResponse.model_validate_json(read_at(self.path, place)) if place else None


def _paid_in_vain(out: Path) -> Iterator[BadResponse]:
    """Each reply that was paid for and is no answer; one that became an answer later is counted there."""
    kept = BadResponses(out, mend=False).places
    files = [answers_file(out, provider) for provider in PROVIDERS] if kept else []
    lines = (line for file in files if file.is_file() for line in read_index(file))
    answers = {line.answer_id: line.body for line in lines if line.answer_id in kept}
    for response, _ in read_records(out / BAD_RESPONSES, BadResponse, _ADVICE):
        if answers.get(response.answer_id) != text_digest(response.body):
            yield response


PAUSED = "paused.jsonl"
# The file does not say whose a turn is, so only one provider may pause.
PAUSING: ProviderName = next(provider.name for provider in every_provider() if provider.continue_turn)
_ONE_BY_ONE = "asked "
_PAUSED_ADVICE = (
    "a body of a paused turn. Nothing was sent. Give the file back as it was; without the line its call is asked from "
    "the beginning."
)


class PausedLine(Frozen):
    """One body of a turn that is not finished, or that was begun anew."""

    answer_id: str
    """The call that it belongs to."""
    batch: str
    """The name of the batch that it came in; `asked 2` for the second body of a turn that was not asked in batches."""
    text: str
    """The body as it was sent."""
    digest: str = ""
    """SHA-256 of what the user said of the call when the turn began; empty in folders of earlier versions."""
    model: str = ""
    """The model asked for; empty in folders of earlier versions."""
    unused: bool = False
    """Whether the turn was begun anew, so that no answer holds the body."""

    counted_as: ClassVar = "paused_bodies"
    provider: ClassVar = PAUSING

    def bill(self, prices: Mapping[str, Price]) -> tuple[Usage, Price | None]:
        body = load_body(self.text)
        provider = get_provider(PAUSING)
        share = None if self.batch.startswith(_ONE_BY_ONE) else provider.batch_token_price
        price = price_of(prices, as_text(as_object(body).get("model")), self.model)
        return provider.usage(body), batch_price(price, share)


class PausedTurns:
    """The paused turns of a run folder; who mends them is the only one that writes to it."""

    def __init__(self, out: Path, mend: bool = True) -> None:
        """To `mend` is to cut off a torn last line, whose batch is collected again."""
        self.path = out / PAUSED
        self.begun_anew: dict[str, str] = {}
        self._read(mend)

    def _read(self, mend: bool) -> None:
        self.places: dict[str, dict[str, Place]] = {}
        self.begun_by: dict[str, str] = {}
        self.unused: list[Place] = []
        for line, place in read_records(self.path, PausedLine, _PAUSED_ADVICE, mend):
            self._take(line, place)

    def _take(self, line: PausedLine, place: Place) -> None:
        """Know the line; other words than before begin the turn anew, an unused one says so of a body that was kept."""
        if line.unused:
            self.unused.append(place)
            turn = self.places.get(line.answer_id, {})
            if turn.pop(line.batch, None) and not turn:
                self._end(line.answer_id)
            return
        if line.digest and self.begun_by.get(line.answer_id, line.digest) != line.digest:
            self._end(line.answer_id)
        self.places.setdefault(line.answer_id, {})[line.batch] = place
        if line.digest:
            self.begun_by[line.answer_id] = line.digest

    def _end(self, answer_id: str) -> None:
        self.unused += self.places.pop(answer_id).values()
        self.begun_by.pop(answer_id, None)

    def bodies(self, answer_id: str, digest: str, but: str = "") -> list[str]:
        """The bodies of a call's turn `but` for one batch's; none where it began with words of another `digest`."""
        if self.begun_by.get(answer_id, digest) != digest:
            self.begun_anew[answer_id] = digest
            return []
        places = [place for batch, place in self.places.get(answer_id, {}).items() if batch != but]
        return [self.line(place).text for place in places]

    def line(self, place: Place) -> PausedLine:
        return PausedLine.model_validate_json(read_at(self.path, place))

    def keep(self, line: PausedLine) -> PausedLine | None:
        """Add the body, numbered where it came in no batch, and give its line; None where its batch had it."""
        if line.batch in self.places.get(line.answer_id, {}):
            return None
        if self.begun_by.get(line.answer_id, line.digest) != line.digest:
            self._end(line.answer_id)
        number = len(self.places.get(line.answer_id, {})) + 1
        line = line.model_copy(update={"batch": line.batch or f"{_ONE_BY_ONE}{number}"})
        self._take(line, append_line(self.path, line.model_dump_json()))
        return line

    def give_up(self, answer_id: str) -> None:
        """Write down of a turn that was begun anew that no answer will hold what it had brought before."""
        begun_by = self.begun_by.get(answer_id)
        if self.begun_anew.get(answer_id, begun_by) == begun_by:
            return
        for place in list(self.places[answer_id].values()):
            line = self.line(place).model_copy(update={"unused": True})
            self._take(line, append_line(self.path, line.model_dump_json()))

    def told_anew(self) -> list[str]:
        if not self.begun_anew:
            return []
        turns = counted(len(self.begun_anew), "paused turn")
        ending = "what had been brought by then is paid for and not used."
        return [f"{PAUSING}: {turns} begun anew, for the model, the options or the prompt are others now; {ending}"]

    def forget(self, answered: Collection[str]) -> None:
        """Drop the bodies that answers hold by now; without any left the file goes. Those of no answer stay."""
        ended = [answer_id for answer_id in self.places if answer_id in answered]
        if not ended:
            return
        for answer_id in ended:
            self.places.pop(answer_id)
        left = [place for turn in self.places.values() for place in turn.values()]
        if left or self.unused:
            with staged_file(self.path) as new:
                for place in self.unused:
                    line = self.line(place).model_copy(update={"unused": True})
                    new.write(f"{line.model_dump_json()}\n".encode())
                for place in left:
                    new.write(read_at(self.path, place))
        else:
            self.path.unlink()
        self._read(mend=True)


def _unused_bodies(out: Path) -> Iterator[PausedLine]:
    """Each body of a paused turn that was paid for and that no answer holds, or none yet. The indexes are in step."""
    if not (out / PAUSED).is_file():
        return
    path = answers_file(out, PAUSING)
    answered = {line.answer_id for line in read_index(path)} if path.is_file() else set()
    turns = PausedTurns(out, mend=False)
    going_on = [
        place for answer_id, turn in turns.places.items() if answer_id not in answered for place in turn.values()
    ]
    yield from map(turns.line, [*turns.unused, *going_on])


def of_no_answer(out: Path) -> Iterator[BadResponse | PausedLine]:
    """All that was paid for and that no answer holds. The indexes are in step."""
    yield from _paid_in_vain(out)
    yield from _unused_bodies(out)


BAD_RESPONSES = "bad_responses.jsonl"


LEDGER = "batches.jsonl"
Step = Literal["planned", "created", "found", "collected", "dropped"]
_LEDGER_ADVICE = (
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
        for line, place in read_records(self.path, LedgerLine, _LEDGER_ADVICE):
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
    for line, _ in read_records(out / LEDGER, LedgerLine, _LEDGER_ADVICE):
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
        advice = "Collect them with the same command and `--batch`, or end them with `--batch-cancel`."
        raise InputError(f"{str(out)!r} has batches under way ({told}), whose calls would be paid twice. {advice}")

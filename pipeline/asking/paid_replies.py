"""What was paid for and is in no answer: replies that cannot be read, and bodies of turns that a provider paused.

Both are kept in files with a record a line that are only added to; a kill may have torn the last line.

Source: pipeline/contracts/run_folder.md#bad-responses, pipeline/contracts/run_folder.md#paused-turns.
"""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from pipeline.asking.index import read_index
from pipeline.asking.questions import Call, Reply
from pipeline.core.errors import ProviderError
from pipeline.core.files import Place, append_line, cut_off, read_at, read_records, staged_file
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
        share = get_provider(self.provider).batch_token_price if self.batch else 1.0
        return self.usage(), batch_price(price_of(prices, self.model), share)


class BadResponses:
    """The replies of a run folder that cannot be read; who mends them is the only one that writes to it."""

    def __init__(self, out: Path, mend: bool = True) -> None:
        """Find the calls that have one, the latest of each; to `mend` is to cut off a torn last line."""
        self.path = out / BAD_RESPONSES
        self.places: dict[str, Place] = {}
        end = 0
        for response, place in read_records(self.path, BadResponse, _ADVICE):
            self.places[response.answer_id] = place
            end = place.end
        if mend:
            cut_off(self.path, end)

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
        share = 1.0 if self.batch.startswith(_ONE_BY_ONE) else provider.batch_token_price
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
        end = 0
        for line, place in read_records(self.path, PausedLine, _PAUSED_ADVICE):
            self._take(line, place)
            end = place.end
        if mend:
            cut_off(self.path, end)

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
        return [
            f"{PAUSING}: {turns} begun anew, for the model, the options or the prompt are others now; what had been "
            "brought by then is paid for and not used."
        ]

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

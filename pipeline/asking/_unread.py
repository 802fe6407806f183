"""Replies that were paid for and cannot be read: kept with their bodies, and not asked for again by themselves.

Source: pipeline/contracts/run_folder.md#bad-responses.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from pipeline.asking._lines import Place, append_line, cut_torn, read_at, read_lines
from pipeline.asking.index import read_index
from pipeline.asking.questions import Call, Reply
from pipeline.asking.run_folder import BAD_RESPONSES, csv_file
from pipeline.errors import ProviderError
from pipeline.prompts import text_digest
from pipeline.providers import get_provider
from pipeline.providers.cost import Usage, batch_price, price_of
from pipeline.providers.http.body import load_body, writable
from pipeline.schema import PROVIDERS, Frozen, Price, ProviderName

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

    @classmethod
    def of(cls, call: Call, reply: Reply, timestamp: str) -> "BadResponse":
        """The reply to a call that was put at this time."""
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
        """The reply as it came."""
        return Reply(self.body, self.status, self.model, self.attempts, self.fault, is_paid=True, batch=self.batch)

    def usage(self) -> Usage:
        """What the body states that it took; nothing where that cannot be read either.

        Of a turn that was paused that is its last body: those before it are counted as what they are.
        """
        try:
            body = load_body(self.body)
        except ProviderError:
            return Usage()
        return get_provider(self.provider).usage(body[-1] if isinstance(body, list) and body else body)

    def bill(self, prices: Mapping[str, Price]) -> tuple[Usage, Price | None]:
        """What the body states that it took, and its price."""
        share = get_provider(self.provider).batch_token_price if self.batch else 1.0
        return self.usage(), batch_price(price_of(prices, self.model), share)


class BadResponses:
    """The replies of a run folder that cannot be read; who mends them is the only one that writes to it."""

    def __init__(self, out: Path, mend: bool = True) -> None:
        """Find the calls that have one, the latest of each; to `mend` is to cut off a last line that a kill has torn.

        Raises:
            OutputError: a line before the last is not one of ours.
        """
        self.path = out / BAD_RESPONSES
        self.places: dict[str, Place] = {}
        end = 0
        for response, place in read_lines(self.path, BadResponse, _ADVICE):
            self.places[response.answer_id] = place
            end = place.end
        if mend:
            cut_torn(self.path, end)

    def find(self, answer_id: str) -> BadResponse | None:
        """The reply to the call of this id; None where there is none."""
        place = self.places.get(answer_id)
        return BadResponse.model_validate_json(read_at(self.path, place)) if place else None


def paid_in_vain(out: Path) -> Iterator[BadResponse]:
    """Each reply of the folder that was paid for and is no answer, also where its call was put again.

    One that a mended reader has made an answer of is left out: it is counted there. The indexes are in step.

    Raises:
        OutputError: a line before the last is not one of ours.
    """
    kept = BadResponses(out, mend=False).places
    files = [csv_file(out, provider) for provider in PROVIDERS] if kept else []
    lines = (line for file in files if file.is_file() for line in read_index(file))
    answers = {line.answer_id: line.body for line in lines if line.answer_id in kept}
    for response, _ in read_lines(out / BAD_RESPONSES, BadResponse, _ADVICE):
        if answers.get(response.answer_id) != text_digest(response.body):
            yield response


def keep_bad_response(out: Path, response: BadResponse) -> None:
    """Append the reply; it is on the disk when this returns."""
    append_line(out / BAD_RESPONSES, response.model_dump_json())

"""Replies that were paid for and cannot be read: kept with their bodies, and not asked for again by themselves.

Source: pipeline/contracts/run_folder.md#bad-responses.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from pipeline.asking.index import read_index
from pipeline.asking.questions import Call, Reply
from pipeline.asking.run_folder import BAD_RESPONSES, csv_file
from pipeline.errors import OutputError, ProviderError
from pipeline.prompts import text_digest
from pipeline.providers.body import load_body, writable
from pipeline.providers.cost import Usage, usage_of
from pipeline.schema import PROVIDERS, Frozen, ProviderName


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
        )

    def reply(self) -> Reply:
        """The reply as it came."""
        return Reply(self.body, self.status, self.model, self.attempts, self.fault, is_paid=True)

    def usage(self) -> Usage:
        """What the body states that it took; nothing where that cannot be read either.

        Of a turn that was paused that is its last body: those before it are counted as what they are.
        """
        try:
            body = load_body(self.body)
        except ProviderError:
            return Usage()
        return usage_of(body[-1] if isinstance(body, list) and body else body)


class _Place(NamedTuple):
    """Where a line stands in the file: its first byte, and the one after it."""

    start: int
    end: int


class BadResponses:
    """The replies of a run folder that cannot be read; who mends them is the only one that writes to it."""

    def __init__(self, out: Path, mend: bool = True) -> None:
        """Find the calls that have one, the latest of each; to `mend` is to cut off a last line that a kill has torn.

        Raises:
            OutputError: a line before the last is not one of ours.
        """
        self.path = out / BAD_RESPONSES
        self.places: dict[str, _Place] = {}
        if not self.path.is_file():
            return
        end = 0
        with open(self.path, "rb") as file:
            for number, raw in enumerate(file, start=1):
                if not raw.endswith(b"\n"):
                    break
                self.places[self._read(raw, number).answer_id] = _Place(end, end + len(raw))
                end += len(raw)
        if mend and end < self.path.stat().st_size:
            os.truncate(self.path, end)

    def find(self, answer_id: str) -> BadResponse | None:
        """The reply to the call of this id; None where there is none."""
        place = self.places.get(answer_id)
        if place is None:
            return None
        with open(self.path, "rb") as file:
            file.seek(place.start)
            return self._read(file.read(place.end - place.start), 0)

    def every(self) -> Iterator[BadResponse]:
        """All replies in their order, earlier ones to a call that has several included."""
        if self.places:
            with open(self.path, "rb") as file:
                for number, raw in enumerate(file, start=1):
                    if raw.endswith(b"\n"):
                        yield self._read(raw, number)

    def _read(self, raw: bytes, number: int) -> BadResponse:
        """The reply in a line of the file.

        Raises:
            OutputError: it is none.
        """
        try:
            return BadResponse.model_validate_json(raw)
        except ValidationError as error:
            raise OutputError(
                f"`{BAD_RESPONSES}` in {str(self.path.parent)!r}, line {number} is not a reply of a run. Nothing was "
                "sent. Give the file back as it was; without the line its call is asked again."
            ) from error


def paid_in_vain(out: Path) -> Iterator[BadResponse]:
    """Each reply of the folder that was paid for and is no answer, also where its call was put again.

    One that a mended reader has made an answer of is left out: it is counted there. The indexes are in step.

    Raises:
        OutputError: a line before the last is not one of ours.
    """
    kept = BadResponses(out, mend=False)
    files = [csv_file(out, provider) for provider in PROVIDERS] if kept.places else []
    lines = (line for file in files if file.is_file() for line in read_index(file))
    answers = {line.answer_id: line.body for line in lines if line.answer_id in kept.places}
    for response in kept.every():
        if answers.get(response.answer_id) != text_digest(response.body):
            yield response


def keep_bad_response(out: Path, response: BadResponse) -> None:
    """Append the reply; it is on the disk when this returns."""
    with open(out / BAD_RESPONSES, "ab") as file:
        file.write((response.model_dump_json() + "\n").encode())
        file.flush()
        os.fsync(file.fileno())

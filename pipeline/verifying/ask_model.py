"""What the rules leave open in reports is put to a model: each distinct question once, within a budget, and resumably.

Every reply is kept in a file before anything is done with it. A run that was stopped or killed goes on from there.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from pipeline.asking.questions import Limits, Tell
from pipeline.asking.run_state import RunState
from pipeline.models.asking import Model
from pipeline.models.meter import Meter, SpendLimits
from pipeline.models.replies import Replies, open_replies
from pipeline.models.structured import Asker, ChosenModel, Spent, accept_body, spent_of
from pipeline.providers.http.client import ApiClient, RetryPolicy
from pipeline.schema import Price
from pipeline.terminal import stopping_on_signals
from pipeline.verifying.claim import Finding, check_sentence
from pipeline.verifying.model_verdicts import OpenQuestion, ask_verdict, decide, open_question, unanswered
from pipeline.verifying.page_text import PageText
from pipeline.verifying.values import Decided

_GIVE_UP_AFTER = 8
"""Questions in a row that nobody answers, after which nobody is asked any more."""

StopReason = Literal["", "SIGINT", "SIGTERM", "tokens", "cost", "away"]
"""Why the asking ended before its end, or came to nothing; empty where all went well."""
_WHY: Mapping[StopReason, str] = {
    "tokens": "`--max-tokens` is reached",
    "cost": "`--max-cost` is reached",
    "away": "it does not answer",
}
_Cited = tuple[str, Sequence[PageText]]
_Place = tuple[str, tuple[str, ...]]


class _Question(NamedTuple):
    """What identifies a reply: the model, and the digest of all that decides its answer."""

    model: str
    request_sha256: str


class _KeptReplies(NamedTuple):
    """The replies of a model in a file, as `Model` keeps the calls of a run."""

    replies: Replies[_Question]
    model: str

    def get(self, key: str, /) -> list[str] | None:
        """The payloads of the call, the answer last; None where it was never answered."""
        return self.replies.find(_Question(self.model, key)) or None

    def __setitem__(self, key: str, payloads: list[str], /) -> None:
        self.replies.keep(_Question(self.model, key), payloads)

    def spent(self, prices: Mapping[str, Price]) -> Spent:
        """What all of them took."""
        questions = [question for question in self.replies.places if question.model == self.model]
        return spent_of((each for one in questions for each in self.replies.find(one)), self.model, prices)


class Asked(NamedTuple):
    """What came of asking."""

    questions: int
    """Distinct questions that the rules leave open."""
    unusable: int
    """Those whose answer was no use, or had no quote that is there."""
    failed: int
    """Those that nobody answered."""
    failure: str
    """Why the last of these was not; empty where there is none."""
    left: int
    """Those that were not asked."""
    stopped: StopReason
    """Why; empty where none are left. `away` also where every question was asked and the model answered none."""
    spent: Spent
    """What all kept replies of the model took."""


class OpenClaims:
    """Sentences that words leave open: asked about all together, then decided one by one."""

    def __init__(self, chosen: ChosenModel, limits: SpendLimits, at_once: int, prices: Mapping[str, Price]) -> None:
        """Ask this model within these limits, which all of its answers count against, those of earlier starts too."""
        self.chosen = chosen
        self.at_once = at_once
        self.decided: dict[_Place, Decided | None] = {}
        self.unusable = self.failed = self.failed_in_a_row = self.done = 0
        self.failure = ""
        self.state = RunState(Limits(at_once))
        self.meter = Meter(chosen.model, prices, limits, at_once, may_ask=self.goes_on)

    def goes_on(self) -> bool:
        """Whether neither a signal nor a silent server has ended the asking."""
        return not self.state.stopped and self.failed_in_a_row < _GIVE_UP_AFTER

    def stopped(self) -> StopReason:
        """Why nobody is asked any more; empty where that is not so."""
        if self.state.stopped in ("SIGINT", "SIGTERM"):
            return self.state.stopped
        return "away" if not self.goes_on() else self.meter.used_up() or ""

    def ask(self, claims: Iterator[_Cited], path: Path, report: Callable[[int], None], tell: Tell) -> Asked:
        """Ask about the sentences that the rules leave open, each distinct one once; keep replies in the file `path`.

        `report` hears how many sentences are done, `tell` prints a line.

        Raises:
            OutputError: the file holds something else, cannot be written, or is another process's.
            SettingsError: the key cannot be used.
        """
        client = ApiClient(self.chosen.endpoint, RetryPolicy(), self.at_once, accept_body)
        self.state.stop_waiting = client.stop
        with open_replies(path, _Question, "pipeline verify") as replies:
            kept = _KeptReplies(replies, self.chosen.model)
            self.meter.spent = kept.spent(self.meter.prices)
            model = Model(Asker(client, self.chosen, meter=self.meter), kept, self.meter.prices)

            async def work() -> None:
                async with client:
                    await self.ask_all(claims, model, report, tell)

            asyncio.run(work())
            left = sum(each is None for each in self.decided.values())
            nobody_answered = bool(self.failed) and not self.meter.answered
            stopped: StopReason = self.stopped() if left else "away" if nobody_answered else ""
            spent = kept.spent(self.meter.prices)
            return Asked(len(self.decided), self.unusable, self.failed, self.failure, left, stopped, spent)

    async def ask_all(self, claims: Iterator[_Cited], model: Model, report: Callable[[int], None], tell: Tell) -> None:
        """Settle every sentence, unless signals end it at once.

        Raises:
            OSError: a reply cannot be kept; the other calls are given up.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self.at_once):
                    self.state.tasks.append(group.create_task(self.ask_some(claims, model, report)))
                with stopping_on_signals(partial(self.state.stop, tell=tell)):
                    await asyncio.gather(*self.state.tasks, return_exceptions=True)
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None

    async def ask_some(self, claims: Iterator[_Cited], model: Model, report: Callable[[int], None]) -> None:
        """Settle the sentences of the iterator, which several of these share. After a stop only kept replies count."""
        for text, pages in claims:
            place = _place_of(text, pages)
            question = None if place in self.decided else open_question(text, pages, check_sentence(text, pages))
            if question:
                self.decided[place] = None
                self.decided[place] = await self.ask_about(question, model)
            self.done += 1
            report(self.done)
            await asyncio.sleep(0)  # a kept reply is never waited for, and a signal is to be heard all the same

    async def ask_about(self, question: OpenQuestion, model: Model) -> Decided | None:
        """What comes of the question; None where it was not asked."""
        self.state.in_flight += 1
        try:
            said = await ask_verdict(question, model)
        finally:
            self.state.in_flight -= 1
        if said.status == "http_error" and self.stopped():
            return None
        if said.status == "http_error":
            self.failed, self.failure = self.failed + 1, said.error
        self.failed_in_a_row = self.failed_in_a_row + 1 if said.status == "http_error" else 0
        decided = decide(question, said)
        self.unusable += bool(decided.set_aside) and said.status != "http_error"
        return decided

    def decide(self, text: str, pages: Sequence[PageText], finding: Finding) -> Decided:
        """What comes of the sentence: by the model where the rules leave it open, or why it was not asked."""
        place = _place_of(text, pages)
        decided = self.decided.get(place)
        if decided or (place not in self.decided and not open_question(text, pages, finding)):
            return decided or Decided(finding.verdict, "rules", finding.problems)
        return unanswered(finding, f"the model was not asked: {_WHY.get(self.stopped(), 'the run was stopped')}")


def _place_of(text: str, pages: Sequence[PageText]) -> _Place:
    """What identifies a sentence with its pages."""
    return text, tuple(page.url for page in pages)

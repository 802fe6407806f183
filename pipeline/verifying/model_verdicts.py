"""What a model says of one claim and the passages that come nearest to it, as far as its quote bears it out.

The model reads for meaning; whether the quote is there, and whether numbers, dates, names and negations agree, is
checked here. Research and `pipeline verify` ask the same question in the same words and read the answer alike.
`OpenClaims` asks about all that the rules leave open in reports: each distinct question once, within a budget. Every
reply is kept in a file before anything is done with it, and a run that was stopped or killed goes on from there.
"""

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, field_validator, model_validator

from pipeline.asking.questions import Limits, Tell
from pipeline.asking.run_state import RunState
from pipeline.citations.addresses import membership_key
from pipeline.core.schema import Price
from pipeline.core.terminal import run_together
from pipeline.models.asking import TASKS, Meter, Model, Replies, SpendLimits, open_replies
from pipeline.models.completion import Structured
from pipeline.models.evidence import ContextPage, NormalisedContext, validate_and_normalize_evidence
from pipeline.models.structured import Asker, Spent, accept_body, spent_of
from pipeline.providers import ChosenModel
from pipeline.providers.http.client import ApiClient, RetryPolicy, waiting
from pipeline.text.normal_form import normal_form
from pipeline.text.words import STOP_WORDS, TOKEN, SentencePlace, content_words, without_marks, words_and_numbers
from pipeline.verifying.figures import figures_of, in_figures, shown_figure
from pipeline.verifying.page_text import PageText
from pipeline.verifying.rules import Finding, check_sentence, contradiction, denials, stands_on
from pipeline.verifying.values import Decided, Quote

_ELSEWHERE = "the model's quote shares fewer than two words with the sentence"


class VerdictAnswer(BaseModel):
    """What the model answers about one claim."""

    verdict: Literal["supported", "cannot_tell", "not_found", "contradicted"]
    quotes: tuple[str, ...] = ()

    @field_validator("verdict", mode="before")
    @classmethod
    def read_words(cls, verdict: Any) -> Any:
        return verdict.strip().lower().replace(" ", "_") if isinstance(verdict, str) else verdict

    @model_validator(mode="before")
    @classmethod
    def read_single_quote(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        given = value.get("quotes", value.get("quote"))
        return {**value, "quotes": (given,) if isinstance(given, str) else given or ()}


class Passage(NamedTuple):
    page: PageText
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.page.text[self.start : self.end]


class OpenQuestion(NamedTuple):
    text: str
    finding: Finding
    passages: tuple[Passage, ...]  # The stretches that come nearest to it, the best first; at least one


def open_question(text: str, pages: Sequence[PageText], finding: Finding) -> OpenQuestion | None:
    """What to ask about the text; None where the rules decide, or where no passage comes near it."""
    if finding.verdict == "contradicted" or any(stands_on(text, page) is not None for page in pages):
        return None
    passages = _nearest_passages(pages, finding.places)
    return OpenQuestion(text, finding, passages) if passages else None


def _nearest_passages(pages: Sequence[PageText], places: Sequence[SentencePlace]) -> tuple[Passage, ...]:
    found: list[Passage] = []
    for place in places:
        page = pages[place.source]
        start, end = page.spans[place.sentence]
        for sentence in page.around_spans(place.sentence):
            start, end = min(start, sentence[0]), max(end, sentence[1])
        new = Passage(page, start, min(end, start + 2_000))  # what goes on longer is a table or a list
        overlapping = (
            at for at, each in enumerate(found) if each.page is page and each.start < new.end and new.start < each.end
        )
        at = next(overlapping, None)
        if at is None:
            found.append(new)
        else:
            found[at] = Passage(page, min(found[at].start, new.start), max(found[at].end, new.end))
    return tuple(found)


async def ask_verdict(question: OpenQuestion, model: Model) -> Structured[VerdictAnswer]:
    texts = [("CLAIM", question.text)]
    texts += [(f"PASSAGE {number}", each.text) for number, each in enumerate(question.passages, start=1)]
    return await model.answer(TASKS["verdict"], texts, VerdictAnswer.model_json_schema(), VerdictAnswer.model_validate)


def decide(question: OpenQuestion, said: Structured[VerdictAnswer]) -> Decided:
    """What comes of the claim by the model's answer: decided only by quotes that are there and bear it out."""
    finding, answer = question.finding, said.value
    if answer is None:
        return _unanswered(finding, f"the model gave no usable answer: {said.error}")
    if answer.verdict == "not_found":
        return Decided("not_found", "model", ("the model finds nothing of it in the nearest passages",))
    if answer.verdict == "cannot_tell":
        return Decided("cannot_tell", "model", ("the model calls it cannot_tell",))
    quotes = _located(answer.quotes, question.passages)
    if not quotes:
        return _unanswered(finding, f"the model says {answer.verdict}, but its quote stands in no passage")
    if answer.verdict == "contradicted":
        if _is_elsewhere(question.text, quotes):
            return Decided("cannot_tell", "model", (_ELSEWHERE,), quotes)
        return Decided("contradicted", "model", ("the model reads the quoted page as saying otherwise",), quotes)
    problems = _not_borne_out(question, quotes)
    return Decided("cannot_tell" if problems else "supported", "model", problems, quotes)


def _unanswered(finding: Finding, why: str) -> Decided:
    return Decided("cannot_tell", "rules", (why, *finding.problems), set_aside=why)


def _located(snippets: Sequence[str], passages: Sequence[Passage]) -> tuple[Quote, ...]:
    """The quotes that stand word for word in a passage, with their places on its page, at most three.

    One of few words is none, nor is one that begins or ends within a word or number.
    """
    quotes: dict[Quote, None] = {}
    for snippet in snippets:
        for each in passages if len(content_words(snippet)) >= 3 else ():  # fewer stand on any page
            found = quote_in(snippet, each.page.url, each.page.text, each.start, each.end)
            if found and each.page.ends_words((found.start, found.end)):
                quotes[found] = None
                break
    return tuple(quotes)[:3]  # pipeline/contracts/evidence.md#items


def quote_in(snippet: str, url: str, text: str, start: int, end: int, longest: int = 320) -> Quote | None:
    """The quote in a stretch of a page's text, a longer one cut; None where it does not stand there word for word."""
    key = membership_key(url)
    shown = NormalisedContext((ContextPage(url, key, start, end, normal_form(text[start:end])),), frozenset((key,)))
    items = [{"url": url, "snippet": snippet}]
    found = validate_and_normalize_evidence(shown, items, 1, longest, per_page=True).items
    if not found:
        return None
    first, last = found[0].char_start, found[0].char_end
    return Quote(url, text[first:last], first, last)


def _not_borne_out(question: OpenQuestion, quotes: Sequence[Quote]) -> tuple[str, ...]:
    if _is_elsewhere(question.text, quotes):
        return (_ELSEWHERE,)
    pages = {each.page.url: each.page for each in question.passages}
    sentences = [" ".join(pages[each.url].sentences_at((each.start, each.end))) for each in quotes]
    if any(contradiction(question.text, each) for each in sentences):
        return ("the sentence that the model quotes says otherwise",)
    if all((denials(each) - denials(question.text)) % 2 for each in sentences):
        return ("one of the two is negated, the claim or the sentence that the model quotes",)
    return _lacking(question.text, "\n".join(each.text for each in quotes))


def _is_elsewhere(text: str, quotes: Sequence[Quote]) -> bool:
    ours, theirs = (words_and_numbers(each, "")[0] for each in (text, "\n".join(each.text for each in quotes)))
    shared = sum(any(_is_form_of(word, other) for other in theirs) for word in ours)
    return shared < min(2, len(ours))


def _is_form_of(word: str, other: str) -> bool:
    """`weigh` and `weighs`, `study` and `studies`: all but the last letter of the shorter one begins both."""
    stem = max(4, min(len(word), len(other)) - 1)
    return word == other or (len(word) >= stem <= len(other) and word[:stem] == other[:stem])


def _lacking(text: str, quoted: str) -> tuple[str, ...]:
    had, folded = {*figures_of(quoted)}, quoted.casefold()
    figures = [each for each in dict.fromkeys(figures_of(text)) if each not in had]
    # Names are the words with a capital letter that do not begin the text, and katakana words.
    plain = in_figures(without_marks(text)).replace("’", "'")
    capital = (word.casefold().removesuffix("'s") for word in TOKEN.findall(plain)[1:] if word[0].isupper())
    latin = (word for word in capital if len(word) > 1 and word not in STOP_WORDS[""])
    names = dict.fromkeys((*latin, *re.findall("[ァ-ヺー]{3,}", plain)))
    lacking = [each for each in names if each[: max(3, len(each) - 2)] not in folded]  # Libya and Libyan are one
    return (
        *(f"the model's quote lacks the number {shown_figure(each)}" for each in figures),
        *(f"the model's quote lacks the name {each!r}" for each in lacking),
    )


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
    model: str
    request_sha256: str


class _KeptReplies(NamedTuple):
    replies: Replies[_Question]
    model: str

    def get(self, key: str, /) -> list[str] | None:
        return self.replies.find(_Question(self.model, key)) or None

    def __setitem__(self, key: str, payloads: list[str], /) -> None:
        self.replies.keep(_Question(self.model, key), payloads)

    def spent(self, prices: Mapping[str, Price]) -> Spent:
        questions = [question for question in self.replies.places if question.model == self.model]
        return spent_of((each for one in questions for each in self.replies.find(one)), self.model, prices)


class Asked(NamedTuple):
    questions: int  # Distinct questions that the rules leave open
    unusable: int  # Those whose answer was no use, or had no quote that is there
    failed: int
    failure: str
    left: int
    stopped: StopReason
    """Why; empty where none are left. `away` also where every question was asked and the model answered none."""
    spent: Spent


class OpenClaims:
    def __init__(self, chosen: ChosenModel, limits: SpendLimits, at_once: int, prices: Mapping[str, Price]) -> None:
        """All answers count against the limits, those of earlier starts too."""
        self.chosen = chosen
        self.at_once = at_once
        self.decided: dict[_Place, Decided | None] = {}
        self.unusable = self.failed = self.failed_in_a_row = self.done = 0
        self.failure = ""
        self.state = RunState(Limits(at_once))
        self.meter = Meter(chosen.model, prices, limits, at_once, may_ask=self._goes_on)

    def _goes_on(self) -> bool:
        return not self.state.stopped and self.failed_in_a_row < 8

    def _stopped(self) -> StopReason:
        if self.state.stopped in ("SIGINT", "SIGTERM"):
            return self.state.stopped
        return "away" if not self._goes_on() else self.meter.used_up() or ""

    def ask(self, claims: Iterator[_Cited], path: Path, report: Callable[[int], None], tell: Tell) -> Asked:
        """Ask about the sentences that the rules leave open, each distinct one once; keep replies in the file `path`.

        Raises:
            OutputError: the file holds something else, cannot be written, or is another process's.
            SettingsError: the key cannot be used.
        """
        client = ApiClient(self.chosen.endpoint, RetryPolicy(), self.at_once, accept_body, waits=waiting(tell))
        self.state.stop_waiting = client.stop
        with open_replies(path, _Question, "pipeline verify") as replies:
            kept = _KeptReplies(replies, self.chosen.model)
            self.meter.spent = kept.spent(self.meter.prices)
            model = Model(Asker(client, self.chosen, meter=self.meter), kept, self.meter.prices)

            async def ask_all() -> None:
                async with client:
                    workers = (self._ask_some(claims, model, report) for _ in range(self.at_once))
                    await run_together(self.state.tasks, workers, partial(self.state.stop, tell=tell))

            asyncio.run(ask_all())
            left = sum(each is None for each in self.decided.values())
            nobody_answered = bool(self.failed) and not self.meter.answered
            stopped: StopReason = self._stopped() if left else "away" if nobody_answered else ""
            spent = kept.spent(self.meter.prices)
            return Asked(len(self.decided), self.unusable, self.failed, self.failure, left, stopped, spent)

    async def _ask_some(self, claims: Iterator[_Cited], model: Model, report: Callable[[int], None]) -> None:
        """Settle the sentences of the iterator, which several of these share. After a stop only kept replies count."""
        for text, pages in claims:
            place = _place_of(text, pages)
            question = None if place in self.decided else open_question(text, pages, check_sentence(text, pages))
            if question:
                self.decided[place] = None
                self.decided[place] = await self._ask_about(question, model)
            self.done += 1
            report(self.done)
            await asyncio.sleep(0)  # a kept reply is never waited for, and a signal is to be heard all the same

    async def _ask_about(self, question: OpenQuestion, model: Model) -> Decided | None:
        self.state.in_flight += 1
        try:
            said = await ask_verdict(question, model)
        finally:
            self.state.in_flight -= 1
        is_failed = said.status == "http_error"
        if is_failed and self._stopped():
            return None
        if is_failed:
            self.failed, self.failure = self.failed + 1, said.error
        self.failed_in_a_row = self.failed_in_a_row + 1 if is_failed else 0
        decided = decide(question, said)
        self.unusable += bool(decided.set_aside) and not is_failed
        return decided

    def decide(self, text: str, pages: Sequence[PageText], finding: Finding) -> Decided:
        place = _place_of(text, pages)
        decided = self.decided.get(place)
        if decided or (place not in self.decided and not open_question(text, pages, finding)):
            return decided or Decided(finding.verdict, "rules", finding.problems)
        return _unanswered(finding, f"the model was not asked: {_WHY.get(self._stopped(), 'the run was stopped')}")


def _place_of(text: str, pages: Sequence[PageText]) -> _Place:
    return text, tuple(page.url for page in pages)

"""What a model says of one claim and the passages that come nearest to it, as far as its quote bears it out.

The model reads for meaning; whether the quote is there, and whether numbers, dates, names and negations agree, is
checked here. Research and `pipeline verify` ask the same question in the same words and read the answer alike.
"""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator

from pipeline.models.asking import Model
from pipeline.models.completion import Structured
from pipeline.models.evidence import ContextPage, NormalisedContext, validate_and_normalize_evidence
from pipeline.text.coverage import SentencePlace, words_and_numbers
from pipeline.text.normal_form import normal_form
from pipeline.text.urls import membership_key
from pipeline.text.words import STOP_WORDS, TOKEN, content_words, without_marks
from pipeline.verifying._figures import figures_of, in_figures, shown_figure
from pipeline.verifying._rules import contradiction, denials, stands_on
from pipeline.verifying.claim import Finding
from pipeline.verifying.page_text import PageText
from pipeline.verifying.values import Decided, Quote

_LEAST_QUOTED = 3
"""Content words of a quote; fewer stand on any page."""
_LEAST_SHARED = 2
"""Content words of a claim that quotes have which support it; such as order the reader about have none."""
_LEAST_STEM = 4
"""Letters that two forms of a word begin with."""
_ELSEWHERE = "the model's quote shares fewer than two words with the sentence"
_KATAKANA = re.compile("[ァ-ヺー]{3,}")
_MOST_ENDING = 2
"""Letters by which forms of a name differ at the end: Libya and Libyan."""
_LEAST_NAME = 3
_LONGEST_PASSAGE = 2_000
"""Characters of a passage; what goes on longer is a table or a list, and is cut."""
_MOST_QUOTES = 3
"""Quotes that count, the first ones that are there (pipeline/contracts/evidence.md#items)."""
_TASK = (
    "Say whether the passages support the claim. `verdict` is `supported` where they say all of it, `cannot_tell` "
    "where they say a part of it, `contradicted` where they say otherwise, else `not_found`. `quotes` are copied "
    "letter for letter from the passages: the stretches that decide, at most three, each of at most 300 characters; "
    "they hold every number, date and name of a claim that is `supported`. None for `not_found`. Go by the passages "
    "alone, not by what you know."
)


def _plain_word(verdict: Any) -> Any:
    """A verdict as models write it, such as `Not found`, by its name."""
    return verdict.strip().lower().replace(" ", "_") if isinstance(verdict, str) else verdict


class VerdictAnswer(BaseModel):
    """What the model answers about one claim."""

    model_config = ConfigDict(extra="ignore")

    verdict: Annotated[Literal["supported", "cannot_tell", "not_found", "contradicted"], BeforeValidator(_plain_word)]
    quotes: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def read_single_quote(cls, value: Any) -> Any:
        """The answer; one text, or the field `quote`, in the place of quotes is a single one, as models write it."""
        if not isinstance(value, dict):
            return value
        given = value.get("quotes", value.get("quote"))
        return {**value, "quotes": (given,) if isinstance(given, str) else given or ()}


class Passage(NamedTuple):
    """A stretch of a page: `page.text[start:end]`."""

    page: PageText
    start: int
    end: int

    @property
    def text(self) -> str:
        """Its words."""
        return self.page.text[self.start : self.end]


class OpenQuestion(NamedTuple):
    """A claim that the rules leave open, and what a model is shown of the pages that it cites."""

    text: str
    """The claim, one sentence."""
    finding: Finding
    """What the rules find."""
    passages: tuple[Passage, ...]
    """The stretches that come nearest to it, the best first; at least one."""


def open_question(text: str, pages: Sequence[PageText], finding: Finding) -> OpenQuestion | None:
    """What to ask about the text; None where the rules decide, or where no passage comes near it."""
    if finding.verdict == "contradicted" or any(stands_on(text, page) is not None for page in pages):
        return None
    passages = _nearest_passages(pages, finding.places)
    return OpenQuestion(text, finding, passages) if passages else None


def _nearest_passages(pages: Sequence[PageText], places: Sequence[SentencePlace]) -> tuple[Passage, ...]:
    """The sentences in these places with their neighbours, the best first; those that overlap are one."""
    found: list[Passage] = []
    for place in places:
        page = pages[place.source]
        start, end = page.spans[place.sentence]
        for sentence in page.around_spans(place.sentence):
            start, end = min(start, sentence[0]), max(end, sentence[1])
        new = Passage(page, start, min(end, start + _LONGEST_PASSAGE))
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
    """What the model answers, or why there is no answer; never an exception."""
    texts = [("CLAIM", question.text)]
    texts += [(f"PASSAGE {number}", each.text) for number, each in enumerate(question.passages, start=1)]
    return await model.answer(_TASK, texts, VerdictAnswer.model_json_schema(), VerdictAnswer.model_validate)


def decide(question: OpenQuestion, said: Structured[VerdictAnswer]) -> Decided:
    """What comes of the claim by the model's answer, as far as that is borne out.

    Without a quote that is there the model neither supports nor contradicts; with some it supports nothing whose
    numbers, dates, names or negations they have not. An answer that is no use leaves the claim undecided.
    """
    finding, answer = question.finding, said.value
    if answer is None:
        return unanswered(finding, f"the model gave no usable answer: {said.error}")
    if answer.verdict == "not_found":
        return Decided("not_found", "model", ("the model finds nothing of it in the nearest passages",))
    if answer.verdict == "cannot_tell":
        return Decided("cannot_tell", "model", ("the model calls it cannot_tell",))
    quotes = _located(answer.quotes, question.passages)
    if not quotes:
        return unanswered(finding, f"the model says {answer.verdict}, but its quote stands in no passage")
    if answer.verdict == "contradicted":
        if _is_elsewhere(question.text, quotes):
            return Decided("cannot_tell", "model", (_ELSEWHERE,), quotes)
        return Decided("contradicted", "model", ("the model reads the quoted page as saying otherwise",), quotes)
    problems = _not_borne_out(question, quotes)
    return Decided("cannot_tell" if problems else "supported", "model", problems, quotes)


def unanswered(finding: Finding, why: str) -> Decided:
    """What comes of a claim where the model's word is no use."""
    return Decided("cannot_tell", "rules", (why, *finding.problems), set_aside=why)


def _located(snippets: Sequence[str], passages: Sequence[Passage]) -> tuple[Quote, ...]:
    """The quotes that stand word for word in a passage, with their places on its page, at most three.

    One of few words is none, nor is one that begins or ends within a word or number.

    Source: pipeline/contracts/evidence.md#snippets.
    """
    found = (_place_of(each, passages) for each in snippets if len(content_words(each)) >= _LEAST_QUOTED)
    return tuple(dict.fromkeys(each for each in found if each))[:_MOST_QUOTES]


def _place_of(snippet: str, passages: Sequence[Passage]) -> Quote | None:
    """The quote in the first passage that has it; None for none."""
    for each in passages:
        found = quote_in(snippet, each.page.url, each.page.text, each.start, each.end)
        if found and each.page.ends_words((found.start, found.end)):
            return found
    return None


def quote_in(snippet: str, url: str, text: str, start: int, end: int, longest: int = 320) -> Quote | None:
    """The quote in a stretch of a page's text; None where it does not stand there word for word. A longer one is cut.

    Source: pipeline/contracts/evidence.md#snippets.
    """
    key = membership_key(url)
    shown = ContextPage(url, key, start, end, normal_form(text[start:end]))
    context = NormalisedContext((shown,), frozenset((key,)))
    items = [{"url": url, "snippet": snippet}]
    found = validate_and_normalize_evidence(context, items, 1, longest, per_page=True).items
    if not found:
        return None
    first, last = found[0].char_start, found[0].char_end
    return Quote(url, text[first:last], first, last)


def _not_borne_out(question: OpenQuestion, quotes: Sequence[Quote]) -> tuple[str, ...]:
    """Why the quotes do not support the claim although the model says so, in words; empty where nothing speaks so."""
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
    """Whether what is quoted shares too few words with a claim to be about it, in whatever form they stand."""
    ours, theirs = (words_and_numbers(each, "")[0] for each in (text, "\n".join(each.text for each in quotes)))
    shared = sum(any(_is_form_of(word, other) for other in theirs) for word in ours)
    return shared < min(_LEAST_SHARED, len(ours))


def _is_form_of(word: str, other: str) -> bool:
    """Whether two words are likely forms of one: `weigh` and `weighs`, `study` and `studies`.

    All but the last letter of the shorter one begins both, and that is four letters or more.
    """
    stem = max(_LEAST_STEM, min(len(word), len(other)) - 1)
    return word == other or (len(word) >= stem <= len(other) and word[:stem] == other[:stem])


def _lacking(text: str, quoted: str) -> tuple[str, ...]:
    """The numbers, dates and names of a claim that what is quoted has not, in words."""
    had, folded = {*figures_of(quoted)}, quoted.casefold()
    figures = [each for each in dict.fromkeys(figures_of(text)) if each not in had]
    names = [each for each in _names_in(text) if each[: max(_LEAST_NAME, len(each) - _MOST_ENDING)] not in folded]
    return (
        *(f"the model's quote lacks the number {shown_figure(each)}" for each in figures),
        *(f"the model's quote lacks the name {each!r}" for each in names),
    )


def _names_in(text: str) -> list[str]:
    """The words with a capital letter that do not begin the text, and katakana words; in order, in folded case."""
    plain = in_figures(without_marks(text)).replace("’", "'")
    capital = (word.casefold().removesuffix("'s") for word in TOKEN.findall(plain)[1:] if word[0].isupper())
    names = (word for word in capital if len(word) > 1 and word not in STOP_WORDS[""])
    return list(dict.fromkeys((*names, *_KATAKANA.findall(plain))))

"""Claims with the quotes that they rest on: the pages' own sentences, or what a model reads in numbered passages."""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Literal

from pydantic import BaseModel, ConfigDict

from pipeline.errors import ProviderError
from pipeline.models.asking import Model
from pipeline.models.evidence import aggregate_context, validate_and_normalize_evidence
from pipeline.research.stages._answers import MOST_CLAIMS, Answer, Answers
from pipeline.research.stages._passages import ResearchPassage, best_passages, passages_of, readable_pages
from pipeline.research.stages._plan import asked_one_by_one, aspect_of, stands_alone
from pipeline.research.stages._statements import ADDRESS, CITATION_LIKE
from pipeline.research.values import BETWEEN, Plan, plan_language
from pipeline.text import meaning
from pipeline.text.asking import subject_words
from pipeline.text.words import content_words, numbers_in
from pipeline.verifying.values import Claim, Page, Quote

_MODEL_PASSAGES = 10
_MOST_MODEL_CLAIMS = 6
_LONGEST_QUOTE = 600
_LONGEST_CLAIM = 400
_MOST_FIRST = 4
"""Answers that stand in the first section whatever side of the topic they show."""
_LEAST_QUOTED = 3
"""Content words of a quote; fewer stand on any page."""


class ClaimAnswer(BaseModel):
    """One claim as the model gives it."""

    model_config = ConfigDict(extra="ignore")

    passage: int
    quote: str
    claim: str
    type: Literal["fact", "estimate", "opinion"] = "fact"


class ClaimsAnswer(BaseModel):
    """What the model answers about one section."""

    model_config = ConfigDict(extra="ignore")

    claims: list[ClaimAnswer]


async def _claims_of_model(
    plan: Plan, passages: Sequence[ResearchPassage], model: Model, before: Sequence[Claim], wanted: Collection[int]
) -> dict[int, list[Claim]]:
    """The model's claims by section, without ids; a section is missing where it gave no usable answer.

    A section that is not wanted has none.

    Raises:
        ProviderError: it cannot be asked about any section.
    """
    language = plan_language(plan)
    asked = [
        _section_claims(plan, number, best_passages(section, passages, _MODEL_PASSAGES, language), model, before)
        for number, section in enumerate(plan.sections)
        if number in wanted
    ]
    results = await asyncio.gather(*asked, return_exceptions=True)
    found: dict[int, list[Claim]] = {number: [] for number in range(len(plan.sections)) if number not in wanted}
    failures = []
    for number, result in zip(sorted(wanted), results, strict=True):
        if isinstance(result, ProviderError):
            failures.append(result)
        elif isinstance(result, BaseException):
            raise result
        elif result is not None:
            found[number] = result
    if failures and len(failures) == len(results):
        raise failures[0]
    for failure in failures:
        model.note(str(failure))
    return found


async def _section_claims(
    plan: Plan, number: int, passages: Sequence[ResearchPassage], model: Model, before: Sequence[Claim]
) -> list[Claim] | None:
    """The model's claims about one section whose quotes were found; None where its answer is no use.

    It is shown what the other sections ask, and what is known of this one before.

    Raises:
        ProviderError: it cannot be asked.
    """
    if not passages:
        return []
    section = plan.sections[number]
    others = "\n".join(each for each in plan.sections if each != section)
    known = "\n".join(claim.text for claim in before if claim.section == number)
    texts = [("QUESTION", section), ("OTHER QUESTIONS", others or "None."), ("KNOWN ALREADY", known or "Nothing.")]
    texts += [(f"PASSAGE {place} OF {len(passages)}", passage.text) for place, passage in enumerate(passages, start=1)]
    answer = await model.ask(
        _task_words(), texts, ClaimsAnswer.model_json_schema(), ClaimsAnswer.model_validate, f"the section {section!r}"
    )
    if answer is None:
        return None
    located = [_located_claim(each, number, passages) for each in answer.claims]
    lost = located.count(None)
    if lost:
        model.note(
            f"Claims of the model for the section {section!r} that were dropped, for their quotes stand in no passage "
            f"that it was shown or can be no claim: {lost}."
        )
    claims = [claim for claim in located if claim is not None]
    return claims[:_MOST_MODEL_CLAIMS]


def _task_words() -> str:
    """What the model is to do with the passages of one section."""
    return (
        f"Read the numbered passages and write the claims that answer the question. At most {_MOST_MODEL_CLAIMS} "
        "claims, the most important first, from different passages where they can be. What answers one of the other "
        "questions, or says again what is known already, is no claim here; nor are headings, menus, code and "
        "examples of what a program prints. Each claim is one sentence "
        "in the language of the question that stands alone, without pronouns that point elsewhere, and says "
        "nothing that its passage does not say. `passage` is the passage's number. `quote` is copied from that "
        "passage letter for letter, one stretch of at most 300 characters without omissions. Every number and "
        "name in `claim` stands in `quote`. `type` is `fact`, `estimate` for figures that the passage itself "
        "calls uncertain, or `opinion` for what somebody holds. No URL and no citation mark. No claims where the "
        "passages do not answer."
    )


def _located_claim(answer: ClaimAnswer, section: int, passages: Sequence[ResearchPassage]) -> Claim | None:
    """The claim with the place of its quote; None where that stands nowhere, is a heading, or is too short for any.

    A claim with a number that its quote lacks, with an address, a citation mark or too many words gives way to the
    quote's own words.
    """
    text = " ".join(answer.claim.split())
    named = [passages[answer.passage - 1]] if 1 <= answer.passage <= len(passages) else []
    for passage in [*named, *(each for each in passages if each not in named)]:
        quote = _quote_in(passage, answer.quote)
        if quote is None:
            continue
        if " ".join(quote.text.split()) in {heading.text for heading in passage.page.headings}:
            return None
        if not is_fit(text, quote.text):
            text = " ".join(quote.text.split())
            if not is_fit(text, quote.text):
                return None
        return Claim("", text, section, (quote,), answer.type)
    return None


def _quote_in(passage: ResearchPassage, quoted: str) -> Quote | None:
    """The quote with its place in the page; None where the passage does not hold it word for word.

    Source: pipeline/contracts/evidence.md#snippets.
    """
    if len(set(content_words(quoted))) < _LEAST_QUOTED:
        return None
    url = passage.page.url
    context = aggregate_context([(url, passage.text)])
    items = [{"url": url, "snippet": quoted}]
    found = validate_and_normalize_evidence(context, items, 1, _LONGEST_QUOTE, per_page=True).items
    if not found:
        return None
    start = passage.start + found[0].char_start - found[0].page_start
    end = passage.start + found[0].char_end - found[0].page_start
    return Quote(url, passage.page.text[start:end], start, end)


def is_fit(text: str, quote: str) -> bool:
    """Whether a claim says no number that its quote does not, and holds no address and no citation mark."""
    if not 0 < len(text) <= _LONGEST_CLAIM or ADDRESS.search(text) or CITATION_LIKE.search(text):
        return False
    return set(numbers_in(text)) <= set(numbers_in(quote))


async def extract_claims(
    plan: Plan,
    pages: Sequence[Page],
    model: Model | None,
    before: Sequence[Claim] = (),
    shares: Mapping[str, float] | None = None,
    wanted: Collection[int] | None = None,
    read_before: Sequence[Page] = (),
) -> list[Claim]:
    """Claims of all sections in order, with ids that follow on those of the claims `before`, each with its quotes.

    A section has at most 6 of one answer of the model, and without one as many as `_placed` puts there. Pages in
    another language than the plan's are read only where there are no others from the start. A section about which the
    model gives no usable answer gets the pages' own sentences that answer it, of pages `read_before` too, which its
    notes say. `shares` are the shares of all pages, the unread ones too, that hold a word. `wanted` are the sections
    that the model is asked about; None for all.

    Raises:
        ProviderError: the model cannot be asked about any section.
    """
    readable = readable_pages(plan, pages, first=not before)
    sections = range(len(plan.sections)) if wanted is None else wanted
    found = await _claims_of_model(plan, passages_of(readable), model, before, sections) if model else {}
    read = [*readable_pages(plan, read_before, first=False), *readable]
    questions = questions_of(plan)
    answers = Answers(passages_of(read), plan_language(plan), shares, " ".join(dict.fromkeys(questions)))
    for claim in before:
        answers.know(claim.text)
    by_url = {page.url: page for page in pages}
    for number, drafted in found.items():
        found[number] = [_with_relevance(claim, questions[number], answers, by_url) for claim in drafted]
        for claim in drafted:
            answers.know(claim.text)
    asked = {
        question: [number for number, other in enumerate(questions) if other == question and number not in found]
        for question in questions
    }
    near = {question: answers.near(question) for question, those in asked.items() if those}
    for question, own in _told_apart(plan, near, questions).items():
        known = [claim.section for claim in before if claim.section in asked[question]]
        given = answers.give(question, own, MOST_CLAIMS * len(asked[question]) - len(known))
        for answer, number in zip(given, _placed(plan, asked[question], given, known), strict=True):
            found.setdefault(number, []).append(_claim_of(answer, number))
    claims = [claim for _, drafted in sorted(found.items()) for claim in drafted]
    return [claim._replace(id=f"c{at}") for at, claim in enumerate(claims, start=len(before) + 1)]


def _told_apart(plan: Plan, near: Mapping[str, Sequence[Answer]], questions: Sequence[str]) -> dict[str, list[Answer]]:
    """Each question's answers without those that are nearer to another one that the topic asks, beside its others."""
    own = {question for question, section in zip(questions, plan.sections, strict=True) if not aspect_of(section)}
    nearest: dict[tuple[str, int], tuple[float, str]] = {}
    for question in own & near.keys():
        usual = fmean([each.alone for each in near[question]] or [0.0])
        for each in near[question]:
            place = each.statement.page.url, each.statement.start
            nearest[place] = max(nearest.get(place, (-1.0, "")), (each.alone - usual, question))
    return {
        question: [
            each
            for each in those
            if question not in own or nearest[each.statement.page.url, each.statement.start][1] == question
        ]
        for question, those in near.items()
    }


def _placed(plan: Plan, sections: Sequence[int], answers: Sequence[Answer], known: Sequence[int]) -> Iterator[int]:
    """The section in which each answer to their common question stands, in order.

    The one that asks it, or the plan's first where all are sides of the topic, has the best answers and those that show
    no side; of several that ask, the one to whose question the answer is nearer than others are. `known` are the
    sections of the claims that were there before.
    """
    taken = Counter(known)
    language = plan_language(plan)
    asking = [each for each in sections if not aspect_of(plan.sections[each])] or [0]
    signs = {each: aspect.signs for each in sections if (aspect := aspect_of(plan.sections[each]))}
    signs.pop(asking[0], None)
    told = [each.statement.text for each in answers] if len(asking) > 1 else []
    # All are near to a question that names the subject.
    near = [
        (cosines := meaning.cosines(plan.sections[each], told, language)) - cosines.mean() for each in asking if told
    ]
    for at, answer in enumerate(answers):
        text = answer.statement.text
        first = max(range(len(asking)), key=lambda each: near[each][at]) if told else 0
        shown = [each for each in signs if taken[each] < MOST_CLAIMS and signs[each].search(text)]
        number = shown[0] if shown and taken[asking[first]] >= _MOST_FIRST else asking[first]
        taken[number] += 1
        yield number


def words_asked(plan: Plan) -> set[str]:
    """The words of all that the plan asks."""
    return {word.text for section in plan.sections for word in subject_words(section, plan_language(plan))}


def questions_of(plan: Plan) -> list[str]:
    """What each section asks, in order: the topic, or its own question where the topic's are asked one by one."""
    topic = next((_topic_of(each) for each in plan.sections if aspect_of(each)), "")
    own = [each.rstrip("?？") for each in plan.sections if not aspect_of(each)]
    if topic and not asked_one_by_one(own, topic):
        return [topic for _ in plan.sections]
    first = own[0] if own else topic
    asked = {each: each if stands_alone(each) or each == first else f"{each} {first}" for each in own}
    return [topic if aspect_of(each) else asked[each.rstrip("?？")] for each in plan.sections]


def _topic_of(section: str) -> str:
    """The topic of which a section shows one side."""
    return section.rpartition(BETWEEN)[0]


def _claim_of(answer: Answer, section: int) -> Claim:
    """The answer as a claim that still has no id."""
    statement = answer.statement
    quoted = statement.page.text[statement.start : statement.end]
    quotes = [Quote(statement.page.url, quoted, statement.start, statement.end)]
    if entry := statement.entry:
        name = statement.page.text[entry.start : entry.end]
        quotes.append(Quote(statement.page.url, name, entry.start, entry.end))
    return Claim("", statement.text, section, tuple(quotes), relevance=answer.relevance)


def _with_relevance(claim: Claim, question: str, answers: Answers, pages: Mapping[str, Page]) -> Claim:
    """The model's claim with how far its words and the headings above its first quote answer the question."""
    quote = claim.quotes[0]
    return claim._replace(relevance=answers.relevance_of(question, claim.text, pages[quote.url], quote.start))

"""Claims that a model reads in numbered passages, each kept only with a quote that stands there word for word."""

import asyncio
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from pipeline.errors import PayloadError
from pipeline.evidence.context import aggregate_context
from pipeline.evidence.evidence import validate_and_normalize_evidence
from pipeline.research.report_words import plan_language
from pipeline.research.running.model import Model
from pipeline.research.stages.passages import ResearchPassage, best_passages
from pipeline.research.values import Plan
from pipeline.text.words import content_words, numbers_in
from pipeline.verifying.statements import ADDRESS, CITATION_LIKE
from pipeline.verifying.values import Claim, Quote

PASSAGES = 10
MOST_CLAIMS = 6
LONGEST_QUOTE = 600
LONGEST_CLAIM = 400
LEAST_QUOTED = 3
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


async def claims_of_model(plan: Plan, passages: Sequence[ResearchPassage], model: Model) -> dict[int, list[Claim]]:
    """The model's claims by section, without ids; a section is missing where it gave no usable answer.

    Raises:
        PayloadError: it cannot be asked about any section.
    """
    asked = [
        section_claims(plan, number, best_passages(section, passages, PASSAGES, plan_language(plan)), model)
        for number, section in enumerate(plan.sections)
    ]
    results = await asyncio.gather(*asked, return_exceptions=True)
    found: dict[int, list[Claim]] = {}
    failures = []
    for number, result in enumerate(results):
        if isinstance(result, PayloadError):
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


async def section_claims(
    plan: Plan, number: int, passages: Sequence[ResearchPassage], model: Model
) -> list[Claim] | None:
    """The model's claims about one section whose quotes were found; None where its answer is no use.

    Raises:
        PayloadError: it cannot be asked.
    """
    if not passages:
        return []
    section = plan.sections[number]
    texts = [("QUESTION", section)]
    texts += [(f"PASSAGE {place} OF {len(passages)}", passage.text) for place, passage in enumerate(passages, start=1)]
    answer = await model.ask(
        task_words(), texts, ClaimsAnswer.model_json_schema(), ClaimsAnswer.model_validate, f"the section {section!r}"
    )
    if answer is None:
        return None
    located = [located_claim(each, number, passages) for each in answer.claims]
    lost = located.count(None)
    if lost:
        model.note(
            f"Claims of the model for the section {section!r} that were dropped, for their quotes stand in no passage "
            f"that it was shown or can be no claim: {lost}."
        )
    claims = [claim for claim in located if claim is not None]
    return claims[:MOST_CLAIMS]


def task_words() -> str:
    """What the model is to do with the passages of one section."""
    return (
        "Read the numbered passages and write the claims that answer the question. At most "
        f"{MOST_CLAIMS} claims, the most important first, from different passages where they can be. Each claim is one "
        "sentence in the language of the question that stands alone, without pronouns that point elsewhere, and says "
        "nothing that its passage does not say. `passage` is the passage's number. `quote` is copied from that passage "
        "letter for letter, one stretch of at most 300 characters without omissions. Every number and name in `claim` "
        "stands in `quote`. `type` is `fact`, `estimate` for figures that the passage itself calls uncertain, or "
        "`opinion` for what somebody holds. No URL and no citation mark. No claims where the passages do not answer."
    )


def located_claim(answer: ClaimAnswer, section: int, passages: Sequence[ResearchPassage]) -> Claim | None:
    """The claim with the place of its quote; None where the quote stands nowhere, or is too short to say anything.

    A claim with a number that its quote lacks, with an address, a citation mark or too many words gives way to the
    quote's own words.
    """
    text = " ".join(answer.claim.split())
    named = [passages[answer.passage - 1]] if 1 <= answer.passage <= len(passages) else []
    for passage in [*named, *(each for each in passages if each not in named)]:
        quote = quote_in(passage, answer.quote)
        if quote is None:
            continue
        if not is_fit(text, quote.text):
            text = " ".join(quote.text.split())
            if not is_fit(text, quote.text):
                return None
        return Claim("", text, section, (quote,), answer.type)
    return None


def quote_in(passage: ResearchPassage, quoted: str) -> Quote | None:
    """The quote with its place in the page; None where the passage does not hold it word for word (seed 002)."""
    if len(set(content_words(quoted))) < LEAST_QUOTED:
        return None
    url = passage.page.url
    context = aggregate_context([(url, passage.text)])
    items = [{"url": url, "snippet": quoted}]
    found = validate_and_normalize_evidence(context, items, 1, LONGEST_QUOTE, per_page=True).items
    if not found:
        return None
    start = passage.start + found[0].char_start - found[0].page_start
    end = passage.start + found[0].char_end - found[0].page_start
    return Quote(url, passage.page.text[start:end], start, end)


def is_fit(text: str, quote: str) -> bool:
    """Whether a claim says no number that its quote does not, and holds no address and no citation mark."""
    if not 0 < len(text) <= LONGEST_CLAIM or ADDRESS.search(text) or CITATION_LIKE.search(text):
        return False
    return set(numbers_in(text)) <= set(numbers_in(quote))

"""Claims with the quotes that they rest on: the pages' own sentences, or what a model reads in numbered passages."""

import re
from collections.abc import Collection, Sequence
from itertools import islice
from typing import Literal

from pydantic import BaseModel, ConfigDict

from pipeline.models.asking import Model
from pipeline.research.stages._passages import Passage, best_passages, passages_of, readable_pages
from pipeline.research.stages._reading_list import claims_of, reading_list
from pipeline.research.values import Plan, plan_language
from pipeline.text.normal_form import normalise
from pipeline.text.words import content_words, numbers_in
from pipeline.verifying.model_verdicts import quote_in
from pipeline.verifying.values import Claim, Page, Quote

_MODEL_PASSAGES = 10
_MOST_MODEL_CLAIMS = 6
_LONGEST_QUOTE = 600
_LONGEST_CLAIM = 400
_ENDS = re.compile(r"[.!。！][\"'”’“»›)\]」』）]*$")
"""How a sentence of running text ends; a question states nothing."""
_ADDRESS = re.compile(r"https?:|www\.|\S@\S+\.\w|://", re.IGNORECASE)
_CITATION_LIKE = re.compile(r"[(（]C[0-9]{3}|\[\^|【|\[[0-9]+(?:[-,–][ 0-9]+)*\]", re.IGNORECASE)
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
    plan: Plan, passages: Sequence[Passage], model: Model, before: Sequence[Claim], wanted: Collection[int]
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
    results, failures = await model.ask_all(asked)
    for failure in failures:
        model.note(str(failure))
    found: dict[int, list[Claim]] = {number: [] for number in range(len(plan.sections)) if number not in wanted}
    return found | {number: each for number, each in zip(sorted(wanted), results, strict=True) if each is not None}


async def _section_claims(
    plan: Plan, number: int, passages: Sequence[Passage], model: Model, before: Sequence[Claim]
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


def _located_claim(answer: ClaimAnswer, section: int, passages: Sequence[Passage]) -> Claim | None:
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


def _quote_in(passage: Passage, quoted: str) -> Quote | None:
    """The quote with its place in the page; None where the passage does not hold it, or it is too short."""
    if len(set(content_words(quoted))) < _LEAST_QUOTED:
        return None
    return quote_in(quoted, passage.page.url, passage.page.text, passage.start, passage.end, _LONGEST_QUOTE)


def is_fit(text: str, quote: str) -> bool:
    """Whether a claim says no number that its quote does not, and holds no address and no citation mark."""
    if not 0 < len(text) <= _LONGEST_CLAIM or _ADDRESS.search(text) or _CITATION_LIKE.search(text):
        return False
    return set(numbers_in(text)) <= set(numbers_in(quote))


async def extract_claims(
    plan: Plan,
    pages: Sequence[Page],
    model: Model | None,
    before: Sequence[Claim] = (),
    wanted: Collection[int] | None = None,
    read_before: Sequence[Page] = (),
) -> list[Claim]:
    """Claims of all sections in order, with ids that follow on those of the claims `before`, each with its quotes.

    A section has at most 6. Pages in another language than the plan's are read only where there are no others from the
    start. A section about which the model gives no usable answer, which its notes say, and without a model every one,
    gets sentences of the passages that hold its words, of pages `read_before` too. `wanted` are the sections that the
    model is asked about; None for all.

    Raises:
        ProviderError: the model cannot be asked about any section.
    """
    readable = readable_pages(plan, pages, first=not before)
    sections = range(len(plan.sections)) if wanted is None else wanted
    found = await _claims_of_model(plan, passages_of(readable), model, before, sections) if model else {}
    known = {normalise(claim.text) for claim in before}
    if len(found) < len(plan.sections):
        lists = reading_list(plan, [*readable_pages(plan, read_before, first=False), *readable])
        for number, passages in enumerate(lists):
            if number not in found:
                held = sum(claim.section == number for claim in before)
                new = (each for each in claims_of([passages]) if _is_sentence(each.text, known))
                found[number] = [claim._replace(section=number) for claim in islice(new, _MOST_MODEL_CLAIMS - held)]
    claims = [claim for _, drafted in sorted(found.items()) for claim in drafted]
    return [claim._replace(id=f"c{at}") for at, claim in enumerate(claims, start=len(before) + 1)]


def _is_sentence(text: str, known: set[str]) -> bool:
    """Whether a line of a passage is a sentence that may stand alone, and nothing known says it; it is known then."""
    form = normalise(text)
    if form in known or not _ENDS.search(text) or not is_fit(text, text):
        return False
    known.add(form)
    return True

"""Paragraphs drafted by a model from verified claims by their ids; what the cited pages do not hold is put back."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from pipeline.errors import PayloadError
from pipeline.research.running.model import Model
from pipeline.research.stages.extract_model import is_fit
from pipeline.research.values import Plan
from pipeline.verifying.claim import check_claim
from pipeline.verifying.statements import WITHOUT_BLANKS
from pipeline.verifying.values import Checked, Claim, Page


class SentenceAnswer(BaseModel):
    """One sentence as the model drafts it."""

    model_config = ConfigDict(extra="ignore")

    text: str
    claims: list[str]


class ParagraphAnswer(BaseModel):
    """One paragraph as the model drafts it."""

    model_config = ConfigDict(extra="ignore")

    paragraph: int
    sentences: list[SentenceAnswer]


class SectionAnswer(BaseModel):
    """What the model answers about one section."""

    model_config = ConfigDict(extra="ignore")

    paragraphs: list[ParagraphAnswer]


class Draft(NamedTuple):
    """A paragraph's text, and how many of the model's sentences are not in it."""

    text: str
    refused: int


async def drafted_texts(
    plan: Plan, paragraphs: Sequence[Sequence[Checked]], pages: Sequence[Page], model: Model
) -> dict[int, str]:
    """The text of each paragraph that the model drafted, by its place; of the others nothing.

    Each sentence is one that the pages of its claims support; where the model's is not, the claims' own words stand.

    Raises:
        PayloadError: the model cannot be asked about any section.
    """
    sections: dict[int, list[int]] = {}
    for place, claims in enumerate(paragraphs):
        sections.setdefault(claims[0].claim.section, []).append(place)
    asked = [
        draft_section(plan.sections[section], section, places, paragraphs, model)
        for section, places in sections.items()
    ]
    results = await asyncio.gather(*asked, return_exceptions=True)
    by_url = {page.url: page for page in pages}
    texts: dict[int, str] = {}
    failures, refused = [], 0
    for places, result in zip(sections.values(), results, strict=True):
        if isinstance(result, PayloadError):
            failures.append(result)
        elif isinstance(result, BaseException):
            raise result
        else:
            drafts = {place: checked_draft(answer, paragraphs[place], by_url) for place, answer in result.items()}
            texts |= {place: draft.text for place, draft in drafts.items()}
            refused += sum(draft.refused for draft in drafts.values())
            if len(result) < len(places):
                model.note("Some paragraphs are the sources' own sentences: the model did not draft them.")
    if failures and len(failures) == len(results):
        raise failures[0]
    for failure in failures:
        model.note(str(failure))
    if refused:
        model.note(f"Sentences of the model that went beyond the cited pages, and gave way to the claims: {refused}.")
    return texts


async def draft_section(
    heading: str, section: int, places: Sequence[int], paragraphs: Sequence[Sequence[Checked]], model: Model
) -> dict[int, ParagraphAnswer]:
    """The model's draft of each paragraph of a section, by its place; empty where the answer is no use.

    Raises:
        PayloadError: it cannot be asked.
    """
    texts = [("HEADING", heading)]
    texts += [
        (
            f"CLAIMS OF PARAGRAPH {number}",
            "\n".join(f"{each.claim.id}: {each.claim.text}" for each in paragraphs[place]),
        )
        for number, place in enumerate(places, start=1)
    ]
    answer = await model.ask(
        task_words(),
        texts,
        SectionAnswer.model_json_schema(),
        SectionAnswer.model_validate,
        f"the text of section {section + 1}",
    )
    drafts = answer.paragraphs if answer else []
    return {places[each.paragraph - 1]: each for each in drafts if 1 <= each.paragraph <= len(places)}


def claims_of(paragraph: Sequence[Checked]) -> list[Claim]:
    """The claims of a paragraph."""
    return [checked.claim for checked in paragraph]


def task_words() -> str:
    """What the model is to do with the claims of one section."""
    return (
        "Write the paragraphs of one section of a report from claims that were checked against their sources. Each "
        "paragraph has its own claims; state all of them, and nothing else, in plain sentences that read well one "
        "after the other, in the language of the claims. Keep their words for what they are about, their numbers and "
        "names. `sentences` are the paragraph's sentences in order, `claims` the ids of the claims that a sentence "
        "states. No URL, no citation mark, no Markdown, no number that the claims do not have."
    )


def checked_draft(answer: ParagraphAnswer, claims: Sequence[Checked], pages: Mapping[str, Page]) -> Draft:
    """The paragraph of the sentences that hold, with the own words of every claim that none of them states."""
    left = {each.claim.id: each for each in claims}
    sentences: list[str] = []
    refused = 0
    for drafted in answer.sentences:
        stated = [each for each in claims if each.claim.id in drafted.claims]
        text = " ".join(drafted.text.split())
        if not any(each.claim.id in left for each in stated):
            refused += 1
        elif holds(text, stated, pages):
            sentences.append(text)
            left = {name: each for name, each in left.items() if each not in stated}
        else:
            refused += 1
            sentences += [each.claim.text for each in stated if left.pop(each.claim.id, None)]
    sentences += [each.claim.text for each in left.values()]
    return Draft(("" if WITHOUT_BLANKS.search(sentences[0]) else " ").join(sentences), refused)


def holds(text: str, stated: Sequence[Checked], pages: Mapping[str, Page]) -> bool:
    """Whether every claim's own pages support the sentence, and it has no number or address of its own."""
    quotes = [quote for each in stated for quote in each.claim.quotes]
    words = " ".join([*(each.claim.text for each in stated), *(quote.text for quote in quotes)])
    cited = [pages[url] for url in dict.fromkeys(quote.url for quote in quotes) if url in pages]
    return is_fit(text, words) and bool(cited) and check_claim(text, cited).verdict == "supported"

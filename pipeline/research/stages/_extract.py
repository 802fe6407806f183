"""Claims with the quotes that they rest on: the pages' own sentences, or what a model reads in numbered passages."""

import asyncio
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from pipeline.errors import ProviderError
from pipeline.models.asking import Model
from pipeline.models.evidence import aggregate_context, validate_and_normalize_evidence
from pipeline.research.stages._passages import (
    ADDRESS,
    CITATION_LIKE,
    ResearchPassage,
    best_passages,
    is_in,
    likeness,
    passages_of,
    readable_pages,
    statement_in,
)
from pipeline.research.stages._plan import FIRST_HEADINGS, aspect_of
from pipeline.research.values import BETWEEN, Plan, plan_language
from pipeline.text.sentences import sentence_spans
from pipeline.text.words import ASKS_WITHOUT_BLANKS, content_words, numbers_in
from pipeline.verifying.values import Claim, Page, Quote

_LEAST_COMMON = 5
"""Letters at the beginning that two longer words must share."""
_ENDINGS = 2
"""Letters of a word's end that need not be shared."""
_LEAST_WEIGHT = 0.2
"""What a word weighs that every text has."""
_MOST_RARITY = 1.5
"""What a word's rarity counts at most."""
_NAME_WORTH = 1.0
"""What a name counts beside its rarity."""
_HIRAGANA = re.compile(r"[\u3041-\u3096]")
_WRITTEN_WORD = re.compile(r"[^\W_]+")
_WITHOUT_BLANKS_FROM = "\u3000"
"""Scripts without blanks begin here; their words are pairs of signs, which have no endings."""


class AskedWord(NamedTuple):
    """One word of what is asked."""

    forms: frozenset[str]
    """The words of the texts that differ from it in their endings only, itself among them."""
    weight: float
    """How rare these are in the texts."""


def asked_words(asked: str, language: str, texts: Sequence[frozenset[str]]) -> list[AskedWord]:
    """Each word that is asked, as the texts (their words) have it; of Japanese no pair with an ending or a particle.

    It weighs the logarithm of the number of texts over those that have it, up to a limit: pages are found for the
    topic's own words, so these are the frequent ones, and a rare verb says less. A name weighs more. A word that no
    text has weighs as much as the heaviest of the others: people do not ask in the words of those who answer.
    """
    words = dict.fromkeys(content_words(ASKS_WITHOUT_BLANKS.sub(" ", asked), language))
    plain = [word for word in words if not _HIRAGANA.search(word)] or list(words)
    vocabulary = frozenset[str]().union(*texts)
    names = _names_in(asked, language)
    found: list[AskedWord] = []
    unknown: list[frozenset[str]] = []
    for word in plain:
        forms = frozenset(other for other in vocabulary if _same_stem(word, other)) | {word}
        holding = sum(not forms.isdisjoint(words_of) for words_of in texts)
        if holding:
            rarity = min(_MOST_RARITY, math.log((len(texts) + 1) / (holding + 1)))
            found.append(AskedWord(forms, _LEAST_WEIGHT + rarity + _NAME_WORTH * (word in names)))
        elif word < _WITHOUT_BLANKS_FROM:
            unknown.append(forms)
    heaviest = max((word.weight for word in found), default=_LEAST_WEIGHT)
    return [*found, *(AskedWord(forms, heaviest) for forms in unknown)]


def _names_in(asked: str, language: str) -> frozenset[str]:
    """The words that a capital letter marks, in folded case; the first one only where it has more than one capital.

    In German these are the nouns, the first word among them.
    """
    written = _WRITTEN_WORD.findall(asked)
    return frozenset(
        word.casefold()
        for place, word in enumerate(written)
        if any(letter.isupper() for letter in word[1:]) or (word[:1].isupper() and (place or language == "de"))
    )


def share_of(asked: Sequence[AskedWord], words: frozenset[str]) -> float:
    """The share of the asked words' weight that a text with these words has, from 0 to 1; 0 where nothing is asked."""
    total = sum(word.weight for word in asked)
    return sum(word.weight for word in asked if not word.forms.isdisjoint(words)) / total if total else 0.0


def _same_stem(first: str, second: str) -> bool:
    """Whether two words of letters differ in their endings only: `Paket` and `Paketen`, `verify` and `verification`.

    Words that begin alike for five letters and for all but two of the shorter one count as the same; in shorter ones,
    one must be the beginning of the other. Words of scripts without blanks are never the same unless they are equal.
    """
    if first[:2] != second[:2]:
        return False
    shorter, longer = sorted((first, second), key=len)
    if not (shorter.isalpha() and longer.isalpha()) or shorter >= _WITHOUT_BLANKS_FROM:
        return first == second
    if len(shorter) < _LEAST_COMMON:
        return len(shorter) > _ENDINGS and longer.startswith(shorter) and len(longer) - len(shorter) <= _ENDINGS
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(shorter, longer, strict=False)))
    return common >= max(_LEAST_COMMON, len(shorter) - _ENDINGS)


_MODEL_PASSAGES = 10
_MOST_MODEL_CLAIMS = 6
_LONGEST_QUOTE = 600
_LONGEST_CLAIM = 400
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


async def _claims_of_model(plan: Plan, passages: Sequence[ResearchPassage], model: Model) -> dict[int, list[Claim]]:
    """The model's claims by section, without ids; a section is missing where it gave no usable answer.

    Raises:
        ProviderError: it cannot be asked about any section.
    """
    asked = [
        _section_claims(plan, number, best_passages(section, passages, _MODEL_PASSAGES, plan_language(plan)), model)
        for number, section in enumerate(plan.sections)
    ]
    results = await asyncio.gather(*asked, return_exceptions=True)
    found: dict[int, list[Claim]] = {}
    failures = []
    for number, result in enumerate(results):
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
    plan: Plan, number: int, passages: Sequence[ResearchPassage], model: Model
) -> list[Claim] | None:
    """The model's claims about one section whose quotes were found; None where its answer is no use.

    Raises:
        ProviderError: it cannot be asked.
    """
    if not passages:
        return []
    section = plan.sections[number]
    texts = [("QUESTION", section)]
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
        "claims, the most important first, from different passages where they can be. Each claim is one sentence "
        "in the language of the question that stands alone, without pronouns that point elsewhere, and says "
        "nothing that its passage does not say. `passage` is the passage's number. `quote` is copied from that "
        "passage letter for letter, one stretch of at most 300 characters without omissions. Every number and "
        "name in `claim` stands in `quote`. `type` is `fact`, `estimate` for figures that the passage itself "
        "calls uncertain, or `opinion` for what somebody holds. No URL and no citation mark. No claims where the "
        "passages do not answer."
    )


def _located_claim(answer: ClaimAnswer, section: int, passages: Sequence[ResearchPassage]) -> Claim | None:
    """The claim with the place of its quote; None where the quote stands nowhere, or is too short to say anything.

    A claim with a number that its quote lacks, with an address, a citation mark or too many words gives way to the
    quote's own words.
    """
    text = " ".join(answer.claim.split())
    named = [passages[answer.passage - 1]] if 1 <= answer.passage <= len(passages) else []
    for passage in [*named, *(each for each in passages if each not in named)]:
        quote = _quote_in(passage, answer.quote)
        if quote is None:
            continue
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


_PASSAGES = 24
"""Passages of a section whose sentences are looked at."""
_MOST_CLAIMS = 6
_MOST_OF_A_PAGE = 2
_SAME = 0.8
"""Word-Jaccard from which two statements are the same one (pipeline/contracts/research.md#decisions)."""
_PRONOUN = re.compile(r"\b(?:its?|they|them|their|sie|ihre?[nrms]?|er|es|ihm|ihn|sein\w*)\b|それ|その|它|其", re.I)
_LEAST_SHARE, _LEAST_SHARE_AROUND = 0.2, 0.45
"""Shares of the asked words' weight that a statement must have, and that it or its passage must have."""
_PASSAGE_WORTH = 0.4
_EARLY_WORTH = 0.15
_OPENING_WORTH = 0.15
_OPENING_WORDS = 4
_BEST_LENGTH = range(60, 260)
_LENGTH_WORTH = 0.05
"""What a statement's passage, its place, its first words and its length count beside its own words."""


class _Statement(NamedTuple):
    """A sentence of a page that can stand alone."""

    text: str
    """The sentence in one line, without citation marks."""
    page: Page
    """Its page."""
    start: int
    """First code point of the sentence in the page's text."""
    end: int
    """The code point after the last one."""
    words: frozenset[str]
    """Its content words."""
    score: float = 0.0
    """How much it says of the section."""


async def extract_claims(plan: Plan, pages: Sequence[Page], model: Model | None, start: int) -> list[Claim]:
    """Claims of all sections in order, the first of them `c<start>`: at most 6 a section, each with its quotes.

    Pages in another language than the plan's are read only where there are no others from the start. A section about
    which the model gives no usable answer gets the pages' own sentences, which its notes say.

    Raises:
        ProviderError: the model cannot be asked about any section.
    """
    passages = passages_of(readable_pages(plan, pages, first=start == 1))
    drafts = await _claims_of_model(plan, passages, model) if model else {}
    taken: list[frozenset[str]] = []
    claims: list[Claim] = []
    language = plan_language(plan)
    for number, section in enumerate(plan.sections):
        drafted = drafts.get(number)
        if drafted is None:
            asked = _named_subject(plan, section)
            drafted = [_claim_of(found, number) for found in _section_statements(asked, passages, language, taken)]
        for claim in drafted:
            taken.append(frozenset(content_words(claim.text, language)))
            claims.append(claim._replace(id=f"c{start + len(claims)}"))
    return claims


def _named_subject(plan: Plan, section: str) -> str:
    """The section; with the first one behind it where it only says `it` or `they` of what that one names."""
    if section == plan.sections[0] or aspect_of(section) or not _PRONOUN.search(section):
        return section
    return f"{section} {plan.sections[0]}"


def _claim_of(statement: _Statement, section: int) -> Claim:
    """The statement as a claim that still has no id."""
    quoted = statement.page.text[statement.start : statement.end]
    quote = Quote(statement.page.url, quoted, statement.start, statement.end)
    return Claim("", statement.text, section, (quote,))


def _section_statements(
    section: str, passages: Sequence[ResearchPassage], language: str, taken: Sequence[frozenset[str]]
) -> list[_Statement]:
    """The statements that say most of a section, the best first; none like one that is taken, few of one page."""
    found = list(_scored_statements(section, passages, language))
    found.sort(key=lambda statement: (-statement.score, statement.page.url, statement.start))
    chosen: list[_Statement] = []
    seen = list(taken)
    of_page: Counter[str] = Counter()
    for most_of_a_page in (_MOST_OF_A_PAGE, _MOST_CLAIMS):
        for statement in found:
            if len(chosen) >= _MOST_CLAIMS or of_page[statement.page.url] >= most_of_a_page:
                continue
            if all(likeness(statement.words, words) < _SAME for words in seen):
                chosen.append(statement)
                seen.append(statement.words)
                of_page[statement.page.url] += 1
    return chosen


def _scored_statements(section: str, passages: Sequence[ResearchPassage], language: str) -> Iterator[_Statement]:
    """The statements in the best of these passages that say enough of the section, with their scores."""
    aspect = aspect_of(section)
    around = {passage: _words_around(passage, language) for passage in passages}
    topic = _topic_of(section) if aspect else section
    asked = asked_words(topic, language, list(around.values()))
    for rank, passage in enumerate(best_passages(section, passages, _PASSAGES, language)):
        share_around = share_of(asked, around[passage])
        worth = _PASSAGE_WORTH * share_around + _EARLY_WORTH * (1 - rank / _PASSAGES)
        for statement in _statements_in(passage, language):
            share = share_of(asked, statement.words)
            if share < _LEAST_SHARE or max(share, share_around) < _LEAST_SHARE_AROUND:
                continue
            if aspect and aspect.heading not in FIRST_HEADINGS and not aspect.signs.search(statement.text):
                continue
            opening = frozenset(content_words(statement.text, language)[:_OPENING_WORDS])
            score = share + worth + _OPENING_WORTH * bool(share_of(asked, opening))
            score += _LENGTH_WORTH * (len(statement.text) in _BEST_LENGTH)
            yield statement._replace(score=round(score, 6))


def _words_around(passage: ResearchPassage, language: str) -> frozenset[str]:
    """The content words of a passage and of its page's title."""
    return frozenset(content_words(f"{passage.page.title} {passage.text}", language))


def _topic_of(section: str) -> str:
    """The topic of which a section shows one side."""
    return section.rpartition(BETWEEN)[0]


def _statements_in(passage: ResearchPassage, language: str) -> Iterator[_Statement]:
    """The statements of a passage in order."""
    page = passage.page
    for start, end in sentence_spans(passage.text, page.lang or language):
        text = statement_in(passage.text[start:end], language)
        if text and (is_in(text, language) or page.lang != language):
            words = frozenset(content_words(text, language))
            yield _Statement(text, page, passage.start + start, passage.start + end, words)

"""Claims with the quotes that they rest on: the pages' own sentences, or what a model reads in numbered passages."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pipeline.research.report_words import BETWEEN, plan_language
from pipeline.research.running.model import Model
from pipeline.research.stages.aspects import FIRST_HEADINGS, aspect_of
from pipeline.research.stages.extract_model import claims_of_model
from pipeline.research.stages.passages import ResearchPassage, best_passages, passages_of, readable_pages
from pipeline.research.values import Plan
from pipeline.text.sentences import sentence_spans
from pipeline.text.words import content_words
from pipeline.verifying.relevance import asked_words, share_of
from pipeline.verifying.statements import is_in, likeness, statement_in
from pipeline.verifying.values import Claim, Page, Quote

PASSAGES = 24
"""Passages of a section whose sentences are looked at."""
MOST_CLAIMS = 6
MOST_OF_A_PAGE = 2
SAME = 0.8
"""Word-Jaccard from which two statements are the same one (reference/research-pipeline.md 1.3)."""
PRONOUN = re.compile(r"\b(?:its?|they|them|their|sie|ihre?[nrms]?|er|es|ihm|ihn|sein\w*)\b|それ|その|它|其", re.I)
LEAST_SHARE, LEAST_SHARE_AROUND = 0.2, 0.45
"""Shares of the asked words' weight that a statement must have, and that it or its passage must have."""
PASSAGE_WORTH = 0.4
EARLY_WORTH = 0.15
OPENING_WORTH = 0.15
OPENING_WORDS = 4
BEST_LENGTH = range(60, 260)
LENGTH_WORTH = 0.05
"""What a statement's passage, its place, its first words and its length count beside its own words."""


class Statement(NamedTuple):
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
        PayloadError: the model cannot be asked about any section.
    """
    passages = passages_of(readable_pages(plan, pages, first=start == 1))
    drafts = await claims_of_model(plan, passages, model) if model else {}
    taken: list[frozenset[str]] = []
    claims: list[Claim] = []
    language = plan_language(plan)
    for number, section in enumerate(plan.sections):
        drafted = drafts.get(number)
        if drafted is None:
            asked = named_subject(plan, section)
            drafted = [claim_of(found, number) for found in section_statements(asked, passages, language, taken)]
        for claim in drafted:
            taken.append(frozenset(content_words(claim.text, language)))
            claims.append(claim._replace(id=f"c{start + len(claims)}"))
    return claims


def named_subject(plan: Plan, section: str) -> str:
    """The section; with the first one behind it where it only says `it` or `they` of what that one names."""
    if section == plan.sections[0] or aspect_of(section) or not PRONOUN.search(section):
        return section
    return f"{section} {plan.sections[0]}"


def claim_of(statement: Statement, section: int) -> Claim:
    """The statement as a claim that still has no id."""
    quoted = statement.page.text[statement.start : statement.end]
    quote = Quote(statement.page.url, quoted, statement.start, statement.end)
    return Claim("", statement.text, section, (quote,))


def section_statements(
    section: str, passages: Sequence[ResearchPassage], language: str, taken: Sequence[frozenset[str]]
) -> list[Statement]:
    """The statements that say most of a section, the best first; none like one that is taken, few of one page."""
    found = list(scored_statements(section, passages, language))
    found.sort(key=lambda statement: (-statement.score, statement.page.url, statement.start))
    chosen: list[Statement] = []
    seen = list(taken)
    of_page: Counter[str] = Counter()
    for most_of_a_page in (MOST_OF_A_PAGE, MOST_CLAIMS):
        for statement in found:
            if len(chosen) >= MOST_CLAIMS or of_page[statement.page.url] >= most_of_a_page:
                continue
            if all(likeness(statement.words, words) < SAME for words in seen):
                chosen.append(statement)
                seen.append(statement.words)
                of_page[statement.page.url] += 1
    return chosen


def scored_statements(section: str, passages: Sequence[ResearchPassage], language: str) -> Iterator[Statement]:
    """The statements in the best of these passages that say enough of the section, with their scores."""
    aspect = aspect_of(section)
    around = {passage: words_around(passage, language) for passage in passages}
    topic = topic_of(section) if aspect else section
    asked = asked_words(topic, language, list(around.values()))
    for rank, passage in enumerate(best_passages(section, passages, PASSAGES, language)):
        share_around = share_of(asked, around[passage])
        worth = PASSAGE_WORTH * share_around + EARLY_WORTH * (1 - rank / PASSAGES)
        for statement in statements_in(passage, language):
            share = share_of(asked, statement.words)
            if share < LEAST_SHARE or max(share, share_around) < LEAST_SHARE_AROUND:
                continue
            if aspect and aspect.heading not in FIRST_HEADINGS and not aspect.signs.search(statement.text):
                continue
            opening = frozenset(content_words(statement.text, language)[:OPENING_WORDS])
            score = share + worth + OPENING_WORTH * bool(share_of(asked, opening))
            score += LENGTH_WORTH * (len(statement.text) in BEST_LENGTH)
            yield statement._replace(score=round(score, 6))


def words_around(passage: ResearchPassage, language: str) -> frozenset[str]:
    """The content words of a passage and of its page's title."""
    return frozenset(content_words(f"{passage.page.title} {passage.text}", language))


def topic_of(section: str) -> str:
    """The topic of which a section shows one side."""
    return section.rpartition(BETWEEN)[0]


def statements_in(passage: ResearchPassage, language: str) -> Iterator[Statement]:
    """The statements of a passage in order."""
    page = passage.page
    for start, end in sentence_spans(passage.text, page.lang or language):
        text = statement_in(passage.text[start:end], language)
        if text and (is_in(text, language) or page.lang != language):
            words = frozenset(content_words(text, language))
            yield Statement(text, page, passage.start + start, passage.start + end, words)

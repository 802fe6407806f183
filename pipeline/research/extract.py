"""Claims with the quotes that they rest on: the pages' own sentences, or what a model reads in numbered passages."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pipeline.research.aspects import aspect_of
from pipeline.research.extract_model import claims_of_model
from pipeline.research.model import Model
from pipeline.research.passages import ResearchPassage, best_passages, passages_of, plan_language, readable_pages
from pipeline.research.plan import BETWEEN
from pipeline.research.statements import likeness, statement_in
from pipeline.research.values import Claim, Page, Plan, Quote
from pipeline.sentences import sentence_spans
from pipeline.words import content_words

PASSAGES = 24
"""Passages of a section whose sentences are looked at."""
MOST_CLAIMS = 6
MOST_OF_A_PAGE = 2
SAME = 0.8
"""Word-Jaccard from which two statements are the same one (reference/research-pipeline.md 1.3)."""
LEAST_SCORE = 0.3
SIGN_WORTH = 0.25
EARLY_WORTH = 0.15
TOPIC_WORTH = 0.6
"""What the topic's words count beside those of the section."""
BEST_LENGTH = range(60, 260)
LENGTH_WORTH = 0.05


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

    Pages in another language than the plan's are read only where there are no others. A section about which the model
    gives no usable answer gets the pages' own sentences, which its notes say.

    Raises:
        PayloadError: the model cannot be asked about any section.
    """
    passages = passages_of(readable_pages(plan, pages))
    drafts = await claims_of_model(plan, passages, model) if model else {}
    taken: list[frozenset[str]] = []
    claims: list[Claim] = []
    language = plan_language(plan)
    for number, section in enumerate(plan.sections):
        drafted = drafts.get(number)
        if drafted is None:
            drafted = [
                claim_of(statement, number)
                for statement in section_statements(plan, section, passages, language, taken)
            ]
        for claim in drafted:
            taken.append(frozenset(content_words(claim.text, language)))
            claims.append(claim._replace(id=f"c{start + len(claims)}"))
    return claims


def claim_of(statement: Statement, section: int) -> Claim:
    """The statement as a claim that still has no id."""
    quoted = statement.page.text[statement.start : statement.end]
    quote = Quote(statement.page.url, quoted, statement.start, statement.end)
    return Claim("", statement.text, section, (quote,))


def section_statements(
    plan: Plan, section: str, passages: Sequence[ResearchPassage], language: str, taken: Sequence[frozenset[str]]
) -> list[Statement]:
    """The statements that say most of a section, the best first; none like one that is taken, few of one page."""
    found = list(scored_statements(plan, section, best_passages(section, passages, PASSAGES, language), language))
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


def scored_statements(
    plan: Plan, section: str, passages: Sequence[ResearchPassage], language: str
) -> Iterator[Statement]:
    """The statements in these passages that say enough of the section, with their scores."""
    statements = [
        (rank, statement) for rank, passage in enumerate(passages) for statement in statements_in(passage, language)
    ]
    weights = word_weights([statement.words for _, statement in statements])
    aspect = aspect_of(section)
    topic, _, asked = section.rpartition(BETWEEN) if aspect else ("", "", section)
    wanted = frozenset(content_words(topic or asked, language))
    for rank, statement in statements:
        score = covered(wanted, statement.words, weights)
        score += EARLY_WORTH * (1 - rank / PASSAGES)
        score += SIGN_WORTH * bool(aspect and aspect.signs.search(statement.text))
        score += LENGTH_WORTH * (len(statement.text) in BEST_LENGTH)
        if covered(wanted, statement.words, weights) and score >= LEAST_SCORE:
            yield statement._replace(score=round(score, 6))


def statements_in(passage: ResearchPassage, language: str) -> Iterator[Statement]:
    """The statements of a passage in order."""
    page = passage.page
    for start, end in sentence_spans(passage.text, page.lang or language):
        text = statement_in(passage.text[start:end], language)
        if text:
            words = frozenset(content_words(text, language))
            yield Statement(text, page, passage.start + start, passage.start + end, words)


def word_weights(sentences: Sequence[frozenset[str]]) -> dict[str, float]:
    """How rare each word is among the sentences: logarithm of their number over those that hold it, and 1 more."""
    held = Counter(word for words in sentences for word in words)
    return {word: 1 + math.log(len(sentences) / count) for word, count in held.items()}


def covered(wanted: frozenset[str], words: frozenset[str], weights: dict[str, float]) -> float:
    """The share of the wanted words' weight that these words have; words that nobody has weigh nothing."""
    total = sum(weights.get(word, 0.0) for word in wanted)
    return sum(weights.get(word, 0.0) for word in sorted(wanted & words)) / total if total else 0.0

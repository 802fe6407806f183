"""A judge without a model: how much of a text the words and numbers of another one cover.

It is there to have something to compare a model with, and costs nothing. Support is told as in
`pipeline.text.coverage`.

Relevance is a logistic regression (L2 penalty 0.001) fitted to WiCE dev (https://github.com/ryokamoi/wice, ODC-BY),
with the claim as the query: the three sentences around the first gold sentence against the three of another claim's
article that share most words with it.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from annotation.judge._units import Unit
from annotation.labels import TaskName
from annotation.push.suggestions import ProposedLabel
from pipeline.records import Passage, QueryResponse
from pipeline.text.coverage import (
    SOME_SUPPORT,
    WHOLE_SUPPORT,
    Coverage,
    Weights,
    WordIndex,
    cover,
    probability,
    words_and_numbers,
)
from pipeline.text.sentences import sentence_spans
from pipeline.text.words import content_words, without_marks

_MOST_CLAIMS = 500
"""Claims of an answer that are looked at, the first ones: so the work stays linear in the length of the context."""
_LEAST_WORDS = 3
"""Content words and numbers of a claim; a greeting or a heading has fewer."""
_MOST_EVIDENCE = 3
_NOT_PROSE = re.compile(r"https?://\S+")
_RELEVANCE = Weights(-2.24, 5.07, 6.6, 0.57)


class Sentence(NamedTuple):
    """A sentence of a passage, with its words without numbers."""

    passage: Passage
    text: str
    words: frozenset[str]
    numbers: frozenset[str]


class _Proposal(NamedTuple):
    """What the baseline proposes for one unit: labels, a reason, and the sentences that it rests on, the best first."""

    labels: dict[str, ProposedLabel]
    rationale: str
    sentences: list[Sentence]


def _split_sentences(text: str, language: str) -> list[str]:
    """The sentences of a text, each without white space around it."""
    return [text[start:end].strip() for start, end in sentence_spans(text, language)]


def sentences_of(passages: Iterable[Passage], language: str) -> list[Sentence]:
    """The sentences of the passages that hold a content word or a number, in order; repeated ones once."""
    found: dict[str, Sentence] = {}
    for passage in passages:
        for text in _split_sentences(passage.text, language):
            words, numbers = words_and_numbers(text, language)
            if text not in found and (words or numbers):
                found[text] = Sentence(passage, text, words, numbers)
    return list(found.values())


class Index:
    """The sentences by their words."""

    def __init__(self, sentences: Sequence[Sentence]) -> None:
        """Index the sentences."""
        self.sentences = sentences
        self.words = WordIndex(sentence.words | sentence.numbers for sentence in sentences)

    def cover(self, text: str, language: str) -> tuple[Coverage, list[Sentence]]:
        """How much of the text the sentences cover, and the best of them; all 0 where they share no word with it."""
        coverage, places = cover(*words_and_numbers(text, language), [self.words])
        return coverage, [self.sentences[place.sentence] for place in places]


def _judge_relevance(unit: Unit) -> _Proposal:
    """Whether the passage is about the query."""
    language = _language_of(unit.record)
    coverage, found = Index(sentences_of(unit.passages, language)).cover(unit.record.query, language)
    chance = probability(_RELEVANCE, coverage)
    words = f"The passage has {coverage.best_five:.0%} of the query's words, its best sentence {coverage.best:.0%}."
    return _Proposal({"topically_relevant": _proposed(chance)}, words, found[:_MOST_EVIDENCE])


def _judge_support(unit: Unit) -> _Proposal:
    """Whether the context backs any claim of the answer, and whether there is a claim that it does not back.

    Without passages nothing is backed, by the meaning of the labels; nor is anything in an answer without a claim.
    """
    language = _language_of(unit.record)
    index = Index(sentences_of(unit.passages, language))
    claims = _claims_of(unit.record.answer, language)
    looked_at = claims[:_MOST_CLAIMS]
    covered = sorted((index.cover(claim, language) for claim in looked_at), key=lambda each: each[0], reverse=True)
    some = max((probability(SOME_SUPPORT, coverage) for coverage, _ in covered), default=0.0)
    whole = min((probability(WHOLE_SUPPORT, coverage) for coverage, _ in covered), default=1.0)
    if claims and not unit.passages:
        some, whole = 0.0, 0.0
    labels = {"support_present": _proposed(some), "unsupported_claim_present": _proposed(round(1 - whole, 4))}
    best = dict.fromkeys(sentence for _, found in covered for sentence in found[:1])
    return _Proposal(
        labels, _describe_support(len(claims), [coverage for coverage, _ in covered]), list(best)[:_MOST_EVIDENCE]
    )


def _describe_support(claims: int, covered: Sequence[Coverage]) -> str:
    """The reason in words, from the number of claims and the coverages of those that were looked at."""
    if not covered:
        return "The answer makes no claim."
    shares = [coverage.best_five for coverage in covered]
    part = f", of which the first {len(covered)} were looked at" if claims > len(covered) else ""
    return f"Claims: {claims}{part}. The context has {min(shares):.0%} to {max(shares):.0%} of the words of each."


JUDGES: dict[TaskName, Callable[[Unit], _Proposal]] = {"retrieval": _judge_relevance, "grounding": _judge_support}


def _claims_of(answer: str, language: str) -> list[str]:
    """The answer's claims: its sentences with at least three content words or numbers.

    Citation marks, URLs and headings are left out. Where no sentence has as many, all of them together are the claim;
    an answer without any content word has none.
    """
    plain = _NOT_PROSE.sub(" ", without_marks(answer))
    sentences = [text for text in _split_sentences(plain, language) if not text.startswith("#")]
    counts = (len(frozenset[str]().union(*words_and_numbers(text, language))) for text in sentences)
    claims = [text for text, count in zip(sentences, counts, strict=True) if count >= _LEAST_WORDS]
    whole = " ".join(sentences)
    return claims or ([whole] if content_words(whole, language) else [])


def _language_of(record: QueryResponse) -> str:
    """The answer's language; empty where it is not known."""
    return "" if record.language == "und" else record.language


def _proposed(chance: float) -> ProposedLabel:
    """The answer yes where it is at least as likely as no."""
    return ProposedLabel(value=chance >= 0.5, p_yes=chance)

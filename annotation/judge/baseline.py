"""A judge without a model, to compare models with: it costs nothing, and leaves out a label that it cannot answer.

What the context says of an answer is what the rules of `pipeline.verifying` say of its claims: the context has a claim
in its own words, contradicts it in one place, or shares no word with it. Most claims are none of these, and then a
label is left out (annotation/contracts/judgements.md#labels-that-are-left-out).

Relevance is a logistic regression (L2 penalty 0.001) fitted to WiCE dev (https://github.com/ryokamoi/wice, ODC-BY),
with the claim as the query: the three sentences around the first gold sentence against the three of another claim's
article that share most words with it.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from annotation.argilla.labels import TaskName
from annotation.judge.judgements import FullJudgement, Judged, Unit, judgement_identity, kept_evidence, pages_of, url_of
from annotation.push.suggestions import ProposedLabel
from pipeline.models.evidence import aggregate_context, read_context, validate_and_normalize_evidence
from pipeline.records.schema import Passage
from pipeline.text.sentences import sentence_spans
from pipeline.text.words import Coverage, WordIndex, content_words, cover, without_marks, words_and_numbers
from pipeline.verifying.page_text import PageText
from pipeline.verifying.rules import Finding, check_sentence
from pipeline.verifying.values import Verdict

BASELINE = "baseline"
_MOST_CLAIMS = 500
"""Claims of an answer that are looked at, the first ones: so the work stays linear in the length of the context."""
_LEAST_WORDS = 3  # content words and numbers of a claim; a greeting or a heading has fewer
_MOST_EVIDENCE = 3
_NAMES: dict[Verdict, str] = {
    "supported": "in its own words",
    "contradicted": "contradicted",
    "not_found": "not found",
    "cannot_tell": "cannot tell",
}
_RELEVANCE = (-2.24, 5.07, 6.6, 0.57)
"""Constant and weights of a coverage: of its best sentence, its best five, and its numbers."""
_NOT_PROSE = re.compile(r"https?://\S+")


class Proposal(NamedTuple):
    labels: dict[str, ProposedLabel]
    rationale: str
    quotes: list[tuple[Passage, str]]  # sentences that it rests on, the best first


def _split_sentences(text: str, language: str) -> list[str]:
    return [text[start:end].strip() for start, end in sentence_spans(text, language)]


def covered(passages: Iterable[Passage], text: str, language: str) -> tuple[Coverage, list[tuple[Passage, str]]]:
    """How much of the text the sentences of the passages cover, and the best of them; all 0 where they share no word.

    A sentence that stands there more than once counts once, and one without a content word or a number not at all.
    """
    found: dict[str, tuple[Passage, frozenset[str]]] = {}
    for passage in passages:
        for sentence in _split_sentences(passage.text, language):
            words = frozenset[str]().union(*words_and_numbers(sentence, language))
            if words:
                found.setdefault(sentence, (passage, words))
    coverage, places = cover(*words_and_numbers(text, language), [WordIndex(words for _, words in found.values())])
    sentences = [(passage, sentence) for sentence, (passage, _) in found.items()]
    return coverage, [sentences[place.sentence] for place in places]


def _judge_relevance(unit: Unit) -> Proposal:
    language = "" if unit.record.language == "und" else unit.record.language
    coverage, found = covered(unit.passages, unit.record.query, language)
    score = _RELEVANCE[0] + sum(weight * value for weight, value in zip(_RELEVANCE[1:], coverage, strict=True))
    chance = round(1 / (1 + math.exp(-score)), 4)
    words = f"The passage has {coverage.best_five:.0%} of the query's words, its best sentence {coverage.best:.0%}."
    return Proposal({"topically_relevant": _proposed(chance)}, words, found[:_MOST_EVIDENCE])


def _judge_support(unit: Unit) -> Proposal:
    """Without passages nothing is backed, by the labels' meaning; nor is anything in an answer without a claim."""
    language = "" if unit.record.language == "und" else unit.record.language
    claims = _claims_of(unit.record.answer, language)
    if not claims or not unit.passages:
        labels = {"support_present": _proposed(0.0), "unsupported_claim_present": _proposed(1.0 if claims else 0.0)}
        return Proposal(labels, "There is no context." if claims else "The answer makes no claim.", [])
    pages = [PageText(passage.text, str(number)) for number, passage in enumerate(unit.passages)]
    findings = [check_sentence(claim, pages) for claim in claims[:_MOST_CLAIMS]]
    # A context that says a claim in other words supports it as well, so the rules never find that there is no support.
    verdicts = {each.verdict for each in findings}
    labels = {"support_present": _proposed(1.0)} if "supported" in verdicts else {}
    if verdicts & {"contradicted", "not_found"}:
        labels["unsupported_claim_present"] = _proposed(1.0)
    elif len(claims) <= _MOST_CLAIMS and verdicts == {"supported"}:
        labels["unsupported_claim_present"] = _proposed(0.0)
    return Proposal(labels, _describe_support(len(claims), findings), _quotes_of(findings, pages, unit.passages))


def _quotes_of(
    findings: Sequence[Finding], pages: Sequence[PageText], passages: Sequence[Passage]
) -> list[tuple[Passage, str]]:
    """The sentences that back a claim, then those that speak against one, then the nearest to any, each once."""
    order = list(_NAMES)
    found: dict[tuple[Passage, str], None] = {}
    for each in sorted(findings, key=lambda finding: (order.index(finding.verdict), -finding.score)):
        against = [(passages[int(quote.url)], quote.text) for quote in each.against]
        nearest = [(passages[place.source], pages[place.source].sentences[place.sentence]) for place in each.places[:1]]
        found |= dict.fromkeys(against or nearest)
    return [(passage, text.strip()) for passage, text in found][:_MOST_EVIDENCE]


def _describe_support(claims: int, findings: Sequence[Finding]) -> str:
    part = f", of which the first {len(findings)} were looked at" if claims > len(findings) else ""
    found = Counter(each.verdict for each in findings)
    counts = ", ".join(f"{name} {found[verdict]}" for verdict, name in _NAMES.items() if found[verdict])
    reasons = next((f" {each.problems[0]}." for each in findings if each.verdict == "contradicted"), "")
    return f"Claims: {claims}{part}. The context: {counts}.{reasons}"


JUDGES: dict[TaskName, Callable[[Unit], Proposal]] = {"retrieval": _judge_relevance, "grounding": _judge_support}
_ANSWERED: dict[TaskName, tuple[str, ...]] = {
    "retrieval": ("topically_relevant",),
    "grounding": ("support_present", "unsupported_claim_present"),
}
"""The labels that the baseline answers where it can."""


def _claims_of(answer: str, language: str) -> list[str]:
    """The answer's sentences with at least three content words or numbers, without citation marks, URLs and headings.

    Where no sentence has as many, all of them together are the claim; without any content word there is none.
    """
    plain = _NOT_PROSE.sub(" ", without_marks(answer))
    sentences = [text for text in _split_sentences(plain, language) if not text.startswith("#")]
    counts = (len(frozenset[str]().union(*words_and_numbers(text, language))) for text in sentences)
    claims = [text for text, count in zip(sentences, counts, strict=True) if count >= _LEAST_WORDS]
    whole = " ".join(sentences)
    return claims or ([whole] if content_words(whole, language) else [])


def _proposed(chance: float) -> ProposedLabel:
    return ProposedLabel(value=chance >= 0.5, p_yes=chance)


def baseline_judgement(unit: Unit) -> Judged:
    """Without a model, of retrieval or grounding: labels that cannot be answered are left out and named."""
    proposal = JUDGES[unit.task](unit)
    quotes = [{"url": url_of(passage), "snippet": text} for passage, text in proposal.quotes]
    context = read_context(aggregate_context(pages_of(unit.passages)))
    checked = validate_and_normalize_evidence(context, quotes, per_page=True)
    judgement = FullJudgement(
        **judgement_identity(unit, BASELINE),
        status="ok",
        labels=proposal.labels,
        left_out=tuple(label for label in _ANSWERED[unit.task] if label not in proposal.labels),
        rationale=proposal.rationale,
        evidence=kept_evidence(unit, context, checked),
        errors=checked.errors,
    )
    return Judged(judgement)

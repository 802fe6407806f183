"""The head of a report: the few verified claims that answer the whole topic best."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from pipeline.research.stages._likeness import stems_of
from pipeline.research.values import Plan, plan_language
from pipeline.sources.headings import headings_above
from pipeline.text.asking import stem, subject_words
from pipeline.text.sentences import sentence_spans
from pipeline.verifying.values import Checked, Page

_MOST_SENTENCES = 3
"""Sentences of the head; a passage on a disagreement counts as two, one for each side."""
_LEAST_RELEVANCE = 0.35
"""Share of the topic's words from which a claim may answer it."""
_LEAST_OF_BEST = 0.7
"""Share of what the best claim holds of them that the others must hold."""
_OWN_WORTH, _SITES_WORTH = 0.15, 0.1
_PLACE_COSTS = 0.04
"""What counts beside a claim's relevance: the topic's words that it has itself, and other sites that support it; and
what it costs that others of its section stand before it."""
_NEW_SIDE_WORTH = 0.3
"""What it counts that a claim answers a question of the topic that no earlier one of the head does."""
_ASIDE = re.compile(
    r"\b(?:i|my|our|we|us|for (?:example|instance)|ich|meine?[rnms]?|wir|unser\w*|uns|zum beispiel|beispielsweise)\b"
    r"|^[(（]|\b(?:z\. ?B|e\. ?g)\.|例えば|たとえば|私[はのがたも]|我々|比如|例如|我[们的]",
    re.IGNORECASE,
)
"""What tells of somebody, gives an example or stands in brackets: no answer to a topic."""
_GOES_ON = re.compile(
    r"\b(?:this|these|those|such|do so|also|thus|however|therefore|hence|unlike|(?:un)?fortunately|alternatively)\b"
    r"|^(?:\w+ ){0,3}(?:it|they|them)\b|\b(?:dies\w*|auch|daher|deshalb|jedoch|glücklicherweise|leider|stattdessen)\b"
    r"|この|その|また、|しかし|幸い|这|该|因此|也",
    re.IGNORECASE,
)
_GOING_ON_COSTS = 0.15
"""What leans on a sentence before, and what that costs."""


class _Candidate(NamedTuple):
    """A claim that may stand at the head."""

    checked: Checked
    relevance: float
    """The share of the words of the topic, or of its question there, that it holds with the headings above it."""
    score: float
    """By which the best is chosen."""
    sentences: int
    sides: frozenset[str]
    """The question of the topic that it answers; empty where its section asks something else."""


def claims_of_head(
    topic: str,
    plan: Plan,
    claims: Sequence[Checked],
    pages: Sequence[Page],
    disputes: Sequence[Collection[str]] = (),
) -> list[Checked]:
    """The claims that answer the topic best, the best first: at most three sentences, and half of the claims.

    A topic of several questions is answered on all of them where it can be. Of each of the `disputes`, the
    ids of claims on which pages disagree, there is one claim at most: for it both sides are to be told. Empty where no
    claim answers.
    """
    asked = _Asked(topic, plan, claims, {page.url: page for page in pages})
    left = [asked.candidate(each) for each in claims if not _ASIDE.search(each.claim.text)]
    disputed = frozenset(name for names in disputes for name in names)
    left = [each._replace(sentences=2) if each.checked.claim.id in disputed else each for each in left]
    best = max((each.relevance for each in left), default=0.0)
    left = [each for each in left if each.relevance >= max(_LEAST_RELEVANCE, _LEAST_OF_BEST * best)]
    head: list[Checked] = []
    told = frozenset[str]()
    room = _MOST_SENTENCES
    while (left := [each for each in left if each.sentences <= room]) and len(head) < -(-len(claims) // 2):
        chosen = max(left, key=lambda each: each.score + _NEW_SIDE_WORTH * (not each.sides <= told))
        left.remove(chosen)
        head.append(chosen.checked)
        room -= chosen.sentences
        told_with_it = {name for names in disputes if chosen.checked.claim.id in names for name in names}
        left = [each for each in left if each.checked.claim.id not in told_with_it]
        told |= chosen.sides
    return head


class _Asked:
    """A topic, asked of the claims of a run."""

    def __init__(self, topic: str, plan: Plan, claims: Sequence[Checked], pages: Mapping[str, Page]) -> None:
        self.topic = " ".join(topic.split()).casefold()
        self.plan = plan
        self.language = plan_language(plan)
        self.pages = pages
        self.of_section: dict[int, list[str]] = {number: [] for number in range(len(plan.sections))}
        for each in claims:
            self.of_section[each.claim.section].append(each.claim.id)

    def share_in(self, question: str, *texts: str) -> float:
        """The share of a question's words that texts hold; 1 for one without any."""
        words = {stem(word.text) for word in subject_words(question, self.language) if not word.general}
        held = stems_of(" ".join(texts), self.language)
        return len(words & held) / len(words) if words else 1.0

    def candidate(self, checked: Checked) -> _Candidate:
        """The claim with what it is worth at the head."""
        claim = checked.claim
        quote = claim.quotes[0]
        page = self.pages.get(quote.url)
        above = [page.title, *headings_above(page.headings, quote.start)] if page else []
        section = self.plan.sections[claim.section]
        is_own = section.rstrip("?？").casefold() in self.topic
        answers = self.share_in(section if is_own else self.topic, claim.text, *above)
        score = answers + _OWN_WORTH * self.share_in(self.topic, claim.text)
        score += _SITES_WORTH * (len(checked.supporters) > 1)
        score -= _GOING_ON_COSTS * bool(_GOES_ON.search(claim.text))
        score -= _PLACE_COSTS * self.of_section[claim.section].index(claim.id)
        sentences = len(sentence_spans(claim.text, self.language))
        return _Candidate(checked, answers, score, sentences, frozenset([section] if is_own else []))

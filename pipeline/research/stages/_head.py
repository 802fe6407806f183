"""The head of a report: the few verified claims that answer the whole topic best."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from pipeline.research.stages._answers import LEAST_ALONE
from pipeline.research.stages._asked import AskedWord, asked_words, relevance, share_of, sides_of
from pipeline.research.stages._plan import aspect_of
from pipeline.research.values import Plan, plan_language
from pipeline.sources.headings import headings_above
from pipeline.text import meaning
from pipeline.text.sentences import sentence_spans
from pipeline.text.words import content_words
from pipeline.verifying.values import Checked, Page

_MOST_SENTENCES = 3
"""Sentences of the head; a passage on a disagreement counts as two, one for each side."""
_LEAST_RELEVANCE = 0.35
"""Relevance from which a claim may answer the topic."""
_LEAST_OF_BEST = 0.7
"""Share of the best claim's relevance that the others must have."""
_LEAST_NEAR = 0.6
"""How near a claim of the head is to the topic itself, as a share of the nearest claim."""
_OWN_WORTH, _NEAR_WORTH, _SITES_WORTH = 0.15, 0.5, 0.1
_PLACE_COSTS = 0.04
"""What counts beside a claim's relevance: the asked words that it has itself, how near it is itself to the topic in
what it means, as a share of the nearest claim, other sites that support it; and what it costs that others of its
section answer better."""
_NEW_SIDE_WORTH = 0.3
"""What it counts that a claim speaks of a side of the topic of which no earlier one of the head does."""
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
    """The claim."""
    relevance: float
    """How far it answers the topic, from 0 to 1."""
    score: float
    """By which the best is chosen."""
    sentences: int
    """How many sentences it has."""
    sides: frozenset[str]
    """Of which questions of the topic, and of which sides of a choice, it speaks."""


def claims_of_head(
    topic: str,
    plan: Plan,
    claims: Sequence[Checked],
    pages: Sequence[Page],
    disputes: Sequence[Collection[str]] = (),
) -> list[Checked]:
    """The claims that answer the topic best, the best first: at most three sentences, and half of the claims.

    A topic of several questions, or a choice, is answered on all sides where it can be. Of each of the `disputes`, the
    ids of claims on which pages disagree, there is one claim at most: for it both sides are to be told. Empty where no
    claim answers.
    """
    asked = _Asked(topic, plan, claims, {page.url: page for page in pages})
    left = [asked.candidate(each) for each in claims if not _ASIDE.search(each.claim.text)]
    disputed = frozenset(name for names in disputes for name in names)
    left = [each._replace(sentences=2) if each.checked.claim.id in disputed else each for each in left]
    left = [each for each in left if asked.nearness[each.checked.claim.id] >= _LEAST_NEAR]
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
        """Ask these claims, which rest on these pages."""
        self.topic = " ".join(topic.split())
        self.plan = plan
        self.language = plan_language(plan)
        self.of_section: dict[int, list[str]] = {number: [] for number in range(len(plan.sections))}
        for each in claims:
            self.of_section[each.claim.section].append(each.claim.id)
        self.near = {each.claim.id: self.words_near(each, pages) for each in claims}
        self.vocabulary = frozenset[str]().union(*self.near.values()) if claims else frozenset[str]()
        self.words = self.words_of(self.topic)
        cosines = meaning.cosines(self.topic, [each.claim.text for each in claims], self.language)
        nearest = max(cosines.max(), LEAST_ALONE) if claims else LEAST_ALONE
        self.nearness = {each.claim.id: float(own / nearest) for each, own in zip(claims, cosines, strict=True)}

    def words_near(self, checked: Checked, pages: Mapping[str, Page]) -> frozenset[str]:
        """The content words of a claim, of its page's title and of the headings above its first quote."""
        quote = checked.claim.quotes[0]
        page = pages.get(quote.url)
        above = [page.title, *headings_above(page.headings, quote.start)] if page else []
        return frozenset(content_words(" ".join([checked.claim.text, *above]), self.language))

    def words_of(self, question: str) -> list[AskedWord]:
        """The words of a question, as the claims have them."""
        return asked_words(question, self.language, self.vocabulary)

    def candidate(self, checked: Checked) -> _Candidate:
        """The claim with what it is worth at the head."""
        claim = checked.claim
        section = self.plan.sections[claim.section]
        is_own_question = section.rstrip("?？").casefold() in self.topic.casefold()
        answers = claim.relevance
        if answers is None or not (is_own_question or aspect_of(section)):
            near = self.near[claim.id]
            answers = relevance(self.words_of(section) if is_own_question else self.words, near, near)
        words = frozenset(content_words(claim.text, self.language))
        score = answers + _OWN_WORTH * share_of(self.words, words) + _NEAR_WORTH * self.nearness[claim.id]
        score += _SITES_WORTH * (len(checked.supporters) > 1)
        score -= _GOING_ON_COSTS * bool(_GOES_ON.search(claim.text))
        score -= _PLACE_COSTS * self.of_section[claim.section].index(claim.id)
        sides = {f"phrase {word.phrase}" for word in self.words_of_choices() if word.is_in(words)}
        sides |= {section} if is_own_question else set()
        return _Candidate(checked, answers, score, len(sentence_spans(claim.text, self.language)), frozenset(sides))

    def words_of_choices(self) -> list[AskedWord]:
        """The words of the sides of a choice, `SELinux or AppArmor`."""
        sides = sides_of(self.words)
        return [word for word in self.words if word.phrase in sides]

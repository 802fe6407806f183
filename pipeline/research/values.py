"""What the stages of a research run hand to each other: plain values, all of them as JSON in its checkpoints."""

from typing import Literal, NamedTuple

from pipeline.text.words import text_language
from pipeline.verifying.values import Checked, Paragraph

ANSWER = -1
"""The section of a report's first paragraphs, which answer the whole topic."""

Depth = Literal["brief", "medium", "deep"]
Stage = Literal["intake", "plan", "harvest", "fetch", "extract", "verify", "write", "audit", "cache"]


class Intake(NamedTuple):
    """What is to be researched, after the clarification gate."""

    topic: str
    """The topic; with answers to questions behind a colon, where some were asked."""
    original_topic: str
    """The topic as it was given."""
    lang: str
    """ISO 639-1 code of the report's language."""
    depth: Depth


class Plan(NamedTuple):
    """How the topic is taken apart."""

    sections: tuple[str, ...]
    """The sub-questions in order; each becomes a section of the report, whose heading it is."""
    queries: tuple[str, ...]
    """Queries for the search provider, distinct, in order of weight."""


class FoundPage(NamedTuple):
    """One search result that is worth reading."""

    url: str
    """Canonical URL."""
    title: str
    """Title as the provider gives it."""
    query: str
    """The query that found it."""
    rank: int
    """Its place among the query's results, counted from 1."""


class AskedQuery(NamedTuple):
    """One query that was searched for."""

    query: str
    urls: tuple[str, ...]
    """Canonical URLs of its results, whatever became of them."""


class Verified(NamedTuple):
    """All claims of a run, checked."""

    claims: tuple[Checked, ...]
    """In order of their ids."""
    coverage: float
    """Share of the plan's sections that have at least one supported claim; 0 where there is no section."""
    follow_up: tuple[str, ...] = ()
    """Queries for the next round; empty where none is needed."""


class Written(NamedTuple):
    """The report before it is laid out."""

    title: str
    paragraphs: tuple[Paragraph, ...]
    """In the order of the report."""
    left_out: tuple[Checked, ...] = ()
    """Claims that are not in it, with their verdicts and problems."""
    has_head: bool = False
    """Whether it begins with what answers the topic, or says that nothing does; not so in runs of earlier versions."""


def plan_language(plan: Plan) -> str:
    """ISO 639-1 code of the language in which the plan is written; `en` where it cannot be told."""
    return text_language(" ".join(plan.sections), "en")

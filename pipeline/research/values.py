"""What the stages of a research run hand to each other: plain values, all of them as JSON in its checkpoints."""

from typing import Literal, NamedTuple

Depth = Literal["brief", "medium", "deep"]
Verdict = Literal["supported", "partial", "unsupported", "contradicted", "unknown"]
ClaimType = Literal["fact", "estimate", "opinion"]
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
    """How far to go."""


class Plan(NamedTuple):
    """How the topic is taken apart."""

    sections: tuple[str, ...]
    """The sub-questions in order; each becomes a section of the report, whose heading it is."""
    queries: tuple[str, ...]
    """Queries for the search provider, distinct, in order of weight."""


class Found(NamedTuple):
    """One search result that is worth reading."""

    url: str
    """Canonical URL."""
    title: str
    """Title as the provider gives it."""
    query: str
    """The query that found it."""
    rank: int
    """Its place among the query's results, counted from 1."""


class Page(NamedTuple):
    """The text of one page that was read."""

    url: str
    """Canonical URL."""
    title: str
    """Title; empty where it has none."""
    site: str
    """`site_key` of the URL, for diversity."""
    lang: str
    """ISO 639-1 code; empty where it cannot be told."""
    text: str
    """The stored text, which quotes point into."""
    fetched_at: str
    """ISO 8601 time in UTC at which it was fetched."""


class Quote(NamedTuple):
    """A verbatim range of a stored page."""

    url: str
    """Canonical URL of the page."""
    text: str
    """`page.text[start:end]`."""
    start: int
    """First code point."""
    end: int
    """The code point after the last one."""


class Claim(NamedTuple):
    """One statement that the report may make."""

    id: str
    """`c1`, `c2` …, unique in the run."""
    text: str
    """The statement, one sentence."""
    section: int
    """Index of the section that it belongs to."""
    quotes: tuple[Quote, ...]
    """What it rests on; at least one."""
    type: ClaimType = "fact"
    """What kind of statement it is."""


class Checked(NamedTuple):
    """A claim held against the pages that it cites."""

    claim: Claim
    """The claim."""
    verdict: Verdict
    """What its pages say of it."""
    score: float
    """From 0 to 1: how far the pages cover it."""
    problems: tuple[str, ...] = ()
    """Why it is not supported, in words; empty where it is."""
    supporters: tuple[str, ...] = ()
    """Canonical URLs of all pages that support it, the cited ones first."""
    against: tuple[Quote, ...] = ()
    """Ranges of pages that say otherwise."""


class Verified(NamedTuple):
    """All claims of a run, checked."""

    claims: tuple[Checked, ...]
    """In order of their ids."""
    coverage: float
    """Share of the plan's sections that have at least one supported claim; 0 where there is no section."""
    follow_up: tuple[str, ...] = ()
    """Queries for the next round; empty where none is needed."""


class Paragraph(NamedTuple):
    """One paragraph of the report."""

    section: int
    """Index of its section; the number of sections for one on what sources disagree about."""
    text: str
    """Its sentences, without citations."""
    claim_ids: tuple[str, ...]
    """The claims that it states, in order; empty where it only says who says what."""
    urls: tuple[str, ...]
    """Canonical URLs of the pages that it cites, in order of first use; never empty."""


class Written(NamedTuple):
    """The report before it is laid out."""

    title: str
    """Its heading."""
    paragraphs: tuple[Paragraph, ...]
    """In the order of the report."""
    left_out: tuple[Checked, ...] = ()
    """Claims that are not in it, with their verdicts and problems."""

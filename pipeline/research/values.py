"""What the stages of a research run hand to each other: plain values, all of them as JSON in its checkpoints.

A checkpoint keeps a value's fields by their place: no field goes, moves or comes but at the end with a default, or runs
that were killed cannot be continued.
"""

import tomllib
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Literal, NamedTuple

from pipeline.core.sentences import packaged_table
from pipeline.text.words import text_language
from pipeline.verifying.values import Checked, Paragraph

PATTERNS: dict[str, dict[str, str]] = packaged_table(__file__, "patterns.toml")
ANSWER = -1  # The section of a report's first paragraphs, which answer the whole topic

Depth = Literal["brief", "medium", "deep"]
Stage = Literal["intake", "plan", "harvest", "fetch", "extract", "verify", "write", "audit", "cache"]


class Intake(NamedTuple):
    topic: str  # The topic; with answers to questions behind a colon, where some were asked
    original_topic: str  # The topic alone; read by nothing here
    lang: str
    depth: Depth


class Plan(NamedTuple):
    sections: tuple[str, ...]  # The sub-questions in order; each becomes a section of the report, whose heading it is
    queries: tuple[str, ...]


class FoundPage(NamedTuple):
    url: str
    title: str
    query: str
    rank: int


class AskedQuery(NamedTuple):
    query: str
    urls: tuple[str, ...]  # Canonical URLs of its results, whatever became of them


class Verified(NamedTuple):
    claims: tuple[Checked, ...]
    coverage: float  # Share of the plan's sections that have at least one supported claim; 0 where there is no section
    follow_up: tuple[str, ...] = ()


class Written(NamedTuple):
    title: str
    paragraphs: tuple[Paragraph, ...]
    left_out: tuple[Checked, ...] = ()
    has_head: bool = False
    """Whether it begins with what answers the topic, or says that nothing does; not so in runs of earlier versions."""


def plan_language(plan: Plan) -> str:
    """ISO 639-1 code of the language in which the plan is written; `en` where it cannot be told."""
    return text_language(" ".join(plan.sections), "en")


def title_of(topic: str) -> str:
    words = " ".join(topic.split())
    return words[:1].upper() + words[1:]


class ReportWords(SimpleNamespace):
    """The report's own words in one language; what each is for stands in `words/en.toml`."""


@cache
def report_words(language: str) -> ReportWords:
    """The report's words in the language; English ones where it has none of its own."""
    files = {path.stem: path for path in Path(__file__).with_name("words").glob("*.toml")}
    return ReportWords(**tomllib.loads(files.get(language, files["en"]).read_text(encoding="utf-8")))

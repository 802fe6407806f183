"""What is judged: the units of a record as annotators meet them, and the judgements that come of them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pydantic import Field

from annotation.labels import TASKS, TaskName
from annotation.push.suggestions import Judgement
from pipeline.models.completion import Status
from pipeline.records import Passage, QueryResponse
from pipeline.schema import Frozen
from pipeline.text.urls import source_domain

_NO_SITE = "-"
"""Stands for the site of a unit without passages, or of passages without URLs."""


class Evidence(Frozen):
    """A verbatim quote that a judgement rests on."""

    url: str
    """URL of the passage's page; `https://passage.invalid/<rank>` where the passage has none."""
    snippet: str
    """The quote, at most 320 characters."""
    chunk_id: str = ""
    """The passage that holds the quote."""
    char_start: int | None = None
    """First code point of the quote in that passage."""
    char_end: int | None = None
    """The code point after the last one."""


class FullJudgement(Judgement):
    """A line of JUDGEMENTS.jsonl: the judge's answers to one unit, and what they rest on."""

    status: Status
    """`ok`, or why there are no answers."""
    left_out: tuple[str, ...] = ()
    """Labels that the judge answers elsewhere and not here, since it cannot tell."""
    rationale: str = ""
    """The judge's reason in its own words; text of a model, never to be trusted."""
    evidence: tuple[Evidence, ...] = ()
    """The quotes that passed the checks, at most three."""
    errors: tuple[str, ...] = ()
    """What was wrong: with the whole where the status is not `ok`, else with single quotes."""
    broken_rules: tuple[str, ...] = ()
    """Names of the rules between labels that the answers break; nothing is corrected."""
    model: str
    """The model that was asked for; `baseline` for the one without a model."""
    prompt_sha256: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    """Digest of the instructions, the prompt and the form of the answer; empty for the baseline."""


class Unit(NamedTuple):
    """One thing to judge: in retrieval a passage, in grounding all of them, in generation none."""

    record: QueryResponse
    task: TaskName
    passages: tuple[Passage, ...]

    @property
    def chunk_id(self) -> str | None:
        """The passage in retrieval; None in the other tasks."""
        return self.passages[0].chunk_id if self.task == "retrieval" else None

    @property
    def key(self) -> tuple[str, TaskName, str | None]:
        """What tells it from every other unit."""
        return self.record.record_uuid, self.task, self.chunk_id

    @property
    def sites(self) -> tuple[str, ...]:
        """The distinct sites of its passages, in order; `-` alone where there is none."""
        sites = dict.fromkeys(source_domain(passage.url) for passage in self.passages)
        return tuple(site for site in sites if site) or (_NO_SITE,)


def units_of(record: QueryResponse, tasks: Sequence[TaskName] = TASKS) -> Iterator[Unit]:
    """The record's units of these tasks, in the fixed order of the tasks, passages by rank.

    Grounding is a unit without passages too; annotators have it only where there are some.
    """
    passages = tuple(sorted(record.chunks, key=lambda passage: passage.chunk_rank))
    for task in TASKS:
        if task not in tasks:
            continue
        if task == "retrieval":
            yield from (Unit(record, task, (passage,)) for passage in passages)
        else:
            yield Unit(record, task, passages if task == "grounding" else ())


def url_of(passage: Passage) -> str:
    """The URL that quotes of the passage are given under; one in a domain that never exists where it has none.

    A URL with white space counts as none: no header of a context can carry it.
    """
    usable = passage.url and passage.url.split() == [passage.url]
    return passage.url if usable else f"https://passage.invalid/{passage.chunk_rank}"


def pages_of(passages: Iterable[Passage]) -> list[tuple[str, str]]:
    """Each passage under its page's URL, in their order; apart, since a quote over two of them stands on no page."""
    return [(url_of(passage), passage.text) for passage in passages]

"""What is judged: the units of a record as annotators meet them, and the judgements that come of them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pydantic import Field

from annotation.argilla.labels import TASKS, TaskName
from annotation.push.suggestions import Judgement
from pipeline.citations.addresses import source_domain
from pipeline.core.schema import Frozen
from pipeline.models.completion import Status
from pipeline.models.evidence import NormalisedContext, Validated
from pipeline.records.schema import Passage, QueryResponse


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
        return self.passages[0].chunk_id if self.task == "retrieval" else None

    @property
    def key(self) -> tuple[str, TaskName, str | None]:
        return self.record.record_uuid, self.task, self.chunk_id

    @property
    def sites(self) -> tuple[str, ...]:
        sites = dict.fromkeys(source_domain(passage.url) for passage in self.passages)
        return tuple(site for site in sites if site) or ("-",)


def units_of(record: QueryResponse, tasks: Sequence[TaskName] = TASKS) -> Iterator[Unit]:
    """In the fixed order of the tasks, passages by rank; grounding is a unit without passages too."""
    passages = tuple(sorted(record.chunks, key=lambda passage: passage.chunk_rank))
    for task in (task for task in TASKS if task in tasks):
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
    """Apart, since a quote over two of them stands on no page."""
    return [(url_of(passage), passage.text) for passage in passages]


class RejectedQuote(Frozen):
    """A quote that did not pass: a line of the sample for a spot check."""

    record_uuid: str
    """The record."""
    task: TaskName
    """The task."""
    chunk_id: str | None
    """The passage in retrieval; null in grounding."""
    model: str
    """The model that gave it."""
    error: str
    """Why it was rejected, in the words of pipeline/contracts/evidence.md#items."""
    url: str
    """The URL that the model gave."""
    snippet: str
    """The quote as the model gave it."""
    url_key: str
    """The URL in the form in which it was looked up."""
    snippet_form: str
    """The quote in the form in which it was searched."""
    page_form: str
    """Where the page has most of the quote's beginning, in the same form; empty where it has nothing of it."""


class Judged(NamedTuple):
    judgement: FullJudgement
    rejected: tuple[RejectedQuote, ...] = ()


def judgement_identity(unit: Unit, model: str) -> dict[str, Any]:
    return {"record_uuid": unit.record.record_uuid, "task": unit.task, "chunk_id": unit.chunk_id, "model": model}


def kept_evidence(unit: Unit, context: NormalisedContext, checked: Validated) -> tuple[Evidence, ...]:
    """The quotes that passed, each with its place in the passage that holds it."""
    # The first page of a context is what stands before its first header: here nothing.
    passages = {page.start: passage for page, passage in zip(context.pages[1:], unit.passages, strict=True)}
    return tuple(
        Evidence(
            url=item.url,
            snippet=item.snippet,
            chunk_id=passages[item.page_start].chunk_id,
            char_start=item.char_start - item.page_start,
            char_end=item.char_end - item.page_start,
        )
        for item in checked.items
    )

"""What is judged: the units of a record as annotators meet them, and the judgements that come of them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pydantic import Field

from annotation.argilla.labels import OWN_TASKS, TaskName
from annotation.push.suggestions import Judgement
from pipeline.citations.addresses import source_domain
from pipeline.core.schema import Frozen
from pipeline.models.completion import Status
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
    """Labels that the judge answers elsewhere and not here, since it cannot tell; a model is asked for all."""
    rationale: str = ""
    """The judge's reason in its own words; text of a model, never to be trusted."""
    evidence: tuple[Evidence, ...] = ()
    """The quotes that passed the checks, at most three."""
    errors: tuple[str, ...] = ()
    """What was wrong: with the whole where the status is not `ok`, else with single quotes."""
    broken_rules: tuple[str, ...] = ()
    """Names of the rules between labels that the answers break; nothing is corrected."""
    model: str
    """The model that was asked for; `baseline` in files of earlier versions, which judged without one as well."""
    prompt_sha256: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    """Digest of the instructions, the prompt and the form of the answer; empty where none was asked."""


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


def units_of(record: QueryResponse, tasks: Sequence[TaskName] = OWN_TASKS) -> Iterator[Unit]:
    """In the fixed order of the tasks, passages by rank; no grounding without passages, which annotators never see."""
    passages = tuple(sorted(record.chunks, key=lambda passage: passage.chunk_rank))
    for task in (task for task in OWN_TASKS if task in tasks):
        if task == "retrieval":
            yield from (Unit(record, task, (passage,)) for passage in passages)
        elif task == "generation" or passages:
            yield Unit(record, task, passages if task == "grounding" else ())


def pages_of(passages: Iterable[Passage]) -> list[tuple[str, str]]:
    """The URL that quotes of a passage are given under, and its text: apart, as a quote over two stands on no page.

    The URL is in a domain that never exists where the passage has none, or one with white space, which no header of a
    context can carry.
    """
    invalid = "https://passage.invalid"
    return [
        (each.url if each.url and each.url.split() == [each.url] else f"{invalid}/{each.chunk_rank}", each.text)
        for each in passages
    ]


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

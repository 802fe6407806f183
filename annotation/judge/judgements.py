"""What is judged: the units of a record as annotators meet them, and the judgements that come of them."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import Field, ValidationError, model_validator

from annotation.argilla.labels import LABELS, OWN_TASKS, TaskName
from pipeline.citations.addresses import source_domain
from pipeline.core.errors import InputError
from pipeline.core.schema import Frozen
from pipeline.models.completion import Status
from pipeline.records.schema import Passage, QueryResponse

GOOD = "ok"


class JudgedLabel(Frozen):
    """The judge's answer to one question."""

    value: bool
    """Yes or no."""
    p_yes: Annotated[float, Field(ge=0, le=1)]
    """Probability that the answer is yes; 1 or 0 by the value where a judge gives none. Files of earlier versions call
    it `confidence`, and are read."""

    @model_validator(mode="before")
    @classmethod
    def _read_other_forms(cls, value: Any) -> Any:
        if isinstance(value, dict) and "confidence" in value and "p_yes" not in value:
            return {"p_yes" if name == "confidence" else name: field for name, field in value.items()}
        if isinstance(value, dict) and value.get("p_yes") is None and isinstance(value.get("value"), bool):
            return {**value, "p_yes": float(value["value"])}
        return value


class Judgement(Frozen):
    """The judge's answers to one unit: a line of `citejury annotation judge`, as other programs may write it too."""

    record_uuid: str
    """The record."""
    task: TaskName
    """The task."""
    chunk_id: str | None = None
    """The passage in retrieval; None or empty in the other tasks."""
    labels: dict[str, JudgedLabel] = Field(default_factory=dict)
    """The answers by label."""
    status: str
    """`ok`, or why the answers cannot be used."""


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


def read_judgement(line: str) -> Judgement:
    """The judgement of one line of JSON; InputError where it is none, or names a label that its task does not have."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON ({error})") from error
    if not isinstance(value, dict):
        raise InputError("no JSON object")
    try:
        judgement = Judgement.model_validate({name: value[name] for name in Judgement.model_fields if name in value})
    except ValidationError as error:
        raise InputError(field_problems(error)) from error
    unknown = sorted(set(judgement.labels) - set(LABELS[judgement.task]))
    if unknown:
        raise InputError(f"{judgement.task} has no label {', '.join(map(repr, unknown))}")
    return judgement


def field_problems(error: ValidationError) -> str:
    """Without what they hold."""
    found = error.errors(include_input=False)
    return "; ".join(f"`{'.'.join(map(str, each['loc']))}`: {each['msg']}" for each in found)


def unit_of(judgement: Judgement) -> str:
    """The `unit_id` of its unit; InputError where it is of retrieval and names no passage."""
    if judgement.task != "retrieval":
        return judgement.record_uuid
    if not judgement.chunk_id:
        raise InputError("a judgement of retrieval without `chunk_id`")
    return f"{judgement.record_uuid}:{judgement.chunk_id}"


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

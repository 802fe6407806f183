"""What a model is asked about one unit, and what its answer is worth: a judgement, or the reason why it is none.

Texts are data that nobody obeys: each stands under a line with a digest of all of them, which nobody who writes one of
them can know, so that none can end itself or begin another. The same unit has the same prompt each time, so that its
judgement is found again.

Source: pipeline/contracts/evidence.md.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from annotation.argilla.display import day_line, passage_source, source_list
from annotation.argilla.labels import LABELS, RULES, TaskName, broken_rules, task_named
from annotation.argilla.wording import read_wording
from annotation.judge.judgements import (
    Evidence,
    FullJudgement,
    Judged,
    JudgedLabel,
    RejectedQuote,
    Unit,
    field_problems,
    pages_of,
)
from pipeline.core.sentences import packaged_table
from pipeline.models.completion import Structured
from pipeline.models.evidence import (
    NormalisedContext,
    Validated,
    aggregate_context,
    read_context,
    validate_and_normalize_evidence,
)
from pipeline.models.structured import DATA_RULE, marked_texts, marking_words
from pipeline.records.schema import split_line

_WORDS = packaged_table(__file__)
_SYSTEM_PROMPT = _WORDS["system"].replace("{data_rule}", DATA_RULE)


class Prompt(NamedTuple):
    system: str
    text: str
    schema: dict[str, Any]
    context: str

    @property
    def sha256(self) -> str:
        return digest(self.text, self.system, self.schema)


def digest(prompt: str, system: str, schema: Mapping[str, Any]) -> str:
    parts = (system, prompt, json.dumps(schema, sort_keys=True))
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def build_prompt(unit: Unit) -> Prompt:
    context = aggregate_context(pages_of(unit.passages))
    sections = _sections_of(unit, context)
    questions = read_wording("en").questions[unit.task]
    meanings = {question.name: question.meaning for question in task_named(unit.task).questions}
    labels = [f"- {name}: yes when: {meanings[name]} {questions[name].description}" for name in LABELS[unit.task]]
    parts = [
        _WORDS["units"][unit.task],
        _WORDS["claim"],
        "\n".join(("Labels of this task:", *labels)),
        "\n".join(
            f"Where {name} is {value}, {consequent} is {then}."
            for rule in RULES[unit.task]
            for name, (value,) in rule.condition.items()
            for consequent, (then,) in rule.then.items()
        ),
        _WORDS["evidence"] if unit.passages else "",
        _WORDS["form"],
        marking_words(sections),
        marked_texts(sections),
        "Answer in JSON now.",
    ]
    return Prompt(_SYSTEM_PROMPT, "\n\n".join(part for part in parts if part), _answer_schema(unit), context)


def _sections_of(unit: Unit, context: str) -> list[tuple[str, str]]:
    record, wording = unit.record, read_wording("en")
    query = ("QUERY", record.query + day_line(record.provenance.answer_timestamp, wording))
    answer = ("ANSWER", split_line(record)[0])
    if unit.task == "retrieval":
        (passage,) = unit.passages
        source = passage_source(passage, record.sources, wording)
        return [query, ("SOURCE OF THE PASSAGE", source), ("PASSAGE", context)]
    if unit.task == "generation":
        return [query, answer]
    return [("SOURCES CITED BY THE ANSWER", source_list(record.sources, wording)), query, answer, ("CONTEXT", context)]


def _answer_schema(unit: Unit) -> dict[str, Any]:
    label = _closed({"value": {"type": "boolean"}, "p_yes": {"type": "number", "minimum": 0, "maximum": 1}})
    quote = _closed({"url": {"type": "string"}, "snippet": {"type": "string"}})
    labels = _closed({name: label for name in LABELS[unit.task]})
    evidence = {"evidence": {"type": "array", "items": quote}} if unit.passages else {}
    return _closed({"labels": labels, "rationale": {"type": "string"}, **evidence})


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


_MOST_QUOTES = 20  # quotes of an answer that are looked at, the first ones; at most three of them are kept


class ModelAnswer(BaseModel):
    """What a model is to answer; what it adds beside these is left aside."""

    model_config = ConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True)

    labels: dict[str, JudgedLabel]
    """An answer to every label of the task."""
    rationale: str = ""
    """Why, in its own words."""
    evidence: tuple[Any, ...] = ()
    """Its quotes, unchecked."""


def read_answer(task: TaskName, value: Any) -> ModelAnswer:
    """The JSON of an answer; ValueError where a label is missing, unknown or contradicts its probability."""
    try:
        answer = ModelAnswer.model_validate(value)
    except ValidationError as error:
        raise ValueError(field_problems(error)) from error
    if set(answer.labels) != set(LABELS[task]):
        unknown = sorted(set(answer.labels) - set(LABELS[task]))
        missing = [label for label in LABELS[task] if label not in answer.labels]
        raise ValueError(f"labels missing: {missing}, unknown: {[name[:40] for name in unknown][:5]}")
    for name, label in answer.labels.items():
        if label.p_yes != 0.5 and label.value != (label.p_yes > 0.5):
            raise ValueError(f"{name} is {label.value} with a probability of yes of {label.p_yes}")
    return answer


def judgement_of(unit: Unit, prompt: Prompt, said: Structured[ModelAnswer], model: str) -> Judged:
    """Without labels where the answer or all quotes are invalid; an error has both normal forms."""
    record_uuid, task, chunk_id = unit.key
    identity: dict[str, Any] = {"record_uuid": record_uuid, "task": task, "chunk_id": chunk_id, "model": model}
    about = {**identity, "prompt_sha256": prompt.sha256}
    if said.value is None:
        return Judged(FullJudgement(**about, status=said.status, errors=(said.error,)))
    given = said.value.evidence if unit.passages else ()
    quotes = given[:_MOST_QUOTES]
    context = read_context(prompt.context)
    checked = validate_and_normalize_evidence(context, quotes, per_page=True, explain=True)
    compared = ("url", "snippet", "url_key", "snippet_form", "page_form")
    rejected = []
    for each in checked.rejected:
        texts = {name: getattr(checked.forms[each.position], name) for name in compared}
        rejected.append(RejectedQuote(**identity, error=each.message[:500], **texts))
    forms = "; the quote is compared as {0.snippet_form!r}, the nearest on the page is {0.page_form!r}"
    errors = [each.error + forms.format(each) for each in rejected]
    if len(given) > len(quotes):
        errors.append(f"evidence: only the first {_MOST_QUOTES} of {len(given)} quotes were looked at")
    about |= {"rationale": said.value.rationale[:2_000]}
    if unit.passages and checked.status != "ok":
        errors = errors or [checked.error]
        return Judged(FullJudgement(**about, status="invalid_evidence", errors=errors), tuple(rejected))
    labels = said.value.labels
    about["broken_rules"] = broken_rules(unit.task, {name: label.value for name, label in labels.items()})
    found = _kept_evidence(unit, context, checked)
    return Judged(FullJudgement(**about, status="ok", labels=labels, evidence=found, errors=errors), tuple(rejected))


def _kept_evidence(unit: Unit, context: NormalisedContext, checked: Validated) -> tuple[Evidence, ...]:
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

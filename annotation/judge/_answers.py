"""What a model's answer about one unit is worth: a judgement, or the reason why it is none.

Source: pipeline/contracts/evidence.md.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from annotation.judge._baseline import ANSWERED, JUDGES
from annotation.judge._prompt import Prompt
from annotation.judge._units import Evidence, FullJudgement, Unit, pages_of, url_of
from annotation.labels import LABELS, TaskName, broken_rules
from annotation.push.suggestions import ProposedLabel, field_problems
from pipeline.models.completion import Structured
from pipeline.models.evidence import (
    Forms,
    NormalisedContext,
    Rejected,
    Validated,
    aggregate_context,
    read_context,
    validate_and_normalize_evidence,
)
from pipeline.schema import Frozen

BASELINE = "baseline"
_MOST_RATIONALE = 2_000
_MOST_ERROR = 500
_MOST_QUOTES = 20
"""Quotes of an answer that are looked at, the first ones; at most three of them are kept."""


class ModelAnswer(BaseModel):
    """What a model is to answer; what it adds beside these is left aside."""

    model_config = ConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True)

    labels: dict[str, ProposedLabel]
    """An answer to every label of the task."""
    rationale: str = ""
    """Why, in its own words."""
    evidence: tuple[Any, ...] = ()
    """Its quotes, unchecked."""


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
    """A judgement, and what was rejected of its quotes."""

    judgement: FullJudgement
    rejected: tuple[RejectedQuote, ...] = ()


def answer_reader(task: TaskName) -> Callable[[Any], ModelAnswer]:
    """What reads the JSON of an answer of this task.

    It raises ValueError where a label is missing, unknown or contradicts its own probability, or a field is not of its
    type.
    """

    def read(value: Any) -> ModelAnswer:
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

    return read


def judgement_of(unit: Unit, prompt: Prompt, said: Structured[ModelAnswer], model: str, explain: bool) -> Judged:
    """The judgement that an answer stands for; without labels where the answer or all of its quotes are invalid.

    `explain` adds to the error of a quote both normal forms.
    """
    about = {**_identity(unit, model), "prompt_sha256": prompt.sha256}
    if said.value is None:
        return Judged(FullJudgement(**about, status=said.status, errors=(said.error,)))
    given = said.value.evidence if unit.passages else ()
    quotes = given[:_MOST_QUOTES]
    context = read_context(prompt.context)
    checked = validate_and_normalize_evidence(context, quotes, per_page=True, explain=True)
    rejected = tuple(_rejected_quote(unit, model, each, checked.forms[each.position]) for each in checked.rejected)
    errors = [each.error + (_explained(each) if explain else "") for each in rejected]
    if len(given) > len(quotes):
        errors.append(f"evidence: only the first {_MOST_QUOTES} of {len(given)} quotes were looked at")
    about |= {"rationale": said.value.rationale[:_MOST_RATIONALE]}
    if unit.passages and checked.status != "ok":
        errors = errors or [checked.error]
        return Judged(FullJudgement(**about, status="invalid_evidence", errors=errors), rejected)
    labels = said.value.labels
    broken = broken_rules(unit.task, {name: label.value for name, label in labels.items()})
    found = _kept_evidence(unit, context, checked)
    return Judged(
        FullJudgement(**about, status="ok", labels=labels, evidence=found, errors=errors, broken_rules=broken), rejected
    )


def baseline_judgement(unit: Unit) -> Judged:
    """The judgement of the judge without a model, of retrieval or grounding.

    Its quotes are checked like a model's; there is none where passage and claim share no word. Labels that it cannot
    tell are left out and named.
    """
    proposal = JUDGES[unit.task](unit)
    quotes = [{"url": url_of(passage), "snippet": text} for passage, text in proposal.quotes]
    context = read_context(aggregate_context(pages_of(unit.passages)))
    checked = validate_and_normalize_evidence(context, quotes, per_page=True)
    judgement = FullJudgement(
        **_identity(unit, BASELINE),
        status="ok",
        labels=proposal.labels,
        left_out=tuple(label for label in ANSWERED[unit.task] if label not in proposal.labels),
        rationale=proposal.rationale,
        evidence=_kept_evidence(unit, context, checked),
        errors=checked.errors,
    )
    return Judged(judgement)


def _identity(unit: Unit, model: str) -> dict[str, Any]:
    """Whom and what a judgement is about."""
    return {"record_uuid": unit.record.record_uuid, "task": unit.task, "chunk_id": unit.chunk_id, "model": model}


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


def _rejected_quote(unit: Unit, model: str, rejected: Rejected, forms: Forms) -> RejectedQuote:
    """The rejected quote with what was compared."""
    return RejectedQuote(
        **_identity(unit, model),
        error=rejected.message[:_MOST_ERROR],
        url=rejected.url,
        snippet=rejected.snippet,
        url_key=forms.url_key,
        snippet_form=forms.snippet_form,
        page_form=forms.page_form,
    )


def _explained(quote: RejectedQuote) -> str:
    """Both normal forms, as they follow an error."""
    return f"; the quote is compared as {quote.snippet_form!r}, the nearest on the page is {quote.page_form!r}"

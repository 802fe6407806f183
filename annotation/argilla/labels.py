"""The labels of each task and the rules between them: the single source of labels (annotation/contracts/labels.md)."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

from pipeline.core.schema import Frozen

TaskName = Literal["retrieval", "grounding", "generation"]
TASKS: tuple[TaskName, ...] = get_args(TaskName)


class RetrievalLabels(Frozen):
    """One query and one passage."""

    topically_relevant: bool
    """The passage has information that is substantively about what the query asks."""
    evidence_sufficient: bool
    """This passage alone is enough evidence to support answering the query."""
    misleading: bool
    """A careful reader who has only this passage would end with a wrong or distorted answer."""


class GroundingLabels(Frozen):
    """One answer and the whole context it was given."""

    support_present: bool
    """At least one claim of the answer is backed by the context."""
    unsupported_claim_present: bool
    """At least one claim of the answer has no backing in the context."""
    contradicted_claim_present: bool
    """The context says something that contradicts a claim of the answer."""
    source_cited: bool
    """The answer, as shown, has at least one citation marker: `[n]`, or `(C001)` in research reports."""
    fabricated_source: bool
    """The answer cites a source that is not there, never was, is plainly invented, or not what it is cited as."""


class GenerationLabels(Frozen):
    """One query and one answer."""

    proper_action: bool
    """The answer is of the right kind for the query: an answer, a refusal, or a question back."""
    response_on_topic: bool
    """It addresses what was asked."""
    helpful: bool
    """A typical user gets further with their task."""
    incomplete: bool
    """A required part of the query is left out."""
    unsafe_content: bool
    """It helps harm people, degrades a group, encourages danger or self-harm, bares private data, sexualises minors."""


LABEL_MODELS: dict[TaskName, type[Frozen]] = {
    "retrieval": RetrievalLabels,
    "grounding": GroundingLabels,
    "generation": GenerationLabels,
}
LABELS: dict[TaskName, tuple[str, ...]] = {task: tuple(model.model_fields) for task, model in LABEL_MODELS.items()}


EVIDENCE = "evidence"
"""Name of grounding's span question, in datasets that have it: the words of the context that decided."""
Mark = Literal["supports", "contradicts"]
MARKS: tuple[Mark, ...] = get_args(Mark)
Evidence = Literal["off", "optional", "required"]
"""Whether a dataset asks for marks; `required` asks for one where a label of `MARKED_LABELS` is yes."""
MARKED_LABELS: Mapping[str, Mark] = {"support_present": "supports", "contradicted_claim_present": "contradicts"}
"""The labels whose yes rests on words of the context, each with the mark that those words get."""

DISPUTED = "citejury_disputed"
"""Metadata property of an adjudicator's record, visible to them: the labels on which annotators differ. They are asked
for these only; where it is missing, as in adjudications of earlier versions, for all.
"""


class LabelRule(NamedTuple):
    """Where `antecedent` is yes, `consequent` must have the value `required`."""

    task: TaskName
    name: str
    antecedent: str
    consequent: str
    required: bool


RULES: tuple[LabelRule, ...] = (
    LabelRule("retrieval", "evidence_requires_relevance", "evidence_sufficient", "topically_relevant", True),
    LabelRule("retrieval", "evidence_excludes_misleading", "evidence_sufficient", "misleading", False),
    LabelRule(
        "grounding",
        "contradiction_requires_unsupported",
        "contradicted_claim_present",
        "unsupported_claim_present",
        True,
    ),
    LabelRule("grounding", "fabricated_requires_cited", "fabricated_source", "source_cited", True),
)


def missing_marks(values: Mapping[str, Any]) -> tuple[tuple[str, Mark], ...]:
    """Each label that is yes without the mark that it rests on, and that mark; `values` are by question."""
    marked = {each["label"] for each in values.get(EVIDENCE) or ()}
    return tuple(
        (label, mark) for label, mark in MARKED_LABELS.items() if values.get(label) == "yes" and mark not in marked
    )


def broken_rules(task: TaskName, labels: Mapping[str, bool | None]) -> tuple[str, ...]:
    """Names of broken rules in the order of `RULES`; a label that is missing breaks none."""
    return tuple(
        rule.name
        for rule in RULES
        if rule.task == task
        and labels.get(rule.antecedent) is True
        and labels.get(rule.consequent) is (not rule.required)
    )

"""One export row per task: the columns of seed 001 in their order, task columns first, then the shared ones."""

from annotation.labels import TaskName
from pipeline.schema import Frozen


class SharedColumns(Frozen):
    """The columns that end every task's file."""

    record_uuid: str
    """Id of the record, the same in all three files."""
    annotator_id: str
    """User name of the annotator; the user's id where the user is gone."""
    task: str
    """`retrieval`, `grounding` or `generation`."""
    language: str
    """ISO 639-1 code of the answer's language, or `und`."""
    created_at: str
    """When the response was last submitted: ISO 8601, UTC, with offset."""


class RetrievalRow(Frozen):
    """One annotator's response to one query and passage."""

    input_query: str
    """The query."""
    chunk: str
    """The passage."""
    chunk_id: str
    """Id of the passage; repeats across records."""
    doc_id: str
    """Id of the page that the passage is from."""
    chunk_rank: int
    """Rank among the record's passages, counted from 1."""
    topically_relevant: bool
    """The passage is substantively about what the query asks."""
    evidence_sufficient: bool
    """The passage alone is enough evidence to support answering the query."""
    misleading: bool
    """Someone who relied on the passage could end with a wrong or distorted answer."""
    notes: str
    """The annotator's notes; empty where there are none."""


class GroundingRow(Frozen):
    """One annotator's response to one answer and its context."""

    answer: str
    """The answer, citations as `[n]`."""
    context_set: str
    """The passages in rank order, joined by ` [CTX_SEP] `."""
    support_present: bool
    """At least one claim is backed by the context."""
    unsupported_claim_present: bool
    """At least one claim has no backing in the context."""
    contradicted_claim_present: bool
    """The context contradicts a claim."""
    source_cited: bool
    """The answer has at least one citation marker."""
    fabricated_source: bool
    """The answer cites a source that is not there, gone, invented, or not what it is cited as."""
    notes: str
    """The annotator's notes; empty where there are none."""


class GenerationRow(Frozen):
    """One annotator's response to one query and answer."""

    query: str
    """The query."""
    answer: str
    """The answer, citations as `[n]`."""
    proper_action: bool
    """The answer is of the right kind for the query."""
    response_on_topic: bool
    """It addresses what was asked."""
    helpful: bool
    """A typical user gets further with her task."""
    incomplete: bool
    """A required part of the query is left out."""
    unsafe_content: bool
    """It contains content that breaks safety or policy rules."""
    notes: str
    """The annotator's notes; empty where there are none."""


ROW_MODELS: dict[TaskName, type[Frozen]] = {
    "retrieval": RetrievalRow,
    "grounding": GroundingRow,
    "generation": GenerationRow,
}
COLUMNS: dict[TaskName, tuple[str, ...]] = {
    task: (*model.model_fields, *SharedColumns.model_fields) for task, model in ROW_MODELS.items()
}

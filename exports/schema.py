"""One export row per task: the columns of seed 001 in their order, task columns first, then the shared ones.

A row extends the label model of its task, so that a label is written down once. Pydantic takes the fields of the last
base first: unit, labels, notes, shared columns.
"""

from annotation.labels import GenerationLabels, GroundingLabels, RetrievalLabels, TaskName
from pipeline.schema import Frozen


class RetrievalUnit(Frozen):
    """What is judged: one query and one passage."""

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


class GroundingUnit(Frozen):
    """What is judged: one answer and its whole context."""

    answer: str
    """The answer, its citations as `[n]`."""
    context_set: str
    """The passages in rank order, joined by ` [CTX_SEP] `."""


class GenerationUnit(Frozen):
    """What is judged: one query and one answer."""

    query: str
    """The query."""
    answer: str
    """The answer, its citations as `[n]`."""


class Notes(Frozen):
    """What the labels cannot say."""

    notes: str
    """The annotator's notes; empty where there are none."""


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


class RetrievalRow(SharedColumns, Notes, RetrievalLabels, RetrievalUnit):
    """One annotator's response to one query and passage."""


class GroundingRow(SharedColumns, Notes, GroundingLabels, GroundingUnit):
    """One annotator's response to one answer and its context."""


class GenerationRow(SharedColumns, Notes, GenerationLabels, GenerationUnit):
    """One annotator's response to one query and answer."""


ROW_MODELS: dict[TaskName, type[Frozen]] = {
    "retrieval": RetrievalRow,
    "grounding": GroundingRow,
    "generation": GenerationRow,
}
COLUMNS: dict[TaskName, tuple[str, ...]] = {task: tuple(model.model_fields) for task, model in ROW_MODELS.items()}

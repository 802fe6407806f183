"""What the exports hold: the rows of the three CSV files and their manifest.

One export row per task: the columns of seed 001 in their order, task columns first, then the shared ones. A row extends
the label model of its task, so that a label is written down once. Pydantic takes the fields of the last base first:
unit, labels, notes, shared columns.
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


class ExportedDataset(Frozen):
    """One Argilla dataset that an export was read from."""

    task: TaskName
    """The task that its annotators do."""
    id: str
    """Its id on the server."""
    name: str
    """Its name on the server."""
    records: int
    """Records that it held when it was read."""
    foreign_records: int
    """Records with responses that citejury did not push; they have no `record_uuid` and are in no file."""


class ExportFilters(Frozen):
    """What the export was asked for."""

    tasks: tuple[TaskName, ...]
    """The tasks that were named; empty when all were wanted."""
    since: str | None
    """Only responses of this moment or later, ISO 8601 with offset; None for all."""
    text_pair: bool
    """Whether `text` and `text_pair` are appended."""
    extended: bool
    """Whether statuses, ids, timestamps, broken rules and provenance are appended."""
    discarded: bool
    """Whether discarded responses are in files of their own."""


class ExportedFile(Frozen):
    """One file of the export."""

    file: str
    """Its name in the export folder."""
    task: TaskName
    """Its task."""
    rows: int
    """Rows without the header."""
    annotators: int
    """Distinct annotators among the rows."""
    records: int
    """Distinct `record_uuid`s among the rows."""
    sha256: str
    """Of the file's bytes, in hexadecimal."""


class Manifest(Frozen):
    """What an export folder holds and where it was read."""

    citejury: str
    """The version of citejury that wrote the folder."""
    server: str
    """Address of Argilla, without user name and password."""
    workspace: str
    """The workspace that was read."""
    datasets: tuple[ExportedDataset, ...]
    """The datasets that were read."""
    filters: ExportFilters
    """What was asked for."""
    started: str
    """When the reading began: ISO 8601, UTC."""
    finished: str
    """When the reading ended: ISO 8601, UTC. Responses of this interval may or may not be in the files."""
    files: tuple[ExportedFile, ...]
    """The CSV files beside the manifest."""

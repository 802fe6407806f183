"""What the exports hold: the rows of their files and the manifest.

The contract's columns of a task in their order: unit, labels, notes, then the shared ones.
"""

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from annotation.argilla.labels import ByTask, Mark, Task, TaskName, is_of_passages, task_named
from pipeline.core.schema import Frozen


class UnitColumns(Frozen):
    """What is judged; every task has some of these columns."""

    input_query: str
    """The query."""
    query: str
    """The query."""
    answer: str
    """The answer, its citations as `[n]`."""
    context_set: str
    """The passages in rank order, joined by ` [CTX_SEP] `."""
    chunk: str
    """The passage."""
    chunk_id: str
    """Id of the passage; repeats across records."""
    doc_id: str
    """Id of the page that the passage is from."""
    chunk_rank: int
    """Rank among the record's passages, counted from 1."""


class SharedColumns(Frozen):
    """The columns that end every task's file."""

    notes: str
    """The annotator's notes; empty where there are none."""
    record_uuid: str
    """Id of the record, the same in all tasks' files."""
    annotator_id: str
    """User name of the annotator; the user's id where the user is gone."""
    task: str
    """`retrieval`, `grounding`, `generation`, or the name of a task from a file."""
    language: str
    """ISO 639-1 code of the answer's language, or `und`."""
    created_at: str
    """When the response was last submitted: ISO 8601, UTC, with offset."""


_IDS = ("chunk_id", "doc_id", "chunk_rank")  # Of a passage


def text_columns(task: TaskName) -> tuple[str, ...]:
    """The texts of a unit; the first two are `text` and `text_pair`."""
    return tuple(task_named(task).columns)


def query_column(task: TaskName) -> str:
    """Which of them is the query; empty where none is, as in grounding."""
    return next((column for column in text_columns(task) if column in ("input_query", "query")), "")


def described_columns(task: Task) -> dict[str, str]:
    """The columns of a task's file in their order, each with a sentence."""
    unit, shared = UnitColumns.model_fields, SharedColumns.model_fields
    return {
        **{
            name: unit[name].description or "" for name in (*task.columns, *(_IDS if is_of_passages(task.name) else ()))
        },
        **{question.name: question.meaning for question in task.questions},
        **{name: field.description or "" for name, field in shared.items()},
    }


COLUMNS: ByTask[tuple[str, ...]] = ByTask(lambda task: tuple(described_columns(task)))


class EvidenceRow(Frozen):
    """One mark, or the part of one that is on one passage: a line of `evidence.jsonl`."""

    record_uuid: str
    """Id of the record, as in the CSV files."""
    annotator_id: str
    """Who marked the words, as in the CSV files: user name, user id or pseudonym."""
    label: Mark
    """`supports`: the words back a claim of the answer. `contradicts`: they contradict one."""
    chunk_id: str
    """Id of the passage; empty where it is not known any more."""
    doc_id: str
    """Id of the page that the passage is from; empty like `chunk_id`."""
    chunk_rank: int
    """Rank of the passage among the record's, counted from 1."""
    start: int
    """Where the words begin in the passage's original text, in code points, counted from 0."""
    end: int
    """Where they end: the first code point after them."""
    text: str
    """The words, exactly as the original passage has them."""
    cut: bool
    """Whether the mark was on more than this passage's text, and was cut: headings and other passages are left out."""
    language: str
    """ISO 639-1 code of the answer's language, or `und`."""
    response_status: Literal["submitted", "discarded"]
    """`submitted`; `discarded` only on request (`--discarded`)."""
    created_at: str
    """When the response was last submitted: ISO 8601, UTC, with offset."""
    round: str
    """Round of annotation."""
    workspace: str
    """Argilla workspace."""


class ProvenanceRow(Frozen):
    """Where one record comes from: a row of `provenance.csv`. A cell is empty where its value is unknown."""

    record_uuid: str
    """Id of the record, as in the CSV files."""
    narrative_id: str = ""
    """Id of the narrative."""
    narrative_type: str = ""
    """Classification of the narrative."""
    model_name: str = ""
    """The provider."""
    model_version: str = ""
    """The model that answered."""
    arm: str = ""
    """Arm of the study that asked."""
    repeat: str = ""
    """Which repeat of the same question it is, counted from 1."""
    run_id: str = ""
    """Id of the run that asked."""
    language: str = ""
    """ISO 639-1 code of the answer's language, or `und`."""
    answer_timestamp: str = ""
    """When the question was put: ISO 8601 with offset."""
    n_sources: str = ""
    """How many sources came with the answer."""
    n_read: str = ""
    """Those of which the record holds text."""
    n_unread: str = ""
    """Those that exist but could not be read."""
    n_gone: str = ""
    """Those whose server says that they are not there."""
    n_unresolved: str = ""
    """The next three together, which earlier versions did not tell apart."""
    n_unreached: str = ""
    """Those that we could not reach, which says nothing of them. Empty, as the next two, where not told apart."""
    n_no_such_site: str = ""
    """Those of whose host two look-ups found nothing."""
    n_no_address: str = ""
    """Those that are no address."""
    n_unfetched: str = ""
    """Those that nobody tried to fetch."""
    n_cited: str = ""
    """Sources to which the answer's text refers; this and the next two are empty where the record does not say."""
    n_shown: str = ""
    """Those that the provider attached to the answer, whose text does not refer to them."""
    n_seen: str = ""
    """Those that the provider only lists as found."""
    contexts: str = ""
    """Where the passages come from: `selected` by citejury from the cited sources, or `supplied` with the record."""
    answer_id: str = ""
    """UUID of the answer in CSV v2."""
    run_asked: str = ""
    """JSON: of its run, by provider, the questions that were asked, refused and failed: `{"claude": [20, 1, 0]}`."""


class HistoryRow(Frozen):
    """One question of one change of a response: a row of `exports csv --history`."""

    change: int
    """Number of the change on its server; a later change of the same response has a higher one."""
    at: str
    """When the change was made: ISO 8601, UTC, with offset."""
    action: Literal["insert", "update", "delete"]
    """`insert`: the response was given; `update`: it was changed or sent again; `delete`: it is gone."""
    record_uuid: str
    """Id of the record, as in the other files; empty where citejury did not push it."""
    chunk_id: str
    """Id of the passage; empty outside retrieval."""
    task: TaskName
    """Its task."""
    label: str
    """The label, or another question such as `notes`; empty where the response answers none, as an empty discard."""
    value_before: str
    """The answer before: `True` or `False` for a label, notes as they are, marks as JSON; empty where none was."""
    value_after: str
    """The answer after; empty where there is none, and after a deletion."""
    status_before: Literal["", "submitted", "draft", "discarded"]
    """The response's status before; empty where there was no response."""
    status_after: Literal["", "submitted", "draft", "discarded"]
    """Its status after; empty after a deletion."""
    annotator_id: str
    """Whose response it is, as in the other files; the user's id where the user is gone."""
    response_id: str
    """Id of the response; empty where pseudonyms stand for names."""
    workspace: str
    """Argilla workspace."""
    dataset: str
    """Name of the dataset."""
    round: str
    """Round of annotation."""


class ControlRow(Frozen):
    """One answer to one label of a control or a repeat: a row of `controls.csv`."""

    record_uuid: str
    """Id of the control or repeat; no record of the other files has it."""
    task: TaskName
    """Its task."""
    chunk_id: str
    """Id of the passage; empty outside retrieval."""
    annotator_id: str
    """Who answered, as in the other files."""
    kind: str
    """`repeat`, or how the control came about, such as `known` or `foreign_passage`."""
    label: str
    """The label."""
    known: str
    """The known answer, `True` or `False`; empty where there is none, as for repeats."""
    given: str
    """The annotator's, `True` or `False`."""
    repeats: str
    """Of a repeat, what it shows again: `record_uuid`, or `record_uuid:chunk_id` in retrieval; else empty."""
    language: str
    """ISO 639-1 code of the answer's language, or `und`."""
    round: str
    """Round of annotation."""
    workspace: str
    """Argilla workspace."""
    created_at: str
    """When the response was last submitted: ISO 8601, UTC, with offset."""


CONTROL_COLUMNS: tuple[str, ...] = tuple(ControlRow.model_fields)
HISTORY_COLUMNS: tuple[str, ...] = tuple(HistoryRow.model_fields)
PROVENANCE_COLUMNS: tuple[str, ...] = tuple(ProvenanceRow.model_fields)


def _in_utc(moment: datetime) -> datetime:
    """The same moment in UTC; without offset it is UTC already, as Argilla's own stamps are."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


Moment = Annotated[datetime, AfterValidator(_in_utc)]


class AnnotatorCounts(Frozen):
    """What one annotator did in one dataset, as far as it fits the filters."""

    submitted: int = 0
    """Responses that she submitted."""
    drafts: int = 0
    """Responses that she has begun; they are in no file."""
    discarded: int = 0
    """Responses that she discarded."""


class Work(Frozen):
    """How far the work on some units was when they were exported, whatever responses the export was asked for."""

    done: int
    """Units with as many submitted responses as they need."""
    of: int
    """All units that are to be labelled."""
    wanting: int
    """Submissions that the others lack."""
    nobody_left: int
    """Those of the others that too few people are left to finish, who have neither submitted nor discarded them."""
    drafts: int
    """Responses that somebody has begun."""
    discarded: int
    """Discarded responses."""

    def __add__(self, other: "Work") -> "Work":
        return Work(**{name: count + getattr(other, name) for name, count in self})


class ExportedDataset(Frozen):
    """One Argilla dataset that an export was read from."""

    task: TaskName
    """The task that its annotators do."""
    id: str
    """Its id on the server."""
    name: str
    """Its name on the server."""
    workspace: str
    """Its workspace."""
    round: str
    """Its round of annotation; `production` where the server names none."""
    guideline_version: str
    """Short hash of its guidelines and questions; empty where the server names none."""
    records: int
    """Records that it held when it was read."""
    foreign_records: int
    """Records with responses that citejury did not push; they have no `record_uuid` and are in no file."""
    cut_marks: int = 0
    """Marks on more than the text of one passage; each passage's part is a line of its own."""
    lost_marks: int = 0
    """Marks on no passage's text, as on a heading; they are in no file."""
    drafts: int = 0
    """Responses that somebody has begun, as far as they fit the filters; they are in no file."""
    discarded: int = 0
    """Discarded responses, as far as they fit the filters."""
    doubled: int = 0
    """Responses that are in no file, because the same annotator answered the unit later in another workspace."""
    doubled_differing: int = 0
    """Those of them with another answer to some label than the later one."""
    controls: int = 0
    """Submitted responses to controls and repeats, as far as they fit the filters; they are in `controls.csv` only,
    unless the filters want them among the others."""
    practice: int = 0
    """Submitted responses to practice cases, as far as they fit the filters; in no file unless their round is named."""
    annotators: dict[str, AnnotatorCounts] = Field(default_factory=dict)
    """The same counts by annotator, under the names of the files."""
    work: Work | None = None
    """How far it was; null where its records changed while they were counted."""


class ExportFilters(Frozen):
    """What an export is asked for: which responses, which columns, and how cells are written.

    What is empty or None leaves nothing out. A response must fit all of what is given, and one value of each kind.
    """

    tasks: tuple[str, ...] = ()
    """Only these tasks; one from a file need not be known before the server tells of it."""
    until: Moment | None = None
    """Only responses submitted before this moment; without offset it is UTC."""
    annotators: tuple[str, ...] = ()
    """Only responses of these annotators, by user name or user id; pseudonyms in the manifest where `anonymized`."""
    languages: tuple[str, ...] = ()
    """Only records of these languages, by their codes."""
    rounds: tuple[str, ...] = ()
    """Only datasets of these rounds."""
    suggested: bool = False
    """Whether rounds whose answers a machine filled in beforehand are read without being named; a jury's export leaves
    them out."""
    whole_campaign: bool = False
    """Whether the workspaces are all those of a campaign: then some of them may have no response yet."""
    every_response: bool = False
    """Whether an annotator's responses to one unit in several workspaces are all rows, not the newest only, and those
    to practice cases too."""
    with_controls: bool = False
    """Whether responses to controls and repeats are rows of the tasks' files too; by themselves they are not."""
    text_pair: bool = False
    """Whether `text` and `text_pair` are appended."""
    extended: bool = False
    """Whether statuses, ids, timestamps, broken rules, provenance, round, dataset and workspace are appended."""
    discarded: bool = False
    """Whether discarded responses are in files of their own."""
    anonymized: bool = False
    """Whether pseudonyms stand for the annotators' names; `response_id` is empty then."""
    spreadsheet_safe: bool = False
    """Whether cells that a spreadsheet takes for a formula begin with an apostrophe, and files with a BOM."""
    excel: bool = False
    """Whether the CSV files are also the sheets of one .xlsx file."""


class ExportedFile(Frozen):
    """One file of the export."""

    file: str
    """Its name in the export folder."""
    task: TaskName | None
    """Its task; null for `provenance.csv`, `controls.csv` and `export.xlsx`, which are about all."""
    rows: int
    """Rows without the header, or lines."""
    annotators: int
    """Distinct annotators among the rows; 0 of a task's file, which has no responses."""
    records: int
    """Distinct `record_uuid`s among the rows; 0 likewise."""
    sha256: str
    """Of the file's bytes, in hexadecimal."""


class Manifest(Frozen):
    """What an export folder holds and where it was read."""

    citejury: str
    """The version of citejury that wrote the folder."""
    server: str
    """Address of Argilla, without user name and password."""
    workspaces: tuple[str, ...]
    """The workspaces that were read, in the order in which they were named."""
    datasets: tuple[ExportedDataset, ...]
    """The datasets that were read."""
    filters: ExportFilters
    """What was asked for."""
    started: str
    """When the reading began: ISO 8601, UTC."""
    finished: str
    """When the reading ended: ISO 8601, UTC. Responses of this interval may or may not be in the files."""
    files: tuple[ExportedFile, ...]
    """The files beside the manifest."""


STATUS_COLUMN = "response_status"


def utc(stamp: str) -> datetime:
    """The moment that an ISO 8601 text names, in UTC; without offset it is UTC, as Argilla's own stamps are.

    Source: reference of argilla-server 2.8.0, `api/schemas/v1/responses.py`: naive UTC with microseconds.
    """
    return _in_utc(datetime.fromisoformat(stamp))

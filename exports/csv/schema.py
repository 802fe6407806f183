"""What the exports hold: the rows of their files and the manifest.

The contract's columns of a task in their order: unit, labels, notes, then the shared ones.
"""

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from annotation.argilla.labels import ByTask, Mark, Task, TaskName, is_of_passages, task_named
from pipeline.core.schema import Frozen
from pipeline.core.sentences import packaged_table

DESCRIBED: dict[str, dict[str, str]] = packaged_table(__file__, "columns.toml")
"""The columns of `provenance.csv`, `controls.csv` and the history, of what a task judges, and those that end its file,
each with a sentence."""
PROVENANCE_COLUMNS, CONTROL_COLUMNS, HISTORY_COLUMNS = (
    tuple(DESCRIBED[table]) for table in ("provenance", "controls", "history")
)
_IDS = ("chunk_id", "doc_id", "chunk_rank")  # Of a passage


def text_columns(task: TaskName) -> tuple[str, ...]:
    """The texts of a unit; the first two are `text` and `text_pair`."""
    return tuple(task_named(task).columns)


def query_column(task: TaskName) -> str:
    """Which of them is the query; empty where none is, as in grounding."""
    return next((column for column in text_columns(task) if column in ("input_query", "query")), "")


def described_columns(task: Task) -> dict[str, str]:
    """The columns of a task's file in their order, each with a sentence."""
    ids = _IDS if is_of_passages(task.name) else ()
    return {
        **{name: DESCRIBED["unit"][name] for name in (*task.columns, *ids)},
        **{question.name: question.meaning for question in task.questions},
        **DESCRIBED["shared"],
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
    """How far it was; null where nobody can work in it yet."""


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

"""What `citejury annotation status` tells: the fields of its JSON."""

from typing import Literal, get_args

from pydantic import Field

from annotation.argilla.labels import TaskName
from annotation.quality.scores import AnnotatorScores
from pipeline.core.schema import Frozen

_OfWork = Literal["unfinished", "questions", "unreachable", "practice", "closed_early"]
_OfPeople = Literal["behind", "at_once", "too_fast", "controls"]
Kind = Literal[_OfWork, _OfPeople, "split", "unreached", "unbalanced", "empty"]
KINDS: tuple[Kind, ...] = get_args(Kind)  # the most urgent first


class AnnotatorStatus(Frozen):
    """One annotator's work in one dataset, or in all of them together."""

    annotator: str
    """User name; the user's id where the key may not see her name."""
    is_member: bool
    """Whether she can go on: she is in the workspace, as an annotator."""
    done: int
    """Records that she submitted."""
    pending: int
    """Records that wait in her queue; 0 where she cannot go on, or has not passed the practice."""
    left: float
    """Submissions still to come from them, where those who may answer a record share evenly what it waits for."""
    hours_left: float | None
    """Hours that these take at their own mean pace in each task, else at everybody's; None where none was timed."""
    drafts: int
    """Records with a draft of hers."""
    discarded: int
    """Records that she discarded."""
    done_today: int
    """Records that she submitted in the last 24 hours."""
    units_per_hour: float | None
    """Records an hour of work in the last 24 hours, pauses above half an hour left out; None where none can be told."""
    broken_rules: dict[str, int]
    """Submitted responses that break a rule between labels, by rule; only rules that are broken."""
    questions: int
    """Her notes that begin with a question mark."""
    by_model: dict[str, int] = Field(default_factory=dict)
    """Records that she submitted, by who wrote the answers; only where it is known. Nothing that annotators may see."""


class HalfDone(Frozen):
    """An answer of which some passages have enough annotators and others have not."""

    record_uuid: str
    """Id of the record."""
    units: int
    """Its passages in the dataset."""
    done: int
    """Those of them with enough annotators."""


class DatasetStatus(Frozen):
    """One dataset: one task in one language, round and workspace."""

    workspace: str
    """Its workspace."""
    round: str
    """Its round of annotation."""
    task: TaskName
    """Its task."""
    language: str
    """Language of its questions."""
    dataset: str
    """Its name."""
    version: int
    """Its version, counted from 1."""
    is_superseded: bool
    """Whether a newer version has taken its place; nothing is pending then."""
    min_submitted: int
    """How many annotators a record waits for."""
    records: int
    """Records that are to be labelled in it."""
    apart: int
    """Further records: controls, repeats and practised cases."""
    overlap_reached: int
    """Records that at least `min_submitted` different annotators submitted."""
    pending: int
    """Records that fewer submitted."""
    needed: int
    """Submissions that are wanting to them, all together."""
    reachable: int
    """Those of them for which annotators are left who may answer the record and have neither submitted nor discarded
    it."""
    kept_out: int = 0
    """Those of them for which only people are left who have not passed the practice that comes before."""
    unreachable: int
    """Pending records with fewer annotators left, who have neither submitted nor discarded them, than are wanting;
    people who have not passed the practice count as left."""
    stuck: tuple[str, ...] = ()
    """Their ids."""
    closed_early: int
    """Pending records that Argilla hands out to nobody any more, as after a change of the overlap."""
    split: int
    """Records with all their submissions of which two differ in a label, and which no adjudicator has got."""
    done: int
    """Submitted responses."""
    drafts: int
    """Drafts."""
    discarded: int
    """Discarded responses."""
    done_today: int
    """Responses submitted in the last 24 hours."""
    units_per_hour: float | None
    """Records an hour of one annotator's work in the last 24 hours; None where none can be told."""
    last_submission: str | None
    """When a response was submitted last: ISO 8601, UTC; None where none was."""
    finish: str | None
    """When all that is `reachable` is there if each day is like the last 24 hours, in UTC; None with a reason."""
    no_finish: str
    """Why `finish` is None; empty where it is not."""
    broken_rules: dict[str, int]
    """Submitted responses that break a rule between labels, by rule; only rules that are broken."""
    half_done: tuple[HalfDone, ...]
    """Answers whose passages are half done, in order of arrival; only for retrieval."""
    annotators: tuple[AnnotatorStatus, ...]
    """Its annotators and everybody else who answered, in order of their names."""


class Question(Frozen):
    """A note that begins with a question mark: a question to the project lead. Its text is an annotator's own."""

    id: str
    """Names the question for `citejury annotation reply`; another text is another question."""
    annotator: str
    """User name; the user's id where the key may not see her name."""
    record_uuid: str
    """Id of the record."""
    external_id: str
    """The record's id in its dataset."""
    record_id: str
    """Argilla's own id of the record."""
    workspace: str
    """Workspace of the dataset."""
    dataset: str
    """Name of the dataset."""
    status: str
    """`submitted`, `draft` or `discarded`."""
    at: str
    """When the response was changed last: ISO 8601, UTC."""
    text: str
    """The note, as she wrote it."""
    reply: str
    """The last reply to it; empty while it is open."""


class Notice(Frozen):
    """Something that needs a look."""

    kind: Kind
    """`unfinished`: nobody can work in a dataset; `questions`: some wait for a reply; `unreachable`: too few annotators
    are left for some records; `practice`: work waits for people who have not passed it; `closed_early`: records are
    handed out to nobody; `behind`: people have done less of their work than the rest; `at_once`, `too_fast`,
    `controls`: what people's answers look like; `split`: annotators differ; `unreached`: pages of sources are missing;
    `unbalanced`: people judged other models than the rest did; `empty`: a dataset holds no record."""
    line: str
    """It in a few words, names and the next command last."""
    text: str
    """It in plain sentences."""
    annotators: tuple[str, ...] = ()
    """User names of those whom it is about, in their order; empty where it is about no people."""


class Status(Frozen):
    """How far the work is."""

    citejury: str
    """The version of citejury that looked."""
    server: str
    """Address of Argilla, without user name and password."""
    moment: str
    """When it was looked at: ISO 8601, UTC. The last 24 hours end here."""
    workspaces: tuple[str, ...]
    """The workspaces that were looked at."""
    needed: int
    """Submissions that are wanting in all datasets together."""
    reachable: int
    """Those of them for which annotators are left who may answer the record and have neither submitted nor discarded
    it."""
    answers: int
    """Answers of providers that are to be labelled, each counted once."""
    unreached: int
    """Those of them with a source whose page could not be reached."""
    done_today: int
    """Responses submitted in the last 24 hours."""
    finish: str | None
    """The same for all datasets together."""
    no_finish: str
    """Why `finish` is None; empty where it is not."""
    datasets: tuple[DatasetStatus, ...]
    """By workspace, round (calibration first), language, task and version."""
    annotators: tuple[AnnotatorStatus, ...]
    """Everybody's work in all datasets together, in order of their names."""
    questions: tuple[Question, ...]
    """What annotators ask, the oldest first."""
    controls: tuple[AnnotatorScores, ...] = ()
    """What controls and repeats tell about each person who answered some, in order of their names."""
    notices: tuple[Notice, ...]
    """What needs a look; empty where nothing does."""

"""The records of a dataset as units of work: what each is for and who gets it, its answers, and how long they took.

What a record is for is a metadata property that is declared nowhere: the server returns it to owners and admins only,
and no push of a record's content changes it. Source: annotation/contracts/datasets.md#assignments.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from pydantic import Field, ValidationError

from annotation.argilla.client import Argilla
from annotation.argilla.labels import NOTES, TaskName, is_of_passages
from pipeline.core.errors import ArgillaError, NotFoundError
from pipeline.core.schema import Frozen

ASSIGNMENT = "citejury_assignment"
Purpose = Literal["label", "control", "repeat", "practice"]
MIXED_IN: tuple[Purpose, ...] = ("control", "repeat")
"""What comes to annotators among their other work, at a rate, so that nobody can tell which it is."""


class Assignment(Frozen):
    """What one record is for, and who gets it."""

    purpose: Purpose = "label"
    """`label`: its answers count; `control`: its answers are known; `repeat`: shows one person a unit of theirs again;
    `practice`: its answers are known and explained to who submitted theirs.
    """
    needed: int | None = Field(default=None, ge=1)
    """How many submissions it waits for; None for as many as its dataset does."""
    users: tuple[str, ...] = ()
    """Ids of the only users who get it; empty where all members do."""
    rate: float | None = Field(default=None, gt=0, le=0.5)
    """Of a control or a repeat: which share of each person's units in the dataset all such are to be; None elsewhere.
    The highest among theirs counts.
    """
    answers: dict[str, bool | str] = Field(default_factory=dict)
    """The known answers by label, `true` and `false` for yes and no; labels without a known answer are missing."""
    explanations: dict[str, str] = Field(default_factory=dict)
    """Why each known answer of a practice case is right, by label, in the language of its questions."""
    kind: str = ""
    """How a control came about, such as `known` or `foreign_passage`; empty for all others."""
    repeats: str = ""
    """External id of the record that it shows again; empty where it shows none again."""


COMMON = Assignment()  # what a record without the property is for


def assignment_of(record: Mapping[str, Any]) -> Assignment:
    """What the record is for, as the server returned it to an owner or admin."""
    said = (record.get("metadata") or {}).get(ASSIGNMENT)
    return read_assignment(said, str(record.get("external_id") or record.get("id"))) if said else COMMON


def read_assignment(said: Any, record: str) -> Assignment:
    """What somebody else put there is none, as the queue has it."""
    try:
        return Assignment.model_validate(said)
    except ValidationError as error:
        purpose = said.get("purpose") if isinstance(said, Mapping) else None
        if purpose not in (*MIXED_IN, "practice"):
            return COMMON
        wrong = ", ".join(f"`{'.'.join(map(str, each['loc']))}`" for each in error.errors())
        raise ArgillaError(
            f"The record {record!r} is a {purpose} by its metadata property `{ASSIGNMENT}`, and this cannot be read: "
            f"{wrong}. Mend or delete the record, or use the version of citejury that wrote it."
        ) from error


PAUSE = timedelta(minutes=30)  # who sends nothing for as long was not at work
CHARACTERS_A_MINUTE: Mapping[str, int] = {"en": 987, "de": 920, "ja": 357}
"""Mean speed of adults who read a text aloud, by its language.

Source: Trauzettel-Klosinski and Dietz 2012, IOVS 53(9), table 2 (IReST).
"""
CHARACTERS_A_MINUTE_OF_ALPHABETS = 882  # the same, mean of 14 languages with alphabets


class _Event(Protocol):
    @property
    def user_id(self) -> Hashable: ...

    @property
    def at(self) -> datetime: ...


_E = TypeVar("_E", bound=_Event)


def times_taken(events: Iterable[_E]) -> Iterator[tuple[_E, float | None]]:
    """Each event in order of time with the seconds since the same person's event before it; None after a pause.

    What of several people's and datasets' answers is an event the caller decides: what is left out counts as part of
    the next one's time.
    """
    earlier: dict[Hashable, datetime] = {}
    for each in sorted(events, key=lambda event: event.at):
        before, earlier[each.user_id] = earlier.get(each.user_id), each.at
        taken = each.at - before if before is not None else PAUSE
        yield each, taken.total_seconds() if taken < PAUSE else None


ROWS_PATH = "/citejury/datasets/{dataset_id}/units"
STATES_PATH = "/citejury/datasets/{dataset_id}/record-states"
CHANGED_PATH = "/citejury/datasets/{dataset_id}/records"
HISTORY_PATH = "/citejury/history"
PAGE_RECORDS = 5000
AT_ONCE = timedelta(seconds=1)  # what is stamped as changed so soon after it came was not changed


class Answer(NamedTuple):
    user_id: str
    status: str  # `submitted`, `draft` or `discarded`
    at: datetime
    labels: dict[str, bool | str]  # by label, a bool for yes and no; one that was left out is missing
    question: str | None  # their note where it begins with a question mark
    is_first: bool = True  # whether it is as it was first sent; a draft that was submitted and a correction are not


class Unit(NamedTuple):
    record_id: str
    external_id: str  # ours; Argilla's where the record was not pushed by citejury
    is_open: bool
    answers: tuple[Answer, ...]
    assignment: Assignment = COMMON
    model: str = ""  # who wrote the answer, where somebody responded and its provenance tells; nothing for annotators
    unreached: int = 0  # sources of the answer whose pages could not be reached

    @property
    def is_to_label(self) -> bool:
        return self.assignment.purpose == "label"

    @property
    def settled(self) -> frozenset[str]:
        """User ids of those who submitted or discarded it."""
        return frozenset(each.user_id for each in self.answers if each.status != "draft")


def record_uuid_of(task: TaskName, unit: Unit) -> str:
    """A passage's own id begins with it."""
    return unit.external_id.partition(":")[0] if is_of_passages(task) else unit.external_id


def labels_and_question(values: Mapping[str, Any] | None) -> tuple[dict[str, str], str | None]:
    """The answers of a response's values as texts, and its note where that begins with a question mark."""
    labels: dict[str, str] = {}
    question = None
    for name, answer in (values or {}).items():
        given = answer.get("value") if isinstance(answer, Mapping) else None
        if name == NOTES:
            if isinstance(given, str) and given.lstrip().startswith(("?", "？")):
                question = given
        elif isinstance(given, str | int):
            labels[name] = str(given)
    return labels, question


def read_units(argilla: Argilla, dataset_id: str, slowly: Callable[[], object] = lambda: None) -> Iterator[Unit]:
    """The dataset's records in order of arrival; `slowly` is called where a stock server sends all texts with them.

    Raises:
        RecordsMovedError: a stock server's records were deleted meanwhile.
        NotAllowedError: the key is neither an owner's nor that of an admin of the workspace.
        NotFoundError: there is no such dataset.
    """
    try:
        page = rows_page(argilla, dataset_id, None)
    except NotFoundError:  # a stock server; where it is the dataset that is missing, the next call says so
        slowly()
        yield from units_with_texts(argilla, dataset_id)
        return
    while True:
        users = page["users"]
        # Answers that say the same share it.
        values = [(as_answers(labels), question) for labels, question in page["values"]]
        assigned = {each: read_assignment(said, each) for each, said in page["assignments"].items()}
        for record_id, external_id, is_open, responses in page["items"]:
            answers = (
                Answer(users[user], status, _moment(at), values[value][0], values[value][1], bool(is_first))
                for user, status, at, is_first, value in responses
            )
            assignment = assigned.get(record_id, COMMON)
            # Which servers of earlier versions do not tell.
            model = page.get("models", {}).get(record_id, "") if responses else ""
            unreached = page.get("unreached", {}).get(record_id, 0)
            named = external_id or record_id
            yield Unit(record_id, named, bool(is_open), _in_order(answers), assignment, model, unreached)
        if page["next"] is None:
            return
        page = rows_page(argilla, dataset_id, page["next"])


def is_stock(argilla: Argilla, dataset_id: str) -> bool:
    """Whether the server is a stock Argilla."""
    try:
        argilla.request("GET", STATES_PATH.format(dataset_id=dataset_id), params={"limit": 1})
    except NotFoundError:
        return True
    return False


def write_needed(argilla: Argilla, dataset_id: str, wanted: Mapping[str, tuple[Assignment, int]]) -> None:
    """Write who gets a record, by its id, and that it waits for so many submissions more than it has; 0 is for none.

    Whatever else its metadata say stays.
    """
    path = CHANGED_PATH.format(dataset_id=dataset_id)
    for first in range(0, len(wanted), 100):  # ids in an address, as our server takes them
        items = []
        ids = ",".join([*wanted][first : first + 100])
        for item in argilla.request("GET", path, params={"ids": ids})["items"]:
            assignment, more = wanted[item["id"]]
            submitted = sum(each["status"] == "submitted" for each in item["responses"])
            said = assignment.model_copy(update={"needed": submitted + more})
            metadata = {name: value for name, value in (item["metadata"] or {}).items() if name != ASSIGNMENT}
            if more:
                metadata[ASSIGNMENT] = said.model_dump(mode="json", exclude_defaults=True)
            items.append({"id": item["id"], "metadata": metadata})
        if items:
            argilla.request("PUT", f"/datasets/{dataset_id}/records/bulk", json={"items": items})


def rows_page(argilla: Argilla, dataset_id: str, after: str | None) -> Mapping[str, Any]:
    path = ROWS_PATH.format(dataset_id=dataset_id)
    page: Mapping[str, Any] = argilla.request("GET", path, params={"after": after} if after else None)
    return page


def units_with_texts(argilla: Argilla, dataset_id: str) -> Iterator[Unit]:
    for _, page in argilla.record_pages(dataset_id):
        for record in page:
            answers = []
            for each in record["responses"] or ():
                labels, question = labels_and_question(each["values"])
                first, last = _moment(each["inserted_at"]), _moment(each["updated_at"])
                is_first = last - first < AT_ONCE
                answers.append(Answer(each["user_id"], each["status"], last, as_answers(labels), question, is_first))
            external_id, is_open = record["external_id"] or record["id"], record["status"] == "pending"
            told = (record.get("metadata") or {}).get("citejury")
            ours = told if isinstance(told, Mapping) else {}  # somebody else may have put anything there
            model = (ours.get("provenance") or {}).get("model_name", "") if answers else ""
            unreached = (ours.get("sources") or {}).get("unreached", 0)
            yield Unit(record["id"], external_id, is_open, _in_order(answers), assignment_of(record), model, unreached)


def _in_order(answers: Iterable[Answer]) -> tuple[Answer, ...]:
    return tuple(sorted(answers, key=lambda each: (each.at, each.user_id)))


def as_answers(labels: Mapping[str, str]) -> dict[str, bool | str]:
    return {name: {"yes": True, "no": False}.get(given, given) for name, given in labels.items()}


def _moment(stamp: str) -> datetime:
    """One of Argilla's stamps, which are UTC without saying so."""
    return datetime.fromisoformat(f"{stamp}+00:00")

"""Each record's answers without its texts: from our own server in seconds, from a stock one with everything else."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from annotation.assignment import COMMON, Assignment, assignment_of, read_assignment
from annotation.client import Argilla
from annotation.wording import NOTES
from pipeline.errors import NotFoundError

ROWS_PATH = "/citejury/datasets/{dataset_id}/units"
STATES_PATH = "/citejury/datasets/{dataset_id}/record-states"
CHANGED_PATH = "/citejury/datasets/{dataset_id}/records"
HISTORY_PATH = "/citejury/history"
HISTORY_STATE_PATH = "/citejury/history/state"
PAGE_RECORDS = 5000
AT_ONCE = timedelta(seconds=1)
"""What is stamped as changed so soon after it came was not changed."""
_QUESTION_MARKS = ("?", "？")  # the second is what a Japanese keyboard gives
_YES_OR_NO = ("yes", "no")


class Answer(NamedTuple):
    """What one annotator did with one record."""

    user_id: str
    """Who."""
    status: str
    """`submitted`, `draft` or `discarded`."""
    at: datetime
    """When it was last changed, in UTC."""
    labels: dict[str, bool]
    """Her yes or no, by label; a label that she left out is missing."""
    question: str | None
    """Her note where it begins with a question mark."""
    is_first: bool = True
    """Whether it is as it was first sent; a draft that was submitted and a correction are not."""


class Unit(NamedTuple):
    """One record of a dataset: what an annotator judges at once."""

    record_id: str
    """Argilla's id."""
    external_id: str
    """Ours; Argilla's where the record was not pushed by citejury."""
    is_open: bool
    """Whether Argilla still hands it out."""
    answers: tuple[Answer, ...]
    """What annotators did with it, the earliest first."""
    assignment: Assignment = COMMON
    """What it is for, and who gets it."""


def labels_and_question(values: Mapping[str, Any] | None) -> tuple[dict[str, str], str | None]:
    """The yes/no answers of a response's values, and its note where that begins with a question mark."""
    labels: dict[str, str] = {}
    question = None
    for name, answer in (values or {}).items():
        given = answer.get("value") if isinstance(answer, Mapping) else None
        if name == NOTES:
            if isinstance(given, str) and given.lstrip().startswith(_QUESTION_MARKS):
                question = given
        elif given in _YES_OR_NO:
            labels[name] = given
    return labels, question


def read_units(argilla: Argilla, dataset_id: str, slowly: Callable[[], object] = lambda: None) -> Iterator[Unit]:
    """The dataset's records in order of arrival; none gives nothing.

    Calls `slowly` where the server is a stock Argilla, which sends all texts with them.

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
        yield from _units_of_page(page)
        if page["next"] is None:
            return
        page = rows_page(argilla, dataset_id, page["next"])


def rows_page(argilla: Argilla, dataset_id: str, after: str | None) -> Mapping[str, Any]:
    """One page from our own endpoint."""
    path = ROWS_PATH.format(dataset_id=dataset_id)
    page: Mapping[str, Any] = argilla.request("GET", path, params={"after": after} if after else None)
    return page


def _units_of_page(page: Mapping[str, Any]) -> Iterator[Unit]:
    """The records of a page of our own endpoint, which says there what it holds; answers that say the same share it."""
    users = page["users"]
    values = [(_yes_and_no(labels), question) for labels, question in page["values"]]
    assigned = {each: read_assignment(said, each) for each, said in page["assignments"].items()}
    for record_id, external_id, is_open, responses in page["items"]:
        answers = (
            Answer(users[user], status, _moment(at), values[value][0], values[value][1], bool(is_first))
            for user, status, at, is_first, value in responses
        )
        assignment = assigned.get(record_id, COMMON)
        yield Unit(record_id, external_id or record_id, bool(is_open), _in_order(answers), assignment)


def units_with_texts(argilla: Argilla, dataset_id: str) -> Iterator[Unit]:
    """The same from what any Argilla offers."""
    for _, page in argilla.record_pages(dataset_id):
        for record in page:
            answers = map(_answer, record["responses"] or ())
            external_id, is_open = record["external_id"] or record["id"], record["status"] == "pending"
            yield Unit(record["id"], external_id, is_open, _in_order(answers), assignment_of(record))


def _answer(response: Mapping[str, Any]) -> Answer:
    """A response as Argilla sends it."""
    labels, question = labels_and_question(response["values"])
    first, last = _moment(response["inserted_at"]), _moment(response["updated_at"])
    return Answer(response["user_id"], response["status"], last, _yes_and_no(labels), question, last - first < AT_ONCE)


def _in_order(answers: Iterable[Answer]) -> tuple[Answer, ...]:
    """The answers to a record, the earliest first."""
    return tuple(sorted(answers, key=lambda each: (each.at, each.user_id)))


def _yes_and_no(labels: Mapping[str, str]) -> dict[str, bool]:
    """What is said, by label."""
    return {name: given == "yes" for name, given in labels.items()}


def _moment(stamp: str) -> datetime:
    """One of Argilla's stamps, which are UTC without saying so."""
    return datetime.fromisoformat(f"{stamp}+00:00")

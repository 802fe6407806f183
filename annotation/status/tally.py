"""What the records of one dataset add up to: annotators are counted for the overlap, not answers."""

from collections import Counter, defaultdict
from typing import NamedTuple

from annotation.labels import TASKS, TaskName, broken_rules
from annotation.status.pace import Submission
from annotation.tasks import PRODUCTION
from annotation.units import Answer, Unit


class Place(NamedTuple):
    """A dataset of ours, and who can work in it."""

    id: str
    """Its id."""
    workspace: str
    """Its workspace."""
    round: str
    """Its round."""
    language: str
    """Language of its questions."""
    task: TaskName
    """Its task."""
    version: int
    """Its version."""
    name: str
    """Its name."""
    is_ready: bool
    """Whether annotators can work in it."""
    is_superseded: bool
    """Whether a newer version has taken its place."""
    min_submitted: int
    """How many annotators a record waits for."""
    members: frozenset[str]
    """User ids of the annotators who can work in it."""

    @property
    def order(self) -> tuple[str, bool, str, str, int, int]:
        """What the datasets are sorted by: other rounds, such as calibration, stand before production."""
        task = TASKS.index(self.task)
        return self.workspace, self.round == PRODUCTION, self.round, self.language, task, self.version


class Tally:
    """What the records of one dataset add up to."""

    def __init__(self, place: Place) -> None:
        """Nothing counted yet."""
        self.place = place
        self.records = self.open = self.reached = self.closed_early = 0
        self.needed = self.reachable = self.unreachable = 0
        self.by_status: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.answered_open: Counter[str] = Counter()
        self.broken: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.passages: defaultdict[str, list[bool]] = defaultdict(list)
        self.submissions: list[Submission] = []
        self.questions: list[tuple[Unit, Answer]] = []

    def add(self, unit: Unit) -> None:
        """Count a record."""
        submitters = {each.user_id for each in unit.answers if each.status == "submitted"}
        settled = submitters | {each.user_id for each in unit.answers if each.status == "discarded"}
        wanting = max(0, self.place.min_submitted - len(submitters))
        self.records += 1
        self.open += unit.is_open
        self.reached += not wanting
        self.passages[self.record_uuid(unit)].append(not wanting)
        if wanting and not self.place.is_superseded:
            left = len(self.place.members - settled)
            self.needed += wanting
            self.reachable += min(wanting, left)
            self.unreachable += wanting > left
            self.closed_early += not unit.is_open
        for each in unit.answers:
            self.add_answer(unit, each)

    def add_answer(self, unit: Unit, each: Answer) -> None:
        """Count one answer to the record."""
        self.by_status[each.user_id][each.status] += 1
        self.answered_open[each.user_id] += unit.is_open
        if each.status == "submitted":
            self.submissions.append(Submission(each.user_id, each.at, self.place.id))
            self.broken[each.user_id].update(broken_rules(self.place.task, each.labels))
        if each.question is not None:
            self.questions.append((unit, each))

    def record_uuid(self, unit: Unit) -> str:
        """The id of the record that the unit is of; a passage's own id begins with it."""
        return unit.external_id.partition(":")[0] if self.place.task == "retrieval" else unit.external_id

    def total(self, status: str) -> int:
        """Everybody's answers of a status."""
        return sum(counts[status] for counts in self.by_status.values())

    def pending_for(self, user_id: str) -> int:
        """How many records wait in a person's queue."""
        if user_id not in self.place.members or self.place.is_superseded:
            return 0
        return self.open - self.answered_open[user_id]

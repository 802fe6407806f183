"""What the records of each dataset add up to, one after the other; nothing of it is in words yet."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence

from annotation.client import Argilla
from annotation.controls.scores import ControlTally
from annotation.labels import broken_rules
from annotation.status._pace import Submission
from annotation.status._watched import WatchedDataset, find_watched
from annotation.units import Answer, Unit, read_units


class Tally:
    """What the records of one dataset add up to."""

    def __init__(self, watched: WatchedDataset) -> None:
        """Start with no record."""
        self.watched = watched
        self.records = self.apart = self.reached = self.closed_early = 0
        self.needed = self.reachable = self.kept_out = self.unreachable = 0
        self.waits_for: Counter[str] = Counter()
        self.by_status: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.open = 0
        self.open_for: Counter[str] = Counter()
        self.broken: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.passages: defaultdict[str, list[bool]] = defaultdict(list)
        self.submissions: list[Submission] = []
        self.said: defaultdict[str, list[tuple[str, frozenset[str]]]] = defaultdict(list)
        self.questions: list[tuple[Unit, Answer]] = []
        self.controls = ControlTally(watched.dataset.task)
        self._known: dict[int, tuple[Mapping[str, bool], frozenset[str], tuple[str, ...]]] = {}

    @property
    def id(self) -> str:
        """Argilla's id of the dataset."""
        return self.watched.dataset.id

    def add(self, unit: Unit) -> None:
        """Count a record; of one that is not to be labelled, only when it was answered and what was asked about it."""
        is_apart = unit.assignment.purpose != "label"
        self.controls.add(unit)
        record_uuid = self.record_uuid(unit)
        for each in unit.answers:
            self._add_answer(unit, record_uuid, each, is_apart)
        if is_apart:
            self.apart += 1
            return
        answers, wanted = unit.answers, unit.assignment.needed or self.watched.dataset.min_submitted
        submitted = sum(each.status == "submitted" for each in answers)
        wanting = max(0, wanted - submitted)
        self.records += 1
        self.reached += not wanting
        if self.watched.dataset.task == "retrieval":
            self.passages[record_uuid].append(not wanting)
        if unit.is_open:
            if unit.assignment.users:
                self.open_for.update(unit.assignment.users)
            else:
                self.open += 1
        if wanting and not self.watched.is_superseded:
            settled = {each.user_id for each in answers if each.status != "draft"}
            takers = self._takers(unit) - settled
            left, out = len(takers & self.watched.open_to), takers & self.watched.kept_out.keys()
            self.needed += wanting
            self.reachable += min(wanting, left)
            self.kept_out += max(0, min(wanting, len(takers)) - left)
            self.waits_for.update(out if wanting > left else ())
            self.unreachable += wanting > len(takers)
            self.closed_early += not unit.is_open

    def _takers(self, unit: Unit) -> frozenset[str]:
        """User ids of those who get the record, now or once they have passed its practice."""
        members, users = self.watched.members, unit.assignment.users
        return members.intersection(users) if users else members

    def _add_answer(self, unit: Unit, record_uuid: str, each: Answer, is_apart: bool) -> None:
        """Count one answer to the record."""
        if each.question is not None:
            self.questions.append((unit, each))
        if each.status == "submitted":
            self.submissions.append(Submission(each.user_id, each.at, self.id, each.is_first, is_apart))
        if is_apart:
            return
        self.by_status[each.user_id][each.status] += 1
        self.open_for[each.user_id] -= unit.is_open
        if each.status == "submitted":
            _, yes, broken = self._read(each.labels)
            self.said[each.user_id].append((record_uuid, yes))
            if broken:
                self.broken[each.user_id].update(broken)

    def _read(self, labels: Mapping[str, bool]) -> tuple[Mapping[str, bool], frozenset[str], tuple[str, ...]]:
        """The labels, those that are yes, and the rules that they break; answers that say the same share their labels.

        The labels are kept with what was read of them, so that no other ones get their id.
        """
        known = self._known.get(id(labels))
        if known is None:
            yes = frozenset(name for name, given in labels.items() if given)
            known = self._known[id(labels)] = (labels, yes, broken_rules(self.watched.dataset.task, labels))
        return known

    def record_uuid(self, unit: Unit) -> str:
        """The id of the record that the unit is of; a passage's own id begins with it."""
        return unit.external_id.partition(":")[0] if self.watched.dataset.task == "retrieval" else unit.external_id

    def total(self, status: str) -> int:
        """Everybody's answers of a status."""
        return sum(counts[status] for counts in self.by_status.values())

    def pending_for(self, user_id: str) -> int:
        """How many records wait in a person's queue."""
        if user_id not in self.watched.open_to or self.watched.is_superseded:
            return 0
        return self.open + self.open_for[user_id]


def read_tallies(
    argilla: Argilla,
    workspaces: Sequence[str],
    rounds: Collection[str],
    languages: Mapping[str, Collection[str]],
    slowly: Callable[[], object],
) -> tuple[list[WatchedDataset], list[Tally]]:
    """Our datasets in the workspaces in order of the work, and what is in those of them that are ready.

    Raises:
        NotFoundError: no such workspace, or no dataset of ours in them, or none of a round that is named.
        ArgillaError: the server does not answer, refuses the key, or its records are being deleted.
    """
    found = find_watched(argilla, workspaces, rounds, languages)
    tallies = [Tally(watched) for watched in found if watched.is_ready]
    for tally in tallies:
        for unit in read_units(argilla, tally.id, slowly):
            tally.add(unit)
    return found, tallies

"""Our datasets in a campaign's workspaces, who can work in each, and what its records add up to."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from annotation.argilla.client import Argilla
from annotation.argilla.labels import TASKS, TaskName, broken_rules, is_of_passages
from annotation.argilla.tasks import PRACTICE, PRODUCTION
from annotation.argilla.units import Answer, Assignment, Unit, read_units, record_uuid_of
from annotation.campaign.datasets import JuryDataset, jury_dataset
from annotation.quality.practice import CLOSED_ROUNDS, below_marks, standings_of
from annotation.quality.scores import ControlTally
from annotation.quality.submissions import Submission
from pipeline.core.errors import NotFoundError


class WatchedDataset(NamedTuple):
    dataset: JuryDataset
    is_superseded: bool
    members: frozenset[str]
    kept_out: Mapping[str, str]  # to whom it is closed until they pass its practice, with how far they are in words

    @property
    def open_to(self) -> frozenset[str]:
        return self.members - self.kept_out.keys()

    @property
    def order(self) -> tuple[str, bool, str, str, int, int]:
        """Other rounds, such as calibration, stand before production."""
        of = self.dataset
        return of.workspace, of.round == PRODUCTION, of.round, of.locale, TASKS.index(of.task), of.version


def find_watched(
    argilla: Argilla, workspaces: Sequence[str], rounds: Collection[str], languages: Mapping[str, Collection[str]]
) -> list[WatchedDataset]:
    """Sorted, those that are not finished included."""
    ours = [each for name in dict.fromkeys(workspaces) for each in _watched_in(argilla, name, languages)]
    there = sorted({each.dataset.round for each in ours})
    missing = [name for name in rounds if name not in there]
    if missing or not ours:
        raise NotFoundError(
            f"There is no dataset of citejury{f' of the round {missing[0]!r}' if missing else ''} in "
            f"{', '.join(map(repr, workspaces))} on Argilla at {argilla.api_url}; the rounds there are: "
            f"{', '.join(there) or 'none'}. Check `--workspace` and `--round`, or run `citejury annotation setup`."
        )
    return sorted(
        (watched for watched in ours if not rounds or watched.dataset.round in rounds),
        key=lambda watched: watched.order,
    )


def _watched_in(argilla: Argilla, workspace: str, languages: Mapping[str, Collection[str]]) -> Iterator[WatchedDataset]:
    """With those of its annotators who label in their languages."""
    workspace_id = argilla.find_workspace(workspace)
    jury = [user for user in argilla.workspace_users(workspace_id) if user["role"] == "annotator"]
    described = argilla.datasets(workspace_id)
    ours = [found for each in described if (found := jury_dataset(each, workspace))]
    newest = {each.series: each for each in sorted(ours, key=lambda each: each.version) if each.is_ready}
    practices = _practices(argilla, workspace)
    for dataset in ours:
        labelling = frozenset(
            user["id"] for user in jury if dataset.locale in languages.get(user["username"], (dataset.locale,))
        )
        is_superseded = dataset.is_ready and newest[dataset.series] != dataset
        kept_out = practices.get((dataset.task, dataset.locale), {}) if dataset.round in CLOSED_ROUNDS else {}
        out = {user_id: said for user_id, said in kept_out.items() if user_id in labelling}
        yield WatchedDataset(dataset, is_superseded, labelling, out)


def _practices(argilla: Argilla, workspace: str) -> dict[tuple[TaskName, str], dict[str, str]]:
    """Who has passed no version of the practices that come before a workspace's lists, and how far they are in words.

    By task and language, then by user id. A practice stands in the workspace itself, or in the one that its group's
    name begins with. Nobody is kept out by a stock server.
    """
    found: defaultdict[tuple[TaskName, str], list[dict[str, Any]]] = defaultdict(list)
    for name, workspace_id in argilla.workspaces().items():
        if name != workspace and not workspace.startswith(f"{name}-"):
            continue
        for each in argilla.datasets(workspace_id):
            dataset = jury_dataset(each, name)
            if dataset is not None and dataset.round == PRACTICE and dataset.is_ready:
                try:
                    found[dataset.task, dataset.locale] += standings_of(argilla, dataset)
                except NotFoundError:
                    return {}
    kept_out: dict[tuple[TaskName, str], dict[str, str]] = {}
    for place, standings in found.items():
        let_in = {each["user_id"] for each in standings if each["opens"]}  # by some version
        for each in (each for each in standings if each["user_id"] not in let_in):
            how_far = f"{each['right']} of {each['known']} answers right, {each['wanted']} wanted{below_marks(each)}"
            if each["answered"] < each["cases"]:
                how_far = f"{each['answered']} of {each['cases']} cases done"
            kept_out.setdefault(place, {})[each["user_id"]] = how_far
    return kept_out


def is_split(unit: Unit, min_submitted: int) -> bool:
    """Whether the unit has all the submissions that it waits for, and two of them differ in a label."""
    said = [each.labels for each in unit.answers if each.status == "submitted"]
    if len(said) < (unit.assignment.needed or min_submitted):
        return False
    given = {pair for labels in said for pair in labels.items()}
    return len({name for name, _ in given}) < len(given)


class WorkTally:
    """How far the work on the units of a dataset is: what takes no more than who answered each, and how."""

    def __init__(self, watched: WatchedDataset) -> None:
        self.watched = watched
        self.records = self.reached = self.needed = 0
        self.unreachable: list[str] = []  # names of units
        self.by_status: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def add_work(self, name: str, assignment: Assignment, answers: Sequence[tuple[str, str]]) -> tuple[int, Set[str]]:
        """How many submissions the unit lacks, and which members may give them; answers are user id and status.

        Of one that is not to be labelled nothing counts.
        """
        if assignment.purpose != "label":
            return 0, frozenset()
        submitted = 0
        for user_id, status in answers:
            self.by_status[user_id][status] += 1
            submitted += status == "submitted"
        wanting = max(0, (assignment.needed or self.watched.dataset.min_submitted) - submitted)
        self.records += 1
        self.reached += not wanting
        if not wanting or self.watched.is_superseded:
            return wanting, frozenset()
        members, users = self.watched.members, assignment.users
        settled = {user_id for user_id, status in answers if status != "draft"}
        takers = (members.intersection(users) if users else members) - settled
        self.needed += wanting
        self.unreachable += [name] * (wanting > len(takers))
        return wanting, takers

    def total(self, status: str) -> int:
        return sum(counts[status] for counts in self.by_status.values())


class Tally(WorkTally):
    def __init__(self, watched: WatchedDataset) -> None:
        super().__init__(watched)
        self.apart = self.closed_early = self.reachable = self.kept_out = 0
        self.waits_for: Counter[str] = Counter()
        self.falls_to: defaultdict[str, float] = defaultdict(float)  # `reachable`, shared evenly among who may answer
        self.split: list[str] = []  # external ids
        self.unreached: dict[str, int] = {}  # sources without a page by answer
        self.by_model: defaultdict[str, Counter[str]] = defaultdict(Counter)  # what each person submitted
        self.open = 0
        self.open_for: Counter[str] = Counter()
        self.broken: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.passages: defaultdict[str, list[bool]] = defaultdict(list)
        self.submissions: list[Submission] = []
        self.questions: list[tuple[Unit, Answer]] = []
        self.controls = ControlTally(watched.dataset.task)
        self._known: dict[int, tuple[Mapping[str, bool | str], tuple[str, ...]]] = {}

    @property
    def id(self) -> str:
        return self.watched.dataset.id

    def add(self, unit: Unit) -> None:
        """Of one that is not to be labelled, only when it was answered and what was asked about it counts."""
        is_apart = unit.assignment.purpose != "label"
        self.controls.add(unit)
        record_uuid = record_uuid_of(self.watched.dataset.task, unit)
        for each in unit.answers:
            self._add_answer(unit, each, is_apart)
        answers = [(each.user_id, each.status) for each in unit.answers]
        wanting, takers = self.add_work(unit.external_id, unit.assignment, answers)
        if is_apart:
            self.apart += 1
            return
        if is_of_passages(self.watched.dataset.task):
            self.passages[record_uuid].append(not wanting)
        self.unreached[record_uuid] = unit.unreached
        if is_split(unit, self.watched.dataset.min_submitted) and not self.watched.is_superseded:
            self.split.append(unit.external_id)
        if unit.is_open:
            if unit.assignment.users:
                self.open_for.update(unit.assignment.users)
            else:
                self.open += 1
        if wanting and not self.watched.is_superseded:
            free, out = takers & self.watched.open_to, takers & self.watched.kept_out.keys()
            left = len(free)
            for user_id in free:
                self.falls_to[user_id] += min(wanting, left) / left
            self.reachable += min(wanting, left)
            self.kept_out += max(0, min(wanting, len(takers)) - left)
            self.waits_for.update(out if wanting > left else ())
            self.closed_early += not unit.is_open

    def _add_answer(self, unit: Unit, each: Answer, is_apart: bool) -> None:
        if each.question is not None:
            self.questions.append((unit, each))
        if each.status == "submitted":
            self.submissions.append(Submission(each.user_id, each.at, self.id, each.is_first, is_apart))
        if is_apart:
            return
        self.open_for[each.user_id] -= unit.is_open and each.user_id in (unit.assignment.users or (each.user_id,))
        if each.status == "submitted" and unit.model:
            self.by_model[each.user_id][unit.model] += 1
        if each.status == "submitted" and (broken := self._broken_by(each.labels)):
            self.broken[each.user_id].update(broken)

    def _broken_by(self, labels: Mapping[str, bool | str]) -> tuple[str, ...]:
        """Answers that say the same share their labels, which are kept so that no other ones get their id."""
        known = self._known.get(id(labels))
        if known is None:
            known = self._known[id(labels)] = (labels, broken_rules(self.watched.dataset.task, labels))
        return known[1]

    def pending_for(self, user_id: str) -> int:
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
    """Our datasets in order of the work, and what is in those of them that are ready."""
    found = find_watched(argilla, workspaces, rounds, languages)
    tallies = [Tally(watched) for watched in found if watched.dataset.is_ready]
    for tally in tallies:
        for unit in read_units(argilla, tally.id, slowly):
            tally.add(unit)
    _leave_out_settled(argilla, workspaces, tallies)
    return found, tallies


def _leave_out_settled(argilla: Argilla, workspaces: Sequence[str], tallies: Sequence[Tally]) -> None:
    """What is before adjudicators already is theirs, and split no more."""
    if not any(tally.split for tally in tallies):
        return
    there: defaultdict[TaskName, set[str]] = defaultdict(set)
    for name, workspace_id in argilla.workspaces().items():
        home, is_of_adjudicators, _ = name.partition("-adjudication")
        if is_of_adjudicators and any(each == home or each.startswith(f"{home}-") for each in workspaces):
            for described in argilla.datasets(workspace_id):
                if dataset := jury_dataset(described, name):
                    there[dataset.task].update(unit.external_id for unit in read_units(argilla, dataset.id))
    for tally in tallies:
        tally.split = [each for each in tally.split if each not in there[tally.watched.dataset.task]]

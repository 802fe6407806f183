"""How far the work is: counted from the answers to each record, not from what Argilla's own progress says.

`read_status` reads, `_Tally` counts one dataset, and the rest sums up: paces, forecasts, questions, what needs a look.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from importlib.metadata import version
from typing import Any, NamedTuple

from annotation.campaign.datasets import JuryDataset, jury_dataset
from annotation.campaign.versions import is_carrying, newest_versions, series_of
from annotation.client import Argilla
from annotation.controls.scores import ControlTally, score_tallies
from annotation.labels import TASKS, broken_rules
from annotation.status._schema import AnnotatorStatus, DatasetStatus, HalfDone, Question, Status
from annotation.tasks import PRODUCTION
from annotation.units import Answer, Unit, read_units
from pipeline.errors import NotFoundError

_TODAY = timedelta(hours=24)
_PAUSE = timedelta(minutes=30)
"""Who submits nothing for longer was not at work."""
_LONGEST_FORECAST = timedelta(days=3650)


class Submission(NamedTuple):
    """A response was submitted."""

    user_id: str
    """By whom."""
    at: datetime
    """When, in UTC."""
    dataset_id: str
    """Where."""


class Work(NamedTuple):
    """What was done in the last 24 hours, and how long the part of it took whose time can be told."""

    units: int = 0
    """Submissions."""
    timed: int = 0
    """Those that follow another one of the same person without a pause."""
    seconds: float = 0.0
    """How long these took."""

    @property
    def per_hour(self) -> float | None:
        """Units an hour of work; None where no time can be told."""
        return round(self.timed * 3600 / self.seconds, 1) if self.seconds else None


class Forecast(NamedTuple):
    """When the work is done, or why that cannot be told."""

    finish: datetime | None
    """The moment."""
    reason: str
    """Why there is none; empty where there is one."""


class _WatchedDataset(NamedTuple):
    """A dataset of ours, and who can work in it."""

    dataset: JuryDataset
    """The dataset."""
    is_ready: bool
    """Whether annotators can work in it: it is published, and all its records are in it."""
    is_superseded: bool
    """Whether a newer version has taken its place."""
    members: frozenset[str]
    """User ids of the annotators who can work in it."""

    @property
    def order(self) -> tuple[str, bool, str, str, int, int]:
        """What the datasets are sorted by: other rounds, such as calibration, stand before production."""
        of = self.dataset
        return of.workspace, of.round == PRODUCTION, of.round, of.locale, TASKS.index(of.task), of.version


def read_status(
    argilla: Argilla,
    workspaces: Sequence[str],
    now: datetime,
    *,
    rounds: Collection[str] = (),
    languages: Mapping[str, Collection[str]] | None = None,
    slowly: Callable[[], object] = lambda: None,
) -> Status:
    """How far the work in these workspaces is.

    Args:
        argilla: The server, as an owner or admin.
        workspaces: Their names.
        now: The end of the last 24 hours, in which work is measured.
        rounds: Only these rounds; all where none is named.
        languages: In which languages somebody labels, by user name; all for those who are not named.
        slowly: Called where the server is a stock Argilla, whose answers hold all texts.

    Raises:
        NotFoundError: no such workspace, or no dataset of ours in them, or none of a round that is named.
        ArgillaError: the server does not answer, refuses the key, or its records are being deleted.
    """
    found = _find_watched(argilla, workspaces, rounds, languages or {})
    names = argilla.usernames()
    tallies = [_Tally(watched) for watched in found if watched.is_ready]
    for tally in tallies:
        for unit in read_units(argilla, tally.watched.dataset.id, slowly):
            tally.add(unit)
    warnings = [
        f"The dataset '{watched.dataset.workspace}/{watched.dataset.name}' is not finished, so nobody can work in it. "
        "Run `citejury annotation setup`."
        for watched in found
        if not watched.is_ready
    ]
    return _summed_up(tallies, names, now, argilla.api_url, workspaces, warnings)


def _find_watched(
    argilla: Argilla, workspaces: Sequence[str], rounds: Collection[str], languages: Mapping[str, Collection[str]]
) -> list[_WatchedDataset]:
    """The datasets of ours in these workspaces, sorted, those that are not finished included.

    Raises:
        NotFoundError: no such workspace, or no such dataset.
    """
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


def _watched_in(
    argilla: Argilla, workspace: str, languages: Mapping[str, Collection[str]]
) -> Iterator[_WatchedDataset]:
    """One workspace's datasets of ours, with those of its annotators who label in their languages.

    Raises:
        NotFoundError: no such workspace.
    """
    workspace_id = argilla.find_workspace(workspace)
    jury = [user for user in argilla.workspace_users(workspace_id) if user["role"] == "annotator"]
    described = argilla.datasets(workspace_id)
    newest = newest_versions(each for each in described if _is_ready(each))
    for each in described:
        dataset, series = jury_dataset(each, workspace), series_of(each)
        if dataset is None or series is None:
            continue
        labelling = (
            user["id"] for user in jury if dataset.locale in languages.get(user["username"], (dataset.locale,))
        )
        is_superseded = _is_ready(each) and newest[series]["id"] != dataset.id
        yield _WatchedDataset(dataset, _is_ready(each), is_superseded, frozenset(labelling))


def _is_ready(dataset: Mapping[str, Any]) -> bool:
    """Whether annotators can work in the dataset: it is published, and all its records are in it."""
    return bool(dataset["status"] == "ready") and not is_carrying(dataset)


class _Tally:
    """What the records of one dataset add up to."""

    def __init__(self, watched: _WatchedDataset) -> None:
        """Start with no record."""
        self.watched = watched
        self.records = self.open = self.reached = self.closed_early = 0
        self.needed = self.reachable = self.unreachable = 0
        self.by_status: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.answered_open: Counter[str] = Counter()
        self.broken: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.passages: defaultdict[str, list[bool]] = defaultdict(list)
        self.submissions: list[Submission] = []
        self.questions: list[tuple[Unit, Answer]] = []
        self.controls = ControlTally(watched.dataset.task)

    def add(self, unit: Unit) -> None:
        """Count a record."""
        self.controls.add(unit)
        submitters = {each.user_id for each in unit.answers if each.status == "submitted"}
        settled = submitters | {each.user_id for each in unit.answers if each.status == "discarded"}
        wanting = max(0, self.watched.dataset.min_submitted - len(submitters))
        self.records += 1
        self.open += unit.is_open
        self.reached += not wanting
        self.passages[self.record_uuid(unit)].append(not wanting)
        if wanting and not self.watched.is_superseded:
            left = len(self.watched.members - settled)
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
            self.submissions.append(Submission(each.user_id, each.at, self.watched.dataset.id))
            self.broken[each.user_id].update(broken_rules(self.watched.dataset.task, each.labels))
        if each.question is not None:
            self.questions.append((unit, each))

    def record_uuid(self, unit: Unit) -> str:
        """The id of the record that the unit is of; a passage's own id begins with it."""
        return unit.external_id.partition(":")[0] if self.watched.dataset.task == "retrieval" else unit.external_id

    def total(self, status: str) -> int:
        """Everybody's answers of a status."""
        return sum(counts[status] for counts in self.by_status.values())

    def pending_for(self, user_id: str) -> int:
        """How many records wait in a person's queue."""
        if user_id not in self.watched.members or self.watched.is_superseded:
            return 0
        return self.open - self.answered_open[user_id]


def _summed_up(
    tallies: Sequence[_Tally],
    names: Mapping[str, str],
    now: datetime,
    server: str,
    workspaces: Sequence[str],
    warnings: Sequence[str] = (),
) -> Status:
    """The report of what was counted; `names` are the user names by id."""
    work = work_today((each for tally in tallies for each in tally.submissions), now)
    datasets = tuple(_dataset_status(tally, names, work, now) for tally in tallies)
    needed, reachable = sum(each.needed for each in datasets), sum(each.reachable for each in datasets)
    done_today = sum(each.units for each in work.values())
    expected = forecast(needed, reachable, done_today, now)
    return Status(
        citejury=version("citejury"),
        server=server,
        moment=_stamp(now),
        workspaces=tuple(dict.fromkeys(workspaces)),
        needed=needed,
        reachable=reachable,
        done_today=done_today,
        finish=_stamp(expected.finish) if expected.finish else None,
        no_finish=expected.reason,
        datasets=datasets,
        annotators=_people(tallies, names, work),
        questions=_questions(tallies, names),
        controls=score_tallies((tally.controls for tally in tallies), names),
        warnings=(*warnings, *_warnings_about(datasets)),
    )


def _dataset_status(
    tally: _Tally, names: Mapping[str, str], work: Mapping[tuple[str, str], Work], now: datetime
) -> DatasetStatus:
    """What one dataset's records add up to."""
    watched = tally.watched
    here = _together(each for (_, dataset_id), each in work.items() if dataset_id == watched.dataset.id)
    expected = forecast(tally.needed, tally.reachable, here.units, now)
    last = max((each.at for each in tally.submissions), default=None)
    return DatasetStatus(
        workspace=watched.dataset.workspace,
        round=watched.dataset.round,
        task=watched.dataset.task,
        language=watched.dataset.locale,
        dataset=watched.dataset.name,
        version=watched.dataset.version,
        is_superseded=watched.is_superseded,
        min_submitted=watched.dataset.min_submitted,
        records=tally.records,
        overlap_reached=tally.reached,
        pending=0 if watched.is_superseded else tally.records - tally.reached,
        needed=tally.needed,
        reachable=tally.reachable,
        unreachable=tally.unreachable,
        closed_early=tally.closed_early,
        done=tally.total("submitted"),
        drafts=tally.total("draft"),
        discarded=tally.total("discarded"),
        done_today=here.units,
        units_per_hour=here.per_hour,
        last_submission=_stamp(last) if last else None,
        finish=_stamp(expected.finish) if expected.finish else None,
        no_finish=_why_no_finish(tally, expected),
        broken_rules=dict(sorted(sum(tally.broken.values(), Counter[str]()).items())),
        half_done=_half_done(tally),
        annotators=_people([tally], names, work),
    )


def _why_no_finish(tally: _Tally, expected: Forecast) -> str:
    """Why a dataset has no finish; empty where it has one."""
    if tally.watched.is_superseded:
        return "a newer version has taken its place"
    return expected.reason if tally.records else "there are no records yet"


def _half_done(tally: _Tally) -> tuple[HalfDone, ...]:
    """The answers of which some passages are done and others are not, in order of arrival."""
    if tally.watched.dataset.task != "retrieval" or tally.watched.is_superseded:
        return ()
    return tuple(
        HalfDone(record_uuid=record_uuid, units=len(reached), done=sum(reached))
        for record_uuid, reached in tally.passages.items()
        if 0 < sum(reached) < len(reached)
    )


def _people(
    tallies: Sequence[_Tally], names: Mapping[str, str], work: Mapping[tuple[str, str], Work]
) -> tuple[AnnotatorStatus, ...]:
    """Everybody who can work in these datasets or did, in order of their names."""
    user_ids = {user_id for tally in tallies for user_id in (*tally.watched.members, *tally.by_status)}
    found = (_annotator_status(user_id, tallies, names, work) for user_id in user_ids)
    return tuple(sorted(found, key=lambda each: each.annotator))


def _annotator_status(
    user_id: str, tallies: Sequence[_Tally], names: Mapping[str, str], work: Mapping[tuple[str, str], Work]
) -> AnnotatorStatus:
    """One person's work in these datasets together."""
    counts: Counter[str] = Counter()
    broken: Counter[str] = Counter()
    for tally in tallies:
        counts.update(tally.by_status.get(user_id, {}))
        broken.update(tally.broken.get(user_id, {}))
    today = _together(work.get((user_id, tally.watched.dataset.id), Work()) for tally in tallies)
    return AnnotatorStatus(
        annotator=names.get(user_id, user_id),
        is_member=any(user_id in tally.watched.members for tally in tallies),
        done=counts["submitted"],
        pending=sum(tally.pending_for(user_id) for tally in tallies),
        drafts=counts["draft"],
        discarded=counts["discarded"],
        done_today=today.units,
        units_per_hour=today.per_hour,
        broken_rules=dict(sorted(broken.items())),
        questions=sum(each.user_id == user_id for tally in tallies for _, each in tally.questions),
    )


def _questions(tallies: Iterable[_Tally], names: Mapping[str, str]) -> tuple[Question, ...]:
    """What annotators ask, the oldest first."""
    found = [
        Question(
            annotator=names.get(each.user_id, each.user_id),
            record_uuid=tally.record_uuid(unit),
            external_id=unit.external_id,
            record_id=unit.record_id,
            workspace=tally.watched.dataset.workspace,
            dataset=tally.watched.dataset.name,
            status=each.status,
            at=_stamp(each.at),
            text=each.question or "",
        )
        for tally in tallies
        for unit, each in tally.questions
    ]
    return tuple(sorted(found, key=lambda question: (question.at, question.annotator, question.external_id)))


def _warnings_about(datasets: Sequence[DatasetStatus]) -> Iterator[str]:
    """Plain sentences about what needs a look; nothing where nothing does."""
    stuck = [(dataset, dataset.unreachable) for dataset in datasets if dataset.unreachable]
    if stuck:
        yield (
            "Some records cannot reach their overlap: too few annotators are left who have neither submitted nor "
            f"discarded them ({_counts_by_name(stuck)}). Add annotators with `citejury annotation setup`."
        )
    closed = [(dataset, dataset.closed_early) for dataset in datasets if dataset.closed_early]
    if closed:
        yield (
            "Argilla hands some records out to nobody, though fewer annotators submitted them than their dataset waits "
            f"for ({_counts_by_name(closed)}). They were done when the overlap was smaller."
        )


def _counts_by_name(found: Iterable[tuple[DatasetStatus, int]]) -> str:
    """How many in which dataset."""
    return ", ".join(f"{dataset.workspace}/{dataset.dataset}: {count}" for dataset, count in found)


def work_today(submissions: Iterable[Submission], now: datetime) -> dict[tuple[str, str], Work]:
    """What each person did in each dataset in the 24 hours up to `now`, by user id and dataset id.

    A unit took the time since the same person's submission before, in whichever dataset that was; so work that goes
    back and forth between datasets is counted once. The first unit after a pause has no time.
    """
    begin = now - _TODAY
    earlier: dict[str, datetime] = {}
    found: defaultdict[tuple[str, str], Work] = defaultdict(Work)
    for each in sorted(each for each in submissions if each.at > begin - _PAUSE):
        before, earlier[each.user_id] = earlier.get(each.user_id), each.at
        if each.at <= begin:
            continue
        work = found[each.user_id, each.dataset_id]
        taken = each.at - before if before is not None else _PAUSE
        is_timed = taken < _PAUSE
        seconds = taken.total_seconds() if is_timed else 0.0
        found[each.user_id, each.dataset_id] = Work(work.units + 1, work.timed + is_timed, work.seconds + seconds)
    return dict(found)


def _together(works: Iterable[Work]) -> Work:
    """The sum of several people's or datasets' work."""
    units, timed, seconds = 0, 0, 0.0
    for work in works:
        units, timed, seconds = units + work.units, timed + work.timed, seconds + work.seconds
    return Work(units, timed, seconds)


def forecast(needed: int, reachable: int, done_today: int, now: datetime) -> Forecast:
    """When all is done that can be, if each day from `now` on brings as many submissions as the last 24 hours.

    `needed` submissions are wanting; for `reachable` of them there are annotators who have not settled the record yet.
    """
    if not needed:
        return Forecast(None, "nothing is wanting")
    if not reachable:
        return Forecast(None, "no annotators are left for what is wanting")
    if not done_today:
        return Forecast(None, "nobody submitted anything in the last 24 hours")
    if reachable / done_today > _LONGEST_FORECAST / _TODAY:
        return Forecast(None, "more than ten years at today's pace")
    return Forecast(now + _TODAY * (reachable / done_today), "")


def _stamp(moment: datetime) -> str:
    """A moment in UTC as ISO 8601, to the second."""
    return moment.isoformat(timespec="seconds")

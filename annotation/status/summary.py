"""How far the work is: counted from the answers to each record, not from what Argilla's own progress says.

`read_status` reads, `Tally` counts one dataset, and the rest sums up: paces, forecasts, questions, what needs a look.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from importlib.metadata import version
from typing import Any

from annotation.campaign.datasets import jury_dataset
from annotation.campaign.versions import is_carrying, newest_versions, series_of
from annotation.client import Argilla
from annotation.controls.scores import score_tallies
from annotation.status._notices import notices_of_datasets, notices_of_people
from annotation.status._pace import Backlog, Forecast, Work, forecasts, last_of, together, work_today
from annotation.status._schema import AnnotatorStatus, DatasetStatus, HalfDone, Question, Status
from annotation.status._tally import Tally, WatchedDataset
from annotation.units import read_units
from pipeline.errors import NotFoundError


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
    found = find_watched(argilla, workspaces, rounds, languages or {})
    names = argilla.usernames()
    tallies = [Tally(watched) for watched in found if watched.is_ready]
    for tally in tallies:
        for unit in read_units(argilla, tally.watched.dataset.id, slowly):
            tally.add(unit)
    status = _summed_up(tallies, names, now, argilla.api_url, workspaces)
    return status.model_copy(
        update={
            "notices": (
                *notices_of_datasets(found, status.datasets),
                *notices_of_people(tallies, names, status.controls, argilla),
            )
        }
    )


def find_watched(
    argilla: Argilla, workspaces: Sequence[str], rounds: Collection[str], languages: Mapping[str, Collection[str]]
) -> list[WatchedDataset]:
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


def _watched_in(argilla: Argilla, workspace: str, languages: Mapping[str, Collection[str]]) -> Iterator[WatchedDataset]:
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
        yield WatchedDataset(dataset, _is_ready(each), is_superseded, frozenset(labelling))


def _is_ready(dataset: Mapping[str, Any]) -> bool:
    """Whether annotators can work in the dataset: it is published, and all its records are in it."""
    return bool(dataset["status"] == "ready") and not is_carrying(dataset)


def _summed_up(
    tallies: Sequence[Tally],
    names: Mapping[str, str],
    now: datetime,
    server: str,
    workspaces: Sequence[str],
) -> Status:
    """The report of what was counted; `names` are the user names by id."""
    work = work_today((each for tally in tallies for each in tally.submissions), now)
    today = [together(each for (_, there), each in work.items() if there == tally.id) for tally in tallies]
    expected = forecasts(list(map(_backlog, tallies, today)), now)
    datasets = tuple(map(partial(_dataset_status, names=names, work=work), tallies, today, expected))
    last = last_of(expected)
    return Status(
        citejury=version("citejury"),
        server=server,
        moment=_stamp(now),
        workspaces=tuple(dict.fromkeys(workspaces)),
        needed=sum(each.needed for each in datasets),
        reachable=sum(each.reachable for each in datasets),
        done_today=sum(each.units for each in work.values()),
        finish=_stamp(last.finish) if last.finish else None,
        no_finish=last.reason,
        datasets=datasets,
        annotators=_people(tallies, names, work),
        questions=_questions(tallies, names),
        controls=score_tallies((tally.controls for tally in tallies), names),
        notices=(),
    )


def _backlog(tally: Tally, today: Work) -> Backlog:
    """What the dataset lacks."""
    return Backlog(tally.watched.dataset.task, tally.watched.members, tally.needed, tally.reachable, today)


def _dataset_status(
    tally: Tally, here: Work, expected: Forecast, *, names: Mapping[str, str], work: Mapping[tuple[str, str], Work]
) -> DatasetStatus:
    """What one dataset's records add up to, with what was done in it in the last 24 hours and when it is done."""
    watched = tally.watched
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


def _why_no_finish(tally: Tally, expected: Forecast) -> str:
    """Why a dataset has no finish; empty where it has one."""
    if tally.watched.is_superseded:
        return "a newer version has taken its place"
    return expected.reason if tally.records else "there are no records yet"


def _half_done(tally: Tally) -> tuple[HalfDone, ...]:
    """The answers of which some passages are done and others are not, in order of arrival."""
    if tally.watched.dataset.task != "retrieval" or tally.watched.is_superseded:
        return ()
    return tuple(
        HalfDone(record_uuid=record_uuid, units=len(reached), done=sum(reached))
        for record_uuid, reached in tally.passages.items()
        if 0 < sum(reached) < len(reached)
    )


def _people(
    tallies: Sequence[Tally], names: Mapping[str, str], work: Mapping[tuple[str, str], Work]
) -> tuple[AnnotatorStatus, ...]:
    """Everybody who can work in these datasets or did, in order of their names."""
    user_ids = {user_id for tally in tallies for user_id in (*tally.watched.members, *tally.by_status)}
    found = (_annotator_status(user_id, tallies, names, work) for user_id in user_ids)
    return tuple(sorted(found, key=lambda each: each.annotator))


def _annotator_status(
    user_id: str, tallies: Sequence[Tally], names: Mapping[str, str], work: Mapping[tuple[str, str], Work]
) -> AnnotatorStatus:
    """One person's work in these datasets together."""
    counts: Counter[str] = Counter()
    broken: Counter[str] = Counter()
    for tally in tallies:
        counts.update(tally.by_status.get(user_id, {}))
        broken.update(tally.broken.get(user_id, {}))
    today = together(work.get((user_id, tally.watched.dataset.id), Work()) for tally in tallies)
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


def _questions(tallies: Iterable[Tally], names: Mapping[str, str]) -> tuple[Question, ...]:
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


def _stamp(moment: datetime) -> str:
    """A moment in UTC as ISO 8601, to the second."""
    return moment.isoformat(timespec="seconds")

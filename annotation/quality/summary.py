"""How far the work is: counted from the answers to each record, not from what Argilla's own progress says.

`read_status` reads, `Tally` counts one dataset, and the rest sums up: paces, forecasts, questions, what needs a look.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from importlib.metadata import version
from statistics import fmean

from annotation.argilla.client import Argilla
from annotation.argilla.labels import TaskName, is_of_passages
from annotation.argilla.tasks import PRACTICE
from annotation.quality import notices
from annotation.quality.questions import find_questions
from annotation.quality.schema import KINDS, AnnotatorStatus, DatasetStatus, HalfDone, Question, Status
from annotation.quality.scores import score_tallies
from annotation.quality.submissions import (
    KEPT_OUT,
    NOBODY_LEFT,
    Backlog,
    Forecast,
    Work,
    forecasts,
    last_of,
    paces,
    together,
    work_today,
)
from annotation.quality.tally import Tally, read_tallies


def read_status(
    argilla: Argilla,
    workspaces: Sequence[str],
    now: datetime,
    *,
    rounds: Collection[str] = (),
    languages: Mapping[str, Collection[str]] | None = None,
    slowly: Callable[[], object] = lambda: None,
) -> Status:
    """How far the work in these workspaces is; `now` is the end of the last 24 hours, in which work is measured.

    Without `rounds` all but practice count. `languages` says in which somebody labels, by user name: all for those who
    are not named. `slowly` is called where the server is a stock Argilla, whose answers hold all texts.
    """
    found, tallies = read_tallies(argilla, workspaces, rounds, languages or {}, slowly)
    names = argilla.usernames()
    asked = [each.question for each in find_questions(argilla, tallies, names)]
    status = _summed_up(tallies, names, asked, now, argilla.api_url, workspaces)
    if PRACTICE not in rounds:  # questions asked there are the lead's to answer; its cases are not the jury's work
        kept = tuple(each for each in status.datasets if each.round != PRACTICE)
        status = status.model_copy(update={"datasets": kept})
    told = (
        *notices.of_datasets(found, status),
        *notices.of_practice(tallies, names),
        *notices.of_people(tallies, names, status.controls, argilla),
        *notices.of_questions(status.questions),
        *notices.of_progress(status.annotators),
        *notices.of_balance(status.annotators),
    )
    return status.model_copy(update={"notices": tuple(sorted(told, key=lambda each: KINDS.index(each.kind)))})


def _summed_up(
    tallies: Sequence[Tally],
    names: Mapping[str, str],
    questions: Sequence[Question],
    now: datetime,
    server: str,
    workspaces: Sequence[str],
) -> Status:
    work = work_today((each for tally in tallies for each in tally.submissions), now)
    today = [together(each for (_, there), each in work.items() if there == tally.id) for tally in tallies]
    backlogs = [
        Backlog(tally.watched.dataset.task, tally.watched.open_to, tally.needed, tally.reachable, work_there)
        for tally, work_there in zip(tallies, today, strict=True)
    ]
    expected = forecasts(backlogs, now)
    tasks = {tally.id: tally.watched.dataset.task for tally in tallies}
    people = partial(
        _people, names=names, work=work, pace=paces((each for tally in tallies for each in tally.submissions), tasks)
    )
    datasets = tuple(map(partial(_dataset_status, people=people), tallies, today, expected))
    unreached: dict[str, int] = {}
    for tally in tallies:
        unreached |= tally.unreached
    last = last_of(expected)
    is_kept_out = last.reason == NOBODY_LEFT and any(each.kept_out for each in tallies)
    return Status(
        citejury=version("citejury"),
        server=server,
        moment=_stamp(now),
        workspaces=tuple(dict.fromkeys(workspaces)),
        needed=sum(each.needed for each in datasets),
        reachable=sum(each.reachable for each in datasets),
        answers=len(unreached),
        unreached=sum(map(bool, unreached.values())),
        done_today=sum(each.units for each in work.values()),
        finish=_stamp(last.finish) if last.finish else None,
        no_finish=KEPT_OUT if is_kept_out else last.reason,
        datasets=datasets,
        annotators=people(tallies),
        questions=tuple(questions),
        controls=score_tallies((tally.controls for tally in tallies), names),
        notices=(),
    )


def _dataset_status(
    tally: Tally, here: Work, expected: Forecast, *, people: Callable[[Sequence[Tally]], tuple[AnnotatorStatus, ...]]
) -> DatasetStatus:
    watched, dataset = tally.watched, tally.watched.dataset
    last = max((each.at for each in tally.submissions), default=None)
    no_finish = KEPT_OUT if expected.reason == NOBODY_LEFT and tally.kept_out else expected.reason
    no_finish = no_finish if tally.records else "there are no records yet"
    passages = tally.passages if is_of_passages(dataset.task) and not watched.is_superseded else {}
    return DatasetStatus(
        workspace=dataset.workspace,
        round=dataset.round,
        task=dataset.task,
        language=dataset.locale,
        dataset=dataset.name,
        version=dataset.version,
        is_superseded=watched.is_superseded,
        min_submitted=dataset.min_submitted,
        records=tally.records,
        apart=tally.apart,
        overlap_reached=tally.reached,
        pending=0 if watched.is_superseded else tally.records - tally.reached,
        needed=tally.needed,
        reachable=tally.reachable,
        kept_out=tally.kept_out,
        unreachable=len(tally.unreachable),
        stuck=tuple(tally.unreachable),
        closed_early=tally.closed_early,
        split=len(tally.split),
        done=tally.total("submitted"),
        drafts=tally.total("draft"),
        discarded=tally.total("discarded"),
        done_today=here.units,
        units_per_hour=here.per_hour,
        last_submission=_stamp(last) if last else None,
        finish=_stamp(expected.finish) if expected.finish else None,
        no_finish="a newer version has taken its place" if watched.is_superseded else no_finish,
        broken_rules=dict(sorted(sum(tally.broken.values(), Counter[str]()).items())),
        half_done=tuple(
            HalfDone(record_uuid=record_uuid, units=len(reached), done=sum(reached))
            for record_uuid, reached in passages.items()
            if 0 < sum(reached) < len(reached)
        ),
        annotators=people([tally]),
    )


def _people(
    tallies: Sequence[Tally],
    *,
    names: Mapping[str, str],
    work: Mapping[tuple[str, str], Work],
    pace: Mapping[tuple[str, TaskName], float],
) -> tuple[AnnotatorStatus, ...]:
    found = []
    for user_id in {user_id for tally in tallies for user_id in (*tally.watched.members, *tally.by_status)}:
        counts = sum((tally.by_status.get(user_id, Counter()) for tally in tallies), Counter[str]())
        broken = sum((tally.broken.get(user_id, Counter()) for tally in tallies), Counter[str]())
        today = together(work.get((user_id, tally.id), Work()) for tally in tallies)
        status = AnnotatorStatus(
            annotator=names.get(user_id, user_id),
            is_member=any(user_id in tally.watched.members for tally in tallies),
            done=counts["submitted"],
            pending=sum(tally.pending_for(user_id) for tally in tallies),
            left=round(sum(tally.falls_to[user_id] for tally in tallies), 1),
            hours_left=_hours_left(tallies, user_id, pace),
            drafts=counts["draft"],
            discarded=counts["discarded"],
            done_today=today.units,
            units_per_hour=today.per_hour,
            broken_rules=dict(sorted(broken.items())),
            questions=sum(each.user_id == user_id for tally in tallies for _, each in tally.questions),
            by_model=dict(sorted(sum((tally.by_model[user_id] for tally in tallies), Counter[str]()).items())),
        )
        found.append(status)
    return tuple(sorted(found, key=lambda each: each.annotator))


def _hours_left(tallies: Sequence[Tally], user_id: str, pace: Mapping[tuple[str, TaskName], float]) -> float | None:
    """A task of which nothing was timed takes as long as the mean of those of which something was."""
    known = [seconds for (who, _), seconds in pace.items() if not who]
    if not known:
        return None
    parts = (
        tally.falls_to[user_id] * pace.get((user_id, task), pace.get(("", task), fmean(known)))
        for tally in tallies
        for task in [tally.watched.dataset.task]
    )
    return round(sum(parts) / 3600, 2)


def _stamp(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")

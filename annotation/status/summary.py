"""From counts to the report: totals, paces, forecasts, questions and what needs a look."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from importlib.metadata import version

from annotation.status.pace import Forecast, Work, forecast, together, work_today
from annotation.status.schema import AnnotatorStatus, DatasetStatus, HalfDone, Question, Status
from annotation.status.tally import Tally


def summed_up(
    tallies: Sequence[Tally],
    names: Mapping[str, str],
    now: datetime,
    server: str,
    workspaces: Sequence[str],
    warnings: Sequence[str] = (),
) -> Status:
    """The report of what was counted; `names` are the user names by id."""
    work = work_today((each for tally in tallies for each in tally.submissions), now)
    datasets = tuple(dataset_status(tally, names, work, now) for tally in tallies)
    needed, reachable = sum(each.needed for each in datasets), sum(each.reachable for each in datasets)
    done_today = sum(each.units for each in work.values())
    expected = forecast(needed, reachable, done_today, now)
    return Status(
        citejury=version("citejury"),
        server=server,
        moment=stamp(now),
        workspaces=tuple(dict.fromkeys(workspaces)),
        needed=needed,
        reachable=reachable,
        done_today=done_today,
        finish=stamp(expected.finish) if expected.finish else None,
        no_finish=expected.reason,
        datasets=datasets,
        annotators=people(tallies, names, work),
        questions=questions(tallies, names),
        warnings=(*warnings, *warnings_about(datasets)),
    )


def dataset_status(
    tally: Tally, names: Mapping[str, str], work: Mapping[tuple[str, str], Work], now: datetime
) -> DatasetStatus:
    """What one dataset's records add up to."""
    place = tally.place
    here = together(each for (_, dataset_id), each in work.items() if dataset_id == place.id)
    expected = forecast(tally.needed, tally.reachable, here.units, now)
    last = max((each.at for each in tally.submissions), default=None)
    return DatasetStatus(
        workspace=place.workspace,
        round=place.round,
        task=place.task,
        language=place.language,
        dataset=place.name,
        version=place.version,
        is_superseded=place.is_superseded,
        min_submitted=place.min_submitted,
        records=tally.records,
        overlap_reached=tally.reached,
        pending=0 if place.is_superseded else tally.records - tally.reached,
        needed=tally.needed,
        reachable=tally.reachable,
        unreachable=tally.unreachable,
        closed_early=tally.closed_early,
        done=tally.total("submitted"),
        drafts=tally.total("draft"),
        discarded=tally.total("discarded"),
        done_today=here.units,
        units_per_hour=here.per_hour,
        last_submission=stamp(last) if last else None,
        finish=stamp(expected.finish) if expected.finish else None,
        no_finish=why_no_finish(tally, expected),
        broken_rules=dict(sorted(sum(tally.broken.values(), Counter[str]()).items())),
        half_done=half_done(tally),
        annotators=people([tally], names, work),
    )


def why_no_finish(tally: Tally, expected: Forecast) -> str:
    """Why a dataset has no finish; empty where it has one."""
    if tally.place.is_superseded:
        return "a newer version has taken its place"
    return expected.reason if tally.records else "there are no records yet"


def half_done(tally: Tally) -> tuple[HalfDone, ...]:
    """The answers of which some passages are done and others are not, in order of arrival."""
    if tally.place.task != "retrieval" or tally.place.is_superseded:
        return ()
    return tuple(
        HalfDone(record_uuid=record_uuid, units=len(reached), done=sum(reached))
        for record_uuid, reached in tally.passages.items()
        if 0 < sum(reached) < len(reached)
    )


def people(
    tallies: Sequence[Tally], names: Mapping[str, str], work: Mapping[tuple[str, str], Work]
) -> tuple[AnnotatorStatus, ...]:
    """Everybody who can work in these datasets or did, in order of their names."""
    user_ids = {user_id for tally in tallies for user_id in (*tally.place.members, *tally.by_status)}
    found = (annotator_status(user_id, tallies, names, work) for user_id in user_ids)
    return tuple(sorted(found, key=lambda each: each.annotator))


def annotator_status(
    user_id: str, tallies: Sequence[Tally], names: Mapping[str, str], work: Mapping[tuple[str, str], Work]
) -> AnnotatorStatus:
    """One person's work in these datasets together."""
    counts: Counter[str] = Counter()
    broken: Counter[str] = Counter()
    for tally in tallies:
        counts.update(tally.by_status.get(user_id, {}))
        broken.update(tally.broken.get(user_id, {}))
    today = together(work.get((user_id, tally.place.id), Work()) for tally in tallies)
    return AnnotatorStatus(
        annotator=names.get(user_id, user_id),
        is_member=any(user_id in tally.place.members for tally in tallies),
        done=counts["submitted"],
        pending=sum(tally.pending_for(user_id) for tally in tallies),
        drafts=counts["draft"],
        discarded=counts["discarded"],
        done_today=today.units,
        units_per_hour=today.per_hour,
        broken_rules=dict(sorted(broken.items())),
        questions=sum(each.user_id == user_id for tally in tallies for _, each in tally.questions),
    )


def questions(tallies: Iterable[Tally], names: Mapping[str, str]) -> tuple[Question, ...]:
    """What annotators ask, the oldest first."""
    found = [
        Question(
            annotator=names.get(each.user_id, each.user_id),
            record_uuid=tally.record_uuid(unit),
            external_id=unit.external_id,
            record_id=unit.record_id,
            workspace=tally.place.workspace,
            dataset=tally.place.name,
            status=each.status,
            at=stamp(each.at),
            text=each.question or "",
        )
        for tally in tallies
        for unit, each in tally.questions
    ]
    return tuple(sorted(found, key=lambda question: (question.at, question.annotator, question.external_id)))


def warnings_about(datasets: Sequence[DatasetStatus]) -> Iterator[str]:
    """Plain sentences about what needs a look; nothing where nothing does."""
    stuck = [(dataset, dataset.unreachable) for dataset in datasets if dataset.unreachable]
    if stuck:
        yield (
            "Some records cannot reach their overlap: too few annotators are left who have neither submitted nor "
            f"discarded them ({counts_by_name(stuck)}). Add annotators with `citejury annotation setup`."
        )
    closed = [(dataset, dataset.closed_early) for dataset in datasets if dataset.closed_early]
    if closed:
        yield (
            "Argilla hands some records out to nobody, though fewer annotators submitted them than their dataset waits "
            f"for ({counts_by_name(closed)}). They were done when the overlap was smaller."
        )


def counts_by_name(found: Iterable[tuple[DatasetStatus, int]]) -> str:
    """How many in which dataset."""
    return ", ".join(f"{dataset.workspace}/{dataset.dataset}: {count}" for dataset, count in found)


def stamp(moment: datetime) -> str:
    """A moment in UTC as ISO 8601, to the second."""
    return moment.isoformat(timespec="seconds")

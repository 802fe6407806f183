"""Canonical records into Argilla: a diff against what is there, then only what is new or changed.

The whole difference is known before anything is written. Responses are never sent, so none can be overwritten; nothing
is deleted.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from tempfile import TemporaryFile
from typing import NamedTuple, get_args

from annotation.argilla.client import Argilla
from annotation.argilla.display import needs_passages
from annotation.argilla.labels import TaskName
from annotation.argilla.tasks import CALIBRATION, PRACTICE, PRODUCTION, lacking_fields
from annotation.argilla.wording import read_wording
from annotation.campaign.calibration import closed_calibrations
from annotation.campaign.datasets import current_datasets, empty_rounds, find_datasets
from annotation.campaign.file import Campaign, Place, language_workspace, places
from annotation.campaign.routing import as_it_stands, check_routing, home_of, plan_routes
from annotation.push.diff import Change, Diff, KnownAnswers, Progress, Repair, Target, TaskCount, stored_units
from annotation.push.send import CHANGED, Waiting, send_waiting
from pipeline.core.errors import InputError
from pipeline.records.schema import QueryResponse
from pipeline.text.words import Languages


class PushReport(NamedTuple):
    counts: dict[Place, dict[TaskName, TaskCount]]
    """By place and task; places without any unit of this push are left out."""
    refused: tuple[str, ...]  # a line for each refused record: its `record_uuid` and why
    revised: tuple[str, ...]  # a line for each record that has a new revision: both ids
    left_over: tuple[str, ...]
    """A line for each unit in Argilla that its record, pushed now, no longer has; it stays there."""
    empty: tuple[str, ...] = ()  # a line for each language and round of the campaign that has no work for a task
    known: tuple[str, ...] = ()
    """A line for each record whose answer Argilla holds under another id: both ids. They are in or not as
    `PushOptions.takes_known` said, and `counts` has them only where they are.
    """
    closed: tuple[str, ...] = ()  # languages whose calibration is done, so that new records are for production
    repairs: tuple[Repair, ...] = ()  # in the order of the records
    unread: Mapping[str, Languages] = {}
    """Records by `record_uuid` that no list has a reader for; they are in only where a list of one language was named,
    or an earlier push put them."""

    @property
    def tasks(self) -> dict[TaskName, TaskCount]:
        names = dict.fromkeys(task for each in self.counts.values() for task in each)
        counts = {task: [each[task] for each in self.counts.values() if task in each] for task in names}
        return {task: TaskCount(*map(sum, zip(*found, strict=True))) for task, found in counts.items()}


class PushOptions(NamedTuple):
    dry_run: bool = False
    revise: bool = False
    show: Callable[[PushReport], None] = lambda report: None  # is shown the whole difference before anything is written
    progress: Progress = lambda what, done, total: None
    without_passages: Collection[str] = ()  # ids of those records that have no passages: they are for generation only
    takes_known: Callable[[Sequence[str]], bool] = lambda lines: True
    """Says whether records go in whose answers Argilla holds under another id, of which it gets a line each."""
    agree: Callable[[Sequence[str]], object] = lambda lines: None
    """Gets a line for each dataset that waits for other people than the campaign says, or is done and would go on; it
    raises where the push is not to go on."""


def push_records(
    argilla: Argilla,
    workspace: str,
    records: Iterable[QueryResponse],
    locale: str | None = None,
    round_name: str = PRODUCTION,
    options: PushOptions | None = None,
) -> PushReport:
    chosen = options or PushOptions()
    diff = _read_diff(argilla, chosen, (), workspace, locale, round_name)
    place = diff.target.place
    return _push_differences(argilla, {place: diff}, lambda record: place, records, chosen)


def push_where_named(
    argilla: Argilla,
    workspace: str,
    campaign: Campaign | None,
    languages: Iterable[tuple[str, Languages]],
    records: Iterable[QueryResponse],
    locale: str | None,
    round_name: str | None,
    options: PushOptions,
) -> PushReport:
    if round_name == PRACTICE:
        raise InputError(
            f"The round {PRACTICE!r} is for known cases, which `citejury annotation setup` puts there. Choose another "
            "`--round`, or leave it out."
        )
    campaign = as_it_stands(argilla, campaign, workspace) if campaign else None
    if campaign is None or locale:
        home = language_workspace(campaign, workspace, locale) if campaign and locale else workspace
        place = (home, locale, round_name or PRODUCTION)
        diff = _read_diff(argilla, options, campaign.tasks if campaign else (), *place)
        told = dict(languages)
        unread = _unread(told, Campaign(locales=(diff.target.place.locale,)), _stored([diff]))
        routes = {each: diff.target.place for each in told if locale or each not in unread}
        return _push_differences(
            argilla, {diff.target.place: diff}, lambda record: routes.get(record.record_uuid), records, options
        )._replace(unread=unread)
    return push_campaign(argilla, workspace, campaign, languages, records, options, round_name)


def push_campaign(
    argilla: Argilla,
    workspace: str,
    campaign: Campaign,
    languages: Iterable[tuple[str, Languages]],
    records: Iterable[QueryResponse],
    options: PushOptions,
    round_name: str | None = None,
) -> PushReport:
    told = dict(languages)
    done = closed_calibrations(argilla, campaign, workspace)
    closed = {place.locale for place in done}
    if round_name == CALIBRATION and done:
        options.agree([f"'{place.workspace}', {place.locale}: calibration is done, and would go on" for place in done])
    if round_name:
        campaign = campaign.model_copy(update={"groups": {}})  # such a round has none
        homes = {each: home_of(each, campaign) for each in set(told.values())}
        # Earlier versions put records where the answer's language said, and of others than the campaign's in the first.
        earlier = [each.answered if each.answered in campaign.locales else campaign.locales[0] for each in homes]
        needed = dict.fromkeys((*earlier, *(home.locale for home in homes.values() if home)))
        of_round = {each: Place(language_workspace(campaign, workspace, each), each, round_name) for each in needed}
        diffs = {place: _read_diff(argilla, options, campaign.tasks, *place) for place in of_round.values()}
        stored = _stored(diffs.values())
        routes = {uuid: of_round[home.locale] for uuid, each in told.items() if (home := homes[each])}
        routes |= {uuid: stored[uuid] for uuid in told if uuid in stored}
        report = _push_differences(argilla, diffs, lambda record: routes.get(record.record_uuid), records, options)
        return report._replace(unread=_unread(told, campaign, stored))
    wanted = places(campaign, workspace)
    for name in dict.fromkeys(place.workspace for place in wanted):
        check_routing(current_datasets(argilla, argilla.find_workspace(name)), campaign)
    diffs = {place: _read_diff(argilla, options, campaign.tasks, *place) for place in wanted}
    stored = _stored(diffs.values())
    needing = [task for task in campaign.tasks if needs_passages(task)]
    holding = {unit.record_uuid for diff in diffs.values() for task in needing for unit in diff.stored[task].values()}
    bare = {*options.without_passages, *(stored.keys() - holding)} if needing else set()
    others = [
        f"{dataset}: a record waits for {dataset.min_submitted}, citejury.toml says {overlap}"
        for place, overlaps in wanted.items()
        for task, overlap in overlaps.items()
        if (dataset := diffs[place].target.datasets[task]).min_submitted != overlap and place not in done
    ]
    if others:
        options.agree(others)
    routes = plan_routes(told.items(), stored, campaign, workspace, bare, closed)
    report = _push_differences(argilla, diffs, lambda record: routes.get(record.record_uuid), records, options)
    held = {(place, task): diffs[place].held(task) for place in diffs for task in diffs[place].stored}
    return report._replace(
        empty=tuple(empty_rounds(held)), closed=tuple(sorted(closed)), unread=_unread(told, campaign, stored)
    )


def _stored(diffs: Iterable[Diff]) -> dict[str, Place]:
    return {
        unit.record_uuid: diff.target.place
        for diff in reversed(list(diffs))
        for units in diff.stored.values()
        for unit in units.values()
    }


def _unread(told: Mapping[str, Languages], campaign: Campaign, stored: Collection[str]) -> dict[str, Languages]:
    nobody = {each for each in set(told.values()) if home_of(each, campaign) is None}
    return {uuid: each for uuid, each in told.items() if each in nobody and uuid not in stored}


def _read_diff(
    argilla: Argilla, options: PushOptions, tasks: Sequence[TaskName], home: str, locale: str | None, round_name: str
) -> Diff:
    datasets = find_datasets(argilla, home, locale, round_name, tasks)
    place = Place(home, next(iter(datasets.values())).locale, round_name)
    target = Target(place, datasets, read_wording(place.locale))
    stored = {task: stored_units(argilla, dataset, options.progress) for task, dataset in datasets.items()}
    lacking = {
        task: lacking_fields(task, argilla.request("GET", f"/datasets/{dataset.id}/fields")["items"])
        for task, dataset in datasets.items()
    }
    return Diff(target, stored, options.revise, lacking)


def _push_differences(
    argilla: Argilla,
    diffs: Mapping[Place, Diff],
    place_of: Callable[[QueryResponse], Place | None],
    records: Iterable[QueryResponse],
    options: PushOptions,
) -> PushReport:
    """First all records that have a place are compared, then what is to be written goes in.

    Records whose answer is there under another id are compared apart, until it is said whether they go in.
    """
    known = KnownAnswers(
        unit for diff in diffs.values() for units in diff.stored.values() for unit in units.values() if unit.answer
    )
    apart = {place: Diff(diff.target, diff.stored, diff.revise, diff.lacking) for place, diff in diffs.items()}
    lines: list[str] = []
    with ExitStack() as stack:
        waiting, waiting_apart = (
            {
                place: Waiting(
                    diff.target, {name: stack.enter_context(TemporaryFile()) for name in (*diff.stored, CHANGED)}
                )
                for place, diff in diffs.items()
            }
            for _ in range(2)
        )
        for done, record in enumerate(records, start=1):
            place = place_of(record)
            if place is None:
                continue
            other = known.other_id(record)
            units = (apart if other else diffs)[place].add(record)
            if other:
                lines.append(f"{record.record_uuid}: the same answer is there as {other}")
            if not options.dry_run:
                (waiting_apart if other else waiting)[place].add(units)
            options.progress("compared", done, None)
        takes = bool(lines) and options.takes_known(lines)
        report = _report_of([*diffs.items(), *(apart.items() if takes else ())])._replace(known=tuple(lines))
        options.show(report)
        goes_in = [*reversed(waiting.values()), *(reversed(waiting_apart.values()) if takes else ())]
        done, total = 0, sum(each.count for each in goes_in)

        def sent(units: int) -> None:
            nonlocal done
            done += units
            options.progress("sent", done, total)

        late = [line for each in goes_in for line in send_waiting(argilla, each, sent)]
    return report._replace(refused=(*report.refused, *late))


def _report_of(compared: Sequence[tuple[Place, Diff]]) -> PushReport:
    """A place may stand there twice."""
    counts: dict[Place, dict[TaskName, TaskCount]] = {}
    for place, diff in compared:
        before = counts.setdefault(place, dict.fromkeys(diff.stored, TaskCount()))
        for task in diff.stored:
            here = (diff.counts[task, change] for change in get_args(Change))
            before[task] = TaskCount(*map(sum, zip(before[task], here, strict=True)))
    diffs = [diff for _, diff in compared]
    touched = {place: tasks for place, tasks in counts.items() if any(map(any, tasks.values()))}
    return PushReport(
        counts=touched,
        refused=tuple(line for diff in diffs for line in diff.refused),
        revised=tuple(line for diff in diffs for line in diff.revised),
        left_over=tuple(line for diff in diffs for line in diff.left_over()),
        repairs=tuple(repair for diff in diffs for repair in diff.repairs),
    )

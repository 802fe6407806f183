"""Confirmed controls and repeats into Argilla: among a task's other records, with what they are for beside them.

Source: annotation/contracts/controls.md#before-annotators.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, get_args
from uuid import UUID

from annotation.argilla.client import Argilla
from annotation.argilla.display import HIDDEN, is_as_pushed, opaque_id, to_records, unit_id
from annotation.argilla.labels import OWN_TASKS, TaskName
from annotation.argilla.marks import add_passages
from annotation.argilla.tasks import PRODUCTION, lacking_fields, lot
from annotation.argilla.units import ASSIGNMENT, Assignment, Unit, assignment_of, is_stock, read_units, record_uuid_of
from annotation.argilla.wording import read_wording
from annotation.campaign.datasets import JuryDataset, datasets_in, find_datasets, send_bodies
from annotation.campaign.file import Campaign, Place, group_at, places
from annotation.campaign.routing import as_it_stands, home_of
from annotation.push.diff import Progress, passages_of
from annotation.quality.control_files import Balanced, Known, balanced
from pipeline.core.errors import InputError, NotFoundError
from pipeline.records.schema import is_uuid
from pipeline.text.words import exchange_languages

Change = Literal["new", "unchanged", "updated", "refused"]
KINDS: tuple[Change, ...] = get_args(Change)


class ControlReport(NamedTuple):
    counts: Mapping[tuple[Place, TaskName], Mapping[Change, int]]
    people: Mapping[Place, int]  # how many annotators get each control of a place
    balance: Mapping[Place, Balanced]  # what of the known answers counts at each place
    refused: tuple[str, ...]  # a line for each control that changed after somebody answered it
    met_twice: int  # how many of them are made from a record that annotators of the same dataset get too
    is_stock: bool  # whether the server is a stock Argilla, which hands controls out like all other records


def push_controls(
    argilla: Argilla,
    workspace: str,
    campaign: Campaign,
    units: Sequence[Known],
    rate: float,
    *,
    dry_run: bool = False,
    progress: Progress = lambda what, done, total: None,
) -> ControlReport:
    """What became of the controls, each at every place where annotators work on records of its language.

    Pushing the same again changes nothing; with other answers, or at another rate, it changes what is kept beside the
    records. `workspace` is the campaign's common one.

    Raises:
        NotFoundError: a workspace or dataset is missing.
        BadRowsError: each label has one answer only among the controls of a place; nothing is written.
        ArgillaError: Argilla refused a batch.
    """
    standing = as_it_stands(argilla, campaign, workspace)
    balance = {place: balanced(here, place.locale) for place, here in _by_place(workspace, standing, units).items()}
    people: dict[Place, int] = {}
    planned: dict[tuple[Place, TaskName], _Planned] = {}
    for place, found in balance.items():
        wanted = [task for task in OWN_TASKS if any(unit.task == task for unit in found.units)]
        datasets = find_datasets(argilla, place.workspace, place.locale, place.round_name, wanted)
        people[place] = _count_jury(argilla, place, standing)
        for task in OWN_TASKS:
            if of_task := [unit for unit in found.units if unit.task == task]:
                needed = max(1, people[place])
                planned[place, task] = _planned(argilla, datasets[task], of_task, needed, rate, progress)
    for each in () if dry_run else planned.values():
        send_bodies(argilla, each.dataset, (body for body, change in each.changes if change in ("new", "updated")))
    return ControlReport(
        counts={where: Counter(change for _, change in each.changes) for where, each in planned.items()},
        people=people,
        balance=balance,
        refused=tuple(
            f"{unit_id(body)}: changed after it was answered"
            for each in planned.values()
            for body, change in each.changes
            if change == "refused"
        ),
        met_twice=sum(each.met_twice for each in planned.values()),
        is_stock=any(is_stock(argilla, each.dataset.id) for each in [*planned.values()][:1]),
    )


class _Planned(NamedTuple):
    dataset: JuryDataset
    changes: list[tuple[dict[str, Any], Change]]
    met_twice: int


def _planned(
    argilla: Argilla, dataset: JuryDataset, units: Sequence[Known], needed: int, rate: float, progress: Progress
) -> _Planned:
    bodies = _bodies(argilla, dataset, units, needed)
    wanted = {unit_id(body) for body in bodies}
    there: dict[str, dict[str, Any]] = {}
    labelled: set[str] = set()
    ids: set[bool] = set()  # of records to be labelled, whether each is one of an earlier version
    read = 0
    for total, page in argilla.record_pages(dataset.id):
        there |= {unit_id(item): item for item in page if unit_id(item) in wanted}
        for item in page:
            if assignment_of(item).purpose == "label":
                ids.add(item["external_id"] == unit_id(item))
                labelled.add(str(((item["metadata"] or {}).get(HIDDEN) or {}).get("record_uuid")))
        read += len(page)
        progress(dataset.name, read, total)
    for body in bodies:
        body["metadata"][ASSIGNMENT]["rate"] = rate
        known = there.get(unit_id(body))
        # Its id must not tell it from those that it is mixed in among.
        body["external_id"] = known["external_id"] if known else unit_id(body) if ids == {True} else body["external_id"]
    changes = [(body, _change(there.get(unit_id(body)), body)) for body in bodies]
    met_twice = sum((unit.made_from or unit.record.record_uuid) in labelled for unit in units)
    return _Planned(dataset, changes, met_twice)


def _by_place(workspace: str, campaign: Campaign, units: Sequence[Known]) -> dict[Place, list[Known]]:
    open_places = [place for place in places(campaign, workspace) if place.round_name == PRODUCTION]
    by_place: dict[Place, list[Known]] = {}
    for unit in units:
        languages = exchange_languages(unit.record.query, unit.record.language)
        home = home_of(languages, campaign)
        fitting = [
            place
            for place in open_places
            if home and place.locale == home.locale
            if (group := group_at(campaign, workspace, place)) in home.groups or (home.reads_everybody and not group)
        ]
        if not fitting:
            where = f"The campaign has no list in {languages}, where a control belongs"
            raise InputError(f"{where}, or not all of its people read that. Leave the control out of the file.")
        for place in fitting:
            by_place.setdefault(place, []).append(unit)
    return by_place


def _count_jury(argilla: Argilla, place: Place, campaign: Campaign) -> int:
    """Annotators of the place's workspace but those whom the campaign has elsewhere or no longer."""
    elsewhere = {
        person.name
        for person in campaign.annotators
        if person.role != "annotator" or person.left or place.locale not in campaign.locales_of(person)
    }
    members = argilla.workspace_users(argilla.find_workspace(place.workspace))
    return sum(user["role"] == "annotator" and user["username"] not in elsewhere for user in members)


def _bodies(argilla: Argilla, dataset: JuryDataset, units: Iterable[Known], needed: int) -> list[dict[str, Any]]:
    """In the order of their ids so that nothing shows how they came about; without the rate."""
    wording = read_wording(dataset.locale)
    lacking = lacking_fields(dataset.task, argilla.request("GET", f"/datasets/{dataset.id}/fields")["items"])
    known = {(unit.record.record_uuid, unit.chunk_id): unit for unit in units}
    records = {unit.record.record_uuid: unit.record for unit in known.values()}
    bodies: list[dict[str, Any]] = []
    for record in records.values():
        hidden = record.model_copy(update={"record_uuid": _control_uuid(record.record_uuid, "pushed")})
        for body in to_records(hidden, wording)[dataset.task]:
            for name in lacking:
                del body["fields"][name]
            if dataset.task == "grounding" and dataset.evidence != "off":
                add_passages(body, passages_of(hidden))
            unit = known.get((record.record_uuid, body["metadata"][HIDDEN].get("chunk_id", "")))
            answers, kind = (dict(unit.answers), unit.kind) if unit else ({}, "company")
            assignment = Assignment(purpose="control", needed=needed, answers=answers, kind=kind)
            body["metadata"][ASSIGNMENT] = assignment.model_dump(mode="json")
            bodies.append(body)
    return sorted(bodies, key=lambda body: str(body["external_id"]))


def _control_uuid(record_uuid: str, salt: str) -> str:
    """One of the same version, so that nobody sees by it what it is."""
    version = UUID(record_uuid).version if is_uuid(record_uuid) else 4
    return str(UUID(bytes=lot(f"0 control {salt} {record_uuid}")[:16], version=version or 4))


def _change(item: Mapping[str, Any] | None, body: Mapping[str, Any]) -> Change:
    if item is None:
        return "new"
    hidden = (item["metadata"] or {}).get(HIDDEN) or {}
    if item["responses"] and hidden.get("content_hash") != body["metadata"][HIDDEN]["content_hash"]:
        return "refused"
    return "unchanged" if is_as_pushed(item, body) else "updated"


class RepeatReport(NamedTuple):
    dataset: JuryDataset
    new: Mapping[str, int]  # by user id; who gets none is missing
    there: Mapping[str, int]  # repeats that were there already, by user id
    idle: tuple[str, ...]
    """Ids of those with new repeats and nothing else to label here, among which these could come up."""


def _draw_repeats(
    dataset: JuryDataset, units: Sequence[Unit], people: Iterable[str], share: float, distance: int
) -> tuple[list[tuple[str, tuple[Unit, ...]]], Counter[str]]:
    """What is to be repeated, drawn by lot: a user id and units of one answer; and the repeats there are, by user id.

    As many as make `share` of the units that each of the people submitted in the dataset, those that are there
    included; only of answers after which they submitted `distance` units or more, and none twice.
    """
    sizes = Counter(record_uuid_of(dataset.task, unit) for unit in units if unit.assignment.purpose == "label")
    repeats = [unit.assignment for unit in units if unit.assignment.purpose == "repeat"]
    repeated = [(user_id, each.repeats) for each in repeats for user_id in each.users]
    there = Counter(user_id for user_id, _ in repeated)
    drawn: list[tuple[str, tuple[Unit, ...]]] = []
    for user_id in sorted(people):
        submitted = _submitted(dataset, units, user_id)
        wanting = int(share * sum(len(own) for own, _ in submitted)) - there[user_id]
        free = [
            own
            for own, after in submitted
            if after >= distance
            and len(own) == sizes[record_uuid_of(dataset.task, own[0])]
            and not any((user_id, unit.external_id) in repeated for unit in own)
        ]
        for own in sorted(free, key=lambda own: lot(f"0 {user_id} {own[0].external_id}")):
            if wanting >= len(own):
                drawn.append((user_id, own))
                wanting -= len(own)
    return drawn, there


def _submitted(dataset: JuryDataset, units: Iterable[Unit], user_id: str) -> list[tuple[tuple[Unit, ...], int]]:
    """By answer, the earliest last, and how much since."""
    by_answer: dict[str, list[Unit]] = {}
    last: dict[str, datetime] = {}
    for unit in units:
        own = next((each for each in unit.answers if each.user_id == user_id and each.status == "submitted"), None)
        if own and unit.assignment.purpose == "label":
            answer = record_uuid_of(dataset.task, unit)
            by_answer.setdefault(answer, []).append(unit)
            last[answer] = max(last.get(answer, own.at), own.at)
    found, after = [], 0
    for answer in sorted(by_answer, key=lambda each: (last[each], each), reverse=True):
        found.append((tuple(by_answer[answer]), after))
        after += len(by_answer[answer])
    return found


def push_repeats(
    argilla: Argilla,
    workspaces: Iterable[str],
    share: float,
    distance: int,
    rate: float,
    *,
    dry_run: bool = False,
    progress: Progress = lambda what, done, total: None,
) -> list[RepeatReport]:
    """What is repeated in each production dataset; run again, only what the share lacks by then.

    `share` is of the units that each person submitted, `distance` how many units they submitted since, at least. `rate`
    is that of controls and repeats together.
    """
    reports = []
    for name in workspaces:
        users = argilla.workspace_users(argilla.find_workspace(name))
        people = [each["id"] for each in users if each["role"] == "annotator"]
        for dataset in (each for each in datasets_in(argilla, name) if each.round == PRODUCTION):
            units = list(read_units(argilla, dataset.id, lambda: _refuse(argilla)))
            drawn, there = _draw_repeats(dataset, units, people, share, distance)
            bodies: list[dict[str, Any]] = []
            for done, (user_id, own) in enumerate(() if dry_run else drawn, start=1):
                for unit in own:
                    taken = [body["external_id"] for body in bodies]
                    shown = argilla.request("GET", f"/records/{unit.record_id}")
                    bodies.append(_repeat_body(shown, user_id, rate, taken))
                progress(dataset.name, done, len(drawn))
            send_bodies(argilla, dataset, bodies)
            new = Counter(user_id for user_id, own in drawn for _ in own)
            left = [unit for unit in units if unit.assignment.purpose == "label" and unit.is_open]
            idle = tuple(
                who
                for who in new
                if not any(who in (unit.assignment.users or (who,)) and who not in unit.settled for unit in left)
            )
            reports.append(RepeatReport(dataset, new, there, idle))
    return reports


def _refuse(argilla: Argilla) -> None:
    raise NotFoundError(
        f"The server at {argilla.api_url} is a stock Argilla: it would show a person's repeats to everybody. Use "
        "`citejury annotation serve`."
    )


def _repeat_body(record: Mapping[str, Any], user_id: str, rate: float, taken: Sequence[str]) -> dict[str, Any]:
    """Under another id, for this person only, shown as it was shown to them."""
    hidden = record["metadata"][HIDDEN]
    uuid = _control_uuid(hidden["record_uuid"], f"repeat {user_id}")
    shown = record["external_id"] or record["id"]
    again = Assignment(purpose="repeat", needed=1, users=(user_id,), rate=rate, repeats=shown)
    metadata = {HIDDEN: {**hidden, "record_uuid": uuid}, ASSIGNMENT: again.model_dump(mode="json")}
    body = {"fields": record["fields"], "metadata": metadata, "external_id": uuid}
    has_own = record["external_id"] == unit_id(record)  # of the same kind as the one that it repeats
    return body | {"external_id": unit_id(body) if has_own else opaque_id(uuid, record["fields"]["chunk"], taken)}

"""Confirmed controls into Argilla: among the other records of each task, with what they are for beside them.

A control is a record like all others, under an id of its own. In retrieval a record's passages come together, so all
of them go in; those without a known answer are counted nowhere.

Source: annotation/contracts/controls.md#before-annotators.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from annotation.campaign.datasets import JuryDataset, find_datasets
from annotation.campaign.file import Campaign, Place, places
from annotation.campaign.routing import locale_for
from annotation.campaign.standing import as_it_stands
from annotation.client import Argilla
from annotation.controls.files import Balanced, Known, balanced
from annotation.controls.planting import control_uuid
from annotation.display import HIDDEN, to_records
from annotation.labels import TASKS, TaskName
from annotation.marks import add_passages
from annotation.push.diff import Progress, passages_of
from annotation.push.send import Batch
from annotation.tasks import PRODUCTION, lacking_fields
from annotation.units import ASSIGNMENT, DEFAULT_RATE, MIXED_IN, STATES_PATH, Assignment, assignment_of
from annotation.wording import read_wording
from pipeline.errors import InputError, NotFoundError

Change = Literal["new", "unchanged", "updated", "refused"]
KINDS: tuple[Change, ...] = get_args(Change)


class ControlReport(NamedTuple):
    """What became of the controls, or would in a dry run."""

    counts: Mapping[tuple[Place, TaskName], Mapping[Change, int]]
    """Records by place and task."""
    people: Mapping[Place, int]
    """How many annotators get each control of a place."""
    balance: Mapping[Place, Balanced]
    """What of the known answers counts at each place."""
    refused: tuple[str, ...]
    """A line for each control that changed after somebody answered it."""
    rates: tuple[float, ...]
    """The rates at which they come, from the lowest; several where datasets have different ones."""
    met_twice: int
    """How many of them are made from a record that annotators of the same dataset get too."""
    is_stock: bool
    """Whether the server is a stock Argilla, which hands controls out like all other records."""


def push_controls(
    argilla: Argilla,
    workspace: str,
    campaign: Campaign | None,
    units: Sequence[Known],
    rate: float | None = None,
    *,
    locale: str | None = None,
    round_name: str = PRODUCTION,
    dry_run: bool = False,
    progress: Progress = lambda what, done, total: None,
) -> ControlReport:
    """What became of the controls, each at every place where annotators work on records of its language.

    Pushing the same again changes nothing; with other answers, or at another rate, it changes what is kept beside the
    records. Nothing is written unless each label of each place has both answers among its controls.

    `rate` is the share of each person's units that are to be controls and repeats; None for what each dataset has, or a
    tenth where it has none yet. Where `locale` is None controls go by their own language. `workspace` is the campaign's
    common one where there is a campaign.

    Raises:
        NotFoundError: a workspace or dataset is missing.
        BadRowsError: a label has one answer only among the controls of a place.
        InputError: without a campaign the round has several languages and `locale` is None.
        ArgillaError: Argilla refused a batch.
    """
    standing = as_it_stands(argilla, campaign, workspace) if campaign else None
    by_place = _by_place(argilla, workspace, standing, units, locale, round_name)
    balance = {place: balanced(found, _where(place)) for place, found in by_place.items()}
    counts: dict[tuple[Place, TaskName], Counter[Change]] = {}
    people: dict[Place, int] = {}
    refused: list[str] = []
    rates: set[float] = set()
    met_twice = 0
    waiting: list[tuple[JuryDataset, list[dict[str, Any]]]] = []
    for place, found in balance.items():
        datasets = find_datasets(argilla, place.workspace, place.locale, place.round_name)
        people[place] = len(_jury(argilla, place, standing))
        for task in TASKS:
            of_task = [unit for unit in found.units if unit.task == task]
            if not of_task:
                continue
            bodies = _bodies(argilla, datasets[task], of_task, max(1, people[place]), rate or DEFAULT_RATE)
            stored = _stored(argilla, datasets[task], bodies, progress)
            there = stored.controls
            if rate is None and stored.rate:
                for body in bodies:
                    body["metadata"][ASSIGNMENT]["rate"] = stored.rate
            rates.add(rate or stored.rate or DEFAULT_RATE)
            met_twice += sum((unit.made_from or unit.record.record_uuid) in stored.labelled for unit in of_task)
            changes = [(body, _change(there.get(body["external_id"]), body)) for body in bodies]
            counts[place, task] = Counter(change for _, change in changes)
            refused += [
                f"{body['external_id']}: changed after it was answered"
                for body, change in changes
                if change == "refused"
            ]
            waiting.append((datasets[task], [body for body, change in changes if change in ("new", "updated")]))
    for dataset, bodies in () if dry_run else waiting:
        batch = Batch(argilla, dataset)
        for body in bodies:
            batch.add(body)
        batch.send()
    is_stock = any(_is_stock(argilla, dataset) for dataset, _ in waiting[:1])
    return ControlReport(counts, people, balance, tuple(refused), tuple(sorted(rates)), met_twice, is_stock)


def _is_stock(argilla: Argilla, dataset: JuryDataset) -> bool:
    """Whether the server knows nothing of our own addresses."""
    try:
        argilla.request("GET", STATES_PATH.format(dataset_id=dataset.id), params={"limit": 1})
    except NotFoundError:
        return True
    return False


def _by_place(
    argilla: Argilla,
    workspace: str,
    campaign: Campaign | None,
    units: Sequence[Known],
    locale: str | None,
    round_name: str,
) -> dict[Place, list[Known]]:
    """The controls of each place, in the places' order.

    Raises:
        InputError: the campaign has nobody for the language of some control in this round.
    """
    if campaign is None:
        found = find_datasets(argilla, workspace, locale, round_name)
        return {Place(workspace, found["generation"].locale, round_name): list(units)}
    open_places = [place for place in places(campaign, workspace) if place.round_name == round_name]
    by_place: dict[Place, list[Known]] = {}
    for unit in units:
        wanted = locale or locale_for(unit.record.language, campaign)
        fitting = [place for place in open_places if place.locale == wanted]
        if not fitting:
            raise InputError(f"The campaign has no round {round_name!r} in {wanted!r}, where a control belongs.")
        for place in fitting:
            by_place.setdefault(place, []).append(unit)
    return by_place


def _where(place: Place) -> str:
    """The place in a few words."""
    return place.locale if place.round_name == PRODUCTION else f"{place.locale}, {place.round_name}"


def _jury(argilla: Argilla, place: Place, campaign: Campaign | None) -> list[str]:
    """Ids of the annotators who label at the place now."""
    known = {person.name: person for person in campaign.annotators} if campaign else {}
    members = argilla.workspace_users(argilla.find_workspace(place.workspace))
    return [
        user["id"]
        for user in members
        if user["role"] == "annotator"
        and (
            campaign is None
            or (person := known.get(user["username"])) is None
            or (person.role == "annotator" and not person.left and place.locale in campaign.locales_of(person))
        )
    ]


def _bodies(
    argilla: Argilla, dataset: JuryDataset, units: Iterable[Known], needed: int, rate: float
) -> list[dict[str, Any]]:
    """The records of one dataset, in the order of their ids so that nothing tells how they came about."""
    wording = read_wording(dataset.locale)
    lacking = lacking_fields(dataset.task, argilla.request("GET", f"/datasets/{dataset.id}/fields")["items"])
    known = {(unit.record.record_uuid, unit.chunk_id): unit for unit in units}
    records = {unit.record.record_uuid: unit.record for unit in known.values()}
    bodies: list[dict[str, Any]] = []
    for record in records.values():
        hidden = record.model_copy(update={"record_uuid": control_uuid(record.record_uuid, "pushed")})
        for body in to_records(hidden, wording)[dataset.task]:
            for name in lacking:
                del body["fields"][name]
            if dataset.task == "grounding" and dataset.evidence != "off":
                add_passages(body, passages_of(hidden))
            unit = known.get((record.record_uuid, body["metadata"][HIDDEN].get("chunk_id", "")))
            body["metadata"][ASSIGNMENT] = Assignment(
                purpose="control",
                needed=needed,
                rate=rate,
                answers=dict(unit.answers) if unit else {},
                kind=unit.kind if unit else "company",
            ).model_dump(mode="json")
            bodies.append(body)
    return sorted(bodies, key=lambda body: str(body["external_id"]))


class _Stored(NamedTuple):
    """What Argilla holds in one dataset."""

    controls: dict[str, dict[str, Any]]
    """Those of the controls that are there, by external id."""
    rate: float | None
    """The rate at which controls and repeats come; None where there are none."""
    labelled: set[str]
    """`record_uuid` of all records that are to be labelled."""


def _stored(argilla: Argilla, dataset: JuryDataset, bodies: Sequence[Mapping[str, Any]], progress: Progress) -> _Stored:
    """What the dataset holds of the controls, and beside them."""
    wanted = {body["external_id"] for body in bodies}
    found: dict[str, dict[str, Any]] = {}
    labelled: set[str] = set()
    rate = 0.0
    read = 0
    for total, page in argilla.record_pages(dataset.id):
        found |= {item["external_id"]: item for item in page if item["external_id"] in wanted}
        for item in page:
            assignment = assignment_of(item)
            if assignment.purpose in MIXED_IN:
                rate = max(rate, assignment.rate or 0.0)
            elif assignment.purpose == "label":
                labelled.add(str(((item["metadata"] or {}).get(HIDDEN) or {}).get("record_uuid")))
        read += len(page)
        progress(dataset.name, read, total)
    return _Stored(found, rate or None, labelled)


def _change(item: Mapping[str, Any] | None, body: Mapping[str, Any]) -> Change:
    """What is to become of a control."""
    if item is None:
        return "new"
    there = item["metadata"] or {}
    hidden, now = there.get(HIDDEN) or {}, body["metadata"][HIDDEN]
    if item["responses"] and hidden.get("content_hash") != now["content_hash"]:
        return "refused"
    same = item["fields"] == body["fields"] and hidden == now and there.get(ASSIGNMENT) == body["metadata"][ASSIGNMENT]
    return "unchanged" if same else "updated"

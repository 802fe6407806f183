"""Put split units before adjudicators: in a workspace of their own, blind or with the votes, never twice.

Records are copied from the datasets that the annotators work in. Nothing there is changed, no response is ever sent,
and what was copied before stays as it is.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from annotation.argilla.client import Argilla
from annotation.argilla.display import hidden_metadata, original_text
from annotation.argilla.labels import DISPUTED, LABELS, TaskName
from annotation.argilla.tasks import DatasetDefinition, dataset_name, lacking_fields, locale_of, round_of, task_of
from annotation.argilla.units import Purpose, assignment_of
from annotation.argilla.wording import read_wording
from annotation.campaign.datasets import jury_dataset, read_queries, send_bodies, show_property
from annotation.campaign.setup import add_members, create_workspace, make_dataset, refuse_other_dataset
from annotation.campaign.setup_plan import parts_of
from exports.adjudicate import adjudication
from exports.csv.fetch import Progress, is_ours
from exports.csv.schema import ExportFilters
from exports.csv.write import export_csv
from exports.reading.read import export_files, read_tables
from pipeline.core.errors import InputError, NotFoundError
from pipeline.core.sentences import sentences
from pipeline.core.terminal import counted

_say = sentences(__file__)

_KINDS: tuple[adjudication.AdjudicationKind, ...] = ("blind", "votes", "quotes")

_QUOTED: dict[TaskName, str] = {"retrieval": "chunk", "grounding": "context_set", "generation": ""}
"""The export column with the text that quotes stand in; generation has none."""


class PushedUnits(NamedTuple):
    adjudicators: dict[str, tuple[str, ...]]
    new: tuple[adjudication.UnitId, ...]
    kept: tuple[adjudication.UnitId, ...]
    refused: tuple[str, ...]  # a line for each unit that is not: which, and why
    knowing: tuple[tuple[str, str], ...]
    """Adjudicators because of whose own answers units are refused, each with the workspace that she is in."""


class _SourceRecord(NamedTuple):
    unit: adjudication.UnitId
    workspace: str
    locale: str
    record: dict[str, Any]

    @property
    def answered_by(self) -> set[str]:
        """Ids of all users with a response of any kind, drafts and discards included: they have seen it."""
        return {str(response["user_id"]) for response in self.record["responses"] or ()}


class _Place(NamedTuple):
    """A workspace of adjudicators as it is before anything is changed."""

    home: adjudication.Home
    name: str
    id: str | None  # None where it is to be made
    existing: Mapping[str, Mapping[str, Any]]  # its datasets by name
    there: Mapping[adjudication.UnitId, "_Copy"]


class _Plan(NamedTuple):
    place: _Place
    members: adjudication.Members
    needed: Mapping[tuple[TaskName, str], tuple[DatasetDefinition, frozenset[str]]]
    """The adjudicators' datasets by task and language, each with the fields that one of an earlier version lacks."""
    chosen: tuple[_SourceRecord, ...]
    """The records to copy, in the order of their units; one to which labels are added is among them again."""
    kept: tuple[adjudication.UnitId, ...]
    refused: tuple[str, ...]
    knowing: frozenset[str]


def push_units(
    argilla: Argilla,
    homes: Sequence[adjudication.Home],
    units: adjudication.Split,
    kind: adjudication.AdjudicationKind,
    annotators: Sequence[str] = (),
    min_submitted: int = 1,
    *,
    allow_own: bool = False,
    quotes: Mapping[adjudication.UnitId, Sequence[str]] | None = None,
) -> PushedUnits:
    """Put units before adjudicators, who are asked for the labels of `units` only; pushing again adds what is new.

    The adjudicators of a home are the members of its workspace of adjudication, those of the campaign, and those named
    in `annotators`, who become members. A unit is refused that one of them has answered or drafted before, unless
    `allow_own`; so is one that is in no dataset of the homes. Of the kind `quotes`, `quotes` are the words to look at
    by unit; a unit is refused of which none stands in what annotators saw, and controls are units like all others.

    Raises:
        InputError: nobody is named or a member, a named user does not exist or may read everybody's responses, an
            adjudicator is in the workspace of the other kind, or a new one has answered a unit that is before the
            adjudicators already, or one who is named more than half of the new ones; nothing was changed then.
        NotFoundError: there is no such workspace.
        ArgillaError: a dataset of an adjudication's name is not ours or has another schema; nothing was changed then.
        NotAllowedError: the key may not do it; workspaces need an owner's.
    """
    known = argilla.workspaces()
    places = [
        _read_place(argilla, home, adjudication.adjudication_workspace(home.workspace, kind), known) for home in homes
    ]
    looked_for = {*units, *(unit for place in places for unit in place.there)}
    purposes: tuple[Purpose, ...] = ("label", "control") if kind == "quotes" else ("label",)
    sources = _read_sources(argilla, [name for home in homes for name in home.sources], looked_for, purposes)
    standing = {unit: _standing(sources.get(unit, ()), each) for unit, each in (quotes or {}).items()}
    unfounded = [unit for unit in units if kind == "quotes" and unit in sources and not standing.get(unit)]
    units = {unit: labels for unit, labels in units.items() if unit not in unfounded}
    lost = [unit for unit in units if unit not in sources and all(unit not in place.there for place in places)]
    plans: list[_Plan] = []
    for place in places:
        own = {
            unit: found
            for unit, each in sources.items()
            if (found := [at for at in each if at.workspace in place.home.sources])
        }
        wanted = {unit: labels for unit, labels in units.items() if unit in own or unit in place.there}
        if wanted or (lost and len(homes) == 1):
            members = adjudication.find_members(
                argilla, place.name, place.id, annotators, place.home.adjudicators, kind
            )
            adjudication.refuse_both_kinds(argilla, place.home, kind, members)
            if not allow_own:
                _refuse_own(own, wanted, place, members, annotators)
            plans.append(_plan(argilla, place, kind, own, wanted, members, min_submitted, allow_own))
    for plan in plans:
        _apply(argilla, plan, kind, units, standing)
    return PushedUnits(
        {plan.place.name: tuple(sorted(plan.members.names.values())) for plan in plans},
        tuple(each.unit for plan in plans for each in plan.chosen if each.unit not in plan.place.there),
        tuple(unit for plan in plans for unit in plan.kept),
        (
            *(line for plan in plans for line in plan.refused),
            *(f"{unit}: there is no such record in the workspace." for unit in lost),
            *(f"{unit}: no quote stands in what annotators saw." for unit in unfounded),
        ),
        tuple((name, plan.place.name) for plan in plans for name in sorted(plan.knowing)),
    )


def _read_place(argilla: Argilla, home: adjudication.Home, name: str, known: Mapping[str, str]) -> _Place:
    described = argilla.datasets(known[name]) if name in known else []
    there = {copy.unit: copy for dataset in described for copy in _copies(argilla, dataset)}
    return _Place(home, name, known.get(name), {item["name"]: item for item in described}, there)


def _standing(sources: Sequence[_SourceRecord], quotes: Sequence[str]) -> tuple[str, ...]:
    texts = {original_text(at.record, at.unit.task, column) for at in sources if (column := _QUOTED[at.unit.task])}
    return tuple(dict.fromkeys(quote for text in sorted(texts) for quote in adjudication.standing_quotes(text, quotes)))


class _Copy(NamedTuple):
    unit: adjudication.UnitId
    record_id: str
    labels: tuple[str, ...] | None  # None for all labels, as in adjudications of earlier versions
    own: tuple[str, ...]
    is_answered: bool  # whether one of them has answered or drafted it


def _copies(argilla: Argilla, described: Mapping[str, Any]) -> Iterator[_Copy]:
    task = task_of(described)
    if task is not None:
        for _, page in argilla.record_pages(described["id"]):
            for record in filter(is_ours, page):
                labels = record["metadata"].get(DISPUTED)
                yield _Copy(
                    _unit_of(task, record),
                    str(record["id"]),
                    None if labels is None else tuple(labels),
                    tuple(record["metadata"].get(adjudication.OWN) or ()),
                    bool(record["responses"]),
                )


def _unit_of(task: TaskName, record: Mapping[str, Any]) -> adjudication.UnitId:
    hidden = hidden_metadata(record)
    return adjudication.UnitId(task, str(hidden["record_uuid"]), str(hidden.get("chunk_id") or ""))


def _read_sources(
    argilla: Argilla, workspaces: Sequence[str], units: set[adjudication.UnitId], purposes: Collection[Purpose]
) -> dict[adjudication.UnitId, list[_SourceRecord]]:
    """Several rounds or languages may have a unit; of controls, repeats and practice only what `purposes` name."""
    tasks = {unit.task for unit in units}
    datasets = [
        (task, workspace, item)
        for workspace in dict.fromkeys(workspaces)
        for item in argilla.datasets(argilla.find_workspace(workspace))
        if (task := task_of(item)) is not None and item["status"] == "ready" and round_of(item) != adjudication.ROUND
    ]
    if not datasets:
        raise NotFoundError(_say("no_dataset", workspace=workspaces[0], api_url=argilla.api_url))
    found: dict[adjudication.UnitId, list[_SourceRecord]] = {}
    for task, workspace, item in datasets:
        for _, page in argilla.record_pages(item["id"]) if task in tasks else ():
            for record in filter(is_ours, page):
                unit = _unit_of(task, record)
                if unit in units and assignment_of(record).purpose in purposes:
                    found.setdefault(unit, []).append(_SourceRecord(unit, workspace, locale_of(item), record))
    of_grounding = [each for unit, several in found.items() if unit.task == "grounding" for each in several]
    unseen = [each for each in of_grounding if "query" not in each.record["fields"]]  # an earlier version's
    queries = read_queries(argilla, [item for _, _, item in datasets]) if unseen else {}
    for each in unseen:
        empty = read_wording(each.locale).empty_text
        each.record["fields"]["query"] = queries.get(each.unit.record_uuid, empty)
    return found


def _refuse_own(
    sources: Mapping[adjudication.UnitId, Sequence[_SourceRecord]],
    wanted: Collection[adjudication.UnitId],
    place: _Place,
    members: adjudication.Members,
    named: Collection[str],
) -> None:
    """Refuse new adjudicators who know what is there already, or are named and know most of the rest."""
    for name in members.new:
        known = sum(name in _answerers(sources.get(unit, ()), members) for unit in place.there)
        if known:
            raise InputError(_say("knows_there", name=name, known=known, workspace=place.name))
    fresh = [unit for unit in wanted if unit not in place.there]
    for name in (each for each in members.new if each in named):
        known = sum(name in _answerers(sources.get(unit, ()), members) for unit in fresh)
        if known > len(fresh) / 2:
            raise InputError(_say("knows_fresh", name=name, known=known, units=counted(len(fresh), "unit")))


def _answerers(sources: Sequence[_SourceRecord], members: adjudication.Members) -> list[str]:
    answered = {user for source in sources for user in source.answered_by}
    return sorted(name for user, name in members.names.items() if user in answered)


def _plan(
    argilla: Argilla,
    place: _Place,
    kind: adjudication.AdjudicationKind,
    sources: Mapping[adjudication.UnitId, Sequence[_SourceRecord]],
    units: adjudication.Split,
    members: adjudication.Members,
    min_submitted: int,
    allow_own: bool,
) -> _Plan:
    chosen: list[_SourceRecord] = []
    kept: list[adjudication.UnitId] = []
    refused: list[str] = []
    knowing: set[str] = set()
    for unit, labels in units.items():
        known = [] if allow_own else _answerers(sources.get(unit, ()), members)
        copy = place.there.get(unit)
        more = [] if copy is None or copy.labels is None else [each for each in labels if each not in copy.labels]
        if copy and more and copy.is_answered:
            refused.append(f"{unit}: decided on before {', '.join(more)} came; whoever did is not asked again.")
        if copy and (not more or copy.is_answered or unit not in sources):
            kept.append(unit)
        elif known:
            refused.append(f"{unit}: answered before by {', '.join(known)}, who would settle her own answer.")
            knowing.update(known)
        else:
            chosen.append(max(sources[unit], key=lambda source: len(source.answered_by)))
            kept += [unit] if copy else []
    needed = {}
    for task, locale in dict.fromkeys((source.unit.task, source.locale) for source in chosen):
        there = place.existing.get(dataset_name(task, locale, adjudication.ROUND))
        lacking = lacking_fields(task, parts_of(argilla, there["id"], "fields")) if there else frozenset()
        definition = adjudication.define_adjudication(task, read_wording(locale), kind, min_submitted, lacking)
        if there:
            refuse_other_dataset(argilla, there, definition)
        needed[task, locale] = definition, lacking
    return _Plan(place, members, needed, tuple(chosen), tuple(kept), tuple(refused), frozenset(knowing))


def _apply(
    argilla: Argilla,
    plan: _Plan,
    kind: adjudication.AdjudicationKind,
    units: adjudication.Split,
    quotes: Mapping[adjudication.UnitId, Sequence[str]],
) -> None:
    """Make workspace, datasets and members of the plan, and copy its records or give those there further labels."""
    place, members = plan.place, plan.members
    target_id = place.id or create_workspace(argilla, place.name)
    for definition, _ in plan.needed.values():
        make_dataset(argilla, target_id, definition, place.existing.get(definition.name))
    add_members(argilla, target_id, [user_id for user_id, name in members.names.items() if name in members.new])
    found = (jury_dataset(each, place.name) for each in argilla.datasets(argilla.find_workspace(place.name)))
    datasets = {dataset.name: dataset for dataset in found if dataset}
    for (task, locale), (definition, lacking) in plan.needed.items():
        dataset, wording = datasets[definition.name], read_wording(locale)
        show_property(argilla, dataset.id, DISPUTED, wording.adjudication["disputed"])
        bodies = []
        for source in plan.chosen:
            if (source.unit.task, source.locale) == (task, locale):
                copy = place.there.get(source.unit)
                labels = {*units[source.unit], *((copy.labels or ()) if copy else ())}
                own = source.answered_by & members.names.keys()
                beside = (
                    adjudication.dispute_text(quotes.get(source.unit, ()), task, wording, tuple(labels))
                    if quotes
                    else ""
                )
                body = adjudication.to_adjudicate(source.record, task, wording, kind, labels, own, lacking, beside)
                bodies.append(body | ({"id": copy.record_id} if copy else {}))
        send_bodies(argilla, dataset, bodies)


def read_outcome(
    argilla: Argilla, workspaces: str | Sequence[str], progress: Progress = lambda name, read, total: None
) -> adjudication.Outcome:
    """What adjudicators submitted, in all kinds of adjudication of the homes; nothing on the server changes."""
    homes = [workspaces] if isinstance(workspaces, str) else workspaces
    wanted = [adjudication.adjudication_workspace(name, kind) for name in homes for kind in _KINDS]
    known = argilla.workspaces()
    described = {name: argilla.datasets(known[name]) for name in wanted if name in known}
    there = [name for name, datasets in described.items() if datasets]
    if not there:
        raise NotFoundError(
            f"Argilla at {argilla.api_url} has no workspace {' or '.join(map(repr, wanted))}, so there is no "
            f"adjudication of {' or '.join(map(repr, homes))}. Begin one with `citejury exports adjudicate "
            "push EXPORT --blind`."
        )
    names = argilla.usernames()
    asked: dict[adjudication.UnitId, adjudication.Asked] = {}
    disputes = {adjudication.adjudication_workspace(name, "quotes") for name in homes}
    for place, copy in ((at, copy) for at in described for each in described[at] for copy in _copies(argilla, each)):
        labels = frozenset(LABELS[copy.unit.task] if copy.labels is None else copy.labels)
        own = frozenset(names.get(user_id, user_id) for user_id in copy.own)
        asked_here = adjudication.Asked(labels, own, labels if place in disputes else frozenset())
        asked[copy.unit] = asked_here.with_more(asked.get(copy.unit))
    with TemporaryDirectory(prefix="citejury-") as folder:
        export = Path(folder) / "adjudicated"
        filters = ExportFilters(rounds=(adjudication.ROUND,), every_response=True, whole_campaign=len(homes) > 1)
        export_csv(argilla, there, export, filters, progress=progress)
        return adjudication.decide(read_tables(export_files([export])).tables, asked)

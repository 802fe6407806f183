"""Put split units before adjudicators: in a workspace of their own, blind or with the votes, never twice.

Records are copied from the datasets that the annotators work in. Nothing there is changed, no response is ever sent,
and what was copied before stays as it is.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from annotation.campaign.datasets import jury_dataset
from annotation.campaign.people import checked_names
from annotation.campaign.plan import parts_of
from annotation.campaign.setup import add_members, create_workspace, make_dataset, refuse_other_dataset
from annotation.campaign.versions import read_queries
from annotation.client import Argilla
from annotation.display import hidden_metadata
from annotation.labels import TaskName
from annotation.push.send import Batch
from annotation.tasks import DatasetDefinition, dataset_name, lacking_fields, locale_of, round_of, task_of
from annotation.wording import read_wording
from exports.adjudicate.adjudication import (
    ROUND,
    AdjudicationKind,
    Outcome,
    UnitId,
    adjudication_workspace,
    decide,
    define_adjudication,
    to_adjudicate,
)
from exports.csv.fetch import Progress, is_ours
from exports.csv.write import export_csv
from exports.reading.read import export_files, read_tables
from exports.schema import ExportFilters
from pipeline.errors import InputError, NotFoundError


class PushedUnits(NamedTuple):
    """What became of the units."""

    workspace: str
    """The adjudicators' workspace."""
    adjudicators: tuple[str, ...]
    """Its members."""
    new: tuple[UnitId, ...]
    """Units that are in it now."""
    kept: tuple[UnitId, ...]
    """Units that were in it before."""
    refused: tuple[str, ...]
    """A line for each unit that is not: which, and why."""


class _Members(NamedTuple):
    """Who adjudicates, and who of them is new."""

    names: dict[str, str]
    """User names by id, of members and of those who are to be."""
    new: tuple[str, ...]
    """Names of those who are to be."""


class _SourceRecord(NamedTuple):
    """One record that annotators work on."""

    unit: UnitId
    """Its unit."""
    locale: str
    """Language of its dataset's questions."""
    record: dict[str, Any]
    """The record as the server returns it, with its responses."""

    @property
    def answered_by(self) -> set[str]:
        """Ids of all users with a response of any kind, drafts and discards included: they have seen it."""
        return {str(response["user_id"]) for response in self.record["responses"] or ()}


class _Plan(NamedTuple):
    """What a push does, before anything is changed."""

    sources: tuple[_SourceRecord, ...]
    """The records to copy, the weightiest unit first."""
    kept: tuple[UnitId, ...]
    """Units that are there already."""
    refused: tuple[str, ...]
    """A line for each unit that is refused."""


def push_units(
    argilla: Argilla,
    workspace: str,
    units: Sequence[UnitId],
    kind: AdjudicationKind,
    annotators: Sequence[str] = (),
    min_submitted: int = 1,
) -> PushedUnits:
    """What became of each unit: new before the adjudicators, there already, or refused.

    The adjudicators are the members of the adjudication workspace, and those named in `annotators`, who become members.
    Blind, a unit is refused that one of them has answered or drafted before; a unit that is in no dataset of the
    workspace is refused too. Pushing again adds what is new and changes nothing else.

    Raises:
        InputError: nobody is named or a member, a named user does not exist or may read everybody's responses, an
            adjudicator is in the workspace of the other kind, or a named user has answered a unit that the blind
            adjudicators have already.
        NotFoundError: there is no such workspace.
        ArgillaError: a dataset of an adjudication's name is not ours or has another schema; nothing was changed then.
        NotAllowedError: the key may not do it; workspaces need an owner's.
    """
    target = adjudication_workspace(workspace, kind)
    target_id = argilla.workspaces().get(target)
    described = argilla.datasets(target_id) if target_id else []
    members = _find_members(argilla, target, target_id, annotators, kind)
    _refuse_both_kinds(argilla, adjudication_workspace(workspace, "votes" if kind == "blind" else "blind"), members)
    there = {unit for dataset in described for unit in _dataset_units(argilla, dataset)}
    sources = _read_sources(argilla, workspace, {*units, *there})
    if kind == "blind":
        _refuse_known_units(sources, there, members, target)
    plan = _plan_push(units, sources, there, members, kind)
    existing = {item["name"]: item for item in described}
    needed = _needed_datasets(argilla, plan.sources, existing, kind, min_submitted)
    for definition, _ in needed.values():
        if definition.name in existing:
            refuse_other_dataset(argilla, existing[definition.name], definition, None)
    if target_id is None:
        target_id = create_workspace(argilla, target)
    for definition, _ in needed.values():
        make_dataset(argilla, target_id, definition, existing.get(definition.name))
    add_members(argilla, target_id, [user_id for user_id, name in members.names.items() if name in members.new])
    _copy_records(argilla, target, plan.sources, needed, kind)
    return PushedUnits(
        target,
        tuple(sorted(members.names.values())),
        tuple(source.unit for source in plan.sources),
        plan.kept,
        plan.refused,
    )


def _find_members(
    argilla: Argilla, target: str, target_id: str | None, annotators: Sequence[str], kind: AdjudicationKind
) -> _Members:
    """The adjudicators there are, with those who are named.

    Raises:
        InputError: there are none, a user does not exist, or she is no annotator and the adjudication is blind.
    """
    names = checked_names(annotators)
    users = {user["username"]: user for user in argilla.users()} if names else {}
    missing = [name for name in names if name not in users]
    if missing:
        raise InputError(
            f"Argilla at {argilla.api_url} has no user {missing[0]!r}. Make her first with `citejury annotation setup "
            f"--annotator {shlex.quote(missing[0])}`."
        )
    knowing = [name for name in names if users[name]["role"] != "annotator"]
    if kind == "blind" and knowing:
        raise InputError(
            f"{knowing[0]!r} has the role {users[knowing[0]]['role']} in Argilla and may read everybody's responses. "
            "Name somebody with the role annotator, or push with `--votes`."
        )
    present = argilla.workspace_users(target_id) if target_id else []
    found = {str(user["id"]): str(user["username"]) for user in present if user["role"] == "annotator"}
    new = tuple(name for name in names if name not in {user["username"] for user in present})
    found |= {str(users[name]["id"]): name for name in names}
    if not found:
        raise InputError(f"Nobody adjudicates in the workspace {target!r} yet. Name somebody with `--annotator`.")
    return _Members(found, new)


def _refuse_both_kinds(argilla: Argilla, other: str, members: _Members) -> None:
    """Refuse adjudicators who are in the workspace of the other kind, where the votes are shown or must not be.

    Raises:
        InputError: one of them is; it does not matter for which units, as the next push may bring any.
    """
    other_id = argilla.workspaces().get(other)
    there = {str(user["id"]) for user in argilla.workspace_users(other_id)} if other_id else set()
    both = sorted(name for user, name in members.names.items() if user in there)
    if both:
        raise InputError(
            f"{both[0]!r} adjudicates in the workspace {other!r}: with the votes before her she would not be blind. "
            "Name somebody else."
        )


def _dataset_units(argilla: Argilla, described: Mapping[str, Any]) -> Iterator[UnitId]:
    """The units of one of our datasets; none where it is somebody else's."""
    task = task_of(described)
    if task is not None:
        for _, page in argilla.record_pages(described["id"], include=()):
            yield from (_unit_of(task, record) for record in page if is_ours(record))


def _unit_of(task: TaskName, record: Mapping[str, Any]) -> UnitId:
    """The unit that a record of ours shows."""
    hidden = hidden_metadata(record)
    return UnitId(task, str(hidden["record_uuid"]), str(hidden.get("chunk_id") or ""))


def _read_sources(argilla: Argilla, workspace: str, units: set[UnitId]) -> dict[UnitId, list[_SourceRecord]]:
    """The records of these units in the datasets that annotators work in: several rounds or languages may have them.

    Raises:
        NotFoundError: there is no such workspace, or it has no dataset of ours.
    """
    tasks = {unit.task for unit in units}
    datasets = [
        (task, item)
        for item in argilla.datasets(argilla.find_workspace(workspace))
        if (task := task_of(item)) is not None and item["status"] == "ready" and round_of(item) != ROUND
    ]
    if not datasets:
        raise NotFoundError(
            f"The workspace {workspace!r} at {argilla.api_url} has no dataset that annotators work in. Check "
            "`--workspace`."
        )
    found: dict[UnitId, list[_SourceRecord]] = {}
    for task, item in datasets:
        for _, page in argilla.record_pages(item["id"]) if task in tasks else ():
            for record in filter(is_ours, page):
                unit = _unit_of(task, record)
                if unit in units:
                    found.setdefault(unit, []).append(_SourceRecord(unit, locale_of(item), record))
    of_grounding = [each for unit, several in found.items() if unit.task == "grounding" for each in several]
    unseen = [each for each in of_grounding if "query" not in each.record["fields"]]  # an earlier version's
    queries = read_queries(argilla, [item for _, item in datasets]) if unseen else {}
    for each in unseen:
        empty = read_wording(each.locale).empty_text
        each.record["fields"]["query"] = queries.get(each.unit.record_uuid, empty)
    return found


def _refuse_known_units(
    sources: Mapping[UnitId, Sequence[_SourceRecord]], there: set[UnitId], members: _Members, target: str
) -> None:
    """Refuse new adjudicators who have answered a unit that is before the blind ones already.

    Raises:
        InputError: one of them has.
    """
    for name in members.new:
        known = sum(name in _answerers(sources.get(unit, ()), members) for unit in there)
        if known:
            raise InputError(
                f"{name!r} has answered {known} of the units that are in the workspace {target!r} already, so she "
                "would not be blind there. Name somebody else."
            )


def _answerers(sources: Sequence[_SourceRecord], members: _Members) -> list[str]:
    """Names of the adjudicators who have answered one of the records, sorted."""
    answered = {user for source in sources for user in source.answered_by}
    return sorted(name for user, name in members.names.items() if user in answered)


def _plan_push(
    units: Sequence[UnitId],
    sources: Mapping[UnitId, Sequence[_SourceRecord]],
    there: set[UnitId],
    members: _Members,
    kind: AdjudicationKind,
) -> _Plan:
    """What is to become of each unit, in their order."""
    chosen: list[_SourceRecord] = []
    refused: list[str] = []
    for unit in units:
        known = _answerers(sources.get(unit, ()), members) if kind == "blind" else []
        if unit in there:
            continue
        if unit not in sources:
            refused.append(f"{unit}: there is no such record in the workspace.")
        elif known:
            refused.append(f"{unit}: answered before by {', '.join(known)}, who would not be blind.")
        else:
            chosen.append(max(sources[unit], key=lambda source: len(source.answered_by)))
    return _Plan(tuple(chosen), tuple(unit for unit in units if unit in there), tuple(refused))


_Needed = dict[tuple[TaskName, str], tuple[DatasetDefinition, frozenset[str]]]
"""The adjudicators' datasets by task and language, each with the fields that one of an earlier version goes without."""


def _needed_datasets(
    argilla: Argilla,
    sources: Sequence[_SourceRecord],
    existing: Mapping[str, Mapping[str, Any]],
    kind: AdjudicationKind,
    min_submitted: int,
) -> _Needed:
    """The adjudicators' datasets that these records need, given those that are there by their names."""
    needed: _Needed = {}
    for task, locale in dict.fromkeys((source.unit.task, source.locale) for source in sources):
        there = existing.get(dataset_name(task, locale, ROUND))
        lacking = lacking_fields(task, parts_of(argilla, there["id"], "fields")) if there else frozenset()
        needed[task, locale] = define_adjudication(task, read_wording(locale), kind, min_submitted, lacking), lacking
    return needed


def _copy_records(
    argilla: Argilla,
    target: str,
    sources: Sequence[_SourceRecord],
    needed: _Needed,
    kind: AdjudicationKind,
) -> None:
    """Put the records into the adjudicators' datasets, in their order."""
    found = (jury_dataset(each, target) for each in argilla.datasets(argilla.find_workspace(target)))
    datasets = {dataset.name: dataset for dataset in found if dataset}
    for (task, locale), (definition, lacking) in needed.items():
        batch = Batch(argilla, datasets[definition.name])
        for source in sources:
            if (source.unit.task, source.locale) == (task, locale):
                batch.add(to_adjudicate(source.record, task, read_wording(locale), kind, lacking))
        batch.send()


def read_outcome(argilla: Argilla, workspace: str, progress: Progress = lambda name, read, total: None) -> Outcome:
    """What adjudicators submitted, in both kinds of adjudication of the workspace; nothing on the server changes.

    Raises:
        NotFoundError: the workspace has no adjudication, or nobody has submitted anything in it.
        ArgillaError: Argilla does not answer, or its records keep changing.
    """
    wanted = (adjudication_workspace(workspace, "blind"), adjudication_workspace(workspace, "votes"))
    known = argilla.workspaces()
    there = [name for name in wanted if name in known and argilla.datasets(known[name])]
    if not there:
        raise NotFoundError(
            f"Argilla at {argilla.api_url} has no workspace {' or '.join(map(repr, wanted))}, so there is no "
            f"adjudication of {workspace!r}. Begin one with `citejury exports adjudicate push`."
        )
    with TemporaryDirectory(prefix="citejury-") as folder:
        export = Path(folder) / "adjudicated"
        export_csv(argilla, there, export, ExportFilters(rounds=(ROUND,), every_response=True), progress=progress)
        return decide(read_tables(export_files([export])).tables)

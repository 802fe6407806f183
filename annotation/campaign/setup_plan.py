"""The plan of a set-up: what differs from what is wanted, and what is to be done about it; making one reads only."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from annotation.argilla import tasks as defined
from annotation.argilla.client import Argilla
from annotation.argilla.labels import EVIDENCE, TASKS, Evidence, TaskName
from annotation.argilla.units import read_units
from annotation.argilla.wording import read_wording
from annotation.campaign import datasets
from annotation.campaign.file import Member, Place
from annotation.campaign.replies import closing_rules
from annotation.campaign.routing import ROUTING
from pipeline.core.errors import ArgillaError, InputError
from pipeline.core.sentences import sentences
from pipeline.core.terminal import counted

_say = sentences(__file__)
_ASKS_FOR_MARKS = {"optional": _say("asks_for_marks"), "required": _say("requires_marks")}

Done = Literal["created", "finished", "updated", "added", "removed", "kept"]
Part = tuple[str, dict[str, Any]]  # path and body of a change to a field or question


class Step(NamedTuple):
    """`kept` where nothing is to do."""

    kind: Literal["workspace", "dataset", "calibration", "annotator"]
    name: str
    done: Done
    note: str = ""
    workspace: str = ""  # empty for somebody who is in none yet


class Wanted(NamedTuple):
    places: Mapping[Place, Mapping[TaskName, int | None]]
    """The overlap of each task at each place; None takes an existing dataset's, and 1 for a new one."""
    members: Sequence[Member]
    routing: Mapping[str, Any] | None  # None outside campaigns
    notes: Mapping[Place, str]
    juries: Mapping[Place, Sequence[str]]
    """User names of those who label at each place; empty where all members label in all datasets."""
    evidence: Evidence | None = None  # None takes an existing dataset's way, and `off` for a new one


class DatasetPlan(NamedTuple):
    workspace: str
    definition: defined.DatasetDefinition
    existing: Mapping[str, Any] | None  # None where it is to be made
    earlier: Mapping[str, Any] | None  # the version whose records are to be carried over
    parts: tuple[Part, ...]
    body: dict[str, Any]
    step: Step
    affected: str  # what it does to responses that are there; empty where it touches none
    jury: Sequence[str] | None = None
    """Who is to be written down as labelling in it; None where nothing is to be written."""


class MemberPlan(NamedTuple):
    member: Member
    user_id: str | None  # None where they are to be created
    step: Step


class Plan(NamedTuple):
    workspaces: dict[str, str | None]  # None where one is to be created
    datasets: tuple[DatasetPlan, ...]
    members: tuple[MemberPlan, ...]
    newcomers: tuple[datasets.Newcomers, ...] = ()

    @property
    def steps(self) -> tuple[Step, ...]:
        made = tuple(
            Step("workspace", name, "kept" if workspace_id else "created", workspace=name)
            for name, workspace_id in self.workspaces.items()
        )
        people = (each.step for each in self.members)
        return (*made, *(each.step for each in self.datasets), *people, *map(_step_of, self.newcomers))

    @property
    def changed(self) -> bool:
        return any(step.done != "kept" for step in self.steps)

    @property
    def affected(self) -> tuple[str, ...]:
        """A line for each thing that touches what has been answered."""
        return tuple(each.affected for each in self.datasets if each.affected)


def _step_of(given: datasets.Newcomers) -> Step:
    who = ", ".join(dict.fromkeys(name for names in given.names.values() for name in names))
    note = f"done; {counted(len(given.names), 'unit')} for {who or 'nobody any more'} alone"
    return Step("calibration", given.dataset.name, "updated", note, given.dataset.workspace)


def plan_setup(argilla: Argilla, wanted: Wanted, new_versions: Collection[TaskName] = ()) -> Plan:
    """What is to be done so that all wanted is there; `new_versions` names tasks whose datasets are made anew."""
    for place in wanted.places:  # before anything is asked
        defined.check_round(place.round_name)
        read_wording(place.locale)
    known = argilla.workspaces()
    names = dict.fromkeys([*(place.workspace for place in wanted.places), *(each.workspace for each in wanted.members)])
    for name in names:
        # argilla 2.8.0, `_models/_workspace.py`: it lists no workspace at all then. Its server takes any name.
        if name not in known and not re.fullmatch(r"[A-Za-z0-9_-]+", name):
            raise InputError(_say("workspace_name", name=name))
    ids = {name: known.get(name) for name in names}
    described = {name: datasets.current_datasets(argilla, found) if found else [] for name, found in ids.items()}
    everything = [each for there in described.values() for each in there]
    series = [
        (place, task, datasets.Series(task, place.locale, place.round_name))
        for place, tasks in wanted.places.items()
        for task in TASKS
        if task in tasks
    ]
    newest = [(task, datasets.newest_versions(described[place.workspace]).get(each)) for place, task, each in series]
    again = {task: datasets.to_be_raised([each for of, each in newest if each and of == task]) for task in new_versions}
    plans = []
    for place, task, _ in series:
        there, rules = described[place.workspace], datasets.rules_of(everything, task, place.locale)
        plans.append(_plan_dataset(argilla, place, task, wanted, there, again.get(task, ()), rules))
    return Plan(ids, tuple(plans), plan_members(argilla, wanted.members, ids))


def _plan_dataset(
    argilla: Argilla,
    place: Place,
    task: TaskName,
    wanted: Wanted,
    described: Sequence[Mapping[str, Any]],
    raised_ids: Sequence[str],
    rules: Sequence[tuple[str, str]],
) -> DatasetPlan:
    """`rules` are the questions and replies that its guidelines end in."""
    newest = datasets.newest_versions(described).get(datasets.Series(task, place.locale, place.round_name))
    raised = newest is not None and newest["id"] in raised_ids
    number = 1 if newest is None else datasets.version_of(newest) + raised
    existing = None if raised else newest
    overlap = wanted.places[place][task] or (newest["distribution"]["min_submitted"] if newest else 1)
    lacking = defined.lacking_fields(task, parts_of(argilla, existing["id"], "fields")) if existing else frozenset()
    evidence = wanted.evidence or (defined.evidence_of(newest) if newest else "off")
    if place.round_name == defined.PRACTICE:
        evidence = "off"  # marks of practice would be nobody's evidence
    wording = read_wording(place.locale)
    closing = closing_rules(wording.rules_heading, rules)
    plain = defined.define_dataset(
        task, wording, overlap, place.round_name, lacking=lacking, evidence=evidence, closing=closing
    )
    definition = datasets.with_version(plain, number)
    refuse_strangers(described, definition)
    earlier = newest
    if existing is not None:
        _refuse_other_evidence(existing, definition, _say("new_version", task=task))
        refuse_other_schema(argilla, existing, definition, _say("new_version", task=task))
        origin = existing["metadata"].get(datasets.CARRIED_FROM) if datasets.is_carrying(existing) else None
        earlier = next((each for each in described if origin is not None and each["id"] == origin), None)
    if wanted.routing is not None:
        definition.metadata[ROUTING] = dict(wanted.routing)
    if earlier is not None:
        definition.metadata.update({datasets.CARRIED_FROM: earlier["id"], datasets.RAISED_TOGETHER: list(raised_ids)})
    brought = f"without `{'`, `'.join(sorted(lacking))}`, which `--new-version {task}` brings" if lacking else ""
    asks = _ASKS_FOR_MARKS.get(definition.metadata.get(EVIDENCE, "off"), "")
    remarks = [brought, asks, wanted.notes.get(place, "")]
    return _with_changes(argilla, place, definition, existing, earlier, remarks, wanted.juries.get(place))


def _with_changes(
    argilla: Argilla,
    place: Place,
    definition: defined.DatasetDefinition,
    existing: Mapping[str, Any] | None,
    earlier: Mapping[str, Any] | None,
    remarks: Sequence[str],
    jury: Sequence[str] | None,
) -> DatasetPlan:
    parts, body, differences = _changes(argilla, existing, definition) if existing is not None else ((), {}, [])
    done: Done = "created" if existing is None else "kept"
    if existing is not None and (existing["status"] == "draft" or earlier is not None):
        done = "finished"
    elif differences:
        done = "updated"
    is_more_practice = place.round_name == defined.PRACTICE and body.keys() == {"distribution"} and not parts
    touched = earlier if earlier is not None else existing if differences and not is_more_practice else None
    responses = _count_responses(argilla, touched["id"]) if touched is not None else 0
    carried = [f"records carried over from {earlier['name']}"] if earlier is not None else []
    note = "; ".join(filter(None, [*differences, *carried, *remarks]))
    affected = ""
    if touched is not None and responses:
        what = f"a new version, {definition.name}; they stay in the old one" if earlier is not None else note
        if reopened := _count_reopened(argilla, touched, body):
            what = f"{what}, so that {counted(reopened, 'finished unit')} would wait again"
        affected = f"{place.workspace}/{touched['name']} has {responses} responses: {what}"
    if jury is not None and existing is not None and existing["metadata"].get(datasets.JURY) == list(jury):
        jury = None
    if jury is not None and done == "kept":
        done, note = "updated", "; ".join(filter(None, ["who labels in it", note]))
    step = Step("dataset", definition.name, done, note, place.workspace)
    return DatasetPlan(place.workspace, definition, existing, earlier, parts, body, step, affected, jury)


def _count_reopened(argilla: Argilla, existing: Mapping[str, Any], body: Mapping[str, Any]) -> int:
    """How many units have all the submissions that they wait for now, and fewer than they would wait for."""
    now = existing["distribution"]["min_submitted"]
    then = body.get("distribution", existing["distribution"])["min_submitted"]
    units = read_units(argilla, existing["id"]) if then > now else ()
    common = (unit.answers for unit in units if not unit.assignment.needed)
    return sum(now <= sum(each.status == "submitted" for each in answers) < then for answers in common)


def _changes(
    argilla: Argilla, existing: Mapping[str, Any], definition: defined.DatasetDefinition
) -> tuple[tuple[Part, ...], dict[str, Any], list[str]]:
    """What to send, and in words; metadata that the definition does not have stay as they are."""
    parts: list[Part] = []
    for kind, wanted in (("fields", definition.fields), ("questions", definition.questions)):
        there = {part["name"]: part for part in parts_of(argilla, existing["id"], kind)}
        for part in wanted:
            if part["name"] in there and _wording_of(there[part["name"]]) != _wording_of(part):
                changed = {each: part[each] for each in sorted({"title", "description", "settings"} & part.keys())}
                parts.append((f"/{kind}/{there[part['name']]['id']}", changed))
    words = ["titles and descriptions"] if parts else []
    body: dict[str, Any] = {}
    if existing["guidelines"] != definition.body["guidelines"]:
        body["guidelines"] = definition.body["guidelines"]
        words.append("guidelines")
    now, then = (each["distribution"]["min_submitted"] for each in (existing, definition.body))
    if now != then:
        body["distribution"] = definition.body["distribution"]
        words.append(f"overlap {now} becomes {then}")
    metadata = existing["metadata"] or {}
    watched = [name for name in ("guideline_version", defined.TASK_DOCUMENT, ROUTING) if name in definition.metadata]
    if any(metadata.get(name) != definition.metadata[name] for name in watched):
        body["metadata"] = {**metadata, **definition.metadata}
        if metadata.get(ROUTING) != body["metadata"].get(ROUTING):
            words.append("how records are split")
    return tuple(parts), body, words or (["version of the wording"] if body else [])


def _wording_of(part: Mapping[str, Any]) -> tuple[Any, ...]:
    """What annotators read of a field or question; takes ours and the server's description alike."""
    options = part["settings"].get("options") or ()
    return part["title"], part.get("description"), [(each["value"], each.get("text")) for each in options]


def _count_responses(argilla: Argilla, dataset_id: str) -> int:
    users = argilla.request("GET", f"/datasets/{dataset_id}/users/progress")["users"]
    states = [user[state] for user in users for state in ("completed", "pending")]
    return sum(int(state[kind]) for state in states for kind in ("submitted", "discarded", "draft"))


def parts_of(argilla: Argilla, dataset_id: str, kind: str) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = argilla.request("GET", f"/datasets/{dataset_id}/{kind}")["items"]
    return parts


def refuse_strangers(described: Sequence[Mapping[str, Any]], definition: defined.DatasetDefinition) -> None:
    """Raise ArgillaError where a dataset that is not ours has the name."""
    if any(each["name"] == definition.name and defined.task_of(each) != definition.task for each in described):
        raise ArgillaError(_say("stranger", name=definition.name))


def refuse_other_schema(
    argilla: Argilla, existing: Mapping[str, Any], definition: defined.DatasetDefinition, way_out: str
) -> None:
    """Raise ArgillaError for a dataset with other fields or questions; a draft may lack some."""
    parts = [part for kind in ("fields", "questions") for part in parts_of(argilla, existing["id"], kind)]
    there = {part["name"]: defined.schema_part(part) for part in parts}
    wanted = {part["name"]: defined.schema_part(part) for part in [*definition.fields, *definition.questions]}
    missing = () if existing["status"] == "draft" else [name for name in wanted if name not in there]
    differences = [f"`{name}` is missing" for name in missing]
    differences += [f"`{name}` is not asked for" for name in there if name not in wanted]
    differences += [
        f"`{name}` has {key} {there[name].get(key)!r} instead of {value!r}"
        for name in wanted
        if name in there
        for key, value in wanted[name].items()
        if there[name].get(key) != value
    ]
    if differences:
        raise ArgillaError(
            _say("other_schema", dataset=existing["name"], differences="; ".join(differences[:6]), way_out=way_out)
        )


def _refuse_other_evidence(existing: Mapping[str, Any], definition: defined.DatasetDefinition, way_out: str) -> None:
    there, wanted = defined.evidence_of(existing), definition.metadata.get(EVIDENCE, "off")
    if there != wanted:
        if existing["status"] == "draft":
            way_out = "It is a draft without records: delete it in Argilla, then run `citejury annotation setup` again."
        words = {"off": "no marks", "optional": "optional marks", "required": "required marks"}
        raise ArgillaError(
            _say("other_evidence", dataset=existing["name"], there=words[there], wanted=words[wanted], way_out=way_out)
        )


def plan_members(
    argilla: Argilla, wanted: Sequence[Member], workspace_ids: Mapping[str, str | None]
) -> tuple[MemberPlan, ...]:
    """In the order given; only an owner may ask."""
    if not wanted:
        return ()
    users = {user["username"]: user for user in argilla.users()}
    there = {
        name: {user["username"] for user in argilla.workspace_users(found)} if found else set()
        for name, found in workspace_ids.items()
    }
    first: dict[str, Member] = {}
    for member in wanted:  # where they are created: the first workspace that they belong to, or the first of all
        known = first.setdefault(member.person.name, member)
        if member.belongs and not known.belongs:
            first[member.person.name] = member
    plans: list[MemberPlan] = []
    for member in wanted:
        person, user = member.person, users.get(member.person.name)
        is_first = first[person.name] is member
        done: Done = "added" if member.belongs else "kept"
        if person.name in there[member.workspace]:
            done = "kept" if member.belongs else "removed"
        elif user is None and is_first and not person.left:
            done = "created"
        if done == "kept" and not (member.belongs or person.left or is_first):
            continue  # they have nothing to do with that workspace
        where = member.workspace if member.belongs or person.left or done == "removed" else ""
        role = user["role"] if user else person.role
        note = "" if role == "annotator" else f"role {role}: may read what the others answer"
        if person.left:
            note = "has left; what she answered stays"
        elif person.role == "adjudicator":
            note = "adjudicator: `citejury exports adjudicate push EXPORT --blind` gives her what is split"
        step = Step("annotator", person.name, done, note, where)
        plans.append(MemberPlan(member, user["id"] if user else None, step))
    return tuple(plans)

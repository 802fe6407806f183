"""Workspaces, datasets and annotators in Argilla: made where missing, changed where different, never deleted.

Workspaces and users are made by Argilla's SDK. A dataset is made of `rg.Settings`, but by requests of our own, which a
kill may separate: the first one carries the dataset's metadata, by which a draft is known and finished later. The
SDK's `Dataset.create` sends no metadata, and cannot go on with a draft.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

from annotation.argilla import tasks
from annotation.argilla.client import Argilla, connected, unless_done, user_handle, workspace_handle
from annotation.argilla.display import HIDDEN, shown_anew, unit_id
from annotation.argilla.labels import OWN_TASKS, Evidence, TaskName
from annotation.argilla.marks import add_passages, can_be_marked, carried_passages
from annotation.argilla.sdk import load_sdk
from annotation.argilla.units import ASSIGNMENT, assignment_of
from annotation.campaign import calibration, datasets, file, setup_plan
from annotation.campaign.people import NewUser, Passwords, checked_names, create_user, remove_user
from annotation.campaign.routing import LANGUAGE_WORKSPACES, check_routing, routing_metadata
from pipeline.core.errors import InputError
from pipeline.core.sentences import sentences

_say = sentences(__file__)


def set_up(
    argilla: Argilla,
    workspace: str,
    locale: str = "en",
    annotators: Sequence[str] = (),
    min_submitted: int | None = None,
    announce: Callable[[NewUser], None] = lambda user: None,
    round_name: str = tasks.PRODUCTION,
    evidence: Evidence | None = None,
) -> setup_plan.Plan:
    """The plan that was carried out: the workspace, three published datasets of one round and language, its annotators.

    Running it again changes nothing; after it was killed, running it again finishes the work. New annotators are passed
    to `announce` one by one as soon as they exist, because a password cannot be read again. None as `min_submitted` or
    `evidence` leaves existing datasets as they are, and gives new ones 1 and `off`.
    """
    plan = setup_plan.plan_setup(argilla, wanted_of(workspace, locale, annotators, min_submitted, round_name, evidence))
    return apply_plan(argilla, plan, Passwords(announce=announce))


def wanted_of(
    workspace: str,
    locale: str,
    annotators: Sequence[str],
    min_submitted: int | None,
    round_name: str,
    evidence: Evidence | None = None,
) -> setup_plan.Wanted:
    """Without a campaign: one round in one language in one workspace."""
    people = [file.Member(workspace, file.Annotator(name=name)) for name in checked_names(annotators)]
    place = file.Place(workspace, locale, round_name)
    return setup_plan.Wanted({place: dict.fromkeys(OWN_TASKS, min_submitted)}, people, None, {}, {}, evidence)


def _juries(campaign: file.Campaign, workspace: str, found: Iterable[file.Place]) -> dict[file.Place, list[str]]:
    """Empty where there is one language, in which everybody labels."""
    if len(campaign.locales) == 1:
        return {}
    return {
        place: [person.name for person in campaign.jury(place.locale, file.group_at(campaign, workspace, place))]
        for place in found
    }


def wanted_of_round(
    campaign: file.Campaign, workspace: str, round_name: str, locale: str | None, min_submitted: int | None
) -> setup_plan.Wanted:
    """What there is to be for a round beside the campaign's own; None as `locale` is for all of its languages."""
    if round_name in (tasks.PRACTICE, tasks.CALIBRATION, tasks.PRODUCTION):
        raise InputError(_say("own_round", round_name=round_name))
    if locale is not None and locale not in campaign.locales:
        raise InputError(f"The campaign has no {locale!r}. Choose `--locale` from: {', '.join(campaign.locales)}.")
    locales = campaign.locales if locale is None else (locale,)
    common = campaign.model_copy(update={"groups": {}, "assign": {}})
    homes = {each: file.language_workspace(campaign, workspace, each) for each in locales}
    people = [each for each in file.members(common, workspace) if each.workspace in homes.values()]
    overlaps = dict.fromkeys(campaign.tasks, min_submitted)
    found = {file.Place(home, each, round_name): overlaps for each, home in homes.items()}
    return setup_plan.Wanted(found, people, None, {}, _juries(campaign, workspace, found), campaign.evidence)


def plan_campaign(
    argilla: Argilla, campaign: file.Campaign, workspace: str, new_versions: Collection[TaskName] = ()
) -> setup_plan.Plan:
    """What is to be done so that the campaign, as it stands there, is in Argilla; reads only."""
    stock: list[None] = []
    closed = calibration.closed_calibrations(argilla, campaign, workspace, lambda: stock.append(None))
    alone = "; a stock Argilla cannot give it to new people alone" if stock else ""
    notes = dict.fromkeys(closed, f"done: no record is added{alone}")
    found: dict[file.Place, Mapping[TaskName, int | None]] = {}
    for place, overlap in file.places(campaign, workspace).items():
        found[place] = overlap
        if place in closed and campaign.calibration and campaign.calibration.overlap is None:
            found[place] = {task: each if task in new_versions else None for task, each in overlap.items()}
        people = len(campaign.jury(place.locale, file.group_at(campaign, workspace, place)))
        if campaign.annotators and people < max(overlap.values()):
            notes[place] = f"waits for {max(overlap.values())} annotators, and the campaign has {people} for it"
    practice = file.practice_places(campaign, workspace)
    notes |= {place: f"opens the rest at {campaign.practice.pass_mark:g}" for place in practice if campaign.practice}
    found = practice | found
    juries = _juries(campaign, workspace, found)
    wanted = setup_plan.Wanted(
        found, file.members(campaign, workspace), routing_metadata(campaign), notes, juries, campaign.evidence
    )
    known = argilla.workspaces()
    for name in dict.fromkeys(place.workspace for place in wanted.places):
        if name in known:
            there = datasets.current_datasets(argilla, known[name])
            check_routing(there, campaign, keys=("calibration", LANGUAGE_WORKSPACES))
    newcomers = () if stock else calibration.find_newcomers(argilla, campaign, closed)
    kept = tuple(each for each in newcomers if each.dataset.task not in new_versions)
    return setup_plan.plan_setup(argilla, wanted, new_versions)._replace(newcomers=kept)


def apply_plan(argilla: Argilla, plan: setup_plan.Plan, passwords: Passwords) -> setup_plan.Plan:
    """Do what the plan says, and give it back; killed or refused at any step, a new plan has what is left."""
    ids = {name: found or create_workspace(argilla, name) for name, found in plan.workspaces.items()}
    for dataset in reversed(plan.datasets):  # Argilla's home page shows the dataset that changed last first
        if dataset.step.done != "kept":
            _apply_dataset(argilla, ids[dataset.workspace], dataset)
    _apply_members(argilla, plan.members, ids, passwords)
    calibration.give_calibration(argilla, plan.newcomers)
    return plan


def create_workspace(argilla: Argilla, name: str) -> str:
    with unless_done(lambda: name in argilla.workspaces()):
        return str(load_sdk().Workspace(name=name, client=connected(argilla)).create().id)
    return argilla.find_workspace(name)


def _apply_dataset(argilla: Argilla, workspace_id: str, plan: setup_plan.DatasetPlan) -> None:
    definition = plan.definition
    dataset_id = plan.existing["id"] if plan.existing else None
    if plan.existing is None or plan.existing["status"] == "draft":
        name = definition.name if plan.earlier is None else f"{definition.name}{datasets.CARRYING}"
        dataset_id = _publish(argilla, workspace_id, name, definition, plan.existing)
    for path, body in plan.parts:
        argilla.request("PATCH", path, json=body)
    visible = {name: value for name, value in plan.body.items() if name != "metadata"}
    if visible:
        argilla.request("PATCH", f"/datasets/{dataset_id}", json=visible)
    if "metadata" in plan.body:
        old = str((plan.existing or {}).get("guidelines") or "")
        datasets.append_to_log(argilla, str(dataset_id), plan.body["metadata"], old, plan.body.get("guidelines", old))
    if plan.jury is not None:
        datasets.write_value(
            argilla, str(dataset_id), datasets.JURY_PROPERTY, "citejury: who labels here", list(plan.jury)
        )
    if plan.earlier is not None:
        new = datasets.jury_dataset(argilla.request("GET", f"/datasets/{dataset_id}"), plan.workspace)
        _carry_records(argilla, plan.earlier, cast(datasets.JuryDataset, new))
        argilla.request("PATCH", f"/datasets/{dataset_id}", json={"name": definition.name})


def _publish(
    argilla: Argilla, workspace_id: str, name: str, definition: tasks.DatasetDefinition, draft: Mapping[str, Any] | None
) -> str:
    body = {**definition.body, "name": name, "workspace_id": workspace_id}
    if draft is None:
        with unless_done(lambda: _named(argilla, workspace_id, name)):
            argilla.request("POST", "/datasets", json=body)
    dataset_id = str((draft or _named(argilla, workspace_id, name) or {})["id"])
    for kind, parts in (("fields", definition.fields), ("questions", definition.questions)):
        there = {part["name"] for part in setup_plan.parts_of(argilla, dataset_id, kind)}
        for part in (part for part in parts if part["name"] not in there):
            with unless_done(partial(_has_part, argilla, dataset_id, kind, part["name"])):
                argilla.request("POST", f"/datasets/{dataset_id}/{kind}", json=part)
    with unless_done(lambda: (_named(argilla, workspace_id, name) or {}).get("status") == "ready"):
        argilla.request("PUT", f"/datasets/{dataset_id}/publish")
    return dataset_id


def _named(argilla: Argilla, workspace_id: str, name: str) -> Mapping[str, Any] | None:
    return next((each for each in argilla.datasets(workspace_id) if each["name"] == name), None)


def _has_part(argilla: Argilla, dataset_id: str, kind: str, name: str) -> bool:
    return any(part["name"] == name for part in setup_plan.parts_of(argilla, dataset_id, kind))


def make_dataset(
    argilla: Argilla, workspace_id: str, definition: tasks.DatasetDefinition, existing: Mapping[str, Any] | None
) -> setup_plan.Step:
    """What was done: a new dataset is made and published, a draft of ours is finished, a published one is kept."""
    if existing is not None and existing["status"] == "ready":
        return setup_plan.Step("dataset", definition.name, "kept")
    _publish(argilla, workspace_id, definition.name, definition, existing)
    return setup_plan.Step("dataset", definition.name, "finished" if existing else "created")


def refuse_other_dataset(argilla: Argilla, existing: Mapping[str, Any], definition: tasks.DatasetDefinition) -> None:
    """Raise ArgillaError where an existing dataset is not ours or does not fit; a draft may lack parts."""
    setup_plan.refuse_strangers([existing], definition)
    setup_plan.refuse_other_schema(argilla, existing, definition, "Choose another `--workspace`.")


def _apply_members(
    argilla: Argilla, plans: Sequence[setup_plan.MemberPlan], workspace_ids: Mapping[str, str], passwords: Passwords
) -> None:
    changes = [plan for plan in plans if plan.step.done != "kept"]
    if not changes:
        return
    client = connected(argilla)
    created: dict[str, str] = {}
    for plan in changes:
        home, person, belongs = plan.member
        if plan.step.done == "created":
            created[person.name] = create_user(argilla, person, passwords)
        user = user_handle(client, plan.user_id or created[person.name])
        if plan.step.done == "removed" and person.left:
            remove_user(argilla, person.name, [home])  # their log-ins end, too
        elif plan.step.done == "removed":
            with unless_done(partial(_is_member, argilla, workspace_ids[home], str(user.id), False)):
                user.remove_from_workspace(workspace_handle(client, workspace_ids[home]))
        elif belongs:
            add_members(argilla, workspace_ids[home], [str(user.id)])


def add_members(argilla: Argilla, workspace_id: str, user_ids: Sequence[str]) -> None:
    client = connected(argilla)
    for user_id in user_ids:
        with unless_done(partial(_is_member, argilla, workspace_id, user_id)):
            user_handle(client, user_id).add_to_workspace(workspace_handle(client, workspace_id))


def _is_member(argilla: Argilla, workspace_id: str, user_id: str, wanted: bool = True) -> bool:
    return any(user["id"] == user_id for user in argilla.workspace_users(workspace_id)) is wanted


def add_users(argilla: Argilla, wanted: Sequence[file.Member], kept: Passwords) -> tuple[setup_plan.MemberPlan, ...]:
    """What was done about each person in each workspace; who is there already is left as they are."""
    named = dict.fromkeys(each.workspace for each in wanted)
    ids = {name: argilla.find_workspace(name) if name else "" for name in named}
    plans = setup_plan.plan_members(argilla, wanted, ids)
    _apply_members(argilla, plans, ids, kept)
    return plans


def _carry_records(argilla: Argilla, old: Mapping[str, Any], new: datasets.JuryDataset) -> None:
    """Copy the records of the old version, without responses and suggestions; killed and called again, it goes on.

    A query that the old version did not show comes from the generation datasets of its round and language, the ids of
    passages that could not be marked there from the retrieval datasets.
    """
    old_id = str(old["id"])
    there = {unit_id(item) for _, page in argilla.record_pages(new.id, include=()) for item in page}
    fields, before = (
        {field["name"] for field in argilla.request("GET", f"/datasets/{each}/fields")["items"]}
        for each in (new.id, old_id)
    )
    asks_for_marks = new.evidence != "off"
    place = (new.locale, new.round)
    near = [of for of in argilla.datasets(old["workspace_id"]) if (tasks.locale_of(of), tasks.round_of(of)) == place]
    queries = datasets.read_queries(argilla, near) if "query" in fields - before else {}
    # Rank, `chunk_id` and `doc_id` of all passages, by record.
    passages: defaultdict[str, set[tuple[int, str, str]]] = defaultdict(set)
    if asks_for_marks and tasks.evidence_of(old) == "off":
        for dataset in near:
            pages = argilla.record_pages(dataset["id"], include=()) if tasks.task_of(dataset) == "retrieval" else ()
            for record in (record for _, page in pages for record in page):
                if hidden := (record["metadata"] or {}).get(HIDDEN):
                    passages[hidden["record_uuid"]].add((hidden["chunk_rank"], hidden["chunk_id"], hidden["doc_id"]))

    def bodies() -> Iterator[dict[str, Any]]:
        for item in (item for _, page in argilla.record_pages(old_id, include=(), page_size=100) for item in page):
            if unit_id(item) not in there:
                body = _copied(item, fields, queries)
                hidden = (body["metadata"] or {}).get(HIDDEN)
                if asks_for_marks and hidden and not can_be_marked(body):
                    add_passages(body, carried_passages(body, sorted(passages[hidden["record_uuid"]])))
                yield body

    datasets.send_bodies(argilla, new, bodies())


def _copied(record: Mapping[str, Any], fields: set[str], queries: Mapping[str, str]) -> dict[str, Any]:
    shown = shown_anew(record)
    texts = dict(shown["fields"])
    query = queries.get(((record["metadata"] or {}).get(HIDDEN) or {}).get("record_uuid", ""))
    if query is not None:
        texts.setdefault("query", query)
    missing = sorted(fields - texts.keys())
    if missing:
        raise InputError(_say("lacks_field", record=record["external_id"], field=missing[0]))
    body = {name: record[name] for name in ("external_id", "fields", "metadata")} | shown
    if assignment_of(record).purpose == "label":  # who answered the earlier version is asked anew
        body["metadata"] = {name: value for name, value in (body["metadata"] or {}).items() if name != ASSIGNMENT}
    return body | {"fields": {name: text for name, text in texts.items() if name in fields}}

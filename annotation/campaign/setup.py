"""Workspaces, datasets and annotators in Argilla: made where missing, changed where different, never deleted."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from annotation.campaign.file import CALIBRATION, Annotator, Campaign, Member, Place, members, places
from annotation.campaign.people import NewUser, Passwords, apply_members, checked_names
from annotation.campaign.plan import (
    DatasetPlan,
    Plan,
    Wanted,
    parts_of,
    plan_setup,
    refuse_other_schema,
    refuse_strangers,
)
from annotation.campaign.routing import check_routing, routing_metadata
from annotation.campaign.steps import Step
from annotation.campaign.versions import CARRYING, carry_records, newest_versions, version_of
from annotation.client import Argilla
from annotation.dataset_log import append, current_datasets
from annotation.labels import TASKS, TaskName
from annotation.sdk import connected, load_sdk
from annotation.tasks import (
    PRODUCTION,
    DatasetDefinition,
    check_round,
    dataset_name,
    locale_of,
    round_of,
    task_of,
)
from pipeline.errors import ArgillaError, InputError, NotFoundError


class SetupReport(NamedTuple):
    """Everything that set-up looked at, in order."""

    steps: tuple[Step, ...]

    @property
    def changed(self) -> bool:
        """Whether anything was created, finished, changed, added or taken out."""
        return any(step.done != "kept" for step in self.steps)


class JuryDataset(NamedTuple):
    """One of our datasets on the server."""

    id: str
    name: str
    task: TaskName
    locale: str
    status: str
    min_submitted: int
    version: int = 1


def set_up(
    argilla: Argilla,
    workspace: str,
    locale: str = "en",
    annotators: Sequence[str] = (),
    min_submitted: int | None = None,
    announce: Callable[[NewUser], None] = lambda user: None,
    round_name: str = PRODUCTION,
) -> SetupReport:
    """What was found and made: the workspace, three published datasets of one round and language, its annotators.

    Running it again changes nothing; after it was killed, running it again finishes the work. Titles, descriptions and
    guidelines of another wording, and another overlap, are changed. New annotators are passed to `announce` one by one
    as soon as they exist, because a password cannot be read again. `min_submitted` is the number of annotators that a
    record waits for; None leaves existing datasets as they are and gives new ones 1.

    Raises:
        InputError: there is no wording for the language, an annotator's name is empty, unprintable or named twice, or
            a round cannot have that name.
        ArgillaError: a dataset of the name exists and is not ours, or has other fields or questions than this version
            asks for; nothing was changed then.
        NotAllowedError: the key may not do it; workspaces and users need an owner's. Nothing was changed then.
    """
    plan = plan_setup(argilla, wanted_of(workspace, locale, annotators, min_submitted, round_name))
    return apply_plan(argilla, plan, Passwords(announce=announce))


def wanted_of(
    workspace: str, locale: str, annotators: Sequence[str], min_submitted: int | None, round_name: str
) -> Wanted:
    """What there is to be without a campaign: one round in one language in one workspace.

    Raises:
        InputError: an annotator's name is empty, unprintable or named twice.
    """
    people = [Member(workspace, Annotator(name=name)) for name in checked_names(annotators)]
    place = Place(workspace, locale, round_name)
    return Wanted({place: dict.fromkeys(TASKS, min_submitted)}, people, None, {})


def wanted_of_campaign(campaign: Campaign, workspace: str) -> Wanted:
    """What there is to be for a campaign, with a remark where fewer people label than a record waits for."""
    found = places(campaign, workspace)
    notes = {}
    for place, overlap in found.items():
        group = next((name for name in campaign.groups if place.workspace == f"{workspace}-{name}"), None)
        people = len(campaign.jury(place.locale, group))
        if campaign.annotators and people < max(overlap.values()):
            notes[place] = f"waits for {max(overlap.values())} annotators, and the campaign has {people} for it"
    return Wanted(found, members(campaign, workspace), routing_metadata(campaign), notes)


def wanted_of_round(
    campaign: Campaign, workspace: str, round_name: str, locale: str | None, min_submitted: int | None
) -> Wanted:
    """What there is to be for a round beside the campaign's own: in its common workspace, for everybody.

    `locale` chooses one of the campaign's languages; None is for all of them.

    Raises:
        InputError: the campaign sets up that round itself, or does not have the language.
    """
    if round_name in (CALIBRATION, PRODUCTION):
        raise InputError(
            f"The round {round_name!r} is the campaign's own. Leave `--round` out; its languages and overlap stand in "
            "the table `[campaign]` of citejury.toml."
        )
    if locale is not None and locale not in campaign.locales:
        raise InputError(f"The campaign has no {locale!r}. Choose `--locale` from: {', '.join(campaign.locales)}.")
    locales = campaign.locales if locale is None else (locale,)
    people = [Member(workspace, each) for each in campaign.annotators]
    return Wanted(
        {Place(workspace, each, round_name): dict.fromkeys(TASKS, min_submitted) for each in locales}, people, None, {}
    )


def plan_campaign(
    argilla: Argilla, campaign: Campaign, workspace: str, new_versions: Collection[TaskName] = ()
) -> Plan:
    """What is to be done so that the campaign is in Argilla; reads only.

    Raises:
        SettingsError: Argilla has records that were split between calibration and production by another rule.
        ArgillaError: as for `plan_setup`.
        NotAllowedError: the key may not look at users; that needs an owner's.
    """
    wanted = wanted_of_campaign(campaign, workspace)
    known = argilla.workspaces()
    for name in dict.fromkeys(place.workspace for place in wanted.places):
        if name in known:
            check_routing(current_datasets(argilla, known[name]), campaign, keys=("calibration",))
    return plan_setup(argilla, wanted, new_versions)


def apply_plan(argilla: Argilla, plan: Plan, passwords: Passwords) -> SetupReport:
    """Do what the plan says, step by step; killed at any moment, a new plan has what is left.

    Raises:
        OutputError: the passwords cannot be written; no user was made then.
        ArgillaError: Argilla refused a step; those before it are done.
    """
    ids = {name: found or create_workspace(argilla, name) for name, found in plan.workspaces.items()}
    for dataset in reversed(plan.datasets):  # Argilla's home page shows the dataset that changed last first
        if dataset.step.done != "kept":
            apply_dataset(argilla, ids[dataset.workspace], dataset)
    apply_members(argilla, plan.members, ids, passwords)
    return SetupReport(plan.steps)


def create_workspace(argilla: Argilla, name: str) -> str:
    """The id of a new workspace."""
    return str(load_sdk().Workspace(name=name, client=connected(argilla)).create().id)


def apply_dataset(argilla: Argilla, workspace_id: str, plan: DatasetPlan) -> None:
    """Make the dataset, finish it, or change what differs; a new version gets the records of the one before."""
    definition = plan.definition
    dataset_id = plan.existing["id"] if plan.existing else None
    if plan.existing is None or plan.existing["status"] == "draft":
        name = definition.name if plan.earlier is None else f"{definition.name}{CARRYING}"
        dataset_id = publish(argilla, workspace_id, definition.body | {"name": name}, definition, plan.existing)
    for path, body in plan.parts:
        argilla.request("PATCH", path, json=body)
    visible = {name: value for name, value in plan.body.items() if name != "metadata"}
    if visible:
        argilla.request("PATCH", f"/datasets/{dataset_id}", json=visible)
    if "metadata" in plan.body:
        append(argilla, str(dataset_id), plan.body["metadata"])
    if plan.earlier is not None:
        carry_records(argilla, plan.earlier["id"], str(dataset_id))
        argilla.request("PATCH", f"/datasets/{dataset_id}", json={"name": definition.name})


def publish(
    argilla: Argilla,
    workspace_id: str,
    body: Mapping[str, Any],
    definition: DatasetDefinition,
    existing: Mapping[str, Any] | None,
) -> str:
    """The id of the dataset, made and published, or a draft of it finished."""
    if existing is None:
        made = argilla.request("POST", "/datasets", json={**body, "workspace_id": workspace_id})
    dataset_id = str((existing or made)["id"])
    for kind, parts in (("fields", definition.fields), ("questions", definition.questions)):
        there = {part["name"] for part in parts_of(argilla, dataset_id, kind)} if existing else set()
        for part in parts:
            if part["name"] not in there:
                argilla.request("POST", f"/datasets/{dataset_id}/{kind}", json=part)
    argilla.request("PUT", f"/datasets/{dataset_id}/publish")
    return dataset_id


def make_dataset(
    argilla: Argilla, workspace_id: str, definition: DatasetDefinition, existing: Mapping[str, Any] | None
) -> Step:
    """What was done: a new dataset is made and published, a draft of ours is finished, a published one is kept."""
    if existing is not None and existing["status"] == "ready":
        return Step("dataset", definition.name, "kept")
    publish(argilla, workspace_id, definition.body, definition, existing)
    return Step("dataset", definition.name, "finished" if existing else "created")


def refuse_other_dataset(
    argilla: Argilla, existing: Mapping[str, Any], definition: DatasetDefinition, min_submitted: int | None
) -> None:
    """Nothing where the existing dataset is ours and fits; a draft may lack fields and questions.

    Raises:
        ArgillaError: it is somebody else's, has another schema, or waits for another number of annotators.
    """
    refuse_strangers([existing], definition)
    refuse_other_schema(argilla, existing, definition, "Choose another `--workspace`.")
    overlap = existing["distribution"]["min_submitted"]
    if min_submitted is not None and overlap != min_submitted:
        raise ArgillaError(
            f"The dataset {existing['name']!r} waits for {overlap} annotators on each record, not for {min_submitted}. "
            f"Leave `--overlap` out to keep that, or change the distribution in the dataset's settings in Argilla."
        )


def find_datasets(
    argilla: Argilla, workspace: str, locale: str | None = None, round_name: str = PRODUCTION
) -> dict[TaskName, JuryDataset]:
    """The three published datasets of a round in their newest versions, by task.

    `locale` chooses where there are several languages.

    Raises:
        NotFoundError: no such workspace, or one of the three is missing or not published.
        InputError: there are datasets in several languages and `locale` is None, or a round cannot have that name.
    """
    check_round(round_name)
    ours = [item for item in argilla.datasets(argilla.find_workspace(workspace)) if task_of(item)]
    described = [item for item in ours if round_of(item) == round_name]
    languages = sorted({locale_of(item) for item in described})
    if locale is None and len(languages) > 1:
        raise InputError(
            f"The workspace {workspace!r} has datasets in several languages: {', '.join(languages)}. Choose one with "
            "`--locale`."
        )
    wanted = locale or (languages[0] if languages else "")
    ready = [item for item in described if locale_of(item) == wanted and item["status"] == "ready"]
    found = {dataset.task: dataset for dataset in map(jury_dataset, newest_versions(ready).values())}
    missing = [dataset_name(task, wanted, round_name) if wanted else task for task in TASKS if task not in found]
    if missing:
        of_round = "" if round_name == PRODUCTION else f" of the round {round_name!r}"
        option = "" if round_name == PRODUCTION else f" --round {round_name}"
        raise NotFoundError(
            f"The workspace {workspace!r} on Argilla at {argilla.api_url} lacks the published datasets{of_round}: "
            f"{', '.join(missing)}; it has the rounds: {', '.join(sorted(set(map(round_of, ours)))) or 'none'}. "
            f"Make them with `citejury annotation setup{option}`."
        )
    return {task: found[task] for task in TASKS}


def jury_dataset(described: Mapping[str, Any]) -> JuryDataset:
    """The dataset as the server describes it, one of ours."""
    task = task_of(described)
    if task is None:
        raise ArgillaError(f"The dataset {described.get('name')!r} is not one of citejury's.")
    return JuryDataset(
        id=described["id"],
        name=described["name"],
        task=task,
        locale=locale_of(described),
        status=described["status"],
        min_submitted=int(described["distribution"]["min_submitted"]),
        version=version_of(described),
    )

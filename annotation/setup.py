"""Workspace, datasets and annotators in Argilla: what is missing is made, what is there is kept, nothing is deleted."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from annotation.client import Argilla
from annotation.labels import TASKS, TaskName
from annotation.tasks import (
    PRODUCTION,
    DatasetDefinition,
    check_round,
    dataset_name,
    define_dataset,
    locale_of,
    round_of,
    schema_part,
    task_of,
)
from annotation.wording import read_wording
from pipeline.errors import ArgillaError, InputError, NotFoundError

PASSWORD_BYTES = 15  # 20 characters of URL-safe base64
DIFFERENCES_SHOWN = 6

Done = Literal["created", "finished", "added", "kept"]


class NewUser(NamedTuple):
    """An annotator who was created; her password is kept nowhere else."""

    username: str
    password: str


class Step(NamedTuple):
    """One thing that set-up looked at, and what it did: `kept` where nothing was to do."""

    kind: Literal["workspace", "dataset", "annotator"]
    name: str
    done: Done
    note: str = ""


class SetupReport(NamedTuple):
    """Everything that set-up looked at, in order."""

    steps: tuple[Step, ...]

    @property
    def changed(self) -> bool:
        """Whether anything was created, finished or added."""
        return any(step.done != "kept" for step in self.steps)


class JuryDataset(NamedTuple):
    """One of our datasets on the server."""

    id: str
    name: str
    task: TaskName
    locale: str
    status: str
    min_submitted: int


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

    Running it again changes nothing; after it was killed, running it again finishes the work. New annotators are
    passed to `announce` one by one as soon as they exist, because a password cannot be read again. `min_submitted` is
    the number of annotators that a record waits for; None leaves existing datasets as they are and gives new ones 1.

    Raises:
        InputError: there is no wording for the language, an annotator's name is empty, unprintable or named twice, or
            a round cannot have that name.
        ArgillaError: a dataset of the name exists and is not ours, or has other fields or questions than this version
            asks for, or another overlap than `min_submitted`; nothing was changed then.
        NotAllowedError: the key may not do it; workspaces and users need an owner's. Nothing was changed then.
    """
    wording = read_wording(locale)
    names = checked_names(annotators)
    known = {user["username"]: user for user in argilla.users()} if names else {}
    definitions = [define_dataset(task, wording, min_submitted or 1, round_name) for task in TASKS]
    workspace_id = argilla.workspaces().get(workspace)
    existing = {item["name"]: item for item in argilla.datasets(workspace_id)} if workspace_id else {}
    for definition in definitions:
        if definition.name in existing:
            refuse_other_dataset(argilla, existing[definition.name], definition, min_submitted)
    steps = [Step("workspace", workspace, "kept" if workspace_id else "created")]
    if workspace_id is None:
        workspace_id = str(argilla.request("POST", "/workspaces", json={"name": workspace})["id"])
    made = {  # in reverse, because Argilla's home page shows the dataset that changed last first
        definition.task: make_dataset(argilla, workspace_id, definition, existing.get(definition.name))
        for definition in reversed(definitions)
    }
    steps += [made[task] for task in TASKS]
    steps += add_annotators(argilla, workspace_id, names, known, announce)
    return SetupReport(tuple(steps))


def find_datasets(
    argilla: Argilla, workspace: str, locale: str | None = None, round_name: str = PRODUCTION
) -> dict[TaskName, JuryDataset]:
    """The three published datasets of a round, by task; `locale` chooses where there are several languages.

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
    found = {dataset.task: dataset for dataset in map(jury_dataset, ready)}
    missing = [dataset_name(task, wanted, round_name) if wanted else task for task in TASKS if task not in found]
    if missing:
        of_round = "" if round_name == PRODUCTION else f" of the round {round_name!r}"
        option = "" if round_name == PRODUCTION else f" --round {round_name}"
        raise NotFoundError(
            f"The workspace {workspace!r} on Argilla at {argilla.api_url} lacks the published datasets{of_round}: "
            f"{', '.join(missing)}; it has the rounds: {', '.join(sorted(set(map(round_of, ours)))) or 'none'}. "
            f"Make them with `citejury annotation setup{option}`."
        )
    return found


def jury_dataset(described: Mapping[str, Any]) -> JuryDataset:
    """The dataset as the server describes it, one of ours."""
    task = task_of(described)
    if task is None:
        raise ArgillaError(f"The dataset {described.get('name')!r} is not one of citejury's.")
    overlap = int(described["distribution"]["min_submitted"])
    return JuryDataset(described["id"], described["name"], task, locale_of(described), described["status"], overlap)


def checked_names(annotators: Sequence[str]) -> list[str]:
    """The annotators' names, trimmed.

    Raises:
        InputError: one is empty, not printable, or named twice.
    """
    names = [name.strip() for name in annotators]
    if not all(names):
        raise InputError("An annotator's name is empty. Give every `--annotator` a name.")
    unprintable = [name for name in names if not name.isprintable()]
    if unprintable:
        raise InputError(
            f"An annotator's name holds characters that cannot be seen: {unprintable[0]!r}. Leave them out."
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"Annotators are named twice: {', '.join(map(repr, twice))}. Name each once.")
    return names


def refuse_other_dataset(
    argilla: Argilla, existing: Mapping[str, Any], definition: DatasetDefinition, min_submitted: int | None
) -> None:
    """Nothing where the existing dataset is ours and fits; a draft may lack fields and questions.

    Raises:
        ArgillaError: it is somebody else's, has another schema, or waits for another number of annotators.
    """
    if task_of(existing) != definition.task:
        raise ArgillaError(
            f"The workspace already has a dataset {existing['name']!r} that citejury did not make. Rename it in "
            "Argilla, or choose another `--workspace`."
        )
    differences = schema_differences(
        [*parts_of(argilla, existing["id"], "fields"), *parts_of(argilla, existing["id"], "questions")],
        [*definition.fields, *definition.questions],
        is_draft=existing["status"] == "draft",
    )
    if differences:
        raise ArgillaError(
            f"The dataset {existing['name']!r} differs from what this version of citejury asks for, and Argilla cannot "
            f"change a published dataset: {'; '.join(differences[:DIFFERENCES_SHOWN])}. Choose another `--workspace`."
        )
    overlap = existing["distribution"]["min_submitted"]
    if min_submitted is not None and overlap != min_submitted:
        raise ArgillaError(
            f"The dataset {existing['name']!r} waits for {overlap} annotators on each record, not for {min_submitted}. "
            f"Leave `--overlap` out to keep that, or change the distribution in the dataset's settings in Argilla."
        )


def schema_differences(
    theirs: Sequence[Mapping[str, Any]], ours: Sequence[Mapping[str, Any]], is_draft: bool
) -> list[str]:
    """Each difference in words; in a draft what is missing is none."""
    there = {part["name"]: schema_part(part) for part in theirs}
    wanted = {part["name"]: schema_part(part) for part in ours}
    missing = [] if is_draft else [f"`{name}` is missing" for name in wanted if name not in there]
    extra = [f"`{name}` is not asked for" for name in there if name not in wanted]
    changed = [
        f"`{name}` has {key} {there[name].get(key)!r} instead of {value!r}"
        for name in wanted
        if name in there
        for key, value in wanted[name].items()
        if there[name].get(key) != value
    ]
    return missing + extra + changed


def parts_of(argilla: Argilla, dataset_id: str, kind: str) -> list[dict[str, Any]]:
    """The dataset's `fields` or `questions` as the server describes them."""
    parts: list[dict[str, Any]] = argilla.request("GET", f"/datasets/{dataset_id}/{kind}")["items"]
    return parts


def make_dataset(
    argilla: Argilla, workspace_id: str, definition: DatasetDefinition, existing: Mapping[str, Any] | None
) -> Step:
    """What was done: a new dataset is made and published, a draft of ours is finished, a published one is kept."""
    if existing is not None and existing["status"] == "ready":
        return Step("dataset", definition.name, "kept", wording_note(existing, definition))
    if existing is None:
        made = argilla.request("POST", "/datasets", json={**definition.body, "workspace_id": workspace_id})
    dataset_id = (existing or made)["id"]
    for kind, parts in (("fields", definition.fields), ("questions", definition.questions)):
        there = {part["name"] for part in parts_of(argilla, dataset_id, kind)} if existing else set()
        for part in parts:
            if part["name"] not in there:
                argilla.request("POST", f"/datasets/{dataset_id}/{kind}", json=part)
    argilla.request("PUT", f"/datasets/{dataset_id}/publish")
    return Step("dataset", definition.name, "finished" if existing else "created")


def wording_note(existing: Mapping[str, Any], definition: DatasetDefinition) -> str:
    """A remark where the dataset was made with other wording than this version's; empty where it is the same."""
    same = existing["metadata"].get("guideline_version") == definition.body["metadata"]["guideline_version"]
    return "" if same else "made with another version's wording, which stays"


def add_annotators(
    argilla: Argilla,
    workspace_id: str,
    names: Sequence[str],
    known: Mapping[str, Mapping[str, Any]],
    announce: Callable[[NewUser], None],
) -> list[Step]:
    """What was done for each annotator: created, added to the workspace, or kept; `known` holds the server's users."""
    if not names:
        return []
    members = {user["username"] for user in argilla.workspace_users(workspace_id)}
    steps = []
    for name in names:
        user_id = known[name]["id"] if name in known else create_annotator(argilla, name, announce)
        if name not in members:
            argilla.request("POST", f"/workspaces/{workspace_id}/users", json={"user_id": user_id})
        done: Done = "created" if name not in known else "kept" if name in members else "added"
        steps.append(Step("annotator", name, done, role_note(known.get(name))))
    return steps


def role_note(user: Mapping[str, Any] | None) -> str:
    """A remark where an existing user is no annotator: she may read everybody's responses."""
    role = user["role"] if user else "annotator"
    return "" if role == "annotator" else f"role {role}: may read what the others answer"


def create_annotator(argilla: Argilla, name: str, announce: Callable[[NewUser], None]) -> str:
    """The id of a new user with the role of an annotator and a generated password, which is announced at once."""
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    user = {"username": name, "first_name": name, "role": "annotator", "password": password}
    created = argilla.request("POST", "/users", json=user)
    announce(NewUser(name, password))
    return str(created["id"])

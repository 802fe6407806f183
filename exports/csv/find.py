"""The datasets that an export reads, and whether the server is one that can be read."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from annotation.campaign.versions import version_of
from annotation.client import Argilla
from annotation.dataset_log import current_datasets
from annotation.labels import TASKS, TaskName
from annotation.tasks import PRODUCTION, round_of, takes_suggestions, task_of
from exports.schema import ExportFilters
from pipeline.errors import ArgillaError, NotFoundError

OLDEST_SERVER = 2


class TaskDataset(NamedTuple):
    """A dataset of ours on the server."""

    task: TaskName
    """The task that its annotators do."""
    id: str
    """Its id."""
    name: str
    """Its name."""
    workspace: str
    """Its workspace."""
    round: str
    """Its round of annotation."""
    guideline_version: str
    """Short hash of its guidelines and questions, as they are now; empty where the server names none."""
    version: int
    """Its version; 1 where the server names none."""
    metadata: Mapping[str, Any]
    """Its metadata, with the history of its guidelines."""

    def __str__(self) -> str:
        """Workspace, name, task and, where it is not production, round."""
        named = "" if self.round == PRODUCTION else f", round {self.round}"
        return f"'{self.workspace}/{self.name}' ({self.task}{named})"


class FoundDatasets(NamedTuple):
    """What an export reads, and what it passes over."""

    datasets: list[TaskDataset]
    """The datasets to read, in the order of the tasks."""
    passed_over: tuple[str, ...]
    """Rounds that are left out because a machine filled in their answers and nobody named them; in order of names."""


def check_server(client: Argilla) -> None:
    """Nothing where the server is Argilla 2 or later.

    Raises:
        ArgillaError: it is older, or is no Argilla.
        ServerUnreachableError: nothing answers.
    """
    try:
        answer = client.request("GET", "/version")
    except NotFoundError as error:
        raise ArgillaError(
            f"The server at {client.api_url} does not tell its version, so it is Argilla 1 or something else. Export "
            "from Argilla 2.0 or later; check `ARGILLA_API_URL`."
        ) from error
    version = str(answer.get("version")) if isinstance(answer, dict) else repr(answer)
    major = version.partition(".")[0]
    if not major.isdecimal() or int(major) < OLDEST_SERVER:
        raise ArgillaError(
            f"The server at {client.api_url} is of version {version}. Export from Argilla 2.0 or later; check "
            "`ARGILLA_API_URL`."
        )


def find_datasets(client: Argilla, workspaces: Sequence[str], filters: ExportFilters) -> FoundDatasets:
    """The workspaces' datasets that citejury set up and the filters do not leave out.

    A round that takes suggestions is left out unless it is named: its answers would count as the jury's agreement.

    Raises:
        NotFoundError: there is no such workspace, a workspace has no dataset of ours, or none of them is for a named
            task or of a named round, or all of them are of rounds that have to be named.
    """
    ours = [dataset for workspace in workspaces for dataset in workspace_datasets(client, workspace)]
    wanted = [dataset for dataset in ours if not filters.tasks or dataset.task in filters.tasks]
    everything = filters.suggested or bool(filters.rounds)
    left_out = [dataset for dataset in wanted if takes_suggestions(dataset.round) and not everything]
    passed_over = tuple(sorted({dataset.round for dataset in left_out}))
    chosen = [
        dataset
        for dataset in wanted
        if dataset not in left_out and (not filters.rounds or dataset.round in filters.rounds)
    ]
    if left_out and not chosen:
        raise NotFoundError(
            f"{in_words(workspaces)} at {client.api_url} {has(workspaces)} only datasets whose answers a machine "
            f"filled in beforehand: {', '.join(map(str, left_out))}. Name their round with "
            f"`--round {passed_over[0]}` if you want them."
        )
    missing = [f"for the task {task}" for task in filters.tasks if task not in {dataset.task for dataset in chosen}]
    missing += [
        f"of the round {name!r}" for name in filters.rounds if name not in {dataset.round for dataset in chosen}
    ]
    if missing:
        raise NotFoundError(
            f"{in_words(workspaces)} at {client.api_url} {has(workspaces)} no dataset {missing[0]}"
            f"{' that fits the other options' if filters.tasks and filters.rounds else ''}; there are: "
            f"{', '.join(map(str, ours))}. Check `--workspace`, `--task` and `--round`, or run `citejury annotation "
            "setup`."
        )
    return FoundDatasets(sorted(chosen, key=lambda dataset: TASKS.index(dataset.task)), passed_over)


def workspace_datasets(client: Argilla, workspace: str) -> list[TaskDataset]:
    """The workspace's datasets that citejury set up, in order of their names.

    Raises:
        NotFoundError: there is no such workspace, or it has none.
    """
    datasets = current_datasets(client, client.find_workspace(workspace))
    ours = [
        TaskDataset(
            task=task,
            id=str(dataset["id"]),
            name=str(dataset["name"]),
            workspace=workspace,
            round=round_of(dataset),
            guideline_version=str(dataset["metadata"].get("guideline_version") or ""),
            version=version_of(dataset),
            metadata=dataset["metadata"],
        )
        for dataset in datasets
        if (task := task_of(dataset)) is not None
    ]
    if not ours:
        there = ", ".join(f"{dataset['name']!r} (not citejury's)" for dataset in datasets) or "none"
        raise NotFoundError(
            f"The workspace {workspace!r} at {client.api_url} has no dataset that citejury set up; it has: {there}. "
            "Check `--workspace`, or run `citejury annotation setup`."
        )
    return ours


def in_words(workspaces: Sequence[str]) -> str:
    """The workspaces as the beginning of a sentence."""
    return f"The workspace{'s' if len(workspaces) > 1 else ''} {', '.join(map(repr, workspaces))}"


def has(workspaces: Sequence[str]) -> str:
    """The verb that follows them."""
    return "have" if len(workspaces) > 1 else "has"

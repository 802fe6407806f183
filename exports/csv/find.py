"""The datasets that an export reads, and whether the server is one that can be read."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from annotation.campaign.datasets import JuryDataset, current_datasets, jury_dataset
from annotation.client import Argilla
from annotation.labels import TASKS
from annotation.tasks import PRACTICE, takes_suggestions
from exports.csv.tables import utc
from exports.schema import ExportFilters
from pipeline.errors import ArgillaError, NotFoundError

_OLDEST_SERVER = 2


class ChosenDatasets(NamedTuple):
    """What an export reads, and what it passes over."""

    datasets: list[JuryDataset]
    """The datasets to read, in the order of the tasks."""
    passed_over: tuple[str, ...]
    """Rounds that are left out because a machine filled in their answers and nobody named them; in order of names."""


def check_server(client: Argilla) -> None:
    """Check that the server is Argilla 2 or later.

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
    if not major.isdecimal() or int(major) < _OLDEST_SERVER:
        raise ArgillaError(
            f"The server at {client.api_url} is of version {version}. Export from Argilla 2.0 or later; check "
            "`ARGILLA_API_URL`."
        )


def choose_datasets(client: Argilla, workspaces: Sequence[str], filters: ExportFilters) -> ChosenDatasets:
    """The workspaces' datasets that citejury set up and the filters do not leave out.

    Unless they are named, rounds that take suggestions, whose answers would count as agreement, and practice,
    whose answers are known, are left out; practice is not where every response is wanted.

    Raises:
        NotFoundError: there is no such workspace, a workspace has no dataset of ours, or none of them is for a named
            task or of a named round, or all of them are of rounds that have to be named.
    """
    ours = [dataset for workspace in workspaces for dataset in _workspace_datasets(client, workspace, filters.as_of)]
    wanted = [
        dataset
        for dataset in ours
        if (not filters.tasks or dataset.task in filters.tasks)
        and (dataset.round in filters.rounds if filters.rounds else dataset.round != PRACTICE or filters.every_response)
    ]
    chosen = wanted
    if not filters.suggested and not filters.rounds:
        chosen = [dataset for dataset in wanted if not takes_suggestions(dataset.round)]
    left_out = [dataset for dataset in wanted if dataset not in chosen]
    passed_over = tuple(sorted({dataset.round for dataset in left_out}))
    if left_out and not chosen:
        raise NotFoundError(
            f"{in_words(workspaces)} at {client.api_url} {has(workspaces)} only datasets whose answers a machine "
            f"filled in beforehand: {', '.join(map(str, left_out))}. Name their round with "
            f"`--round {passed_over[0]}` if you want them."
        )
    missing = _first_missing(chosen, filters)
    if missing:
        raise NotFoundError(
            f"{in_words(workspaces)} at {client.api_url} {has(workspaces)} no dataset {missing}"
            f"{' that fits the other options' if filters.tasks and filters.rounds else ''}; there are: "
            f"{', '.join(map(str, ours))}. Check `--workspace`, `--task` and `--round`, or run `citejury annotation "
            "setup`."
        )
    return ChosenDatasets(sorted(chosen, key=lambda dataset: TASKS.index(dataset.task)), passed_over)


def _first_missing(chosen: Sequence[JuryDataset], filters: ExportFilters) -> str:
    """The first task or round that was named and has no dataset, in words; empty where all have one."""
    tasks, rounds = {dataset.task for dataset in chosen}, {dataset.round for dataset in chosen}
    missing = [f"for the task {task}" for task in filters.tasks if task not in tasks]
    missing += [f"of the round {name!r}" for name in filters.rounds if name not in rounds]
    return missing[0] if missing else ""


def _workspace_datasets(client: Argilla, workspace: str, as_of: datetime | None) -> list[JuryDataset]:
    """The workspace's datasets that citejury set up, in order of their names; those of a moment where one is named.

    Raises:
        NotFoundError: there is no such workspace, or it has none.
    """
    datasets = current_datasets(client, client.find_workspace(workspace))
    if as_of is not None:
        datasets = [each for each in datasets if utc(each["inserted_at"]) <= as_of]
    ours = [found for each in datasets if (found := jury_dataset(each, workspace))]
    if not ours:
        there = ", ".join(f"{dataset['name']!r} (not citejury's)" for dataset in datasets) or "none"
        raise NotFoundError(
            f"The workspace {workspace!r} at {client.api_url} has no dataset that citejury set up"
            f"{f' before {as_of.isoformat()}' if as_of else ''}; it has: {there}. "
            "Check `--workspace`, or run `citejury annotation setup`."
        )
    return ours


def in_words(workspaces: Sequence[str]) -> str:
    """The workspaces as the beginning of a sentence."""
    return f"The workspace{'s' if len(workspaces) > 1 else ''} {', '.join(map(repr, workspaces))}"


def has(workspaces: Sequence[str]) -> str:
    """The verb that follows them."""
    return "have" if len(workspaces) > 1 else "has"

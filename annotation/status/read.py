"""How far the work is: counted from the answers to each record, not from what Argilla's own progress says."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from annotation.campaign.versions import is_carrying, newest_versions, series_of, version_of
from annotation.client import Argilla
from annotation.status.schema import Status
from annotation.status.summary import Place, Tally, summed_up
from annotation.units import read_units
from pipeline.errors import NotFoundError


def read_status(
    argilla: Argilla,
    workspaces: Sequence[str],
    now: datetime,
    *,
    rounds: Collection[str] = (),
    languages: Mapping[str, Collection[str]] | None = None,
    slowly: Callable[[], object] = lambda: None,
) -> Status:
    """How far the work in these workspaces is.

    Args:
        argilla: The server, as an owner or admin.
        workspaces: Their names.
        now: The end of the last 24 hours, in which work is measured.
        rounds: Only these rounds; all where none is named.
        languages: In which languages somebody labels, by user name; all for those who are not named.
        slowly: Called where the server is a stock Argilla, whose answers hold all texts.

    Raises:
        NotFoundError: no such workspace, or no dataset of ours in them, or none of a round that is named.
        ArgillaError: the server does not answer, refuses the key, or its records are being deleted.
    """
    places = find_places(argilla, workspaces, rounds, languages or {})
    names = argilla.usernames()
    tallies = [Tally(place) for place in places if place.is_ready]
    for tally in tallies:
        for unit in read_units(argilla, tally.place.id, slowly):
            tally.add(unit)
    warnings = [
        f"The dataset '{place.workspace}/{place.name}' is not finished, so nobody can work in it. Run `citejury "
        "annotation setup`."
        for place in places
        if not place.is_ready
    ]
    return summed_up(tallies, names, now, argilla.api_url, workspaces, warnings)


def find_places(
    argilla: Argilla, workspaces: Sequence[str], rounds: Collection[str], languages: Mapping[str, Collection[str]]
) -> list[Place]:
    """The datasets of ours in these workspaces, sorted, those that are not finished included.

    Raises:
        NotFoundError: no such workspace, or no such dataset.
    """
    ours = [each for name in dict.fromkeys(workspaces) for each in places_in(argilla, name, languages)]
    there = sorted({place.round for place in ours})
    missing = [name for name in rounds if name not in there]
    if missing or not ours:
        raise NotFoundError(
            f"There is no dataset of citejury{f' of the round {missing[0]!r}' if missing else ''} in "
            f"{', '.join(map(repr, workspaces))} on Argilla at {argilla.api_url}; the rounds there are: "
            f"{', '.join(there) or 'none'}. Check `--workspace` and `--round`, or run `citejury annotation setup`."
        )
    return sorted((place for place in ours if not rounds or place.round in rounds), key=lambda place: place.order)


def places_in(argilla: Argilla, workspace: str, languages: Mapping[str, Collection[str]]) -> Iterator[Place]:
    """One workspace's datasets of ours, with those of its annotators who label in their languages.

    Raises:
        NotFoundError: no such workspace.
    """
    workspace_id = argilla.find_workspace(workspace)
    jury = [user for user in argilla.workspace_users(workspace_id) if user["role"] == "annotator"]
    datasets = argilla.datasets(workspace_id)
    newest = newest_versions(each for each in datasets if is_ready(each))
    for dataset in datasets:
        series = series_of(dataset)
        if series is None:
            continue
        yield Place(
            id=dataset["id"],
            workspace=workspace,
            round=series.round_name,
            language=series.locale,
            task=series.task,
            version=version_of(dataset),
            name=dataset["name"],
            is_ready=is_ready(dataset),
            is_superseded=is_ready(dataset) and newest[series]["id"] != dataset["id"],
            min_submitted=int(dataset["distribution"]["min_submitted"]),
            members=frozenset(
                user["id"] for user in jury if series.locale in languages.get(user["username"], (series.locale,))
            ),
        )


def is_ready(dataset: Mapping[str, Any]) -> bool:
    """Whether annotators can work in the dataset: it is published, and all its records are in it."""
    return bool(dataset["status"] == "ready") and not is_carrying(dataset)

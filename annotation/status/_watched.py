"""Our datasets in a campaign's workspaces, and who can work in each."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from annotation.campaign.datasets import JuryDataset, jury_dataset
from annotation.campaign.versions import is_carrying, newest_versions, series_of
from annotation.client import Argilla
from annotation.labels import TASKS
from annotation.tasks import PRODUCTION
from pipeline.errors import NotFoundError


class WatchedDataset(NamedTuple):
    """A dataset of ours, and who can work in it."""

    dataset: JuryDataset
    """The dataset."""
    is_ready: bool
    """Whether annotators can work in it: it is published, and all its records are in it."""
    is_superseded: bool
    """Whether a newer version has taken its place."""
    members: frozenset[str]
    """User ids of the annotators who can work in it."""

    @property
    def order(self) -> tuple[str, bool, str, str, int, int]:
        """What the datasets are sorted by: other rounds, such as calibration, stand before production."""
        of = self.dataset
        return of.workspace, of.round == PRODUCTION, of.round, of.locale, TASKS.index(of.task), of.version


def find_watched(
    argilla: Argilla, workspaces: Sequence[str], rounds: Collection[str], languages: Mapping[str, Collection[str]]
) -> list[WatchedDataset]:
    """The datasets of ours in these workspaces, sorted, those that are not finished included.

    Raises:
        NotFoundError: no such workspace, or no such dataset.
    """
    ours = [each for name in dict.fromkeys(workspaces) for each in _watched_in(argilla, name, languages)]
    there = sorted({each.dataset.round for each in ours})
    missing = [name for name in rounds if name not in there]
    if missing or not ours:
        raise NotFoundError(
            f"There is no dataset of citejury{f' of the round {missing[0]!r}' if missing else ''} in "
            f"{', '.join(map(repr, workspaces))} on Argilla at {argilla.api_url}; the rounds there are: "
            f"{', '.join(there) or 'none'}. Check `--workspace` and `--round`, or run `citejury annotation setup`."
        )
    return sorted(
        (watched for watched in ours if not rounds or watched.dataset.round in rounds),
        key=lambda watched: watched.order,
    )


def _watched_in(argilla: Argilla, workspace: str, languages: Mapping[str, Collection[str]]) -> Iterator[WatchedDataset]:
    """One workspace's datasets of ours, with those of its annotators who label in their languages.

    Raises:
        NotFoundError: no such workspace.
    """
    workspace_id = argilla.find_workspace(workspace)
    jury = [user for user in argilla.workspace_users(workspace_id) if user["role"] == "annotator"]
    described = argilla.datasets(workspace_id)
    newest = newest_versions(each for each in described if _is_ready(each))
    for each in described:
        dataset, series = jury_dataset(each, workspace), series_of(each)
        if dataset is None or series is None:
            continue
        labelling = (
            user["id"] for user in jury if dataset.locale in languages.get(user["username"], (dataset.locale,))
        )
        is_superseded = _is_ready(each) and newest[series]["id"] != dataset.id
        yield WatchedDataset(dataset, _is_ready(each), is_superseded, frozenset(labelling))


def _is_ready(dataset: Mapping[str, Any]) -> bool:
    """Whether annotators can work in the dataset: it is published, and all its records are in it."""
    return bool(dataset["status"] == "ready") and not is_carrying(dataset)

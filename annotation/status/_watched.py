"""Our datasets in a campaign's workspaces, and who can work in each."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from annotation.campaign.datasets import JuryDataset, jury_dataset
from annotation.campaign.versions import is_carrying, newest_versions, series_of
from annotation.client import Argilla
from annotation.labels import TASKS, TaskName
from annotation.practice.round import standings_of
from annotation.tasks import CALIBRATION, PRACTICE, PRODUCTION
from pipeline.errors import NotFoundError

_CLOSED_ROUNDS = (CALIBRATION, PRODUCTION)


class WatchedDataset(NamedTuple):
    """A dataset of ours, and who can work in it."""

    dataset: JuryDataset
    is_ready: bool
    """Whether annotators can work in it: it is published, and all its records are in it."""
    is_superseded: bool
    """Whether a newer version has taken its place."""
    members: frozenset[str]
    """User ids of its annotators."""
    kept_out: Mapping[str, str]
    """Those of them to whom it is closed until they pass its practice, with how far they are in words."""

    @property
    def open_to(self) -> frozenset[str]:
        """User ids of the annotators who can work in it now."""
        return self.members - self.kept_out.keys()

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
    practices = _practices(argilla, workspace)
    for each in described:
        dataset, series = jury_dataset(each, workspace), series_of(each)
        if dataset is None or series is None:
            continue
        labelling = frozenset(
            user["id"] for user in jury if dataset.locale in languages.get(user["username"], (dataset.locale,))
        )
        is_superseded = _is_ready(each) and newest[series]["id"] != dataset.id
        kept_out = practices.get((dataset.task, dataset.locale), {}) if dataset.round in _CLOSED_ROUNDS else {}
        out = {user_id: said for user_id, said in kept_out.items() if user_id in labelling}
        yield WatchedDataset(dataset, _is_ready(each), is_superseded, labelling, out)


def _practices(argilla: Argilla, workspace: str) -> dict[tuple[TaskName, str], dict[str, str]]:
    """Who has passed no version of the practices that come before a workspace's lists, and how far she is in words.

    By task and language, then by user id. A practice stands in the workspace itself, or in the one that its group's
    name begins with. Nobody is kept out by a stock server.
    """
    found: defaultdict[tuple[TaskName, str], list[dict[str, Any]]] = defaultdict(list)
    for name, workspace_id in argilla.workspaces().items():
        if name != workspace and not workspace.startswith(f"{name}-"):
            continue
        for each in argilla.datasets(workspace_id):
            dataset = jury_dataset(each, name)
            if dataset is not None and dataset.round == PRACTICE and _is_ready(each):
                try:
                    found[dataset.task, dataset.locale] += standings_of(argilla, dataset)
                except NotFoundError:
                    return {}
    return {place: _not_passed(standings) for place, standings in found.items()}


def _not_passed(standings: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """How far people are, by user id, but for those whom some version lets in."""
    let_in = {each["user_id"] for each in standings if each["opens"]}
    return {each["user_id"]: _how_far(each) for each in standings if each["user_id"] not in let_in}


def _how_far(standing: Mapping[str, Any]) -> str:
    """How far somebody is who has not passed."""
    if standing["answered"] < standing["cases"]:
        return f"{standing['answered']} of {standing['cases']} cases done"
    return f"{standing['right']} of {standing['known']} answers right, {standing['wanted']} wanted"


def _is_ready(dataset: Mapping[str, Any]) -> bool:
    """Whether annotators can work in the dataset: it is published, and all its records are in it."""
    return bool(dataset["status"] == "ready") and not is_carrying(dataset)

"""The round of practice in Argilla: its cases, its pass mark, and for whom the lead has opened the rest without it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from annotation.campaign.datasets import JuryDataset, jury_dataset
from annotation.campaign.file import Campaign, practice_places
from annotation.campaign.standing import as_it_stands
from annotation.campaign.versions import newest_versions, read_value, write_value
from annotation.client import Argilla
from annotation.display import HIDDEN
from annotation.practice.cases import Case, body_of
from annotation.tasks import PRACTICE
from annotation.units import ASSIGNMENT
from pipeline.errors import NotFoundError

PASS_MARK = "citejury_pass_mark"
"""The metadata property of a dataset of practice that holds its pass mark."""
OPENED = "citejury_opened"
"""The one that holds the ids of users for whom the lead has opened the rest."""
STANDINGS_PATH = "/citejury/datasets/{dataset_id}/practice"


class PracticeReport(NamedTuple):
    """What became of the cases."""

    new: int
    """Cases that were not there."""
    updated: int
    """Cases whose texts, answers or explanations differ now."""
    unchanged: int
    """Cases that were there."""
    left_over: int
    """Cases that are there and no longer wanted; they stay, and still count."""


def prepare_practice(argilla: Argilla, campaign: Campaign, workspace: str, cases: Sequence[Case]) -> PracticeReport:
    """What became of the cases, which are now in the campaign's datasets of practice with its pass mark.

    Running it again changes nothing; after it was killed, running it again finishes the work.

    Raises:
        NotFoundError: set-up has not made the datasets.
        ArgillaError: Argilla refused the cases of a dataset.
    """
    counts = [0, 0, 0, 0]
    standing = as_it_stands(argilla, campaign, workspace)
    for place, tasks in practice_places(standing, workspace).items():
        described = argilla.datasets(argilla.find_workspace(place.workspace))
        ours = {(each.task, each.locale): each for each in _of_practice(described, place.workspace)}
        for task in tasks:
            dataset = ours.get((task, place.locale))
            if dataset is None:
                raise NotFoundError(
                    f"Argilla has no practice of {task} in {place.locale!r}. Run `citejury annotation setup`."
                )
            of_dataset = [body_of(case) for case in cases if (case.task, case.locale) == (task, place.locale)]
            bodies = {str(body["external_id"]): body for body in of_dataset}
            there = {item["external_id"]: item for _, page in argilla.record_pages(dataset.id, ()) for item in page}
            new = [body for name, body in bodies.items() if name not in there]
            changed = [body for name, body in bodies.items() if name in there and _differs(there[name], body)]
            if new or changed:
                argilla.request("PUT", f"/datasets/{dataset.id}/records/bulk", json={"items": [*new, *changed]})
            found = (len(new), len(changed), len(bodies) - len(new) - len(changed), len(there.keys() - bodies.keys()))
            counts = [before + more for before, more in zip(counts, found, strict=True)]
            mark = campaign.practice.pass_mark if campaign.practice else 0
            if read_value(argilla, dataset.id, PASS_MARK) != mark:
                write_value(argilla, dataset.id, PASS_MARK, "citejury: pass mark", mark)
    return PracticeReport(*counts)


def practice_datasets(argilla: Argilla, workspaces: Iterable[str]) -> tuple[JuryDataset, ...]:
    """The datasets of practice in the workspaces, the newest version of each."""
    return tuple(
        dataset
        for workspace in workspaces
        for dataset in _of_practice(argilla.datasets(argilla.find_workspace(workspace)), workspace)
    )


def open_for(argilla: Argilla, dataset: JuryDataset, user_id: str) -> bool:
    """Open the rest for a user whatever she answered in this practice; False where it was open to her so already."""
    opened = list(read_value(argilla, dataset.id, OPENED) or ())
    if user_id in opened:
        return False
    write_value(argilla, dataset.id, OPENED, "citejury: opened without practice", [*opened, user_id])
    return True


def standings_of(argilla: Argilla, dataset: JuryDataset) -> list[dict[str, Any]]:
    """How far each annotator of the dataset's workspace is, by the fields of `scores.Standing`, in order of names.

    Raises:
        NotFoundError: the server is a stock Argilla, which closes nothing.
    """
    try:
        found: list[dict[str, Any]] = argilla.request("GET", STANDINGS_PATH.format(dataset_id=dataset.id))["items"]
    except NotFoundError as error:
        raise NotFoundError(
            f"The server at {argilla.api_url} knows no practice: a stock Argilla shows its cases like other records "
            "and closes nothing. Use `citejury annotation serve`."
        ) from error
    return found


def _of_practice(described: Iterable[Mapping[str, Any]], workspace: str) -> list[JuryDataset]:
    """The published datasets of practice among those described, the newest version of each."""
    newest = newest_versions(each for each in described if each["status"] == "ready").values()
    ours = (jury_dataset(each, workspace) for each in newest)
    return [dataset for dataset in ours if dataset and dataset.round == PRACTICE]


def _differs(item: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
    """Whether Argilla's record shows or knows something else."""
    there = item["metadata"] or {}
    return item["fields"] != body["fields"] or any(
        there.get(name) != body["metadata"][name] for name in (HIDDEN, ASSIGNMENT)
    )

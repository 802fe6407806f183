"""Our datasets as Argilla has them: one by one, or the three of a round and language."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from annotation.campaign.file import Place
from annotation.campaign.versions import version_of
from annotation.client import Argilla
from annotation.labels import TASKS, Evidence, TaskName
from annotation.tasks import PRODUCTION, check_round, dataset_name, evidence_of, locale_of, round_of, task_of
from pipeline.errors import InputError, NotFoundError


class JuryDataset(NamedTuple):
    """One of our datasets on the server."""

    id: str
    name: str
    workspace: str
    """Name of its workspace."""
    task: TaskName
    """The task that its annotators do."""
    locale: str
    """Language of its questions."""
    round: str
    """Its round of annotation."""
    version: int
    """Its version; 1 where the server names none."""
    status: str
    """`ready` where it is published, else `draft`."""
    min_submitted: int
    """How many annotators a record waits for."""
    metadata: Mapping[str, Any]
    """Its metadata; with the history of its guidelines where it was described by `versions.current_datasets`."""

    @property
    def guideline_version(self) -> str:
        """Short hash of its guidelines and questions; empty where the server names none."""
        return str(self.metadata.get("guideline_version") or "")

    @property
    def evidence(self) -> Evidence:
        """Whether it asks for marks."""
        return evidence_of({"metadata": self.metadata})

    def __str__(self) -> str:
        """Workspace, name, task and, where it is not production, round."""
        named = "" if self.round == PRODUCTION else f", round {self.round}"
        return f"'{self.workspace}/{self.name}' ({self.task}{named})"


def jury_dataset(described: Mapping[str, Any], workspace: str) -> JuryDataset | None:
    """The dataset as the server describes it; None where it is not one of ours."""
    task = task_of(described)
    if task is None:
        return None
    return JuryDataset(
        id=str(described["id"]),
        name=str(described["name"]),
        workspace=workspace,
        task=task,
        locale=locale_of(described),
        round=round_of(described),
        version=version_of(described),
        status=str(described["status"]),
        min_submitted=int(described["distribution"]["min_submitted"]),
        metadata=described["metadata"],
    )


def count_records(argilla: Argilla, dataset_id: str) -> int:
    """How many records the dataset holds."""
    total, _ = next(argilla.record_pages(dataset_id, include=(), page_size=2))
    return total


def empty_rounds(counts: Mapping[tuple[Place, TaskName], int]) -> list[str]:
    """A line for each language or round that has no work, given the records of each place of a campaign by task.

    A language without any record is one line; nothing is said of a campaign without any.
    """
    lines: list[str] = []
    if not any(counts.values()):
        return lines
    for locale in dict.fromkeys(place.locale for place, _ in counts):
        here = {key: count for key, count in counts.items() if key[0].locale == locale}
        if not any(here.values()):
            lines.append(f"{locale}: no record of this language is there yet")
            continue
        for place in dict.fromkeys(place for place, _ in here):
            empty = [task for task in TASKS if not here.get((place, task), 0)]
            if empty:
                lines.append(f"{locale}, {place.round_name} in '{place.workspace}': nothing for {', '.join(empty)}")
    return lines


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
    described = argilla.datasets(argilla.find_workspace(workspace))
    ours = [found for each in described if (found := jury_dataset(each, workspace))]
    of_round = [dataset for dataset in ours if dataset.round == round_name]
    chosen = locale or _only_locale(of_round, workspace)
    ready = [dataset for dataset in of_round if dataset.locale == chosen and dataset.status == "ready"]
    newest = {dataset.task: dataset for dataset in sorted(ready, key=lambda dataset: dataset.version)}
    missing = [dataset_name(task, chosen, round_name) if chosen else task for task in TASKS if task not in newest]
    if missing:
        of_the_round, option = "", ""
        if round_name != PRODUCTION:
            of_the_round, option = f" of the round {round_name!r}", f" --round {round_name}"
        raise NotFoundError(
            f"The workspace {workspace!r} on Argilla at {argilla.api_url} lacks the published datasets{of_the_round}: "
            f"{', '.join(missing)}; it has the rounds: {', '.join(sorted({each.round for each in ours})) or 'none'}. "
            f"Make them with `citejury annotation setup{option}`."
        )
    return {task: newest[task] for task in TASKS}


def _only_locale(datasets: Sequence[JuryDataset], workspace: str) -> str:
    """The one language of the datasets; empty where there are none.

    Raises:
        InputError: there are several.
    """
    languages = sorted({dataset.locale for dataset in datasets})
    if len(languages) > 1:
        raise InputError(
            f"The workspace {workspace!r} has datasets in several languages: {', '.join(languages)}. Choose one with "
            "`--locale`."
        )
    return "".join(languages)

"""Replying to a question: the reply is kept, and put into the guidelines where it is of use to everybody."""

from collections.abc import Mapping, Sequence
from typing import Any

from annotation.campaign.replies import REPLY_PROPERTY, Reply, closing_rules, replies_in, without_rules
from annotation.campaign.versions import (
    add_property,
    append_to_log,
    current_datasets,
    newest_versions,
    properties_of,
    rules_of,
    series_of,
)
from annotation.client import Argilla
from annotation.labels import TaskName
from annotation.tasks import define_dataset, evidence_of, lacking_fields, short_hash
from annotation.wording import read_wording
from pipeline.errors import InputError, NotFoundError

_MOST_CHARACTERS = 10_000  # argilla-server 2.8.0, of a dataset's guidelines
_REPLIES_PATH = "/citejury/me/replies"


def read_replies(argilla: Argilla, dataset_id: str) -> list[Reply]:
    """The replies to questions in the dataset, the earliest first."""
    found = properties_of(argilla, dataset_id)
    return list(replies_in((each["name"], each["settings"]) for each in found).values())


def shows_replies(argilla: Argilla) -> bool:
    """Whether the server's page shows replies; that of a stock Argilla does not."""
    try:
        argilla.request("GET", _REPLIES_PATH)
    except NotFoundError:
        return False
    return True


def write_reply(argilla: Argilla, dataset_id: str, reply: Reply) -> None:
    """Keep the reply beside the others of its dataset."""
    there = replies_in((each["name"], each["settings"]) for each in properties_of(argilla, dataset_id))
    number = max(there, default=0) + 1
    value = reply.model_dump(exclude_defaults=True)
    add_property(argilla, dataset_id, f"{REPLY_PROPERTY}{number}", f"citejury: reply {number}", value)


def check_room(argilla: Argilla, workspaces: Sequence[str], task: TaskName, locale: str, rule: tuple[str, str]) -> None:
    """Check that the guidelines of a task in a language can take one reply more.

    Raises:
        InputError: they would be longer than Argilla takes.
    """
    described = _described(argilla, workspaces)
    for dataset in _of_task(described, task, locale):
        length = len(_guidelines(dataset, described, task, locale, rule))
        if length > _MOST_CHARACTERS:
            raise InputError(
                f"With this reply the guidelines of {dataset['name']!r} would have {length:,} characters, and Argilla "
                f"takes {_MOST_CHARACTERS:,}. Reply without `--guidelines`, or more shortly."
            )


def renew_guidelines(argilla: Argilla, workspaces: Sequence[str], task: TaskName, locale: str) -> list[str]:
    """Names of the datasets whose guidelines were changed, so that they end in the replies that belong there.

    Those are the newest versions of all rounds of the task in the language; each change is a new version of the
    guidelines in the dataset's log. What else stands in the guidelines stays as it is.
    """
    described = _described(argilla, workspaces)
    changed = []
    for dataset in _of_task(described, task, locale):
        guidelines = _guidelines(dataset, described, task, locale)
        if guidelines != dataset["guidelines"]:
            argilla.request("PATCH", f"/datasets/{dataset['id']}", json={"guidelines": guidelines})
            version = _guideline_version(argilla, dataset, task, locale, guidelines)
            append_to_log(argilla, dataset["id"], {**dataset["metadata"], "guideline_version": version})
            changed.append(str(dataset["name"]))
    return changed


def _described(argilla: Argilla, workspaces: Sequence[str]) -> list[dict[str, Any]]:
    """The datasets of the workspaces, their metadata up to date."""
    ids = [argilla.find_workspace(workspace) for workspace in workspaces]
    return [dataset for workspace_id in ids for dataset in current_datasets(argilla, workspace_id)]


def _of_task(described: Sequence[Mapping[str, Any]], task: TaskName, locale: str) -> list[Mapping[str, Any]]:
    """The newest published datasets of a task in a language, in each workspace."""
    places = {each["workspace_id"] for each in described}
    published = [each for each in described if each["status"] == "ready"]
    return [
        dataset
        for place in sorted(places)
        for series, dataset in newest_versions(each for each in published if each["workspace_id"] == place).items()
        if (series.task, series.locale) == (task, locale)
    ]


def _guidelines(
    dataset: Mapping[str, Any],
    described: Sequence[Mapping[str, Any]],
    task: TaskName,
    locale: str,
    *more: tuple[str, str],
) -> str:
    """The dataset's guidelines with the replies of all rounds, in place of those that they end in."""
    heading = read_wording(locale).rules_heading
    rules = [*rules_of(described, task, locale), *more]
    return without_rules(dataset["guidelines"] or "", heading) + closing_rules(heading, rules)


def _guideline_version(
    argilla: Argilla, dataset: Mapping[str, Any], task: TaskName, locale: str, guidelines: str
) -> str:
    """The hash by which `define_dataset` names guidelines and wording."""
    fields = argilla.request("GET", f"/datasets/{dataset['id']}/fields")["items"]
    series = series_of(dataset)
    definition = define_dataset(
        task,
        read_wording(locale),
        round_name=series.round_name if series else "",
        lacking=lacking_fields(task, fields),
        evidence=evidence_of(dataset),
    )
    return short_hash([guidelines, definition.fields, definition.questions])

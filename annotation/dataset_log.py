"""What changes about a dataset after it was made, kept in Argilla itself: an append-only log with the server's stamps.

The log is a row of metadata properties that no record uses and no annotator sees. A dataset's own metadata cannot hold
it: argilla-server 2.8.0 answers a PATCH of metadata that are there with the new values and stores the old ones (a dict
changed in place, `models/mixins.py`, `fill`; seen 2026-11).
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from annotation.client import Argilla
from annotation.tasks import task_of

PROPERTY = "citejury_settings_"
LOGGED = ("guideline_version", "routing")
HISTORY = "guidelines_history"
"""In the metadata of a described dataset: all versions of the guidelines, oldest first, each with when it began."""


def current_datasets(argilla: Argilla, workspace_id: str) -> list[dict[str, Any]]:
    """The workspace's datasets as the server describes them, in order of names, our own with metadata up to date."""
    return [up_to_date(argilla, each) if task_of(each) else each for each in argilla.datasets(workspace_id)]


def up_to_date(argilla: Argilla, dataset: Mapping[str, Any]) -> dict[str, Any]:
    """The dataset with what its log says in its metadata, and there the history of its guidelines."""
    metadata = dict(dataset["metadata"])
    history = [{"version": str(metadata.get("guideline_version") or ""), "since": ""}]
    for entry in log_of(argilla, dataset["id"]):
        (value,) = entry["settings"]["values"]
        metadata |= json.loads(value)
        if history[-1]["version"] != metadata["guideline_version"]:
            history.append({"version": metadata["guideline_version"], "since": entry["inserted_at"]})
    return {**dataset, "metadata": {**metadata, HISTORY: history}}


def log_of(argilla: Argilla, dataset_id: str) -> list[dict[str, Any]]:
    """The entries of a dataset's log as the server describes them, oldest first."""
    properties = argilla.request("GET", f"/me/datasets/{dataset_id}/metadata-properties")["items"]
    entries = [each for each in properties if each["name"].startswith(PROPERTY)]
    return sorted(entries, key=lambda entry: int(entry["name"].removeprefix(PROPERTY)))


def append(argilla: Argilla, dataset_id: str, metadata: Mapping[str, Any]) -> None:
    """Write an entry with what of these metadata may change; the server dates it."""
    number = len(log_of(argilla, dataset_id)) + 1
    value = json.dumps({name: metadata[name] for name in LOGGED if name in metadata}, ensure_ascii=False)
    body = {
        "name": f"{PROPERTY}{number}",
        "title": f"citejury: settings {number}",
        "settings": {"type": "terms", "values": [value]},
        "visible_for_annotators": False,
    }
    argilla.request("POST", f"/datasets/{dataset_id}/metadata-properties", json=body)


def guideline_version_at(metadata: Mapping[str, Any], moment: str) -> str:
    """The version of the guidelines in force at a moment, one of Argilla's stamps; `metadata` are up to date.

    Empty where none is known.
    """
    when = datetime.fromisoformat(moment).replace(tzinfo=None)
    version = str(metadata.get("guideline_version") or "")
    for each in metadata.get(HISTORY) or ():
        if not each["since"] or datetime.fromisoformat(each["since"]).replace(tzinfo=None) <= when:
            version = each["version"]
    return version

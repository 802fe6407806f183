"""The folder of a dataset: what it holds, and when it may be replaced."""

import hashlib
import json
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from annotation.labels import TaskName
from exports.agreement.consensus import ConsensusRule
from exports.agreement.schema import InputFile
from exports.csv.folder import MANIFEST_FILE, folder_names
from exports.dataset.splits import SplitShares
from pipeline.errors import OutputError
from pipeline.schema import Frozen

KIND: Literal["citejury dataset"] = "citejury dataset"
DEFAULT_SHARES = SplitShares(train=0.8, validation=0.1, test=0.1)


class DatasetOptions(Frozen):
    """How a dataset is made."""

    rule: ConsensusRule = "majority"
    """How votes become one label: by majority, or by the Dawid–Skene model where it tells one."""
    shares: SplitShares = DEFAULT_SHARES
    """The share of narratives that each split is meant to get."""
    seed: int = 0
    """Seed of the splits and of the intervals of agreement."""


class DatasetManifest(Frozen):
    """What a dataset folder holds and what it was made from."""

    kind: Literal["citejury dataset"] = KIND
    """Says whose manifest this is."""
    citejury: str = version("citejury")
    """The version of citejury that wrote the folder."""
    sources: tuple[InputFile, ...]
    """The CSV files that it was made from."""
    decisions: InputFile | None
    """The file of adjudicators' decisions; None without one."""
    guideline_versions: dict[TaskName, tuple[str, ...]]
    """Versions of guidelines and questions of the datasets on the server; only of tasks where the export tells."""
    options: DatasetOptions
    """How it was made."""
    rows: dict[str, int]
    """Rows of each Parquet file, by its path in the folder."""
    files: dict[str, str]
    """SHA-256 of every file but this one, in hexadecimal, by its path in the folder."""


def check_dataset_folder(folder: Path) -> None:
    """Nothing where the folder may be replaced: it is absent, empty, or holds only an earlier dataset of ours.

    Files that `datasets` keeps beside its data when somebody maps over them do not count.

    Raises:
        OutputError: it holds something else, is a file, or is the folder that the user stands in.
    """
    if not folder_names(folder):
        return
    listed = manifest_files(folder / MANIFEST_FILE)
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        cached = name.startswith("datasets/") and path.name.startswith("cache-")
        if not path.is_dir() and not cached and name not in listed:
            raise OutputError(
                f"`{folder}` holds {name!r}, which is no part of a dataset of citejury. Name an empty folder or an "
                "earlier dataset."
            )


def manifest_files(path: Path) -> set[str]:
    """The files that the manifest lists, and the manifest; empty where it is none of ours, of any version."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return set()
    if not isinstance(found, dict) or found.get("kind") != KIND or not isinstance(found.get("files"), dict):
        return set()
    return {MANIFEST_FILE, *found["files"]}


def file_digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file in the folder, by its path there, in order."""
    digests: dict[str, str] = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb") as stream:
            digests[path.relative_to(folder).as_posix()] = hashlib.file_digest(stream, "sha256").hexdigest()
    return digests


def write_dataset_manifest(manifest: DatasetManifest, folder: Path) -> None:
    """Write the manifest into the folder."""
    (folder / MANIFEST_FILE).write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8", newline="\n")

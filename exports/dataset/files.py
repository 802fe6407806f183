"""Typed rows as Parquet files, one for each split, written in batches; `pandas` and `datasets` read them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import ClassLabel, Features, List, Value

from annotation.argilla.labels import LABELS, TaskName, is_of_passages
from exports.csv.folder import MANIFEST_FILE, folder_names, read_manifest
from exports.csv.rows import PAIR_COLUMNS
from exports.dataset.rows import TIME_COLUMNS
from exports.dataset.splits import SPLITS, SplitName, SplitShares
from exports.statistics.consensus import ConsensusRule
from exports.statistics.ratings import InputFile
from pipeline.core.errors import OutputError
from pipeline.core.schema import Frozen
from pipeline.records.schema import Provenance

_KIND: Literal["citejury dataset"] = "citejury dataset"
_BATCH_ROWS = 1000
_VECTOR = "labels"
_VECTOR_NAMES = "labels_yes"
_PANDAS_TYPES = {"bool": "boolean", "int64": "Int64"}
"""What pandas makes of Arrow's types that would lose their meaning with a missing value."""

_PLACE_FEATURES = {"split": Value("string"), "group": Value("string")}

Row = Mapping[str, Any]


def row_features(task: TaskName, columns: Sequence[str]) -> Features:
    return Features(
        {name: Value(_column_type(task, name)) for name in columns} | _vector_features(task) | _PLACE_FEATURES
    )


def consensus_features(task: TaskName, columns: Sequence[str]) -> Features:
    """Texts, unit, number of responses, each label with vote share, posterior and source, vector, split and group."""
    unit = ("record_uuid", *(("chunk_id", "doc_id", "chunk_rank") if is_of_passages(task) else ()))
    provenance = [name for name in Provenance.model_fields if name in columns]
    names = (*PAIR_COLUMNS, *unit, "task", "language", *provenance, "n_ratings")
    features = {name: Value(_column_type(task, name)) for name in names}
    for label in LABELS[task]:
        features[label] = Value("bool")
        features[f"{label}_vote_share"] = Value("float64")
        features[f"{label}_posterior"] = Value("float64")
        features[f"{label}_source"] = Value("string")
    return Features(features | _vector_features(task) | _PLACE_FEATURES)


def _column_type(task: TaskName, column: str) -> str:
    if column in LABELS[task]:
        return "bool"
    if column in TIME_COLUMNS:
        return "timestamp[us, tz=UTC]"
    return "int64" if column in ("chunk_rank", "n_ratings") else "string"


def _vector_features(task: TaskName) -> dict[str, List]:
    """The labels as one vector, and the labels that are yes: the type of the latter carries the names, in order."""
    names = list(LABELS[task])
    return {_VECTOR: List(Value("float32"), length=len(names)), _VECTOR_NAMES: List(ClassLabel(names=names))}


def label_columns(task: TaskName, labels: Mapping[str, bool | None], vector: Sequence[float | None]) -> dict[str, Any]:
    """The vector of the labels and the places of those that are yes; None for either where a label is missing."""
    values = [labels[name] for name in LABELS[task]]
    return {
        _VECTOR: None if None in vector else list(vector),
        _VECTOR_NAMES: None if None in values else [place for place, value in enumerate(values) if value],
    }


def _parquet_schema(features: Features) -> pa.Schema:
    """With what pandas needs to read nullable Booleans and whole numbers as such."""
    schema = features.arrow_schema
    columns = [
        {
            "name": field.name,
            "field_name": field.name,
            "pandas_type": str(field.type),
            "numpy_type": _PANDAS_TYPES[str(field.type)],
            "metadata": None,
        }
        for field in schema
        if str(field.type) in _PANDAS_TYPES
    ]
    pandas = json.dumps({"index_columns": [], "column_indexes": [], "columns": columns})
    return schema.with_metadata({**(schema.metadata or {}), b"pandas": pandas.encode()})


def write_table(folder: Path, features: Features, rows: Iterable[Row]) -> dict[str, int]:
    """Write a file for each split, also for one without rows, and give the rows of each."""
    schema, coming = _parquet_schema(features), iter(rows)
    counts: dict[str, int] = dict.fromkeys(SPLITS, 0)
    folder.mkdir(parents=True)
    with ExitStack() as opened:
        files = {split: pq.ParquetWriter(folder / f"{split}.parquet", schema, compression="zstd") for split in SPLITS}
        writers = {split: opened.enter_context(file) for split, file in files.items()}
        while some := list(islice(coming, _BATCH_ROWS)):
            for split, writer in writers.items():
                own = [row for row in some if row["split"] == split]
                writer.write_batch(pa.RecordBatch.from_pylist(own, schema=schema), row_group_size=10_000)
                counts[split] += len(own)
    return counts


class DatasetOptions(Frozen):
    """How a dataset is made."""

    rule: ConsensusRule = "majority"
    """How votes become one label: by majority, or by the Dawid–Skene model where it tells one."""
    shares: SplitShares = SplitShares(train=0.8, validation=0.1, test=0.1)
    """The share of the records that each split is meant to get."""
    seed: int = 0
    """Seed of the splits and of the intervals of agreement."""


class DatasetManifest(Frozen):
    """What a dataset folder holds and what it was made from."""

    kind: Literal["citejury dataset"] = _KIND
    """Says whose manifest this is."""
    citejury: str = version("citejury")
    """The version of citejury that wrote the folder."""
    sources: tuple[InputFile, ...]
    """The CSV files that it was made from, `provenance.csv` among them."""
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
    """Refuse a folder that is neither absent, nor empty, nor an earlier dataset of ours, or is the user's own place."""
    if not folder_names(folder):
        return
    manifest = read_manifest(folder)
    ours = manifest.get("kind") == _KIND and isinstance(manifest.get("files"), dict)
    listed = {MANIFEST_FILE, *manifest["files"]} if ours else set()
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not path.is_dir() and name not in listed:
            raise OutputError(
                f"`{folder}` holds {name!r}, which is no part of a dataset of citejury. Name an empty folder or an "
                "earlier dataset."
            )


def earlier_splits(folder: Path, options: DatasetOptions) -> dict[str, SplitName]:
    """By `record_uuid`; empty where there is none, it was made with another seed or shares, or it cannot be read."""
    try:
        manifest = json.loads((folder / MANIFEST_FILE).read_bytes())
        made = DatasetOptions.model_validate(manifest["options"])
        if manifest["kind"] != _KIND or (made.seed, made.shares) != (options.seed, options.shares):
            return {}
        tables = [folder / name for name in manifest["files"] if name.endswith(".parquet")]
        read = (pq.read_table(table, columns=["record_uuid", "split"]).to_pylist() for table in tables)
        return {row["record_uuid"]: row["split"] for rows in read for row in rows if row["split"] in SPLITS}
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
        return {}

"""Typed rows as Parquet and as Hugging Face datasets with splits, written in batches."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import datasets
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from datasets import ClassLabel, Dataset, DatasetDict, DatasetInfo, Features, List, Value
from datasets.table import MemoryMappedTable

from annotation.argilla.labels import LABELS, TaskName, is_of_passages
from exports.csv.folder import MANIFEST_FILE, folder_names, read_manifest
from exports.csv.rows import PAIR_COLUMNS
from exports.dataset.rows import TIME_COLUMNS
from exports.dataset.splits import SPLITS, SplitName, SplitShares
from exports.statistics.consensus import ConsensusRule
from exports.statistics.ratings import InputFile
from pipeline.core.errors import OutputError
from pipeline.core.files import sha256_of
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


def description(task: TaskName, row: str, vector: str) -> str:
    """What `datasets` keeps with the data of a task: what a row is, and which label is where in the vector."""
    return (
        f"citejury, {task}: {row} `{_VECTOR}` {vector}, in this order: {', '.join(LABELS[task])}. The names are in "
        f"`features['{_VECTOR_NAMES}'].feature.names`."
    )


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


def write_parquet(path: Path, features: Features, rows: Iterable[Row]) -> None:
    schema, coming = _parquet_schema(features), iter(rows)
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        while some := list(islice(coming, _BATCH_ROWS)):
            writer.write_batch(pa.RecordBatch.from_pylist(some, schema=schema), row_group_size=10_000)


def read_parquet(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file in their order, read in batches."""
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(_BATCH_ROWS):
            yield from batch.to_pylist()


def count_values(path: Path, columns: Sequence[str]) -> dict[str, dict[str | None, int]]:
    """How many rows of a Parquet file have each value, by column; a value is a word of a closed set, or null."""
    found: dict[str, dict[str | None, int]] = {}
    for name in columns:  # one by one, as numbers behind a dictionary: a million rows take a few MiB
        column = pq.read_table(path, columns=[name], read_dictionary=[name]).column(name)
        found[name] = {pair["values"]: pair["counts"] for pair in column.value_counts().to_pylist()}
    return found


def write_splits(parquet: Path, features: Features, description: str, work: Path, out: Path) -> dict[str, int]:
    """The rows of each split, saved to the folder `out` as a `DatasetDict`; an empty split is saved too.

    Rows go through Arrow files in `work`: nothing is held in memory or written to the cache of `datasets`.
    """
    work.mkdir()
    schema = features.arrow_schema
    with ExitStack() as opened:
        writers = {split: opened.enter_context(pa.ipc.new_stream(work / f"{split}.arrow", schema)) for split in SPLITS}
        with pq.ParquetFile(parquet) as file:
            for batch in file.iter_batches(_BATCH_ROWS):
                for split, writer in writers.items():
                    writer.write_batch(batch.filter(pc.equal(batch["split"], split)).cast(schema))
    info = DatasetInfo(description=description, features=features)
    found = DatasetDict()
    for split in SPLITS:
        path = work / f"{split}.arrow"
        # `Dataset.from_file` would make the fingerprint of the file's place and time.
        table = MemoryMappedTable.from_file(str(path))
        found[split] = Dataset(table, info=info, fingerprint=sha256_of(path)[:16])
    # As many files as `datasets` would take, but one for an empty split, which it cannot load else.
    shards = {split: max(1, -(-rows.data.nbytes // 500_000_000)) for split, rows in found.items()}
    with _quiet_datasets():
        found.save_to_disk(str(out), num_shards=shards)
    return {split: rows.num_rows for split, rows in found.items()}


@contextmanager
def _quiet_datasets() -> Iterator[None]:
    drawn = datasets.is_progress_bar_enabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if drawn:
            datasets.enable_progress_bars()


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
    """Refuse a folder that is neither absent, nor empty, nor an earlier dataset of ours, or is the user's own place.

    Files that `datasets` keeps beside its data when somebody maps over them do not count.
    """
    if not folder_names(folder):
        return
    manifest = read_manifest(folder)
    ours = manifest.get("kind") == _KIND and isinstance(manifest.get("files"), dict)
    listed = {MANIFEST_FILE, *manifest["files"]} if ours else set()
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        cached = name.startswith("datasets/") and path.name.startswith("cache-")
        if not path.is_dir() and not cached and name not in listed:
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
        rows = pq.read_table(folder / "parquet" / "merged.parquet", columns=["record_uuid", "split"]).to_pylist()
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
        return {}
    return {row["record_uuid"]: row["split"] for row in rows if row["split"] in SPLITS}

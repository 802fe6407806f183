"""A small export in the form of exports/contracts/csv.md whose labels can be learnt from its texts."""

import csv
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from annotation.argilla.labels import LABELS
from exports.csv.schema import COLUMNS
from exports.dataset.files import DatasetOptions
from exports.dataset.splits import read_shares

if TYPE_CHECKING:
    from exports.dataset.write import WrittenDataset

EVIDENCE = ("measured", "study", "published", "percent", "report", "observed", "sample", "survey")
BOILERPLATE = ("cookie", "subscribe", "login", "newsletter", "advert", "privacy", "menu", "share")
FILLER = ("the", "of", "and", "in", "page", "site", "on", "with")
JURY = ("anna", "ben", "carla")
EVEN = DatasetOptions(shares=read_shares("34,33,33"))


def row(task: str, record_uuid: str, annotator: str = "anna", **changed: Any) -> dict[str, Any]:
    """One response that says no to everything, unless changed."""
    return {
        **{column: f"{column} of {record_uuid}" for column in COLUMNS[task]},
        **dict.fromkeys(LABELS[task], "False"),
        "chunk_id": "c1",
        "chunk_rank": "1",
        "notes": "",
        "record_uuid": record_uuid,
        "annotator_id": annotator,
        "task": task,
        "language": "en",
        "created_at": "2026-03-01T10:00:00+00:00",
        **changed,
    }


def write_export(folder: Path, task: str, rows: Iterable[dict[str, Any]], extra: Sequence[str] = ()) -> Path:
    """The folder, now with the file of the task."""
    folder.mkdir(exist_ok=True)
    with (folder / f"{task}.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, [*COLUMNS[task], *extra], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return folder


def jury_export(folder: Path, narratives: int = 50) -> Path:
    """An export of all tasks: two records a narrative, three passages a record, three annotators who err at times.

    Passages of evidence are relevant, boilerplate of web pages is not: a model can learn that from the words.
    """
    chance = random.Random(1)
    found: dict[str, list[dict[str, Any]]] = {task: [] for task in LABELS}
    for number in range(narratives * 2):
        record, query = f"r{number:04}", f"narrative {number // 2}"
        for rank in (1, 2, 3):
            relevant = chance.random() < 0.5
            chunk = " ".join(chance.choices(EVIDENCE if relevant else BOILERPLATE, k=3) + chance.choices(FILLER, k=6))
            unit = {"input_query": query, "chunk": chunk, "chunk_id": f"c{rank}", "chunk_rank": rank}
            for annotator in JURY:
                said = relevant != (chance.random() < 0.05)
                found["retrieval"].append(row("retrieval", record, annotator, topically_relevant=str(said), **unit))
        for annotator in JURY:
            found["grounding"].append(row("grounding", record, annotator, support_present="True"))
            found["generation"].append(row("generation", record, annotator, query=query, helpful="True"))
    for task, rows in found.items():
        write_export(folder, task, rows)
    return folder


def make(out: Path, source: Path, options: DatasetOptions = EVEN, **wanted: Any) -> "WrittenDataset":
    from exports.dataset.write import write_dataset

    return write_dataset(out, [source], options, **wanted)


def rows_of(out: Path, name: str) -> list[dict[str, Any]]:
    """The rows of all splits together."""
    import pyarrow.parquet

    rows = pyarrow.parquet.read_table(out / "parquet" / name).to_pylist()
    keys = ("record_uuid", "chunk_rank", "chunk_id", "annotator_id")
    return sorted(rows, key=lambda row: [row[key] for key in keys if key in row])

"""A `provenance.csv` made by hand, with the columns of exports/contracts/csv.md."""

import csv
from pathlib import Path

from exports.csv.schema import PROVENANCE_COLUMNS

TOLD = {
    "narrative_id": "n1",
    "narrative_type": "myth",
    "model_name": "openai",
    "model_version": "gpt-5",
    "repeat": "1",
    "run_id": "run",
    "answer_id": "a",
    "language": "en",
    "answer_timestamp": "2026-03-01T10:00:00+01:00",
    "n_sources": "3",
    "n_read": "2",
    "n_unread": "1",
    "contexts": "selected",
}


def write_provenance(folder: Path, **records: dict[str, str]) -> Path:
    """The file in the folder, with a row for each record: `TOLD`, but for the cells that are given."""
    folder.mkdir(exist_ok=True)
    with (folder / "provenance.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, PROVENANCE_COLUMNS, restval="")
        writer.writeheader()
        writer.writerows({"record_uuid": record, **TOLD, **cells} for record, cells in records.items())
    return folder / "provenance.csv"

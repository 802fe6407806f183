"""Exports made by hand, for the tests of the Python functions."""

import csv
import json
from pathlib import Path
from typing import Any

from annotation.argilla.labels import LABELS
from exports.csv.schema import COLUMNS
from exports.report.notebook import AgreementResult

CELLS = {
    "query": "q",
    "answer": "a",
    **dict.fromkeys(LABELS["generation"], "True"),
    **dict.fromkeys(LABELS["retrieval"], "False"),
    "chunk_id": "c1",
    "chunk_rank": "1",
    "task": "generation",
    "language": "en",
    "created_at": "2025-03-01T10:00:00+00:00",
}


def write_export(path: Path, *rows: dict[str, str], columns: tuple[str, ...] = COLUMNS["generation"]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, columns, restval="", extrasaction="ignore")
        writer.writeheader()
        writer.writerows({**CELLS, **row} for row in rows)
    return path


def three_records(**changed: str) -> list[dict[str, str]]:
    """Two annotators on three records; ben finds the third unhelpful."""
    rows = [{"record_uuid": f"00{n}", "annotator_id": name, **changed} for n in range(3) for name in ("anna", "ben")]
    rows[-1] |= {"helpful": "False"}
    return rows


def without_inputs(result: AgreementResult) -> dict[str, Any]:
    figures: dict[str, Any] = json.loads(result.to_json())
    del figures["inputs"]
    return figures

"""The file of CSV v1: the contract's table from it to CSV v2, and its rows (seed 000 "Migration from Schema v1")."""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from pipeline.csv_v2.cell_rules import shown
from pipeline.csv_v2.lines import numbered_rows
from pipeline.errors import InputError
from pipeline.schema import CSV_COLUMNS, SearchResult

# The contract's table, row by row: the v1 column (None: new in v2) and the v2 column (None: dropped; of
# `search_results_json` the `source_*` and `result_*` columns take the place).
MAPPING: tuple[tuple[str | None, str | None], ...] = (
    ("run_id", "answer_id"),
    ("prompt_id", None),
    ("requested_at", "answer_timestamp"),
    ("provider", "model_name"),
    ("model", "model_version"),
    ("base_url", None),
    ("note_id", "narrative_id"),
    ("note_text", "narrative_prompt"),
    ("system_prompt", None),
    ("user_prompt", "answer_prompt"),
    ("response_text", "answer_text"),
    ("finish_reason", None),
    ("prompt_tokens", None),
    ("completion_tokens", None),
    ("total_tokens", None),
    ("latency_ms", None),
    ("search_results_json", None),
    ("error", None),
    ("raw_json", "answer_raw_json"),
    (None, "narrative_type"),
    (None, "answer_citation_list"),
    (None, "source_id"),
    (None, "source_url"),
    (None, "source_domain"),
    (None, "result_id"),
    (None, "result_url"),
    (None, "result_domain"),
    (None, "result_title"),
    (None, "result_snippet"),
    (None, "result_rank"),
)
V1_COLUMNS = tuple(old for old, _ in MAPPING if old)
RENAMED = {old: new for old, new in MAPPING if old and new}
READ_BESIDES = ("search_results_json", "error")
LINES_SHOWN = 20
LISTS_OF_RESULTS = ("search_results", "results", "citations", "sources")


class Notes:
    """What was changed on the way, with the lines it concerns."""

    def __init__(self) -> None:
        self.lines: dict[str, list[int]] = {}

    def add(self, line: int, sentence: str) -> None:
        """The sentence holds for the row on this line."""
        self.lines.setdefault(sentence, []).append(line)

    def sentences(self) -> list[str]:
        """Each sentence once, with the number of rows and the first of their lines."""
        told = []
        for sentence, lines in self.lines.items():
            more = f" and {len(lines) - LINES_SHOWN:,} more" if len(lines) > LINES_SHOWN else ""
            where = ", ".join(map(str, lines[:LINES_SHOWN]))
            told.append(f"{'line' if len(lines) == 1 else 'lines'} {where}{more}: {sentence}")
        return told


def v1_rows(v1: Path, notes: Notes, problems: list[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Each row by v1 column with its line; ragged rows become problems.

    Raises:
        InputError: the file cannot be read, or lacks a column.
    """
    rows = numbered_rows(v1)
    _, header = next(rows, (1, []))
    missing = [column for column in (*RENAMED, *READ_BESIDES) if column not in header]
    if tuple(header) == CSV_COLUMNS:
        raise InputError(f"{str(v1)!r} is CSV v2 already; there is nothing to migrate.")
    if missing or len(set(header)) < len(header):
        what = f"has no column {', '.join(f'`{column}`' for column in missing)}" if missing else "has a column twice"
        raise InputError(f"{str(v1)!r} is not CSV v1: it {what}; found {', '.join(map(repr, header)) or 'nothing'}.")
    for column in header:
        if column not in V1_COLUMNS:
            notes.add(1, f"the column {column!r} is not of schema v1 and was left out")
    for line, cells in rows:
        if len(cells) != len(header):
            problems.append(f"line {line}: cells found {len(cells)}, wanted {len(header)}")
            continue
        yield line, dict(zip(header, cells, strict=True))


def read_time(cell: str) -> datetime:
    """The time in a v1 cell, with or without offset.

    Raises:
        InputError: it is no ISO 8601 time.
    """
    try:
        return datetime.fromisoformat(cell.strip())
    except ValueError as error:
        raise InputError(f"`requested_at` is {shown(cell)}, no ISO 8601 time") from error


def stored_results(cell: str) -> tuple[SearchResult, ...]:
    """The results with a URL in a `search_results_json`, objects or bare URLs; empty where there are none.

    They are a list, or the first list of a provider's object around them.
    """
    try:
        found = json.loads(cell)
    except (ValueError, RecursionError):
        return ()
    if isinstance(found, dict):
        found = next((found[name] for name in LISTS_OF_RESULTS if isinstance(found.get(name), list)), None)
    items = [{"url": item} if isinstance(item, str) else item for item in found] if isinstance(found, list) else []
    texts = [
        {key: item[key] for key in ("url", "title", "snippet") if isinstance(item.get(key), str)}
        for item in items
        if isinstance(item, dict)
    ]
    return tuple(SearchResult(**text) for text in texts if text.get("url"))

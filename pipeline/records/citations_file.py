"""`citations.jsonl` of a run: each cited URL once an answer, and where a redirect leads."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pipeline.core.errors import InputError
from pipeline.core.files import staged_file

CITATIONS = "citations.jsonl"


def resolved_earlier(path: Path) -> dict[str, str]:
    """The targets in a `citations.jsonl` by the redirect's URL."""
    return _by_url(path, "resolved_url")


def longer_readings(path: Path) -> dict[str, str]:
    """By their URL the citations behind which letters stand that may be prose: the URLs with them."""
    return _by_url(path, "longer_url")


def _by_url(path: Path, field: str) -> dict[str, str]:
    """A field of the lines that have it; torn lines are passed over, for the file is derived."""
    if not path.is_file():
        return {}
    with open(path, "rb") as file:
        with_it = (raw for raw in file if f'"{field}"'.encode() in raw)  # most lines have none, and need no reading
        lines = [line for line in map(_read_citation, with_it) if line and line.get(field)]
    return {line["url"]: line[field] for line in lines}


def read_citations(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a `citations.jsonl`, one at a time; an InputError for one that is none."""
    with open(path, "rb") as file:
        for number, raw in enumerate(file, start=1):
            line = _read_citation(raw)
            if line is None:
                raise InputError(
                    f"Line {number} of {str(path)!r} is no citation. Remove the file; it is derived from the answers."
                )
            yield line


def _read_citation(raw: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(line, dict):
        return None
    texts = (line.get("url"), line.get("resolved_url", ""), line.get("longer_url", ""))
    return line if all(isinstance(text, str) for text in texts) else None


def write_resolved(path: Path, targets: Mapping[str, str]) -> None:
    """Write the targets beside their redirects' URLs; a line that has one already keeps it."""
    with staged_file(path) as file:
        for line in read_citations(path):
            target = "" if line.get("resolved_url") else targets.get(line["url"], "")
            line = {**line, "resolved_url": target} if target else line
            file.write((json.dumps(line, ensure_ascii=False) + "\n").encode())

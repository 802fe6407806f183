"""CSV v1 to CSV v2, driven by the contract's own table (pipeline/contracts/csv_v2.md#migration-from-version-1).

Answers keep their text, model and time. Their citations are read from the stored body again by today's rules. Rows with
an `error` are no answers: they go to a file of their own.
"""

import csv
import json
import re
from collections import defaultdict, deque
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import file_digest
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID, uuid5

from pipeline.citations.addresses import find_links
from pipeline.core import schema
from pipeline.core.errors import BadRowsError, InputError, OutputError, ProviderError
from pipeline.core.files import staged_file
from pipeline.core.lines import by_lines, csv_reader, decoded_lines, numbered_rows, open_csv
from pipeline.csv.file import error_bytes, write_answers
from pipeline.csv.rows import answer_problems, shown, wanted_json, wanted_time, wanted_uuid
from pipeline.providers import provider_name, read_body
from pipeline.providers.http.failure import error_kind, redact
from pipeline.providers.http.request import as_object, as_text, load_body

RENAMED = {
    "run_id": "answer_id",
    "requested_at": "answer_timestamp",
    "provider": "model_name",
    "model": "model_version",
    "note_id": "narrative_id",
    "note_text": "narrative_prompt",
    "user_prompt": "answer_prompt",
    "response_text": "answer_text",
    "raw_json": "answer_raw_json",
}
_READ_BESIDES = ("search_results_json", "error")
_NOT_READ = "prompt_id base_url system_prompt finish_reason prompt_tokens completion_tokens total_tokens latency_ms"
V1_COLUMNS = (*RENAMED, *_READ_BESIDES, *_NOT_READ.split())
_MAY_BE_EMPTY = ("run_id", "model", "response_text", "raw_json")


_Notes = defaultdict[str, list[int]]
"""What was changed on the way: a sentence and the lines it concerns."""
_Left = tuple[int, str, Any]


def _readable_rows(v1: Path, left: list[_Left]) -> Iterator[tuple[int, list[str]]]:
    """The header and each row with its line; what is not UTF-8 or no CSV is left as it stands, and read on after."""
    taken: list[str] = []
    ahead: deque[str] = deque()

    def lines() -> Iterator[str]:
        while text := ahead.popleft() if ahead else next(decoded, ""):
            taken.append(text)
            yield text

    next(numbered_rows(v1), None)  # refuses a header that cannot be read
    with open_csv(v1) as file:
        decoded, line = decoded_lines(file, lambda number, raw, at: raw.decode(errors="surrogateescape")), 1
        while True:
            why = ""
            try:
                row = next(csv_reader(lines()), [])
            except csv.Error as error:
                why = f"it is not CSV ({error}); look for a quotation mark that is not doubled or never closed"
                ahead.extendleft(reversed(taken[1:]))
                del taken[1:]
            text = "".join(taken)
            if bad := re.search("[\udc80-\udcff]", text):
                why = f"it is not UTF-8: its letter {bad.start() + 1} is the byte 0x{ord(bad[0]) - 0xDC00:02x}"
            if why:
                left.append((line, why, text))
            elif row:
                yield line, row
            elif not taken:
                return
            line += len(taken)
            taken.clear()


def _v1_rows(v1: Path, notes: _Notes, left: list[_Left]) -> Iterator[tuple[int, dict[str, str]]]:
    rows = _readable_rows(v1, left)
    _, header = next(rows, (1, []))
    missing = [column for column in (*RENAMED, *_READ_BESIDES) if column not in header]
    if tuple(header) == schema.CSV_COLUMNS:
        raise InputError(f"{str(v1)!r} is CSV v2 already; there is nothing to migrate.")
    if missing or len(set(header)) < len(header):
        what = f"has no column {', '.join(f'`{column}`' for column in missing)}" if missing else "has a column twice"
        raise InputError(f"{str(v1)!r} is not CSV v1: it {what}; found {', '.join(map(repr, header)) or 'nothing'}.")
    for column in header:
        if column not in V1_COLUMNS:
            notes[f"the column {column!r} is not of schema v1; its values are kept in the list of what is left"].append(
                1
            )
    for line, cells in rows:
        if len(cells) != len(header):
            left.append((line, f"it has {len(cells)} cells, and the header has {len(header)}", cells))
            continue
        yield line, dict(zip(header, cells, strict=True))


def _read_time(cell: str) -> datetime:
    try:
        return datetime.fromisoformat(cell.strip())
    except ValueError as error:
        raise InputError(f"`requested_at` is {shown(cell)}, no ISO 8601 time") from error


def _stored_results(cell: str) -> tuple[list[dict[str, Any]], str]:
    """The results with a URL in such a list, or the first list of an object around it; and what is wrong with it."""
    try:
        found = json.loads(cell or "null")
    except (ValueError, RecursionError):
        return [], "is not JSON"
    if isinstance(found, dict):
        names = ("search_results", "results", "citations", "sources")
        found = next((found[name] for name in names if isinstance(found.get(name), list)), None)
    listed = found if isinstance(found, list) else []
    items = [{"url": item} if isinstance(item, str) else as_object(item) for item in listed]
    results = [item for item in items if as_text(item.get("url"))]
    return results, "has a result without `url`" if len(results) < len(items) else ""


class Migrated(NamedTuple):
    """What became of a v1 file."""

    answers: int
    errors: int
    """Rows with an error."""
    errors_path: Path
    """Where these rows are; there is no such file without any."""
    left: list[str]
    """Rows, and search results, that could not be taken over, each with its line and why."""
    left_path: Path
    """Where these are, whole, with the cells of columns that v1 does not have; no such file without any."""
    notes: list[str]
    """What could not be taken over as it stood, a sentence each."""


def migrate_file(v1: Path, v2: Path) -> Migrated:
    """What became of the rows of `v1`: `v2` holds the answers, `<stem of v2>.errors.jsonl` beside it the errors.

    A `run_id` that is no UUID, or stood on an earlier row, gives way to an id made of the file's sha256 and the row's
    number, so that a second migration gives the same ids. Times without offset are UTC. What cannot be taken over is in
    `<stem of v2>.left.jsonl`, as it stood and with the reason. Raises InputError, BadRowsError where no row can be
    taken over, or OutputError where a file exists already.
    """
    errors_path, left_path = (v2.with_name(f"{v2.stem}.{name}.jsonl") for name in ("errors", "left"))
    for path in (v2, errors_path, left_path):
        if path.exists():
            raise OutputError(f"{str(path)!r} exists already and is not overwritten; name another file.")
    notes = _Notes(list)
    with open_csv(v1) as file:
        digest = file_digest(file, "sha256").digest()
    migration = _Migration(UUID(bytes=digest[:16]), notes)
    answers = write_answers(v2, migration.answers(v1))
    for path, lines in ((errors_path, map(error_bytes, migration.errors)), (left_path, migration.left_lines())):
        if written := list(lines):
            with staged_file(path) as file:
                file.writelines(written)
    left, errors = [f"line {line}: {why}" for line, why, _ in migration.left], len(migration.errors)
    return Migrated(answers, errors, errors_path, left, left_path, by_lines(notes))


class _Migration:
    """One file on its way: the ids that were given out, and what was found besides answers."""

    def __init__(self, namespace: UUID, notes: _Notes) -> None:
        self.namespace = namespace
        self.notes = notes
        self.ids: set[str] = set()
        self.errors: list[schema.ErrorLine] = []
        self.left: list[_Left] = []
        self.surplus: list[_Left] = []

    def left_lines(self) -> Iterator[bytes]:
        for each in sorted(self.left + self.surplus, key=lambda each: each[0]):
            found = dict(zip(("line", "reason", "cells"), each, strict=True))
            yield (json.dumps(found, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")

    def answers(self, v1: Path) -> Iterator[schema.StoredAnswer]:
        """The answers in the order of the file; after the last one it is refused where nothing was taken over."""
        taken = 0
        for number, (line, cells) in enumerate(_v1_rows(v1, self.notes, self.left), start=1):
            surplus = {name: cell for name, cell in cells.items() if name not in V1_COLUMNS and cell}
            if surplus:
                self.surplus.append((line, "these columns are not of schema v1", surplus))
            try:
                if cells["error"].strip():
                    self.errors.append(_error_line(cells, number))
                    continue
                answer = self.answer(cells, line, number)
            except InputError as error:
                self.left.append((line, str(error), cells))
                continue
            taken += 1
            yield answer
        if not taken and not self.errors:
            if self.left:
                what = f"{str(v1)!r} has no row that can be migrated ({len(self.left)}):"
                raise BadRowsError(what, [f"line {line}: {why}" for line, why, _ in self.left])
            raise InputError(f"{str(v1)!r} has a header and no rows; there is nothing to migrate.")

    def answer(self, cells: dict[str, str], line: int, number: int) -> schema.StoredAnswer:
        empty = [old for old in RENAMED if old not in _MAY_BE_EMPTY and not cells[old].strip()]
        if empty:
            raise InputError(f"the `{empty[0]}` column is empty, CSV v2 requires `{RENAMED[empty[0]]}`")
        provider = provider_name(cells["provider"])
        timestamp = self.time(cells["requested_at"], line)
        read = self.payload(provider, cells, line)
        kept: dict[str, Any] = {new: cells[old] for old, new in RENAMED.items()}
        changed = {
            "answer_id": self.answer_id(cells["run_id"], line, number),
            "model_name": provider,
            "model_version": self.model(cells["model"], read, line),
            "answer_timestamp": timestamp,
            "answer_raw_json": self.raw_json(cells["raw_json"], line),
            "narrative_type": "",
            **{name: getattr(read, name) for name in ("citations", "domains", "search_results")},
        }
        answer = schema.StoredAnswer(**kept | changed)
        for column, found, wanted in answer_problems(answer):
            raise InputError(f"`{column}` would be {found}, wanted {wanted}")
        return answer

    def answer_id(self, run_id: str, line: int, number: int) -> str:
        why = "is no UUID" if wanted_uuid(run_id) else "stands on an earlier row" if run_id.lower() in self.ids else ""
        if why:
            run_id = str(uuid5(self.namespace, str(number)))
            self.notes[f"`run_id` {why}; `answer_id` is made of the file and the row"].append(line)
        self.ids.add(run_id.lower())
        return run_id

    def time(self, cell: str, line: int) -> str:
        if not wanted_time(cell):
            return cell
        time = _read_time(cell)
        if time.tzinfo is None:
            self.notes["`requested_at` has no offset and is taken for UTC"].append(line)
            time = time.replace(tzinfo=UTC)
        return time.isoformat()

    def model(self, model: str, read: schema.Answer, line: int) -> str:
        if model.strip():
            return model
        if not read.model:
            raise InputError("the `model` column is empty and `raw_json` names no model, CSV v2 requires one")
        self.notes["`model` is empty; `model_version` is the model that `raw_json` names"].append(line)
        return read.model

    def raw_json(self, cell: str, line: int) -> str:
        if not wanted_json(cell):
            return cell
        self.notes["`raw_json` is not JSON; `answer_raw_json` holds it as a JSON text"].append(line)
        return json.dumps(cell, ensure_ascii=False)

    def payload(self, provider: schema.ProviderName, cells: dict[str, str], line: int) -> schema.Answer:
        """What the body says; one that cannot be read gives way to one of the text and the search results beside it."""
        stored = cells["search_results_json"]
        results, why = _stored_results(stored.strip())
        try:
            body = load_body(cells["raw_json"])
            read = read_body(provider, body)
        except ProviderError:
            source = "`search_results_json`" if results else "the URLs in `response_text`"
            self.notes[f"`raw_json` cannot be read; the citations are {source}"].append(line)
            text = cells["response_text"]
            urls = [result["url"] for result in results] or [link.url for link in find_links(text)]
            body = {"choices": [{"message": {"content": text}}], "citations": urls}
            read = read_body(provider, body)
        if provider == schema.RESULTS_OF and results and not read.search_results:
            self.notes["the search results are those of `search_results_json`"].append(line)
            if isinstance(body, dict):
                read = read_body(provider, {**body, "search_results": results})
            if not read.search_results:
                fields = ({name: as_text(each.get(name)) for name in ("url", "title", "snippet")} for each in results)
                read = read.model_copy(update={"search_results": tuple(schema.SearchResult(**each) for each in fields)})
        placed = read.search_results if provider == schema.RESULTS_OF and read.citations else ()
        kept = json.dumps([body, read.citations, [each.model_dump() for each in placed]], ensure_ascii=False)
        urls = re.findall(r'https?://[^\s"\\]+', stored.replace("\\/", "/"))
        if not why and any(url not in kept and url not in cells["raw_json"] for url in urls):
            why = "has what is in neither the body nor a column of CSV v2"
        if why:
            self.left.append((line, f"`search_results_json` {why}", {"search_results_json": stored}))
        return read


def _error_line(cells: dict[str, str], number: int) -> schema.ErrorLine:
    requested = cells["requested_at"].strip()
    time = _read_time(requested) if requested else None
    return schema.ErrorLine(
        narrative_id=cells["note_id"],
        row=number,
        provider=provider_name(cells["provider"]),
        model=cells["model"],
        kind=_old_error_kind(cells["error"]),
        status=None,
        message=redact(cells["error"]),
        attempts=1,
        timestamp=(time if time.tzinfo else time.replace(tzinfo=UTC)).isoformat() if time else "",
    )


def _old_error_kind(words: str) -> schema.ErrorKind:
    """The kind of an error of which v1 kept only what the provider's SDK said of it."""
    status = re.search(r"\b[45]\d\d\b", words, re.ASCII)
    kind = error_kind(int(status[0]) if status else None, words)
    if kind != "bad_response" or status:
        return kind
    if re.search(r"time[d ]*out", words, re.IGNORECASE):
        return "timeout"
    return "network" if re.search(r"\bconnect|\bnetwork\b", words, re.IGNORECASE) else kind

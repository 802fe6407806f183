"""CSV v1 to CSV v2, driven by the contract's own table (seed 000 "Migration from Schema v1", design 4.1).

Answers keep their text, model and time. Their citations are read from the stored body again by today's rules. Rows with
an `error` are no answers: they go to a file of their own.
"""

import json
import re
from collections.abc import Iterator
from datetime import UTC
from hashlib import file_digest
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID, uuid5

from pipeline.csv_v2.cell_rules import wanted_json, wanted_time, wanted_uuid
from pipeline.csv_v2.csv_v1 import RENAMED, Notes, read_time, stored_results, v1_rows
from pipeline.csv_v2.file import error_bytes, write_answers
from pipeline.csv_v2.lines import open_csv
from pipeline.errors import BadRowsError, InputError, OutputError, PayloadError
from pipeline.providers import provider_name, read_payload
from pipeline.providers.failure import error_kind, redact
from pipeline.schema import Answer, ErrorKind, ErrorLine, ProviderName, StoredAnswer
from pipeline.staging import staged_file
from pipeline.text.links import find_links
from pipeline.text.urls import source_domain

STATUS_IN_WORDS = re.compile(r"\b[45]\d\d\b", re.ASCII)
TIMED_OUT = re.compile(r"time[d ]*out", re.IGNORECASE)
NO_CONNECTION = re.compile(r"\bconnect|\bnetwork\b", re.IGNORECASE)

MAY_BE_EMPTY = ("run_id", "model", "response_text", "raw_json")


class Migrated(NamedTuple):
    """What became of a v1 file."""

    answers: int
    errors: int
    """Rows with an error."""
    errors_path: Path
    """Where these rows are; there is no such file without any."""
    notes: list[str]
    """What could not be taken over as it stood, a sentence each."""


def migrate_file(v1: Path, v2: Path) -> Migrated:
    """What became of the rows of `v1`: `v2` holds the answers, `<stem of v2>.errors.jsonl` beside it the errors.

    A `run_id` that is no UUID, or stood on an earlier row, gives way to an id made of the file's sha256 and the row's
    number, so that a second migration of the same file gives the same ids. Times without offset are UTC. Nothing is
    written unless every row can be taken over.

    Raises:
        InputError: `v1` is missing, not UTF-8, not CSV, or lacks a column of schema v1.
        BadRowsError: rows that CSV v2 cannot hold; every one is listed.
        OutputError: `v2`, or the file for errors, exists already.
    """
    errors_path = v2.with_name(f"{v2.stem}.errors.jsonl")
    for path in (v2, errors_path):
        if path.exists():
            raise OutputError(f"{str(path)!r} exists already and is not overwritten; name another file.")
    notes = Notes()
    with open_csv(v1) as file:
        digest = file_digest(file, "sha256").digest()
    migration = Migration(UUID(bytes=digest[:16]), notes)
    answers = write_answers(v2, migration.answers(v1, errors_path))
    return Migrated(answers, len(migration.errors), errors_path, notes.sentences())


class Migration:
    """One file on its way: the ids that were given out, and what was found besides answers."""

    def __init__(self, namespace: UUID, notes: Notes) -> None:
        self.namespace = namespace
        self.notes = notes
        self.ids: set[str] = set()
        self.errors: list[ErrorLine] = []

    def answers(self, v1: Path, errors_path: Path) -> Iterator[StoredAnswer]:
        """The answers in the order of the file; after the last one the errors are written.

        Raises:
            InputError: the file cannot be used.
            BadRowsError: rows that CSV v2 cannot hold.
        """
        problems: list[str] = []
        for number, (line, cells) in enumerate(v1_rows(v1, self.notes, problems), start=1):
            try:
                if cells["error"].strip():
                    self.errors.append(error_line(cells, number))
                    continue
                answer = self.answer(cells, line, number)
            except InputError as error:
                problems.append(f"line {line}: {error}")
                continue
            yield answer
        if not self.ids and not self.errors and not problems:
            raise InputError(f"{str(v1)!r} has a header and no rows; there is nothing to migrate.")
        if problems:
            raise BadRowsError(f"{str(v1)!r} has rows that cannot be migrated ({len(problems)}):", problems)
        if self.errors:
            with staged_file(errors_path) as file:
                file.writelines(map(error_bytes, self.errors))

    def answer(self, cells: dict[str, str], line: int, number: int) -> StoredAnswer:
        """The answer that a v1 row holds.

        Raises:
            InputError: a cell that v2 requires is empty, or the provider or the time cannot be read.
        """
        empty = [old for old in RENAMED if old not in MAY_BE_EMPTY and not cells[old].strip()]
        if empty:
            raise InputError(f"the `{empty[0]}` column is empty, CSV v2 requires `{RENAMED[empty[0]]}`")
        provider = provider_name(cells["provider"])
        timestamp = self.time(cells["requested_at"], line)
        read = self.payload(provider, cells, line)
        kept = {new: cells[old] for old, new in RENAMED.items()}
        changed: dict[str, Any] = {
            "answer_id": self.answer_id(cells["run_id"], line, number),
            "model_name": provider,
            "model_version": self.model(cells["model"], read, line),
            "answer_timestamp": timestamp,
            "answer_raw_json": self.raw_json(cells["raw_json"], line),
            "narrative_type": "",
            "citations": read.citations,
            "domains": read.domains,
            "search_results": read.search_results,
        }
        return StoredAnswer(**kept | changed)

    def answer_id(self, run_id: str, line: int, number: int) -> str:
        """The row's own id where it is a UUID that no earlier row has, else one made of the file and the row."""
        answer_id = run_id
        if wanted_uuid(run_id):
            answer_id = str(uuid5(self.namespace, str(number)))
            self.notes.add(line, "`run_id` is no UUID; `answer_id` is made of the file and the row")
        elif run_id.lower() in self.ids:
            answer_id = str(uuid5(self.namespace, str(number)))
            self.notes.add(line, "`run_id` stands on an earlier row; `answer_id` is made of the file and the row")
        self.ids.add(answer_id.lower())
        return answer_id

    def time(self, cell: str, line: int) -> str:
        """The time with its offset: as it stands where it is right."""
        if not wanted_time(cell):
            return cell
        time = read_time(cell)
        if time.tzinfo is None:
            self.notes.add(line, "`requested_at` has no offset and is taken for UTC")
            time = time.replace(tzinfo=UTC)
        return time.isoformat()

    def model(self, model: str, read: Answer, line: int) -> str:
        """The model as it stands, else the one that the body names."""
        if model.strip():
            return model
        if not read.model:
            raise InputError("the `model` column is empty and `raw_json` names no model, CSV v2 requires one")
        self.notes.add(line, "`model` is empty; `model_version` is the model that `raw_json` names")
        return read.model

    def raw_json(self, cell: str, line: int) -> str:
        """The body as it stands; one that is not JSON as a JSON text, which loses nothing."""
        if not wanted_json(cell):
            return cell
        self.notes.add(line, "`raw_json` is not JSON; `answer_raw_json` holds it as a JSON text")
        return json.dumps(cell, ensure_ascii=False)

    def payload(self, provider: ProviderName, cells: dict[str, str], line: int) -> Answer:
        """What the body says; where it cannot be read, the search results beside it, else the URLs in the text."""
        try:
            return read_payload(provider, cells["raw_json"])
        except PayloadError:
            results = stored_results(cells["search_results_json"])
        source = "`search_results_json`" if results else "the URLs in `response_text`"
        self.notes.add(line, f"`raw_json` cannot be read; the citations are {source}")
        urls = [result.url for result in results] or [link.url for link in find_links(cells["response_text"])]
        citations = tuple(dict.fromkeys(urls))
        return Answer(
            text=cells["response_text"],
            citations=citations,
            domains=tuple(map(source_domain, citations)),
            search_results=results if provider == "perplexity" else (),
        )


def error_line(cells: dict[str, str], number: int) -> ErrorLine:
    """The line of the errors that a v1 row with an `error` makes.

    A call that failed early may have no time.

    Raises:
        InputError: its provider or its time cannot be read.
    """
    requested = cells["requested_at"].strip()
    time = read_time(requested) if requested else None
    return ErrorLine(
        narrative_id=cells["note_id"],
        row=number,
        provider=provider_name(cells["provider"]),
        model=cells["model"],
        kind=old_error_kind(cells["error"]),
        status=None,
        message=redact(cells["error"]),
        attempts=1,
        timestamp=(time if time.tzinfo else time.replace(tzinfo=UTC)).isoformat() if time else "",
    )


def old_error_kind(words: str) -> ErrorKind:
    """The kind of an error of which v1 kept only what the provider's SDK said of it."""
    status = STATUS_IN_WORDS.search(words)
    kind = error_kind(int(status[0]) if status else None, words)
    if kind == "bad_response" and not status:
        return "timeout" if TIMED_OUT.search(words) else "network" if NO_CONNECTION.search(words) else kind
    return kind

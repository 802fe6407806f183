"""Read the CSV files of tasks strictly: every bad cell is listed, none is guessed (exports/contracts/csv.md)."""

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from annotation.argilla.labels import LABELS, OWN_TASKS, TASKS, ByTask, Question, TaskName, is_of_passages, task_named
from exports.csv.folder import CONTROLS_FILE, PROVENANCE_FILE, TASKS_FOLDER, add_tasks_of, exported_datasets, file_name
from exports.csv.schema import COLUMNS, STATUS_COLUMN, Work, query_column, utc
from exports.reading.input_files import counted_cells, csv_rows, display_names, input_file, nul_sentences, read_work
from exports.statistics.ratings import (
    EPOCH,
    MICROSECOND,
    MISSING,
    NO,
    USUAL_WEIGHTS,
    YES,
    InputFile,
    IntArray,
    LabelArray,
    Ratings,
    ScaledLabel,
)
from pipeline.core.errors import BadRowsError, InputError
from pipeline.core.sentences import sentences
from pipeline.core.tables import spreadsheet_cell, unescaped
from pipeline.records.schema import Provenance

_say = sentences(__file__)

_BOOLEANS: Mapping[str, int] = {
    **dict.fromkeys(("True", "true", "TRUE", "1", "yes"), YES),
    **dict.fromkeys(("False", "false", "FALSE", "0", "no"), NO),
    "": MISSING,
}


def _codes(question: Question) -> Mapping[str, int]:
    """The number of each value by its spellings: 1.0, as other programs write it, is 1 on a scale of numbers."""
    if question.scale == "boolean":
        return _BOOLEANS
    found = {"": MISSING}
    for code, value in enumerate(question.values):
        found |= dict.fromkeys((str(float(value)),) if question.scale == "interval" else (), code)
        found |= {value: code, str(spreadsheet_cell(value)): code}
    return found


CODES: ByTask[tuple[Mapping[str, int], ...]] = ByTask(lambda task: tuple(map(_codes, task.questions)))
"""What the cells of each label stand for: yes, no or missing, or the number of the value on its scale."""
_STATUSES = ("submitted", "discarded", "draft", "pending")
_KNOWN_COMBINATIONS = 10_000  # Remembered at most: memory stays bounded
_DUPLICATES_SHOWN = 10
_UNKNOWN_LANGUAGE = "und"
_DISCARDED = "_discarded"  # What names of files end with that hold discarded responses


class Response(NamedTuple):
    line: int  # The physical line on which the row begins, counted from 1; in a data frame its position, counted from 0
    cells: Sequence[str]
    record_uuid: str
    chunk_id: str
    annotator_id: str
    created_at: datetime  # When, in UTC; a time without offset is taken as UTC
    labels: tuple[int, ...]  # The labels of the task in their order: 1 yes, 0 no, or number of the value; -1 missing
    language: str  # Language code; empty where the table has none
    round: str  # Name of the round; empty where the table names none
    status: str  # `submitted`, unless the table itself says otherwise
    rank: int  # Rank of the passage, counted from 1; 0 where the table has none


class Collection:
    """The responses to one task, gathered row by row in arrays: a million rows fit."""

    def __init__(self, task: TaskName) -> None:
        self.task = task
        self.sources: list[str] = []  # Where rows are from, such as `retrieval.csv, line`
        self.records: dict[str, int] = {}
        self.units: dict[tuple[int, str], int] = {}
        self.ranks = array("q")
        self.annotators: dict[str, int] = {}
        self.rounds: dict[str, int] = {}
        self.languages: dict[str, int] = {}
        self.fields, self.values = array("q"), array("b")
        self.tells_discards = False
        self.not_submitted = 0
        self.discarded: dict[str, int] = {}  # Responses that count as discarded, by record; told by `finish`

    def add(self, response: Response) -> None:
        line, _, record_uuid, chunk_id, annotator_id, created_at, labels, language, round_name, status, rank = response
        discarded = status == "discarded"
        if discarded:
            self.tells_discards = True
        elif status != "submitted":
            self.not_submitted += 1
            return
        key = (self.records.setdefault(record_uuid, len(self.records)), chunk_id)
        unit = self.units.setdefault(key, len(self.units))
        if unit == len(self.ranks):
            self.ranks.append(rank)
        elif rank < self.ranks[unit]:
            self.ranks[unit] = rank
        self.fields.extend(
            (
                unit,
                self.annotators.setdefault(annotator_id, len(self.annotators)),
                (created_at - EPOCH) // MICROSECOND,
                self.rounds.setdefault(round_name, len(self.rounds)) if round_name else -1,
                self.languages.setdefault(language or _UNKNOWN_LANGUAGE, len(self.languages)),
                discarded,
                len(self.sources) - 1,
                line,
            )
        )
        self.values.extend(labels)

    def finish(self) -> tuple[Ratings, list[str]]:
        """The responses, and sentences about those that do not count: of one annotator's to one unit the newest does.

        Of equally new ones the last gathered, discarded or not.
        """
        rows = Columns(*np.asarray(self.fields).reshape(-1, len(Columns._fields)).T)
        chosen, repeated = _newest(rows)
        discarded = rows.discarded[chosen] != 0
        discards: dict[str, int] | None = None
        if self.tells_discards:
            names, numbers = _renumbered(rows.annotators[chosen[discarded]], list(self.annotators))
            discards = dict(zip(names, np.bincount(numbers, minlength=len(names)).tolist(), strict=True))
            records, of_units = list(self.records), [record for record, _ in self.units]
            self.discarded = Counter(records[of_units[unit]] for unit in rows.units[chosen[discarded]].tolist())
        ratings = self.arrange(rows, chosen[~discarded])
        return ratings._replace(n_duplicates=len(repeated), discards=discards), self.remarks(rows, repeated)

    def arrange(self, rows: "Columns", chosen: IntArray) -> Ratings:
        kept = Columns(*(column[chosen] for column in rows))
        keys, records, rounds = list(self.units), list(self.records), list(self.rounds)
        unit_keys, units = _renumbered(kept.units, keys, lambda unit: (records[keys[unit][0]], keys[unit][1]))
        names, unit_records = _renumbered(np.array([record for record, _ in unit_keys], np.int64), records)
        annotators, response_annotators = _renumbered(kept.annotators, list(self.annotators))
        begun = np.full(len(rounds) + 1, np.iinfo(np.int64).max)  # The last is that of responses of no round
        np.minimum.at(begun, kept.rounds, kept.moments)
        named, response_rounds = _renumbered(kept.rounds, rounds, lambda number: (begun[number], rounds[number]))
        order = np.lexsort((response_annotators, units))
        values: LabelArray = np.asarray(self.values).reshape(-1, len(LABELS[self.task]))
        own, scaled = _by_scale(self.task, values[chosen[order]], units[order], response_annotators[order])
        return Ratings(
            task=self.task,
            annotators=annotators,
            records=names,
            unit_records=unit_records,
            unit_chunks=tuple(chunk for _, chunk in unit_keys),
            unit_languages=_first_languages(units[order], kept.languages[order], list(self.languages)),
            units=units[order],
            response_annotators=response_annotators[order],
            values=own,
            moments=kept.moments[order],
            rounds=named,
            response_rounds=response_rounds[order],
            n_duplicates=0,
            discards=None,
            unit_ranks=np.array([self.ranks[self.units[key]] for key in unit_keys], np.int64),
            scaled=scaled,
        )

    def remarks(self, rows: "Columns", repeated: IntArray) -> list[str]:
        found: list[str] = []
        if len(repeated):
            places = [f"{self.sources[rows.sources[row]]} {rows.lines[row]}" for row in repeated[:_DUPLICATES_SHOWN]]
            more = len(repeated) - _DUPLICATES_SHOWN
            found.append(
                f"{self.task}: rows that repeat a unit and annotator: {len(repeated)}. The newest `created_at` of "
                f"each counts. Repeated at: {'; '.join(places + ([f'and {more} more'] if more > 0 else []))}."
            )
        if self.not_submitted:
            found.append(f"{self.task}: rows left out because they are drafts or pending: {self.not_submitted}.")
        return found


def _by_scale(
    task: TaskName, values: LabelArray, units: IntArray, raters: IntArray
) -> tuple[LabelArray, tuple[ScaledLabel, ...]]:
    """The columns of labels of yes and no, and the labels on a scale."""
    questions, scaled = task_named(task).questions, []
    for column, question in enumerate(questions):
        if question.scale != "boolean":
            there = np.flatnonzero(values[:, column] != MISSING)
            is_interval = question.scale == "interval"
            places = np.array(question.values if is_interval else range(len(question.values)), np.float64)
            about = (question.name, question.scale, USUAL_WEIGHTS[question.scale], question.values, places)
            codes = values[there, column].astype(np.int64)
            scaled.append(ScaledLabel(*about, units[there], raters[there], codes, True))
    own = [question.scale == "boolean" for question in questions]
    return (values if all(own) else values[:, own]), tuple(scaled)


class Columns(NamedTuple):
    """The rows of a collection as arrays of equal length; names stand as numbers in the order of their first row."""

    units: IntArray
    annotators: IntArray
    moments: IntArray  # `created_at` in microseconds since 1970 UTC
    rounds: IntArray  # Number of the round; -1 without one
    languages: IntArray
    discarded: IntArray  # 1 where the response was discarded, else 0
    sources: IntArray
    lines: IntArray


def _newest(rows: Columns) -> tuple[IntArray, IntArray]:
    """The rows that count, one for each unit and annotator, and the rows that came after another of the same two."""
    order = np.lexsort((rows.moments, rows.annotators, rows.units))  # Stable: equally new rows stay as they came
    if not len(order):
        return order, order
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (np.diff(rows.units[order]) != 0) | (np.diff(rows.annotators[order]) != 0)
    starts = np.flatnonzero(begins)
    chosen = order[np.append(starts[1:], len(order)) - 1]
    came_first = np.minimum.reduceat(order, starts)
    return chosen, np.setdiff1d(order, came_first, assume_unique=True)


def _first_languages(units: IntArray, languages: IntArray, names: Sequence[str]) -> tuple[str, ...]:
    """Of each unit the first language in the alphabet that is known; `units` rise, every one is there at least once."""
    if not len(units):
        return ()
    ordered = sorted(range(len(names)), key=lambda number: (names[number] == _UNKNOWN_LANGUAGE, names[number]))
    rank = np.empty(len(names), np.int64)
    rank[ordered] = np.arange(len(names))
    lowest = np.minimum.reduceat(rank[languages], np.flatnonzero(np.diff(units, prepend=-1)))
    return tuple(names[ordered[number]] for number in lowest.tolist())


def _renumbered(
    numbers: IntArray, names: Sequence[Any], key: Callable[[int], Any] | None = None
) -> tuple[tuple[Any, ...], IntArray]:
    """The names that occur, sorted by themselves or the key of their number, and each occurrence's new number or -1."""
    ordered = sorted(np.unique(numbers[numbers >= 0]).tolist(), key=key or names.__getitem__)
    place = np.full(len(names) + 1, -1, np.int64)  # The last place is that of -1: none
    place[ordered] = np.arange(len(ordered))
    return tuple(names[number] for number in ordered), place[numbers]


class ParsedLabels(NamedTuple):
    labels: tuple[int, ...]
    status: str
    rank: int


class TableRows(NamedTuple):
    """A table that is no file: what `ResponseReader` reads."""

    task: TaskName
    source: str  # What stands before a row's position in a sentence, such as `frame 1, row`
    header: tuple[str, ...]
    rows: Iterable[Sequence[str]]


def needed_columns(task: TaskName) -> tuple[str, ...]:
    """The columns without which a row is no rating: ids, labels, annotator, time."""
    passage = ("chunk_id",) if is_of_passages(task) else ()
    return ("record_uuid", *passage, *LABELS[task], "annotator_id", "created_at")


class ResponseReader:
    """Reads the rows of one table; it looks its columns up once, and checks each combination of labels once."""

    def __init__(self, task: TaskName, header: Sequence[str], source: str, bad: list[str]) -> None:
        """`source` stands before the line in a sentence, such as `retrieval.csv, line`; `bad` gets one a bad cell."""
        self.task, self.header, self.source, self.bad = task, header, source, bad
        place = {name: number for number, name in enumerate(header)}
        closed = (*LABELS[task], *(name for name in ("task", "chunk_rank", STATUS_COLUMN) if name in place))
        self.label_cells = itemgetter(*(place[name] for name in closed))
        self.status_at = place.get(STATUS_COLUMN)
        self.rank_at = place.get("chunk_rank") if is_of_passages(task) else None
        self.known: dict[tuple[str, ...], ParsedLabels] = {}
        self.record, self.annotator, self.created = (place[n] for n in ("record_uuid", "annotator_id", "created_at"))
        self.chunk = place["chunk_id"] if is_of_passages(task) else None
        self.language, self.round = place.get("language"), place.get("round")

    def read(self, rows: Iterable[tuple[int, Sequence[str]]]) -> Iterator[Response]:
        """The responses in the order of their rows (line, cells); a row with a bad cell is left out and told."""
        width, label_cells, record_at, annotator_at = len(self.header), self.label_cells, self.record, self.annotator
        unit_at = self.record if self.chunk is None else self.chunk
        for line, cells in rows:
            if len(cells) != width:
                self.bad.append(f"{self.source} {line}: found {len(cells)} cells, the header has {width}.")
                continue
            parsed = self.known.get(label_cells(cells))
            record, unit, annotator = cells[record_at], cells[unit_at], cells[annotator_at]
            created = moment_or_none(cells[self.created])
            if parsed is None or created is None or not (record.strip() and unit.strip() and annotator.strip()):
                problems = _bad_cells(dict(zip(self.header, cells, strict=True)), self.task)
                if problems or created is None:
                    self.bad += [f"{self.source} {line}, {problem}" for problem in problems]
                    continue
                parsed = self.learn(cells)
            yield Response(
                line,
                cells,
                record if record[0] != "'" else unescaped(record),
                "" if self.chunk is None else unescaped(unit),
                annotator if annotator[0] != "'" else unescaped(annotator),
                created,
                parsed.labels,
                "" if self.language is None else cells[self.language],
                "" if self.round is None else cells[self.round],
                parsed.status,
                parsed.rank,
            )

    def learn(self, cells: Sequence[str]) -> ParsedLabels:
        combination = self.label_cells(cells)
        labels = tuple(codes[cell] for codes, cell in zip(CODES[self.task], combination, strict=False))
        status = "submitted" if self.status_at is None else cells[self.status_at]
        parsed = ParsedLabels(labels, status, 0 if self.rank_at is None else int(cells[self.rank_at]))
        if len(self.known) < _KNOWN_COMBINATIONS:
            self.known[combination] = parsed
        return parsed


def _bad_cells(row: Mapping[str, str], task: TaskName) -> list[str]:
    found = [
        f"`{each.name}`: found {row[each.name]!r}, expected {expected_of(each)}, or nothing where it was not answered."
        for each, codes in zip(task_named(task).questions, CODES[task], strict=True)
        if row[each.name] not in codes
    ]
    needed = ("record_uuid", "annotator_id", *(("chunk_id",) if is_of_passages(task) else ()))
    found += [f"`{column}`: is empty, every row needs one." for column in needed if not row[column].strip()]
    if row.get("task", task) != task:
        found.append(f"`task`: found {row['task']!r}, expected {task!r} as in the columns.")
    if is_of_passages(task) and not re.fullmatch("0*[1-9][0-9]{0,17}", row.get("chunk_rank", "1")):  # 64 bits
        found.append(f"`chunk_rank`: found {row['chunk_rank']!r}, expected a whole number from 1.")
    if row.get(STATUS_COLUMN, "submitted") not in _STATUSES:
        found.append(f"`{STATUS_COLUMN}`: found {row[STATUS_COLUMN]!r}, expected one of {', '.join(_STATUSES)}.")
    if moment_or_none(row["created_at"]) is None:
        found.append(f"`created_at`: found {row['created_at']!r}, expected a time such as 2025-03-08T23:43:00+00:00.")
    return found


def expected_of(question: Question) -> str:
    return "True or False" if question.scale == "boolean" else f"one of {', '.join(question.values)}"


def moment_or_none(stamp: str) -> datetime | None:
    """The moment in UTC that an ISO 8601 text names; without offset it is UTC; None where it is no such text."""
    try:
        return utc(stamp)
    except (ValueError, OverflowError):
        return None


class RecordFacts:
    """What the rows of files say of their records, discarded responses among them."""

    def __init__(self) -> None:
        self.places: list[Path] = []  # The exports: folders, and files that have a name of their own
        self.exports: dict[str, set[int]] = {}  # The numbers of those that each record is in
        self.queries: dict[str, str] = {}
        self.known: dict[str, dict[str, str]] = {}  # Of each record, by column of `provenance.csv`
        self.discarded: dict[tuple[TaskName, str], int] = {}  # Responses by task and record

    def reader(self, path: Path, task: TaskName) -> Callable[[Response], None]:
        """What takes the responses of one file."""
        place = path.parent if path.stem.removesuffix(_DISCARDED) in TASKS else path
        self.places += [] if place in self.places else [place]
        number, (_, header) = self.places.index(place), next(csv_rows(path))
        query_at = header.index(query) if (query := query_column(task)) in header else None
        origin_at = [(name, header.index(name)) for name in Provenance.model_fields if name in header]

        def take(response: Response) -> None:
            if response.status not in ("submitted", "discarded"):
                return
            record = response.record_uuid
            known = self.known.setdefault(record, {})
            if response.language:
                known.setdefault("language", response.language)
            self.exports.setdefault(record, set()).add(number)
            if query_at is not None and record not in self.queries:
                self.queries[record] = " ".join(unescaped(response.cells[query_at]).split())
            for name, at in origin_at:
                if name not in known and response.cells[at]:
                    known[name] = unescaped(response.cells[at])

        return take


class ReadTables(NamedTuple):
    tables: list[Ratings]  # One for each task that has a file
    inputs: list[InputFile]
    remarks: list[str]  # Plain sentences about rows that were left out, for the person at the terminal
    work: dict[TaskName, Work] | None  # How far it was, as manifests tell; None where one does not
    facts: RecordFacts


def export_files(paths: Sequence[Path]) -> list[Path]:
    """The CSV files that the paths name, each once; a folder stands for its tasks' files, discarded responses too.

    A `provenance.csv` or `controls.csv` among them, as `export/*.csv` names it, is passed over: it has no ratings.

    The tasks become known whose files are in the exports.

    Raises:
        InputError: there is no such file or folder, the folder holds none of the files, or a task's own is missing.
    """
    files: list[Path] = []
    add_tasks_of(path if path.is_dir() else path.parent for path in paths if path.exists())
    for path in paths:
        if not path.exists():
            raise InputError(f"There is no file or folder `{path}`. Name an export folder or its CSV files.")
        if path.name in (PROVENANCE_FILE, CONTROLS_FILE) and path.is_file() and len(paths) > 1:
            continue
        names = [file_name(task, discarded) for task in TASKS for discarded in (False, True)]
        found = [path / name for name in names if (path / name).is_file()] if path.is_dir() else [path]
        if not found:
            wanted = ", ".join(f"`{task}.csv`" for task in OWN_TASKS)
            raise InputError(_say("no_files", path=path, wanted=wanted, tasks_folder=TASKS_FOLDER))
        files += found
    return list({file.resolve(): file for file in files}.values())


def own_files(files: Sequence[Path], what: str) -> tuple[list[Path], list[str]]:
    """The files of the tasks that come with citejury, and a sentence where others are left out; `what` begins it.

    Raises:
        InputError: all files are of tasks from files.
    """
    tasks = {file: task_of(file) for file in files}
    others = sorted({*tasks.values()} - {*OWN_TASKS})
    told = [f"{what} are of {', '.join(OWN_TASKS)} only; left out: {', '.join(others)}."] if others else []
    own = [file for file, task in tasks.items() if task in OWN_TASKS]
    if told and not own:
        raise InputError(told[0])
    return own, told


def read_tables(files: Sequence[Path], frames: Sequence[TableRows] = ()) -> ReadTables:
    """The ratings of all files and frames, by task; of several by one annotator on one unit the newest counts.

    Raises:
        InputError: a file is no CSV in UTF-8, lacks columns, or its task cannot be told.
        BadRowsError: cells cannot be read; every one of them is listed, for all files together.
    """
    tasks = {path: task_of(path) for path in files}
    wanted = {*tasks.values(), *(frame.task for frame in frames)}
    collected = {task: Collection(task) for task in TASKS if task in wanted}
    bad: list[str] = []
    names = dict(zip(files, display_names(files), strict=True))
    facts = RecordFacts()
    inputs = [_read_into(collected[tasks[path]], path, names[path], bad, facts) for path in files]
    for frame in frames:
        collected[frame.task].sources.append(frame.source)
        for response in ResponseReader(frame.task, frame.header, frame.source, bad).read(enumerate(frame.rows)):
            collected[frame.task].add(response)
    if bad:
        raise BadRowsError(f"{counted_cells(bad)} cannot be read; mend what is wrong or leave the file out:", bad)
    gathered = [collection.finish() for collection in collected.values()]
    told = [*nul_sentences(files), *(each for _, remarks in gathered for each in remarks)]
    for task, each in collected.items():
        facts.discarded |= {(task, record): count for record, count in each.discarded.items()}
    tables = [ratings for ratings, _ in gathered]
    if frames:
        return ReadTables(tables, inputs, told, None, facts)
    tables = [each._replace(counted_discards=_counted_discards(facts.places, each.task)) for each in tables]
    return ReadTables(tables, inputs, told, read_work(files), facts)


def _counted_discards(places: Sequence[Path], task: TaskName) -> int | None:
    """How many responses of the task were discarded, as the manifests of its exports say; None where one does not."""
    total = 0
    for place in places:
        if place.is_dir() and not (place / file_name(task, discarded=False)).is_file():
            continue
        of_task = [entry.get("discarded") for entry in exported_datasets(place) if entry.get("task") == task]
        counts = [count for count in of_task if isinstance(count, int)]
        if not counts or len(counts) < len(of_task):
            return None
        total += sum(counts)
    return total


def _read_into(collection: Collection, path: Path, name: str, bad: list[str], facts: RecordFacts) -> InputFile:
    rows = 0
    source = f"{name}, line"
    collection.sources.append(source)
    collection.tells_discards |= holds_discarded(path)
    take = facts.reader(path, collection.task)
    try:
        for response in read_responses(path, collection.task, source):
            collection.add(response)
            take(response)
            rows += 1
    except BadRowsError as error:
        bad += error.rows
    return input_file(path, rows)


def task_of(path: Path) -> TaskName:
    """The task of a CSV file: by its columns, then its first `task` cell or its name; InputError where none fits."""
    rows = csv_rows(path)
    _, header = next(rows, (1, []))
    if len(header) == 1 and (mark := re.search(r"[;\t|]", header[0])):
        raise InputError(f"`{path}` is separated by {mark[0]!r} instead of commas. Save it as comma-separated CSV.")
    _, first = next(rows, (2, []))
    if not header:
        raise InputError(f"`{path}` is empty: it has no header line. Export it again.")
    doubled = sorted({name for name in header if header.count(name) > 1 and any(name in COLUMNS[t] for t in TASKS)})
    if doubled:
        raise InputError(f"`{path}` has the column `{doubled[0]}` more than once. Keep one of them.")
    named = dict(zip(header, first, strict=False)).get("task") or path.stem.removesuffix(_DISCARDED)
    advice = "Export it again; of ratings of your own name the columns: `--unit`, `--rater`, `--value`."
    return fitting_task(header, named, COLUMNS, f"`{path}`", advice)


def fitting_task(
    header: Sequence[str], named: str | None, columns: Mapping[TaskName, Sequence[str]], where: str, advice: str
) -> TaskName:
    """The task whose columns are all in the header; where several are, the named one, else the first."""
    fitting = [task for task in TASKS if set(columns[task]) <= set(header)]
    if fitting:
        return next((task for task in fitting if task == named), fitting[0])
    if named and named not in TASKS and {"record_uuid", "task"} <= set(header):
        raise InputError(_say("unknown_task", where=where, named=named, tasks_folder=TASKS_FOLDER))
    nearest = max(TASKS, key=lambda task: (task == named, len(set(LABELS[task]) & set(header))))
    missing = ", ".join(f"`{name}`" for name in columns[nearest] if name not in header)
    raise InputError(f"{where} is not an export of any task: for {nearest} it lacks {missing}. {advice}")


def read_responses(path: Path, task: TaskName, source: str | None = None) -> Iterator[Response]:
    """The rows of one file in their order; `source` stands before the line in a sentence about a cell.

    Raises:
        InputError: the file is no CSV in UTF-8, or one of discarded responses that does not say so in its rows.
        BadRowsError: after the last row: some cells could not be read; each is listed with line and column.
    """
    rows = csv_rows(path)
    _, header = next(rows)
    if holds_discarded(path) and STATUS_COLUMN not in header:
        raise InputError(_say("no_status", path=path, column=STATUS_COLUMN))
    bad: list[str] = []
    yield from ResponseReader(task, header, source or f"{path.name}, line", bad).read(rows)
    if bad:
        raise BadRowsError(f"`{path}` has {counted_cells(bad)} that cannot be read:", bad)


def holds_discarded(path: Path) -> bool:
    """Whether the file's name says that it holds discarded responses, as `exports csv --discarded` names them."""
    return path.stem.endswith(_DISCARDED)

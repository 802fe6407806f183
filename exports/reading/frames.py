"""Exports as pandas data frames with types, and frames as tables of responses."""

import re
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from annotation.argilla.labels import LABELS, TASKS, TaskName, task_named
from exports.csv.folder import PROVENANCE_FILE
from exports.csv.schema import STATUS_COLUMN
from exports.reading import read as reading
from exports.reading.input_files import csv_rows
from exports.reading.provenance import gap_sentences, provenance_files, read_provenance
from exports.statistics.ratings import EPOCH, MICROSECOND, MISSING, YES
from pipeline.core.errors import InputError

if TYPE_CHECKING:
    import pandas

Source: TypeAlias = "str | PathLike[str] | pandas.DataFrame"  # Folder, CSV file or frame

_OPTIONAL_COLUMNS = ("task", "chunk_rank", "language", "round", STATUS_COLUMN)
_COUNT = re.compile(r"[0-9]{1,18}")
_READ_AGAIN = "Read the file with `read_task`, or with pandas and `dtype=str, keep_default_na=False`."


def read_task(path: str | PathLike[str], task: TaskName | None = None) -> "pandas.DataFrame":
    """The submitted responses of one task: a row each, in the order and with the columns of the file.

    Labels are of the type `boolean` (NA where not answered), `chunk_rank` is `Int64`, `created_at` is
    `datetime64[us, UTC]`. Every other column is `string` with the very text of the file: an id stays `001`, a note
    stays `None`, an empty cell stays the empty text. The file is checked as strictly as by `exports results`.
    Responses that repeat a unit and annotator are all there.

    Where `provenance.csv` stands beside the file, its columns follow, joined by `record_uuid`, save those that the file
    has itself: `repeat` and counts are `Int64`, `answer_timestamp` is `datetime64[us, UTC]`, the others `string`; what
    is not known is NA. Cells that are no number or no time there are NA too. A `UserWarning` counts these, and records
    whose model or narrative is not known.

    `task` says which of a folder; it is not needed where the folder holds one only.

    Raises:
        InputError: there is no such file, the folder holds several tasks and none is named, or it is no export; or
            `provenance.csv` cannot be read.
        BadRowsError: cells cannot be read; every one of them is listed.
    """
    import pandas

    file, told = _task_file(Path(path), task)
    _, header = next(csv_rows(file))
    responses = [response for response in reading.read_responses(file, told) if response.status == "submitted"]
    texts = list(zip(*(response.cells for response in responses), strict=True)) or [()] * len(header)
    typed = {place: _typed_column(told, name, texts[place], responses) for place, name in enumerate(header)}
    frame = pandas.DataFrame(typed).set_axis(header, axis="columns")
    return _with_provenance(frame, [response.record_uuid for response in responses], file)


def _task_file(path: Path, task: TaskName | None) -> tuple[Path, TaskName]:
    exported = reading.export_files([path])  # which makes their tasks known
    if task is not None:
        task_named(task)
    files = {reading.task_of(file): file for file in exported if path.is_file() or not reading.holds_discarded(file)}
    if task is None and len(files) == 1:
        ((told, file),) = files.items()
        return file, told
    if task is not None and task in files:
        return files[task], task
    there = ", ".join(files) or "discarded responses only"
    wanted = "name one as `task`" if task is None and files else f"read another export{' or task' if files else ''}"
    raise InputError(f"`{path}` holds {there}{'' if task is None else f', not {task}'}; {wanted}.")


def _typed_column(task: TaskName, name: str, texts: Sequence[str], responses: Sequence[reading.Response]) -> Any:
    import numpy as np
    import pandas

    if name in LABELS[task]:
        place = LABELS[task].index(name)
        values, question = np.array([each.labels[place] for each in responses], np.int8), task_named(task).by_name[name]
        if question.scale == "interval":
            numbers = np.array([*map(float, question.values), np.nan])
            return pandas.array(numbers[values], dtype="Float64")
        if question.scale != "boolean":
            return pandas.Categorical.from_codes(values, question.values, ordered=question.scale == "ordinal")
        return pandas.arrays.BooleanArray(values == YES, values == MISSING)
    if name == "chunk_rank":
        return pandas.array([int(text) for text in texts], dtype="Int64")
    if name == "created_at":
        moments = [(response.created_at - EPOCH) // MICROSECOND for response in responses]
        return pandas.DatetimeIndex(np.array(moments, dtype="datetime64[us]"), tz="UTC")
    return pandas.array(list(texts), dtype="string")


def _with_provenance(frame: "pandas.DataFrame", records: Sequence[str], file: Path) -> "pandas.DataFrame":
    """The frame, followed by the columns of the `provenance.csv` beside its file that it lacks."""
    import pandas

    told = read_provenance(provenance_files([file]))
    sentences = gap_sentences(told.rows, records) if told.files else []
    unknown = dict.fromkeys(told.columns, "")
    of_rows = [told.rows.get(record, unknown) for record in records]
    new = {
        name: _provenance_column(name, [row[name] for row in of_rows], sentences)
        for name in told.columns
        if name not in frame.columns
    }
    for sentence in sentences:
        warnings.warn(sentence, stacklevel=3)  # the caller of `read_task`
    return pandas.concat([frame, pandas.DataFrame(new, index=frame.index)], axis="columns") if new else frame


def _provenance_column(name: str, texts: Sequence[str], sentences: list[str]) -> Any:
    """NA where a cell is empty or not of the type; `sentences` gets one about the latter."""
    import pandas

    values: list[Any]
    if name == "answer_timestamp":
        kind, values = "time", [reading.moment_or_none(text) for text in texts]
        column: Any = pandas.DatetimeIndex(pandas.to_datetime(pandas.Series(values, dtype="object"), utc=True))
        column = column.as_unit("us")
    elif name == "repeat" or name.startswith("n_"):
        kind, values = "whole number", [int(text) if _COUNT.fullmatch(text) else None for text in texts]
        column = pandas.array(values, dtype="Int64")
    else:
        return pandas.array([text or None for text in texts], dtype="string")
    unread = [text for text, value in zip(texts, values, strict=True) if text and value is None]
    if unread:
        sentences.append(
            f"`{name}` of `{PROVENANCE_FILE}` is no {kind} in {len(unread)} of {len(texts)} rows and is NA there (the "
            f"first: {unread[0]!r})."
        )
    return column


class Sources(NamedTuple):
    paths: list[Path]
    frames: list[Any]

    def read(self) -> reading.ReadTables:
        """The ratings of all of them, by task, checked together; it raises what `read_tables` does."""
        return reading.read_tables(reading.export_files(self.paths), self.tables())

    def tables(self, more_columns: Iterable[str] = ()) -> list[reading.TableRows]:
        """The frames as tables, with those of `more_columns` that they have; InputError where one is none."""
        return [_frame_rows(frame, number, more_columns) for number, frame in enumerate(self.frames, start=1)]


def sort_sources(source: "Source | Sequence[Source]") -> Sources:
    """The sources by kind; something that is none at all is named when it is read."""
    several: list[Any] = list(source) if isinstance(source, list | tuple) else [source]
    return Sources(
        paths=[Path(each) for each in several if isinstance(each, str | PathLike)],
        frames=[each for each in several if not isinstance(each, str | PathLike)],
    )


def _frame_rows(frame: Any, number: int, more_columns: Iterable[str] = ()) -> reading.TableRows:
    """The rows as text, whatever made the frame; `number`, counted from 1, names it in sentences."""
    where = f"frame {number}"
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(frame, pandas.DataFrame):
        raise InputError(f"{frame!r:.80} is no export folder, CSV file or data frame. Give one of these.")
    names = [str(name) for name in frame.columns]
    first = str(frame["task"].iloc[0]) if "task" in names and len(frame) else None
    task = reading.fitting_task(
        names, first, {task: reading.needed_columns(task) for task in TASKS}, where, _READ_AGAIN
    )
    header = (*reading.needed_columns(task), *(name for name in (*_OPTIONAL_COLUMNS, *more_columns) if name in names))
    doubled = [name for name in header if names.count(name) > 1]
    if doubled:
        raise InputError(f"{where} has the column `{doubled[0]}` more than once. Keep one of them.")
    columns = [_cell_texts(frame[name], name, task, where) for name in header]
    return reading.TableRows(task, f"{where}, row", header, zip(*columns, strict=True))


def _cell_texts(column: Any, name: str, task: TaskName, where: str) -> list[str]:
    strict = name in reading.needed_columns(task) or name in _OPTIONAL_COLUMNS
    question = task_named(task).by_name.get(name)
    kind: Callable[[Any], str] = _plain_text if strict else str
    if question or name == "chunk_rank":
        kind = _label_text if question and question.scale == "boolean" else _number_text
    missing = column.isna().tolist()
    try:
        return ["" if gone else kind(value) for value, gone in zip(column.tolist(), missing, strict=True)]
    except TypeError as error:
        found = error.args[0]
        raise InputError(
            f"{where}: `{name}` holds {found!r}, expected text; as numbers, 001 and 1 would be one. {_READ_AGAIN}"
        ) from error


def _label_text(value: object) -> str:
    """A label as a file has it; 1, 1.0 and True are the same, and what is no Boolean stays visible."""
    return str(bool(value)) if isinstance(value, bool | int | float) and value in (0, 1) else str(value)


def _number_text(value: object) -> str:
    """A rank or a value on a scale as a file has it; pandas makes 1.0 of 1 beside a missing value."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _plain_text(value: object) -> str:
    """A text or a time as a file has it."""
    if isinstance(value, datetime):
        return value.isoformat()
    if not isinstance(value, str):
        raise TypeError(value)
    return value

"""A sheet of an .xlsx file as rows of text, with what in it is no text that one could rely on; tables as such files."""

import re
import warnings
import zlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, time, timedelta
from functools import partial
from itertools import chain, islice
from math import isfinite
from pathlib import Path
from shutil import copyfileobj
from typing import TYPE_CHECKING, Any, NamedTuple
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile, ZipInfo

from pipeline.core.errors import InputError

if TYPE_CHECKING:
    from openpyxl.workbook import Workbook

# What is read within a minute and 1 GB, after unpacking; a cell with a text has four to six tags, counted by their `<`.
_MOST = {"bytes": 200_000_000, "tags": 4_000_000, "cells": 4_000_000, "rows": 1_048_576}
_DIGITS = 15  # of a number, which is all that Excel keeps
_BROKEN = (BadZipFile, KeyError, ValueError, TypeError, AttributeError, IndexError, SyntaxError, EOFError, OSError)
_HOW_TO_SAVE = (
    "Open it, choose `Save As` with the type `CSV UTF-8 (Comma delimited)` in Excel or `Text CSV` in LibreOffice, and "
    "name the file that this writes; `;` or tabs between the columns are fine."
)


class DoubtfulCell(str):
    """What a cell seems to hold; `why` says after its column's name why it cannot be relied on."""

    def __new__(cls, text: object, why: str) -> "DoubtfulCell":
        cell = super().__new__(cls, text)
        cell.why = why
        return cell

    why: str


class Sheet(NamedTuple):
    name: str
    others: tuple[str, ...]
    rows: list[tuple[int, list[str]]]
    """Each row with its number, but empty ones at either end."""
    hidden_rows: frozenset[int]
    hidden_columns: frozenset[int]
    """Places in a row, from 0."""


def read_sheet(path: Path, name: str = "") -> Sheet:
    """The sheet of this name, else the first that is not hidden; an InputError for none, no .xlsx or too much."""
    from openpyxl import load_workbook

    try:
        with ZipFile(path) as packed:
            _refuse_more(path, "bytes", sum(each.file_size for each in packed.infolist()))
            parts = (iter(partial(packed.open(each).read, 1 << 20), b"") for each in packed.namelist())
            _refuse_more(path, "tags", sum(piece.count(b"<") for part in parts for piece in part))
        with warnings.catch_warnings(), open(path, "rb") as file:
            warnings.simplefilter("ignore")  # what it cannot keep when it saves, which is never done
            return _sheet_of(path, load_workbook(file, read_only=True, keep_links=False), name)
    except (*_BROKEN, zlib.error, NotImplementedError) as error:
        raise InputError(f"{str(path)!r} is damaged or no Excel file (.xlsx), and not CSV. {_HOW_TO_SAVE}") from error


def _refuse_more(path: Path, what: str, found: int) -> None:
    if found > _MOST[what]:
        raise InputError(f"{str(path)!r} is a spreadsheet of more than {_MOST[what]:,} {what}. {_HOW_TO_SAVE}")


def _sheet_of(path: Path, book: "Workbook", name: str) -> Sheet:
    from openpyxl.cell.read_only import ReadOnlyCell
    from openpyxl.worksheet._reader import WorkSheetParser  # only it tells of merged and hidden cells without the rest

    sheets = book.worksheets
    if not sheets or (name and name not in (sheet.title for sheet in sheets)):
        there = ", ".join(repr(sheet.title) for sheet in sheets) or "none"
        raise InputError(f"{str(path)!r} has no sheet {name!r}; there are {there}. Name one with `--sheet`.")
    shown = [sheet for sheet in sheets if sheet.sheet_state == "visible"]
    sheet = book[name] if name else (shown or sheets)[0]
    with sheet._get_source() as source:
        formats = {"date_formats": book._date_formats, "timedelta_formats": book._timedelta_formats}
        parser = WorkSheetParser(source, sheet._shared_strings, epoch=book.epoch, **formats)
        cells = (ReadOnlyCell(sheet, **each) for _, row in parser.parse() for each in row if each["value"] is not None)
        filled = {(each.row, each.column): _text_of(each) for each in cells}
    merged = parser.merged_cells.mergeCell if parser.merged_cells else ()
    columns = [each for each in parser.column_dimensions.values() if _is_hidden(each)]
    return Sheet(
        sheet.title,
        tuple(each.title for each in sheets if each is not sheet),
        list(_table(path, filled, merged)),
        frozenset(int(number) for number, each in parser.row_dimensions.items() if _is_hidden(each)),
        frozenset(at - 1 for each in columns for at in range(int(each["min"]), int(each["max"]) + 1)),
    )


def _is_hidden(attributes: dict[str, str]) -> bool:
    return attributes.get("hidden") in ("1", "true")


def _table(path: Path, filled: dict[tuple[int, int], str], merged: Iterable[Any]) -> Iterator[tuple[int, list[str]]]:
    """The rows from the first with a text to the last, all up to the last column with one."""
    rows, width = {row for row, _ in filled}, max((column for _, column in filled), default=0)
    _refuse_more(path, "rows", max(rows, default=0))
    merged_cells = sum(area.size["rows"] * area.size["columns"] for area in merged)
    _refuse_more(path, "cells", max(len(rows) * width, merged_cells))
    for area in merged:
        why = f"is part of the merged cells {area.coord}; undo the merge and fill each cell"
        for row, column in area.cells:
            if row in rows and column <= width:
                filled[row, column] = DoubtfulCell(filled.get((row, column), ""), why)
    for row in range(min(rows, default=1), max(rows, default=1) + 1):
        yield row, [filled.get((row, column), "") for column in range(1, width + 1)] if row in rows else []


def _text_of(cell: Any) -> str:
    """The cell's text, as doubtful where it is not what people see."""
    value = cell.value
    if isinstance(value, str) and cell.data_type not in ("f", "e"):
        return value.replace("_x000D_\n", "\n").replace("_x000D_", "\n")
    if cell.data_type == "f":
        return DoubtfulCell(value, "holds a formula; put its value there (copy it, and paste the values only)")
    if cell.data_type == "e" or isinstance(value, bool):
        shown = str(value).upper()  # TRUE, as Excel shows it
        return DoubtfulCell(shown, f"holds {shown}; write a text")
    if isinstance(value, date | time | timedelta):
        return DoubtfulCell(value, f"holds a date or time ({value}), which is shown in many ways; write it as text")
    text = f"{value:.15g}" if isinstance(value, float) else str(value)
    if len(text.lstrip("-").replace(".", "")) > _DIGITS or "e" in text:
        why = f"holds a number of more than {_DIGITS} digits ({text}), which are not kept; write it as text"
    elif cell.number_format not in ("General", "0", "@"):
        why = f"holds the number {text} shown as {cell.number_format!r}; write as text what is meant"
    else:
        return text
    return DoubtfulCell(text, why)


_LONGEST = 32_767  # characters of UTF-16 that Excel holds in a cell
_CREATOR = "citejury"
_TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")  # of the file; sheets are not in a text
_UNFIT = re.compile("[^\t\n -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u202a-\u202e\u2066-\u2069]")
"""What XML cannot hold, and what turns the direction of writing, so that a text would read as another."""
_ESCAPE = re.compile("_(?=x[0-9A-Fa-f]{4}_)")  # Excel would read `_x003D_` as `=`


def write_workbook(path: Path, sheets: Iterable[tuple[str, Iterable[Sequence[object]]]]) -> None:
    """Write named tables, the heading first in each, as sheets of an .xlsx file; what one cannot hold is in the next.

    Every text is a cell of text, whatever it looks like. `�` stands for what no cell holds and for what turns the
    direction of writing; a text that is too long ends in saying that it is cut.
    """
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.writer.excel import ExcelWriter

    book = Workbook(write_only=True)
    book.properties.creator = _CREATOR
    for name, table in sheets:
        rows, sheet = iter(table), None
        heading, first = next(rows), [*islice(rows, 1)]
        while sheet is None or first:
            sheet = book.create_sheet(name)  # with a number behind a name that is taken
            sheet.freeze_panes = "A2"
            text = WriteOnlyCell(sheet)
            text.number_format = "@"  # also after somebody edits it
            for row in chain([heading], first, islice(rows, _MOST["rows"] - 2)):
                sheet.append(_cells(row, text))
            first = [*islice(rows, 1)]
    with _Undated(path, "w", ZIP_DEFLATED) as archive:
        ExcelWriter(book, archive).save()


class _Undated(ZipFile):
    """Without times, so that the same tables give the same bytes."""

    def writestr(self, name: Any, data: Any, *_: Any) -> None:
        text = data.encode() if isinstance(data, str) else data
        super().writestr(ZipInfo(name), _TIME.sub(b"2000-01-01T00:00:00Z", text), ZIP_DEFLATED)

    def write(self, filename: Any, arcname: Any = None, *_: Any) -> None:
        part = ZipInfo(arcname)
        part.compress_type = ZIP_DEFLATED
        with open(filename, "rb") as file, self.open(part, "w", force_zip64=True) as target:
            copyfileobj(file, target)


def _cells(row: Sequence[object], text: Any) -> Iterator[object]:
    """Numbers as they are, and all else in the one cell `text`, which is written before the next is asked for."""
    for value in row:
        if value is None or (isinstance(value, int | float) and isfinite(value)):
            yield value
        else:
            text.value = _fitting(str(value))
            text.data_type = "s"
            yield text


def _fitting(value: str) -> str:
    value = _ESCAPE.sub("_x005F_", _UNFIT.sub("�", value.replace("\r\n", "\n").replace("\r", "\n")))
    units = value.encode("utf-16-le")
    if len(units) <= 2 * _LONGEST:
        return value
    told = f" … [cut: Excel holds {_LONGEST:,} of {len(units) // 2:,} characters; the CSV file has all]"
    return units[: 2 * (_LONGEST - len(told))].decode("utf-16-le", "ignore") + told


def is_own_workbook(path: Path) -> bool:
    """Whether `write_workbook` wrote the file."""
    try:
        with ZipFile(path) as packed, packed.open("docProps/core.xml") as about:
            return f">{_CREATOR}<".encode() in about.read(4096)
    except _BROKEN:
        return False

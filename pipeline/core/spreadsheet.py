"""A sheet of an .xlsx file as rows of text, and what in it is no text that one could rely on."""

import warnings
import zlib
from collections.abc import Iterator
from datetime import date, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zipfile import BadZipFile, ZipFile

from pipeline.core.errors import InputError

if TYPE_CHECKING:
    from openpyxl.workbook import Workbook

_LARGEST = 500_000_000  # unpacked bytes: a full sheet of short texts has fewer
_DIGITS = 15  # of a number, which is all that Excel keeps
_BROKEN = (BadZipFile, KeyError, ValueError, TypeError, AttributeError, IndexError, SyntaxError, EOFError, OSError)
_HOW_TO_SAVE = (
    "Open it, choose `Save As` with the type `CSV UTF-8 (Comma delimited)` in Excel or `Text CSV` in LibreOffice, and "
    "name the file that this writes; `;` or tabs between the columns are fine."
)


class DoubtfulCell(str):
    """What a cell seems to hold; `why` says after its column's name why it cannot be relied on."""

    why = ""


class Sheet(NamedTuple):
    name: str
    others: tuple[str, ...]
    rows: list[tuple[int, list[str]]]
    """Each row with its number, but empty ones at either end."""


def read_sheet(path: Path, name: str = "") -> Sheet:
    """The sheet of this name, by default the first; an InputError where there is none or the file is no .xlsx."""
    from openpyxl import load_workbook

    try:
        with ZipFile(path) as packed:
            if sum(each.file_size for each in packed.infolist()) > _LARGEST:
                raise InputError(f"{str(path)!r} is a spreadsheet of more than {_LARGEST:,} bytes. {_HOW_TO_SAVE}")
        with warnings.catch_warnings(), open(path, "rb") as file:
            warnings.simplefilter("ignore")  # what it cannot keep when it saves, which is never done
            book = load_workbook(file, keep_links=False)
            return _sheet_of(path, book, name)
    except (*_BROKEN, zlib.error, NotImplementedError) as error:
        raise InputError(f"{str(path)!r} is a spreadsheet and not CSV, and cannot be read. {_HOW_TO_SAVE}") from error


def _sheet_of(path: Path, book: "Workbook", name: str) -> Sheet:
    names = [sheet.title for sheet in book.worksheets]
    if not names or (name and name not in names):
        there = ", ".join(map(repr, names)) or "none"
        raise InputError(f"{str(path)!r} has no sheet {name!r}; there are {there}. Name one with `--sheet`.")
    sheet = book[name or names[0]]
    merged = {place: str(area) for area in sheet.merged_cells.ranges for place in area.cells}
    rows = [(number, list(_texts(row, merged))) for number, row in enumerate(sheet.iter_rows(), start=1)]
    filled = [at for at, (_, cells) in enumerate(rows) if any(cells)] or [0]
    others = tuple(each for each in names if each != sheet.title)
    return Sheet(sheet.title, others, rows[filled[0] : filled[-1] + 1])


def _texts(row: tuple[Any, ...], merged: dict[tuple[int, int], str]) -> Iterator[str]:
    for cell in row:
        text, why = _text_of(cell)
        area = merged.get((cell.row, cell.column), "")
        if area:
            why = f"is part of the merged cells {area}; undo the merge and fill each cell"
        if why:
            text = DoubtfulCell(text)
            text.why = why
        yield text


def _text_of(cell: Any) -> tuple[str, str]:
    """The cell's text, and why it is not what people see; empty where it is."""
    value = cell.value
    if value is None:
        return "", ""
    if isinstance(value, str) and cell.data_type not in ("f", "e"):
        return value.replace("_x000D_\n", "\n").replace("_x000D_", "\n"), ""
    if cell.data_type == "f":
        return str(value), "holds a formula; put its value there (copy it, and paste the values only)"
    if cell.data_type == "e" or isinstance(value, bool):
        return str(value), f"holds {value}; write a text"
    if isinstance(value, date | time | timedelta):
        return str(value), f"holds a date or time ({value}), which is shown in many ways; write it as text"
    text = f"{value:.15g}" if isinstance(value, float) else str(value)
    if len(text.lstrip("-").replace(".", "")) > _DIGITS or "e" in text:
        return text, f"holds a number of more than {_DIGITS} digits ({text}), which are not kept; write it as text"
    if cell.number_format not in ("General", "0", "@"):
        return text, f"holds the number {text} shown as {cell.number_format!r}; write as text what is meant"
    return text, ""

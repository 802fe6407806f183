"""CSV as text: UTF-8 with or without a byte order mark, cells of any size, rows with the line they begin on."""

import csv
from collections.abc import Callable, Iterable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from pipeline.csv_v2.packed import is_packed, open_packed
from pipeline.errors import InputError, TornFrameError

if TYPE_CHECKING:
    from _csv import Reader

_BOM = b"\xef\xbb\xbf"

# Two recorded Claude bodies exceed the default of 131,072 characters; a larger number overflows a C long on Windows.
# https://docs.python.org/3/library/csv.html#csv.field_size_limit
_FIELD_LIMIT = 2**31 - 1

_DELIMITERS = (",", ";", "\t")  # a German Excel saves the second


def decoded_lines(file: Iterable[bytes], damaged: Callable[[int, bytes, int], None]) -> Iterator[str]:
    """The physical lines of a file in UTF-8 with their own line ends, without a byte order mark.

    A line ends at `\\n`, `\\r\\n` or a lone `\\r`, as `csv` counts them. For a line that is not UTF-8 `damaged` is told
    its number, its bytes and the place of the first bad one; if that returns, the bad bytes become U+FFFD.
    """
    number = 0
    for raw in file:
        pieces = [raw] if raw.find(b"\r", 0, -2) < 0 and raw.endswith(b"\n") else raw.splitlines(keepends=True)
        for piece in pieces:
            number += 1
            if number == 1:
                piece = piece.removeprefix(_BOM)
            try:
                yield piece.decode()
            except UnicodeDecodeError as error:
                damaged(number, piece, error.start)
                yield piece.decode(errors="replace")


def csv_reader(lines: Iterator[str], delimiter: str = ",") -> "Reader":
    """The strict reader of such lines: a quote out of place or never closed is a `csv.Error`."""
    csv.field_size_limit(_FIELD_LIMIT)
    return csv.reader(lines, strict=True, delimiter=delimiter)


def numbered_rows(path: Path, end: int | None = None, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """Each row of a CSV file with the physical line on which it begins, counted from 1; empty lines are no rows.

    With `end` only the lines before that byte are read, of a packed file those that are packed before it.

    Raises:
        InputError: the file is missing or a folder, cannot be unpacked, is cut off in a frame, is not UTF-8, or a
            quote is out of place or never closed.
    """

    def refuse(line: int, raw: bytes, at: int) -> None:
        raise InputError(_not_utf8(path, line, raw, at))

    with open_csv(path, end) as file:
        lines = file if end is None or is_packed(path) else _lines_before(file, end)
        rows = csv_reader(decoded_lines(lines, refuse), delimiter)
        line = 1
        try:
            for row in rows:
                if row:
                    yield line, row
                line = rows.line_num + 1
        except csv.Error as error:
            raise InputError(
                f"{str(path)!r}, line {line}: the row that begins here is not CSV ({error}). Look for a quotation mark "
                "that is not doubled or never closed."
            ) from error
        except TornFrameError as error:
            raise InputError(
                f"{str(path)!r}, line {line}: found the end of the file in the middle of a frame, wanted the rest of "
                "the answer. Run `citejury pipeline check` on it."
            ) from error


def delimiter_of(path: Path, column: str) -> str:
    """What parts the file's cells: the first by which its header names the column, else the most frequent."""
    widths = dict.fromkeys(_DELIMITERS, 0)
    for delimiter in _DELIMITERS:
        try:
            _, header = next(numbered_rows(path, delimiter=delimiter), (1, []))
        except InputError:  # quoted by another delimiter; what is wrong by all of them is told when the rows are read
            continue
        if column in [name.strip() for name in header]:
            return delimiter
        widths[delimiter] = len(header)
    return max(widths, key=lambda delimiter: widths[delimiter])


def _lines_before(file: BinaryIO, end: int) -> Iterator[bytes]:
    """The lines that end at this byte or before it."""
    position = 0
    for line in file:
        position += len(line)
        if position > end:
            return
        yield line


def open_csv(path: Path, end: int | None = None) -> BufferedReader:
    """The file, open for reading; of a packed one what is packed in it, before byte `end` where that is told.

    Raises:
        InputError: it is missing, or a folder.
    """
    try:
        return open_packed(path, end) if is_packed(path) else open(path, "rb")
    except FileNotFoundError as error:
        raise InputError(f"There is no file {str(path)!r}; look at the path.") from error
    except IsADirectoryError as error:
        raise InputError(f"{str(path)!r} is a folder; name a CSV file.") from error


class Encoding(NamedTuple):
    """An encoding by the name that people know and by the one that iconv knows."""

    name: str
    iconv: str


def _not_utf8(path: Path, line: int, raw: bytes, at: int) -> str:
    """The sentences about a byte that is not UTF-8, with the encoding that the file seems to have."""
    encoding = likely_encoding(raw)
    return (
        f"{str(path)!r}, line {line}, byte {at + 1}: found 0x{raw[at]:02x}, which is not UTF-8; it looks like "
        f"{encoding.name}. Save the file as UTF-8: in Excel as `CSV UTF-8`, or with `iconv -f {encoding.iconv} -t "
        "UTF-8 OLD > NEW`."
    )


def likely_encoding(raw: bytes) -> Encoding:
    """The encoding of a line that is not UTF-8, by what it reads as."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return Encoding("UTF-16", "UTF-16")
    western = Encoding("Windows-1252", "WINDOWS-1252")
    try:
        text = raw.decode("cp932")
    except UnicodeDecodeError:
        return western
    # Most western lines decode as Japanese too, but then into a few odd characters among many Latin letters.
    kana = sum("\u3041" <= letter <= "\u30ff" for letter in text)
    wide = kana + sum("\u4e00" <= letter <= "\u9fff" for letter in text)
    latin = sum(letter.isascii() and letter.isalpha() for letter in text)
    return Encoding("Shift-JIS", "CP932") if kana or wide > latin else western

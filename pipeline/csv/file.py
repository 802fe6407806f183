"""The file of CSV v2: answers out, whole or not at all, and answers in again, streamed (pipeline/contracts/csv_v2.md).

Read and written with `csv` alone, so that "" is never a missing value and `001` never 1.
"""

import csv
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple
from zlib import crc32

from pipeline.core import lines as csv_lines
from pipeline.core.errors import InputError, ProviderError
from pipeline.core.files import staged_file
from pipeline.core.schema import CSV_COLUMNS, RESULTS_OF, ErrorLine, StoredAnswer
from pipeline.csv.rows import ANSWER_ID, MODEL_NAME, RAW_JSON, AnswerParts, answer_cells

# RFC 4180, and the only line end with which Python before 3.13 quotes a lone carriage return in a cell.
# https://github.com/python/cpython/issues/67230
_LINE_END = "\r\n"
HEADER = (",".join(CSV_COLUMNS) + _LINE_END).encode()
_CSV = ".csv"


def answers_file(folder: Path, name: str) -> Path:
    """The folder's file of the answers of `name`, under zstd or plain; an InputError where both are there."""
    plain, packed = folder / f"{name}{_CSV}", folder / f"{name}{_CSV}{csv_lines.PACKED}"
    if not packed.is_file():
        return plain
    if plain.is_file():
        ending = "and only one can hold the answers. Remove the one that is a copy."
        raise InputError(f"{str(folder)!r} has both `{plain.name}` and `{packed.name}`, {ending}")
    return packed


def is_answers_file(path: Path) -> bool:
    return path.name.lower().endswith((_CSV, f"{_CSV}{csv_lines.PACKED}"))


def stored_bytes(path: Path, content: bytes) -> bytes:
    """A header or an answer's rows as they stand in this file: under zstd by its name, or plain."""
    return csv_lines.pack(content) if csv_lines.is_packed(path) else content


class Place(NamedTuple):
    """Where an answer's rows stand in a file, from byte `start` up to `end`, and the CRC-32 of these bytes."""

    start: int
    end: int
    crc: int


def rows_as_bytes(answer: StoredAnswer) -> bytes:
    """The answer's rows as they stand in the file; the raw JSON, which may be megabytes, is quoted once."""
    cells = answer_cells(answer)
    shared = _csv_text([cells.shared])[0]
    results = _csv_text(cells.results)
    return "".join(
        f"{shared},{source},{result}{_LINE_END}" for source in _csv_text(cells.sources) for result in results
    ).encode()


class _Pieces(list[str]):
    write = list[str].append


def _csv_text(parts: Iterable[Sequence[str]]) -> list[str]:
    pieces = _Pieces()
    csv.writer(pieces, lineterminator=_LINE_END).writerows(parts)
    return [piece[: -len(_LINE_END)] for piece in pieces]


def append_answer(path: Path, answer: StoredAnswer) -> Place:
    """Append the answer's rows in one write, after a header in a new file; they are on the disk when this returns."""
    rows = stored_bytes(path, rows_as_bytes(answer))
    with open(path, "ab") as file:
        begin = file.tell()
        header = b"" if begin else stored_bytes(path, HEADER)
        file.write(header + rows)
        file.flush()
        os.fsync(file.fileno())
    start = begin + len(header)
    return Place(start, start + len(rows), crc32(rows))


def write_answers(path: Path, answers: Iterable[StoredAnswer]) -> int:
    """Write the answers into a new file, which replaces an earlier one when all are written, and count them."""
    count = 0
    with staged_file(path) as file:
        file.write(stored_bytes(path, HEADER))
        for answer in answers:
            file.write(stored_bytes(path, rows_as_bytes(answer)))
            count += 1
    return count


def read_cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Each row as its 20 cells in order, with the line on which it begins, or an InputError."""
    rows = csv_lines.numbered_rows(path)
    _, header = next(rows, (1, []))
    if tuple(header) != CSV_COLUMNS:
        ending = "in order. Run `citejury pipeline check` on it; `--out` turns CSV v1 into v2."
        raise InputError(f"{str(path)!r} is not CSV v2: its first line is not the {len(CSV_COLUMNS)} columns {ending}")
    for line, cells in rows:
        if len(cells) != len(CSV_COLUMNS):
            ending = f"wanted {len(CSV_COLUMNS)}. Run `citejury pipeline check` on it."
            raise InputError(f"{str(path)!r}, line {line}: found {len(cells)} cells, {ending}")
        yield line, cells


def read_answers(path: Path) -> Iterator[StoredAnswer]:
    """The answers of a file; held in memory are those of which rows are missing.

    `search_results` are those that the rows name: none where the answer has no citation. An InputError says which rows
    disagree, are missing, or go on after an answer was whole.
    """
    waiting: dict[str, AnswerParts] = {}
    told: set[str] = set()
    current: AnswerParts | None = None
    for line, cells in read_cells(path):
        answer_id = cells[ANSWER_ID]
        if current is None or current.answer_id != answer_id:
            if current is not None and current.is_whole():
                yield answer_from_parts(path, waiting.pop(current.answer_id))
                told.add(current.answer_id)
            if answer_id in told:
                raise _unusable(path, line, f"the answer {answer_id!r} goes on after it was whole")
            current = waiting.get(answer_id)
        current = waiting[answer_id] = _with_row(path, line, cells, current)
    for parts in waiting.values():
        if not parts.is_whole():
            raise _not_whole(path, parts)
        yield answer_from_parts(path, parts)


def _with_row(path: Path, line: int, cells: list[str], parts: AnswerParts | None) -> AnswerParts:
    """The answer with one more row, or one that begins with it."""
    try:
        parts = parts or AnswerParts(line, cells)
        parts.add(cells)
    except ValueError as error:
        raise _unusable(path, line, str(error)) from error
    return parts


def answer_from_parts(path: Path, parts: AnswerParts) -> StoredAnswer:
    try:
        return parts.to_answer()
    except ValueError as error:
        raise _unusable(path, parts.line, str(error)) from error


def _not_whole(path: Path, parts: AnswerParts) -> InputError:
    found = f"has {parts.rows} rows, wanted {parts.rows_wanted()}, and {len(parts.sources)} sources"
    return _unusable(path, parts.line, f"the answer {parts.answer_id!r} {found}, wanted {len(parts.citations)}")


def _unusable(path: Path, line: int, what: str) -> InputError:
    return InputError(f"{str(path)!r}, line {line}: {what}. Run `citejury pipeline check` on the file.")


class WholeAnswer(NamedTuple):
    """An answer whose rows are all there, and where they stand in the file: from byte `start` up to `end`."""

    parts: AnswerParts
    start: int
    end: int


def whole_answers(path: Path) -> Iterator[StoredAnswer]:
    """The answers of a file that may end in a torn one, but for that."""
    end = header_end(path)
    return (answer_from_parts(path, found.parts) for found in (find_whole_answers(path, end) if end else ()))


def header_end(path: Path) -> int:
    """The byte after the header of a file; 0 where it is torn, an InputError where it is another."""
    header = stored_bytes(path, HEADER)
    with open(path, "rb") as file:
        beginning = file.read(len(header))
        if beginning == header:
            return len(header)
        if header.startswith(beginning):
            return 0
        if csv_lines.is_packed(path):
            return _packed_header_end(path, file, beginning)
        return _plain_header_end(path, file)


def _plain_header_end(path: Path, file: BinaryIO) -> int:
    _, end, cells = next(_rows_with_ends(file), (1, 0, None))
    if cells is None or tuple(cells) != CSV_COLUMNS:
        raise _unusable(path, 1, "the header is not the 20 columns of CSV v2 in order")
    return end


def _packed_header_end(path: Path, file: BinaryIO, beginning: bytes) -> int:
    """The byte after the first frame, which holds the header alone, as another release of zstd may pack it."""
    frame = (
        next(csv_lines.read_frames(path, file), None)
        if csv_lines.first_length(path, beginning) == len(HEADER)
        else None
    )
    if frame is None:
        raise _packed_otherwise(path)
    _plain_header_end(path, io.BytesIO(frame.rows))
    return frame.end


def _packed_otherwise(path: Path) -> InputError:
    advice = "Unpack it with `zstd -d --rm`."
    return InputError(f"{str(path)!r} is packed, but not answer by answer as `pipeline ask --compress` does. {advice}")


def find_whole_answers(path: Path, start: int) -> Iterator[WholeAnswer]:
    """Each whole answer from byte `start` on, where one begins, but a torn one at the end; an InputError for others."""
    with open(path, "rb") as file:
        if csv_lines.is_packed(path):
            yield from (_answer_of_frame(path, frame) for frame in csv_lines.read_frames(path, file, start))
        else:
            yield from _find_in_rows(path, file, start)


def _answer_of_frame(path: Path, frame: csv_lines.Frame) -> WholeAnswer:
    found = list(_find_in_rows(path, io.BytesIO(frame.rows), 0))
    if len(found) != 1 or found[0].end != len(frame.rows):
        raise _packed_otherwise(path)
    return WholeAnswer(found[0].parts, frame.start, frame.end)


def _find_in_rows(path: Path, file: BinaryIO, start: int) -> Iterator[WholeAnswer]:
    current: AnswerParts | None = None
    begin = end = start
    torn_at = 0
    for line, row_end, cells in _rows_with_ends(file, start):
        if torn_at:
            raise _unusable(path, torn_at, "the row that begins here is damaged, although others follow")
        if cells is None:
            torn_at = line
            continue
        if current is None or cells[ANSWER_ID] != current.answer_id:
            if current is not None:
                if not current.is_whole():
                    raise _not_whole(path, current)
                yield WholeAnswer(current, begin, end)
            current, begin = None, end
        current = _with_row(path, line, cells, current)
        end = row_end
    if current is not None and current.is_whole() and _has_every_result(current):
        yield WholeAnswer(current, begin, end)


def _rows_with_ends(file: BinaryIO, start: int = 0) -> Iterator[tuple[int, int, list[str] | None]]:
    """Each row's first line, the byte after it, and its cells: None for a row that is damaged or has no line end."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 1))
    open_end = file.read() != b"\n"
    file.seek(start)
    damaged: list[int] = []
    rows = csv_lines.csv_reader(csv_lines.decoded_lines(file, lambda line, raw, at: damaged.append(line)))
    while True:
        line = rows.line_num + 1
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error:
            damaged.append(line)
            cells = [""]
        end = file.tell()
        torn = damaged or len(cells) != len(CSV_COLUMNS) or (open_end and end == size)
        if cells:
            yield line, end, None if torn else cells


def _has_every_result(parts: AnswerParts) -> bool:
    """Whether the last answer has all results of its payload: with one citation any number of them looks whole."""
    if parts.shared[MODEL_NAME] != RESULTS_OF or len(parts.citations) != 1:
        return True
    from pipeline.providers import read_payload

    try:
        return len(read_payload(RESULTS_OF, parts.shared[RAW_JSON]).search_results) <= len(parts.results)
    except ProviderError:
        return True


def error_bytes(error: ErrorLine) -> bytes:
    return (error.model_dump_json(exclude_defaults=True) + "\n").encode()

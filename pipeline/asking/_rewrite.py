"""A provider's file written anew, and its index with it: in another order, under zstd, or read by today's rules."""

from array import array
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, NamedTuple
from zlib import crc32

from pipeline.asking.index import (
    IndexHead,
    IndexLine,
    answer_line,
    as_bytes,
    head_line,
    index_file,
    keep_time,
    read_index,
    read_places,
)
from pipeline.csv_v2.file import HEADER, Place, cut_off, header_end, rows_as_bytes, stored_bytes
from pipeline.csv_v2.packed import PACKED, pack
from pipeline.files import staged_file
from pipeline.providers.cost import Usage
from pipeline.schema import Answer, StoredAnswer

_PIECE = 1 << 20


class _Rewriting(NamedTuple):
    """A file that takes the place of another, and its index: answers go in one by one."""

    file: BinaryIO
    lines: BinaryIO

    def add(self, line: IndexLine, rows: bytes) -> None:
        """Add an answer by its line in the old index, and its rows as they are to stand in the file."""
        end = self.file.tell() + len(rows)
        self.file.write(rows)
        self.lines.write(as_bytes(line.model_copy(update={"end": end, "crc": crc32(rows)})))


def put_in_order(path: Path, answer_ids: Iterable[str]) -> None:
    """Put the answers in this order, those that it does not name last. The file is not touched where they stand so."""
    ends, lines = array("q"), array("q")
    rows: dict[str, int] = {}
    with open(index_file(path), "rb") as index:
        ends.append(IndexHead.model_validate_json(index.readline()).end)
        lines.append(index.tell())
        for raw in index:
            line = IndexLine.model_validate_json(raw)
            rows[line.answer_id] = len(ends) - 1
            ends.append(line.end)
            lines.append(lines[-1] + len(raw))
    order = array("q", (rows.pop(answer_id) for answer_id in answer_ids if answer_id in rows))
    order.extend(rows.values())
    if all(order[place] == place for place in range(len(order))):
        return
    with (
        open(path, "rb") as old,
        open(index_file(path), "rb") as index,
        staged_file(index_file(path)) as new_lines,
        staged_file(path) as new,
    ):
        new.write(old.read(ends[0]))
        new_lines.write(head_line(path, ends[0]))
        rewriting = _Rewriting(new, new_lines)
        for place in order:
            old.seek(ends[place])
            index.seek(lines[place])
            line = IndexLine.model_validate_json(index.readline())
            rewriting.add(line, old.read(ends[place + 1] - ends[place]))
    keep_time(path, index_file(path))


def begin_packed(path: Path) -> None:
    """Begin a file under zstd, which has no answer yet, where there is none."""
    if not path.is_file():
        with staged_file(path) as file:
            file.write(stored_bytes(path, HEADER))


def pack_file(path: Path) -> None:
    """Put a plain file whose index fits under zstd, answer by answer; the plain one and its index give way."""
    packed, index = path.with_name(path.name + PACKED), index_file(path)
    lines = read_index(path)
    with open(path, "rb") as old, staged_file(index) as new_lines:
        with staged_file(packed) as new:
            start = header_end(path)
            old.seek(start)
            header = pack(HEADER)
            new.write(header)
            new_lines.write(head_line(packed, len(header)))
            rewriting = _Rewriting(new, new_lines)
            for line in lines:
                rewriting.add(line, pack(old.read(line.end - start)))
                start = line.end
        path.unlink()
    keep_time(packed, index)


class Said(NamedTuple):
    """An answer as it is to stand in its file, and what its body says."""

    stored: StoredAnswer
    answer: Answer
    usage: Usage


def read_again(path: Path, read: Callable[[StoredAnswer], Said]) -> None:
    """Read every whole answer once, and write the index anew.

    The file is written anew, too, where `read` makes another answer of one, and else left as it is. A torn answer at
    the end is cut off; a file without any is removed.

    Raises:
        InputError: the file is not CSV v2, or is damaged before its last answer.
    """
    index, end = index_file(path), header_end(path)
    count = 0
    with ExitStack() as files:
        lines = files.enter_context(staged_file(index))
        lines.write(head_line(path, end))
        new: BinaryIO | None = None
        for stored, place in read_places(path, end) if end else ():
            said = read(stored)
            if new is None and said.stored is not stored:
                new = files.enter_context(staged_file(path))
                _copy(path, 0, place.start, new)
            if new is not None:
                place = _write_again(path, stored, said.stored, place, new)
            lines.write(answer_line(said.stored, place, said.answer, said.usage))
            count, end = count + 1, place.end
    cut_off(path, end)
    if count:
        keep_time(path, index)
    else:
        path.unlink()
        index.unlink()


def _write_again(path: Path, before: StoredAnswer, after: StoredAnswer, place: Place, new: BinaryIO) -> Place:
    """Write an answer, as it stood where it is the same, and give its place in the new file."""
    start = new.tell()
    if after is before:
        _copy(path, place.start, place.end, new)
        return Place(start, new.tell(), place.crc)
    rows = stored_bytes(path, rows_as_bytes(after))
    new.write(rows)
    return Place(start, new.tell(), crc32(rows))


def _copy(path: Path, start: int, end: int, new: BinaryIO) -> None:
    """Write the bytes of a file from `start` up to `end` into another."""
    with open(path, "rb") as old:
        old.seek(start)
        while start < end and (piece := old.read(min(end - start, _PIECE))):
            start += len(piece)
            new.write(piece)

"""The index of a provider's file: where each answer stands and what a run's summary tells of it.

It is derived from the file, so that a run goes on without reading answers again. It is believed as far as it fits: by
length and time of the file it was last written for, else by the CRC-32 of every answer. What it lacks is read from the
file. A file that is written anew, in another order, under zstd or read by today's rules, gets its index with it.

Source: pipeline/contracts/run_folder.md#index.
"""

import os
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple
from zlib import crc32

from pydantic import Field, ValidationError

from pipeline.asking.questions import Tell
from pipeline.core.errors import InputError, ProviderError
from pipeline.core.files import cut_off, staged_file
from pipeline.core.lines import PACKED, pack
from pipeline.core.prompts import text_digest
from pipeline.core.schema import PROVIDERS, Answer, Frozen, StoredAnswer
from pipeline.csv import file as csv_file
from pipeline.providers import get_provider
from pipeline.providers.cost import Usage, usage_of
from pipeline.providers.http.request import load_body, writable
from pipeline.records.citation_form import read_stored

_PIECE = 1 << 20


class IndexHead(Frozen):
    """The first line of an index."""

    kind: Literal["citejury index 2"] = "citejury index 2"
    """Says what it is, and of which form."""
    file: str
    """Name of the file that it is of."""
    end: int
    """The byte after the file's header."""


class IndexLine(Frozen):
    """One answer in an index."""

    answer_id: str
    """Id of the answer."""
    end: int
    """The byte after its rows; they begin where those of the answer before it end."""
    crc: int
    """CRC-32 of these bytes."""
    narrative_id: str
    """Id of the narrative."""
    prompt: str
    """sha256 of `answer_prompt`."""
    body: str
    """sha256 of `answer_raw_json`."""
    model_version: str
    """The model that answered."""
    stop_reason: str
    """Why it stopped, in the provider's word."""
    input_tokens: int
    """Tokens that went in, as the body states them."""
    output_tokens: int
    """Tokens that came out, as the body states them."""
    searches: int
    """Web searches that the body counts or lists."""
    stated_cost: float | None
    """What the answer cost as the body states it; null where it does not."""
    urls: tuple[str, ...]
    """The distinct cited URLs, in order."""
    places: tuple[tuple[int, str, int | None, int | None, str], ...]
    """Each occurrence of a citation: number of its URL from 1, title, first and last code point, quoted text."""
    longer: dict[str, str] = Field(default_factory=dict)
    """Of URLs with letters right behind them that may be prose: the URL with them."""
    unread: dict[str, int] = Field(default_factory=dict)
    """What looks like a citation and is none, by name, as `Answer` has it."""

    @property
    def usage(self) -> Usage:
        return Usage(self.input_tokens, self.output_tokens, self.searches, self.stated_cost)


def index_file(path: Path) -> Path:
    return path.with_name(f"{path.name.removesuffix(PACKED).removesuffix('.csv')}.index.jsonl")


def append_indexed(path: Path, stored: StoredAnswer, answer: Answer, usage: Usage) -> None:
    """Append an answer to its file, and then to the file's index; `answer` and `usage` are what its body says."""
    place = csv_file.append_answer(path, stored)
    index = index_file(path)
    with open(index, "ab") as file:
        head = b"" if file.tell() else _head_line(path, place.start)
        file.write(head + _answer_line(stored, place, answer, usage))
    _keep_time(path, index)


def _head_line(path: Path, end: int) -> bytes:
    return IndexHead(file=path.name, end=end).model_dump_json().encode() + b"\n"


def _answer_line(stored: StoredAnswer, place: csv_file.Place, answer: Answer, usage: Usage) -> bytes:
    numbers = {url: number for number, url in enumerate(stored.citations, start=1)}
    line = IndexLine(
        answer_id=stored.answer_id,
        end=place.end,
        crc=place.crc,
        narrative_id=writable(stored.narrative_id),
        prompt=text_digest(stored.answer_prompt),
        body=text_digest(stored.answer_raw_json),
        model_version=writable(stored.model_version),
        stop_reason=answer.stop_reason,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        searches=usage.searches,
        stated_cost=usage.stated_cost,
        urls=stored.citations,
        longer={each.url: each.longer for each in answer.occurrences if each.longer and each.url in numbers},
        unread=answer.unread,
        places=tuple(
            (numbers[each.url], each.title, each.start, each.end, each.cited_text)
            for each in answer.occurrences
            if each.url in numbers
        ),
    )
    return line.model_dump_json().encode() + b"\n"


def _keep_time(path: Path, index: Path) -> None:
    """Give the index the time of the file that it fits: another time says that one of the two was changed."""
    time = path.stat().st_mtime_ns
    os.utime(index, ns=(time, time))


class _Fit(NamedTuple):
    """The answers that an index has, up to byte `end` of the file and `length` of the index, 0 where it is another's.

    It is `believed` where the file has the time of the index, so that the answers needed no look.
    """

    ids: set[str]
    end: int = 0
    length: int = 0
    believed: bool = False


def _fit(path: Path) -> _Fit:
    ids: set[str] = set()
    if not index_file(path).is_file():
        return _Fit(ids)
    length, end = 0, csv_file.header_end(path)
    with open(index_file(path), "rb") as index, open(path, "rb") as file:
        of_file, of_index = os.fstat(file.fileno()), os.fstat(index.fileno())
        believed = of_file.st_mtime_ns == of_index.st_mtime_ns
        file.seek(end)
        for raw in index if index.readline() == _head_line(path, end) else ():
            try:
                line = IndexLine.model_validate_json(raw)
            except ValidationError:
                break
            known = all(1 <= place[0] <= len(line.urls) for place in line.places)
            if not raw.endswith(b"\n") or not known or not end < line.end <= of_file.st_size:
                break
            if not believed and _crc(file, line.end - end) != line.crc:
                break
            ids.add(line.answer_id)
            length, end = index.tell(), line.end
    return _Fit(ids, end, length, believed) if ids else _Fit(ids)


def _crc(file: BinaryIO, size: int) -> int:
    crc = 0
    while size and (piece := file.read(min(size, _PIECE))):
        size -= len(piece)
        crc = crc32(piece, crc)
    return crc


def sync_index(path: Path, tell: Tell = lambda line: None) -> set[str]:
    """Bring the index up to its file, and give the ids of the file's whole answers.

    A torn answer at the end of the file is cut off; a file without any is removed. `tell` hears of answers that have to
    be read. An InputError where the file is not CSV v2, or damaged before its last answer.
    """
    index = index_file(path)
    if not path.is_file():
        index.unlink(missing_ok=True)
        return set()
    fit = _fit(path)
    is_whole = fit.ids and fit.end == path.stat().st_size and fit.length == index.stat().st_size
    if not (fit.believed and is_whole):
        fit = _read_rest(path, fit, tell)
    if not fit.ids:
        path.unlink()
        index.unlink(missing_ok=True)
    return fit.ids


def _read_rest(path: Path, fit: _Fit, tell: Tell) -> _Fit:
    index, ids = index_file(path), set(fit.ids)
    end = fit.end or csv_file.header_end(path)
    if fit.length:
        os.truncate(index, fit.length)
    elif end:
        with staged_file(index) as file:
            file.write(_head_line(path, end))
    if end and not fit.length and path.stat().st_size > end:
        tell(f"{path.name}: its index is missing or of another file, so its answers are read once.")
    try:
        with open(index, "ab") as file:
            for stored, place in _read_places(path, end) if end else ():
                try:
                    body: Any = load_body(stored.answer_raw_json)
                    usage = get_provider(stored.model_name).usage if stored.model_name in PROVIDERS else usage_of
                    said = read_stored(stored, body), usage(body)
                except ProviderError:
                    said = read_stored(stored), Usage()
                file.write(_answer_line(stored, place, *said))
                ids.add(stored.answer_id)
                end = place.end
    except InputError:
        if not fit.length:
            raise
        return _read_rest(path, _Fit(set()), tell)  # from the beginning, so that the message has the right line
    cut_off(path, end)
    _keep_time(path, index)
    return _Fit(ids, end)


def _read_places(path: Path, start: int) -> Iterator[tuple[StoredAnswer, csv_file.Place]]:
    with open(path, "rb") as file:
        for found in csv_file.find_whole_answers(path, start):
            file.seek(found.start)
            stored = csv_file.answer_from_parts(path, found.parts)
            yield stored, csv_file.Place(found.start, found.end, _crc(file, found.end - found.start))


def whole_ids(path: Path) -> set[str]:
    """The ids of the whole answers of a file, of which nothing is changed; none where it is missing."""
    if not path.is_file():
        return set()
    fit = _fit(path)
    end = fit.end or csv_file.header_end(path)
    return fit.ids | {found.parts.answer_id for found in csv_file.find_whole_answers(path, end)} if end else set()


def read_index(path: Path) -> Iterator[IndexLine]:
    """The lines of the index of a file, in the order of its answers; the index is one that `sync_index` has seen."""
    with open(index_file(path), "rb") as index:
        index.readline()
        for raw in index:
            yield IndexLine.model_validate_json(raw)


def read_unmarked(path: Path) -> Iterator[StoredAnswer]:
    """The answers without a citation at a place of their text, among which are those without text.

    All answers, where the index does not tell of all of them.
    """
    if path.suffix != ".csv" or cited_urls(path) is None:
        yield from csv_file.read_answers(path)
        return
    start = csv_file.header_end(path)
    for line in read_index(path):
        if all(first is None for _, _, first, _, _ in line.places):
            yield next(_read_places(path, start))[0]
        start = line.end


def cited_urls(path: Path) -> Iterator[tuple[str, ...]] | None:
    """The cited URLs of each answer of a file, by its index; None where that does not tell of all of them."""
    fit = _fit(path)
    return (line.urls for line in read_index(path)) if fit.ids and fit.end == path.stat().st_size else None


class _Rewriting(NamedTuple):
    file: BinaryIO
    lines: BinaryIO

    def add(self, line: IndexLine, rows: bytes) -> None:
        end = self.file.tell() + len(rows)
        self.file.write(rows)
        moved = line.model_copy(update={"end": end, "crc": crc32(rows)})
        self.lines.write(moved.model_dump_json().encode() + b"\n")


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
        new_lines.write(_head_line(path, ends[0]))
        rewriting = _Rewriting(new, new_lines)
        for place in order:
            old.seek(ends[place])
            index.seek(lines[place])
            line = IndexLine.model_validate_json(index.readline())
            rewriting.add(line, old.read(ends[place + 1] - ends[place]))
    _keep_time(path, index_file(path))


def begin_packed(path: Path) -> None:
    if not path.is_file():
        with staged_file(path) as file:
            file.write(csv_file.stored_bytes(path, csv_file.HEADER))


def pack_file(path: Path) -> None:
    """Put a plain file whose index fits under zstd, answer by answer; the plain one and its index give way."""
    packed, index = path.with_name(path.name + PACKED), index_file(path)
    lines = read_index(path)
    with open(path, "rb") as old, staged_file(index) as new_lines:
        with staged_file(packed) as new:
            start = csv_file.header_end(path)
            old.seek(start)
            header = pack(csv_file.HEADER)
            new.write(header)
            new_lines.write(_head_line(packed, len(header)))
            rewriting = _Rewriting(new, new_lines)
            for line in lines:
                rewriting.add(line, pack(old.read(line.end - start)))
                start = line.end
        path.unlink()
    _keep_time(packed, index)


class Said(NamedTuple):
    """An answer as it is to stand in its file, and what its body says."""

    stored: StoredAnswer
    answer: Answer
    usage: Usage


def read_again(path: Path, read: Callable[[StoredAnswer], Said]) -> None:
    """Read every whole answer once, and write the index anew.

    The file is written anew, too, where `read` makes another answer of one, and else left as it is. A torn answer at
    the end is cut off; a file without any is removed.
    """
    index, end = index_file(path), csv_file.header_end(path)
    count = 0
    with ExitStack() as files:
        lines = files.enter_context(staged_file(index))
        lines.write(_head_line(path, end))
        new: BinaryIO | None = None
        for stored, place in _read_places(path, end) if end else ():
            said = read(stored)
            if new is None and said.stored is not stored:
                new = files.enter_context(staged_file(path))
                _copy(path, 0, place.start, new)
            if new is not None:
                start, crc = new.tell(), place.crc
                if said.stored is stored:
                    _copy(path, place.start, place.end, new)
                else:
                    rows = csv_file.stored_bytes(path, csv_file.rows_as_bytes(said.stored))
                    new.write(rows)
                    crc = crc32(rows)
                place = csv_file.Place(start, new.tell(), crc)
            lines.write(_answer_line(said.stored, place, said.answer, said.usage))
            count, end = count + 1, place.end
    cut_off(path, end)
    if count:
        _keep_time(path, index)
    else:
        path.unlink()
        index.unlink()


def _copy(path: Path, start: int, end: int, new: BinaryIO) -> None:
    with open(path, "rb") as old:
        old.seek(start)
        while start < end and (piece := old.read(min(end - start, _PIECE))):
            start += len(piece)
            new.write(piece)

"""CSV as text: UTF-8 with or without a byte order mark, cells of any size, rows with their lines; and zstd.

Under zstd CSV v2 is a frame for the header, and one for the rows of each answer. Frames behind each other are one file
to zstd, to pandas and to every reader here; each can be read, moved or cut off by itself.

Source: pipeline/contracts/csv_v2.md#compressed-files.
"""

import codecs
import csv
import io
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from pipeline.core.errors import EncodingError, InputError, TornFrameError

if TYPE_CHECKING:
    from _csv import Reader

    from zstandard import ZstdCompressor

_DELIMITERS = (",", ";", "\t")  # a German Excel saves the second
_SAMPLE = 1 << 16
_KANA = re.compile("[ぁ-ヿ][ぁ-ヿ一-鿿]|[一-鿿][ぁ-ヿ]")  # what other scripts do not read as by chance
# Rows of accents, and capitals and signs within words, as which Cyrillic, Chinese, Mac Roman or Polish would read.
_NO_WESTERN = re.compile(
    r"[À-ÿ]{3}|[¢-¾]{2}|\b[†‡ˆ‰][a-z]|"
    r"[a-zß-ÿœšž](?:[À-ÞŠŒŽŸ]|[¹²³ªº][a-z]|[^\x00-\x7f\w‘’–—\xa0\xad·][a-zß-ÿ])"
)
_TOLD_DELIMITER = re.compile(r"""sep=([^\w\s"']|\t)""", re.IGNORECASE)  # Excel's own first line


def decoded_lines(file: Iterable[bytes], damaged: Callable[[int, bytes, int], str | None]) -> Iterator[str]:
    """The physical lines of a file in UTF-8 with their own line ends, without a byte order mark.

    A line ends at `\\n`, `\\r\\n` or a lone `\\r`, as `csv` counts them. For a line that is not UTF-8 `damaged` is told
    its number, its bytes and the place of the first bad one; it may return a text, else these bytes become U+FFFD.
    """
    number = 0
    for raw in file:
        pieces = [raw] if raw.find(b"\r", 0, -2) < 0 and raw.endswith(b"\n") else raw.splitlines(keepends=True)
        for piece in pieces:
            number += 1
            if number == 1:
                piece = piece.removeprefix(BOM_UTF8)
            try:
                yield piece.decode()
            except UnicodeDecodeError as error:
                yield damaged(number, piece, error.start) or piece.decode(errors="replace")


def csv_reader(lines: Iterator[str], delimiter: str = ",") -> "Reader":
    """The strict reader of such lines: a quote out of place or never closed is a `csv.Error`."""
    # Two recorded Claude bodies exceed the default of 131,072 characters; a larger one overflows a C long on Windows.
    # https://docs.python.org/3/library/csv.html#csv.field_size_limit
    csv.field_size_limit(2**31 - 1)
    return csv.reader(lines, strict=True, delimiter=delimiter)


def numbered_rows(path: Path, delimiter: str = ",", encoding: str = "") -> Iterator[tuple[int, list[str]]]:
    """Each row of a CSV file with the physical line on which it begins, counted from 1; empty lines are no rows.

    An `encoding` by Python's name is for files of spreadsheets; CSV v2 is UTF-8. An InputError says what cannot be
    read, and where.
    """

    def refuse(line: int, raw: bytes, at: int) -> None:
        found = f"{str(path)!r}, line {line}, byte {at + 1}: found 0x{raw[at]:02x}, which is not UTF-8"
        raise _encoding_error(found, likely_encoding(raw + file.read(_SAMPLE) + file.readline()))

    with open_csv(path) as file:
        rows = csv_reader(_text_lines(path, encoding) if encoding else decoded_lines(file, refuse), delimiter)
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
            ending = "of a frame, wanted the rest of the answer. Run `citejury pipeline check` on it."
            raise InputError(f"{str(path)!r}, line {line}: found the end of the file in the middle {ending}") from error


def _encoding_error(found: str, likely: "Encoding") -> EncodingError:
    looks = f"it looks like {likely.name}" if likely.name else "what it is in cannot be told"
    how = f"in Excel as `CSV UTF-8`, or with `iconv -f {likely.iconv or 'NAME'} -t UTF-8 OLD > NEW`"
    return EncodingError(f"{found}; {looks}. Save the file as UTF-8: {how}.", likely.name, likely.iconv.lower())


def _text_lines(path: Path, encoding: str) -> Iterator[str]:
    """The lines in another encoding than UTF-8, without a byte order mark."""
    number = 0
    try:
        with open_csv(path) as file, io.TextIOWrapper(file, encoding, newline="") as text:
            for number, line in enumerate(text, start=1):
                yield line.removeprefix("\ufeff") if number == 1 else line
    except UnicodeError as error:
        raise InputError(
            f"{str(path)!r} is not {encoding}: what follows line {number} cannot be read ({error}). Name the file's "
            "own encoding with `--encoding`, or save it as UTF-8."
        ) from error


def table_rows(path: Path, column: str, encoding: str = "") -> Iterator[tuple[int, list[str]]]:
    """The rows of a file that a spreadsheet may have written, header first: whatever parts its cells, without `sep=`.

    UTF-16 and UTF-32 are read as they are; another `encoding` than UTF-8 has to be named.
    """
    encoding = encoding or _told_encoding(path)
    delimiter = _delimiter_of(path, column, encoding)
    rows = numbered_rows(path, delimiter=delimiter, encoding=encoding)
    first = next(rows, None)
    if first and not _TOLD_DELIMITER.fullmatch(delimiter.join(first[1])):
        yield first
    yield from rows


def header_key(name: str) -> str:
    """A column's name without what people and spreadsheets change: case, blanks, underscores, byte order marks."""
    return "".join(name.replace("\ufeff", "").replace("_", "").split()).casefold()


def _delimiter_of(path: Path, column: str, encoding: str) -> str:
    """What parts the cells: by a line `sep=`, else the first by which the header names the column, or most used."""
    widths = dict.fromkeys(_DELIMITERS, 0)
    for delimiter in _DELIMITERS:
        try:
            _, header = next(numbered_rows(path, delimiter=delimiter, encoding=encoding), (1, []))
        except InputError:  # quoted by another delimiter; what is wrong by all of them is told when the rows are read
            continue
        if told := _TOLD_DELIMITER.fullmatch(delimiter.join(header)):
            return told[1]
        if header_key(column) in map(header_key, header):
            return delimiter
        widths[delimiter] = len(header)
    return max(widths, key=lambda delimiter: widths[delimiter])


def _told_encoding(path: Path) -> str:
    """Python's name of the UTF-16 or UTF-32 that the file is in, by its mark or zeros; empty where it is neither."""
    with open_csv(path) as file:
        sample = file.read(_SAMPLE)
    if re.search(rb"\x1b\$[@B]", sample):  # it has no byte beyond ASCII
        raise _encoding_error(f"{str(path)!r} is not UTF-8", Encoding("ISO-2022-JP", "ISO-2022-JP"))
    start = sample[:4096]
    if start.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    even, odd = start[::2].count(0), start[1::2].count(0)
    most = len(start) // 8  # every other byte of ASCII letters, which a header has at the least
    return "utf-16-le" if odd > most > even else "utf-16-be" if even > most > odd else ""


def known_encoding(name: str) -> str:
    """The name by which Python knows an encoding of texts; an InputError for another one."""
    try:
        found = codecs.lookup(name)
        "".encode(found.name)
    except (LookupError, ValueError) as error:
        raise InputError(f"There is no encoding {name!r}; give one such as `cp1252`, `cp932` or `utf-16`.") from error
    return "" if found.name in ("utf-8", "utf-8-sig") else found.name


def by_lines(found: Mapping[str, Sequence[int]], word: str = "line") -> list[str]:
    """A sentence for each finding, after the lines that it concerns."""
    sentences = []
    for sentence, lines in found.items():
        more = f" and {len(lines) - 20:,} more" if len(lines) > 20 else ""
        where = f"{word}{'s' * (len(lines) > 1)} {', '.join(map(str, lines[:20]))}{more}"
        sentences.append(f"{where}: {sentence}")
    return sentences


def open_csv(path: Path) -> BufferedReader:
    """The file open for reading, unpacked; an InputError where it is missing or a folder."""
    try:
        return io.BufferedReader(_Unpacked(path), _PIECE) if is_packed(path) else open(path, "rb")
    except FileNotFoundError as error:
        raise InputError(f"There is no file {str(path)!r}; look at the path.") from error
    except IsADirectoryError as error:
        raise InputError(f"{str(path)!r} is a folder; name a CSV file.") from error


class Encoding(NamedTuple):
    """An encoding by the name that people know and by the one that iconv knows."""

    name: str
    iconv: str


def likely_encoding(raw: bytes) -> Encoding:
    """The encoding of lines that are not UTF-8, by what they read as; without a name where that does not tell."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return Encoding("UTF-16", "UTF-16")
    for name, iconv in (("Shift-JIS", "CP932"), ("EUC-JP", "EUC-JP"), ("Windows-1252", "WINDOWS-1252")):
        try:
            text = raw.decode(iconv)
        except UnicodeDecodeError:
            continue
        kanji, others = (len(re.findall(letters, text)) for letters in ("[一-鿿]", "[A-Za-z｡-ﾟ]"))
        is_kanji = name == "Shift-JIS" and kanji > others  # EUC-JP without kana may be Chinese or Korean as well
        if not _NO_WESTERN.search(text) if name == "Windows-1252" else _KANA.search(text) or is_kanji:
            return Encoding(name, iconv)
    return Encoding("", "")


PACKED = ".zst"
_MAGIC = b"\x28\xb5\x2f\xfd"  # How a frame begins: RFC 8878, 3.1.1
_PIECE = 1 << 17


def is_packed(path: Path) -> bool:
    return path.suffix.lower() == PACKED


def pack(rows: bytes) -> bytes:
    return _compressor().compress(rows)


@cache
def _compressor() -> "ZstdCompressor":
    from zstandard import ZstdCompressor

    return ZstdCompressor(level=3, write_checksum=True)  # zstd's default: repeated rows cost nothing at any level


class _Unpacked(io.RawIOBase):
    """What is packed: a TornFrameError where the last frame is cut off, an InputError for damage."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = open(path, "rb")  # noqa: SIM115 - closed by `close`
        self._pieces = self._unpack()
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "bytearray | memoryview") -> int:  # type: ignore[override]
        while not self._ready:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._ready = memoryview(piece)
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def _unpack(self) -> Iterator[bytes]:
        from zstandard import ZstdDecompressor, ZstdError

        unpacking = ZstdDecompressor()
        frame, piece = unpacking.decompressobj(), self._file.read(_PIECE)
        begun = False
        while piece:
            try:
                found = frame.decompress(piece)
            except ZstdError as error:
                ending = "it is damaged, or not under zstd. `zstd -t` says more."
                raise InputError(f"{str(self._path)!r} cannot be unpacked ({error}): {ending}") from error
            begun = not frame.eof
            rest = frame.unused_data
            if frame.eof:
                frame = unpacking.decompressobj()
            yield found
            piece = rest or self._file.read(_PIECE)
        if begun:
            raise TornFrameError(f"{str(self._path)!r} ends in the middle of an answer.")

    def close(self) -> None:
        self._file.close()
        super().close()


class Frame(NamedTuple):
    """What one frame holds, and where it stands in the file: from byte `start` up to `end`."""

    rows: bytes
    start: int
    end: int


def read_frames(path: Path, file: BinaryIO, start: int = 0) -> Iterator[Frame]:
    """Each whole frame from byte `start` but one that the file's end cuts off; an InputError for damage before."""
    from zstandard import ZstdDecompressor, ZstdError

    unpacking = ZstdDecompressor()
    file.seek(start)
    rest = b""
    while True:
        frame = unpacking.decompressobj()
        pieces: list[bytes] = []
        end = start
        while not frame.eof:
            piece = rest or file.read(_PIECE)
            rest = b""
            if not piece:
                return
            end += len(piece)
            try:
                pieces.append(frame.decompress(piece))
            except ZstdError as error:
                if _frame_follows(file, start):
                    raise InputError(
                        f"{str(path)!r} is damaged: what begins at byte {start:,} cannot be unpacked ({error}), "
                        "although more follows. Put back a copy of the file."
                    ) from error
                return
        rest = frame.unused_data
        end -= len(rest)
        yield Frame(b"".join(pieces), start, end)
        start = end


def first_length(path: Path, beginning: bytes) -> int:
    """How many bytes the first frame holds, by the beginning of a file; -1 where it does not say."""
    from zstandard import ZstdError, frame_content_size

    try:
        return frame_content_size(beginning)
    except ZstdError as error:
        raise InputError(f"{str(path)!r} is not under zstd, as its name says ({error}).") from error


def _frame_follows(file: BinaryIO, start: int) -> bool:
    file.seek(start + len(_MAGIC))
    before = b""
    while piece := file.read(_PIECE):
        if _MAGIC in before + piece:
            return True
        before = piece[-len(_MAGIC) + 1 :]
    return False

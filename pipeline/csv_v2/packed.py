"""CSV v2 under zstd: a frame for the header, and one for the rows of each answer.

Frames behind each other are one file to zstd, to pandas and to every reader here; each can be read, moved or cut off
by itself. Source: pipeline/contracts/csv_v2.md#compressed-files.
"""

import io
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from pipeline.errors import InputError, TornFrameError

if TYPE_CHECKING:
    from zstandard import ZstdCompressor

PACKED = ".zst"
_LEVEL = 3
"""zstd's own default: a row that is repeated costs next to nothing at any level."""
_MAGIC = b"\x28\xb5\x2f\xfd"
"""How a frame begins: RFC 8878, 3.1.1."""
_PIECE = 1 << 17


def is_packed(path: Path) -> bool:
    """Whether the file is one under zstd, by its name."""
    return path.suffix.lower() == PACKED


def pack(rows: bytes) -> bytes:
    """The bytes as one frame, with their length and checksum."""
    return _compressor().compress(rows)


@cache
def _compressor() -> "ZstdCompressor":
    """The compressor, which has tables of its own that are costly to make."""
    from zstandard import ZstdCompressor

    return ZstdCompressor(level=_LEVEL, write_checksum=True)


def open_packed(path: Path, end: int | None = None) -> io.BufferedReader:
    """What is packed in the file, or in its bytes before `end`, as a stream.

    Raises:
        FileNotFoundError, IsADirectoryError: there is no such file. The stream raises TornFrameError where the last
            frame is cut off, behind all that the others hold, and InputError where the file is damaged.
    """
    return io.BufferedReader(_Unpacked(path, end), _PIECE)


class _Unpacked(io.RawIOBase):
    """The stream behind `open_packed`."""

    def __init__(self, path: Path, end: int | None) -> None:
        self._path = path
        self._file = open(path, "rb")  # noqa: SIM115 - closed by `close`
        self._left = os.fstat(self._file.fileno()).st_size if end is None else end
        self._pieces = self._unpack()
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: "bytearray | memoryview") -> int:  # type: ignore[override]
        """Fill the buffer as far as there is something.

        Raises:
            InputError: the file is damaged, cut off, or not under zstd.
        """
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
        """What is packed, piece by piece.

        Raises:
            InputError: the file is damaged, cut off, or not under zstd.
        """
        from zstandard import ZstdDecompressor, ZstdError

        unpacking = ZstdDecompressor()
        frame, piece = unpacking.decompressobj(), self._take()
        begun = False
        while piece:
            try:
                found = frame.decompress(piece)
            except ZstdError as error:
                raise InputError(
                    f"{str(self._path)!r} cannot be unpacked ({error}): it is damaged, or not under zstd. "
                    "`zstd -t` says more."
                ) from error
            begun = not frame.eof
            rest = frame.unused_data
            if frame.eof:
                frame = unpacking.decompressobj()
            yield found
            piece = rest or self._take()
        if begun:
            raise TornFrameError(f"{str(self._path)!r} ends in the middle of an answer.")

    def _take(self) -> bytes:
        """The next packed bytes."""
        found = self._file.read(min(_PIECE, self._left))
        self._left -= len(found)
        return found

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


class Frame(NamedTuple):
    """What one frame holds, and where it stands in the file: from byte `start` up to `end`."""

    rows: bytes
    start: int
    end: int


def read_frames(path: Path, file: BinaryIO, start: int = 0) -> Iterator[Frame]:
    """Each whole frame from byte `start`; one that the end of the file cuts off is left out.

    Raises:
        InputError: a frame is damaged, and others follow.
    """
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
    """How many bytes the first frame holds, by the beginning of a file; -1 where it does not tell.

    Raises:
        InputError: no frame begins there.
    """
    from zstandard import ZstdError, frame_content_size

    try:
        return frame_content_size(beginning)
    except ZstdError as error:
        raise InputError(f"{str(path)!r} is not under zstd, as its name says ({error}).") from error


def _frame_follows(file: BinaryIO, start: int) -> bool:
    """Whether another frame begins behind byte `start`."""
    file.seek(start + len(_MAGIC))
    before = b""
    while piece := file.read(_PIECE):
        if _MAGIC in before + piece:
            return True
        before = piece[-len(_MAGIC) + 1 :]
    return False

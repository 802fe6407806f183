"""Records that were read and checked, kept in a file without a name until they go in: what people have is read once."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import BinaryIO, NamedTuple

from pipeline.records import QueryResponse


class KeptRecords(NamedTuple):
    """The records, none of them in memory."""

    file: BinaryIO

    def keep(self, record: QueryResponse) -> None:
        """Keep one record more."""
        self.file.write(record.model_dump_json().encode("utf-8", "backslashreplace") + b"\n")

    def read(self, left_out: Collection[str] = ()) -> Iterator[QueryResponse]:
        """The records in their order, but those that are left out, by `record_uuid`."""
        self.file.seek(0)
        for line in self.file:
            record = QueryResponse.model_validate_json(line)
            if record.record_uuid not in left_out:
                yield record


@contextmanager
def kept_records() -> Iterator[KeptRecords]:
    """A place for records, gone with the block."""
    with TemporaryFile() as file:
        yield KeptRecords(file)

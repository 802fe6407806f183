"""Which records of the paths are pushed: those of a sample, or all but some."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from pipeline.csv_v2.lines import delimiter_of, numbered_rows
from pipeline.errors import InputError
from pipeline.tables import unescaped

_COLUMN = "record_uuid"


class RecordChoice(NamedTuple):
    """Which records go in."""

    wanted: frozenset[str] | None = None
    """`record_uuid` of each record of the sample; None where all are wanted."""
    excluded: frozenset[str] = frozenset()
    """`record_uuid` of each record that stays out."""

    def takes(self, record_uuid: str) -> bool:
        """Whether the record goes in."""
        return (self.wanted is None or record_uuid in self.wanted) and record_uuid not in self.excluded

    def missing_from(self, found: Iterable[str]) -> int:
        """How many wanted records are not among these."""
        return len((self.wanted or frozenset()) - self.excluded - frozenset(found))

    def unknown_to(self, found: Iterable[str]) -> int:
        """How many records that are to stay out are not among these."""
        return len(self.excluded - frozenset(found))


def read_choice(sample: Path | None, exclude: Path | None) -> RecordChoice:
    """The choice that two CSV files make; other columns of theirs are let be.

    Raises:
        InputError: a file is missing, is no CSV in UTF-8, lacks the column `record_uuid`, or names no record; or the
            one leaves nothing of the other.
    """
    choice = RecordChoice(_read_ids(sample) if sample else None, _read_ids(exclude) if exclude else frozenset())
    if choice.wanted is not None and choice.wanted <= choice.excluded:
        raise InputError(f"`{exclude}` excludes every record of `{sample}`, so none is left to push.")
    return choice


def _read_ids(path: Path) -> frozenset[str]:
    """The record ids of a file, as a spreadsheet may have saved it.

    Raises:
        InputError: it is missing, is no CSV in UTF-8, lacks the column, or names no record.
    """
    rows = numbered_rows(path, delimiter=delimiter_of(path, _COLUMN))
    _, names = next(rows, (1, []))
    header = [name.strip() for name in names]
    if header.count(_COLUMN) != 1:
        raise InputError(
            f"`{path}` needs the column `{_COLUMN}` once, found it {header.count(_COLUMN)} times. Name the "
            "sample.csv that `citejury annotation plan` wrote, or any CSV file with that column."
        )
    place = header.index(_COLUMN)
    found = set()
    for line, cells in rows:
        if len(cells) != len(header) or not cells[place].strip():
            raise InputError(f"`{path}`, line {line}: there is no record in the column `{_COLUMN}`. Mend the line.")
        found.add(unescaped(cells[place].strip()))
    if not found:
        raise InputError(f"`{path}` names no record: a header and no rows.")
    return frozenset(found)

"""Where the records of an export come from: `provenance.csv` (exports/contracts/csv.md#provenance)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple, get_args

from annotation.display import hidden_metadata
from exports.csv.folder import PROVENANCE_FILE
from exports.csv.tables import Piece, csv_line
from exports.schema import PROVENANCE_COLUMNS
from pipeline.records import SourceState
from pipeline.tables import spreadsheet_cell

_TOLD = PROVENANCE_COLUMNS[1:]
_STATES: tuple[SourceState, ...] = get_args(SourceState)
_LACKING = {
    "model_name": "cannot be told apart by provider",
    "narrative_id": "cannot be compared by narrative",
}
"""What an empty cell means, in words, for the columns that results rest on."""


def provenance_cells(record: Mapping[str, Any]) -> tuple[str, ...]:
    """What a record on the server tells of where it comes from: the columns behind `record_uuid`, empty where unknown.

    Raises:
        ArgillaError: the record is not one of ours.
    """
    hidden = hidden_metadata(record)
    known = {**(hidden.get("provenance") or {}), "language": hidden.get("language") or "und"}
    states = hidden.get("sources")
    if isinstance(states, dict):
        known |= {f"n_{state}": states.get(state, 0) for state in _STATES}
        known["n_sources"] = sum(states.values())
    return tuple(str(known.get(column, "")) for column in _TOLD)


class MergedProvenance(NamedTuple):
    """What all datasets together tell of one record."""

    record_uuid: str
    cells: Mapping[str, str]
    """The columns behind `record_uuid`, by name."""
    contradicted: tuple[str, ...]
    """Columns in which two datasets tell different things."""


def merge_provenance(told: Iterable[tuple[str, Sequence[str]]]) -> Iterator[MergedProvenance]:
    """One row for each record, given what each dataset tells of it, in order of records.

    The fullest comes first, what it lacks comes from the others.
    """
    for record_uuid, group in groupby(told, key=itemgetter(0)):
        by_fullness = sorted({tuple(cells) for _, cells in group}, key=lambda cells: (-sum(map(bool, cells)), cells))
        columns = dict(zip(_TOLD, zip(*by_fullness, strict=True), strict=True))
        yield MergedProvenance(
            record_uuid,
            {name: next(filter(None, column), "") for name, column in columns.items()},
            tuple(name for name, column in columns.items() if len({*filter(None, column)}) > 1),
        )


def provenance_pieces(merged: Iterable[MergedProvenance], spreadsheet_safe: bool) -> Iterator[Piece]:
    """The line of each row; its note names the columns that it lacks, then those that are contradicted."""
    for record_uuid, cells, contradicted in merged:
        row = [record_uuid, *cells.values()]
        line = csv_line([spreadsheet_cell(cell) for cell in row] if spreadsheet_safe else row)
        lacking = [name for name in _LACKING if not cells[name]]
        note = f"{','.join(lacking)};{','.join(contradicted)}" if lacking or contradicted else ""
        yield Piece(record_uuid, 0, "", (), 1, line, note)


class ProvenanceGaps:
    """What provenance lacks and where it contradicts itself, counted row by row as it is written."""

    def __init__(self) -> None:
        """Begin without rows."""
        self.records = 0
        self.lacking = dict.fromkeys(_LACKING, 0)
        self.contradicted = 0
        """Records that two datasets tell different things of."""
        self._first = ""

    def count(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """The same pieces, each counted."""
        for piece in pieces:
            self.records += piece.rows
            if piece.note:
                lacking, contradicted = piece.note.split(";")
                for name in filter(None, lacking.split(",")):
                    self.lacking[name] += piece.rows
                self.contradicted += piece.rows if contradicted else 0
                self._first = self._first or (f"{piece.record_uuid} ({contradicted})" if contradicted else "")
            yield piece

    def warnings(self) -> list[str]:
        """Plain sentences about what was counted; empty where nothing is missing."""
        found = [
            f"{count:,} of {self.records:,} records have no {name} and {_LACKING[name]}. Push them again with their "
            f"provenance, or fill in {PROVENANCE_FILE}."
            for name, count in self.lacking.items()
            if count
        ]
        if self.contradicted:
            found.append(
                f"The datasets tell different things of where {self.contradicted:,} of {self.records:,} records come "
                f"from, such as {self._first}. {PROVENANCE_FILE} has what the fullest one tells."
            )
        return found

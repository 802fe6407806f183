"""The answers of a CSV v2 file in the order of the calls, moved as bytes: no answer is held in memory or read again."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from pipeline.csv_v2.file import HEADER, rows_with_ends
from pipeline.csv_v2.rows import ANSWER_ID
from pipeline.errors import InputError
from pipeline.staging import staged_file


class Span(NamedTuple):
    """Where the rows of one answer stand: from byte `start` up to byte `end`."""

    answer_id: str
    start: int
    end: int


def answer_spans(path: Path) -> Iterator[Span]:
    """Where each answer of a file stands whose rows are together, as a run writes them.

    Raises:
        InputError: a row is damaged.
    """
    with open(path, "rb") as file:
        rows = rows_with_ends(file)
        _, start, _ = next(rows)
        current, end = "", start
        for line, row_end, cells in rows:
            if cells is None:
                raise InputError(f"{str(path)!r}, line {line}: the row that begins here is damaged. Start again.")
            if cells[ANSWER_ID] != current:
                if current:
                    yield Span(current, start, end)
                current, start = cells[ANSWER_ID], end
            end = row_end
        if current:
            yield Span(current, start, end)


def put_in_order(path: Path, rank: Mapping[str, int]) -> None:
    """Nothing; the answers stand in the order of their ranks. The file is not touched where they do already."""
    spans = list(answer_spans(path))
    ordered = sorted(spans, key=lambda span: rank[span.answer_id])
    if ordered == spans:
        return
    with open(path, "rb") as old, staged_file(path) as new:
        new.write(HEADER)
        for span in ordered:
            old.seek(span.start)
            new.write(old.read(span.end - span.start))

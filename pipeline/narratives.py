"""The input: a CSV file of narratives, one a row, read whole so that everything wrong with it is told at once."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pipeline.csv_lines import numbered_rows
from pipeline.errors import BadRowsError, InputError
from pipeline.schema import Narrative

TEXT_COLUMNS = ("prompt", "narrative_prompt")
TYPE_COLUMN = "narrative_type"


def read_narratives(path: Path, id_column: str = "narrative_id", text_column: str | None = None) -> list[Narrative]:
    """The narratives in the order of the file, never none; other columns are ignored, ids may repeat.

    The text is in `text_column`, by default `prompt`, else `narrative_prompt`. A byte order mark, empty lines and cells
    of any size are fine.

    Raises:
        InputError: the file is missing, empty, not UTF-8 or not CSV, or lacks a column.
        BadRowsError: rows without text or id, ragged rows, or rows with a NUL character; every one is listed.
    """
    rows = numbered_rows(path)
    _, header = next(rows, (1, []))
    if not header:
        raise InputError(f"{str(path)!r} is empty; it needs a header with `{id_column}` and `{TEXT_COLUMNS[0]}`.")
    repeated = [name for name, count in Counter(header).items() if count > 1]
    if repeated:
        raise InputError(f"{str(path)!r} has the column {repeated[0]!r} more than once; rename all but one of them.")
    id_at = find_column(path, header, (id_column,), "--id-column")
    text_at = find_column(path, header, (text_column,) if text_column else TEXT_COLUMNS, "--text-column")
    type_at = header.index(TYPE_COLUMN) if TYPE_COLUMN in header else None
    narratives: list[Narrative] = []
    problems: list[str] = []
    for line, cells in rows:
        problem = row_problem(cells, header, id_at, text_at)
        if problem:
            problems.append(f"line {line}: {problem}")
            continue
        kind = cells[type_at] if type_at is not None else ""
        narratives.append(Narrative(narrative_id=cells[id_at], narrative_type=kind, prompt=cells[text_at], line=line))
    if problems:
        what = f"{len(problems)} rows that cannot be asked; mend or remove them" if len(problems) > 1 else "a bad row"
        raise BadRowsError(f"{str(path)!r} has {what}:", problems)
    if not narratives:
        raise InputError(f"{str(path)!r} has a header but no narratives; add a row for each.")
    return narratives


def find_column(path: Path, header: Sequence[str], names: Sequence[str], option: str) -> int:
    """The place of the first of the names that the header has.

    Raises:
        InputError: it has none of them.
    """
    for name in names:
        if name in header:
            return header.index(name)
    wanted = " or ".join(f"`{name}`" for name in names)
    found = ", ".join(repr(name) for name in header)
    raise InputError(f"{str(path)!r} has no column {wanted}; found {found}. Name the right one with `{option}`.")


def row_problem(cells: Sequence[str], header: Sequence[str], id_at: int, text_at: int) -> str:
    """Why the row cannot be asked; empty where it can."""
    if len(cells) != len(header):
        return f"cells found {len(cells)}, wanted {len(header)}"
    if not cells[id_at].strip():
        return f"the `{header[id_at]}` column is empty, every narrative needs an id"
    if not cells[text_at].strip():
        return f"the `{header[text_at]}` column is empty, every narrative needs a text"
    if any("\0" in cell for cell in cells):
        return "it holds a NUL character, which no text has"
    return ""

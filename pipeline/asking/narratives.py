"""The input: a CSV file of narratives, one a row, checked whole so that everything wrong with it is told at once.

Spreadsheets write CSV in their own ways: with `;` where the comma is for decimals, or with tabs. Those are read as they
are; their own formats are not, and the refusal says how to save the file.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from hashlib import file_digest
from pathlib import Path

from pipeline.core.errors import BadRowsError, InputError
from pipeline.core.lines import delimiter_of, numbered_rows, open_csv
from pipeline.core.schema import Frozen, Narrative

_TEXT_COLUMNS = ("prompt", "narrative_prompt")
# Such as `de`, `de-AT` or `pt_BR`.
_LANGUAGE_CODE = re.compile(r"([a-z]{2})(?:[-_].*)?", re.IGNORECASE | re.ASCII)


class NarrativesFile(Frozen):
    """The narratives that were asked."""

    file: str
    """Base name of the file."""
    sha256: str
    """Digest of its bytes."""
    rows: int
    """How many narratives it holds."""


class NarrativesCsv:
    """The narratives of a file that was found right, read from it anew at each pass and never held as a whole.

    They come in the order of the file, never none; other columns are ignored, ids may repeat. The text is in
    `text_column`, by default `prompt`, else `narrative_prompt`. Commas, semicolons or tabs between the columns, a byte
    order mark, empty lines and cells of any size are fine.
    """

    def __init__(self, path: Path, id_column: str = "narrative_id", text_column: str | None = None) -> None:
        """Check the file, whole, and count its narratives; an InputError or a BadRowsError says all that is wrong."""
        self.path = path
        self.columns = (id_column, text_column)
        problems: list[str] = []
        self.count = sum(1 for _ in _stream_narratives(path, id_column, text_column, problems.append))
        if problems:
            many = len(problems) > 1
            what = f"{len(problems)} rows that cannot be asked; mend or remove them" if many else "a bad row"
            raise BadRowsError(f"{str(path)!r} has {what}:", problems)
        if not self.count:
            raise InputError(f"{str(path)!r} has a header but no narratives; add a row for each.")
        with open(path, "rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
        # No path, which may name a person.
        self.file = NarrativesFile(file=path.name, sha256=digest, rows=self.count)

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Narrative]:
        return _stream_narratives(self.path, *self.columns, self.refuse)

    def refuse(self, problem: str) -> None:
        raise InputError(f"{str(self.path)!r} was changed while it was read: {problem}.")


def _stream_narratives(
    path: Path, id_column: str, text_column: str | None, bad_row: Callable[[str], None]
) -> Iterator[Narrative]:
    with open_csv(path) as file:
        if file.read(4) in (b"PK\x03\x04", b"\xd0\xcf\x11\xe0"):  # .xlsx, .ods and .numbers are archives; .xls
            raise InputError(
                f"{str(path)!r} is a spreadsheet and not CSV. Open it, choose `Save As` with the type `CSV UTF-8 "
                "(Comma delimited)` in Excel or `Text CSV` in LibreOffice, and name the file that this writes; `;` or "
                "tabs between the columns are fine."
            )
    rows = numbered_rows(path, delimiter=delimiter_of(path, id_column))
    _, header = next(rows, (1, []))
    id_at, text_at, kind_at, language_at = _find_columns(path, header, id_column, text_column)
    for line, cells in rows:
        problem = _row_problem(cells, header, id_at, text_at)
        if problem:
            bad_row(f"line {line}: {problem}")
            continue
        language = language_at is not None and _LANGUAGE_CODE.fullmatch(cells[language_at].strip())
        yield Narrative(
            narrative_id=cells[id_at],
            narrative_type=cells[kind_at] if kind_at is not None else "",
            language=language[1].lower() if language else "",
            prompt=cells[text_at],
            line=line,
        )


def _find_columns(
    path: Path, header: Sequence[str], id_column: str, text_column: str | None
) -> tuple[int, int, int | None, int | None]:
    """Where a narrative's id, text, type and language are in a row; the last two are None where there are none."""
    if not header:
        raise InputError(f"{str(path)!r} is empty; it needs a header with `{id_column}` and `{_TEXT_COLUMNS[0]}`.")
    repeated = [name for name, count in Counter(header).items() if count > 1]
    if repeated:
        raise InputError(f"{str(path)!r} has the column {repeated[0]!r} more than once; rename all but one of them.")
    ids, texts = (id_column,), (text_column,) if text_column else _TEXT_COLUMNS
    id_at, text_at = (next((header.index(name) for name in names if name in header), None) for names in (ids, texts))
    if id_at is None or text_at is None:
        lacking = [(ids, "--id-column")] * (id_at is None) + [(texts, "--text-column")] * (text_at is None)
        names = " and no column ".join(" or ".join(f"`{name}`" for name in each) for each, _ in lacking)
        found = ", ".join(map(repr, header))
        options = " and ".join(f"`{option}`" for _, option in lacking)
        raise InputError(f"{str(path)!r} has no column {names}; found {found}. Name the right one with {options}.")
    kind, language = (header.index(name) if name in header else None for name in ("narrative_type", "language"))
    return id_at, text_at, kind, language


def _row_problem(cells: Sequence[str], header: Sequence[str], id_at: int, text_at: int) -> str:
    if len(cells) != len(header):
        return f"cells found {len(cells)}, wanted {len(header)}"
    if not cells[id_at].strip():
        return f"the `{header[id_at]}` column is empty, every narrative needs an id"
    if not cells[text_at].strip():
        return f"the `{header[text_at]}` column is empty, every narrative needs a text"
    if any("\0" in cell for cell in cells):
        return "it holds a NUL character, which no text has"
    return ""

"""Rows under a heading, and the one writer of tables: for a terminal, Markdown and CSV."""

import csv
import io
import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from pipeline.core.terminal import printable

PART = "– "  # What stands before the name of a row that is a part of the row above

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\0", "\ufffd", "＝", "＋", "－", "＠")
"""What makes a cell a formula (CWE-1236), with what spreadsheets skip (line ends, NUL) and full-width forms."""

_GAP = 2
_PUNCTUATION = re.compile(r"([\\`*_{}\[\]|~$]|:(?=//))")
_LINKED = re.compile(r"([@#]|www(?=\.))", re.IGNORECASE)


class Table(NamedTuple):
    """Rows of plain text; each rendering takes the power from what its reader would take for more than text."""

    rows: Sequence[Sequence[object]]  # The cells of each row, as many in each; the first row is the heading
    left: int | None = None
    """How many columns stand flush left, before others of numbers that stand flush right; None for all."""

    def terminal(self, widths: Sequence[int] = (), room: int | None = None) -> str:
        """Lines whose columns stand under each other, characters of double width counted as two; empty without rows.

        Columns are at least as wide as `widths`, so that several tables look like one, and the widest ones are cut
        where a line would be wider than `room`.
        """
        from rich.cells import cell_len  # here, because commands import this module at their top

        texts, needed = (self if room is None else self._cut(room, widths))._measured(widths)
        lines = []
        for row in texts:
            blanks = [" " * (width - cell_len(text)) for width, text in zip(needed, row, strict=True)]
            cells = [
                text + blank if self.left is None or number < self.left else blank + text
                for number, (text, blank) in enumerate(zip(row, blanks, strict=True))
            ]
            lines.append((" " * _GAP).join(cells).rstrip())
        return "\n".join(lines)

    def _cut(self, room: int, widths: Sequence[int]) -> "Table":
        """The same with the widest columns cut until lines have at most `room` columns; `widths` as for `terminal`."""
        texts, needed = self._measured(widths)
        while sum(needed) + _GAP * (len(needed) - 1) > room:
            needed[needed.index(max(needed))] -= 1
        return self._replace(rows=[[cut_text(text, w) for text, w in zip(row, needed, strict=True)] for row in texts])

    def _measured(self, widths: Sequence[int]) -> tuple[list[list[str]], list[int]]:
        from rich.cells import cell_len

        texts = [[printable(str(cell)) for cell in row] for row in self.rows]
        needed = [max(map(cell_len, column)) for column in zip(*texts, strict=True)]
        return texts, [max(pair) for pair in zip_longest(needed, widths, fillvalue=0)]

    def markdown(self) -> str:
        head, *rows = (f"| {' | '.join(escape_markdown(str(cell)) for cell in row)} |" for row in self.rows)
        columns = len(self.rows[0])
        left = columns if self.left is None else self.left
        return "\n".join([head, "|---" * left + "|--:" * (columns - left) + "|", *rows])

    def csv(self, bom: bool = False) -> bytes:
        """RFC 4180 in UTF-8: lines end in CRLF, numbers are in full precision, None is an empty cell.

        Texts that a spreadsheet would take for formulas begin with an apostrophe.
        """
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        for row in self.rows:
            writer.writerow([spreadsheet_cell(cell) if isinstance(cell, str) else cell for cell in row])
        return text.getvalue().encode("utf-8-sig" if bom else "utf-8")


def cut_text(text: str, columns: int) -> str:
    """The text, cut to so many columns; characters of double width count as two."""
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= columns else f"{set_cell_size(text, columns - 1).rstrip()}…"


def escape_markdown(text: str) -> str:
    """The text as it stands, whatever is in it: no markup, HTML, link, mention or table cell can come of it.

    It is for the middle of a line. An empty comment parts `@`, `#` and `www` from what follows: GitHub makes a mention
    of a name even where its `@` is escaped.
    """
    text = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _LINKED.sub(r"\1<!-- -->", _PUNCTUATION.sub(r"\\\1", text))


def spreadsheet_cell(cell: str | int) -> str | int:
    """The cell, behind an apostrophe where a spreadsheet would run it as a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) else cell


def unescaped(text: str) -> str:
    """A cell without the apostrophe of `spreadsheet_cell`, so that a file for spreadsheets reads like any other."""
    return text[1:] if text[:1] == "'" and text.startswith(FORMULA_STARTS, 1) else text

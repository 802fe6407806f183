"""Rows of text under a heading, and their renderings for a terminal, for Markdown and for LaTeX."""

import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from pipeline.text.terminal import printable

_PUNCTUATION = re.compile(r"([\\`*_{}\[\]|~$]|:(?=//))")
_LINKED = re.compile(r"([@#]|www(?=\.))", re.IGNORECASE)

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedblright{}",
    "'": "{'}",
    "`": "{`}",
    "-": "{-}",
    "[": "{[}",
    "]": "{]}",
    "α": r"$\alpha$",
    "κ": r"$\kappa$",
    "⁺": r"$^{+}$",
    "⁻": r"$^{-}$",
    "…": "...",
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "’": r"\textquoteright{}",
    **dict.fromkeys("ÐÞðþ", "?"),
}


class Table(NamedTuple):
    """Rows of plain text; each rendering takes the power from what its reader would take for more than text."""

    rows: Sequence[Sequence[object]]
    """The cells of each row, as many in each; the first row is the heading."""
    left: int | None = None
    """How many columns stand flush left, before others of numbers that stand flush right; None for all."""

    def terminal(self, widths: Sequence[int] = (), gap: int = 2) -> str:
        """Lines whose columns stand under each other, characters of double width counted as two; empty without rows.

        Args:
            widths: how wide columns are at least, so that several tables look like one.
            gap: blanks between columns.
        """
        from rich.cells import cell_len  # here, because commands import this module at their top

        texts = [[printable(str(cell)) for cell in row] for row in self.rows]
        needed = [max(map(cell_len, column)) for column in zip(*texts, strict=True)]
        needed = [max(pair) for pair in zip_longest(needed, widths, fillvalue=0)]
        lines = []
        for row in texts:
            blanks = [" " * (width - cell_len(text)) for width, text in zip(needed, row, strict=True)]
            cells = [
                text + blank if self.left is None or number < self.left else blank + text
                for number, (text, blank) in enumerate(zip(row, blanks, strict=True))
            ]
            lines.append((" " * gap).join(cells).rstrip())
        return "\n".join(lines)

    def markdown(self) -> str:
        """A table as GitHub reads it."""
        head, *rows = (f"| {' | '.join(escape_markdown(str(cell)) for cell in row)} |" for row in self.rows)
        columns = len(self.rows[0])
        left = columns if self.left is None else self.left
        return "\n".join([head, "|---" * left + "|--:" * (columns - left) + "|", *rows])

    def latex(self) -> str:
        """The lines of a `tabular` below its heading, in which columns may have formulas; numbers with minus signs."""
        lines = []
        for row in self.rows[1:]:
            cells = [escape_latex(str(cell)) for cell in row]
            left = len(cells) if self.left is None else self.left
            cells[left:] = [cell.replace("{-}", "$-$") for cell in cells[left:]]
            lines.append(" & ".join(cells) + r" \\")
        return "\n".join(lines)


def escape_markdown(text: str) -> str:
    """The text as it stands, whatever is in it: no markup, HTML, link, mention or table cell can come of it.

    It is for the middle of a line. An empty comment parts `@`, `#` and `www` from what follows: GitHub makes a mention
    of a name even where its `@` is escaped.
    """
    text = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _LINKED.sub(r"\1<!-- -->", _PUNCTUATION.sub(r"\\\1", text))


def escape_latex(text: str) -> str:
    """The text as it stands, whatever is in it: no command, comment or column can come of it.

    Letters that the fonts pdfLaTeX loads by itself do not have become `?`.
    """
    return "".join(
        _LATEX.get(character, character if character.isascii() or "À" <= character <= "ÿ" else "?")
        for character in printable(text)
    )

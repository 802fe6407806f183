"""The page model: what a report says as plain values, and its writers for a terminal, Markdown and LaTeX.

Titles, cells and sentences hold names as they are: whoever writes them takes the power from them. LaTeX is that of
XeLaTeX and LuaLaTeX, in any script. `details_page` is the writer of HTML, which alone draws what is to be drawn:
`Strip`, `Ticks`, `Tile` and `Chart`.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.resources import files
from typing import Generic, Literal, NamedTuple, TypeAlias, TypeVar

from pipeline.core.tables import Table, escape_markdown
from pipeline.core.terminal import printable

REPORT_FILE, RESULTS_FILE = "report.html", "results.json"
Place = Literal["terminal", "page", "report"]
"""Where a page is shown: on 80 columns, in Markdown and notebooks, in HTML, which has more room and drawings."""
_Row = TypeVar("_Row")
_WIDTH = 80
_NO_SHEET_NAME, _SHEET_NAME = re.compile(r"[\[\]:*?/\\]|[^ -\uffff]"), 31  # characters that Excel takes
_WARNING = "! "
_KEPT = re.compile(r"\d %|\bp [<=] [.\d]+")  # where no line may end


class Axis(NamedTuple):
    low: float
    high: float

    def place(self, value: float) -> float:
        """As a share of the axis; what lies beyond an end is put on it."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)

    def percent(self, value: float) -> str:
        return f"{100 * self.place(value):.2f}%"

    def ticks(self, step: float) -> list[float]:
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [round(number * step, 6) for number in range(first, last + 1)]


SHARES = Axis(0.0, 1.0)


def alpha_axis(values: Iterable[float | None]) -> Axis:
    """From 0, or below it where a value is, to 1."""
    lowest = min((value for value in values if value is not None), default=0.0)
    return Axis(max(-1.0, min(0.0, math.floor(lowest * 5 - 1e-9) / 5)), 1.0)


def difference_axis(values: Iterable[float | None]) -> Axis:
    """With 0 in the middle, at least from -.1 to .1."""
    reach = max((abs(value) for value in values if value is not None), default=0.0)
    return Axis(-(end := max(0.1, math.ceil(reach * 10 - 1e-9) / 10)), end)


class Figure(NamedTuple):
    """A number in a cell or a sentence, with its interval and what it is of."""

    value: str
    interval: str = ""
    of: str = ""  # with what parts it from them
    why: str = ""
    """Why there is no number or no interval, where there is room for it: in HTML."""
    numbers: tuple[float | None, ...] = ()  # for spreadsheets: it, the ends of its interval, and of how many it is

    def __str__(self) -> str:
        return f"{self.value} {self.interval}".rstrip() + self.of


class Named(NamedTuple):
    """The head of a row, with what explains it in HTML; of several rows where it is the only cell that is not empty."""

    name: str
    note: str = ""
    heads_rows: bool = False

    def __str__(self) -> str:
        return self.name


Mark = Literal["grid", "zero", "threshold", "square", "diamond"]


class Strip(NamedTuple):
    """An estimate and its interval, drawn in one row: what it says aloud, what else is known, and where it lies."""

    said: str
    meaning: str
    axis: Axis
    value: float | None
    ends: tuple[float, float] | None = None
    marks: tuple[tuple[Mark, float], ...] = ()
    is_bar: bool = False


class Ticks(NamedTuple):
    """The numbers beneath a column of strips."""

    axis: Axis
    ticks: tuple[tuple[float, str], ...]


class Tile(NamedTuple):
    """A cell of a heat map: its text, how strong its colour is, from 0 to 1, and what it says aloud."""

    text: str
    strength: float | None
    said: str


Cell: TypeAlias = "str | Figure | Named | Strip | Ticks | Tile"
Rows: TypeAlias = "list[tuple[Cell, ...]]"


class Dot(NamedTuple):
    x: float  # as a share of the width
    y: float | None  # None where there is none: a gap in the line
    said: str
    ends: tuple[float, float] | None = None
    size: float = 3.5


class Chart(NamedTuple):
    """Points above an axis: over time, joined by a line, or against what they should be, a diagonal."""

    title: str
    said: str
    dots: tuple[Dot, ...]
    across: tuple[tuple[float, str], ...]
    up: Ticks
    names: tuple[str, str] = ("", "")  # of both axes
    is_line: bool = True

    def runs(self, with_ends: bool = False) -> list[list[Dot]]:
        """The points that are joined, between two gaps; with `with_ends` only points that have an interval."""
        found: list[list[Dot]] = [[]]
        for dot in self.dots:
            if dot.y is None or (with_ends and dot.ends is None):
                found.append([])
            else:
                found[-1].append(dot)
        return [run for run in found if run]


class Column(NamedTuple, Generic[_Row]):
    """One column of a table, for every place that shows it."""

    head: str
    cell: Callable[[_Row], "Cell"]
    places: tuple[Place, ...] = ("terminal", "page", "report")


def described(columns: Sequence[Column[_Row]], rows: Iterable[_Row], place: Place, left: int | None = 1) -> Table:
    shown = [column for column in columns if place in column.places]
    return Table([[column.head for column in shown], *([column.cell(row) for column in shown] for row in rows)], left)


Point: TypeAlias = tuple[str, str]
"""A sentence of a list, behind the mark that a terminal shows: `* ` for a finding, `! ` for what to mind."""


class Section(NamedTuple):
    """Tables that belong together, and what to know of them, in this order; then its parts."""

    title: str = ""
    lead: tuple[Point, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    points: tuple[Point, ...] = ()
    depth: int = 3
    folded: bool = False  # whether Markdown and HTML show it on a click only
    widths: tuple[int, ...] = ()
    """How wide columns are at least on a terminal, so that the tables of several sections look like one."""
    parts: tuple["Section", ...] = ()
    charts: tuple[Chart, ...] = ()
    name: str = ""  # what HTML links to it by
    look: str = ""  # how HTML sets it, by a class of style.css


def marked(mark: str, sentences: Iterable[str]) -> tuple[Point, ...]:
    return tuple((mark, sentence) for sentence in sentences)


def terminal_text(sections: Iterable[Section]) -> str:
    return "\n\n".join("\n".join(_terminal_lines(section)) for section in sections)


def _terminal_lines(section: Section) -> Iterator[str]:
    if section.title:
        yield _wrapped(section.title)
    yield from (_wrapped(sentence, mark) for mark, sentence in section.lead)
    yield from (table.terminal(section.widths, room=_WIDTH) for table in section.tables)
    indent = "  " if section.title or section.tables else ""
    yield from (_wrapped(note, indent) for note in section.notes)
    yield from (_wrapped(sentence, mark) for mark, sentence in section.points)
    yield from (line for part in section.parts for line in _terminal_lines(part))


def _wrapped(sentence: str, mark: str = "") -> str:
    """The sentence on lines of 80 columns, behind its mark; a number stays beside its per cent, a p whole.

    Characters of double width count as two; a word that is wider than a line is broken.
    """
    from rich.cells import cell_len, chop_cells  # here, because commands import this module at their top

    room = _WIDTH - len(mark)
    kept = _KEPT.sub(lambda found: found[0].replace(" ", "\xa0"), printable(sentence))
    lines = [""]
    for word in (part for each in kept.split(" ") for part in chop_cells(each, room)):
        if lines[-1] and cell_len(lines[-1]) + 1 + cell_len(word) > room:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return "\n".join(f"{' ' * len(mark) if number else mark}{line}" for number, line in enumerate(lines)).replace(
        "\xa0", " "
    )


def markdown_text(command: str, sections: Iterable[Section]) -> str:
    """A page that ends in a line break; its first line makes it known as a file of this command (marks.toml)."""
    blocks = (block for section in sections for block in _markdown_blocks(section))
    return "\n\n".join([f"<!-- citejury {command} -->", *blocks]) + "\n"


def _markdown_blocks(section: Section) -> Iterator[str]:
    if section.folded:
        yield f"<details><summary>{escape_markdown(section.title)}</summary>"
    elif section.title:
        yield f"{'#' * section.depth} {escape_markdown(section.title)}"
    if section.lead:
        yield _bullets(section.lead)
    yield from (table.markdown() for table in section.tables)
    yield from map(escape_markdown, section.notes)
    if section.points:
        yield _bullets(section.points)
    yield from (block for part in section.parts for block in _markdown_blocks(part))
    if section.folded:
        yield "</details>"


def _bullets(points: Iterable[Point]) -> str:
    return "\n".join(f"- {'⚠ ' if mark == _WARNING else ''}{escape_markdown(text)}" for mark, text in points)


_UNSET = "\ufffd"  # LuaTeX takes it for bytes that are no text
_ESCAPED = {
    **{char: f"\\{char}" for char in "{}$&#%_"},
    **{"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"},
    **{"\N{MINUS SIGN}": "$-$", "≤": r"$\le$", "≥": r"$\ge$", "×": r"$\times$", "÷": r"$\div$", "±": r"$\pm$"},
    **{"α": r"$\alpha$", "κ": r"$\kappa$", "ρ": r"$\rho$", "ω": r"$\omega$", "λ": r"$\lambda$", "ε": r"$\varepsilon$"},
    _UNSET: r"\unset{}",
    **{"Δ": r"$\Delta$", "⁺": "$^{+}$", "⁻": "$^{-}$"},
}
_SET = f"[ -~¡-¬®-\u017f–—‘’“”…•†‡€\N{MINUS SIGN}≤≥⁺⁻{_UNSET}]"  # What Latin Modern or an escape has
_PARTS = re.compile(rf"(?<!\w)[ακρωλεΔ](?!\w)|({_SET}+)|(?:(?!{_SET}).)+")
_HEADS = {1: "section", 2: "section", 3: "subsection"}
_TOLD = f"Where {_UNSET} stands, a name has characters that cannot be set, such as control characters or line ends."


def latex_text(command: str, sections: Iterable[Section]) -> str:
    """A document that ends in a line break, as a file of this command."""
    blocks = [block for section in sections for block in _blocks(section)]
    head = files(__package__).joinpath("document.tex").read_text(encoding="utf-8").rstrip()
    if any(_ESCAPED[_UNSET] in block for block in blocks):
        blocks.insert(0, latex(_TOLD))
    return "\n\n".join([f"% citejury {command}\n{head}", *blocks, "\\end{document}\n"])


def _blocks(section: Section) -> Iterator[str]:
    if section.title:
        yield f"\\{_HEADS.get(section.depth, 'subsubsection')}*{{{latex(section.title)}}}"
    yield from (f"\\par {latex(text)}" for _, text in section.lead)
    yield from map(_table, section.tables)
    yield from (f"\\par {latex(note)}" for note in section.notes)
    yield from (f"\\par {latex(text)}" for _, text in section.points)
    yield from (block for part in section.parts for block in _blocks(part))


def _table(table: Table) -> str:
    columns = len(table.rows[0])
    left = columns if table.left is None else min(table.left, columns)
    head, *rows = (" & ".join(latex(str(cell)) for cell in row) + r" \\" for row in table.rows)
    frame = "l" * left + "r" * (columns - left)
    begin = rf"{{\footnotesize\begin{{longtable}}[l]{{@{{}}{frame}@{{}}}}"
    return "\n".join([begin, r"\hline", head, r"\hline\endhead", *rows, r"\hline", r"\end{longtable}}"])


def latex(text: str) -> str:
    """The text as it stands, whatever is in it: no command, group, comment, table cell or other font can come of it."""
    return "".join(map(_part, _PARTS.finditer(printable(text))))


def _part(found: re.Match[str]) -> str:
    if found[1] or found[0] in _ESCAPED:
        return "".join(_ESCAPED.get(char, char) for char in found[0])
    script = f"\\script{{{ord(found[0][0]):04X}}}{{{found[0]}}}"
    is_right_to_left = any(unicodedata.bidirectional(char) in ("R", "AL") for char in found[0])
    return f"\\rtl{{{script}}}" if is_right_to_left else script


def cell_values(cell: object) -> Sequence[object]:
    return cell.numbers if isinstance(cell, Figure) and cell.numbers else (str(cell),)


def sheet_name(title: str, taken: Sequence[str]) -> str:
    """In whole words; with its place behind it where the name is taken."""
    name = _NO_SHEET_NAME.sub(" ", title)
    whole = name if len(name) <= _SHEET_NAME else name[: _SHEET_NAME + 1].rpartition(" ")[0] or name[:_SHEET_NAME]
    return f"{whole[:28]} {len(taken) + 1}" if whole.lower() in taken else whole

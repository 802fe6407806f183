"""Sections of tables and sentences go in; the text of a terminal or of Markdown comes out.

Titles, cells and sentences hold names as they are: whoever writes them takes the power from them.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, Literal, NamedTuple, TypeAlias, TypeVar

from pipeline.core.tables import Table, escape_markdown
from pipeline.core.terminal import printable

Place = Literal["terminal", "page"]
"""Where a table is shown: on 80 columns, on a page as wide as it needs."""
_Row = TypeVar("_Row")
_WIDTH = 80
_WARNING = "! "
_KEPT = re.compile(r"\d %|\bp [<=] [.\d]+")  # where no line may end


class Column(NamedTuple, Generic[_Row]):
    """One column of a table, for every place that shows it."""

    head: str
    cell: Callable[[_Row], str]
    places: tuple[Place, ...] = ("terminal", "page")


def described(columns: Sequence[Column[_Row]], rows: Iterable[_Row], place: Place, left: int | None = 1) -> Table:
    shown = [column for column in columns if place in column.places]
    return Table([[column.head for column in shown], *([column.cell(row) for column in shown] for row in rows)], left)


Point: TypeAlias = tuple[str, str]
"""A sentence of a list, behind the mark that a terminal shows: `* ` for a finding, `! ` for what to mind."""


class Section(NamedTuple):
    """Tables that belong together, and what to know of them."""

    title: str = ""
    lead: tuple[Point, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    points: tuple[Point, ...] = ()
    depth: int = 3
    folded: bool = False  # whether Markdown shows it on a click only
    widths: tuple[int, ...] = ()
    """How wide columns are at least on a terminal, so that the tables of several sections look like one."""


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


def markdown_mark(command: str) -> str:
    """The first line of a page, by which it is known as a file of this command."""
    return f"<!-- citejury {command} -->"


def markdown_text(command: str, sections: Iterable[Section]) -> str:
    """A page that ends in a line break, as a file of this command."""
    return (
        "\n\n".join([markdown_mark(command), *(block for section in sections for block in _markdown_blocks(section))])
        + "\n"
    )


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
    if section.folded:
        yield "</details>"


def _bullets(points: Iterable[Point]) -> str:
    return "\n".join(f"- {'⚠ ' if mark == _WARNING else ''}{escape_markdown(text)}" for mark, text in points)

"""HTML of a notebook's cell: sections, tables and lists of strangers' texts that stay text."""

from collections.abc import Iterable, Iterator
from html import escape

from exports.report.sections import Section
from pipeline.tables import Table
from pipeline.terminal import printable


def html_sections(sections: Iterable[Section]) -> str:
    """The sections one below the other."""
    return "".join(part for section in sections for part in _section_parts(section))


def _section_parts(section: Section) -> Iterator[str]:
    """The parts of one section in their order."""
    if section.title:
        yield f"<h4>{_notebook_text(section.title)}</h4>"
    yield _html_list(sentence for _, sentence in section.lead)
    yield from map(html_table, section.tables)
    yield _html_list((*section.notes, *(sentence for _, sentence in section.points)))


def html_table(table: Table) -> str:
    """A table of texts."""
    head, *rows = ([_notebook_text(str(cell)) for cell in row] for row in table.rows)
    lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    names = "".join(f"<th>{name}</th>" for name in head)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{lines}</tbody></table>"


def _html_list(sentences: Iterable[str]) -> str:
    """A list of sentences; nothing where there are none."""
    items = "".join(f"<li>{_notebook_text(sentence)}</li>" for sentence in sentences)
    return f"<ul>{items}</ul>" if items else ""


def _notebook_text(text: str) -> str:
    """The text as HTML shows it; a dollar would begin a formula in a notebook that draws them."""
    return escape(printable(text)).replace("$", "&#36;")

"""HTML of a notebook's cell: tables and lists of strangers' texts that stay text."""

from collections.abc import Iterable, Sequence
from html import escape

from pipeline.text.terminal import printable


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of texts."""
    lines = ["".join(f"<td>{_notebook_text(cell)}</td>" for cell in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    names = "".join(f"<th>{_notebook_text(name)}</th>" for name in head)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>"


def html_list(sentences: Iterable[str]) -> str:
    """A list of sentences; nothing where there are none."""
    items = "".join(f"<li>{_notebook_text(sentence)}</li>" for sentence in sentences)
    return f"<ul>{items}</ul>" if items else ""


def _notebook_text(text: str) -> str:
    """The text as HTML shows it; a dollar would begin a formula in a notebook that draws them."""
    return escape(printable(text)).replace("$", "&#36;")

"""What reading a report gives: its sentences with what they cite, its sources, and the marks that lead nowhere."""

from typing import Literal, NamedTuple

from pipeline.reports.marks import Mark

Nowhere = Literal["no_entry", "no_url", "not_a_url"]
"""Why a mark leads nowhere: no source list has its number, the entry names no URL, or its URL is no http(s) one."""


class Cited(NamedTuple):
    """One sentence and its marks, not yet looked up; one without text only lists what it links to."""

    text: str
    """Its words."""
    marks: tuple[Mark, ...]
    """Its marks and links in order."""
    line: int
    """Index of its line, counted from 0."""


class Sentence(NamedTuple):
    """One sentence of the report's body; of a table, one row."""

    text: str
    """Its words, without citation marks, Markdown and URLs; cells of a row are joined by ` | `."""
    urls: tuple[str, ...]
    """Canonical URLs that it cites, distinct, in order; empty where it cites nothing that can be looked up."""
    ids: tuple[str, ...]
    """Numbers, `C001` and names of footnotes that its marks hold, distinct, in order; links have none."""
    line: int
    """Line of the report on which it begins, counted from 1."""


class ListedSource(NamedTuple):
    """One source of the report."""

    url: str
    """Canonical URL."""
    title: str
    """Title in its source list, or the words of its link; empty where there are none."""
    ids: tuple[str, ...]
    """Its numbers in the source lists, in order; empty where the text links to it without one."""
    sentences: int
    """How many sentences cite it."""


class Unresolved(NamedTuple):
    """What stands where a citation should and leads nowhere."""

    id: str
    """The number, `C001`, name of the footnote, or URL."""
    reason: Nowhere
    """Why it leads nowhere."""
    line: int
    """Line of the first sentence that has it, counted from 1."""
    sentences: int
    """How many sentences have it."""


class ReadReport(NamedTuple):
    """A report as far as its citations go."""

    sentences: tuple[Sentence, ...]
    """Every sentence of the body in order; headings, code and source lists have none."""
    sources: tuple[ListedSource, ...]
    """Every source that is cited or listed, each URL once, in order of its first citation; uncited ones at the end."""
    unresolved: tuple[Unresolved, ...]
    """What leads nowhere, in order of first appearance."""

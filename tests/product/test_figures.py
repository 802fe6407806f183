import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.product.test_readme import GENERATED
from tests.support.places import ROOT

TABLE = ROOT / "exports/contracts/figures.md"
PAGES = [ROOT / name for name in GENERATED if ROOT / name != TABLE]
KINDS = ("fitted on", "held out", "measured here")
NO_PROSE = re.compile(
    r"^```.*?^```$|\]\]\] -->.*?<!-- \[\[\[end|<!--.*?-->|`[^`\n]*`|\]\([^)]*\)", re.DOTALL | re.MULTILINE
)
SHARE = re.compile(r"(?<![\w.,])(?:\.\d+|\d[\d.,]*\s%)")
NUMBER = re.compile(r"(?<![\w.,-])\.?\d[\d,.]*(?:\s%)?")


def prose(page: Path) -> Iterator[str]:
    """The paragraphs and rows of a page that somebody wrote, with what the tables' header says left out."""
    for part in re.split(r"\n\s*\n|\n(?=\||- )", NO_PROSE.sub(" ", page.read_text(encoding="utf-8"))):
        yield " ".join(part.split())


def numbers(text: str) -> list[str]:
    return [found.rstrip(".,") for found in NUMBER.findall(text)]


def table() -> dict[str, set[str]]:
    """The kinds under which each figure is listed."""
    kinds: dict[str, set[str]] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if len(cells) == 5 and cells[3] in KINDS:
            for number in numbers(" ".join(cells[:3])):
                kinds.setdefault(number, set()).add(cells[3])
    return kinds


ONE = re.compile(r"[.\d,]+(?:\s%)?(?: (?:of|to) [.\d,]+(?:\s%)?)?(?: \[[-.\d]+, [-.\d]+\])?")
"""A figure: a number, a part of a number, the lowest and the highest of several, perhaps with its interval."""


def test_every_row_is_of_one_figure() -> None:
    rows = TABLE.read_text(encoding="utf-8").splitlines()
    figures = [row.split(" | ")[0].removeprefix("| ") for row in rows if any(f" | {kind} | " in row for kind in KINDS)]
    assert len(figures) > 100
    assert [figure for figure in figures if not ONE.fullmatch(figure)] == []


def conventions() -> set[str]:
    return set(SHARE.findall(TABLE.read_text(encoding="utf-8").partition("## Conventions")[2]))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_figure_is_in_the_table_of_figures_and_stated_with_its_kind(page: Path) -> None:
    known, told = table(), conventions()
    unknown = []
    for part in prose(page):
        figures = set(SHARE.findall(part)) - told
        if any(kind in part for kind in KINDS):
            # One below ten, as in "five passages, three runs", is a count and no measurement by itself.
            figures |= {number for number in numbers(part) if len(number) > 1} - told
        unknown += [f"{figure} in: {part[:120]}" for figure in figures if figure not in known]
    assert not unknown
    silent = [
        f"{figure} ({' or '.join(sorted(known[figure]))}) in: {part[:120]}"
        for part in prose(page)
        for figure in set(SHARE.findall(part)) - told
        if figure in known and not any(kind in part for kind in known[figure])
    ]
    assert not silent

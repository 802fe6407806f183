"""Where a mark may stand in Markdown so that everything else is shown as before.

A place is tried by rendering its block with and without the mark: no list of exceptions is complete.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from pipeline.citations.addresses import find_links

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_MARKS = re.compile(r"(?:\[\d+\])+", re.ASCII)
_CODE = re.compile(r"<(pre|code)\b.*?</\1>", re.DOTALL)
# A mark would cut these in two: code, formulas, tags, entities, escapes.
_ATOMS = re.compile(
    r"(?<![`\\])(?P<tick>`+)(?!`)[^\n]*?(?<!`)(?P=tick)(?!`)"
    r"|\$\$.{1,2000}?\$\$|(?<![\\$\w])\$(?![\s$])[^$\n]{1,300}?(?<!\s)\$(?![\w$])"
    r"|\\\(.{1,1000}?\\\)|\\\[.{1,2000}?\\\]"
    r"|</?[A-Za-z][^<>\n]{0,300}>|&\#?\w{1,31};|\\[!-/:-@\[-`{-~]",
    re.DOTALL,
)
_ENCLOSED = re.compile(r"\([^()\n]*\)|\[[^\[\]\n]*\]")
_CLOSES = '*_~`"”’»)]}）」』】'


class _Block(NamedTuple):
    kind: str
    start: int
    end: int


class Placed(NamedTuple):
    """Where marks are put: `text` at the code point `at`; `at` is None where the text has no place for them."""

    at: int | None
    text: str


def place_marks(text: str, wanted: Mapping[int, str]) -> list[Placed]:
    """For marks such as `[1][2]`, wanted behind these code points, in their order, where they do no harm.

    That is there, or behind what a mark would cut in two, in the last cell of a table's row, at an end of a line, or as
    a paragraph of their own behind a block of code. Source: CommonMark 0.31; tables as GitHub has them.
    """
    blocks = _blocks(text)
    atoms = [match.span() for match in _ATOMS.finditer(text)]
    atoms += [(link.start, link.end) for link in find_links(text)]
    taken: dict[int, list[tuple[int, str]]] = {}
    placed: list[Placed] = []
    for offset in sorted(wanted):
        marks = wanted[offset]
        index = _block_at(blocks, offset)
        found = Placed(None, marks)
        for block_index, at, put in _candidates(text, blocks, index, offset, atoms, marks):
            others = taken.setdefault(block_index, [])
            if put != marks or _shows_the_same(text, blocks[block_index], [*others, (at, marks)]):
                if put == marks:
                    others.append((at, marks))
                found = Placed(at, put)
                break
        placed.append(found)
    return placed


@cache
def _markdown() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table")


def _blocks(text: str) -> list[_Block]:
    """The blocks of the outermost level, each with the code points of its lines, line ends left out."""
    lines = text.split("\n")
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    found: list[_Block] = []
    for token in _markdown().parse(text):
        if token.level == 0 and token.nesting >= 0 and token.map:
            first, end = token.map
            while end > first + 1 and not lines[end - 1].strip():
                end -= 1
            found.append(_Block(token.type, starts[first], starts[end] - 1))
    return found


def _block_at(blocks: list[_Block], offset: int) -> int:
    """The block that ends at the code point or behind it and begins before it; -1 before the first."""
    return max((index for index, block in enumerate(blocks) if block.start < offset), default=-1)


def _candidates(
    text: str, blocks: list[_Block], index: int, offset: int, atoms: list[tuple[int, int]], marks: str
) -> Iterator[tuple[int, int, str]]:
    """Places from the best one on: the block, the code point, and what is put there."""
    if index < 0:
        return
    block = blocks[index]
    if block.kind == "hr":
        if index:
            yield from _candidates(text, blocks, index - 1, blocks[index - 1].end, atoms, marks)
        return
    behind = (index, block.end, f"\n\n{marks}" + ("\n" if text[block.end : block.end + 2].strip("\n") else ""))
    if block.kind in ("fence", "code_block", "html_block"):
        yield behind
        return
    at = _behind_atoms(min(offset, block.end), atoms, text)
    yield index, at, marks
    while closed := _ENCLOSED.match(text, at):  # `[1](` would begin a link
        at = closed.end()
        yield index, at, marks
    line_end = len(text) if (end := text.find("\n", at)) < 0 else end
    while True:
        line_start = text.rfind("\n", 0, line_end) + 1
        line = text[line_start:line_end].rstrip()
        if line.endswith("|"):
            yield index, line_start + len(line[:-1].rstrip()), marks
        yield index, line_start + len(line), marks
        if line_start <= block.start:
            break
        line_end = line_start - 1
    yield behind


def _behind_atoms(at: int, atoms: list[tuple[int, int]], text: str) -> int:
    """The code point, or the first one behind it that is in nothing that belongs together."""
    while True:
        moved = max((end for start, end in atoms if start < at < end), default=at)
        while moved < len(text) and text[moved] in _CLOSES and not text[moved - 1 : moved].isspace():
            moved += 1
        if moved == at:
            return at
        at = moved


def _shows_the_same(text: str, block: _Block, inserted: list[tuple[int, str]]) -> bool:
    original = text[block.start : block.end]
    parts: list[str] = []
    position = block.start
    for at, marks in sorted(inserted):
        if not block.start <= at <= block.end:
            return False
        parts += [text[position:at], marks]
        position = at
    changed = "".join([*parts, text[position : block.end]])
    before, after = _markdown().render(original), _markdown().render(changed)
    n_before, n_after = (len(_MARKS.findall(_CODE.sub("", html).replace("][", "] ["))) for html in (before, after))
    n_new = sum(marks.count("[") for _, marks in inserted)
    return n_after == n_before + n_new and _MARKS.sub("", before) == _MARKS.sub("", after)

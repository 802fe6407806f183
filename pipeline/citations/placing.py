"""Where a mark may stand in Markdown so that everything else is shown as before.

A place is tried by rendering its block with and without the mark: no list of exceptions is complete.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from pipeline.citations.addresses import find_links, verbatim_spans, with_line_feeds

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_NUMBER = re.compile(r"\[\d+\]", re.ASCII)
_MARKS = re.compile(r"\n?<p>(?:\[\d+\])+</p>|(?:\[\d+\])+", re.ASCII)
# Characters of Markdown: more are a trap, and its marks stand in the last line.
_MOST_RENDERED = 4_000_000
# In blocks of more than 10,000 characters emphasis is a place: to look for one behind it takes too long.
_NO_PLACE = [re.compile(rf"<!--.*?-->|<({tags})\b.*?</\1>", re.DOTALL) for tags in ("pre|code|em|strong", "pre|code")]
# A mark would cut these in two, as it would code, formulas and links: tags, entities, escapes, plain emphasis.
_ATOMS = re.compile(
    r"</?[A-Za-z][^<>\n]{0,300}>|&\#?\w{1,31};|\\[!-/:-@\[-`{-~]"
    r"|\*\*(?=\S)[^*\n]{1,300}(?<=\S)\*\*|(?<![\w*])([*_])(?=[^\s*_])[^*_\n]{1,300}(?<=\S)\1(?!\w)"
)
_BEHIND_EMPHASIS = re.compile(r"(?<=[^\s*_])[*_]{1,3}(?![*_])")
_BAR = re.compile(r"(?<!\\)\|")
_ITEM = re.compile(r"[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]")
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
    references: dict[str, Any] = {}
    blocks = _blocks(text, references)
    atoms = [match.span() for match in _ATOMS.finditer(text)]
    atoms += [*verbatim_spans(text), *((link.start, link.end) for link in find_links(text))]
    found: dict[int, Placed] = {}
    by_block: dict[int, list[_Waiting]] = {}
    for offset in sorted(wanted):
        # The block that ends at the code point or behind it and begins before it; -1 before the first.
        index, at = max((index for index, block in enumerate(blocks) if block.start < offset), default=-1), offset
        if index > 0 and blocks[index].kind == "hr":
            index, at = index - 1, blocks[index - 1].end
        found[offset] = Placed(None, wanted[offset])
        if index >= 0:
            places = _places(text, blocks[index], at, atoms, wanted[offset])
            by_block.setdefault(index, []).append(_Waiting(offset, wanted[offset], next(places, None), places))
    rendering = _Rendering(text, references)
    for index, waiting in by_block.items():
        _settle(rendering, blocks[index], waiting, [], found)
    return [found[offset] for offset in sorted(wanted)]


class _Waiting:
    """Marks with the best place that was not tried yet, and those behind it."""

    def __init__(self, offset: int, marks: str, place: Placed | None, places: Iterator[Placed]) -> None:
        self.offset, self.marks, self.place, self.places = offset, marks, place, places


def _settle(
    rendering: "_Rendering", block: _Block, waiting: list[_Waiting], kept: list[Placed], found: dict[int, Placed]
) -> None:
    """Find a place for each: all at once where that shows the block as before, else in halves, one by one at last."""
    while waiting := [each for each in waiting if each.place is not None]:
        tried = [each.place for each in waiting if each.place]
        if rendering.is_kept(block, [*kept, *tried]):
            kept += tried
            found.update({each.offset: each.place for each in waiting if each.place})
            return
        if len(waiting) > 1:
            middle = len(waiting) // 2
            _settle(rendering, block, waiting[:middle], kept, found)
            waiting = waiting[middle:]
        else:
            waiting[0].place = next(waiting[0].places, None) if rendering.left > 0 else None


@cache
def _markdown() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table")


def _blocks(text: str, references: dict[str, Any]) -> list[_Block]:
    """The outermost blocks that are shown, so no definitions, with the code points of their lines without line ends."""
    lines = with_line_feeds(text).split("\n")
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    found: list[_Block] = []
    for token in _markdown().parse(text, references):
        if token.level == 0 and token.nesting >= 0 and token.map:
            first, end = token.map
            while end > first + 1 and not lines[end - 1].strip():
                end -= 1
            found.append(_Block(token.type, starts[first], starts[end] - 1))
    return found


def missing_fence(text: str) -> str:
    """The line that ends the code in which a text ends that was cut off; empty where there is none or it has one."""
    tokens = _markdown().parse(text) if "```" in text or "~~~" in text else ()
    if not tokens or tokens[-1].type != "fence":
        return ""
    first, end = tokens[-1].map or (0, 0)
    is_closed = end > first + 1 and re.search(rf"\n {{0,3}}{tokens[-1].markup}+[ \t]*\Z", text)
    return "" if is_closed else f"\n{tokens[-1].markup}"


def _places(text: str, block: _Block, offset: int, atoms: list[tuple[int, int]], marks: str) -> Iterator[Placed]:
    """Places in the block from the best one on."""
    if block.kind == "hr":
        return
    behind = Placed(block.end, f"\n\n{marks}" + ("\n" if text[block.end : block.end + 2].strip("\n") else ""))
    if block.kind not in ("fence", "code_block", "html_block"):
        at = _behind_atoms(min(offset, block.end), atoms, text)
        yield Placed(at, marks)
        while closed := _ENCLOSED.match(text, at):  # `[1](` would begin a link
            at = closed.end()
            yield Placed(at, marks)
        yield from (Placed(sign.end(), marks) for sign in islice(_BEHIND_EMPHASIS.finditer(text, at, block.end), 4))
        line_end = len(text) if (end := text.find("\n", at)) < 0 else end
        yield from (Placed(end, marks) for end in _line_ends(text, block, line_end))
    yield behind


def _line_ends(text: str, block: _Block, line_end: int) -> Iterator[int]:
    """The ends of a line and its cells, then of those above, up to where the item or row begins."""
    while line_end > block.start:
        line_start = text.rfind("\n", 0, line_end) + 1
        line = text[line_start:line_end].rstrip()
        if not line.endswith("|"):
            yield line_start + len(line)
        for bar in reversed([*_BAR.finditer(line)]):
            yield line_start + len(line[: bar.start()].rstrip())
        is_row = block.kind == "table_open" or line.strip(" \t>").startswith("|")
        if _ITEM.match(line) or (is_row and re.search(r"\w", line)):
            return
        line_end = line_start - 1


def _behind_atoms(at: int, atoms: list[tuple[int, int]], text: str) -> int:
    """The code point, or the first one behind it that is in nothing that belongs together."""
    while True:
        moved = max((end for start, end in atoms if start < at < end), default=at)
        while moved < len(text) and text[moved] in _CLOSES and not text[moved - 1 : moved].isspace():
            moved += 1
        if moved == at:
            return at
        at = moved


class _Rendering:
    """The text with marks put in, rendered block by block, until that would take too long."""

    def __init__(self, text: str, references: dict[str, Any]) -> None:
        self.text = text
        self.references = references
        self.left = _MOST_RENDERED
        self.before: dict[_Block, str] = {}  # What the blocks are shown as without marks

    def is_kept(self, block: _Block, placed: list[Placed]) -> bool:
        """Whether the block with the marks is shown as before, and all of them are seen."""
        original = self.text[block.start : block.end]
        parts: list[str] = []
        position = block.start
        for at, marks in sorted(((each.at or 0, each.text) for each in placed), key=lambda each: each[0]):
            if not block.start <= at <= block.end:
                return False
            parts += [self.text[position:at], marks]
            position = at
        self.left -= 2 * len(original)
        if self.left < 0:
            return not placed
        changed = "".join([*parts, self.text[position : block.end]])
        if block not in self.before:
            self.before[block] = self._render(original)
        before, after = self.before[block], self._render(changed)
        n_before, n_after = (
            _NUMBER.subn("", _NO_PLACE[len(original) > 10_000].sub("", html))[1] for html in (before, after)
        )
        n_new = sum(each.text.count("[") for each in placed)
        return n_after == n_before + n_new and _MARKS.sub("", before).strip() == _MARKS.sub("", after).strip()

    def _render(self, markdown: str) -> str:
        """What the block is shown as, with the links that the text defines elsewhere."""
        return str(_markdown().render(markdown, {"references": {**self.references.get("references", {})}}))

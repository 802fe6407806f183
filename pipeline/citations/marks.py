"""Citation marks in running text, the blocks of Markdown that hold them, and what a reader reads of it.

Marks are `(C001)`, `[1]`, `[1, 2]`, `[1-3]`, `[1]-[3]`, `【1】`, `[^1]`, `[^1^]`, `[cite: 1, 2]`, superscripts (`²` and
`<sup>2</sup>`), full-width forms, and links.
"""

import re
from bisect import bisect_right
from collections.abc import Container, Iterator
from functools import cache
from html import unescape
from typing import TYPE_CHECKING, Literal, NamedTuple

from pipeline.citations.addresses import Link, find_links

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


BlockKind = Literal["heading", "paragraph", "list", "table", "quote", "code", "html", "rule"]
_KINDS: dict[str, BlockKind] = {
    "heading_open": "heading",
    "paragraph_open": "paragraph",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "table_open": "table",
    "blockquote_open": "quote",
    "fence": "code",
    "code_block": "code",
    "html_block": "html",
    "hr": "rule",
}
CELLS = " | "
_TAG = re.compile(r"<!--(?:(?!-->).)*+(?:-->|\Z)|</?[a-zA-Z][^<>]{0,500}+>", re.DOTALL)
_ALL_BOLD = re.compile(r"(\*\*|__)(?P<words>[^*_\n]{1,120}?)[:：]?\1[:：]?")


class Piece(NamedTuple):
    """Running text within a block: a paragraph, an item's paragraph, or a row of a table."""

    text: str
    line: int
    """Index of its first line, counted from 0; but for rows, each line of the text is a line of the report."""
    is_row: bool = False
    """Whether it is a row of a table, whose text is one line."""


class Block(NamedTuple):
    kind: BlockKind
    """What it is; a paragraph that is bold as a whole is a heading, for so models write them."""
    line: int
    end: int
    level: int
    """Level of a heading: 1 to 6, and 7 for a bold paragraph; 0 for everything else."""
    pieces: tuple[Piece, ...]
    """Its text in order; empty for rules, and for a table's head."""


@cache
def _block_parser() -> "MarkdownIt":
    """Links are found elsewhere, in time that is linear; `[1]: url` stays text, for it is an entry of a source list."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table").disable(["reference", "inline"])


def read_blocks(text: str) -> list[Block]:
    blocks: list[Block] = []
    tokens = _block_parser().parse(text)
    start = 0
    for index, token in enumerate(tokens):
        if token.level == 0 and token.nesting <= 0:
            first = tokens[start]
            kind = _KINDS[first.type]
            level = int(first.tag[1:]) if kind == "heading" else 0
            pieces = tuple(_pieces_of(tokens[start : index + 1]))
            if kind == "paragraph" and _ALL_BOLD.fullmatch(pieces[0].text):
                kind, level = "heading", 7
            line, end = first.map or (0, 0)
            blocks.append(Block(kind, line, end, level, pieces))
            start = index + 1
    return blocks


def _pieces_of(tokens: "list[Token]") -> Iterator[Piece]:
    row: list[str] | None = None
    in_head = False
    line = 0
    for token in tokens:
        line = token.map[0] if token.map else line
        if token.type in ("thead_open", "thead_close"):
            in_head = token.nesting > 0
        elif token.type == "tr_open":
            row = []
        elif token.type == "tr_close":
            if row and not in_head:
                yield Piece(CELLS.join(cell for cell in row if cell), line, is_row=True)
            row = None
        elif token.type == "inline" and row is not None:
            row.append(token.content.strip())
        elif token.type == "inline":
            yield Piece(token.content, line)
        elif token.type == "html_block" and (shown := _TAG.sub(" ", token.content)).strip():
            yield Piece(shown, line)


def heading_words(block: Block) -> str:
    return "".join(piece.text for piece in block.pieces).strip(" #*_:：\t")


_SEPARATOR = r"[ \t]*+[,，、;；/&][ \t]*+|[ \t]*+[-–—‐‑~～〜][ \t]*+"
_NUMBERS = rf"\^?\d{{1,3}}(?:(?:{_SEPARATOR})\^?\d{{1,3}})*+"
_CIDS = r"C\d{3}(?:[ \t]*+[,，、;；][ \t]*+C\d{3})*+"
_RAISED_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁽⁾", "0123456789-  ")
# Behind a word or a sentence's end a raised number is a mark; behind `m`, `10` or `x` it is an exponent.
_BEHIND_WORDS = (
    "(?:(?<=[^\\W\\d_]{3})|(?<=[.,;:!?\"'”’)\\]»。、，！？」』）])|(?<=[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]))"
)
# Gemini writes `[cite: 1, 2]`, Kimi `[^1^]`.
# ChatGPT writes `【4†source】` and `【4†L1-L9】`; some models escape the brackets, and link a number to its entry.
MARK = re.compile(
    r"\[(?P<first>\d{1,3})\][ \t]*+[-–—][ \t]*+\[(?P<last>\d{1,3})\]"
    rf"|[(（\[【［](?P<cids>{_CIDS})[)）\]】］]"
    rf"|(?:(?P<double>\[\[)|\\?\[|【|［)(?P<numbers>{_NUMBERS})(?:†[^\]】］\n]{{0,100}}+)?"
    r"(?(double)\]\]|(?:\\?\]|】|］))(?:\(#[^()\s]{0,200}+\))?"
    r"|\[\^(?P<note>[^\]\[\s^]{1,40}+)\^?\]"
    rf"|\[cite:[ \t]*+(?P<cited>{_NUMBERS})[ \t]*+\]"
    rf"|(?:{_BEHIND_WORDS}[ \t]?<sup>\s*+|<sup>\s*+\[)(?P<superscript>{_NUMBERS})\]?\s*+</sup>"
    rf"|{_BEHIND_WORDS}(?P<raised>⁽?[⁰¹²³⁴-⁹]{{1,3}}(?:[,⁻˒ ][⁰¹²³⁴-⁹]{{1,3}})*+⁾?)"
)
_NUMBER = re.compile(r"(?P<dash>[-–—‐‑~～〜])?[ \t]*+\^?(?P<number>\d+)")
CID = re.compile(r"C\d{3}")
_NUMBERED_LABEL = re.compile(r"[\[【［(]*\^?\d{1,3}[\]】］)]*")
_CODE = re.compile(r"(?<!`)(`++)(?!`)")
_BRACKETS = {"(": ")", "（": "）", "[": "]", "【": "】"}
_EMPHASIS = re.compile(r"\*{1,3}+(?=\S)|(?<=\S)\*{1,3}+|__|~~|`+|\\(?=[!-/:-@\[-`{-~])")
_HARD_BREAK = re.compile(r"(?: {2,}|\\)\n")
_SPACED_WORD = re.compile(r"[^\W\u3000-\u9fff\uff01-\uffef]|[(\"“*]")
HARD, SOFT = "\x0b", "\x1f"
"""What stands for a line's end in plain text: both count as blanks, and at the first a sentence ends."""


class Mark(NamedTuple):
    start: int
    end: int
    ids: tuple[str, ...]
    """Numbers without leading zeros, `C001` or a footnote's name, in order; none for a link."""
    url: str
    """URL of a link as it is written; empty for a mark."""
    shown: str
    """What stands in the sentence in its place: a link's words, where they are part of it."""


def find_marks(text: str, listed: Container[str] = ()) -> list[Mark]:
    """Every mark and link in order of place; raised numbers only where all of them are `listed` by some source list."""
    links = find_links(text)
    code = _code_spans(text)
    found = [_mark_of_link(text, link) for link in links if not _within(link.start, code)]
    taken = [*code, *((link.start, link.end) for link in links)]
    taken.sort()
    found += [
        Mark(match.start(), match.end(), ids, "", "")
        for match in MARK.finditer(text)
        if (ids := _ids_of(match))
        and not _within(match.start(), taken)
        and (not (match["raised"] or match["superscript"]) or all(each in listed for each in ids))
    ]
    return sorted(found)


def _within(position: int, spans: list[tuple[int, int]]) -> bool:
    index = bisect_right(spans, position, key=lambda span: span[0]) - 1
    return index >= 0 and spans[index][0] <= position < spans[index][1]


def _code_spans(text: str) -> list[tuple[int, int]]:
    runs = list(_CODE.finditer(text))
    later: dict[int, list[int]] = {}
    for index in range(len(runs) - 1, -1, -1):
        later.setdefault(len(runs[index][1]), []).append(index)
    spans: list[tuple[int, int]] = []
    index = 0
    while index < len(runs):
        closings = later[len(runs[index][1])]
        while closings and closings[-1] <= index:
            closings.pop()
        if closings:
            spans.append((runs[index].start(), runs[closings[-1]].end()))
            index = closings[-1]
        index += 1
    return spans


def _ids_of(match: re.Match[str]) -> tuple[str, ...]:
    """What a mark cites; nothing for what only looks like one, such as the interval [0, 1]."""
    if match["cids"]:
        return tuple(dict.fromkeys(CID.findall(match["cids"])))
    if match["note"]:
        return (match["note"],)
    if match["first"]:
        written = f"{match['first']}-{match['last']}"
    else:
        written = (
            match["numbers"] or match["cited"] or match["superscript"] or match["raised"].translate(_RAISED_DIGITS)
        )
    ids: list[int] = []
    for part in _NUMBER.finditer(written):
        number = int(part["number"])
        # A longer range is a span of years or pages.
        if part["dash"] and ids and not 0 < number - ids[-1] <= 50:
            return ()
        ids += range(ids[-1] + 1, number + 1) if part["dash"] and ids else (number,)
    return () if 0 in ids else tuple(dict.fromkeys(map(str, ids)))


def _mark_of_link(text: str, link: Link) -> Mark:
    start, end = link.start, link.end
    label = link.label.strip()
    alone = False
    if start and _BRACKETS.get(text[start - 1]) == text[end : end + 1]:
        start, end, alone = start - 1, end + 1, True
    gone = alone or link.kind in ("image", "bare", "angle") or bool(_NUMBERED_LABEL.fullmatch(label))
    return Mark(start, end, (), "" if link.kind == "image" else link.url, "" if gone or label == link.url else label)


class PlainText(NamedTuple):
    text: str
    """What a reader reads; `HARD` or `SOFT` stands where a line ends."""
    marks: tuple[tuple[int, Mark], ...]
    """Each mark with the character of `text` behind which it stood, in order."""


def without_citations(text: str, listed: Container[str] = ()) -> PlainText:
    parts: list[str] = []
    marks: list[tuple[int, Mark]] = []
    position = length = 0
    for mark in find_marks(text, listed):
        if mark.start < position:
            continue
        before = plain_words(text[position : mark.start])
        shown = plain_words(mark.shown)
        if not shown:
            before = before.rstrip(" \t") + (" " if _SPACED_WORD.match(text, mark.end) else "")
        parts += [before, shown]
        length += len(before) + len(shown)
        marks.append((length, mark))
        position = mark.end
    parts.append(plain_words(text[position:]))
    return PlainText("".join(parts), tuple(marks))


def plain_words(markdown: str) -> str:
    text = _HARD_BREAK.sub(HARD, _TAG.sub("", markdown)).replace("\n", SOFT)
    return unescape(_EMPHASIS.sub("", text))

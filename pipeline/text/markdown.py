"""Markdown as blocks of running text, and that text as a reader reads it."""

import re
from collections.abc import Iterator
from functools import cache
from html import unescape
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

HARD, SOFT = "\x0b", "\x1f"
"""What stands for a line's end in plain text: both count as blanks, and at the first a sentence ends."""
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
_TAG = re.compile(r"<!--(?>(?:(?!-->).)*)(?:-->|\Z)|</?[a-zA-Z][^<>]{0,500}+>", re.DOTALL)
_ALL_BOLD = re.compile(r"(\*\*|__)(?P<words>[^*_\n]{1,120}?)[:：]?\1[:：]?")


class Piece(NamedTuple):
    """Running text within a block: a paragraph, an item's paragraph, or a row of a table."""

    text: str
    line: int  # Index of its first line, counted from 0; but for rows, each line of the text is a line of the report
    is_row: bool = False  # Whether it is a row of a table, whose text is one line
    is_head: bool = False  # Whether it is a table's head, which says what the rows tell of


class Block(NamedTuple):
    kind: BlockKind  # What it is; a paragraph that is bold as a whole is a heading, for so models write them
    line: int
    end: int
    level: int  # Level of a heading: 1 to 6, and 7 for a bold paragraph; 0 for everything else
    pieces: tuple[Piece, ...]  # Its text in order; empty for rules


@cache
def block_parser() -> "MarkdownIt":
    """Links are found elsewhere, in time that is linear; `[1]: url` stays text, for it is an entry of a source list."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table").disable(["reference", "inline"])


def read_blocks(text: str) -> list[Block]:
    blocks: list[Block] = []
    tokens = block_parser().parse(text)
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
            if row:
                yield Piece(CELLS.join(cell for cell in row if cell), line, is_row=True, is_head=in_head)
            row = None
        elif token.type == "inline" and row is not None:
            row.append(token.content.strip())
        elif token.type == "inline":
            yield Piece(token.content, line)
        elif token.type == "html_block" and (shown := _TAG.sub(" ", token.content)).strip():
            yield Piece(shown, line)


def heading_words(block: Block) -> str:
    return "".join(piece.text for piece in block.pieces).strip(" #*_:：\t")


_EMPHASIS = re.compile(r"\*{1,3}+(?=\S)|(?<=\S)\*{1,3}+|__|~~|`+|\\(?=[!-/:-@\[-`{-~])")
_HARD_BREAK = re.compile(r"(?: {2,}|\\)\n")


def plain_words(markdown: str) -> str:
    text = _HARD_BREAK.sub(HARD, _TAG.sub("", markdown)).replace("\n", SOFT)
    return unescape(_EMPHASIS.sub("", text))

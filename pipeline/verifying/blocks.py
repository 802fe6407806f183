"""A report as blocks of Markdown: headings, paragraphs, lists, tables, code, each with its pieces of running text."""

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

BlockKind = Literal["heading", "paragraph", "list", "table", "quote", "code", "html", "rule"]
KINDS: dict[str, BlockKind] = {
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
TAG = re.compile(r"<!--(?:(?!-->).)*+(?:-->|\Z)|</?[a-zA-Z][^<>]{0,500}+>", re.DOTALL)
ALL_BOLD = re.compile(r"(\*\*|__)(?P<words>[^*_\n]{1,120}?)[:：]?\1[:：]?")


class Piece(NamedTuple):
    """Running text within a block: a paragraph, an item's paragraph, or a row of a table."""

    text: str
    """Its Markdown; of a row, the cells joined by ` | `."""
    line: int
    """Index of its first line, counted from 0; but for rows, each line of the text is a line of the report."""
    is_row: bool = False
    """Whether it is a row of a table, whose text is one line."""


class Block(NamedTuple):
    """One block at the outermost level of the report."""

    kind: BlockKind
    """What it is; a paragraph that is bold as a whole is a heading, for so models write them."""
    line: int
    """Index of its first line, counted from 0."""
    end: int
    """Index of the line after its last."""
    level: int
    """Level of a heading: 1 to 6, and 7 for a bold paragraph; 0 for everything else."""
    pieces: tuple[Piece, ...]
    """Its text in order; empty for rules, and for a table's head."""


@cache
def block_parser() -> "MarkdownIt":
    """Markdown with tables, parted into blocks only: links are found elsewhere, in time that is linear.

    Link reference definitions, `[1]: url`, stay text, for they are entries of a source list.
    """
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table").disable(["reference", "inline"])


def read_blocks(text: str) -> list[Block]:
    """The report's outermost blocks in order; an empty text has none."""
    blocks: list[Block] = []
    tokens = block_parser().parse(text)
    start = 0
    for index, token in enumerate(tokens):
        if token.level == 0 and token.nesting <= 0:
            blocks.append(block_of(tokens[start : index + 1]))
            start = index + 1
    return blocks


def block_of(tokens: "list[Token]") -> Block:
    """The block that these tokens, from its first to its last, make up."""
    first = tokens[0]
    line, end = first.map or (0, 0)
    kind = KINDS[first.type]
    pieces = tuple(pieces_of(tokens))
    if kind == "heading":
        return Block(kind, line, end, int(first.tag[1:]), pieces)
    if kind == "paragraph" and ALL_BOLD.fullmatch(pieces[0].text):
        return Block("heading", line, end, 7, pieces)
    return Block(kind, line, end, 0, pieces)


def pieces_of(tokens: "list[Token]") -> Iterator[Piece]:
    """The running text of these tokens; a table's head and code have none."""
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
        elif token.type == "html_block" and (shown := TAG.sub(" ", token.content)).strip():
            yield Piece(shown, line)


def heading_words(block: Block) -> str:
    """What a heading says, without marks of Markdown."""
    return "".join(piece.text for piece in block.pieces).strip(" #*_:：\t")

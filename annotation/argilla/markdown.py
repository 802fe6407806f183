"""The reader of Markdown: markdown-it's, without all that an answer may not have, and with stricter rules of emphasis.

Links, images, addresses, HTML, entities, escapes and formulas are text as they were written, and nothing within them is
markup. `*` and `_` within a word or between numbers stay; beside Chinese, Japanese, Korean and other scripts without
spaces they bind as their readers expect (https://github.com/tats-u/markdown-cjk-friendly, read 2026-11).

A line that Markdown would read as markup although it may be text gets a guard, and is read as text. A guard is a
noncharacter (https://www.unicode.org/faq/private_use.html#noncharacters), one for each kind, and is gone from what is
shown. An answer that has one of its own is not read as Markdown at all.
"""

import re
import unicodedata
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from html.entities import html5
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline


_GUARDS: Final = {
    "list marker": "\ufdd0",
    "quotation": "\ufdd1",
    "heading": "\ufdd2",
    "rule": "\ufdd3",
    "formula": "\ufdd4",
}
KINDS: Final = {guard: kind for kind, guard in _GUARDS.items()}
PIPE = "\ufddf"  # stands for an escaped `|`, of which a table would take the backslash away
OUR_CHARACTERS = re.compile("[\ufdd0-\ufdef]")

_MARKER = re.compile(r"([-+*]|[0-9]{1,9}[.)])(?:[ \t]+|$)")
_SHOWN_MARKER = re.compile(r"(?:[-+*]|(?:0|[1-9][0-9]{0,2})\.)\Z")  # the page has room for three digits
_NUMBER = r"\(?[€$£¥₹]?[ \t]?[.,]?[\d∞¼-¾⅐-⅞]"
# `- 2024:`, `- 2024-2025`, which no minus stands before
_YEAR = re.compile(r"(?:19|20)\d\d(?:年|[:：–—]|-(?:19|20)\d\d)")
_COMPARISON = re.compile(
    rf"((?:[ \t]*(?:[-+*]|[0-9]{{1,9}}[.)])[ \t]+)?[ \t]*)>[> \t]*=?[ \t]*[-+−±~≈]?[ \t]*{_NUMBER}"
)
_RULE = re.compile(r"([-*_])[ \t]*(?:\1[ \t]*){2,}\Z")
_EMPTY_HEADING = re.compile(r"#{1,6}[ \t]*\Z")
_CLOSED_HEADING = re.compile(r"#{1,6}[ \t].*?([ \t]#+[ \t]*)\Z")
_PARAGRAPH = re.compile(r"[^\n]*\S[^\n]*(?:\n[^\n]*\S[^\n]*)*")


def guarded(text: str) -> str:
    """The text with a guard wherever a line would begin, or end, what it may not mean, and `PIPE` for `\\|`."""
    formula = _formula_lines(text)
    lines, above = [], ""
    for number, line in enumerate(text.split("\n")):
        place, kind = _guard_of(line, above)
        if number in formula:
            place, kind = len(line) - len(line.lstrip(" \t>")), "formula"
        lines.append(f"{line[:place]}{_GUARDS[kind]}{line[place:]}" if kind else line)
        above = line
    return "\n".join(lines).replace("\\|", PIPE)


def _formula_lines(text: str) -> set[int]:
    """The numbers of lines that go on with a formula of the line before: `$$ … $$` or `\\[ … \\]` in a paragraph."""
    found: set[int] = set()
    formulas = [formula for formula in (("$$", "$$"), ("\\[", "\\]")) if formula[0] in text]
    line = counted = 0
    for paragraph in _PARAGRAPH.finditer(text) if formulas else ():
        line += text.count("\n", counted, paragraph.start())
        counted = paragraph.start()
        for opening, closing in formulas:
            start = paragraph[0].find(opening)
            while start >= 0 and (end := paragraph[0].find(closing, start + 2)) >= 0:
                if inside := paragraph[0].count("\n", start, end):
                    first = line + paragraph[0].count("\n", 0, start)
                    found.update(range(first + 1, first + inside + 1))
                start = paragraph[0].find(opening, end + 2)
    return found


def _guard_of(line: str, above: str) -> tuple[int, str]:
    if ">" in line and (comparison := _COMPARISON.match(line)):
        return comparison.end(1), "quotation"
    rest = line.lstrip(" \t>")
    lead = len(line) - len(rest)
    if rest[:1] not in set("-+*_#0123456789"):
        return 0, ""
    if _RULE.match(rest):
        return lead, "rule" if above.strip("> \t") else ""
    if rest[0] == "#":
        closed = _CLOSED_HEADING.match(rest)
        return (lead, "heading") if _EMPTY_HEADING.match(rest) else (len(line), "heading" if closed else "")
    marker = _MARKER.match(rest)
    return lead, "list marker" if marker and not _is_item(marker[1], rest[marker.end() :]) else ""


def _is_item(marker: str, content: str) -> bool:
    """A minus before a number may be a minus, a second marker makes a date (`1. 5. 2024`); a marker alone is a sign."""
    if not _SHOWN_MARKER.match(marker) or not content.strip() or _MARKER.match(content):
        return False
    return marker[-1] == "." or not re.match(_NUMBER, content) or bool(_YEAR.match(content))


COUNTS = "kept"  # key of the reader's environment: how often each kind of markup was kept as text
_RUNS = "runs of backticks"
_DEEPEST = 20
_ESCAPED = re.compile(r"\\[!-/:-@\[-`{-~]")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]*);?")
# Of words between two underscores each these are names of code; others are bold.
_NAMED = (
    "all|annotations|bases|bool|builtins|call|class|contains|debug|del|dict|dirname|doc|enter|eq|exit|file|filename|"
    "format|future|getattr|getitem|hash|import|init|int|iter|len|loader|main|module|mro|name|new|next|package|path|"
    "post|proto|qualname|repr|setattr|setitem|slots|spec|str|subclasses|typename|version"
)
_NAME_OF_CODE = re.compile(rf"__(?:{_NAMED}|[a-z]+[0-9_][a-z0-9_]*)__(?!\w)")
_BACKTICKS = re.compile("`+")
# Scripts that put no spaces between their words; the names of their characters begin so.
_DENSE = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC", "THAI", "LAO", "KHMER", "MYANMAR", "YI")
_NO_EMPHASIS_BESIDE = set("/\\=+@&%#^~$<>")
_NO_EMPHASIS_BEFORE = set(".,;:!?)]}/\\|=&%+-^")


@cache
def reader(common: bool = False) -> "MarkdownIt":
    """With `common` it finds emphasis where every other reader of Markdown does, to count what ours keeps."""
    from markdown_it import MarkdownIt

    made = MarkdownIt("commonmark", {"maxNesting": _DEEPEST}).enable("table")
    made.disable(["reference", "lheading", "html_block", "link", "image", "autolink", "html_inline", "entity"])
    made.block.ruler.before("table", "guarded", _ends_block, {"alt": ["paragraph", "blockquote", "list"]})
    made.inline.ruler.at("escape", _verbatim)
    made.inline.ruler.at("backticks", _code)
    if not common:
        made.inline.ruler.at("emphasis", _emphasis)
    return made


def _ends_block(state: "StateBlock", line: int, end: int, silent: bool) -> bool:
    """Whether a guarded line ends the list or quotation above it instead of going on with its text."""
    start = state.bMarks[line] + state.tShift[line]
    is_guarded = start < len(state.src) and state.src[start] in KINDS
    return silent and is_guarded and (state.parentType == "blockquote" or state.sCount[line] < state.blkIndent)


def _keep(state: "StateInline", end: int, kind: str) -> bool:
    state.pending += state.src[state.pos : end]
    state.pos = end
    if kind:
        state.env[COUNTS][kind] += 1
    return True


def _verbatim(state: "StateInline", silent: bool) -> bool:
    found = _VERBATIM.get(state.src[state.pos])
    return bool(found) and found(state, state.src, state.pos)  # type: ignore[misc]  # mypy loses that it is there


def _backslash(state: "StateInline", src: str, pos: int) -> bool:
    """An escape, or a formula between `\\(` and `\\)` or `\\[` and `\\]`."""
    closing = {"(": "\\)", "[": "\\]"}.get(src[pos + 1 : pos + 2])
    if closing and state.cache.get(-ord(closing[1]), pos) != -1:
        end = src.find(closing, pos + 2)
        state.cache[-ord(closing[1])] = end
        if end >= 0:
            return _keep(state, end + 2, "escape" if src[pos + 2 : end].isdigit() else "formula")
    return bool(_ESCAPED.match(src, pos)) and _keep(state, pos + 2, "escape")


def _matching(pattern: str, kind: str) -> Callable[["StateInline", str, int], bool]:
    compiled = re.compile(pattern)

    def taken(state: "StateInline", src: str, pos: int) -> bool:
        found = compiled.match(src, pos)
        return bool(found) and _keep(state, found.end(), kind)  # type: ignore[union-attr]

    return taken


_tag = _matching(r"</?[a-zA-Z][^<>]*>|<[a-zA-Z][a-zA-Z0-9+.-]*:[^<>\s]*>", "")


def _angle(state: "StateInline", src: str, pos: int) -> bool:
    if not src.startswith("<!--", pos) or state.cache.get(-ord("<"), pos) == -1:
        return _tag(state, src, pos)
    end = state.cache[-ord("<")] = src.find("-->", pos + 4)
    return end >= 0 and _keep(state, end + 3, "")


def _ampersand(state: "StateInline", src: str, pos: int) -> bool:
    found = _ENTITY.match(src, pos)
    is_read = found and (found[0][1] == "#" or found[0][1:] in html5)
    return bool(found and is_read) and _keep(state, found.end(), "entity")  # type: ignore[union-attr]


_VERBATIM: dict[str, Callable[["StateInline", str, int], bool]] = {
    "\\": _backslash,
    "$": _matching(r"\$\$[^$]+\$\$|\$(?![\s$])(?:[^$\n\\]|\\.)*(?<![\s\\])\$(?!\d)", "formula"),
    "<": _angle,
    "]": _matching(r"\](?:\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)|:(?=[ \t]*(?:https?:|<)))", ""),
    ":": _matching(r"://(?:[^\s<>\"`*|\\^{}\u0100-\U0010ffff]|\*+(?=[A-Za-z0-9/]))+", ""),
    "&": _ampersand,
    "~": _matching(r"(~~?)(?=(?=\S)[^~\n]*(?<=\S)\1(?!~))", "tilde"),
}


def _code(state: "StateInline", silent: bool) -> bool:
    """Take a span of code, on one line and between two equally long runs of backticks."""
    src, start = state.src, state.pos
    if src[start] != "`":
        return False
    known, runs = state.env.get(_RUNS, (None, None))
    if known is not src:
        runs = defaultdict(list)  # where the runs of each length begin
        for found in _BACKTICKS.finditer(src):
            runs[len(found[0])].append(found.start())
        state.env[_RUNS] = (src, runs)
    length = len(_BACKTICKS.match(src, start)[0])  # type: ignore[index]
    ends = runs[length]
    place = bisect_left(ends, start + length)
    closing = ends[place] if place < len(ends) else -1
    if closing < 0 or "\n" in src[start:closing] or not src[start + length : closing].strip():
        state.pending += src[start : start + length]
        state.pos += length
        return True
    state.push("code_inline", "code", 0).content = src[start + length : closing]
    state.pos = closing + length
    return True


def _emphasis(state: "StateInline", silent: bool) -> bool:
    from markdown_it.rules_inline.state_inline import Delimiter

    src, start = state.src, state.pos
    marker = src[start]
    if marker not in "*_":
        return False
    if marker == "_" and (name := _NAME_OF_CODE.match(src, start)) and not src[start - 1 : start].isalnum():
        return _keep(state, name.end(), "emphasis")
    common = state.scanDelims(start, marker == "*")
    end = start + common.length
    opens, closes = _flanks(marker, common.length, src[start - 1 : start] if start else "", src[end : end + 1])
    if (opens, closes) != (common.can_open, common.can_close):
        state.env[COUNTS]["emphasis"] += 1
    for _ in range(common.length):
        state.push("text", "", 0).content = marker
        state.delimiters.append(
            Delimiter(ord(marker), common.length, len(state.tokens) - 1, end=-1, open=opens, close=closes)
        )
    state.pos = end
    return True


def _flanks(marker: str, length: int, before: str, after: str) -> tuple[bool, bool]:
    """Whether a run of the marker can open and close emphasis, by the characters beside it; empty at an end."""
    left, right = _kind_of(before), _kind_of(after)
    opens = right != "space" and (right != "sign" or left != "word")
    closes = left != "space" and (left != "sign" or right != "word")
    if marker == "*" and length > 1:
        within_word = left == right == "word"
        return opens and not within_word, closes and not within_word
    words = ("word", "dense")
    opens = opens and left not in words and before not in _NO_EMPHASIS_BESIDE and before not in set(")]）")
    closes = closes and right not in words and after not in _NO_EMPHASIS_BESIDE and after not in set("(（")
    if length == 1:
        opens = opens and after not in _NO_EMPHASIS_BEFORE and not after.isdigit()
    return opens, closes


@cache
def _kind_of(character: str) -> str:
    """Whether the character is a `space`, a `sign`, part of a `word`, or of a script without spaces: `dense`."""
    if not character or character.isspace() or character in KINDS:
        return "space"
    if unicodedata.category(character)[0] in "PS":
        return "sign"
    return "dense" if character > "\u0dff" and unicodedata.name(character, "").startswith(_DENSE) else "word"

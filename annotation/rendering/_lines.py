"""Lines that Markdown would read as markup although they may be text: each gets a guard, and is read as text.

A guard is a noncharacter (https://www.unicode.org/faq/private_use.html#noncharacters), one for each kind, and is gone
from what is shown. An answer that has one of its own is not read as Markdown at all.
"""

import re
from collections.abc import Iterator
from typing import Final

GUARDS: Final = {
    "list marker": "\ufdd0",
    "quotation": "\ufdd1",
    "heading": "\ufdd2",
    "rule": "\ufdd3",
    "formula": "\ufdd4",
}
KINDS: Final = {guard: kind for kind, guard in GUARDS.items()}
PIPE = "\ufddf"
"""Stands for an escaped `|`, of which a table would take the backslash away."""
OUR_CHARACTERS = re.compile("[\ufdd0-\ufdef]")

_LEAD = re.compile(r"(?:[ \t]*>)*[ \t]*")
_MARKER = re.compile(r"([-+*]|[0-9]{1,9}[.)])(?:[ \t]+|$)")
_SHOWN_MARKER = re.compile(r"(?:[-+*]|(?:0|[1-9][0-9]{0,2})\.)\Z")  # the page has room for three digits
_NUMBER = r"\(?[€$£¥₹]?[ \t]?[.,]?[\d∞¼-¾⅐-⅞]"
_BEGINS_WITH_NUMBER = re.compile(_NUMBER)
_YEAR = re.compile(
    r"(?:19|20)\d\d(?:年|[:：–—]|-(?:19|20)\d\d)"
)  # `- 2024:`, `- 2024-2025`, which no minus stands before
_COMPARISON = re.compile(
    rf"((?:[ \t]*(?:[-+*]|[0-9]{{1,9}}[.)])[ \t]+)?[ \t]*)>[> \t]*=?[ \t]*[-+−±~≈]?[ \t]*{_NUMBER}"
)
_RULE = re.compile(r"([-*_])[ \t]*(?:\1[ \t]*){2,}\Z")
_EMPTY_HEADING = re.compile(r"#{1,6}[ \t]*\Z")
_CLOSED_HEADING = re.compile(r"#{1,6}[ \t].*?([ \t]#+[ \t]*)\Z")
_PARAGRAPH = re.compile(r"[^\n]*\S[^\n]*(?:\n[^\n]*\S[^\n]*)*")
_FORMULAS = (("$$", "$$"), ("\\[", "\\]"))


def guarded(text: str) -> str:
    """The text with a guard wherever a line would begin, or end, what it may not mean, and `PIPE` for `\\|`."""
    formula = _formula_lines(text)
    lines, above = [], ""
    for number, line in enumerate(text.split("\n")):
        place, kind = (_lead(line), "formula") if number in formula else _guard_of(line, above)
        lines.append(f"{line[:place]}{GUARDS[kind]}{line[place:]}" if kind else line)
        above = line
    return "\n".join(lines).replace("\\|", PIPE)


def _formula_lines(text: str) -> set[int]:
    """The numbers of lines that go on with a formula of the line before: `$$ … $$` or `\\[ … \\]` in a paragraph."""
    found: set[int] = set()
    if any(opening in text for opening, _ in _FORMULAS):
        line = counted = 0
        for paragraph in _PARAGRAPH.finditer(text):
            line += text.count("\n", counted, paragraph.start())
            counted = paragraph.start()
            for start, end in _formulas_of(paragraph[0]):
                first = line + paragraph[0].count("\n", 0, start)
                found.update(range(first + 1, first + paragraph[0].count("\n", start, end) + 1))
    return found


def _formulas_of(paragraph: str) -> Iterator[tuple[int, int]]:
    """Where formulas of several lines begin and end."""
    if "\n" not in paragraph:
        return
    for opening, closing in _FORMULAS:
        start = paragraph.find(opening)
        while start >= 0 and (end := paragraph.find(closing, start + 2)) >= 0:
            if "\n" in paragraph[start:end]:
                yield start, end
            start = paragraph.find(opening, end + 2)


def _guard_of(line: str, above: str) -> tuple[int, str]:
    """Where the line needs a guard, and of which kind; the kind is empty where it needs none."""
    if ">" in line and (comparison := _COMPARISON.match(line)):
        return comparison.end(1), "quotation"
    lead = _lead(line)
    rest = line[lead:]
    if rest[:1] not in set("-+*_#0123456789"):
        return 0, ""
    if _RULE.match(rest):
        return lead, "rule" if above.strip("> \t") else ""
    if rest[0] == "#":
        closed = _CLOSED_HEADING.match(rest)
        return (lead, "heading") if _EMPTY_HEADING.match(rest) else (len(line), "heading" if closed else "")
    marker = _MARKER.match(rest)
    return lead, "list marker" if marker and not _is_item(marker[1], rest[marker.end() :]) else ""


def _lead(line: str) -> int:
    """Where the line goes on after its spaces and its marks of quotation."""
    found = _LEAD.match(line)
    return found.end() if found else 0


def _is_item(marker: str, content: str) -> bool:
    """Whether a line with the marker is an item of a list, and nothing of it would be lost or changed as one.

    A minus before a number may be a minus, a second marker makes a date (`1. 5. 2024`), and a marker alone is a sign.
    """
    if not _SHOWN_MARKER.match(marker) or not content.strip() or _MARKER.match(content):
        return False
    return marker[-1] == "." or not _BEGINS_WITH_NUMBER.match(content) or bool(_YEAR.match(content))

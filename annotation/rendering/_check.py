"""HTML of a block and what it was made from go in; whether the one shows all of the other comes out.

The HTML is read as a browser reads it, and beside it the source from its beginning: each text must come next in the
source, each element must stand where its own markup stands, and at the end nothing of the source may be left. White
space may differ. Nothing here knows how the HTML was made.
"""

import re
from html.parser import HTMLParser

_SPACE = re.compile(r"\s*")
_MARKUP = {
    "strong": re.compile(r"\*\*|__"),
    "em": re.compile(r"[*_]"),
    "blockquote": re.compile(">"),
    "hr": re.compile(r"([-*_])[ \t]*(?:\1[ \t]*){2,}(?=\n|\Z)"),
}
_WITHIN_TEXT = ("strong", "em", "code")
_BULLET = re.compile(r"[-+*](?=\s)")
_CODE = re.compile("`+")
_FENCE = re.compile(r"`{3,}|~{3,}")
_PIPE = re.compile(r"\|?")
_LAST_PIPE = re.compile(r"[ \t]*\|?")
_UNDER_HEAD = re.compile(r"[|:\- \t]*-[|:\- \t]*(?=\n|\Z)")
_CITATION = re.compile(r"\[\d+(?:, ?\d+)*\]")
_EMPTY_QUOTED_LINES = re.compile(r"(?:\s*\n(?:[ \t]*>)+[ \t]*(?=\n|\Z))*")


def shows_all(block: str, source: str) -> bool:
    """Whether the block of HTML shows every character of the source but its own markup, and no other.

    And as many citations: `[**1**]` is none, and would look like one.
    """
    reading = _Reading(source)
    reading.feed(block)
    reading.close()
    reading.skip_space()
    is_whole = reading.is_right and reading.place == len(source)
    return is_whole and len(_CITATION.findall("".join(reading.seen))) == len(_CITATION.findall(source))


class _Reading(HTMLParser):
    """A block of HTML, read beside its source."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.source = source
        self.place = 0
        self.is_right = True
        self.seen: list[str] = []
        self.quotations = 0
        self.lists: list[str] = []
        self.runs: list[str] = []  # of backticks or tildes, that something must close
        self.is_code_block = False

    def skip_space(self) -> None:
        """Go on to the next character that is seen; lines within a quotation begin with its marks."""
        marks = re.compile(rf"(?:[ \t]*>){{0,{self.quotations}}}") if self.quotations else None
        while True:
            end = _SPACE.match(self.source, self.place).end()  # type: ignore[union-attr]  # matches the empty text too
            is_new_line = "\n" in self.source[self.place : end]
            self.place = end
            if not (marks and is_new_line):
                return
            # Its marks may stand right behind the line end's own spaces only.
            self.place = marks.match(self.source, end).end()  # type: ignore[union-attr]

    def take(self, pattern: re.Pattern[str]) -> str:
        """What of the source the pattern takes after any space."""
        self.skip_space()
        found = pattern.match(self.source, self.place)
        if found is None:
            self.is_right = False
            return ""
        self.place = found.end()
        return found[0]

    def handle_data(self, data: str) -> None:
        self.seen.append(data)
        for word in data.split():
            self.skip_space()
            self.is_right = self.is_right and self.source.startswith(word, self.place)
            self.place += len(word)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _WITHIN_TEXT:
            self.seen.append("\n")
        if tag in _MARKUP:
            self.take(_MARKUP[tag])
            self.quotations += tag == "blockquote"
        elif tag in ("ul", "ol"):
            self.lists.append(tag)
        elif tag == "li":
            self.take(re.compile(f"{dict(attrs).get('value')}\\.(?=\\s)") if self.lists[-1] == "ol" else _BULLET)
        elif tag in ("td", "th"):
            self.take(_PIPE)
        elif tag[0] == "h":
            self.take(re.compile(rf"#{{{tag[1]}}}(?=\s)"))
        elif tag == "pre":
            self.open_code_block()
        elif tag == "code" and not self.is_code_block:
            self.runs.append(self.take(_CODE))

    def open_code_block(self) -> None:
        """Begin with a block of code, at its fence if it has one."""
        self.is_code_block = True
        self.skip_space()
        found = _FENCE.match(self.source, self.place)
        self.runs.append(found[0] if found else "")
        self.place += len(self.runs[-1])

    def handle_endtag(self, tag: str) -> None:
        if tag in ("strong", "em"):
            self.take(_MARKUP[tag])
        elif tag == "blockquote":
            self.take(_EMPTY_QUOTED_LINES)
            self.quotations -= 1
        elif tag in ("ul", "ol"):
            self.lists.pop()
        elif tag == "tr":
            self.take(_LAST_PIPE)
        elif tag == "thead":
            self.take(_UNDER_HEAD)
        elif tag == "pre":
            self.is_code_block = False
            run = self.runs.pop()
            closing = re.compile(f"(?:{run[:3]}{run[:1]}*(?=[ \\t]*(?:\\n|\\Z)))?") if run else None
            if closing:
                self.take(closing)
        elif tag == "code" and not self.is_code_block:
            self.take(re.compile(f"{self.runs.pop()}(?!`)"))

"""What people type into the search box, read as the stock server's engines read it.

The language is Lucene's `simple_query_string` with all words wanted (`es_simple_query_string` in argilla-server's
`search_engine/commons.py`; org.apache.lucene.queryparser.simple.SimpleQueryParser, read in 9.12): `"a phrase"`,
`prefix*`, `this | that`, `-not this`, `+`, parentheses, and a backslash before any of these signs that is meant itself.
`~N` is read as nothing. No text is an error: what makes no sense as a sign is left out.
"""

import re
from typing import NamedTuple

from annotation.server.search.words import words_of

_ENDS_A_WORD = '"|+() \t\n\r'
_PHRASE = re.compile(rf'"((?:\\.|[^"\\])*)"(?:~[^{_ENDS_A_WORD}]*)?', re.DOTALL)
_WORD = re.compile(
    rf"((?:\\(?:.|\Z)|[^{_ENDS_A_WORD}\\])(?:\\(?:.|\Z)|[^{_ENDS_A_WORD}~\\])*?)(\*?)"
    rf"(?:~[^{_ENDS_A_WORD}]*)?(?=[{_ENDS_A_WORD}]|\Z)",
    re.DOTALL,
)


class Phrase(NamedTuple):
    words: str
    is_prefix: bool = False


class Not(NamedTuple):
    wanted: "ParsedQuery"


class Group(NamedTuple):
    parts: "tuple[ParsedQuery, ...]"
    wants_all: bool


ParsedQuery = Phrase | Not | Group
NOTHING = Group((), wants_all=False)
EVERYTHING = Group((), wants_all=True)


def read_query(text: str) -> ParsedQuery:
    """A text too long or too nested to be a query, as a passage that was pasted, is one phrase."""
    if text.strip() == "*":
        return EVERYTHING
    if len(text) <= 5_000:
        closing, deepest = _parentheses(text)
        if deepest <= 40:
            wanted = _read(text, closing, 0, len(text))
            if _count_phrases(wanted) <= 200:
                return wanted or NOTHING
    return _phrase_of(text) or NOTHING


def _parentheses(text: str) -> tuple[dict[int, int], int]:
    closing: dict[int, int] = {}
    deepest, opened = 0, list[int]()
    for sign in re.finditer(r"\\.|[()]", text, re.DOTALL):
        if sign[0] == "(":
            opened.append(sign.start())
        elif sign[0] == ")" and opened:
            deepest = max(deepest, len(opened))
            closing[opened.pop()] = sign.start()
    return closing, deepest


def _count_phrases(wanted: ParsedQuery | None) -> int:
    match wanted:
        case Not(part):
            return _count_phrases(part)
        case Group(parts, _):
            return sum(map(_count_phrases, parts))
    return int(wanted is not None)


def _read(text: str, closing: dict[int, int], position: int, end: int) -> ParsedQuery | None:
    tree, negations = _Tree(), 0
    while position < end:
        sign = text[position]
        if sign == "-":
            negations += 1
            position += 1
            continue
        if sign == "(" and position in closing:
            tree.add(_read(text, closing, position + 1, closing[position]), negations)
            position = closing[position] + 1
        elif sign == '"' and (phrase := _PHRASE.match(text, position, end)):
            tree.add(_phrase_of(phrase[1]), negations)
            position = phrase.end()
        elif sign not in _ENDS_A_WORD and (word := _WORD.match(text, position, end)):
            tree.add(_phrase_of(word[1], is_prefix=bool(word[2])), negations)
            position = word.end()
        else:
            if sign in "+|" and tree.wants_all is None and tree.top is not None:  # of several signs the first counts
                tree.wants_all = sign == "+"
            position += 1
        negations = 0
    return tree.top


def _phrase_of(text: str, is_prefix: bool = False) -> Phrase | None:
    words = words_of(re.sub(r"\\(.?)", r"\1", text, flags=re.DOTALL))
    return Phrase(words, is_prefix) if words else None


class _Tree:
    """What was read so far. As in Lucene no sign binds closer than another: `a | b c` is `(a | b) c`."""

    def __init__(self) -> None:
        self.top: ParsedQuery | None = None
        self.wants_all: bool | None = None  # what the sign before the next part says

    def add(self, part: ParsedQuery | None, negations: int) -> None:
        wants_all = self.wants_all is not False
        self.wants_all = None
        if part is None:
            return
        part = Not(part) if negations % 2 else part
        if self.top is None:
            self.top = part
        elif isinstance(self.top, Group) and self.top.wants_all == wants_all:
            self.top = Group((*self.top.parts, part), wants_all)
        else:
            self.top = Group((self.top, part), wants_all)

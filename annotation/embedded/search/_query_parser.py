"""What people type into the search box, read as the stock server's engines read it.

The language is Lucene's `simple_query_string` with all words wanted (`es_simple_query_string` in argilla-server's
`search_engine/commons.py`; org.apache.lucene.queryparser.simple.SimpleQueryParser, read in 9.12): `"a phrase"`,
`prefix*`, `this | that`, `-not this`, `+`, parentheses, and a backslash before any of these signs that is meant itself.
`~N` is read as nothing. No text is an error: what makes no sense as a sign is left out.
"""

from typing import NamedTuple

from annotation.embedded.search._tokenizer import words_of

_WHITESPACE = " \t\n\r"
_ENDS_A_WORD = '"|+()' + _WHITESPACE
_MOST_CHARACTERS = 5_000
_MOST_PHRASES = 200
_DEEPEST = 40


class Phrase(NamedTuple):
    """Words that stand together in one field; of the last one, only the beginning if it is a prefix."""

    words: str
    is_prefix: bool = False


class Not(NamedTuple):
    """Everything but what is wanted."""

    wanted: "ParsedQuery"


class Group(NamedTuple):
    """All of the parts, or any of them."""

    parts: "tuple[ParsedQuery, ...]"
    wants_all: bool


ParsedQuery = Phrase | Not | Group
NOTHING = Group((), wants_all=False)
EVERYTHING = Group((), wants_all=True)


def read_query(text: str) -> ParsedQuery:
    """What the text asks for. `*` alone asks for everything, a text without any word for nothing.

    A text too long or too nested to be a query, as a passage that was pasted, is one phrase.
    """
    if text.strip() == "*":
        return EVERYTHING
    if len(text) <= _MOST_CHARACTERS:
        reading = _QueryParser(text)
        if not reading.is_too_deep:
            wanted = reading.read(0, len(text))
            if _count_phrases(wanted) <= _MOST_PHRASES:
                return wanted or NOTHING
    words = words_of(text)
    return Phrase(words) if words else NOTHING


def _count_phrases(wanted: ParsedQuery | None) -> int:
    """How many phrases are looked for."""
    match wanted:
        case Phrase():
            return 1
        case Not(part):
            return _count_phrases(part)
        case Group(parts, _):
            return sum(map(_count_phrases, parts))
    return 0


class _QueryParser:
    """One query and where its parentheses end; the position goes through the text once."""

    def __init__(self, text: str) -> None:
        """Find the parentheses that belong together."""
        self.text = text
        self.closing: dict[int, int] = {}
        deepest, open_ones, position = 0, list[int](), 0
        while position < len(text):
            if text[position] == "\\":
                position += 1
            elif text[position] == "(":
                open_ones.append(position)
            elif text[position] == ")" and open_ones:
                deepest = max(deepest, len(open_ones))
                self.closing[open_ones.pop()] = position
            position += 1
        self.is_too_deep = deepest > _DEEPEST

    def read(self, start: int, end: int) -> ParsedQuery | None:
        """What a part of the text asks for; None where it holds no word."""
        tree, position, negations = _Tree(), start, 0
        while position < end:
            sign = self.text[position]
            position += 1
            if sign == "-":
                negations += 1
                continue
            if sign == "(" and position - 1 in self.closing:
                inner = self.closing[position - 1]
                tree.add(self.read(position, inner), negations)
                position = inner + 1
            elif sign == '"' and (close := self.end_of_phrase(position, end)) is not None:
                tree.add(_phrase_of(self.plain(position, close)), negations)
                position = self.end_of_slop(close + 1, end)
            elif sign in "+|":
                tree.join(wants_all=sign == "+")
            elif sign not in _ENDS_A_WORD:
                position = self.add_word(tree, position - 1, end, negations)
            negations = 0
        return tree.top

    def add_word(self, tree: "_Tree", start: int, end: int, negations: int) -> int:
        """Add the word at the start to the tree; returns where it ends, with `~N` left out."""
        position, is_prefix = start, False
        while position < end and self.text[position] not in _ENDS_A_WORD:
            if self.text[position] == "~" and position > start:
                break
            escaped = self.text[position] == "\\"
            is_prefix = self.text[position] == "*" and position > start
            position += 2 if escaped else 1
        position = min(position, end)
        word = self.plain(start, position - is_prefix)
        tree.add(_phrase_of(word, is_prefix), negations)
        if position < end and self.text[position] == "~":
            while position < end and self.text[position] not in _ENDS_A_WORD:
                position += 1
        return position

    def end_of_phrase(self, start: int, end: int) -> int | None:
        """Where the quotation mark is that ends the phrase; None where there is none."""
        position = start
        while position < end:
            if self.text[position] == '"':
                return position
            position += 2 if self.text[position] == "\\" else 1
        return None

    def end_of_slop(self, start: int, end: int) -> int:
        """Where `~N` after a phrase ends."""
        position = start
        while self.text[start : start + 1] == "~" and position < end and self.text[position] not in _ENDS_A_WORD:
            position += 1
        return position

    def plain(self, start: int, end: int) -> str:
        """The text of a part without the backslashes that keep signs from being signs."""
        pieces, position = [], start
        while position < end:
            position += self.text[position] == "\\"
            pieces.append(self.text[position : min(position + 1, end)])
            position += 1
        return "".join(pieces)


def _phrase_of(text: str, is_prefix: bool = False) -> Phrase | None:
    """The words of the text as a phrase; None where it has none."""
    words = words_of(text)
    return Phrase(words, is_prefix) if words else None


class _Tree:
    """What was read so far. As in Lucene no sign binds closer than another: `a | b c` is `(a | b) c`."""

    def __init__(self) -> None:
        """Begin without any part."""
        self.top: ParsedQuery | None = None
        self.wants_all: bool | None = None

    def join(self, wants_all: bool) -> None:
        """Take a sign between two parts; the first of several counts."""
        if self.wants_all is None and self.top is not None:
            self.wants_all = wants_all

    def add(self, part: ParsedQuery | None, negations: int = 0) -> None:
        """Add a part; of one without any word nothing remains, nor of the sign before it."""
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

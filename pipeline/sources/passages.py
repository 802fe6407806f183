"""A page's text cut into passages: a paragraph, or a box, list, table or code block with the line that introduces it.

The stored text has a paragraph, list item, table row or line of code on each line, and no markup. What belongs together
is read from the form of the lines, so pages stored by earlier versions, PDFs and plain text are cut in the same way.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Literal, NamedTuple

from pipeline.sources.address import WORDS
from pipeline.sources.headings import Heading
from pipeline.text.sentences import sentence_spans
from pipeline.text.words import UNSPACED

_MOST = 3_000  # Characters from which a list, table or code block goes on in a passage of its own
_MOST_CODE_WORDS = 6  # Words of a line among lines of code that is code though nothing in it looks so
_LONG, _LONG_UNSPACED = 80, 40
"""Characters from which a line without a full stop is prose, and no caption, term or code."""
_LABEL = re.compile(WORDS["passages"]["label"], re.IGNORECASE)
_ITEM = re.compile(r"(?:[-*+•‣◦▪–]\s|\(?\d{1,3}[.)]\s|\(?[a-z][.)]\s|[①-⑳]|[(（]\d{1,2}[)）])")
_NUMBER = re.compile(r"\(?(\d{1,3})[.)]\s")
_ROW = re.compile(r"\S\s*\|\s|^\||\t")
_FENCE = re.compile(r"```|~~~")
_SENTENCE_END = re.compile(r"[.!?…:;。！？：；][\"'”’“»›)\]」』）]*(?:\s?\[\d{1,4}\])*$")
_STOPS = re.compile(r"[.!?。！？][\"'”’“»›)\]」』）]*$")
_ANNOUNCES = re.compile(r"[:：]$")
_CODE_START = re.compile(r"[#$>%{}<@/\\;]|>>>|\.\.\.|--|\"\"\"|'''|Traceback \(")
_OPENS = re.compile(r"[:{(\[,\\=]$")  # How a line of code ends that goes on
_CODE_SIGN = re.compile(r"[=;{}()<>$\\_\[\]|*]|\w[:/]\S|\S/\w|\w: \S")
_CAPTION = re.compile(r"(?:[A-ZÄÖÜ]{3,}|[A-ZÄÖÜ]{2,} [A-ZÄÖÜ]{2,})(?: [A-ZÄÖÜ]{2,})* \w")
"""Words in capitals before others, as manuals begin the captions of boxes."""
_PERMALINK = re.compile(r"[\s¶\u00a7🔗]+$")
_MARKDOWN_HEADING = re.compile(r"^#{1,6}\s+|\s+#+$")
_UNSPACED_SIGN = re.compile(f"[{UNSPACED}]")
_NO_LETTERS = re.compile(r"[\W_]+")

_PROSE_LINE = re.compile(r"^[^\n]{60,}[.!?:)\"”»]$|^[^\n]{20,}[。！？」）]$", re.MULTILINE)

_Kind = Literal["label", "prose", "item", "row", "other"]


class PassagePlace(NamedTuple):
    start: int
    end: int
    goes_on: bool = False
    """Whether it ends for its length alone: what belongs to it, or may belong to it, goes on in the next passage."""


class _Line(NamedTuple):
    start: int
    end: int
    kind: _Kind
    text: str
    glued: bool
    """Whether it goes on with the line above: in plain text, where blank lines part paragraphs, or by its indent."""


class _Group(list[_Line]):
    is_cut = False
    """Whether it ends for its length alone."""

    @property
    def length(self) -> int:
        return self[-1].end - self[0].start if self else 0


@lru_cache(maxsize=64)
def passage_places(text: str, headings: tuple[Heading, ...] = ()) -> tuple[PassagePlace, ...]:
    """The passages of a page in order, without overlap; lines of headings are in none. A blank text has none.

    A box reaches to the next heading or label, or to 1,500 characters; a list, table or code block to the next
    paragraph, or to 3,000 characters. Plain text with blank lines is parted by them.
    """
    groups = (group for lines, is_box in _sections(text, headings) for group in _cut(lines, is_box))
    return tuple(PassagePlace(group[0].start, group[-1].end, group.is_cut) for group in groups)


def _sections(text: str, headings: Sequence[Heading]) -> Iterator[tuple[list[_Line], bool]]:
    """The lines between two headings, without those of headings, and whether the heading above is a box's label."""
    named = {_bare(heading.text) for heading in headings}
    left = list(headings)
    lines: list[_Line] = []
    parts_by_blanks = "\n\n" in text
    is_box = in_code = follows = False
    at = 0
    for line in text.split("\n"):
        start, at = at, at + len(line) + 1
        words = line.strip()
        # Where a section is empty, its heading stands at the next one's place in the text.
        is_heading = bool(named) and len(words) < _LONG and _bare(words) in named and _kind_of(words) == "other"
        begun = [left.pop(0) for _ in range(sum(each.start < at for each in left[:20]))]
        if (is_heading or begun) and lines:
            yield lines, is_box
            lines = []
        if begun:
            is_box = is_label(begun[-1].text)
            is_heading = is_heading or _bare(words) in {_bare(each.text) for each in begun}
        if not words or is_heading:
            follows = False
            continue
        fence = _FENCE.match(words)
        in_code = in_code != bool(fence)
        opened = lines and lines[-1].kind == "other" and _OPENS.search(lines[-1].text) and _is_code(lines[-1].text)
        kind: _Kind = "other" if in_code or fence or opened else _kind_of(words)
        begin = start + line.index(words)
        is_indented = begin - start >= 2 and any(each.kind == "item" for each in lines)
        glued = kind == "prose" and (is_indented or (parts_by_blanks and follows))
        lines += _pieces(_Line(begin, begin + len(words), kind, words, glued))
        follows = True
    if lines:
        yield lines, is_box


def _pieces(line: _Line) -> Iterator[_Line]:
    begin = 0
    while len(line.text) - begin > _MOST:
        ends = [end for _, end in sentence_spans(line.text[begin : begin + _MOST])][:-1]
        end = begin + (ends[-1] if ends else _MOST)
        yield line._replace(start=line.start + begin, end=line.start + end, text=line.text[begin:end])
        begin = end
    yield line._replace(start=line.start + begin, text=line.text[begin:])


def _bare(text: str) -> str:
    return _NO_LETTERS.sub("", _MARKDOWN_HEADING.sub("", text)).casefold()


def is_label(text: str) -> bool:
    found = _LABEL.match(text)
    return bool(found and found["alone"] is not None)


def _kind_of(words: str) -> _Kind:
    ends = _SENTENCE_END.search(words)
    if is_label(words):
        return "label"
    label = _LABEL.match(words)
    if label and not ends and len(words) < _LONG and (words[: label.end() - 1].isupper() or _is_unspaced(words)):
        return "label"
    if _ITEM.match(words):
        return "item"
    if _ROW.search(words):
        return "row"
    signs = _NO_LETTERS.sub("", words)
    if _CODE_START.match(words) or len(signs) < 0.7 * len("".join(words.split())):  # prose has more letters
        return "other"
    if _is_unspaced(words):
        return "prose" if ends or len(words) >= _LONG_UNSPACED else "other"
    if not ends and (len(words) < _LONG or _PERMALINK.search(words)):
        return "other"
    is_short = len(words) < _LONG and words[0].islower()  # a longer one begins with the name of a program
    return "other" if is_short or len(words.split()) < 3 else "prose"


def _is_unspaced(words: str) -> bool:
    return 2 * len(_UNSPACED_SIGN.findall(words)) >= len(_NO_LETTERS.sub("", words)) > 0


def _cut(lines: Sequence[_Line], is_box: bool) -> Iterator[_Group]:
    group, boxed = _Group(), is_box
    for at, line in enumerate(lines):
        following = lines[at + 1] if at + 1 < len(lines) else None
        length = group.length + len(line.text)
        is_above_prose = following is not None and following.kind == "prose"
        if line.kind == "label" or (line.kind == "other" and is_above_prose and _CAPTION.match(line.text)):
            goes_on, boxed = False, True
        elif boxed:
            has_text = any(each.kind != "label" for each in group[1:])
            goes_on = boxed = not has_text or length <= 1_500  # where it ends is not in the text
            group.is_cut = not goes_on
        else:
            goes_on = _goes_on(group, line, following)
            group.is_cut = goes_on and length > _MOST
            goes_on = goes_on and not group.is_cut
        if group and not goes_on:
            yield group
            group = _Group()
        group.append(line)
    if group:
        yield group


def _goes_on(group: _Group, line: _Line, following: _Line | None) -> bool:
    if not group or line.glued:
        return bool(group)
    if line.kind != "prose":
        return not _begins(group, line, following)
    if all(each.kind == "other" or _PERMALINK.search(each.text) for each in group):
        return True
    above = group[-1]
    if above.end == line.start:  # a piece of the same line
        return True
    if line.text[0].islower() and not (_SENTENCE_END.search(above.text) or _is_code(above.text)):
        return True
    if above.kind == "other" and _is_code(above.text) and following is not None and following.kind == "other":
        # It is a line of the code's output, though it ends as a sentence does.
        return len(line.text) <= 120 and not _ANNOUNCES.search(line.text)
    numbers = (int(found[1]) for each in reversed(group) if (found := _NUMBER.match(each.text)))
    number = _NUMBER.match(following.text) if following is not None else None
    return number is not None and next(filter(None, numbers), 0) + 1 == int(number[1]) > 1


def _begins(group: _Group, line: _Line, following: _Line | None) -> bool:
    """Whether a line that is no prose is the term of what follows it, and no part of what stands above."""
    if _ANNOUNCES.search(group[-1].text):
        return False
    if _PERMALINK.search(line.text):
        return True
    if line.kind != "other" or following is None or following.kind not in ("prose", "item"):
        return False
    return group[-1].kind != "other" and not _CODE_START.match(line.text) and not line.text[0].islower()


def is_index(text: str) -> bool:
    """Whether a long text is hardly made of sentences: an index, or a table of contents."""
    prose = sum(len(line[0]) for line in _PROSE_LINE.finditer(text))
    return len(text) > 2_000 and prose < 0.1 * len(text)


def _is_code(line: str) -> bool:
    return _kind_of(line) == "other" and bool(_CODE_START.match(line) or _CODE_SIGN.search(line))


def lines_of(passage: str) -> list[tuple[str, bool]]:
    """The lines of a passage in order, each with whether it is one of code, which keeps its indent.

    Of lines in a row that are no prose, item or row, short ones are code too where one looks like it.
    """
    lines = [line.rstrip() for line in passage.split("\n") if line.strip()]
    found: list[tuple[str, bool]] = []
    for is_other, group in groupby(lines, lambda line: _kind_of(line.strip()) == "other"):
        together = list(group)
        looks_so = is_other and any(_is_code(line.strip()) for line in together)
        for line in together:
            is_code = looks_so and (_is_code(line.strip()) or len(line.split()) <= _MOST_CODE_WORDS)
            is_sentence = _STOPS.search(line) and len(line.split()) > _MOST_CODE_WORDS
            is_code = is_code and not (is_sentence and not _CODE_START.match(line.strip()))
            found.append((line if is_code else line.strip(), is_code))
    return found

"""Entries of a reference: a line that names something, and its description below, which mostly leaves the name out."""

import re
from typing import NamedTuple

_ARGUMENTS = r"\((?!\d)(?:[^()]|\([^()]*\))*\)"
_KINDS = r"(?:(?:class|exception|coroutine|awaitable|async(?: for| with)?|(?:abstract|class|static)method|property) )*"
_ENTRY = re.compile(
    rf"[-*•] +(?:(?P<option>--?\w[\w-]*)(?:[ =,\[<].{{0,80}}(?<![.!?:;]))?¶?"
    rf"|(?P<kind>{_KINDS}|(?:[\w*]+ \*{{0,2}}){{0,4}}(?=.*¶$))"
    rf"(?P<call>@?(?:\w+\.)*\w+){_ARGUMENTS}(?:(?: \S+){{0,2}}¶)?"
    rf"|{_KINDS}(?P<name>[^.()\[]{{1,60}}(?<! )|@?(?:\w+\.)+\w+)(?: ?\[.*)?¶"
    rf"|(?P<code>(?:\w+\.)*\w*_\w*)"
    rf"|(?P<case>.{{1,60}}):)"
)
"""An item that names what the one below it says something of: `- popitem()¶`, `- --amend`, `- a class object:`.

Sphinx ends such a line with `¶`; without it there is nothing but the name and its arguments, for the items of a list
may name a function as well: `- Added the edit() function.`
"""
_LONGEST = 1_000
"""Characters of such a line; a hostile page may have longer ones, above many sentences."""
_TYPES = ("class", "exception")
"""Kinds of entries whose names stand for something that is not called to be told of."""


class Entry(NamedTuple):
    """What a description is of."""

    label: str
    """Its name as it is told: `popitem()`; of a case the words before the colon."""
    start: int
    """First code point of the name in the text."""
    end: int
    """The code point after the last one."""
    is_case: bool
    """Whether it is one case of several, which says nothing without what it is a case of."""

    def is_in(self, sentence: str) -> bool:
        """Whether a sentence of the description says what it describes.

        The name of a function may be a word of many sentences, `list()`, and so may the last part of another one,
        `sys.path`: these count where they stand as names of code.
        """
        last = self.label.rpartition(".")[2]
        told = last.removesuffix("()")
        if last.islower() and "_" not in last:
            told = last.removesuffix(")") if last.endswith("()") else self.label
        words = re.IGNORECASE if self.is_case or self.label.islower() else 0
        return bool(re.search(rf"(?<![\w-]){re.escape(told)}", sentence, words))


def entry_above(text: str, place: int) -> Entry | None:
    """What the line of this place describes, where the line above it names that and no more; else None."""
    end = text.rfind("\n", 0, place)
    begin = text.rfind("\n", 0, end) + 1 if end > 0 else 0
    found = _ENTRY.fullmatch(text, begin, end) if 0 < end <= begin + _LONGEST else None
    if found is None:
        return None
    group = found.lastgroup or "name"
    label = found[group]
    if group == "call" and not any(kind in _TYPES for kind in found["kind"].split()):
        label += "()"
    return Entry(label, found.start(group), found.end(group), group == "case")

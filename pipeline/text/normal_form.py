"""The form in which a quote and a page are compared, and the way back from it to the page.

HTML entities are read once, typographic quotes, dashes and the ellipsis become ASCII, a run of white space becomes one
space, characters without width are dropped, letters are case-folded. Nothing else is made equal.

Source: pipeline/contracts/evidence.md#snippets.
"""

import re
from bisect import bisect_right
from functools import lru_cache
from html import unescape
from html.entities import html5
from typing import NamedTuple

# Soft hyphen, zero-width spaces and joiners, marks of direction, byte order mark.
INVISIBLE = "\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff"

# Letter for letter. The white space is everything that `str.isspace` takes for such (a test holds that).
_ASCII_FORMS = {
    "'": "‘’‚‛‹›′ʼʹ＇",
    '"': "“”„‟«»″＂",
    "-": "‐‑‒–—―−﹘﹣－",
    " ": "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009"
    "\u200a\u2028\u2029\u202f\u205f\u3000",
}

# What is not carried over letter by letter: entities, runs of white space, what has no width, and the blocks
# that hold every character whose case-folded or ASCII form has several letters (a test holds that).
SPECIAL = re.compile(
    rf"(?P<reference>&(?=[#A-Za-z]))|(?P<blank> {{2,}})|[{INVISIBLE}]+"
    "|(?P<several>[\u00df\u0130\u0149\u01f0\u0390\u03b0\u0587\u1e96-\u1e9e\u1f50-\u1fff\u2026\ufb00-\ufb17])"
)
# As HTML reads them, the semicolon included where there is one: https://html.spec.whatwg.org/#named-character-references
_REFERENCE = re.compile(
    r"&(?:#(?P<decimal>[0-9]+);?|#[xX](?P<hex>[0-9a-fA-F]+);?|(?P<name>[A-Za-z][A-Za-z0-9]{1,31};?))"
)
_HIDDEN = re.compile(f"[{INVISIBLE}]+")
_UNSEEN = re.compile(rf"[\s{INVISIBLE}]*")
_SPACES = re.compile(" {2,}")


class NormalForm(NamedTuple):
    """Stretch i begins at `starts[i]` of the form and at `origins[i]` of the text, where it is `widths[i]` wide.

    One that is as wide in both was carried over letter by letter. `starts` increases.
    """

    text: str
    starts: list[int]
    origins: list[int]
    widths: list[int]

    def find(self, form: str, start: int = 0) -> int:
        """Where the other one stands first from `start` on, beginning and ending with whole letters; -1 for nowhere."""
        at = self.text.find(form, start) if form else -1
        # A match may begin or end within what one letter became (`ß` → `ss`), and then it is none. In a text made of
        # such letters there may be as many of them as letters; beyond these no further one is looked at.
        for _ in range(50):
            if at < 0 or self.span(at, at + len(form)):
                return at
            at = self.text.find(form, at + 1)
        return -1

    def span(self, start: int, end: int) -> tuple[int, int] | None:
        """The span of the original text behind `[start:end]` of the form, not empty; None where it splits a letter."""
        first = bisect_right(self.starts, start) - 1
        last = bisect_right(self.starts, end - 1) - 1
        into, upto = start - self.starts[first], end - self.starts[last]
        if into and self._length(first) != self.widths[first]:
            return None
        if self._length(last) == self.widths[last]:
            return self.origins[first] + into, self.origins[last] + upto
        if upto != self._length(last):
            return None
        return self.origins[first] + into, self.origins[last] + self.widths[last]

    def _length(self, stretch: int) -> int:
        following = self.starts[stretch + 1] if stretch + 1 < len(self.starts) else len(self.text)
        return following - self.starts[stretch]


class _Writer:
    def __init__(self, text: str) -> None:
        self.text = text
        self.parts: list[str] = []
        self.form = NormalForm("", [], [], [])
        self.length = 0
        self.after_space = False

    def plain(self, start: int, end: int) -> None:
        """Carry `text[start:end]` over letter by letter; its white space are single spaces."""
        if self.after_space and self.text.startswith(" ", start, end):
            start += 1
        self.add(self.text[start:end].casefold(), start, end)

    def whole(self, form: str, start: int, end: int) -> None:
        """Let the form stand for `text[start:end]`, all or nothing."""
        self.add(form[1:] if self.after_space and form.startswith(" ") else form, start, end)

    def add(self, form: str, start: int, end: int) -> None:
        if form:
            self.parts.append(form)
            self.form.starts.append(self.length)
            self.form.origins.append(start)
            self.form.widths.append(end - start)
            self.length += len(form)
            self.after_space = form.endswith(" ")


def normal_form(text: str) -> NormalForm:
    """The normal form of a text with the way back, in time that is linear. Spaces at its ends stay, one each."""
    text = straighten(text)
    writer = _Writer(text)
    begun = at = 0
    while special := SPECIAL.search(text, at):
        start, at = special.span()
        form = ""
        if special["reference"]:
            meant, width = _read_reference(text, start)
            if not width:
                continue
            at = start + width
            form = _entity_form(meant)
        elif special["blank"]:
            form = " "
        elif special["several"]:
            form = fold(special[0])
        writer.plain(begun, start)
        writer.whole(form, start, at)
        begun = at
    writer.plain(begun, len(text))
    return writer.form._replace(text="".join(writer.parts))


def normalise(text: str) -> str:
    """The normal form of a quote, without spaces at its ends; empty where nothing of it can be seen."""
    return normal_form(text).text.strip(" ")


def straighten(text: str) -> str:
    for plain, typographic in _ASCII_FORMS.items():
        for mark in typographic:
            text = text.replace(mark, plain)
    return text


def fold(text: str) -> str:
    return text.replace("…", "...").casefold()


@lru_cache(maxsize=4096)
def _entity_form(meant: str) -> str:
    """It is not read again as an entity."""
    return fold(_SPACES.sub(" ", _HIDDEN.sub("", straighten(meant))))


def _read_reference(text: str, at: int) -> tuple[str, int]:
    """What the entity that begins there stands for, and how wide it is; 0 where none is."""
    found = _REFERENCE.match(text, at)
    if found is None:
        return "", 0
    if found["name"]:
        name = found["name"]
        known = next((name[:size] for size in range(len(name), 1, -1) if name[:size] in html5), "")
        return (html5[known], len(known) + 1) if known else ("", 0)
    # `unescape` knows the rules for odd code points, but fails on a number of thousands of digits.
    digits, sign = (found["decimal"], "&#") if found["decimal"] else (found["hex"], "&#x")
    digits = digits.lstrip("0") or "0"
    meant = unescape(f"{sign}{digits};") if len(digits) <= 7 else "\ufffd"
    return meant, len(found[0])


def reference_at(text: str, cut: int) -> int:
    """Where the entity begins that a cut before `text[cut]` would split; the cut itself where it splits none."""
    start = text.rfind("&", 0, cut)
    if start < 0:
        return cut
    return start if start + _read_reference(text, start)[1] > cut else cut


def starts_to_show(text: str) -> int:
    unseen = _UNSEEN.match(text)
    return unseen.end() if unseen else 0

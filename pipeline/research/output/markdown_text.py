"""Text of pages and models as plain words in Markdown: nothing of it is rendered, linked, or read as a citation."""

import re

MARKUP = re.compile(r"[\\`*\[\]<>|~$&!#]|(?<![^\W_])_|_(?![^\W_])|\^(?=\[)")
ADDRESS = re.compile(r"(?<=\w):(?=//)|(?<=\bwww)\.|(?<=\w)@(?=\w)", re.IGNORECASE)
CITATION = re.compile(r"(?<=[(（])(?=C[0-9]{3})|(?=【)")
LINE_START = re.compile(r"(?P<mark>[-+=])|(?P<number>[0-9]{1,9})(?=[.)](?:\s|$))")
BIDI_CONTROL = re.compile(r"[\u202a-\u202e\u2066-\u2069]")
WORD_JOINER = "\u2060"


def plain_markdown(text: str) -> str:
    """The text in one line, so written that Markdown shows it as it is.

    HTML, links, images, formulas, lists and headings stay letters; what turns the direction of text around is left out,
    for it would reach into the words behind it. Where no backslash helps, in e-mail addresses and
    before what looks like a citation, an invisible word joiner parts it.
    """
    words = " ".join(BIDI_CONTROL.sub("", text).split())
    words = ADDRESS.sub(lambda found: f"{found[0]}{WORD_JOINER}", words)
    words = MARKUP.sub(lambda found: f"\\{found[0]}", words)
    words = CITATION.sub(WORD_JOINER, words)
    return LINE_START.sub(begin_line, words, count=1) if LINE_START.match(words) else words


def begin_line(found: re.Match[str]) -> str:
    """What begins a list or an underline, so that it begins none."""
    return f"\\{found['mark']}" if found["mark"] else f"{found['number']}{WORD_JOINER}"


def link_to(text: str, url: str) -> str:
    """A link to a canonical URL with the text as its words."""
    return f"[{plain_markdown(text)}](<{url}>)" if re.search(r"[()\\]", url) else f"[{plain_markdown(text)}]({url})"

"""URLs in a text: Markdown links and images, `<url>`, and bare ones, Japanese text included."""

import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

LinkKind = Literal["markdown", "image", "angle", "bare"]

# Ends at the first character that is not ASCII: Japanese runs on without a space. Balanced brackets belong to it.
BARE_URL = re.compile(r"""https?://(?:[^\s<>"'()\[\]{}|\\^`\u0080-\U0010ffff]|\([^\s()]*+\))++""")
# Where brackets say where the URL ends, it keeps what is not ASCII, but for the full-width marks that end a phrase.
DELIMITED_URL = re.compile(
    r"""https?://(?:[^\s<>"'()\[\]{}|\\^`「」『』（）【】、。]"""
    r"""|\([^\s()]*+\)|（[^\s（）]*+）|「[^\s「」]*+」|『[^\s『』]*+』|【[^\s【】]*+】)++"""
)
OPENING = re.compile(r"(?:\]\([ \t]*+<?|<)(?=https?://)")
CLOSING_OF_LINK = re.compile(r"""[ \t]*+(?:"[^"\n]{0,500}+"|'[^'\n]{0,500}+')?[ \t]*+\)""")
LABEL_MARK = re.compile(r"\\.|[\[\]]|\n[ \t]*+\n", re.DOTALL)
TRAILING_MARKS = ".,;:!?*_"
# No label that a person reads is longer; without a bound, nested brackets would be copied over and over.
MAX_LABEL = 1000


class Link(NamedTuple):
    """One URL and where it stands: `start` and `end` are code points and span the whole link, label included."""

    start: int
    end: int
    url: str
    label: str
    kind: LinkKind


class Found(NamedTuple):
    """A link and the code points that its URL alone takes."""

    url_start: int
    url_end: int
    link: Link


def find_links(text: str) -> list[Link]:
    """Every link in the text in the order of its URL; repeats are kept, a URL inside another is not one of its own.

    The label is empty for `<url>` and bare URLs. Runs in time linear in the text, whatever it holds.

    Source: pipeline/contracts/csv_v2.md#citations; CommonMark 0.31 section 6.3 for labels and targets.
    """
    found = sorted([*delimited_links(text), *bare_links(text)], key=lambda each: each.url_start)
    links: list[Link] = []
    position = 0
    for url_start, url_end, link in found:
        if url_start >= position:
            links.append(link)
            position = url_end
    return links


def delimited_links(text: str) -> Iterator[Found]:
    """Markdown links, images and `<url>`; what begins as one and does not end as one is a bare URL."""
    openings = list(OPENING.finditer(text))
    labels = label_starts(text, (match.start() for match in openings if match[0][0] == "]"))
    for opening in openings:
        target = DELIMITED_URL.match(text, opening.end())
        url = clean_url(target[0]) if target else ""
        if target is None or not url:
            continue
        url_start, url_end = target.span()
        whole = whole_link(text, opening, url_end, labels.get(opening.start()))
        start, end, label, kind = whole or (url_start, url_start + len(url), "", "bare")
        yield Found(url_start, url_end, Link(start, end, url, label, kind))


def whole_link(
    text: str, opening: re.Match[str], url_end: int, label_start: int | None
) -> tuple[int, int, str, LinkKind] | None:
    """Span, label and kind of the link around a URL; None where its brackets do not close or its label is too long."""
    if opening[0].endswith("<"):
        if text[url_end : url_end + 1] != ">":
            return None
        url_end += 1
        if opening[0] == "<":
            return opening.start(), url_end, "", "angle"
    closing = CLOSING_OF_LINK.match(text, url_end)
    if closing is None or label_start is None or opening.start() - label_start > MAX_LABEL:
        return None
    label = text[label_start + 1 : opening.start()]
    if label_start and text[label_start - 1] == "!":
        return label_start - 1, closing.end(), label, "image"
    return label_start, closing.end(), label, "markdown"


def label_starts(text: str, closings: Iterable[int]) -> dict[int, int]:
    """The position of the `[` that each of these `]` closes; a blank line ends what is open, as in CommonMark."""
    wanted = set(closings)
    starts: dict[int, int] = {}
    opened: list[int] = []
    for mark in LABEL_MARK.finditer(text) if wanted else ():
        if mark[0] == "[":
            opened.append(mark.start())
        elif mark[0][0] == "\n":
            opened.clear()
        elif mark[0] == "]" and opened:
            start = opened.pop()
            if mark.start() in wanted:
                starts[mark.start()] = start
    return starts


def bare_links(text: str) -> Iterator[Found]:
    """URLs as they stand, those inside other links included."""
    for match in BARE_URL.finditer(text):
        url = clean_url(match[0])
        if url:
            start = match.start()
            yield Found(start, match.end(), Link(start, start + len(url), url, "", "bare"))


def clean_url(url: str) -> str:
    """The URL without the marks of the sentence at its end; empty where nothing follows the scheme."""
    url = url.rstrip(TRAILING_MARKS)
    return url if len(url) > len(url.split("://")[0]) + len("://") else ""

"""The main text of an HTML page, its title and its language."""

import re
from typing import Any, NamedTuple

from pipeline.sources.reading.decode import stored_text

NO_TEXT = frozenset(("script", "style", "template", "svg", "math", "head", "select", "iframe", "object", "canvas"))
BLOCKS = """address article aside blockquote br dd details div dl dt fieldset figcaption figure footer form h1
h2 h3 h4 h5 h6 header hr li main nav ol p pre section summary table tr ul"""
BREAKS = frozenset(BLOCKS.split())
BLANKS = re.compile(r"\s+")
XML_DECLARATION = re.compile(r"\A\s*<\?xml[^>]{0,200}\?>")
HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)
NOT_FREE = re.compile(r"\"isAccessibleForFree\"\s*:\s*\"?false", re.I)
LEAST_MAIN_TEXT = 100
LONGEST_TITLE = 300


class HtmlText(NamedTuple):
    """What an HTML page says."""

    text: str
    """The main text, one paragraph, list item or table row a line; all visible text where no main text is found."""
    title: str
    """The page's title; empty where it has none."""
    language: str
    """The language that the page names, such as `de`; empty where it names none."""
    marked_paid: bool
    """Whether the page marks itself as not free to read."""


def read_html(page: str, url: str) -> HtmlText:
    """What the page says. Comments of readers and hidden parts are left out; nothing is fetched."""
    import trafilatura

    tree = parsed(page)
    if tree is None:
        return HtmlText("", "", "", False)
    title, language = title_of(tree), (tree.get("lang") or "").split("-")[0].lower()
    drop_hidden(tree)
    found = trafilatura.extract(tree, url=url, include_comments=False) or ""
    text = "\n".join(line for line in map(str.strip, stored_text(found).split("\n")) if line)
    if len(text) < LEAST_MAIN_TEXT:
        text = all_text(page) or text
    return HtmlText(text, title, language, bool(NOT_FREE.search(page)))


def all_text(page: str) -> str:
    """All visible text of the page, parsed anew: looking for the main text takes a tree apart."""
    tree = parsed(page)
    drop_hidden(tree)
    return visible_text(tree)


def parsed(page: str) -> Any:
    """The page's tree, mended where it can be; None where there is nothing in it."""
    import trafilatura
    from lxml.etree import ParserError
    from lxml.html import HTMLParser, document_fromstring

    page = XML_DECLARATION.sub("", page)
    tree = trafilatura.load_html(page)  # None for what it takes for a fragment
    if tree is not None:
        return tree
    try:
        return document_fromstring(page, parser=HTMLParser(remove_comments=True, remove_pis=True, no_network=True))
    except ParserError:
        return None


def title_of(tree: Any) -> str:
    """The title that the page gives to be shown, else its own, else its first heading."""
    for path in ("//meta[@property='og:title']/@content", "//head/title/text()", "//title/text()", "//h1//text()"):
        title = " ".join(stored_text(" ".join(tree.xpath(path)[:20])).split())
        if title:
            return title[:LONGEST_TITLE]
    return ""


def visible_text(tree: Any) -> str:
    """All text of the page that a browser would show, a block a line; scripts are left out."""
    from lxml.etree import iterwalk

    parts: list[str] = []
    walk = iterwalk(tree, events=("start", "end"))
    for event, element in walk:
        name = element.tag if isinstance(element.tag, str) else ""
        parts.append("\n" if name in BREAKS else " " if name in ("td", "th") else "")
        if event == "end":
            parts.append(BLANKS.sub(" ", element.tail or ""))
        elif not name or name in NO_TEXT:
            walk.skip_subtree()
        else:
            parts.append(BLANKS.sub(" ", element.text or ""))
    lines = (" ".join(line.split()) for line in stored_text("".join(parts)).split("\n"))
    return "\n".join(line for line in lines if line)


def drop_hidden(tree: Any) -> None:
    """Take out what the page keeps from view: no reader sees it, and no judge is to be talked to behind their back.

    A body that is hidden stays: a script shows it when the page has loaded.
    """
    for element in tree.xpath("//*[@hidden or @style]"):
        if element.tag not in ("html", "body") and is_hidden(element):
            element.drop_tree()


def is_hidden(element: Any) -> bool:
    """Whether the element itself says that it is not to be shown."""
    return element.get("hidden") is not None or bool(HIDDEN.search(element.get("style") or ""))

"""Paragraphs of a page, made such as trafilatura reads them: each a line, and those that are a `div` with a class, too.

Trafilatura keeps the line ends of the HTML within a paragraph, which no browser shows. Of text in a `div` it loses what
stands before and between `<code>` and the like, half of a manual's sentences; it takes DocBook's boxes, which are
called `sidebar`, for menus, and anchors that lead nowhere for links.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from statistics import median
from typing import Any

_INLINE_TAGS = """a abbr acronym b bdi bdo cite code del dfn em font i img ins kbd mark q s samp small span strong sub
sup time tt u var wbr"""
_INLINE = frozenset(_INLINE_TAGS.split())
# Of a class that a page gives to its paragraphs there are several, and half of them are as long as a sentence or two.
_FEWEST = 3
_LEAST_LENGTH = 100
_WRAPPED = "//text()[contains(., '\n')][not(ancestor::pre or ancestor::code or ancestor::textarea)]"
_CODE_IN_ITEMS = "//code[not(contains(., '\n') or ancestor::pre)][ancestor::li or ancestor::dd or ancestor::td]"
_BLANKS = re.compile(r"[ \t\n\r\f]+")
_DOCBOOK = "//meta[@name='generator'][contains(@content, 'DocBook') or contains(@content, 'publican')]"


def mark_paragraphs(tree: Any) -> None:
    """Make each run of text in such a `div` a `p`, and boxes of DocBook's and what holds anchors part of the text.

    Line ends within a paragraph become blanks.
    """
    _join_lines(tree)
    for anchor in tree.xpath("//a[not(@href)]"):
        anchor.drop_tag()
    is_docbook = bool(tree.xpath(_DOCBOOK))
    if is_docbook:
        for box in tree.xpath("//div[@class='sidebar']"):
            box.set("class", "box")
    for div in list(_paragraphs_of(tree, is_docbook)):
        if all(map(_is_inline, div.iterdescendants())):
            div.tag = "p"
        else:
            _part(div)
    for code in tree.xpath(_CODE_IN_ITEMS):
        code.drop_tag()  # trafilatura leaves no blank before it there


def _join_lines(tree: Any) -> None:
    """Make a blank of each line end that is white space in HTML; those of code stay."""
    for text in tree.xpath(_WRAPPED):
        joined = _BLANKS.sub(" ", text)
        if text.is_tail:
            # A blank behind code would make one line of its last one and the paragraph below it.
            is_behind_code = text.getparent().tag == "pre" and not joined.strip()
            text.getparent().tail = None if is_behind_code else joined
        else:
            text.getparent().text = joined


def _paragraphs_of(tree: Any, is_docbook: bool) -> Iterator[Any]:
    """Each `div` of a class that the page gives to paragraphs, as DocBook does `para`; of several the first counts."""
    by_class: dict[str, list[Any]] = defaultdict(list)
    for div in tree.iter("div"):
        if (div.get("class") or "").strip() and _has_text(div):
            by_class[div.get("class").split()[0]].append(div)
    for name, divs in by_class.items():
        lengths = (len(" ".join(div.text_content().split())) for div in divs)
        if (is_docbook and name == "para") or (len(divs) >= _FEWEST and median(lengths) >= _LEAST_LENGTH):
            yield from divs


def _has_text(div: Any) -> bool:
    """Whether it holds text beside that of its elements."""
    return bool((div.text or "").strip()) or any((child.tail or "").strip() for child in div)


def _is_inline(element: Any) -> bool:
    """Whether it stands within a line; so do comments."""
    return not isinstance(element.tag, str) or element.tag in _INLINE


def _part(div: Any) -> None:
    """Put each run of text and inline elements into a `p`, between the blocks beside it."""
    children = list(div)
    parts = [div.makeelement("p")]
    parts[0].text, div.text = div.text, None
    for child in children:
        if _is_inline(child):
            parts[-1].append(child)
        else:
            line = div.makeelement("p")
            line.text, child.tail = child.tail, None
            parts += [child, line]
    div[:] = [part for part in parts if part.tag != "p" or len(part) or (part.text or "").strip()]

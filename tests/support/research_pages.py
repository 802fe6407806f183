"""Folders of real pages for research, and what stands where on them, as another reader than ours sees it.

A page is its blocks in order, each with the headings above it and its kind, read by lxml from the raw HTML; nothing of
our own extraction decides. In the articles, whose pages have no such order, people have marked the text by hand.
"""

import gzip
import json
import re
import shutil
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache, cached_property
from pathlib import Path
from typing import Literal, NamedTuple

import pytest
from lxml import html

from pipeline.research.search.documents import document_url
from tests.support.debian_pages import DEBIAN_REFERENCE, DEVELOPERS_REFERENCE, debian_pages, handbook
from tests.support.places import NO_SHARED, SHARED
from tests.support.research_key import Corpus, Question

ARTICLES = SHARED / "corpora" / "articles"
_THE_BOOK_ONCE_MORE = "developers-reference.html"
_HEADING = re.compile(r"h([1-6])")
_OF_A_BOX = 7
_SIGN = re.compile(r".[\u0300-\u036f\u3099\u309a]*", re.DOTALL)
_WITHIN_A_LINE = """a abbr acronym b bdi bdo cite code del dfn em font i ins kbd label mark q s samp small span strong
sub sup time tt u var wbr"""
_INLINE = frozenset(_WITHIN_A_LINE.split())
_NO_TEXT = frozenset(("script", "style", "head", "noscript", "template", "svg"))
_BOXES = frozenset(("sidebar", "note", "tip", "warning", "caution", "important", "example", "figure", "table"))
_LISTS_OF_LINKS = frozenset(("toc", "docnav", "navheader", "navfooter", "related", "sphinxsidebar", "list-of-tables"))

Kind = Literal["text", "cell", "code", "links", "heading", "margin"]
PROSE: tuple[Kind, ...] = ("text", "cell")


class Block(NamedTuple):
    """A paragraph, an item, a cell, a listing or a heading."""

    headings: tuple[str, ...]
    """The headings above it, the highest first, and its own where it is one."""
    kind: Kind
    """`links` are contents and the like; `margin` is what stands beside an article."""
    text: str

    def signs(self) -> Iterator[tuple[int, str]]:
        """Its signs with their places, each with the marks that belong to it."""
        return ((found.start(), found[0]) for found in _SIGN.finditer(self.text))


class Place(NamedTuple):
    """Where a sentence stands on a page."""

    blocks: tuple[Block, ...]
    """The blocks over which it stretches."""
    begins: bool
    """Whether a sentence begins there."""


class PageText:
    """A page's blocks, and where a sentence stands among them."""

    def __init__(self, blocks: tuple[Block, ...]) -> None:
        self.blocks = blocks

    @cached_property
    def _letters(self) -> tuple[str, list[tuple[int, int]]]:
        """The letters of the page, and for each its block's number and its place in that."""
        signs = [
            (number, at, letters_of(sign)) for number, block in enumerate(self.blocks) for at, sign in block.signs()
        ]
        places = [(number, at) for number, at, letters in signs for _ in letters]
        return "".join(letters for _, _, letters in signs), places

    def places_of(self, sentence: str) -> Iterator[Place]:
        """Each place where the sentence stands, letter by letter."""
        letters, places = self._letters
        wanted = letters_of(sentence)
        at = letters.find(wanted) if wanted else -1
        while at >= 0:
            (first, sign), (last, _) = places[at], places[at + len(wanted) - 1]
            yield Place(self.blocks[first : last + 1], _begins(self.blocks[first].text[:sign]))
            at = letters.find(wanted, at + 1)


def _begins(before: str) -> bool:
    """Whether a sentence may begin behind this part of a block."""
    ended = re.split(r"\w", before)
    return len(ended) == 1 or bool(re.search(r"[.!?:;…。！？]", ended[-1]))


class Pages(NamedTuple):
    """A folder of pages."""

    folder: Path
    by_url: Mapping[str, Path]
    """The file of each, by the URL that a run gives it."""
    marked: Mapping[str, str]
    """The text that people marked as the page's, by the file's stem; empty where it follows from the HTML."""

    def name_of(self, url: str) -> str:
        """The page's path in the folder; empty for a URL of none."""
        return self.by_url[url].relative_to(self.folder).as_posix() if url in self.by_url else ""

    def text_of(self, url: str) -> PageText:
        """What stands on the page; nothing for a URL of none."""
        return page_text(self.by_url[url], self.marked.get(self.by_url[url].stem)) if url in self.by_url else _NOTHING


_NOTHING = PageText(())


def pages_of(corpus: Corpus, above: Path, only: Sequence[str] = ("*",)) -> Pages:
    """The corpus laid into a folder of its name, or those of its pages whose paths fit one of `only`.

    The test is skipped where the pages are not here.
    """
    folder = above / corpus
    marked: dict[str, str] = {}
    if corpus == "articles":
        if not ARTICLES.exists():
            pytest.skip(NO_SHARED)
        truth = json.loads((ARTICLES / "ground-truth.json").read_text(encoding="utf-8"))
        marked = {name: entry["articleBody"] for name, entry in truth.items()}
    every = _articles() if corpus == "articles" else _manuals(corpus)
    files = {name: file for name, file in every if any(fnmatchcase(name, each) for each in only)}
    for name, file in files.items():
        folder.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".gz":
            folder.joinpath(name).write_bytes(gzip.decompress(file.read_bytes()))
        else:
            shutil.copyfile(file, folder / name)
    return Pages(folder, {document_url(folder, folder / name): folder / name for name in files}, marked)


def _articles() -> Iterator[tuple[str, Path]]:
    return ((file.name.removesuffix(".gz"), file) for file in sorted((ARTICLES / "html").glob("*.html.gz")))


def _manuals(corpus: Corpus) -> Iterator[tuple[str, Path]]:
    if corpus == "manuals":
        folders = {
            "handbook/": handbook("en-US"),
            "reference/": debian_pages(DEBIAN_REFERENCE).parent,
            "developers/": debian_pages(DEVELOPERS_REFERENCE).parent,
        }
    else:
        folders = {"": handbook("de-DE" if corpus == "handbuch" else "ja-JP")}
    for prefix, folder in folders.items():
        files = (file for file in sorted(folder.glob("*.html")) if file.name != _THE_BOOK_ONCE_MORE)
        yield from ((prefix + file.name, file) for file in files)


def is_about(question: Question, page: str, block: Block) -> bool:
    """Whether the question's key names this place of the page with this path."""
    return block.kind in PROSE and any(
        fnmatchcase(page, about.page) and (not about.under or any(each in about.under for each in block.headings))
        for about in question.about
    )


def letters_of(text: str) -> str:
    """The text's letters and digits alone, in one form."""
    return "".join(sign for sign in unicodedata.normalize("NFKC", text).casefold() if sign.isalnum())


@cache
def page_text(file: Path, marked: str | None = None) -> PageText:
    """What stands on the page; `marked` is the text that people marked as its own."""
    root = html.document_fromstring(file.read_bytes(), parser=html.HTMLParser(encoding="utf-8"))
    blocks = tuple(_Reader(root).blocks)
    if marked is None:
        return PageText(blocks)
    own = tuple(Block((), "text", part) for part in re.split(r"\n+", marked) if part.strip())
    return PageText((*own, *(block._replace(kind="margin") for block in blocks)))


class _Reader:
    """Goes through a page once, and parts it where HTML begins a new block."""

    def __init__(self, root: html.HtmlElement) -> None:
        self.blocks: list[Block] = []
        self._headings: list[tuple[int, str]] = []
        self._text: list[str] = []
        self._read(root, "text")
        self._end("text")

    def _read(self, element: html.HtmlElement, kind: Kind) -> None:
        tag = element.tag if isinstance(element.tag, str) else "!"
        if tag == "!" or tag in _NO_TEXT:
            return
        if tag not in _INLINE:
            self._end(kind)
        within = _kind_within(element, tag, kind)
        above = self._headings
        level = _HEADING.fullmatch(tag)
        if level or (tag == "p" and "title" in _classes_of(element)):
            text = " ".join(element.text_content().replace("¶", " ").split())
            self._add_heading(int(level[1]) if level else _OF_A_BOX, text)
            return
        self._text.append(element.text or "")
        for child in element:
            self._read(child, within)
            self._text.append(child.tail or "")
        if tag not in _INLINE:
            self._end(within)
        if _classes_of(element) & _BOXES:
            self._headings = above

    def _end(self, kind: Kind) -> None:
        text = " ".join("".join(self._text).split())
        self._text.clear()
        if text:
            self.blocks.append(Block(tuple(heading for _, heading in self._headings), kind, text))

    def _add_heading(self, level: int, text: str) -> None:
        self._headings = [(above, heading) for above, heading in self._headings if above < level]
        self._headings.append((level, text))
        self.blocks.append(Block(tuple(heading for _, heading in self._headings), "heading", text))


def _kind_within(element: html.HtmlElement, tag: str, kind: Kind) -> Kind:
    if tag == "nav" or element.get("role") == "navigation" or _classes_of(element) & _LISTS_OF_LINKS:
        return "links"
    if tag in ("td", "th") and kind == "text":
        return "cell"
    return "code" if tag == "pre" else kind


def _classes_of(element: html.HtmlElement) -> set[str]:
    return set((element.get("class") or "").split())

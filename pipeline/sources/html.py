"""What an HTML page says: its main text, a paragraph, list item or table row a line; its title, language and headings.

Trafilatura keeps the line ends of the HTML within a paragraph, which no browser shows. Of text in a `div` it loses what
stands before and between `<code>` and the like, half of a manual's sentences; it takes DocBook's boxes, which are
called `sidebar`, for menus, and anchors that lead nowhere for links. So the page's tree is made such as it reads.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import islice
from statistics import median
from typing import Any, NamedTuple

from pipeline.sources.decode import stored_text
from pipeline.sources.headings import LEVELS, NamedHeading, html_headings
from pipeline.sources.quality import markup_of_404
from pipeline.text.words import UNSPACED

_NO_TEXT = frozenset(("script", "style", "template", "svg", "math", "head", "select", "iframe", "object", "canvas"))
_BLOCKS = """address article aside blockquote br dd details div dl dt fieldset figcaption figure footer form h1
h2 h3 h4 h5 h6 header hr li main nav ol p pre section summary table tr ul"""
_BREAKS = frozenset(_BLOCKS.split())
_CELLS = ("td", "th")
_BETWEEN_CELLS = " | "
_BREAK = "\u2424"  # the symbol for a line end, as trafilatura makes blanks of line ends
# Of what trafilatura makes its fallback; of nested ones the outermost.
_FALLBACK_BLOCKS = "//*[{0}][not(ancestor::*[{0}])]".format(
    " or ".join(f"self::{name}" for name in ("article", "blockquote", "code", "p", "pre", "q", "quote"))
)
_LINES_SEEN = 200
_BLANKS = re.compile(r"\s+")
_LEAST_MAIN_TEXT = 100
_LONGEST_TITLE = 300
# No menu is as long as that, whatever is beside it.
_LONG_LIST, _LINKS_OF_A_LIST = 200_000, 0.5
_NO_LETTERS = re.compile(r"[^a-z0-9]+")
# What stands on all pages of a site; links besides.
_NOT_ITS_OWN = ("nav", "footer", "aside", "button", "select", "option", "label", "noscript", "dialog", "menu", "a")


class HtmlText(NamedTuple):
    text: str
    """The main text, one paragraph, list item or table row a line; all visible text where no main text is found."""
    title: str
    language: str
    marked_paid: bool
    headings: str = ""  # Its first main headings, one a line
    markup: str = ""  # What in its markup says that it stands for pages that are not there; empty where nothing does
    all_headings: tuple[NamedHeading, ...] = ()
    visible_words: int = 0
    """How many words a reader sees outside navigation and the like; of scripts without blanks each sign is one."""
    read_share: float | None = None  # The share of these that text and title hold; None where there are none
    elsewhere: str = ""  # Where words of the page may be that are not in its HTML; empty where nothing tells of any


def read_html(page: str, url: str) -> HtmlText:
    """What the page says. Comments of readers and hidden parts are left out; nothing is fetched."""
    tree = _parsed(page)
    if tree is None:
        return HtmlText("", "", "", False)
    title, language = _title_of(tree), (tree.get("lang") or "").split("-")[0].lower()
    first = tree.xpath("//h1")[:3]
    headings = "\n".join(" ".join(each.text_content().split())[:_LONGEST_TITLE] for each in first)
    markup, elsewhere = markup_of_404(tree, page), _elsewhere(tree)
    _drop_hidden(tree)
    all_headings = tuple(html_headings(tree))
    _keep_named_sections(tree)
    seen = _words_seen(tree)
    text = _main_text(tree, page, url)
    is_paid = re.search(r"\"isAccessibleForFree\"\s*:\s*\"?false", page, flags=re.I) is not None
    share = round((seen & _words_of(f"{title}\n{text}")).total() / seen.total(), 4) if seen else None
    return HtmlText(text, title, language, is_paid, headings, markup, all_headings, seen.total(), share, elsewhere)


def _main_text(tree: Any, page: str, url: str) -> str:
    import trafilatura

    length = len(tree.text_content())
    # An index or a table of contents has no main text: to look for one may take half a minute.
    if length > _LONG_LIST and sum(len(link.text_content()) for link in tree.iter("a")) > _LINKS_OF_A_LIST * length:
        return _visible_text(_shown_tree(page))
    _mark_paragraphs(tree)
    _keep_named_sections(tree)  # again, with what is a paragraph only now
    blocks = "".join(_unparted(block.text_content()) for block in tree.xpath(_FALLBACK_BLOCKS))
    found = trafilatura.extract(tree, url=url, include_comments=False) or ""
    text = "\n".join(line for line in map(str.strip, stored_text(found).split("\n")) if line)
    if len(text) < _LEAST_MAIN_TEXT:
        return _visible_text(_shown_tree(page)) or text
    is_glued = _may_be_glued(text, blocks, page) and _unparted(parted := _parted_text(page)) == _unparted(text)
    return parted if is_glued else text


def _keep_named_sections(tree: Any) -> None:
    """Trafilatura takes a section for what surrounds a text by parts of its id: `shared`, `cookie`, `related`."""
    for section in tree.xpath("//section[@id] | //div[@id]"):
        words = next((child.text_content().casefold() for child in section if child.tag in LEVELS), None)
        if words is None or _NO_LETTERS.sub("", words) != _NO_LETTERS.sub("", section.get("id")):
            continue
        linked = sum(len(link.text_content()) for link in section.xpath("./p//a"))
        if sum(len(paragraph.text_content()) for paragraph in section.xpath("./p")) - linked >= 40:
            del section.attrib["id"]


def own_text(page: str) -> str:
    """The visible text of the page outside links and what stands on all pages of its site, a block a line."""
    tree = _shown_tree(page)
    for element in tree.xpath("//" + " | //".join(_NOT_ITS_OWN)):
        if element.getparent() is not None:
            element.drop_tree()
    return _visible_text(tree)


def _shown_tree(page: str) -> Any:
    """Parsed anew: looking for the main text takes a tree apart."""
    tree = _parsed(page)
    _drop_hidden(tree)
    return tree


def _may_be_glued(text: str, blocks: str, page: str) -> bool:
    """Whether the text may be trafilatura's fallback, which is slow to make: a heading shows that it is not."""
    lines = [_unparted(line) for line in text.split("\n", _LINES_SEEN)[:_LINES_SEEN]]
    has_blocks = any(len(line) > _LEAST_MAIN_TEXT and line in blocks for line in lines)
    if re.search(r"application/ld\+json|data-preloaded", page, flags=re.I) or not has_blocks:
        return True
    return all(line[:50] in blocks for line in lines)


def _unparted(text: str) -> str:
    return "".join(text.replace("|", " ").split())


def _parted_text(page: str) -> str:
    """What trafilatura falls back on for short pages, a block a line: it glues blocks without a blank between them."""
    import trafilatura

    tree = _shown_tree(page)
    _mark_paragraphs(tree)
    for element in tree.iter(*_BREAKS, *_CELLS):
        if element.tag in _BREAKS:
            element.text = _BREAK + (element.text or "")
            element.tail = _BREAK + (element.tail or "")
        elif _follows_a_cell(element):
            element.text = _BETWEEN_CELLS + (element.text or "")
    return _lines_of(trafilatura.baseline(tree)[1].replace(_BREAK, "\n"))


def _lines_of(text: str) -> str:
    lines = (" ".join(line.split()) for line in stored_text(text).split("\n"))
    return "\n".join(line for line in lines if line)


def _follows_a_cell(element: Any) -> bool:
    before = element.getprevious()
    return element.tag in _CELLS and before is not None and before.tag in _CELLS


def _parsed(page: str) -> Any:
    """RecursionError where it is nested deeper than parsers go: they leave out what follows without a word."""
    import trafilatura
    from lxml.etree import ParserError
    from lxml.html import HTMLParser, document_fromstring
    from trafilatura.utils import HTML_PARSER

    page = re.sub(r"\A\s*<\?xml[^>]{0,200}\?>", "", page)
    tree = trafilatura.load_html(page)  # None for what it takes for a fragment
    if tree is not None and not _stopped(HTML_PARSER):
        return tree
    parser = HTMLParser(remove_comments=True, remove_pis=True, no_network=True, huge_tree=True)
    try:
        tree = document_fromstring(page, parser=parser)
    except ParserError:
        return None
    if _stopped(parser):
        raise RecursionError("nested too deep")
    return tree


def _stopped(parser: Any) -> bool:
    """Whether a limit made it leave out the rest of the page: 256 elements in each other, 2,048 in a huge tree."""
    last = parser.error_log.last_error
    return last is not None and last.type_name == "ERR_RESOURCE_LIMIT"


def _title_of(tree: Any) -> str:
    for path in ("//meta[@property='og:title']/@content", "//head/title/text()", "//title/text()", "//h1//text()"):
        title = " ".join(stored_text(" ".join(tree.xpath(path)[:20])).split())
        if title:
            return title[:_LONGEST_TITLE]
    return ""


def _visible_text(tree: Any) -> str:
    from lxml.etree import iterwalk

    parts: list[str] = []
    walk = iterwalk(tree, events=("start", "end"))
    for event, element in walk:
        name = element.tag if isinstance(element.tag, str) else ""
        if name in _BREAKS:
            parts.append("\n")
        elif event == "start" and _follows_a_cell(element):
            parts.append(_BETWEEN_CELLS)
        if event == "end":
            parts.append(_BLANKS.sub(" ", element.tail or ""))
        elif not name or name in _NO_TEXT:
            walk.skip_subtree()
        else:
            parts.append(_BLANKS.sub(" ", element.text or ""))
    return _lines_of("".join(parts))


# What surrounds the page's own words or waits for a click; of a ruby the text has the base alone.
_APART_TAGS = "aside button dialog footer label menu nav noframes noscript rp rt textarea"
_APART = _NO_TEXT.union(_APART_TAGS.split())
_APART_ROLES = "alertdialog banner complementary contentinfo dialog menu menubar navigation search"
_ROLES = frozenset(_APART_ROLES.split())
# How sites name such boxes, and the comments of readers: the first or last part of a class or an id (`site-footer`).
_APART_NAMES = """breadcrumb breadcrumbs comments commentlist cookie cookies disqus footer menu nav navbar navigation
newsletter recommended related respond share sharedaddy sharing sidebar social trending"""
_NAMES = frozenset(_APART_NAMES.split())
_BOXES = ("div", "form", "li", "ol", "p", "section", "ul")
_TEASER_ELEMENTS, _TEASER_LETTERS = 30, 300
_WORD = re.compile(rf"[{UNSPACED}]|[^\W_{UNSPACED}]+")
_NOT_SEEN = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_DATA_OF_SCRIPTS = re.compile(r"__(?:NEXT_DATA|NUXT|NUXT_DATA|INITIAL_STATE|PRELOADED_STATE|APOLLO_STATE)__")


def _words_of(text: str) -> Counter[str]:
    return Counter(_WORD.findall(_NOT_SEEN.sub("", unicodedata.normalize("NFC", text))))


def _words_seen(tree: Any) -> Counter[str]:
    """The words outside navigation and the like, of a block that stands there several times once.

    A block most of whose letters are links' is navigation. Where the page says what its main part is, that counts.
    """
    mains = tree.xpath("//main | //*[@role='main']")
    for root in (mains if len(mains) == 1 else [], [tree]):
        for each in root:
            blocks = (text for text, letters, linked in _blocks_seen(each) if 2 * linked <= letters)
            if seen := _words_of("\n".join(dict.fromkeys(" ".join(block.split()) for block in blocks))):
                return seen
    return Counter()


def _blocks_seen(tree: Any) -> Iterator[tuple[str, int, int]]:
    """The words of each block, how many letters they have about, and how many of these are links'."""
    from lxml.etree import iterwalk

    block: list[str] = []
    letters = linked = links = 0
    teasers, half = _teasers(tree), len(tree.text_content()) // 2
    walk = iterwalk(tree, events=("start", "end"))
    for event, element in walk:
        if element.tag in _BREAKS or element.tag in _CELLS:
            yield "".join(block), letters, linked
            block, letters, linked = [], 0, 0
        if element.tag == "a":
            links += 1 if event == "start" else -1
        words = (element.text if event == "start" else element.tail) or ""
        if event == "start" and (element in teasers or _is_apart(element, half)):
            walk.skip_subtree()
        else:
            block.append(words)
            letters += len(words.strip())
            linked += len(words.strip()) if links else 0
    yield "".join(block), letters, linked


def _teasers(tree: Any) -> set[Any]:
    """Boxes of few words under a heading that leads to another page."""
    found = set()
    for heading in tree.iter("h2", "h3", "h4", "h5"):
        around = (*heading.iterancestors("a"), *heading.iter("a"))
        links = [link for link in around if not (link.get("href") or "#").startswith("#")]
        if 2 * sum(len(link.text_content()) for link in links) < len(heading.text_content()) or not links:
            continue
        for box in heading.iterancestors("li", "div", "section", "article"):
            is_small = sum(1 for _ in islice(box.iterdescendants(), _TEASER_ELEMENTS + 1)) <= _TEASER_ELEMENTS
            if not is_small or len("".join(box.text_content().split())) > _TEASER_LETTERS:
                break
            found.add(box)
    return found


def _is_apart(element: Any, half: int) -> bool:
    """Whether it surrounds the page's own words; by its name where it has no `h1` and not `half` of all letters."""
    if not isinstance(element.tag, str) or element.tag in _APART or element.get("role") in _ROLES:
        return True
    if element.tag == "header":
        return next(element.iterancestors("article", "main", "section"), None) is None
    names = f"{element.get('class') or ''} {element.get('id') or ''}" if element.tag in _BOXES else ""
    parts = (re.split("[-_]+", name) for name in names.lower().split())
    is_named = any(each[0] in _NAMES or each[-1] in _NAMES for each in parts)
    return is_named and element.find(".//h1") is None and len(element.text_content()) < half


def _elsewhere(tree: Any) -> str:
    scripts = (f"{script.get('id')} {(script.text or '')[:500]}" for script in tree.iter("script"))
    data = next(filter(None, map(_DATA_OF_SCRIPTS.search, scripts)), None)
    frames = len(tree.xpath("//frame[@src] | //iframe[@src]"))
    places = [f"in data of its scripts ({data[0]})"] if data else []
    places += [f"in {frames} frame{'s' * (frames != 1)}, each a page of its own"] if frames else []
    return " or ".join(places)


def _drop_hidden(tree: Any) -> None:
    """Drop what a page hides: no reader sees it, and no judge is to be addressed by it. Scripts show a hidden body."""
    for element in tree.xpath("//*[@hidden or @style]"):
        styled = re.search(r"display\s*:\s*none|visibility\s*:\s*hidden", element.get("style") or "", flags=re.I)
        if (styled or element.get("hidden") is not None) and element.tag not in ("html", "body"):
            element.drop_tree()


_INLINE_TAGS = """a abbr acronym b bdi bdo cite code del dfn em font i img ins kbd mark q s samp small span strong sub
sup time tt u var wbr"""
_INLINE = frozenset(_INLINE_TAGS.split())
# Trafilatura drops what stands in some of these, and what follows others: their text is part of the sentence.
_UNREAD_INLINE = (
    *("abbr", "acronym", "bdi", "bdo", "big", "data", "dfn", "font", "ins", "kbd", "mark", "nobr", "output", "samp"),
    *("rb", "ruby", "small", "time", "tt", "u", "var", "wbr"),
)
_HOLDERS = ("article", "blockquote", "center", "details", "div", "main", "section", "td")
# Fewer characters of its own are a button or an advertisement more often than a sentence.
_LEAST_OWN = 20
_AROUND = ("aside", "button", "dialog", "footer", "form", "header", "menu", "nav")
_WRAPPED = "//text()[contains(., '\n')][not(ancestor::pre or ancestor::code or ancestor::textarea)]"
_CODE_IN_ITEMS = "//code[not(contains(., '\n') or ancestor::pre)][ancestor::li or ancestor::dd or ancestor::td]"
_DOCBOOK = "//meta[@name='generator'][contains(@content, 'DocBook') or contains(@content, 'publican')]"


def _mark_paragraphs(tree: Any) -> None:
    """Make each run of text in such a `div` a `p`, and boxes of DocBook's and what holds anchors part of the text."""
    _join_lines(tree)
    for anchor in tree.xpath(f"//a[not(@href)] | //{' | //'.join(_UNREAD_INLINE)}"):
        anchor.drop_tag()
    for reading in tree.xpath("//rt | //rp"):
        reading.drop_tree()
    for caption in tree.xpath("//figcaption[ancestor::figure]"):
        caption.tag = "p"
        next(caption.iterancestors("figure")).addnext(caption)
    for element in tree.xpath("//*[contains(name(), '-')]"):  # of the page's own making, shown like a `div` or `span`
        element.tag = "span" if all(map(_is_inline, element.iterdescendants())) else "div"
    is_docbook = bool(tree.xpath(_DOCBOOK))
    if is_docbook:
        for box in tree.xpath("//div[@class='sidebar']"):
            box.set("class", "box")
    for div in [*_paragraphs_of(tree, is_docbook), *_beside_paragraphs(tree)]:
        if div.tag in ("div", "center") and all(map(_is_inline, div.iterdescendants())):
            div.tag = "p"
        else:
            _part(div)
    for code in tree.xpath(_CODE_IN_ITEMS):
        code.drop_tag()  # trafilatura leaves no blank before it there


def _join_lines(tree: Any) -> None:
    for text in tree.xpath(_WRAPPED):
        joined = re.sub(r"[ \t\n\r\f]+", " ", text)
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
        if _has_own_text(div) and (div.get("class") or "").strip():
            by_class[div.get("class").split()[0]].append(div)
    for name, divs in by_class.items():
        lengths = (len(" ".join(div.text_content().split())) for div in divs)
        # There are several of them, and half are as long as a sentence or two.
        if (is_docbook and name == "para") or (len(divs) >= 3 and median(lengths) >= 100):
            yield from divs


def _beside_paragraphs(tree: Any) -> Iterator[Any]:
    """Each `div` with text of its own where an article's paragraphs are, and what holds these where it has some."""
    parents = dict.fromkeys(p.getparent() for p in tree.iter("p") if len((p.text or "").strip()) >= 40)
    articles = [*tree.iter("article", "main"), *(each for each in parents if each.tag in _HOLDERS)]
    found: dict[Any, None] = {}
    for article in articles:
        found.update(dict.fromkeys(each for each in article.iter(*_HOLDERS) if _has_own_text(each, _LEAST_OWN)))
    yield from (each for each in found if not any(above.tag in _AROUND for above in each.iterancestors()))


def _has_own_text(element: Any, least: int = 1) -> bool:
    return sum(len(text.strip()) for text in (element.text or "", *(child.tail or "" for child in element))) >= least


def _is_inline(element: Any) -> bool:
    return not isinstance(element.tag, str) or element.tag in _INLINE


def _part(div: Any) -> None:
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

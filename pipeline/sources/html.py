"""What an HTML page says: its main text, a paragraph, list item or table row a line; its title, language and headings.

Trafilatura tells the main text from what surrounds it. Of that text it loses what stands in or behind tags that it does
not know, in lists within cells, in captions and in boxes whose class sounds like an advertisement's. So the page's tree
is made such as it reads, and blocks that a reader sees among those that it found are put back in their places.
"""

import re
import unicodedata
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any, NamedTuple

from pipeline.sources.address import WORDS
from pipeline.sources.decode import CONTROL, stored_text
from pipeline.sources.headings import LEVELS, NamedHeading, html_headings
from pipeline.sources.quality import markup_of_404
from pipeline.text.words import UNSPACED

_NO_TEXT = frozenset(("script", "style", "template", "svg", "head", "select", "iframe", "object", "canvas"))
_BLOCKS = """address article aside blockquote br dd details div dl dt fieldset figcaption figure footer form h1
h2 h3 h4 h5 h6 header hr legend li main nav ol p pre section summary table tr ul"""
_BREAKS = frozenset(_BLOCKS.split())
_CELLS = ("td", "th")
_BETWEEN_CELLS = " | "
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
    _make_readable(tree)
    blocks = _blocks_outside_navigation(tree)
    seen = Counter(_words("\n".join({block.text: None for block in blocks})))
    text = _main_text(tree, page, url, blocks)
    is_paid = re.search(r"\"isAccessibleForFree\"\s*:\s*\"?false", page, flags=re.I) is not None
    share = round((seen & Counter(_words(f"{title}\n{text}"))).total() / seen.total(), 4) if seen else None
    return HtmlText(text, title, language, is_paid, headings, markup, all_headings, seen.total(), share, elsewhere)


def _main_text(tree: Any, page: str, url: str, seen: "list[_Block]") -> str:
    import trafilatura

    length = len(tree.text_content())
    # An index or a table of contents has no main text: to look for one may take half a minute.
    if length > _LONG_LIST and sum(len(link.text_content()) for link in tree.iter("a")) > _LINKS_OF_A_LIST * length:
        return _visible_text(_shown_tree(page))
    found = trafilatura.extract(tree, url=url, include_comments=False) or ""
    text = "\n".join(line for line in map(str.strip, stored_text(found).split("\n")) if line)
    text = _with_lost_blocks(text, seen)
    if len(text) < _LEAST_MAIN_TEXT:
        return _visible_text(_shown_tree(page)) or text
    return text


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
    lines = (" ".join(line.split()) for line in stored_text("".join(parts)).split("\n"))
    return "\n".join(line for line in lines if line)


_WORDS = {name: frozenset(words.split()) for name, words in WORDS["html"].items()}
_APART, _ROLES, _NAMES = _NO_TEXT | _WORDS["apart_tags"], _WORDS["apart_roles"], _WORDS["names"]
_NAMES_OF_BOXES = _NAMES.union(_WORDS["parts_of_names"], ("",))
_BOXES = ("div", "form", "li", "ol", "p", "section", "ul")
_TEASER_ELEMENTS, _TEASER_LETTERS = 30, 300
_WORD = re.compile(rf"[{UNSPACED}]|[^\W_{UNSPACED}]+")
_NOT_SEEN = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_DATA_OF_SCRIPTS = re.compile(r"__(?:NEXT_DATA|NUXT|NUXT_DATA|INITIAL_STATE|PRELOADED_STATE|APOLLO_STATE)__")


def _words(text: str) -> list[str]:
    return _WORD.findall(_NOT_SEEN.sub("", unicodedata.normalize("NFC", text)))


class _Block(NamedTuple):
    """A paragraph, list item, table row or line of code that a reader sees, its blanks made one."""

    text: str
    key: str
    """Its words without anything between them."""
    holder: Any
    """The element that it stands in."""


def _key_of(text: str) -> str:
    return "".join(_words(text))


def _blocks_outside_navigation(tree: Any) -> list[_Block]:
    """Where the page says what its main part is, that counts."""
    mains = tree.xpath("//main | //*[@role='main']")
    for root in (*(mains if len(mains) == 1 else []), tree):
        if blocks := list(_blocks_seen(root)):
            return blocks
    return []


def _blocks_seen(tree: Any) -> Iterator[_Block]:
    """The blocks outside navigation, which is also a block most of whose letters are links'."""
    from lxml.etree import iterwalk

    words: list[str] = []
    letters = linked = links = 0
    holder, teasers, half = tree, _teasers(tree), len(tree.text_content()) // 2
    walk = iterwalk(tree, events=("start", "end"))
    for event, element in walk:
        if element.tag in _BREAKS:
            if 2 * linked <= letters:
                yield from _blocks_of("".join(words), holder)
            words, letters, linked = [], 0, 0
            holder = element if event == "start" else element.getparent()
        elif event == "start" and _follows_a_cell(element):
            words.append(_BETWEEN_CELLS)
        if element.tag == "a":
            links += 1 if event == "start" else -1
        more = (element.text if event == "start" else element.tail) or ""
        if event == "start" and (element in teasers or _is_apart(element, half)):
            walk.skip_subtree()
        else:
            words.append(more)
            letters += len(more.strip())
            linked += len(more.strip()) if links else 0
    if 2 * linked <= letters:
        yield from _blocks_of("".join(words), holder)


def _blocks_of(words: str, holder: Any) -> Iterator[_Block]:
    for line in words.split("\n") if holder is not None and holder.tag == "pre" else [words]:
        if key := _key_of(line):
            yield _Block(" ".join(stored_text(line).split()), key, holder)


_LEAST_SENTENCE, _LEAST_PARAGRAPH = 20, 100
_LARGEST_GAP, _LEVELS = 200_000, 4
_LOOSE = ("article", "div", "figure", "header", "main", "p", "section")
_FIRM = ("blockquote", "dd", "details", "figcaption", "li", "td", "tr")
_PARTED = ("blockquote", "dd", "dl", "figure", "li", "ol", "table", "tbody", "td", "thead", "tr", "ul")
_ENDS = re.compile(r"[.!?:;…。！？]['\"”’»）」)\]]*$")


def _with_lost_blocks(text: str, blocks: list[_Block]) -> str:
    """The text with the blocks that are not in it and stand between two that are, or beside the outermost of these."""
    lines = text.split("\n")
    keys = [_key_of(line) for line in lines]
    number_of_lines, number_of_blocks = Counter(keys), Counter(block.key for block in blocks)
    places: dict[str, deque[int]] = defaultdict(deque)
    for place, key in enumerate(keys):
        if number_of_lines[key] == number_of_blocks[key] or len(key) >= _LEAST_SENTENCE:
            places[key].append(place)
    both = [(-1, -1)]
    for at, block in enumerate(blocks):
        if places.get(block.key) and (place := places[block.key].popleft()) > both[-1][1]:
            both.append((at, place))
    held, whole = set(keys), []
    for (before, above), (behind, below) in pairwise([*both, (len(blocks), len(lines))]):
        near = [*(blocks[before : before + 1] if before >= 0 else []), *blocks[behind : behind + 1]]
        between = blocks[before + 1 : behind]
        there = set(keys[above + 1 : below])
        gap = [block for block in between if block.key in there or _is_lost(block, held, near)]
        whole += [*_filled(lines[above + 1 : below], gap, there), *lines[below : below + 1]]
    return "\n".join(whole)


def _is_lost(block: _Block, held: set[str], near: list[_Block]) -> bool:
    """Whether it stands in an element that holds what was found, and is no line about author, date or place."""
    if block.key in held:
        return False
    if not near:  # what it falls back on for short pages, in one line, is all in the blocks
        return True
    parents = [each.holder.getparent() for each in near]
    for parent in parents:  # those of lists and tables within them too
        if parent is not None and parent.tag in _PARTED:
            parents.append(parent.getparent())
    is_outer = len(near) < 2
    is_firm = any(each.tag in _FIRM for each in (block.holder, *islice(block.holder.iterancestors(), 1)))
    levels = 2 + is_firm if is_outer else _LEVELS + 2 * (block.holder.tag in LEVELS)
    above = (block.holder, *islice(block.holder.iterancestors(), levels))
    holders = [each for found in near for each in islice(found.holder.iterancestors(), _LEVELS)]
    is_within = any(each is parent for parent in parents for each in above)
    if not is_within and not any(each is holder for holder in holders for each in above[: 1 if is_outer else 2]):
        return False
    is_sibling = any(above[1:] and above[1] is parent for parent in parents)
    is_under_title = near[0].holder.tag in ("h1", "header")
    is_caption = any("caption" in (each.get("class") or "") for each in above[:2])
    is_loose = block.holder.tag in _LOOSE and not is_caption and not any(each.tag in _FIRM for each in above)
    if is_loose and not _ENDS.search(block.text) and (is_outer or is_under_title or not is_sibling):
        return False
    held.add(block.key)
    return True


def _filled(lines: list[str], gap: list[_Block], there: set[str]) -> list[str]:
    """The lines between two that stand in the page too, with what is missing of the page's blocks there."""
    letters = "".join(block.key for block in gap)
    if lines and len(letters) < _LARGEST_GAP and all(_key_of(line) in letters for line in lines):
        return [block.text for block in gap]
    words = Counter(_words("\n".join(lines)))
    missing = ((block, Counter(_words(block.text))) for block in gap if block.key not in there)
    return [*lines, *(block.text for block, own in missing if 2 * (words & own).total() < own.total())]


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
    if element.tag in ("button", "label") and _is_text(element):
        return False
    if not isinstance(element.tag, str) or element.tag in _APART or element.get("role") in _ROLES:
        return True
    if element.tag == "header":
        return next(element.iterancestors("article", "main", "section"), None) is None
    names = f"{element.get('class') or ''} {element.get('id') or ''}" if element.tag in _BOXES else ""
    parts = (re.split("[-_]+", name) for name in names.lower().split())
    is_named = any(not _NAMES.isdisjoint(each) and _NAMES_OF_BOXES.issuperset(each) for each in parts)
    return is_named and element.find(".//h1") is None and len(element.text_content()) < half


def _is_text(element: Any) -> bool:
    """Whether a button or label is a heading, a sentence or, of labels, about no field."""
    around = [above.tag for above in islice(element.iterancestors(), _LEVELS)]
    if any(tag in LEVELS or tag in ("dt", "summary") for tag in around):
        return True
    if element.tag == "label" and element.get("for") is None and "form" not in around:
        return element.find(".//input") is None
    return len(words := element.text_content()) >= _LEAST_SENTENCE and _ENDS.search(words.strip()) is not None


def _elsewhere(tree: Any) -> str:
    scripts = (f"{script.get('id')} {(script.text or '')[:500]}" for script in tree.iter("script"))
    data = next(filter(None, map(_DATA_OF_SCRIPTS.search, scripts)), None)
    frames = len(tree.xpath("//frame[@src] | //iframe[@src]"))
    places = [f"in data of its scripts ({data[0]})"] if data else []
    places += [f"in {frames} frame{'s' * (frames != 1)}, each a page of its own"] if frames else []
    return " or ".join(places)


def _drop_hidden(tree: Any) -> None:
    """Drop what a page hides: no reader sees it, and no judge is to be addressed by it. Scripts show a hidden body.

    What a search shows is kept, and a panel that a button shows which is itself seen.
    """
    marked = [each for each in tree.xpath("//*[@hidden or @style]") if each.tag not in ("html", "body")]
    hidden = set(filter(_is_hidden, marked))
    panels = {element.get("id"): element for element in hidden if element.get("id")}
    buttons = tree.xpath("//*[@aria-expanded][@aria-controls]") if panels else []
    for _ in range(_LEVELS):  # of panels in panels
        seen = [button for button in buttons if hidden.isdisjoint((button, *button.iterancestors()))]
        names = {name for button in seen for name in button.get("aria-controls").split()}
        hidden.difference_update(panels[name] for name in names.intersection(panels))
    for element in marked:
        if element in hidden:
            element.drop_tree()
        elif element.get("hidden") is not None or _is_hidden(element):
            for name in ("hidden", "style"):  # for which trafilatura would leave it out
                element.attrib.pop(name, None)


def _is_hidden(element: Any) -> bool:
    style = element.get("style") or ""
    if re.search(r"display\s*:\s*none|visibility\s*:\s*hidden", style, flags=re.I):
        return True
    return element.get("hidden") is not None and element.get("hidden").lower() != "until-found"


# Trafilatura knows these within a sentence; it drops what stands in others, and what follows some.
_KNOWN_INLINE = ("a", "br", "code", "del", "img", "s", "strike", "sub", "sup")
_TABLE_PARTS = "html body title meta link base thead tbody tfoot caption col colgroup"
_UNSHOWN = ("annotation", "annotation-xml", "audio", "meter", "progress", "rp", "rt", "video")
_KNOWN = _BREAKS.union(_NO_TEXT, _APART, _KNOWN_INLINE, _TABLE_PARTS.split(), _CELLS)
_WRAPPED = "//text()[contains(., '\n')][not(ancestor::pre or ancestor::code or ancestor::textarea)]"
_DOCBOOK = "//meta[@name='generator'][contains(@content, 'DocBook') or contains(@content, 'publican')]"


def _make_readable(tree: Any) -> None:
    """Make one text of each sentence, and parts of the text of DocBook's boxes."""
    from lxml.etree import strip_elements, strip_tags

    _join_lines(tree)
    strip_elements(tree, *_UNSHOWN, with_tail=False)
    _name_tags(tree)
    strip_tags(tree, "span")
    for element in tree.iter():  # it leaves texts in many parts, each of which is looked for from the first one
        element.text, element.tail = (CONTROL.sub("", text) if text else text for text in (element.text, element.tail))
    divs = [div for div in tree.iter("div") if all(child.tag in _KNOWN_INLINE for child in div)]
    long = [div for div in divs if len(div.text_content().strip()) >= _LEAST_PARAGRAPH]
    of_class = Counter(div.get("class") for div in long)
    for div in long:  # several of a class are paragraphs
        div.tag = "p" if of_class[div.get("class")] >= 3 else "div"
    for box in tree.xpath("//div[@class='sidebar']") if tree.xpath(_DOCBOOK) else ():
        box.set("class", "box")
    _keep_named_sections(tree)


def _name_tags(tree: Any) -> None:
    """Call all that is unknown `span`, or `div` where a page's own element has no text beside it."""
    for pair in tree.iter("mfrac", "msup"):
        for first in pair[: len(pair) == 2]:
            first.tail = "/" if pair.tag == "mfrac" else "^"
    for element in tree.xpath("//*"):
        is_label = element.tag == "label" and _is_text(element)
        if element.tag == "center" or ("-" in element.tag and not _is_beside_text(element)):
            element.tag = "div"
        elif element.tag not in _KNOWN or is_label or (element.tag == "a" and element.get("href") is None):
            element.tag = "span"
    for code in tree.xpath("//code[not(contains(., '\n') or ancestor::pre)]"):
        code.tag = "span"


def _join_lines(tree: Any) -> None:
    for text in tree.xpath(_WRAPPED):
        joined = re.sub(r"[ \t\n\r\f]+", " ", text)
        if text.is_tail:
            # A blank behind code would make one line of its last one and the paragraph below it.
            is_behind_code = text.getparent().tag == "pre" and not joined.strip()
            text.getparent().tail = None if is_behind_code else joined
        else:
            text.getparent().text = joined


def _is_beside_text(element: Any) -> bool:
    before = element.getprevious()
    text = element.getparent().text if before is None else before.tail
    return bool((text or "").strip() or (element.tail or "").strip())

"""Citation marks in running text, and the source lists of a text, under whatever heading and in whatever language.

Marks are `(C001)`, `[1]`, `[1, 2]`, `[1-3]`, `[1]-[3]`, `【1】`, `[^1]`, `[^1^]`, `[cite: 1, 2]`, superscripts (`²` and
`<sup>2</sup>`), full-width forms, and links.
"""

import re
from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import NamedTuple

from pipeline.citations.addresses import Link, find_links, is_address, is_within, verbatim_spans, with_line_feeds
from pipeline.core.sentences import packaged_table
from pipeline.text.markdown import HARD, SOFT, Block, heading_words, plain_words, read_blocks

_SEPARATOR = r"[ \t]*+[,，、;；/&][ \t]*+|[ \t]*+[-–—‐‑~～〜][ \t]*+"
_NUMBERS = rf"\^?\d{{1,3}}(?>(?:(?:{_SEPARATOR})\^?\d{{1,3}})*)"
_CIDS = r"C\d{3}(?>(?:[ \t]*+[,，、;；][ \t]*+C\d{3})*)"
_RAISED_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁽⁾", "0123456789-  ")
# Behind a word or a sentence's end a raised number is a mark; behind `m`, `10` or `x` it is an exponent.
_BEHIND_WORDS = (
    "(?:(?<=[^\\W\\d_]{3})|(?<=[.,;:!?\"'”’)\\]»。、，！？」』）])|(?<=[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]))"
)
# Gemini writes `[cite: 1, 2]`, Kimi `[^1^]`.
# ChatGPT writes `【4†source】` and `【4†L1-L9】`; some models escape the brackets, and link a number to its entry.
MARK = re.compile(
    r"\[(?P<first>\d{1,3})\][ \t]*+[-–—][ \t]*+\[(?P<last>\d{1,3})\]"
    rf"|[(（\[【［](?P<cids>{_CIDS})[)）\]】］]"
    rf"|(?:(?P<double>\[\[)|\\?\[|【|［)(?P<numbers>{_NUMBERS})(?:†[^\]】］\n]{{0,100}}+)?"
    r"(?(double)\]\]|(?:\\?\]|】|］))(?:\(#[^()\s]{0,200}+\))?"
    r"|\[\^(?P<note>[^\]\[\s^]{1,40}+)\^?\]"
    rf"|\[cite:[ \t]*+(?P<cited>{_NUMBERS})[ \t]*+\]"
    rf"|(?:{_BEHIND_WORDS}[ \t]?<sup>\s*+|<sup>\s*+\[)(?P<superscript>{_NUMBERS})\]?\s*+</sup>"
    rf"|{_BEHIND_WORDS}(?P<raised>⁽?[⁰¹²³⁴-⁹]{{1,3}}(?>(?:[,⁻˒ ][⁰¹²³⁴-⁹]{{1,3}})*)⁾?)"
)
_NUMBER = re.compile(r"(?P<dash>[-–—‐‑~～〜])?[ \t]*+\^?(?P<number>\d+)")
CID = re.compile(r"C\d{3}")
_NUMBERED_LABEL = re.compile(r"[\[【［(]*\^?\d{1,3}[\]】］)]*")
_BRACKETS = {"(": ")", "（": "）", "[": "]", "【": "】"}
_SPACED_WORD = re.compile(r"[^\W\u3000-\u9fff\uff01-\uffef]|[(\"“*]")


class Mark(NamedTuple):
    start: int
    end: int
    ids: tuple[str, ...]  # Numbers without leading zeros, `C001` or a footnote's name, in order; none for a link
    url: str  # URL of a link as it is written; empty for a mark
    shown: str  # What stands in the sentence in its place: a link's words, where they are part of it


def find_marks(text: str, listed: Container[str] = ()) -> list[Mark]:
    """Every mark and link in order of place; raised numbers only where all of them are `listed` by some source list."""
    code = verbatim_spans(text)
    links = [link for link in find_links(text) if not is_within(link.start, code)]
    found = [_mark_of_link(text, link) for link in links]
    taken = sorted([*code, *((link.start, link.end) for link in links)])
    found += [
        Mark(match.start(), match.end(), ids, "", "")
        for match in MARK.finditer(text)
        if (ids := _ids_of(match))
        and not is_within(match.start(), taken)
        and (not (match["raised"] or match["superscript"]) or all(each in listed for each in ids))
    ]
    return sorted(found)


def _ids_of(match: re.Match[str]) -> tuple[str, ...]:
    """What a mark cites; nothing for what only looks like one, such as the interval [0, 1]."""
    if match["cids"]:
        return tuple(dict.fromkeys(CID.findall(match["cids"])))
    if match["note"]:
        return (match["note"],)
    if match["first"]:
        written = f"{match['first']}-{match['last']}"
    else:
        written = (
            match["numbers"] or match["cited"] or match["superscript"] or match["raised"].translate(_RAISED_DIGITS)
        )
    ids: list[int] = []
    for part in _NUMBER.finditer(written):
        number = int(part["number"])
        # A longer range is a span of years or pages.
        if part["dash"] and ids and not 0 < number - ids[-1] <= 50:
            return ()
        ids += range(ids[-1] + 1, number + 1) if part["dash"] and ids else (number,)
    return () if 0 in ids else tuple(dict.fromkeys(map(str, ids)))


def _mark_of_link(text: str, link: Link) -> Mark:
    start, end = link.start, link.end
    label = link.label.strip()
    alone = False
    if start and _BRACKETS.get(text[start - 1]) == text[end : end + 1]:
        start, end, alone = start - 1, end + 1, True
    gone = alone or link.kind in ("image", "bare", "angle", "definition") or bool(_NUMBERED_LABEL.fullmatch(label))
    return Mark(start, end, (), "" if link.kind == "image" else link.url, "" if gone or label == link.url else label)


class PlainText(NamedTuple):
    text: str  # What a reader reads; `HARD` or `SOFT` stands where a line ends
    marks: tuple[tuple[int, Mark], ...]  # Each mark with the character of `text` behind which it stood, in order


def without_citations(text: str, listed: Container[str] = ()) -> PlainText:
    parts: list[str] = []
    marks: list[tuple[int, Mark]] = []
    position = length = 0
    for mark in find_marks(text, listed):
        if mark.start < position:
            continue
        before = plain_words(text[position : mark.start])
        shown = plain_words(mark.shown)
        if not shown:
            before = before.rstrip(" \t") + (" " if _SPACED_WORD.match(text, mark.end) else "")
        parts += [before, shown]
        length += len(before) + len(shown)
        marks.append((length, mark))
        position = mark.end
    parts.append(plain_words(text[position:]))
    return PlainText("".join(parts), tuple(marks))


_TAGS = r"(?>(?:</?(?:a|b|p|span|strong|small)\b[^<>\n]{0,200}+>[ \t]*+){0,4})"
_ENTRY = re.compile(
    rf"[ \t>\u3000]{{0,12}}(?:[-*+•–—‣◦▪●][ \t\u3000]{{1,4}}|[・･][ \t\u3000]{{0,4}})?{_TAGS}(?:\*\*|__)?(?:"
    r"\\?\[\^(?P<note>[^\]\[\s^]{1,40}+)\^?\](?=[ \t]?[:：])"
    r"|\[?(?:\\?\[|【|［)(?P<bracketed>\d{1,3}|C\d{3})(?:\\?\]|】|］)\]?"
    r"|[(（\[]?(?P<cid>C\d{3})[)）\]]?(?=[\s.:：|*—–-])"
    r"|\|[ \t]*(?:\[|【)(?P<cell>\d{1,3})(?:\]|】)[ \t]*\|"
    r"|(?P<raised>[⁰¹²³⁴-⁹]{1,3})|<sup>\s*(?P<superscript>\d{1,3})\s*</sup>"
    r"|(?P<dotted>\d{1,3})(?:(?:\\?[.)]|[、．])(?!\d)|[:：](?=\s|https?://))"
    r"|[(（](?P<round>\d{1,3})[)）]|\|[ \t]*(?P<row>\d{1,3})[ \t]*\|"
    rf")(?:\*\*|__)?[ \t]*[:：.]?(?:\*\*|__)?(?>(?:</\w{{1,6}}>)*)[ \t|]*(?P<rest>.*)"
)
_NUMBERED_BY = ("note", "bracketed", "cid", "cell", "raised", "superscript", "dotted", "round", "row")
# Several entries on one line.
_NEXT_ENTRY = re.compile(
    r"(?<=[\s|;,，；)>])(?:[\[【](?P<marked>\d{1,3})[\]】]|(?P<other>\(\d{1,3}\)|\d{1,3}[.):](?=[ \t])|[⁰¹²³⁴-⁹]{1,3}))"
    r"(?=[ \t]*[^\s\]\[】【.。,，]|[ \t]*\[(?!\d{0,3}\]))"
)
_HTML_LIST = re.compile(r"<ol\b[^<>]{0,200}>(.*?)(?:</ol>|\Z)", re.DOTALL)
_WORDS = packaged_table(__file__, "words.toml")
_SOURCE_WORDS, _ONLY_SOURCES, _GOES_ON, AUTHOR_YEAR = (
    re.compile(_WORDS[name], re.VERBOSE | (re.IGNORECASE if "source" in name else re.NOFLAG))
    for name in ("source_words", "only_sources", "goes_on", "author_year")
)
_SHARE = 0.5


class Entry(NamedTuple):
    id: str  # Its number without leading zeros, `C001`, or the footnote's name
    is_marked: bool
    """Whether its number is one that marks have too, such as `[1]`, `¹`, `[^1]:` or `C001`; else it is `1.`."""
    url: str
    title: str
    line: int
    end: int
    ends_in_url: bool
    is_prose: bool  # Whether it reads like a sentence that begins with a mark, or cites something itself
    is_headed: bool  # Whether a heading above or a word in front of it says that sources follow


class SourceLists:
    """The source lists of a text, and which entry an id on a line names."""

    def __init__(self, entries: Iterable[Entry], lines: Sequence[str]) -> None:
        """Entries with other text between them are of one list where they name the same sources by their numbers.

        One that stands alone above a list with its number is none; one with a URL goes before one without.
        """
        runs: list[list[Entry]] = []
        for entry in sorted(entries, key=lambda entry: entry.line):
            if not runs or any(map(str.strip, lines[runs[-1][-1].end : entry.line])):
                runs.append([])
            runs[-1].append(entry)
        kept: list[list[Entry]] = []
        below: set[str] = set()
        for run in reversed(runs):
            is_list = len(run) > 1 or run[0].is_headed
            kept += [run] * (is_list or run[0].id not in below)
            below |= {entry.id for entry in run if is_list}
        self.entries = [entry for run in reversed(kept) for entry in run]
        self.ids = {entry.id for entry in self.entries}
        self.lists: list[dict[str, Entry]] = [{}]
        self.ends = [0]
        for run in reversed(kept):
            of_run = {entry.id: entry for entry in sorted(reversed(run), key=lambda entry: bool(entry.url))}
            both = ((entry, self.lists[-1][each]) for each, entry in of_run.items() if each in self.lists[-1])
            if any(one.url != two.url and all(each.url or each.is_headed for each in (one, two)) for one, two in both):
                self.lists.append({})
                self.ends.append(0)
            self.lists[-1] |= {each: entry for each, entry in of_run.items() if entry.url or each not in self.lists[-1]}
            self.ends[-1] = max(entry.end for entry in run)

    def find(self, written: str, line: int) -> Entry | None:
        """The entry in the list that the line is in, else in the next one below, else in the last one above."""
        of_list = self.lists[min(bisect_right(self.ends, line), len(self.lists) - 1)]
        return of_list.get(written) or of_list.get(other_form(written))


def read_lists(text: str, blocks: Sequence[Block], cites_numbers: bool) -> SourceLists:
    """All source lists.

    An entry whose number is in brackets of a mark is one wherever it stands, if it has a URL or stands among such, and
    is no sentence. Numbered lists are what bodies have too: they count below a heading that says so, and in the last
    section of a report that `cites_numbers`, where their entries end in a URL and no mark stands in or below them.
    """
    lines = with_line_feeds(text).split("\n")
    found: list[Entry] = []
    for section in sections(blocks):
        candidates = list(_candidate_entries(lines, section))
        marked = [entry for entry in candidates if entry.is_marked]
        in_list = sum(bool(entry.url) for entry in marked) > _SHARE * len(marked)
        numbered = [entry for entry in candidates if not (entry.is_marked or entry.is_headed)]
        ending = [entry for entry in numbered if entry.ends_in_url and not entry.is_prose]
        is_list = section.is_last and cites_numbers and len(ending) > _SHARE * len(numbered)
        if is_list and not MARK.search("\n".join(lines[numbered[-1].end : section.blocks[-1].end])):
            found += ending
        for entry in candidates:
            may_be = entry.is_headed or in_list or entry.url if entry.is_marked else section.is_about_sources
            if (entry.is_headed and entry.url) or (may_be and not entry.is_prose):
                found.append(entry)
    return SourceLists(found, lines)


def other_form(written: str) -> str:
    """The number of a `C001`, whose list may be numbered: they count alike; other ids stay."""
    return str(int(written[1:])) if CID.fullmatch(written) else written


class Cited(NamedTuple):
    mark: Mark
    entries: Mapping[str, Entry | None]  # By each of its ids the entry that it names; None where no list has it
    opens_entry: bool


class OwnList(NamedTuple):
    """The source lists that an answer itself has."""

    urls: tuple[tuple[str, str], ...]
    """Ids with their URLs in the order of their numbers; empty where no mark outside the lists and no link has one."""
    marks: tuple[Cited, ...]
    """All marks of the text, in the list as well; one that opens an entry with a colon ends behind that."""
    links: tuple[Link, ...]  # The links that name an entry, such as `[label][1]`


def own_list(text: str, cites_numbers: bool = True) -> OwnList:
    """Which source each number of an answer stands for, by the answer itself.

    Without `cites_numbers`, where the provider says what is cited, a list such as `1. https://…` is a source list only
    below a heading that says so.
    """
    text, lists = with_line_feeds(text), SourceLists((), ())
    if ("://" in text or _SOURCE_WORDS.search(text)) and MARK.search(text):
        listed = with_markdown_lists(text)
        lists = read_lists(listed, read_blocks(listed), cites_numbers)
    with_url = [entry for of_list in lists.lists for entry in of_list.values() if entry.url]
    with_url.sort(key=lambda entry: (int(entry.id) if entry.id.isdecimal() else 1000, entry.line))
    urls = tuple((entry.id, entry.url) for entry in with_url)
    known = {url for _, url in urls}
    links = tuple(link for link in (find_links(text) if urls else ()) if link.kind == "reference" and link.url in known)
    marks: list[Cited] = []
    of_entries = {line for entry in lists.entries for line in range(entry.line, entry.end)}
    line = position = 0
    is_used = bool(links)
    for mark in find_marks(text, lists.ids | raised_numbers(text)):
        line, position = line + text.count("\n", position, mark.start), mark.start
        is_used |= bool(lists.entries and mark.ids) and line not in of_entries
        is_first = not re.search(r"\w", text[max(0, mark.start - 99) : mark.start].rpartition("\n")[2])
        is_defined = is_first and text[mark.end : mark.end + 1] in (":", "：")
        entries = {each: lists.find(each, line) for each in mark.ids}
        mark = mark._replace(end=mark.end + (is_defined and line in of_entries))
        marks += [Cited(mark, entries, is_defined or (is_first and line in of_entries))] * bool(mark.ids)
    if not is_used:
        return OwnList((), tuple(each._replace(entries=dict.fromkeys(each.entries)) for each in marks), ())
    return OwnList(urls, tuple(marks), links)


def raised_numbers(text: str) -> set[str]:
    """The raised numbers where they count up from 1, as sources do and powers do not."""
    marks = (match for match in MARK.finditer(text) if match["raised"] or match["superscript"])
    found = {each for match in marks for each in _ids_of(match)}
    return found if found == {str(number) for number in range(1, len(found) + 1)} else set()


def with_markdown_lists(text: str) -> str:
    """The text, line by line, with headings for lines that say `Sources:` above a list, and Markdown for `<ol>`."""

    def numbered(found: re.Match[str]) -> str:
        numbers = count(1)
        return re.sub(r"<li\b[^<>]{0,200}>", lambda _: f" {next(numbers)}. ", found[1])

    lines = (_HTML_LIST.sub(numbered, text) if "<ol" in text else text).split("\n")
    for index, line in enumerate(lines):
        if len(line) <= 200 and not line.startswith("#") and (_says_sources(line) or listed_on_line(line) == ""):
            below = next((each for each in lines[index + 1 : index + 4] if each.strip(" \t>")), "")
            if _ENTRY.match(below) or "://" in below or below.startswith("|"):
                lines[index] = "#" * _PLAIN_LEVEL + f" {_bare_words(line)}"
    return "\n".join(lines)


class Section(NamedTuple):
    """A heading and the blocks between it and the next one; no heading before the first one and behind a list."""

    heading: Block | None
    blocks: tuple[Block, ...]
    lists_sources: bool
    """Whether its heading says that sources follow and they do, or it belongs to one that `is_about_sources`."""
    is_about_sources: bool
    """Whether its heading, or one above it, says nothing but that sources follow, and they do: no body of a report."""
    is_last: bool


# Of a line that says `Sources:` and is no heading in Markdown: its section ends with the list.
_PLAIN_LEVEL = 6


def sections(blocks: Sequence[Block]) -> list[Section]:
    groups: list[tuple[Block | None, list[Block]]] = [(None, [])]
    for block in blocks:
        heading, inner = groups[-1]
        if block.kind == "heading":
            groups.append((block, []))
        elif heading and heading.level == _PLAIN_LEVEL and inner and block.kind == "paragraph" and not _is_list(block):
            groups.append((None, [block]))
        else:
            inner.append(block)
    found: list[Section] = []
    above: list[tuple[int, bool]] = []
    for heading, inner in groups:
        level = heading.level if heading else _PLAIN_LEVEL
        words = heading_words(heading) if heading else ""
        texts = [piece.text for block in inner for piece in block.pieces if not piece.is_head]
        lists = bool(texts) and sum("://" in text for text in texts) >= _SHARE * len(texts)
        above = [(each, about) for each, about in above if each < level]
        about = any(about for _, about in above) or (
            _says_sources(words) and (lists or level == _PLAIN_LEVEL or all(map(_is_list, inner)))
        )
        if heading:
            above.append((level, about))
        named = 0 < len(words) <= 60 and _SOURCE_WORDS.search(words) is not None
        found.append(Section(heading, tuple(inner), about or (named and lists), about, False))
    found[-1] = found[-1]._replace(is_last=True)
    return found


def _bare_words(text: str) -> str:
    """Words of a heading without emphasis, bullets, brackets and pictures around them."""
    return re.sub(r"\A[^\w(]+|[\s*_#:：>」】\]]+\Z", "", plain_words(text))


def _says_sources(line: str) -> bool:
    return len(line) <= 200 and _ONLY_SOURCES.fullmatch(_bare_words(line)) is not None


def listed_on_line(text: str) -> str | None:
    """What stands behind `Sources:` in a text that begins so; None for any other."""
    words, colon, rest = text[:200].replace("：", ":", 1).partition(":")
    words = _bare_words(words)
    names = 0 < len(words) <= 40 and (_SOURCE_WORDS.fullmatch(words) or _ONLY_SOURCES.fullmatch(words))
    return (rest + text[200:]).strip(" \t*_" + HARD + SOFT) if colon and names else None


def _is_list(block: Block) -> bool:
    """Whether a block below a heading of sources lists some, with URLs or without: no prose of a body."""
    rows = [piece.text for piece in block.pieces if not piece.is_head]
    return bool(rows) and all(_ENTRY.match(text) or re.search(r"(?:19|20)\d\d", text) for text in rows)


def _candidate_entries(lines: Sequence[str], section: Section) -> Iterator[Entry]:
    for block in section.blocks:
        if block.kind in ("code", "rule"):
            continue
        found: list[Entry] = []
        index = block.line
        while index < block.end:
            named = listed_on_line(lines[index]) or ""
            match = _ENTRY.match(named if "://" in named else lines[index])
            if match is None:
                index += 1
                continue
            end = index + 1
            # A title and its URL may stand on three lines after the one with the number.
            while end < min(block.end, index + 4) and _carries_on(lines, index, end):
                end += 1
            found += _split_entries(match, lines, index, end, section.lists_sources or "://" in named)
            index = end
        indents = {len(lines[entry.line]) - len(lines[entry.line].lstrip()) for entry in found}
        is_lazy = len({entry.id for entry in found}) == len(indents) == 1 < len(found) and not found[0].is_marked
        if block.kind == "list" and is_lazy:  # Markdown shows `1.` on every line as 1, 2, 3
            found = [entry._replace(id=str(int(entry.id) + place)) for place, entry in enumerate(found)]
        yield from found


def _carries_on(lines: Sequence[str], start: int, index: int) -> bool:
    if not lines[index].strip() or _ENTRY.match(lines[index]):
        return False
    return not any("://" in line for line in lines[start:index])


def _split_entries(
    match: re.Match[str], lines: Sequence[str], start: int, end: int, is_headed: bool
) -> Iterator[Entry]:
    groups = match.groupdict()
    name, written = next((name, groups[name]) for name in _NUMBERED_BY if groups[name])
    written = written.translate(_RAISED_DIGITS) if name == "raised" else written
    is_marked = name not in ("dotted", "round", "row")
    text = "\n".join([match["rest"], *lines[start + 1 : end]])
    position = 0
    for following in _NEXT_ENTRY.finditer(text):
        number = following["marked"] or following["other"].translate(_RAISED_DIGITS).strip("().: ")
        is_next = is_marked if following["marked"] else written.isdecimal() and int(number) == int(written) + 1
        if is_next and "://" in text[position : following.start()] and "://" in text[following.end() :]:
            yield _entry(written, name, text[position : following.start()], start, end, is_headed)
            written, position = number, following.end()
    yield _entry(written, name, text[position:], start, end, is_headed)


def _entry(written: str, numbered_by: str, text: str, line: int, end: int, is_headed: bool) -> Entry:
    number = str(int(written)) if written.isdecimal() else written
    is_marked = numbered_by not in ("dotted", "round", "row")
    links = [link for link in find_links(text) if link.kind != "image" and is_address(link.url)]
    if not links:
        title = plain_words(text).strip(" \t|:：-–—")
        return Entry(number, is_marked, "", title, line, end, False, _is_prose(text, False), is_headed)
    link = links[0]
    if link.longer:  # no prose follows an address here
        link = link._replace(url=link.longer, end=link.start + len(link.longer))
    around = text[: link.start] + " " + text[link.end :]
    label = link.label if link.label and not link.label.isdecimal() and link.label != link.url else around
    title = " ".join(plain_words(label).split()).strip(" |:：-–—.,，()（）<>")
    is_word = link.kind == "markdown" and re.search(r"\w \Z", text[: link.start])  # of a sentence
    ends_in_url = not is_word and not text[max(link.end, links[-1].end) :].strip(" \t.,;。，；)）]>*_|")
    is_prose = numbered_by != "note" and _is_prose(text, ends_in_url)
    return Entry(number, is_marked, link.url, title, line, end, ends_in_url, is_prose, is_headed)


def _is_prose(text: str, ends_in_url: bool) -> bool:
    is_sentence = not ends_in_url or text.rstrip().endswith((".", "!", "?", "。", "！", "？"))
    return (is_sentence and _GOES_ON.match(text) is not None) or (
        MARK.search(text) is not None and any(mark.ids for mark in find_marks(text))
    )

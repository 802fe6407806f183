"""Citation marks in running text, and the source lists of a text, under whatever heading and in whatever language.

Marks are `(C001)`, `[1]`, `[1, 2]`, `[1-3]`, `[1]-[3]`, `【1】`, `[^1]`, `[^1^]`, `[cite: 1, 2]`, superscripts (`²` and
`<sup>2</sup>`), full-width forms, and links.
"""

import re
import tomllib
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pipeline.citations.addresses import Link, find_links, is_within, verbatim_spans
from pipeline.text.markdown import HARD, SOFT, Block, heading_words, plain_words, read_blocks

_SEPARATOR = r"[ \t]*+[,，、;；/&][ \t]*+|[ \t]*+[-–—‐‑~～〜][ \t]*+"
_NUMBERS = rf"\^?\d{{1,3}}(?:(?:{_SEPARATOR})\^?\d{{1,3}})*+"
_CIDS = r"C\d{3}(?:[ \t]*+[,，、;；][ \t]*+C\d{3})*+"
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
    rf"|{_BEHIND_WORDS}(?P<raised>⁽?[⁰¹²³⁴-⁹]{{1,3}}(?:[,⁻˒ ][⁰¹²³⁴-⁹]{{1,3}})*+⁾?)"
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


_ENTRY = re.compile(
    r"[ \t>]{0,12}(?:[-*+•][ \t]{1,4})?(?:\*\*|__)?(?:"
    r"\\?\[\^(?P<note>[^\]\[\s^]{1,40}+)\^?\](?=[ \t]?[:：])"
    r"|\[?(?:\\?\[|【|［)(?P<bracketed>\d{1,3}|C\d{3})(?:\\?\]|】|］)\]?"
    r"|[(（\[]?(?P<cid>C\d{3})[)）\]]?(?=[\s.:：|*—–-])"
    r"|\|[ \t]*(?:\[|【)(?P<cell>\d{1,3})(?:\]|】)[ \t]*\|"
    r"|(?P<dotted>\d{1,3})(?:\\?[.)]|[、．])(?!\d)|[(（](?P<round>\d{1,3})[)）]|\|[ \t]*(?P<row>\d{1,3})[ \t]*\|"
    r")(?:\*\*|__)?[ \t]*[:：.]?(?:\*\*|__)?[ \t|]*(?P<rest>.*)"
)
_NUMBERED_BY = ("note", "bracketed", "cid", "cell", "dotted", "round", "row")
# Several entries on one line.
_NEXT_ENTRY = re.compile(
    r"(?<=[\s|;,，；)>])(?:\[(?P<square>\d{1,3})\]|【(?P<lenticular>\d{1,3})】)"
    r"(?=[ \t]*[^\s\]\[】【.。,，]|[ \t]*\[[^\]\d])"
)
_WORDS = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
_SOURCE_WORDS, _ONLY_SOURCES = (
    re.compile(_WORDS[name], re.IGNORECASE | re.VERBOSE) for name in ("source_words", "only_sources")
)
AUTHOR_YEAR = re.compile(_WORDS["author_year"], re.VERBOSE)
_SHARE = 0.5


class Entry(NamedTuple):
    id: str  # Its number without leading zeros, `C001`, or the footnote's name
    is_marked: bool
    """Whether its number is one in square or lenticular brackets, a footnote, or `C001`; else it is `1.` or `(1)`."""
    url: str
    title: str
    line: int
    end: int
    ends_in_url: bool


def read_entries(lines: Sequence[str], blocks: Sequence[Block], cites_numbers: bool) -> list[Entry]:
    """The entries of all source lists in order.

    An entry whose number is in brackets of a mark is one wherever it stands, if it has a URL or stands among such.
    Numbered lists are what bodies have too: they count below a heading that says so, and in the last section of a
    report that `cites_numbers`, where their entries end in a URL.
    """
    found: list[Entry] = []
    for section in sections(blocks):
        candidates = list(_candidate_entries(lines, section))
        marked = [entry for entry in candidates if entry.is_marked]
        in_list = section.lists_sources or sum(bool(entry.url) for entry in marked) > _SHARE * len(marked)
        found += [entry for entry in marked if entry.url or in_list]
        numbered = [entry for entry in candidates if not entry.is_marked]
        ending = sum(entry.ends_in_url for entry in numbered)
        if section.lists_sources:
            found += [entry for entry in numbered if entry.url or section.is_about_sources]
        elif section.is_last and cites_numbers and ending > _SHARE * len(numbered):
            found += [entry for entry in numbered if entry.ends_in_url]
    return sorted(found, key=lambda entry: entry.line)


class OwnList(NamedTuple):
    """The source list that an answer itself has."""

    urls: Mapping[str, str]
    """The URLs by their numbers; empty where no mark outside the list and no link has one of them."""
    marks: tuple[Mark, ...]
    """The marks of the text, in the list as well, of which it has every number; one that opens an entry with a colon
    ends behind that."""
    lost: tuple[Mark, ...]  # The other marks
    links: tuple[Link, ...]  # The links that name an entry, such as `[label][1]`


def own_list(text: str, cites_numbers: bool = True) -> OwnList:
    """Which source each number of an answer stands for, by the answer itself.

    Without `cites_numbers`, where the provider says what they stand for, a list such as `1. https://…` is a source list
    only below a heading that says so.
    """
    entries: list[Entry] = []
    if "://" in text and MARK.search(text):
        entries = read_entries(text.split("\n"), read_blocks(text), cites_numbers)
    urls: dict[str, str] = {}
    for entry in entries:
        if entry.url and entry.id.isdecimal():
            urls.setdefault(entry.id, entry.url)
    linked = find_links(text) if urls else ()
    links = tuple(link for link in linked if link.kind == "reference" and link.url in urls.values())
    marks = [mark for mark in find_marks(text, urls) if mark.ids]
    known = [mark for mark in marks if all(each in urls for each in mark.ids)]
    lines = {line for entry in entries for line in range(entry.line, entry.end)}
    if not links and all(text.count("\n", 0, mark.start) in lines for mark in known):
        return OwnList({}, (), tuple(marks), ())
    known = [mark._replace(end=mark.end + 1) if _opens_entry(text, mark) else mark for mark in known]
    lost = tuple(mark for mark in marks if not all(each in urls for each in mark.ids))
    return OwnList(urls, tuple(known), lost, links)


def _opens_entry(text: str, mark: Mark) -> bool:
    return text[mark.end : mark.end + 1] in (":", "：") and not text[: mark.start].rpartition("\n")[2].strip()


class Section(NamedTuple):
    """A heading, None before the first one, and the blocks between it and the next one."""

    heading: Block | None
    blocks: tuple[Block, ...]
    lists_sources: bool
    """Whether its heading says that sources follow and they do, or it belongs to one that `is_about_sources`."""
    is_about_sources: bool
    """Whether its heading, or one above it, says nothing but that sources follow, and they do: no body of a report."""
    is_last: bool


def sections(blocks: Sequence[Block]) -> list[Section]:
    places = [index for index, block in enumerate(blocks) if block.kind == "heading"]
    ends = [*places, len(blocks)]
    found = [Section(None, tuple(blocks[: ends[0]]), False, False, not places)]
    above: list[tuple[int, bool]] = []
    for index, end in zip(places, ends[1:], strict=True):
        heading, inner = blocks[index], tuple(blocks[index + 1 : end])
        words = heading_words(heading)
        texts = [piece.text for block in inner for piece in block.pieces if not piece.is_head]
        lists = bool(texts) and sum(text.count("://") for text in texts) >= _SHARE * len(texts)
        above = [(level, about) for level, about in above if level < heading.level]
        about = any(about for _, about in above) or (
            bool(_ONLY_SOURCES.fullmatch(words)) and (lists or all(map(_is_list, inner)))
        )
        above.append((heading.level, about))
        named = len(words) <= 60 and _SOURCE_WORDS.search(words) is not None
        found.append(Section(heading, inner, about or (named and lists), about, end == len(blocks)))
    return found


def listed_on_line(text: str) -> str | None:
    """What stands behind `Sources:` in a text that begins so; None for any other."""
    words, colon, rest = text.replace("：", ":", 1).partition(":")
    words = words.strip(" \t*_#>•-")
    names = len(words) <= 40 and (_SOURCE_WORDS.fullmatch(words) or _ONLY_SOURCES.fullmatch(words))
    return rest.strip(" \t*_" + HARD + SOFT) if colon and names else None


def _is_list(block: Block) -> bool:
    """Whether a block below a heading of sources lists some, with URLs or without: no prose of a body."""
    rows = [piece.text for piece in block.pieces if not piece.is_head]
    return bool(rows) and all(_ENTRY.match(text) or re.search(r"(?:19|20)\d\d", text) for text in rows)


def _candidate_entries(lines: Sequence[str], section: Section) -> Iterator[Entry]:
    for block in section.blocks:
        if block.kind in ("code", "rule"):
            continue
        index = block.line
        while index < block.end:
            match = _ENTRY.match(lines[index])
            if match is None:
                index += 1
                continue
            end = index + 1
            # A title and its URL may stand on three lines after the one with the number.
            while end < min(block.end, index + 4) and _carries_on(lines, index, end):
                end += 1
            yield from _split_entries(match, lines, index, end)
            index = end


def _carries_on(lines: Sequence[str], start: int, index: int) -> bool:
    if not lines[index].strip() or _ENTRY.match(lines[index]):
        return False
    return not any("://" in line for line in lines[start:index])


def _split_entries(match: re.Match[str], lines: Sequence[str], start: int, end: int) -> Iterator[Entry]:
    groups = match.groupdict()
    written = next(value for value in (groups[name] for name in _NUMBERED_BY) if value)
    is_marked = not (groups["dotted"] or groups["round"] or groups["row"])
    text = "\n".join([match["rest"], *lines[start + 1 : end]])
    position = 0
    for following in _NEXT_ENTRY.finditer(text) if is_marked else ():
        if "://" in text[position : following.start()] and "://" in text[following.end() :]:
            yield _entry(written, is_marked, text[position : following.start()], start, end)
            written, position = following["square"] or following["lenticular"], following.end()
    yield _entry(written, is_marked, text[position:], start, end)


def _entry(written: str, is_marked: bool, text: str, line: int, end: int) -> Entry:
    number = str(int(written)) if written.isdecimal() else written
    links = [link for link in find_links(text) if link.kind != "image"]
    if not links:
        return Entry(number, is_marked, "", plain_words(text).strip(" \t|:：-–—"), line, end, False)
    link = links[0]
    if link.longer:  # no prose follows an address here
        link = link._replace(url=link.longer, end=link.start + len(link.longer))
    around = text[: link.start] + " " + text[link.end :]
    label = link.label if link.label and not link.label.isdecimal() and link.label != link.url else around
    title = " ".join(plain_words(label).split()).strip(" |:：-–—.,，()（）<>")
    ends_in_url = not text[max(link.end, links[-1].end) :].strip(" \t.,;。，；)）]>*_|")
    return Entry(number, is_marked, link.url, title, line, end, ends_in_url)

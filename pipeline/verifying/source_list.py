"""The source lists of a report, under whatever heading and in whatever language: numbers, titles and URLs."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pipeline.citations.addresses import Link, canonical_url, find_links
from pipeline.core.errors import InputError
from pipeline.verifying.figures import WORDS
from pipeline.verifying.marks import CID, Block, Mark, heading_words, plain_words
from pipeline.verifying.values import (
    CitedSentence,
    ListedSource,
    ReadReport,
    Sentence,
    UnresolvedMark,
    UnresolvedReason,
)

_ENTRY = re.compile(
    r"[ \t>]{0,12}(?:[-*+•][ \t]{1,4})?(?:\*\*|__)?(?:"
    r"\\?\[\^(?P<note>[^\]\[\s^]{1,40}+)\](?=[ \t]?[:：])"
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
_SOURCE_WORDS, _ONLY_SOURCES = (
    re.compile(WORDS["patterns"][name], re.IGNORECASE | re.VERBOSE) for name in ("source_words", "only_sources")
)
_LISTED_URL = re.compile(r"https?://[^\s<>\"|\[\]`（）「」『』【】《》、。，；：]+")
_TRAILING = ".,;:!?*_'"
_SHARE = 0.5


class Entry(NamedTuple):
    id: str
    """Its number without leading zeros, `C001`, or the footnote's name."""
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
        texts = [piece.text for block in inner for piece in block.pieces]
        lists = bool(texts) and sum(text.count("://") for text in texts) >= _SHARE * len(texts)
        above = [(level, about) for level, about in above if level < heading.level]
        about = any(about for _, about in above) or (bool(_ONLY_SOURCES.fullmatch(words)) and (lists or not inner))
        above.append((heading.level, about))
        named = len(words) <= 60 and _SOURCE_WORDS.search(words) is not None
        found.append(Section(heading, inner, about or (named and lists), about, end == len(blocks)))
    return found


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
    link = _whole_bare_url(text, links[0])
    around = text[: link.start] + " " + text[link.end :]
    label = link.label if link.label and not link.label.isdecimal() and link.label != link.url else around
    title = " ".join(plain_words(label).split()).strip(" |:：-–—.,，()（）<>")
    ends_in_url = not text[max(link.end, links[-1].end) :].strip(" \t.,;。，；)）]>*_|")
    return Entry(number, is_marked, link.url, title, line, end, ends_in_url)


def _whole_bare_url(text: str, link: Link) -> Link:
    match = _LISTED_URL.match(text, link.start) if link.kind == "bare" else None
    if match is None:
        return link
    url = match[0].rstrip(_TRAILING)
    surplus = url.count(")") - url.count("(")
    while surplus > 0 and url.endswith(")"):
        url, surplus = url[:-1], surplus - 1
    url = url.rstrip(_TRAILING)
    return link._replace(url=url, end=link.start + len(url)) if len(url) > len(link.url) else link


class Target(NamedTuple):
    id: str
    url: str
    """Canonical URL; empty where it leads nowhere."""
    title: str = ""
    reason: UnresolvedReason | None = None


class Lookup:
    def __init__(self, entries: Iterable[Entry], known: Mapping[str, str]) -> None:
        """An entry with a number in brackets goes before `1.`, one with a URL before one without."""
        self.known = known
        self.entries = sorted(entries, key=lambda entry: entry.line)
        self.by_id: dict[str, list[Entry]] = {}
        best: dict[str, tuple[bool, bool]] = {}
        for entry in self.entries:
            worth = (bool(entry.url), entry.is_marked)
            if entry.id not in best or worth > best[entry.id]:
                best[entry.id], self.by_id[entry.id] = worth, []
            if worth == best[entry.id]:
                self.by_id[entry.id].append(entry)

    def target(self, written: str, line: int) -> Target:
        """Where an id on this line leads: to the next entry below, else to the last one above."""
        found = self.by_id.get(written) or self.by_id.get(_other_form(written)) or []
        index = min(bisect_left(found, line, key=lambda entry: entry.line), len(found) - 1)
        if found and found[index].url:
            return _resolved(written, found[index].url, found[index].title)
        known = self.known.get(_other_form(written))
        return _resolved(written, known, "") if known else Target(written, "", reason="no_url" if found else "no_entry")

    def targets(self, mark: Mark, line: int) -> list[Target]:
        if mark.url:
            return [_resolved("", mark.url, mark.shown)]
        return [self.target(written, line) for written in mark.ids]


def _other_form(written: str) -> str:
    """The number of a `C001`, whose list may be numbered: they count alike; other ids stay."""
    return str(int(written[1:])) if CID.fullmatch(written) else written


def _resolved(written: str, url: str, title: str) -> Target:
    try:
        return Target(written, canonical_url(url), title)
    except InputError:
        return Target(written or url, "", title, "not_a_url")


def to_report(cited: Iterable[CitedSentence], lookup: Lookup) -> ReadReport:
    sentences: list[Sentence] = []
    sources: dict[str, list[Target]] = {}
    counts: Counter[str] = Counter()
    nowhere: dict[tuple[str, UnresolvedReason], list[int]] = {}
    uncited: list[Target] = []
    for each in cited:
        targets = [target for mark in each.marks for target in lookup.targets(mark, each.line)]
        if not each.text:
            uncited += targets
            continue
        urls = tuple(dict.fromkeys(target.url for target in targets if target.url))
        counts.update(urls)
        for target in targets:
            if target.url:
                sources.setdefault(target.url, []).append(target)
        for target in dict.fromkeys(targets):
            if target.reason:
                nowhere.setdefault((target.id, target.reason), []).append(each.line + 1)
        ids = tuple(dict.fromkeys(target.id for target in targets if target.id))
        shared = [target.url for mark in each.shared for target in lookup.targets(mark, each.line) if target.url]
        sentences.append(Sentence(each.text, urls, ids, each.line + 1, urls or tuple(dict.fromkeys(shared))))
    uncited += [_resolved(entry.id, entry.url, entry.title) for entry in lookup.entries if entry.url]
    for target in uncited:
        if target.url:
            sources.setdefault(target.url, []).append(target)
    return ReadReport(
        tuple(sentences),
        tuple(
            ListedSource(
                url=url,
                title=next((each.title for each in targets if each.title), ""),
                ids=tuple(dict.fromkeys(each.id for each in targets if each.id)),
                sentences=counts[url],
            )
            for url, targets in sources.items()
        ),
        tuple(
            UnresolvedMark(id=lost, reason=reason, line=lines[0], sentences=len(lines))
            for (lost, reason), lines in nowhere.items()
        ),
    )

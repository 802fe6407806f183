"""From marks to URLs: a report's numbers looked up in its source lists."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pipeline.errors import InputError
from pipeline.text.urls import canonical_url
from pipeline.verifying.marks import CID, Mark
from pipeline.verifying.source_list import Entry
from pipeline.verifying.values import Cited, ListedSource, Nowhere, ReadReport, Sentence, Unresolved


class Target(NamedTuple):
    """Where one id leads."""

    id: str
    url: str
    """Canonical URL; empty where it leads nowhere."""
    title: str = ""
    reason: Nowhere | None = None
    """Why it leads nowhere."""


class Lookup:
    """The entries of a report's source lists by id, and what is known beside them."""

    def __init__(self, entries: Iterable[Entry], known: Mapping[str, str]) -> None:
        """An entry with a number in brackets goes before `1.`, one with a URL before one without."""
        self.known = known
        self.entries = sorted(entries, key=lambda entry: entry.line)
        self.by_id: dict[str, list[Entry]] = {}
        best: dict[str, tuple[bool, bool]] = {}
        for entry in self.entries:
            worth = (bool(entry.url), entry.kind == "marked")
            if worth > best.get(entry.id, (False, False)) or entry.id not in best:
                best[entry.id], self.by_id[entry.id] = worth, []
            if worth == best[entry.id]:
                self.by_id[entry.id].append(entry)

    def target(self, written: str, line: int) -> Target:
        """Where an id on this line leads: to the next entry below, else to the last one above."""
        found = self.by_id.get(written) or self.by_id.get(other_form(written)) or []
        index = min(bisect_left(found, line, key=lambda entry: entry.line), len(found) - 1)
        if found and found[index].url:
            return resolved(written, found[index].url, found[index].title)
        known = self.known.get(other_form(written))
        return resolved(written, known, "") if known else Target(written, "", reason="no_url" if found else "no_entry")

    def targets(self, mark: Mark, line: int) -> list[Target]:
        """Where each id of a mark, or a link, leads."""
        if mark.url:
            return [resolved("", mark.url, mark.shown)]
        return [self.target(written, line) for written in mark.ids]


def other_form(written: str) -> str:
    """The number of a `C001`, whose list may be numbered: they count alike; other ids stay."""
    return str(int(written[1:])) if CID.fullmatch(written) else written


def resolved(written: str, url: str, title: str) -> Target:
    """The target with this URL; one that is no http(s) URL leads nowhere."""
    try:
        return Target(written, canonical_url(url), title)
    except InputError:
        return Target(written or url, "", title, "not_a_url")


class SourceTally:
    """One source while it is counted."""

    def __init__(self) -> None:
        """Nothing is known of it yet."""
        self.title = ""
        self.ids: dict[str, None] = {}
        self.sentences = 0

    def add(self, target: Target) -> None:
        """Take in its title and its id."""
        self.title = self.title or target.title
        if target.id:
            self.ids.setdefault(target.id)


def to_report(cited: Iterable[Cited], lookup: Lookup) -> ReadReport:
    """The report whose sentences are these; what has no text only names sources."""
    sentences: list[Sentence] = []
    sources: dict[str, SourceTally] = {}
    nowhere: dict[tuple[str, Nowhere], Unresolved] = {}
    uncited: list[Target] = []
    for each in cited:
        targets = [target for mark in each.marks for target in lookup.targets(mark, each.line)]
        if not each.text:
            uncited += targets
            continue
        urls = tuple(dict.fromkeys(target.url for target in targets if target.url))
        for target in targets:
            if target.url:
                sources.setdefault(target.url, SourceTally()).add(target)
        for url in urls:
            sources[url].sentences += 1
        for lost in {target: None for target in targets if target.reason}:
            count_nowhere(nowhere, lost, each.line + 1)
        ids = tuple(dict.fromkeys(target.id for target in targets if target.id))
        sentences.append(Sentence(each.text, urls, ids, each.line + 1))
    uncited += [resolved(entry.id, entry.url, entry.title) for entry in lookup.entries if entry.url]
    for target in uncited:
        if target.url:
            sources.setdefault(target.url, SourceTally()).add(target)
    return ReadReport(
        tuple(sentences),
        tuple(ListedSource(url, each.title, tuple(each.ids), each.sentences) for url, each in sources.items()),
        tuple(nowhere.values()),
    )


def count_nowhere(nowhere: dict[tuple[str, Nowhere], Unresolved], lost: Target, line: int) -> None:
    """Count one more sentence whose mark leads nowhere."""
    assert lost.reason is not None
    key = (lost.id, lost.reason)
    earlier = nowhere.get(key, Unresolved(lost.id, lost.reason, line, 0))
    nowhere[key] = earlier._replace(sentences=earlier.sentences + 1)

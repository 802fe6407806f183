"""Where the marks of a report lead: to the entry of a source list, or to what is known of an answer's numbers."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pipeline.citations.addresses import canonical_url
from pipeline.citations.marks import Mark, SourceLists, other_form
from pipeline.core.errors import InputError
from pipeline.verifying import values


class Target(NamedTuple):
    id: str
    url: str  # Canonical URL; empty where it leads nowhere
    title: str = ""
    reason: values.UnresolvedReason | None = None


class Lookup:
    def __init__(self, lists: SourceLists, known: Mapping[str, str]) -> None:
        self.lists, self.known = lists, known

    def target(self, written: str, line: int) -> Target:
        entry = self.lists.find(written, line)
        if entry and entry.url:
            return _resolved(written, entry.url, entry.title)
        known = self.known.get(other_form(written))
        return _resolved(written, known, "") if known else Target(written, "", reason="no_url" if entry else "no_entry")

    def targets(self, mark: Mark, line: int) -> list[Target]:
        if mark.url:
            return [_resolved("", mark.url, mark.shown)]
        return [self.target(written, line) for written in mark.ids]


def _resolved(written: str, url: str, title: str) -> Target:
    try:
        return Target(written, canonical_url(url), title)
    except InputError:
        return Target(written or url, "", title, "not_a_url")


def to_report(cited: Iterable[values.CitedSentence], lookup: Lookup) -> values.ReadReport:
    sentences: list[values.Sentence] = []
    sources: dict[str, list[Target]] = {}
    counts: Counter[str] = Counter()
    nowhere: dict[tuple[str, values.UnresolvedReason], list[int]] = {}
    uncited: list[Target] = []
    without_url = sum(not entry.url for entry in lookup.lists.entries)
    for each in cited:
        targets = [target for mark in each.marks for target in lookup.targets(mark, each.line)]
        if not each.text:
            uncited += targets
            without_url += each.is_listing and not any(target.url for target in targets)
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
        sentences.append(values.Sentence(each.text, urls, ids, each.line + 1, urls or tuple(dict.fromkeys(shared))))
    uncited += [_resolved(entry.id, entry.url, entry.title) for entry in lookup.lists.entries if entry.url]
    for target in uncited:
        if target.url:
            sources.setdefault(target.url, []).append(target)
    return values.ReadReport(
        tuple(sentences),
        tuple(
            values.ListedSource(
                url=url,
                title=next((each.title for each in targets if each.title), ""),
                ids=tuple(dict.fromkeys(each.id for each in targets if each.id)),
                sentences=counts[url],
            )
            for url, targets in sources.items()
        ),
        tuple(
            values.UnresolvedMark(id=lost, reason=reason, line=lines[0], sentences=len(lines))
            for (lost, reason), lines in nowhere.items()
        ),
        without_url,
    )

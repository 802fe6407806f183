"""Where the marks of a report lead: to the entry of a source list, or to what is known of an answer's numbers."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pipeline.citations.addresses import canonical_url
from pipeline.citations.marks import CID, Entry, Mark
from pipeline.core.errors import InputError
from pipeline.verifying import values


class Target(NamedTuple):
    id: str
    url: str  # Canonical URL; empty where it leads nowhere
    title: str = ""
    reason: values.UnresolvedReason | None = None


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


def to_report(cited: Iterable[values.CitedSentence], lookup: Lookup) -> values.ReadReport:
    sentences: list[values.Sentence] = []
    sources: dict[str, list[Target]] = {}
    counts: Counter[str] = Counter()
    nowhere: dict[tuple[str, values.UnresolvedReason], list[int]] = {}
    uncited: list[Target] = []
    without_url = sum(not entry.url for entry in lookup.entries)
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
    uncited += [_resolved(entry.id, entry.url, entry.title) for entry in lookup.entries if entry.url]
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

"""What the user is told of a run's sources: how many pages of which site are in which state, and why."""

from collections import Counter
from collections.abc import Iterator
from typing import get_args

from pipeline.records import QueryResponse, SourceState
from pipeline.sources.schema import state_of
from pipeline.terminal import printable
from pipeline.text.urls import without_password

STATES: tuple[SourceState, ...] = get_args(SourceState)
_SITES_SHOWN = 10
_FAILURES_SHOWN = 100
_URL_SHOWN = 160


class Tally:
    """Counts of distinct pages by site, and of the records that cite them."""

    def __init__(self) -> None:
        self.sites: dict[str, Counter[str]] = {}
        self.reasons: Counter[str] = Counter()
        self.failures: list[tuple[str, str, str]] = []
        """URL, reason and detail of pages that were not read, the first ones."""
        self.records = self.with_passages = self.sources = self.read_sources = self.short = self.left_out = 0

    def add_page(self, site: str, url: str, reason: str, detail: str) -> None:
        """Count a distinct cited page; the first of those that were not read are kept to be named."""
        self.sites.setdefault(site or "(no site)", Counter())[reason] += 1
        self.reasons[reason] += 1
        if state_of(reason) not in ("read", "unfetched") and len(self.failures) < _FAILURES_SHOWN:
            self.failures.append((url, reason, detail))

    def add_record(self, record: QueryResponse, left_out: int) -> None:
        """Count a record; `left_out` are its pages for which the tokens were not enough."""
        self.records += 1
        self.with_passages += bool(record.chunks)
        self.sources += len(record.sources)
        self.read_sources += sum(source.state == "read" for source in record.sources)
        self.short += left_out > 0
        self.left_out += left_out

    @property
    def pages(self) -> int:
        """Distinct cited pages."""
        return self.reasons.total()

    @property
    def read(self) -> int:
        """Those that were read."""
        return self.by_state()["read"]

    def by_state(self) -> Counter[str]:
        """Distinct pages by state."""
        states: Counter[str] = Counter()
        for reason, count in self.reasons.items():
            states[state_of(reason)] += count
        return states


def pages_line(tally: Tally) -> str:
    """How many pages there are, and of them how many in each state."""
    states = tally.by_state()
    counted = ", ".join(f"{states[state]:,} {state}" for state in STATES if states[state])
    return f"Cited pages: {tally.pages:,}" + (f" ({counted})." if counted else ".")


def tally_lines(tally: Tally) -> Iterator[str]:
    """The summary, line by line: states, sites, what was not read, records."""
    yield pages_line(tally)
    yield from _site_lines(tally)
    yield from failure_lines(tally)
    if tally.short:
        yield f"In {tally.short:,} records the tokens were not enough for {tally.left_out:,} of the pages read,"
        yield "which stand in the list of sources alone; `--context-tokens` gives more room."
    yield (
        f"{tally.records:,} records, {tally.with_passages:,} of them with passages; of {tally.sources:,} citations "
        f"{tally.read_sources:,} can be read."
    )
    yield "Records without passages go to the generation task only."


def _site_lines(tally: Tally) -> Iterator[str]:
    """A line for each of the sites with most pages, and how many others there are."""
    ordered = sorted(tally.sites.items(), key=lambda item: (-item[1].total(), item[0]))
    for site, reasons in ordered[:_SITES_SHOWN]:
        yield f"  {printable(site)}: {_reasons_text(reasons)}"
    if len(ordered) > _SITES_SHOWN:
        rest = sum((reasons for _, reasons in ordered[_SITES_SHOWN:]), Counter[str]())
        yield f"  {len(ordered) - _SITES_SHOWN:,} other sites: {_reasons_text(rest)}"


def _reasons_text(reasons: Counter[str]) -> str:
    """`3 read (page), 1 unread (robots)`, in the order of the states, then of the reasons."""
    ordered = sorted(reasons.items(), key=lambda item: (STATES.index(state_of(item[0])), item[0]))
    return ", ".join(f"{count:,} {state_of(reason)} ({reason})" for reason, count in ordered)


def failure_lines(tally: Tally) -> Iterator[str]:
    """A line for each page that was not read, as far as they are named, and how many others there are."""
    failed = sum(count for reason, count in tally.reasons.items() if state_of(reason) not in ("read", "unfetched"))
    if failed:
        yield "Not read:"
    for url, reason, detail in tally.failures:
        told = f": {printable(detail)}" if detail else ""
        shown = printable(without_password(url))
        shown = shown if len(shown) <= _URL_SHOWN else f"{shown[:_URL_SHOWN]}…"
        yield f"  {state_of(reason)} ({reason}) {shown}{told}"
    if failed > len(tally.failures):
        yield f"  and {failed - len(tally.failures):,} more; each record's `sources` name state and reason of all."

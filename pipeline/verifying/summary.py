"""What the one who verified reports is told: sentences by verdict, marks that lead nowhere, sources by state."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

from pipeline.errors import InputError
from pipeline.sources.choosing.tally import STATES, Tally, failure_lines
from pipeline.sources.store.store import Outcome
from pipeline.text.printable import printable
from pipeline.text.urls import site_key
from pipeline.verifying.schema import UnresolvedMark, VerifiedReport
from pipeline.verifying.values import Verdict

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
SHOWN = 10
# What moves a terminal's cursor or turns the direction of writing, and halves of emoji, which no UTF-8 can hold.
UNPRINTABLE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class Summary:
    """Counts over all reports."""

    def __init__(self) -> None:
        """Nothing counted yet."""
        self.reports = self.sentences = self.cited = self.marks = 0
        self.verdicts: Counter[Verdict] = Counter()
        self.unresolved: list[UnresolvedMark] = []
        self.pages = Tally()
        self.seen: set[str] = set()
        self.holds = True
        self.is_csv = False

    def add(self, report: VerifiedReport, outcome: Callable[[str], Outcome]) -> None:
        """Count a report; `outcome` tells what became of a source's page."""
        self.reports += 1
        self.is_csv = report.answer_id is not None
        self.sentences += len(report.sentences)
        cited = [sentence for sentence in report.sentences if sentence.citations]
        self.cited += len(cited)
        self.verdicts.update(sentence.verdict for sentence in cited)
        self.marks += len(report.unresolved)
        self.unresolved += report.unresolved[: SHOWN - len(self.unresolved)]
        self.holds = self.holds and report.holds
        for source in report.sources:
            if source.sentences and source.url not in self.seen:
                self.seen.add(source.url)
                self.pages.add_page(site_key(source.url), source.url, *outcome(source.url)[:2])

    def check(self, file: Path) -> None:
        """Nothing where there was anything to verify.

        Raises:
            InputError: a CSV file has no answers.
        """
        if not self.reports:
            raise InputError(f"{str(file)!r} holds no answers: it has a header and no rows.")

    def lines(self) -> Iterator[str]:
        """The summary, line by line."""
        of = f" of {self.reports:,} answers" if self.is_csv else ""
        counts = ", ".join(f"{self.verdicts[verdict]:,} {verdict}" for verdict in VERDICTS if self.verdicts[verdict])
        shown = f": {counts}" if counts else ""
        yield f"Sentences{of}: {self.sentences:,}, with citations {self.cited:,}{shown}."
        if self.marks:
            yield f"Marks that lead nowhere: {self.marks:,}."
        for mark in self.unresolved:
            yield f"  {printable(mark.id)} ({mark.reason}), line {mark.line}, in {mark.sentences:,} sentences"
        if self.marks > len(self.unresolved):
            yield f"  and {self.marks - len(self.unresolved):,} more"
        states = self.pages.by_state()
        counted = ", ".join(f"{states[state]:,} {state}" for state in STATES if states[state])
        yield f"Cited pages: {self.pages.pages:,}" + (f" ({counted})." if counted else ".")
        yield from failure_lines(self.pages)


def json_line(value: dict[str, Any]) -> str:
    """The value as one line of JSON in plain UTF-8 that no terminal obeys."""
    text = json.dumps(value, ensure_ascii=False)
    return UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)

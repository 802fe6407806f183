"""A verdict on each sentence of anybody's report: what the pages that it cites say of it."""

import json
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

from pipeline.citations.addresses import shown_url, site_key
from pipeline.citations.marks import AUTHOR_YEAR
from pipeline.core.errors import InputError
from pipeline.core.terminal import counted, printable
from pipeline.records.causes import state_of
from pipeline.sources.choose import Tally, archived_as, cited_page, failure_lines, outcome_of, pages_line
from pipeline.sources.schema import READ
from pipeline.sources.store import Outcome, Store
from pipeline.verifying import values
from pipeline.verifying.page_text import PageText
from pipeline.verifying.read import SubmittedReport
from pipeline.verifying.rules import Finding, check_sentence

_OWN_WORDS, _BY_MODEL = "in the page's own words", "supported by the model"  # How the summary names `supported`
_SHOWN = 10
_SHOWN_WORDS = 300
_WIDTH = 79
# What moves a terminal's cursor or turns the direction of writing, and halves of emoji, which no UTF-8 can hold.
_UNPRINTABLE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class Reader:
    def __init__(self, store: Store | None) -> None:
        self.store = store
        self._page = lru_cache(64)(self._read_page)  # answers to one question cite the same

    def _read_page(self, key: str) -> PageText | None:
        page = self.store.page(key, with_raw=False) if self.store and key else None
        if page is None or page.reason not in READ or not page.text.strip():
            return None
        return PageText(page.text, page.url, page.lang)

    def cited(self, url: str) -> PageText | None:
        return self._page(cited_page(url, {}).key)

    def read(self, urls: Iterable[str]) -> list[PageText]:
        return [page for url in urls if (page := self.cited(url))]

    def outcome(self, url: str) -> Outcome:
        return outcome_of(cited_page(url, {}), self.store)


def cited_keys(submitted: Iterable[SubmittedReport]) -> list[str]:
    urls = (source.url for each in submitted for source in each.report.sources if source.sentences)
    return list(dict.fromkeys(key for url in urls if (key := cited_page(url, {}).key)))


Decide = Callable[[str, Sequence[PageText], Finding], values.Decided]
"""What comes of a sentence and the pages that it cites, beside what the rules find."""


def by_rules(text: str, pages: Sequence[PageText], finding: Finding) -> values.Decided:
    return values.Decided(finding.verdict, "rules", finding.problems)


def cited_claims(submitted: Iterable[SubmittedReport]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for each in submitted:
        for sentence in each.report.sentences:
            for urls in dict.fromkeys((sentence.urls, sentence.paragraph_urls)):
                if urls:
                    yield sentence.text, urls


def verify_report(submitted: SubmittedReport, reader: Reader, decide: Decide = by_rules) -> values.VerifiedReport:
    """The report with a verdict on each sentence, and what became of each source."""
    sentences = submitted.report.sentences
    own, shared = sum(not each.urls for each in sentences), sum(not each.paragraph_urls for each in sentences)
    uncited = None
    if sentences:
        uncited = values.Uncited(
            by_sentence=round(own / len(sentences), 4),
            by_paragraph=round(shared / len(sentences), 4),
            by_author=sum(map(_cites_by_author, sentences)),
            sources_without_url=submitted.report.without_url,
        )
    return values.VerifiedReport(
        answer_id=submitted.answer_id,
        sentences=tuple(_verify_sentence(sentence, reader, decide) for sentence in sentences),
        uncited=uncited,
        unresolved=submitted.report.unresolved,
        sources=tuple(_verify_source(each, reader) for each in submitted.report.sources),
    )


def _cites_by_author(sentence: values.Sentence) -> bool:
    return not sentence.urls and not sentence.ids and AUTHOR_YEAR.search(sentence.text) is not None


def _verify_source(source: values.ListedSource, reader: Reader) -> values.VerifiedSource:
    reason = reader.outcome(source.url).reason
    archived = archived_as(cited_page(source.url, {}), reason, reader.store)
    return values.VerifiedSource(**dict(source), state=state_of(reason), reason=reason, archived=archived)


def _verify_sentence(sentence: values.Sentence, reader: Reader, decide: Decide) -> values.VerifiedSentence:
    own = _reading(sentence, sentence.urls, reader, decide)
    shared = own
    if sentence.paragraph_urls != sentence.urls:
        shared = _reading(sentence, sentence.paragraph_urls, reader, decide)
    return values.VerifiedSentence(
        **dict(own), text=sentence.text, ids=sentence.ids, line=sentence.line, by_paragraph=shared
    )


def _reading(sentence: values.Sentence, urls: tuple[str, ...], reader: Reader, decide: Decide) -> values.Reading:
    text, pages = sentence.text, reader.read(urls)
    if not pages:
        problem = "the pages that it cites were not read" if urls else "it cites nothing that can be looked up"
        if not urls and _cites_by_author(sentence):
            problem = "it cites by author and year, without a link that could be looked up"
        return values.Reading(citations=urls, verdict="cannot_tell", score=None, problems=(problem,))
    finding = check_sentence(text, pages)
    decided = decide(text, pages, finding)
    if decided.verdict == "not_found" and len(pages) < len(urls):
        problems = ("not all of the pages that it cites could be read", *decided.problems)
        decided = decided._replace(verdict="cannot_tell", problems=problems)
    # Those that say otherwise, then those that come nearest, each once.
    near = (pages[place.source].quote(place.sentence) for place in finding.places)
    nearest = list(dict.fromkeys((*finding.against, *near)))[:3]
    return values.Reading(
        citations=urls,
        verdict=decided.verdict,
        score=0.0 if decided.verdict == "contradicted" else round(finding.score, 4),
        problems=decided.problems,
        by=decided.by,
        quotes=tuple(values.PageQuote(**each._asdict()) for each in decided.quotes),
        nearest=() if decided.verdict == "supported" else tuple(values.PageQuote(**each._asdict()) for each in nearest),
    )


class Summary:
    def __init__(self) -> None:
        self.reports = self.sentences = self.marks = 0
        self.verdicts: Counter[str] = Counter()
        self.by_paragraph: Counter[str] = Counter()
        self.unresolved: list[values.UnresolvedMark] = []
        self.by_author = self.without_url = 0
        self.pages = Tally()
        self.seen: set[str] = set()
        self.contradicted: list[str] = []
        self.open: list[str] = []
        self.holds = True
        self.is_csv = False

    def add(self, report: values.VerifiedReport, outcome: Callable[[str], Outcome]) -> None:
        self.reports += 1
        self.is_csv = report.answer_id is not None
        self.sentences += len(report.sentences)
        for sentence in report.sentences:
            shared = sentence.by_paragraph
            self.verdicts.update([_name_of(sentence)] if sentence.citations else ())
            self.by_paragraph.update([_name_of(shared)] if shared.citations else ())
            if shared.verdict == "contradicted" and len(self.contradicted) < _SHOWN:
                self.contradicted.append(_shown(sentence, report.answer_id))
            if shared.verdict == "cannot_tell" and shared.score is not None and len(self.open) < 3:
                self.open.append(_shown(sentence, report.answer_id))
        if report.uncited:
            self.by_author += report.uncited.by_author
            self.without_url += report.uncited.sources_without_url
        self.marks += len(report.unresolved)
        self.unresolved += report.unresolved[: _SHOWN - len(self.unresolved)]
        self.holds = self.holds and report.holds
        for source in report.sources:
            if source.sentences and source.url not in self.seen:
                self.seen.add(source.url)
                came = outcome(source.url)
                self.pages.add_page(
                    site_key(source.url), source.url, came.reason, came.detail, archived=source.archived
                )

    def check(self, file: Path) -> None:
        """Raise InputError for a CSV file without answers."""
        if not self.reports:
            raise InputError(f"{str(file)!r} holds no answers: it has a header and no rows.")

    def _examples(self, verdict: values.Verdict, shown: Sequence[str]) -> Iterator[str]:
        if shown:
            yield f"{verdict}:"
            yield from shown
            if more := self.by_paragraph[verdict] - len(shown):
                yield f"  and {more:,} more"

    @property
    def read_nothing(self) -> bool:
        return bool(self.by_paragraph) and not self.pages.by_state()["read"]

    def _uncited_lines(self) -> Iterator[str]:
        if self.sentences and self.by_paragraph:
            own, shared = (1 - each.total() / self.sentences for each in (self.verdicts, self.by_paragraph))
            yield f"Uncited: {own:.0%} of the sentences by their own marks, {shared:.0%} by their paragraph's."
        if self.by_author:
            yield f"By author and year alone, without a link: {counted(self.by_author, 'sentence')}."
        if self.without_url:
            yield f"Source lists name {counted(self.without_url, 'source')} without a URL."

    def lines(self, strict: bool) -> Iterator[str]:
        of = f" of {self.reports:,} answers" if self.is_csv else ""
        counts = f"Sentences{of}: {self.sentences:,}, with citations {_counted(self.verdicts)}."
        yield from textwrap.wrap(counts, _WIDTH)
        if self.by_paragraph != self.verdicts:
            yield from textwrap.wrap(
                f"Where marks at a paragraph's end cover it: with citations {_counted(self.by_paragraph)}.", _WIDTH
            )
        yield from self._uncited_lines()
        if not self.by_paragraph:
            yield "Nothing that can be looked up is cited, so no page can be compared."
        elif self.read_nothing:
            yield "No cited page was read, so every cited sentence is cannot_tell."
        yield from self._examples("contradicted", self.contradicted)
        yield from self._examples("cannot_tell", self.open)
        if self.marks:
            yield f"Marks that lead nowhere: {self.marks:,}."
        for mark in self.unresolved:
            shown = printable(shown_url(mark.id)[:_SHOWN_WORDS])
            yield f"  {shown} ({mark.reason}), line {mark.line}, in {counted(mark.sentences, 'sentence')}"
        if self.marks > len(self.unresolved):
            yield f"  and {self.marks - len(self.unresolved):,} more"
        yield pages_line(self.pages)
        yield from failure_lines(self.pages)
        if strict and not self.holds:
            total, held = self.by_paragraph.total(), self.by_paragraph[_OWN_WORDS] + self.by_paragraph[_BY_MODEL]
            lost = f"; {counted(self.marks, 'mark')} to nowhere" if self.marks else ""
            cited = counted(total, "sentence")
            yield f"Does not hold: of {cited} with citations {total - held:,} not supported{lost}."


def _name_of(reading: values.Reading | values.VerifiedSentence) -> str:
    if reading.verdict != "supported":
        return reading.verdict
    return _BY_MODEL if reading.by == "model" else _OWN_WORDS


def _shown(sentence: values.VerifiedSentence, answer_id: str | None) -> str:
    reading = sentence.by_paragraph
    where = f"{answer_id}, line {sentence.line}" if answer_id else f"line {sentence.line}"
    lines = [f"{where}: {sentence.text[:_SHOWN_WORDS]}"]
    lines += [f"page: {quote.text[:_SHOWN_WORDS]!r}" for quote in (*reading.quotes, *reading.nearest)[:1]]
    plain = (printable(" ".join(each.split())) for each in lines)
    indents = ("  ", "    ")
    return "\n".join(
        textwrap.fill(each, _WIDTH, initial_indent=indent, subsequent_indent="    ", break_long_words=False)
        for each, indent in zip(plain, indents, strict=False)
    )


def _counted(verdicts: Counter[str]) -> str:
    names = (_OWN_WORDS, _BY_MODEL, *get_args(values.Verdict))
    counts = ", ".join(f"{verdicts[name]:,} {name}" for name in names if verdicts[name])
    return f"{verdicts.total():,}: {counts}" if counts else "0"


def json_line(value: dict[str, Any]) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)

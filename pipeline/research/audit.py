"""The stage `audit`: whether the report says what its run or its pages say (pipeline/contracts/research.md#audit)."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby, islice
from typing import NamedTuple

from pipeline.citations.addresses import canonical_url
from pipeline.citations.marks import CID, Section, find_marks, read_lists, sections
from pipeline.core.errors import BadRowsError, InputError
from pipeline.research.artefacts import CitationEntry, ParagraphLine, RunFolder, VerifyResult
from pipeline.research.contracts import Claim, Report
from pipeline.research.jury import numbers_in_order
from pipeline.research.layout import LaidOut, cid
from pipeline.research.values import Verified, Written
from pipeline.text.markdown import Block, heading_words, plain_words, read_blocks
from pipeline.text.normal_form import INVISIBLE
from pipeline.text.words import UNSPACED, plain_number, without_marks
from pipeline.verifying.page_text import PageText
from pipeline.verifying.read import read_report
from pipeline.verifying.rules import check_sentence
from pipeline.verifying.values import Checked, Page, ReadReport, Sentence

PageOf = Callable[[str], PageText | None]
"""Gives the text of the page with a canonical URL; None where it cannot be read."""

_EDITED_FROM = 0.5
"""Share of its words that a sentence has from one of the run, from which it counts as an edit of that one."""
_SHOWN = 80
_BETWEEN = "\x1f"
_PAGES_KEPT = 32
# Of signs those that say something: a minus, a range, a comparison, a unit, a currency. Others are punctuation.
_TOKEN = re.compile(
    r"\d+(?:[.,]\d+)*"
    rf"|(?<![^\W{UNSPACED}])[-−–](?=[\d.,$€£¥])"
    r"|(?<=\d)\s?[-−–—~〜～]\s?(?=\d)"
    rf"|[{UNSPACED}]|(?:[^\W\d_{UNSPACED}]|[\u0300-\u036f])+"
    r"|[+±▲△~≈<>≤≥=≠%‰°€$£¥₹\u00a7#&@×÷/*^?]"
)
_HIDDEN = re.compile(f"[{INVISIBLE}]+")
_POWER = re.compile(r"(?<=\d)(?=[⁰¹²³⁴-⁹⁻])")  # Where a power begins, whose digits become plain ones: `10²` is not 102
_RANGE = re.compile(r"\s?[-−–—~〜～]\s?")


class Restated(NamedTuple):
    sentences: int = 0
    weaker: int = 0  # Those that stand as the run wrote them, and whose pages' words alone do not support them
    unread: int = 0  # Those of which nothing can be told: nobody knows what the run wrote, and no page could be read
    problems: tuple[str, ...] = ()


def restated(report: ReadReport, written: ReadReport | None, page_of: PageOf) -> Restated:
    """The report held against the one that its run wrote, if that is known, and where it differs against its pages.

    A sentence that looks like an edit of one of the run has to stand on its pages word for word, for an edit that
    reverses a fact keeps nearly all words; another one has to be supported.
    """
    cited = [sentence for sentence in report.sentences if sentence.paragraph_urls]
    stretches = groupby(written.sentences if written else (), key=lambda each: frozenset(each.paragraph_urls))
    held = [(urls, _Wording(each.text for each in stretch)) for urls, stretch in stretches]
    pages = {url: page_of(url) for sentence in cited for url in sentence.paragraph_urls}
    weaker = unread = 0
    problems: list[str] = []
    for sentence in cited:
        own = [page for url in sentence.paragraph_urls if (page := pages[url])]
        words, urls = words_said(sentence.text), frozenset(sentence.paragraph_urls)
        if not words or any(wording.says(words) for sources, wording in held if sources == urls):
            stands = (
                _wording_of_page(page).holds(words) or check_sentence(sentence.text, [page]).verdict == "supported"
                for page in own
            )
            weaker += bool(own) and not any(stands)
        elif not own and written is None:
            unread += 1
        elif problem := _problem(sentence, own, [wording for _, wording in held] if written else None):
            problems.append(problem)
    return Restated(len(cited), weaker, unread, tuple(problems))


class _Wording:
    def __init__(self, sentences: Iterable[str]) -> None:
        self.sentences = [words for each in sentences if (words := words_said(each))]
        self.words: list[str] = []
        self.bounds = {0}
        for words in self.sentences:
            self.words += words
            self.bounds.add(len(self.words))

    def holds(self, words: Sequence[str]) -> bool:
        return _in_a_row(words) in _in_a_row(self.words)

    def says(self, words: Sequence[str]) -> bool:
        """Whether the words are one sentence or several whole ones in order."""
        wanted, size = list(words), len(words)
        return any(
            start + size in self.bounds and self.words[start : start + size] == wanted for start in sorted(self.bounds)
        )


def _in_a_row(words: Sequence[str]) -> str:
    return f"{_BETWEEN}{_BETWEEN.join(words)}{_BETWEEN}"


@lru_cache(_PAGES_KEPT)
def _wording_of_page(page: PageText) -> _Wording:
    return _Wording(map(without_marks, page.sentences))


def words_said(text: str) -> tuple[str, ...]:
    """The words, numbers and telling signs of a text, in order, each in the one form of all ways to write it."""
    seen = _POWER.sub("^", _HIDDEN.sub("", text))
    plain = unicodedata.normalize("NFKC", seen).casefold()
    tokens = (found[0] for found in _TOKEN.finditer(plain))
    return tuple(plain_number(each) if each[0].isdecimal() else _RANGE.sub("-", each) for each in tokens)


def _problem(sentence: Sentence, pages: Sequence[PageText], written: Sequence[_Wording] | None) -> str:
    words = words_said(sentence.text)
    if any(_wording_of_page(page).says(words) for page in pages):
        return ""
    finding = check_sentence(sentence.text, pages)
    passes = finding.verdict == "supported" or (written is None and finding.verdict == "cannot_tell")
    own = {*words}  # a sentence with so many words of another one may be made of it; cut ones too
    edited = any(len(own & {*other}) >= _EDITED_FROM * len(own) for each in written or () for other in each.sentences)
    if passes and not edited:
        return ""
    why = "; ".join(finding.problems) or "they do not have these words in this order"
    other = "" if written is None else "is not what the run wrote, and "
    return f"line {sentence.line}, {_begin(sentence.text)!r}, {other}does not stand on the pages that it cites: {why}."


def _begin(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


_MOST_SHOWN = 5


def check_run(verified: Verified, written: Written, pages: Sequence[Page], laid_out: LaidOut) -> None:
    """Refuse to write a report whose parts do not belong together."""
    texts = {page.url: page.text for page in pages}
    broken = [
        *_broken_claims(verified.claims, texts),
        *_broken_paragraphs(verified, written, texts),
        *_broken_report(written, laid_out),
    ]
    if broken:
        more = f" {len(broken) - _MOST_SHOWN} more are wrong." if len(broken) > _MOST_SHOWN else ""
        raise InputError(
            f"The run's parts do not belong together, so its report is not written. {' '.join(broken[:_MOST_SHOWN])}"
            f"{more} Research under another `--run-id`; if nobody has changed the run's folder, please report this."
        )


def _broken_claims(claims: Sequence[Checked], texts: Mapping[str, str]) -> Iterator[str]:
    for name, count in Counter(checked.claim.id for checked in claims).items():
        if count > 1:
            yield f"There are {count} claims with the id {name}."
    for checked in claims:
        name = checked.claim.id
        if not checked.claim.quotes:
            yield f"Claim {name} has no quote."
        for quote in (*checked.claim.quotes, *checked.against):
            held = texts.get(quote.url, "")[quote.start : quote.end]
            if not held or held != quote.text:
                yield f"A quote of claim {name} does not stand on {quote.url!r}."


def _broken_paragraphs(verified: Verified, written: Written, texts: Mapping[str, str]) -> Iterator[str]:
    verdicts = {checked.claim.id: checked.verdict for checked in verified.claims}
    for number, paragraph in enumerate(written.paragraphs, start=1):
        if not paragraph.urls:
            yield f"Paragraph {number} cites nothing."
        for url in paragraph.urls:
            if url not in texts:
                yield f"Paragraph {number} cites {url!r}, which the run has not read."
        for name in paragraph.claim_ids:
            if verdicts.get(name) != "supported":
                yield f"Paragraph {number} states claim {name}, which no page supports."
    stated = [name for paragraph in written.paragraphs for name in paragraph.claim_ids]
    told = Counter([*stated, *(checked.claim.id for checked in written.left_out)])
    for name in verdicts:
        if told[name] != 1:
            where = "neither in the report nor among those left out" if not told[name] else "told more than once"
            yield f"Claim {name} is {where}."


def _broken_report(written: Written, laid_out: LaidOut) -> Iterator[str]:
    report = laid_out.report
    stated = {name for paragraph in written.paragraphs for name in paragraph.claim_ids}
    if stated != {citation.claim_id for citation in report.citations}:
        yield "The claims of the paragraphs and of the report's citations differ."
    if len(report.sections) != len(report.outline):
        yield f"The report has {len(report.outline)} headings and {len(report.sections)} sections."
    if len(laid_out.paragraphs) != len(written.paragraphs):
        yield f"Of {len(written.paragraphs)} paragraphs {len(laid_out.paragraphs)} are laid out."
    if [str(entry.url) for entry in laid_out.citations] != [reference.url for reference in report.references]:
        yield "The cited sources and the report's references differ."


_CLOSING = " \t\r\n.。．*_」』”’\"'|"
_SAID = re.compile(r"[.!?。．！？]\W*$")
_BOLD = 7  # Level that a paragraph has which is bold as a whole


class Audit(NamedTuple):
    """What the audit of a report found; every tuple is empty where all is well."""

    total_paragraphs: int  # Paragraphs, lists and tables of the report's body
    uncited: tuple[str, ...]
    paragraph_lines: tuple[str, ...]
    citations_found: int
    fabricated: tuple[str, ...]
    """Ids in the body or in `drafts/paragraphs.jsonl` that it does not know, in order of first appearance."""
    disorder: tuple[str, ...]
    """Where the sources are not numbered 1 to N in order of first appearance, or the report lists another URL."""
    report_data: tuple[str, ...] = ()
    text: Restated = Restated()
    not_checked: tuple[str, ...] = ()
    is_held_to_data: bool = False
    """Whether the text was held against the run's `final/report.json`, for the store does not know the run."""

    @property
    def passed(self) -> bool:
        return self.total_paragraphs > 0 and not self.problems

    @property
    def problems(self) -> tuple[str, ...]:
        ending = "and `final/report.json` is missing."
        nothing_checked = f"Nothing of the text could be checked: the store holds neither run nor pages, {ending}"
        return (
            *(() if self.total_paragraphs else ("The report's body has no paragraph.",)),
            *(f"Does not end in a citation: {each}." for each in self.uncited),
            *self.paragraph_lines,
            *(f"{each} is cited, and `evidence/citations.json` has no such source." for each in self.fabricated),
            *self.disorder,
            *self.report_data,
            *(f"`final/report.md`, {each}" for each in self.text.problems),
            *([nothing_checked] if self.text.sentences and self.text.unread == self.text.sentences else []),
        )


def audit(report_md: str, paragraphs: Sequence[ParagraphLine], citations: Sequence[CitationEntry]) -> Audit:
    """What is wrong with the report's body, all but headings, code, sources (pipeline/contracts/research.md#audit)."""
    blocks = read_blocks(report_md)
    parts = sections(blocks)
    body = [block for part in parts if not part.is_about_sources for block in _body_blocks(part)]
    marks = (mark for block in body for piece in block.pieces for mark in find_marks(piece.text))
    ids = (each for mark in marks for each in mark.ids)
    cited = list(dict.fromkeys(cid(int(each)) if each.isdecimal() else each for each in ids))
    written = [each for paragraph in paragraphs for each in paragraph.cite_ids]
    urls = {entry.cid: str(entry.url) for entry in citations}
    return Audit(
        total_paragraphs=len(body),
        uncited=tuple(
            f"line {block.line + 1}, {_begin(' '.join(plain_words(block.pieces[0].text).split()))!r}"
            for block in body
            if not _ends_in_citation(block)
        ),
        paragraph_lines=() if paragraphs else ("`drafts/paragraphs.jsonl` has no paragraph.",),
        citations_found=sum(each in urls for each in cited),
        fabricated=tuple(dict.fromkeys(each for each in (*cited, *written) if each not in urls)),
        disorder=(*_out_of_order(cited, citations), *_listed_otherwise(report_md, blocks, urls)),
    )


def audit_run(
    folder: RunFolder, written_md: str = "", page_of: PageOf | None = None, claims: Sequence[Claim] | None = None
) -> Audit:
    """The audit of the report that a run folder holds, of whoever's making; a damaged file is a problem of it.

    With `page_of` its text is audited too: against `written_md`, the report as the run wrote it, or else the sections
    of `final/report.json`, and against the pages. `claims` are those that its journal has.
    """
    report_md = folder.read_report_md()
    if not report_md.strip():
        raise InputError(f"{str(folder.path)!r} has no `final/report.md`, so there is nothing to audit.")
    citations, report = folder.read_citations(), folder.read_report()
    try:
        audited = audit(report_md, folder.read_paragraphs(), citations)
    except BadRowsError as error:
        lines = tuple(f"`drafts/paragraphs.jsonl`, {row}." for row in error.rows)
        audited = audit(report_md, (), citations)._replace(paragraph_lines=lines)
    data_problems = [*(_data_problems(report) if report else ()), *_claim_problems(folder, report, claims)]
    if page_of is None:
        return audited._replace(report_data=tuple(data_problems))
    written = read_report(written_md) if written_md else None
    held = written
    if report:
        known = {str(reference.n): reference.url for reference in report.references}
        data = read_report("\n\n".join(report.sections), known)
        data_problems += [
            f"The sections of `final/report.json`, {each}" for each in restated(data, written, page_of).problems
        ]
        held = written or data
    text = restated(read_report(report_md), held, page_of)
    not_checked = ("`evidence/claims.json`: the run's journal is gone.",) if claims is None else ()
    return audited._replace(
        report_data=tuple(data_problems), text=text, not_checked=not_checked, is_held_to_data=held is not written
    )


def _claim_problems(folder: RunFolder, report: Report | None, checked: Sequence[Claim] | None) -> Iterator[str]:
    """Where the list of claims is gone or differs from the run's; early versions have neither it nor `config.json`."""
    claims = folder.read_claims()
    if claims is None:
        if folder.read_config():
            yield "`evidence/claims.json` is missing, and the run has written it."
        return
    counts = Counter(claim.id for claim in claims)
    for name in dict.fromkeys([*(each.claim_id for each in report.citations), *counts]) if report else ():
        if counts[name] != 1:
            yield f"`evidence/claims.json` has the claim {name} {counts[name]} times where once is due."
    if checked is not None:
        listed = {claim.id: claim for claim in claims}
        for claim in checked:
            if listed.get(claim.id) != claim:
                state = "otherwise than the run checked it" if claim.id in listed else "not, and the run checked it"
                yield f"`evidence/claims.json` has the claim {claim.id} {state}."
        for name in sorted(listed.keys() - {claim.id for claim in checked}):
            yield f"`evidence/claims.json` has the claim {name}, which the run has not checked."


def _data_problems(report: Report) -> Iterator[str]:
    """What is wrong between the parts of the report as data (pipeline/contracts/research.md#rules)."""
    known = {reference.url for reference in report.references}
    for citation in report.citations:
        if not citation.urls:
            yield f"`final/report.json` has no URL for the claim {citation.claim_id}."
        for url in citation.urls:
            if url not in known:
                yield f"`final/report.json` cites {url!r} for the claim {citation.claim_id}, and has no such reference."
    for claim_id, count in Counter(citation.claim_id for citation in report.citations).items():
        if count > 1:
            yield f"`final/report.json` has the claim {claim_id} {count} times."
    found = numbers_in_order("\n".join(report.sections))
    if found != tuple(reference.n for reference in report.references):
        order = ", ".join(map(str, found)) or "none"
        yield f"The sections of `final/report.json` cite {order} where 1 to {len(report.references)} are due."


def verify_result(audited: Audit, claims: VerifyResult | None) -> VerifyResult:
    """`evidence/verify.json` after the audit; `claims` is what it was before, whose counts of claims stay."""
    counted = ("verified_claims_count", "single_source_claims_count", "conflicts_count")
    return VerifyResult(
        stage="audit",
        status="completed",
        **{name: getattr(claims, name, 0) for name in counted},
        total_paragraphs=audited.total_paragraphs,
        paragraph_without_citation_count=len(audited.uncited),
        paragraph_end_citation_passed=not audited.uncited,
        paragraphs_jsonl_cite_ids_passed=not audited.paragraph_lines,
        citations_found=audited.citations_found,
        passed=audited.passed,
    )


def _body_blocks(section: Section) -> Iterator[Block]:
    """What of a section has to end in a citation: text; a bold paragraph that says something is no heading."""
    heading = section.heading
    if heading and heading.level == _BOLD and _SAID.search(heading_words(heading)):
        yield heading
    for block in section.blocks:
        if block.kind not in ("code", "rule") and block.pieces:
            yield block


def _ends_in_citation(block: Block) -> bool:
    text = block.pieces[-1].text
    marks = [mark for mark in find_marks(text) if mark.ids]
    return bool(marks) and not text[marks[-1].end :].strip(_CLOSING)


def _out_of_order(cited: Sequence[str], citations: Sequence[CitationEntry]) -> Iterator[str]:
    listed = [entry.cid for entry in citations]
    known = [each for each in cited if each in frozenset(listed)]
    for found, line in (
        (listed, "`evidence/citations.json` has {} where {} is due."),
        (known, "The text cites {} first where {} is due."),
    ):
        wrong = ((each, cid(number)) for number, each in enumerate(found, start=1) if each != cid(number))
        yield from (line.format(*pair) for pair in islice(wrong, 1))


def _listed_otherwise(report_md: str, blocks: Sequence[Block], urls: Mapping[str, str]) -> Iterator[str]:
    for entry in read_lists(report_md, blocks, cites_numbers=True).entries:
        name = cid(int(entry.id)) if entry.id.isdecimal() else entry.id
        if not (CID.fullmatch(name) and entry.url and name in urls):
            continue
        try:
            same = canonical_url(entry.url) == urls[name]
        except InputError:
            same = False
        if not same:
            yield f"The report lists {entry.url!r} as {name}, and `evidence/citations.json` has {urls[name]!r}."

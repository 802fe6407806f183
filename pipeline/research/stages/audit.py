"""The stage `audit`: whether the written report keeps what it promises, from its Markdown alone.

Source: pipeline/contracts/research.md#audit.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pipeline.errors import BadRowsError, InputError
from pipeline.research.contracts import Claim, Report
from pipeline.research.output.artefacts import CitationEntry, ParagraphLine, RunFolder, VerifyResult
from pipeline.research.output.layout import cid
from pipeline.research.output.to_answer import numbers_in_order
from pipeline.research.stages._restated import PageOf, Restated, restated
from pipeline.text.urls import canonical_url
from pipeline.verifying.marks import CID, Block, Piece, find_marks, heading_words, plain_words, read_blocks
from pipeline.verifying.read import read_report
from pipeline.verifying.source_list import Section, read_entries, sections

_CLOSING = " \t\r\n.。．*_」』”’\"'|"
"""What may stand behind the last citation of a paragraph."""
_SAID = re.compile(r"[.!?。．！？]\W*$")
_NOTHING_CHECKED = (
    "Nothing of the text could be checked: the store holds neither run nor pages, and `final/report.json` is missing."
)
_SHOWN = 80
_BOLD = 7
"""Level that a paragraph has which is bold as a whole."""


class Audit(NamedTuple):
    """What the audit of a report found; every tuple is empty where all is well."""

    total_paragraphs: int
    """Paragraphs, lists and tables of the report's body."""
    uncited: tuple[str, ...]
    """Those of them that do not end in a citation: line and beginning."""
    paragraph_lines: tuple[str, ...]
    """What is wrong with `drafts/paragraphs.jsonl`."""
    citations_found: int
    """Distinct ids in the body that `evidence/citations.json` knows."""
    fabricated: tuple[str, ...]
    """Ids in the body or in `drafts/paragraphs.jsonl` that it does not know, in order of first appearance."""
    disorder: tuple[str, ...]
    """Where the sources are not numbered 1 to N in order of first appearance, or the report lists another URL."""
    report_data: tuple[str, ...] = ()
    """Where the claims, citations and references of `final/report.json` do not belong together."""
    text: Restated = Restated()
    """What the run, or else the stored pages, say of its sentences."""
    not_checked: tuple[str, ...] = ()
    """What was not held against anything, a sentence each."""
    is_held_to_data: bool = False
    """Whether the text was held against the run's `final/report.json`, for the store does not know the run."""

    @property
    def passed(self) -> bool:
        """Whether the report keeps all that it promises; one without any paragraph does not."""
        return self.total_paragraphs > 0 and not self.problems

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that is wrong, a sentence each."""
        nothing = () if self.total_paragraphs else ("The report's body has no paragraph.",)
        return (
            *nothing,
            *(f"Does not end in a citation: {each}." for each in self.uncited),
            *self.paragraph_lines,
            *(f"{each} is cited, and `evidence/citations.json` has no such source." for each in self.fabricated),
            *self.disorder,
            *self.report_data,
            *(f"`final/report.md`, {each}" for each in self.text.problems),
            *([_NOTHING_CHECKED] if self.text.sentences and self.text.unread == self.text.sentences else []),
        )


def audit(report_md: str, paragraphs: Sequence[ParagraphLine], citations: Sequence[CitationEntry]) -> Audit:
    """What is wrong with the report, and how much was looked at.

    The body is everything but headings, code and the section of references with what belongs to it. Each of its
    paragraphs, and each list and table as a whole, ends in `(C001)` or `[1]`; `paragraphs` is `drafts/paragraphs.jsonl`
    and `citations` is `evidence/citations.json`.

    Source: pipeline/contracts/research.md#audit.
    """
    blocks = read_blocks(report_md)
    parts = sections(blocks)
    body = [block for part in parts if not part.is_about_sources for block in _body_blocks(part)]
    cited = list(dict.fromkeys(each for block in body for piece in block.pieces for each in _cited_ids(piece)))
    written = [each for paragraph in paragraphs for each in paragraph.cite_ids]
    urls = {entry.cid: str(entry.url) for entry in citations}
    return Audit(
        total_paragraphs=len(body),
        uncited=tuple(
            f"line {block.line + 1}, {_beginning(block)!r}" for block in body if not _ends_in_citation(block)
        ),
        paragraph_lines=() if paragraphs else ("`drafts/paragraphs.jsonl` has no paragraph.",),
        citations_found=sum(each in urls for each in cited),
        fabricated=tuple(dict.fromkeys(each for each in (*cited, *written) if each not in urls)),
        disorder=(*_out_of_order(cited, citations), *_listed_otherwise(report_md, blocks, urls)),
    )


def audit_run(
    folder: RunFolder, written_md: str = "", page_of: PageOf | None = None, claims: Sequence[Claim] | None = None
) -> Audit:
    """The audit of the report that a run folder holds, of whoever's making; a file that is damaged is a problem of it.

    With `page_of`, which gives the stored pages, its text is audited too: against `written_md`, the report as the run
    wrote it, or else the sections of `final/report.json`, and against the pages. `claims` are those that the run
    checked, where its journal has them.

    Raises:
        InputError: the folder has no report, or `evidence/citations.json` or `final/report.json` cannot be read.
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
    data_problems = [*_data_problems(report), *_claim_problems(report, folder.read_claims())] if report else []
    data_problems += _changed_claims(folder, claims)
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


def _changed_claims(folder: RunFolder, checked: Sequence[Claim] | None) -> Iterator[str]:
    """Where the list of claims is gone, or has claims otherwise than the run checked them.

    A run of an earlier version has neither that list nor `logs/config.json`.
    """
    claims = folder.read_claims()
    if claims is None:
        if folder.read_config():
            yield "`evidence/claims.json` is missing, and the run has written it."
        return
    if checked is not None:
        listed = {claim.id: claim for claim in claims}
        for claim in checked:
            if listed.get(claim.id) != claim:
                state = "otherwise than the run checked it" if claim.id in listed else "not, and the run checked it"
                yield f"`evidence/claims.json` has the claim {claim.id} {state}."
        for name in sorted(listed.keys() - {claim.id for claim in checked}):
            yield f"`evidence/claims.json` has the claim {name}, which the run has not checked."


def _claim_problems(report: Report, claims: Sequence[Claim] | None) -> Iterator[str]:
    """Claims of the report that the list of claims has not, or twice; `claims` is None for a run without that list."""
    listed = Counter(claim.id for claim in claims or ())
    for name in dict.fromkeys([*(citation.claim_id for citation in report.citations), *listed]):
        if claims is not None and listed[name] != 1:
            yield f"`evidence/claims.json` has the claim {name} {listed[name]} times where once is due."


def _data_problems(report: Report) -> Iterator[str]:
    """What is wrong between the parts of the report as data, each of which may be right for itself.

    Source: pipeline/contracts/research.md#rules: each claim has its citation, each cited URL its reference, in order of
    first citation.
    """
    claims = Counter(citation.claim_id for citation in report.citations)
    known = {reference.url for reference in report.references}
    for citation in report.citations:
        if not citation.urls:
            yield f"`final/report.json` has no URL for the claim {citation.claim_id}."
        for url in citation.urls:
            if url not in known:
                yield f"`final/report.json` cites {url!r} for the claim {citation.claim_id}, and has no such reference."
    for claim_id, count in claims.items():
        if count > 1:
            yield f"`final/report.json` has the claim {claim_id} {count} times."
    found = numbers_in_order("\n".join(report.sections))
    if found != tuple(reference.n for reference in report.references):
        order = ", ".join(map(str, found)) or "none"
        yield f"The sections of `final/report.json` cite {order} where 1 to {len(report.references)} are due."


def verify_result(audited: Audit, claims: VerifyResult | None) -> VerifyResult:
    """`evidence/verify.json` after the audit; `claims` is what it was before, whose counts of claims stay."""
    return VerifyResult(
        stage="audit",
        status="completed",
        verified_claims_count=claims.verified_claims_count if claims else 0,
        single_source_claims_count=claims.single_source_claims_count if claims else 0,
        conflicts_count=claims.conflicts_count if claims else 0,
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


def _cited_ids(piece: Piece) -> Iterator[str]:
    """The ids of the piece's marks as `C001`; a footnote's name as it is."""
    for mark in find_marks(piece.text):
        for each in mark.ids:
            yield cid(int(each)) if each.isdecimal() else each


def _ends_in_citation(block: Block) -> bool:
    """Whether the last thing in the block is a citation mark; a full stop may follow."""
    text = block.pieces[-1].text
    marks = [mark for mark in find_marks(text) if mark.ids]
    return bool(marks) and not text[marks[-1].end :].strip(_CLOSING)


def _beginning(block: Block) -> str:
    words = " ".join(plain_words(block.pieces[0].text).split())
    return words if len(words) <= _SHOWN else f"{words[: _SHOWN - 1]}…"


def _out_of_order(cited: Sequence[str], citations: Sequence[CitationEntry]) -> Iterator[str]:
    """What is wrong with the numbers: the list counts from C001 on, and the text cites them first in that order."""
    listed = [entry.cid for entry in citations]
    all_listed = frozenset(listed)
    for number, found in enumerate(listed, start=1):
        if found != cid(number):
            yield f"`evidence/citations.json` has {found} where {cid(number)} is due."
            break
    known = [each for each in cited if each in all_listed]
    for number, found in enumerate(known, start=1):
        if found != cid(number):
            yield f"The text cites {found} first where {cid(number)} is due."
            break


def _listed_otherwise(report_md: str, blocks: Sequence[Block], urls: Mapping[str, str]) -> Iterator[str]:
    """Where the report's list of references and `evidence/citations.json` name different URLs for one source."""
    for entry in read_entries(report_md.split("\n"), blocks, cites_numbers=True):
        name = cid(int(entry.id)) if entry.id.isdecimal() else entry.id
        if not (CID.fullmatch(name) and entry.url and name in urls):
            continue
        try:
            same = canonical_url(entry.url) == urls[name]
        except InputError:
            same = False
        if not same:
            yield f"The report lists {entry.url!r} as {name}, and `evidence/citations.json` has {urls[name]!r}."

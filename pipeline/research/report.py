"""The end of a run: the report written and laid out, audited, and put beside the pages that it rests on."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.citations.addresses import site_key
from pipeline.core.terminal import counted
from pipeline.models.asking import NO_USE, USED_UP, Meter
from pipeline.models.structured import added
from pipeline.research.artefacts import ParagraphLine, RunFolder, VerifyResult
from pipeline.research.audit import Audit, audit_run, check_run, verify_result
from pipeline.research.claims import read_pages
from pipeline.research.contracts import Claim, Coverage, Metrics, WriterFinalized, contract_json
from pipeline.research.jury import FinishedRun, write_for_jury
from pipeline.research.layout import Account, LaidOut, cid, lay_out, link_to, plain_markdown
from pipeline.research.options import EXTRACTIVE, Budget, ResearchOptions, StopReason
from pipeline.research.passages import shown_passages, write_list
from pipeline.research.rounds import Gathered, kept_verified
from pipeline.research.run import Environment, ResearchRun, put_new_traces
from pipeline.research.values import Intake, Plan, Verified, Written, plan_language
from pipeline.research.write import write_report
from pipeline.sources.chunk import ENCODING
from pipeline.sources.store import Store, StoredRun
from pipeline.text.sentences import sentence_spans
from pipeline.verifying.page_text import PageText
from pipeline.verifying.rules import check_sentence, disagreements, single_source
from pipeline.verifying.values import Page, Paragraph, StoredVerdict, Verdict
from pipeline.verifying.verify import Reader

_TEMPLATE = Path(__file__).parent / "verification.md.jinja"
_MOST_SHOWN = 300
_MOST_LISTED = 200
_VERDICT_MEANINGS: dict[Verdict, str] = {
    "supported": "its pages say it",
    "cannot_tell": "it cannot be told from its pages",
    "not_found": "its pages do not say it",
    "contradicted": "its pages say otherwise",
}


class RunNotes(NamedTuple):
    topic: str
    stop_reason: str = ""
    notes: Sequence[str] = ()
    audit: Sequence[str] = ()
    weaker: Sequence[tuple[str, Verdict]] = ()


def verification_markdown(
    about: RunNotes, verified: Verified, written: Written, pages: Sequence[Page], cids: Mapping[str, str]
) -> str:
    """`cids` are the report's citation ids by URL. Text of pages and models is escaped."""
    from jinja2 import Environment as Templates

    sites = {page.url: page.site for page in pages}
    sources = {page.url: _named_source(page, cids.get(page.url, "")) for page in pages}
    stated = {claim_id for paragraph in written.paragraphs for claim_id in paragraph.claim_ids}
    templates = Templates(trim_blocks=True, keep_trailing_newline=True, autoescape=False)  # the filters escape
    templates.filters |= {
        "plain": plain_markdown,
        "shown": _shown,
        "share": "{:.1%}".format,
        "source": lambda url: sources.get(url, plain_markdown(url)),
        "more": lambda rows: f"\n{len(rows) - _MOST_LISTED} more are not shown.\n" if len(rows) > _MOST_LISTED else "",
    }
    return templates.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(
        about=about,
        verified=verified,
        stated=stated,
        pages=len(pages),
        sites=len({*sites.values()}),
        alone=[each for each in single_source(verified.claims, sites) if each.claim.id in stated],
        found=[
            (found.sides, [each for each in verified.claims if each.claim.id in found.claim_ids])
            for found in disagreements(verified.claims)
        ],
        left_out=[each for each in written.left_out if each.claim.id not in stated],
        meanings=_VERDICT_MEANINGS,
        most=_MOST_LISTED,
    )


def _named_source(page: Page, cid: str) -> str:
    about = ", ".join(filter(None, (cid, plain_markdown(page.site), plain_markdown(page.fetched_at[:10]))))
    return f"{link_to(page.title or page.url, page.url)} ({about})"


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return plain_markdown(line if len(line) <= _MOST_SHOWN else f"{line[: _MOST_SHOWN - 1]}…")


_EARLIER = (
    "An earlier version took single sentences from the pages of this run, and it ends with these. For a reading list "
    "of whole passages research the topic under another `--run-id`; the pages are in the store."
)


class WrittenReport(NamedTuple):
    written: Written
    stop_reason: StopReason | None


class Audited(NamedTuple):
    check: VerifyResult
    earlier: Any  # shares of earlier versions, in whose journals they stand at this place
    problems: tuple[str, ...]
    weaker: tuple[tuple[str, StoredVerdict], ...] = ()


class Finished(NamedTuple):
    run_id: str
    folder: Path
    passed: bool
    stop_reason: StopReason | None
    metrics: Metrics
    check: VerifyResult
    unusable: int = 0  # Questions to which the model gave no usable answer, those beyond its budget left out
    unpriced: int = 0  # Calls of which nobody knows the cost, those that were cut off included


class ReportStages(NamedTuple):
    run: ResearchRun
    environment: Environment
    options: ResearchOptions
    intake: Intake
    plan: Plan
    budget: Budget
    meter: Meter

    def settle_claims(self, verified: Verified, pages: Sequence[Page]) -> None:
        """Write the supported claims as first paragraphs, and the check of all claims so far."""
        numbers: dict[str, int] = {}
        lines: list[ParagraphLine] = []
        for checked in verified.claims:
            urls = dict.fromkeys(quote.url for quote in checked.claim.quotes)
            if checked.verdict == "supported" and urls:
                ids = tuple(cid(numbers.setdefault(url, len(numbers) + 1)) for url in urls)
                lines.append(ParagraphLine(text=checked.claim.text, cite_ids=ids))
        self.run.folder.write_claims(_claims_of(verified))
        self.run.folder.write_paragraphs(lines)
        self.run.folder.write_verify(_check_of_claims(verified, pages, len(lines)))

    async def finish(self, gathered: Gathered) -> Finished:
        run = self.run
        came = await run.run_stage(
            "write",
            WrittenReport,
            lambda: self._write(gathered),
            lambda value: self._settle_report(self._laid_out(gathered, value), gathered, value),
            words=lambda value: counted(len(value.written.paragraphs), "paragraph"),
            asks_model=True,
        )
        laid_out = self._laid_out(gathered, came)
        audited = await run.run_stage(
            "audit",
            Audited,
            lambda: self._audit(laid_out, gathered, came),
            lambda value: self._settle_audit(value, laid_out, gathered, came),
            words=lambda value: (
                "nothing to check"
                if not came.written.paragraphs
                else "passed"
                if value.check.passed
                else counted(len(value.problems), "problem")
            ),
        )
        metrics = await run.run_stage(
            "cache",
            Metrics,
            lambda: self._measure(laid_out, gathered),
            lambda value: self._settle_run(laid_out, gathered, value),
        )
        unusable = sum(note.startswith(NO_USE) and not note.endswith(USED_UP) for note in run.notes)
        unpriced = added(self.meter.spent, self.meter.cut_off).unpriced
        check, stop_reason, folder = audited.check, came.stop_reason, run.folder
        return Finished(folder.run_id, folder.path, check.passed, stop_reason, metrics, check, unusable, unpriced)

    async def _write(self, gathered: Gathered) -> WrittenReport:
        """The paragraphs; in the claims' own words once the model's budget is used up, without a model the passages."""
        model, written = self.environment.model if self.budget.used_up() is None else None, None
        if self.options.model == EXTRACTIVE:
            shown = shown_passages([each.claim for each in gathered.verified.claims], gathered.pages)
            if shown is None:
                self.run.notes.append(_EARLIER)
                self.run.progress.tell(_EARLIER)
            else:
                written = write_list(self.intake, self.plan, shown)
        if written is None:
            written = await write_report(self.intake, self.plan, gathered.verified, gathered.pages, model)
        return WrittenReport(written, gathered.stop_reason or self.budget.used_up())

    def _laid_out(self, gathered: Gathered, came: WrittenReport) -> LaidOut:
        is_list = self.options.model == EXTRACTIVE and all(each.heading for each in came.written.paragraphs)
        account = Account(
            tuple(self.run.notes), came.stop_reason or "", gathered.asked, len(gathered.unread), not is_list
        )
        return lay_out(
            self.intake, self.plan, gathered.verified, came.written, gathered.pages, account, self.options.citations
        )

    def _settle_report(self, laid_out: LaidOut, gathered: Gathered, came: WrittenReport) -> None:
        check_run(gathered.verified, came.written, gathered.pages, laid_out)
        folder, claims = self.run.folder, gathered.verified.claims
        folder.write_claims(_claims_of(gathered.verified))
        folder.write_paragraphs(laid_out.paragraphs)
        folder.write_citations(laid_out.citations)
        folder.write_report(laid_out.markdown, laid_out.report)
        covered = sum(each.verdict == "supported" for each in claims)
        event = WriterFinalized(
            words_count=len(laid_out.markdown.split()),
            references_count=len(laid_out.report.references),
            coverage=Coverage(claims=len(claims), covered=covered),
        )
        put_new_traces(self.environment.store, folder.run_id, [event])

    async def _audit(self, laid_out: LaidOut, gathered: Gathered, came: WrittenReport) -> Audited:
        """What the audit of the written files finds; the counts of claims are those of the check before."""
        texts = read_pages(gathered.pages).texts
        audit = audit_run(self.run.folder, laid_out.markdown, texts.get)
        check = verify_result(audit, _check_of_claims(gathered.verified, gathered.pages, 0))
        # A paragraph without claims says who says what; that one page does not say the other's words is its point.
        stated = [paragraph for paragraph in came.written.paragraphs if paragraph.claim_ids]
        if stated and all(each.heading for each in stated):
            return Audited(check, None, audit.problems)  # the sentences of a reading list are the pages' own
        return Audited(check, None, audit.problems, weaker_sentences(stated, texts, plan_language(self.plan)))

    def _settle_audit(self, audited: Audited, laid_out: LaidOut, gathered: Gathered, came: WrittenReport) -> None:
        notes, stop_reason = tuple(self.run.notes), came.stop_reason or ""
        about = RunNotes(self.intake.topic, stop_reason, notes, audited.problems, audited.weaker)
        cids = {entry.url: entry.cid for entry in laid_out.citations}
        self.run.folder.write_verify(audited.check)
        self.run.folder.write_verification_md(
            verification_markdown(about, gathered.verified, came.written, gathered.pages, cids)
        )

    async def _measure(self, laid_out: LaidOut, gathered: Gathered) -> Metrics:
        """The run's figures; a redirected page belongs to the site that answered."""
        sites = {page.url: page.site for page in gathered.pages}
        cited = [reference.url for reference in laid_out.report.references]
        trace = self.environment.store.events(self.run.folder.run_id)
        asked = [event.payload for event in trace if event.kind == "fetch_result"]
        fetched = {payload["url"] for payload in asked if not payload.get("cached")}
        held = {payload["url"] for payload in asked if payload.get("cached")}
        spent, cut_off = self.meter.spent, self.meter.cut_off
        return Metrics(
            duration_s=round(self.run.journal.seconds(), 3),
            tokens_in=spent.tokens_in,
            tokens_out=spent.tokens_out,
            cost_est=spent.cost,
            sources_count=len(cited),
            domain_diversity=len({sites.get(url) or site_key(url) for url in cited}),
            cache_hits=len(held - fetched),  # what an earlier start of the run fetched was fetched
            cache_misses=len(fetched),
            tokenizer=ENCODING if gathered.pages else None,
            rounds=gathered.rounds,
            conflicts_count=len(disagreements(gathered.verified.claims)),
            stop_reason=laid_out.report.stop_reason,
            calls_cut_off=cut_off.calls or None,
            tokens_cut_off=cut_off.tokens or None,
            cost_cut_off=cut_off.cost or None,
        )

    def _settle_run(self, laid_out: LaidOut, gathered: Gathered, metrics: Metrics) -> None:
        run_id, created_at = self.run.folder.run_id, self.run.journal.created_at
        report, markdown = laid_out.report, laid_out.markdown
        stored = StoredRun(
            run_id, report.topic, created_at, "finished", markdown, contract_json(report), contract_json(metrics)
        )
        self.environment.store.put_run(stored)
        model, claims = self.options.model, gathered.verified.claims
        finished = FinishedRun(run_id, self.intake.depth, model, created_at, report, markdown, claims, gathered.pages)
        write_for_jury(self.run.folder, finished)


def weaker_sentences(
    paragraphs: Sequence[Paragraph], pages: Mapping[str, PageText], language: str
) -> tuple[tuple[str, StoredVerdict], ...]:
    """Those that the words of their paragraph's pages do not support, with the verdict."""
    told = (
        (sentence, check_sentence(sentence, [pages[url] for url in paragraph.urls if url in pages]).verdict)
        for paragraph in paragraphs
        for sentence in (paragraph.text[start:end] for start, end in sentence_spans(paragraph.text, language))
    )
    return tuple(each for each in told if each[1] != "supported")


def audit_again(folder: RunFolder, store: Store | None) -> Audit:
    """The audit of a run's report as it stands now, against what the store knows of the run and of the pages."""
    runs = store.runs() if store else []
    written = next((each.report_md for each in runs if each.id == folder.run_id), "")
    verified = kept_verified(folder.path)
    return audit_run(folder, written, Reader(store).cited, list(_claims_of(verified)) if verified else None)


def _claims_of(verified: Verified) -> Iterator[Claim]:
    for checked in verified.claims:
        claim = checked.claim
        confidence = min(1.0, max(0.0, checked.score))
        yield Claim(id=claim.id, text=claim.text, type=claim.type, confidence=confidence, relevance=claim.relevance)


def _check_of_claims(verified: Verified, pages: Sequence[Page], paragraphs: int) -> VerifyResult:
    sites = {page.url: page.site for page in pages}
    return VerifyResult(
        stage="verify",
        status="completed",
        verified_claims_count=sum(each.verdict == "supported" for each in verified.claims),
        single_source_claims_count=len(single_source(verified.claims, sites)),
        conflicts_count=len(disagreements(verified.claims)),
        total_paragraphs=paragraphs,
        paragraph_without_citation_count=0,
        paragraph_end_citation_passed=True,
        paragraphs_jsonl_cite_ids_passed=paragraphs > 0,
        citations_found=0,
        passed=paragraphs > 0,
    )

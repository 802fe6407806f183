"""The end of a run: the report written and laid out, audited, and put beside the pages that it rests on.

`final/verification.md` says for people what was checked, what was left out of the report and why.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter

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
from pipeline.terminal import counted
from pipeline.text.urls import site_key
from pipeline.verifying.rules import Disagreement, disagreements
from pipeline.verifying.scores import Scores, citation_scores, cited_texts, single_source, weaker_sentences
from pipeline.verifying.values import Checked, Page, Paragraph, Quote, StoredVerdict, Verdict
from pipeline.verifying.verify import Reader

_MOST_SHOWN = 300
"""Characters of a claim or quote that are shown."""
_MOST_LISTED = 200
"""Claims of one list; how many more there are stands below it."""
_VERDICT_MEANINGS: dict[Verdict, str] = {
    "supported": "its pages say it",
    "cannot_tell": "it cannot be told from its pages",
    "not_found": "its pages do not say it",
    "contradicted": "its pages say otherwise",
}
_HOW = (
    "Each claim was held against the stored text of the pages that it cites: quotes word for word, numbers and dates "
    "beside the sentences that come nearest, names on the page, and how much of its words these sentences have. "
    "Words tell nothing of what a page implies or of who is right: where pages differ, both sides stand below."
)


class RunNotes(NamedTuple):
    """What a reader of `verification.md` is told beside the claims."""

    topic: str
    """What was researched."""
    stop_reason: str = ""
    """Why the run ended early; empty where it did not."""
    notes: Sequence[str] = ()
    """How it went, in whole sentences."""
    audit: Sequence[str] = ()
    """What the audit found wrong in the report, in whole sentences; empty where it passed."""
    weaker: Sequence[tuple[str, Verdict]] = ()
    """The report's sentences that the words of their pages do not support, with what they say of each."""


def verification_markdown(
    about: RunNotes,
    verified: Verified,
    written: Written,
    pages: Sequence[Page],
    cids: Mapping[str, str],
    scores: Scores,
) -> str:
    """The file's text; `cids` are the report's citation ids by URL. Text of pages and models is escaped."""
    sources = {page.url: _named_source(page, cids.get(page.url, "")) for page in pages}
    sites = {page.url: page.site for page in pages}
    stated = {claim_id for paragraph in written.paragraphs for claim_id in paragraph.claim_ids}
    alone = [each for each in single_source(verified.claims, sites) if each.claim.id in stated]
    found = disagreements(verified.claims)
    blocks = [
        f"# Verification: {plain_markdown(about.topic)}",
        _HOW,
        "## Counts",
        _table(("what", "count"), _counts(verified, stated, pages, alone, len(found), about.stop_reason)),
        "## Citations of the report",
        _table(("score", "value", "meaning"), _score_rows(scores)),
        "## Audit",
        _bullets(about.audit, "The report passed: every paragraph ends in its citations, and all of them resolve."),
        "## Stated in other words than the pages'",
        _weaker_list(about.weaker),
        "## Left out of the report",
        _left_out_table(written.left_out, stated),
        "## Conflicts",
        *(_conflict_block(each, verified.claims, sources) for each in found[:_MOST_LISTED]),
        "" if found else "No page that was read says otherwise of a claim, as far as words tell.",
        "## Claims with one source",
        _single_source_list(alone, sources),
        "## Notes",
        _bullets(about.notes, "None."),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _counts(
    verified: Verified,
    stated: set[str],
    pages: Sequence[Page],
    alone: Sequence[Checked],
    disagreeing: int,
    stop_reason: str,
) -> list[tuple[str, str]]:
    verdicts = Counter(each.verdict for each in verified.claims)
    rows = [("claims checked", str(len(verified.claims)))]
    rows += [(f"{verdict}: {meaning}", str(verdicts[verdict])) for verdict, meaning in _VERDICT_MEANINGS.items()]
    rows += [
        ("claims in the report", str(len(stated))),
        ("of these from one site only", str(len(alone))),
        ("disagreements between pages", str(disagreeing)),
        ("pages read", str(len(pages))),
        ("sites", str(len({page.site for page in pages}))),
        ("sections with a supported claim", _share(verified.coverage)),
        ("stopped early by", plain_markdown(stop_reason) or "nothing"),
    ]
    return rows


def _score_rows(scores: Scores) -> list[tuple[str, str, str]]:
    effective = f"{scores.effective} of {scores.read} citations that could be read are carried by their page"
    return [
        (
            "citation recall (ALCE)",
            _share(scores.recall),
            f"{scores.supported} of {scores.sentences} sentences supported",
        ),
        (
            "citation precision (ALCE)",
            _share(scores.precision),
            f"{scores.precise} of {scores.citations} citations needed",
        ),
        ("citation accuracy (FACT)", _share(scores.accuracy), effective),
        ("effective citations (FACT)", str(scores.effective), "citations carried by their page alone"),
    ]


def _weaker_list(weaker: Sequence[tuple[str, Verdict]]) -> str:
    """The sentences of the report that words alone do not settle."""
    lines = [f"- {_shown(text)} ({verdict}: {_VERDICT_MEANINGS[verdict]})" for text, verdict in weaker]
    if not lines:
        return "None: the words of the cited pages support every sentence."
    return "\n".join(lines[:_MOST_LISTED]) + _more(len(lines))


def _left_out_table(left_out: Sequence[Checked], stated: set[str]) -> str:
    """What is not in the report, with the reasons."""
    rows = [
        (
            plain_markdown(each.claim.id),
            _shown(each.claim.text),
            each.verdict,
            _shown("; ".join(each.problems)) or "not chosen",
        )
        for each in left_out
        if each.claim.id not in stated
    ]
    if not rows:
        return "Nothing was left out."
    return f"{_table(('claim', 'text', 'verdict', 'why'), rows[:_MOST_LISTED])}{_more(len(rows))}"


def _conflict_block(found: Disagreement, claims: Sequence[Checked], sources: Mapping[str, str]) -> str:
    """A disagreement: its claims, what the first of them rests on, and what speaks against it."""
    told = [each for each in claims if each.claim.id in found.claim_ids]
    names = ", ".join(f"**{plain_markdown(each.claim.id)}**" for each in told)
    heading = f"- {names} ({told[0].verdict}): {_shown(told[0].claim.text)}"
    own = [f"  - for it: {_quoted(quote, sources)}" for quote in found.sides[0]]
    other = [f"  - against it: {_quoted(quote, sources)}" for quote in found.sides[1]]
    return "\n".join([heading, *own, *other])


def _single_source_list(alone: Sequence[Checked], sources: Mapping[str, str]) -> str:
    """The report's claims that only one site supports."""
    lines = [
        f"- **{plain_markdown(each.claim.id)}** {_shown(each.claim.text)} — "
        + ", ".join(sources.get(url, plain_markdown(url)) for url in each.supporters)
        for each in alone
    ]
    return "\n".join(lines[:_MOST_LISTED]) + _more(len(lines)) if lines else "None."


def _quoted(quote: Quote, sources: Mapping[str, str]) -> str:
    return f"“{_shown(quote.text)}” — {sources.get(quote.url, plain_markdown(quote.url))}"


def _named_source(page: Page, cid: str) -> str:
    """The page as a link, with its citation id where the report has one, its site and its date."""
    link = link_to(page.title or page.url, page.url)
    about = ", ".join(filter(None, (cid, plain_markdown(page.site), plain_markdown(page.fetched_at[:10]))))
    return f"{link} ({about})"


def _shown(text: str) -> str:
    """The text in one line, escaped, its first 300 characters."""
    line = " ".join(text.split())
    return plain_markdown(line if len(line) <= _MOST_SHOWN else f"{line[: _MOST_SHOWN - 1]}…")


def _share(value: float | None) -> str:
    """The share in per cent; a dash for none."""
    return "–" if value is None else f"{value:.1%}"


def _more(count: int) -> str:
    """How many entries a list does not show; empty for none."""
    return f"\n\n{count - _MOST_LISTED} more are not shown." if count > _MOST_LISTED else ""


def _bullets(lines: Iterable[str], otherwise: str) -> str:
    """The lines as a list, escaped; the other text where there is none."""
    return "\n".join(f"- {plain_markdown(line)}" for line in lines) or otherwise


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table of cells that are escaped already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


_METRICS = TypeAdapter(Metrics)
_EARLIER = (
    "An earlier version took single sentences from the pages of this run, and it ends with these. For a reading list "
    "of whole passages research the topic under another `--run-id`; the pages are in the store."
)


class WrittenReport(NamedTuple):
    """The report before it is laid out, and why the run ended early."""

    written: Written
    """The paragraphs, and what is not among them."""
    stop_reason: StopReason | None
    """The limit that ended gathering or writing; None where none did."""


class Audited(NamedTuple):
    """What the audit of the written report found."""

    check: VerifyResult
    """Its counts, and whether the report passed."""
    scores: Scores
    """How well the citations carry the sentences."""
    problems: tuple[str, ...]
    """What is wrong, in whole sentences; empty where the report passed."""
    weaker: tuple[tuple[str, StoredVerdict], ...] = ()
    """The report's sentences that the words of their pages do not support, with what they say of each."""

    @property
    def words(self) -> str:
        """Whether the report passed, or how many problems there are."""
        return "passed" if self.check.passed else counted(len(self.problems), "problem")


_WRITTEN = TypeAdapter(WrittenReport)
_AUDITED = TypeAdapter(Audited)


class Finished(NamedTuple):
    """A finished run."""

    run_id: str
    folder: Path
    passed: bool
    """Whether the report passed the audit."""
    stop_reason: StopReason | None
    """The limit that ended it early; None where none did."""
    metrics: Metrics
    check: VerifyResult
    """What the audit counted."""
    unusable: int = 0
    """Questions to which the model gave no usable answer, those beyond its budget left out."""
    unpriced: int = 0
    """Calls of which nobody knows the cost, those that were cut off included."""


class ReportStages(NamedTuple):
    """Writes what follows from checked claims, and at the end the report, its audit and its row in the store."""

    run: ResearchRun
    environment: Environment
    options: ResearchOptions
    intake: Intake
    plan: Plan
    budget: Budget
    meter: Meter

    def settle_claims(self, verified: Verified, pages: Sequence[Page]) -> None:
        """Write the supported claims as first paragraphs, and the check of all claims so far."""
        lines = _first_paragraphs(verified)
        sites = {page.url: page.site for page in pages}
        self.run.folder.write_claims(_claims_of(verified))
        self.run.folder.write_paragraphs(lines)
        self.run.folder.write_verify(_check_of_claims(verified, sites, len(lines)))

    async def finish(self, gathered: Gathered) -> Finished:
        """The finished run, from all that was gathered.

        Raises:
            ProviderError: the model cannot be asked.
            InputError: the report cites more sources than can be numbered.
            OutputError: a file cannot be written.
        """
        folder = self.run.folder
        came = await self.run.run_stage(
            "write",
            _WRITTEN,
            lambda: self.write(gathered),
            lambda value: self.settle_report(self.laid_out(gathered, value), gathered, value),
            words=lambda value: counted(len(value.written.paragraphs), "paragraph"),
            asks_model=True,
        )
        laid_out = self.laid_out(gathered, came)
        audited = await self.run.run_stage(
            "audit",
            _AUDITED,
            lambda: self.audit(gathered, came),
            lambda value: self.settle_audit(value, laid_out, gathered, came),
            words=lambda value: value.words if came.written.paragraphs else "nothing to check",
        )
        metrics = await self.run.run_stage(
            "cache",
            _METRICS,
            lambda: self.measure(laid_out, gathered, audited.scores),
            lambda value: self.settle_run(laid_out, gathered, value),
        )
        unusable = sum(note.startswith(NO_USE) and not note.endswith(USED_UP) for note in self.run.notes)
        unpriced = added(self.meter.spent, self.meter.cut_off).unpriced
        return Finished(
            folder.run_id,
            folder.path,
            audited.check.passed,
            came.stop_reason,
            metrics,
            audited.check,
            unusable,
            unpriced,
        )

    async def write(self, gathered: Gathered) -> WrittenReport:
        """The paragraphs; in the claims' own words once the model's budget is used up, without a model the passages.

        Raises:
            ProviderError: the model cannot be asked.
        """
        if self.options.model == EXTRACTIVE:
            shown = shown_passages([each.claim for each in gathered.verified.claims], gathered.pages)
            if shown is not None:
                written = write_list(self.intake, self.plan, shown)
                return WrittenReport(written, gathered.stop_reason or self.budget.used_up())
            self.run.notes.append(_EARLIER)
            self.run.progress.tell(_EARLIER)
        model = self.environment.model if self.budget.used_up() is None else None
        written = await write_report(self.intake, self.plan, gathered.verified, gathered.pages, model)
        return WrittenReport(written, gathered.stop_reason or self.budget.used_up())

    def laid_out(self, gathered: Gathered, came: WrittenReport) -> LaidOut:
        """The report in all its forms.

        Raises:
            InputError: it cites more sources than can be numbered.
        """
        is_list = self.options.model == EXTRACTIVE and all(each.heading for each in came.written.paragraphs)
        account = Account(
            tuple(self.run.notes), came.stop_reason or "", gathered.asked, len(gathered.unread), not is_list
        )
        return lay_out(
            self.intake, self.plan, gathered.verified, came.written, gathered.pages, account, self.options.citations
        )

    def settle_report(self, laid_out: LaidOut, gathered: Gathered, came: WrittenReport) -> None:
        """Write the report's files, and tell the run's trace that it is written.

        Raises:
            InputError: the run's parts do not belong together; nothing is written then.
        """
        check_run(gathered.verified, came.written, gathered.pages, laid_out)
        folder = self.run.folder
        folder.write_claims(_claims_of(gathered.verified))
        folder.write_paragraphs(laid_out.paragraphs)
        folder.write_citations(laid_out.citations)
        folder.write_report(laid_out.markdown, laid_out.report)
        claims = gathered.verified.claims
        covered = sum(each.verdict == "supported" for each in claims)
        event = WriterFinalized(
            words_count=len(laid_out.markdown.split()),
            references_count=len(laid_out.report.references),
            coverage=Coverage(claims=len(claims), covered=covered),
        )
        put_new_traces(self.environment.store, folder.run_id, [event])

    async def audit(self, gathered: Gathered, came: WrittenReport) -> Audited:
        """What the audit of the written files finds; the counts of claims are those of the check before.

        Raises:
            InputError: somebody has removed or damaged the files.
        """
        sites = {page.url: page.site for page in gathered.pages}
        texts = read_pages(gathered.pages).texts
        audit = audit_run(self.run.folder, self.laid_out(gathered, came).markdown, texts.get)
        check = verify_result(audit, _check_of_claims(gathered.verified, sites, 0))
        # A paragraph without claims says who says what; that one page does not say the other's words is its point.
        stated = [paragraph for paragraph in came.written.paragraphs if paragraph.claim_ids]
        if stated and all(each.heading for each in stated):
            return Audited(check, _scores_of_list(gathered.verified, stated), audit.problems)
        cited = cited_texts(stated, plan_language(self.plan))
        weaker = tuple(weaker_sentences(cited, texts))
        return Audited(check, citation_scores(cited, texts), audit.problems, weaker)

    def settle_audit(self, audited: Audited, laid_out: LaidOut, gathered: Gathered, came: WrittenReport) -> None:
        """Write the check, and the account of it for people."""
        folder = self.run.folder
        about = RunNotes(
            self.intake.topic, came.stop_reason or "", tuple(self.run.notes), audited.problems, audited.weaker
        )
        cids = {entry.url: entry.cid for entry in laid_out.citations}
        folder.write_verify(audited.check)
        folder.write_verification_md(
            verification_markdown(about, gathered.verified, came.written, gathered.pages, cids, audited.scores)
        )

    async def measure(self, laid_out: LaidOut, gathered: Gathered, scores: Scores) -> Metrics:
        """The run's figures; a redirected page belongs to the site that answered."""
        report, pages = laid_out.report, gathered.pages
        sites = {page.url: page.site for page in pages}
        cited = [reference.url for reference in report.references]
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
            tokenizer=ENCODING if pages else None,
            rounds=gathered.rounds,
            citation_recall=scores.recall,
            citation_precision=scores.precision,
            citation_accuracy=scores.accuracy,
            effective_citations=scores.effective if scores.read else None,
            conflicts_count=len(disagreements(gathered.verified.claims)),
            stop_reason=report.stop_reason,
            calls_cut_off=cut_off.calls or None,
            tokens_cut_off=cut_off.tokens or None,
            cost_cut_off=cut_off.cost or None,
        )

    def settle_run(self, laid_out: LaidOut, gathered: Gathered, metrics: Metrics) -> None:
        """Put the run into the store, and write what the jury needs of it."""
        run_id, created_at = self.run.folder.run_id, self.run.journal.created_at
        report, markdown = laid_out.report, laid_out.markdown
        stored = StoredRun(
            run_id, report.topic, created_at, "finished", markdown, contract_json(report), contract_json(metrics)
        )
        self.environment.store.put_run(stored)
        model, claims = self.options.model, gathered.verified.claims
        finished = FinishedRun(run_id, self.intake.depth, model, created_at, report, markdown, claims, gathered.pages)
        write_for_jury(self.run.folder, finished)


def _scores_of_list(verified: Verified, passages: Sequence[Paragraph]) -> Scores:
    """The scores of a reading list: its sentences are the pages' own, and each passage needs its page."""
    supported = sum(each.verdict == "supported" for each in verified.claims)
    count = len(passages)
    return Scores(len(verified.claims), supported, citations=count, precise=count, read=count, effective=count)


def audit_again(folder: RunFolder, store: Store | None) -> Audit:
    """The audit of a run's report as it stands now, against what the store knows of the run and of the pages.

    Raises:
        InputError: as `audit_run`, or the store cannot be read.
    """
    reader = Reader(store)
    runs = store.runs() if store else []
    written = next((each.report_md for each in runs if each.id == folder.run_id), "")
    verified = kept_verified(folder.path)
    return audit_run(folder, written, reader.cited, list(_claims_of(verified)) if verified else None)


def _claims_of(verified: Verified) -> Iterator[Claim]:
    """All claims as `evidence/claims.json` has them, whatever their pages say of them."""
    for checked in verified.claims:
        claim = checked.claim
        confidence = min(1.0, max(0.0, checked.score))
        yield Claim(id=claim.id, text=claim.text, type=claim.type, confidence=confidence, relevance=claim.relevance)


def _first_paragraphs(verified: Verified) -> list[ParagraphLine]:
    """A paragraph for each supported claim, its sources numbered in order of first appearance."""
    numbers: dict[str, int] = {}
    lines: list[ParagraphLine] = []
    for checked in verified.claims:
        urls = dict.fromkeys(quote.url for quote in checked.claim.quotes)
        if checked.verdict == "supported" and urls:
            ids = tuple(cid(numbers.setdefault(url, len(numbers) + 1)) for url in urls)
            lines.append(ParagraphLine(text=checked.claim.text, cite_ids=ids))
    return lines


def _check_of_claims(verified: Verified, sites: Mapping[str, str], paragraphs: int) -> VerifyResult:
    """What the check of claims counts before there is a report; `sites` are the pages' sites by URL."""
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

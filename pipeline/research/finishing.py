"""The end of a run: the report written and laid out, audited, and put beside the pages that it rests on."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter

from pipeline.research.budgets import Budget, StopReason
from pipeline.research.cache import count_pages, run_metrics, stored_run
from pipeline.research.contracts import Metrics
from pipeline.research.course import Course, put_new_traces
from pipeline.research.environment import Environment
from pipeline.research.gathering import Gathered
from pipeline.research.invariants import dangling_citations, references_out_of_order
from pipeline.research.kept_calls import KeptAnswers
from pipeline.research.layout import Account, LaidOut, cid, lay_out
from pipeline.research.options import ResearchOptions
from pipeline.research.run_files import ParagraphLine, VerifyResult
from pipeline.research.to_answer import FinishedRun, write_for_jury
from pipeline.research.traces import Coverage, WriterFinalized
from pipeline.research.values import Intake, Page, Plan, Verified, Written
from pipeline.research.verify import conflicts, single_source
from pipeline.research.write import write_report


class WrittenReport(NamedTuple):
    """The report before it is laid out, and why the run ended early."""

    written: Written
    """The paragraphs, and what is not among them."""
    stop_reason: StopReason | None
    """The limit that ended gathering or writing; None where none did."""


WRITTEN = TypeAdapter(WrittenReport)
METRICS = TypeAdapter(Metrics)
CHECK = TypeAdapter(VerifyResult)


class Finished(NamedTuple):
    """A finished run."""

    run_id: str
    """Its id."""
    folder: Path
    """Its folder."""
    passed: bool
    """Whether the report passed the audit."""
    stop_reason: StopReason | None
    """The limit that ended it early; None where none did."""
    metrics: Metrics
    """Its figures."""
    check: VerifyResult
    """What the audit counted."""


class Finishing:
    """Writes what follows from checked claims, and at the end the report, its audit and its row in the store."""

    def __init__(
        self,
        course: Course,
        environment: Environment,
        options: ResearchOptions,
        intake: Intake,
        plan: Plan,
        budget: Budget,
        answers: KeptAnswers,
    ) -> None:
        """Nothing is written yet."""
        self.course = course
        self.environment = environment
        self.options = options
        self.intake = intake
        self.plan = plan
        self.budget = budget
        self.answers = answers

    def settle_claims(self, verified: Verified, pages: Sequence[Page]) -> None:
        """Write the supported claims as first paragraphs, and the check of all claims so far."""
        lines = first_paragraphs(verified)
        sites = {page.url: page.site for page in pages}
        self.course.folder.write_paragraphs(lines)
        self.course.folder.write_verify(check_of_claims(verified, sites, len(lines)))

    async def finish(self, gathered: Gathered) -> Finished:
        """The finished run, from all that was gathered.

        Raises:
            PayloadError: the model cannot be asked.
            InputError: the report cites more sources than can be numbered.
            OutputError: a file cannot be written.
        """
        folder = self.course.folder
        came = await self.course.run(
            "write",
            WRITTEN,
            lambda: self.write(gathered),
            lambda value: self.settle_report(self.laid_out(gathered, value), gathered),
            words=lambda value: f"{len(value.written.paragraphs)} paragraphs",
            asks_model=True,
        )
        laid_out = self.laid_out(gathered, came)
        check = await self.course.run("audit", CHECK, lambda: self.audit(laid_out, gathered), folder.write_verify)
        metrics = await self.course.run(
            "cache",
            METRICS,
            lambda: self.measure(laid_out, gathered),
            lambda value: self.settle_run(laid_out, gathered, value),
        )
        return Finished(folder.run_id, folder.path, check.passed, came.stop_reason, metrics, check)

    async def write(self, gathered: Gathered) -> WrittenReport:
        """The paragraphs; in the claims' own words once the model's budget is used up.

        Raises:
            PayloadError: the model cannot be asked.
        """
        model = self.environment.model if self.budget.used_up() is None else None
        written = await write_report(self.intake, self.plan, gathered.verified, gathered.pages, model)
        return WrittenReport(written, gathered.stop_reason or self.budget.used_up())

    def laid_out(self, gathered: Gathered, came: WrittenReport) -> LaidOut:
        """The report in all its forms.

        Raises:
            InputError: it cites more sources than can be numbered.
        """
        account = Account(tuple(self.course.notes), came.stop_reason or "")
        return lay_out(
            self.intake, self.plan, gathered.verified, came.written, gathered.pages, account, self.options.citations
        )

    def settle_report(self, laid_out: LaidOut, gathered: Gathered) -> None:
        """Write the report's files, and tell the run's trace that it is written."""
        folder = self.course.folder
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

    async def audit(self, laid_out: LaidOut, gathered: Gathered) -> VerifyResult:
        """What the audit of the report counts."""
        sites = {page.url: page.site for page in gathered.pages}
        counted = check_of_claims(gathered.verified, sites, len(laid_out.paragraphs))
        in_order = not references_out_of_order(laid_out.report) and not dangling_citations(laid_out.report)
        found = len(laid_out.citations)
        return counted.model_copy(
            update={"stage": "audit", "citations_found": found, "passed": counted.passed and in_order}
        )

    async def measure(self, laid_out: LaidOut, gathered: Gathered) -> Metrics:
        """The run's figures."""
        trace = self.environment.store.events(self.course.folder.run_id)
        seconds = self.course.journal.seconds()
        return run_metrics(
            laid_out.report, gathered.pages, count_pages(trace), self.answers.spent, seconds, gathered.rounds
        )

    def settle_run(self, laid_out: LaidOut, gathered: Gathered, metrics: Metrics) -> None:
        """Put the run into the store, and write what the jury needs of it."""
        run_id, created_at = self.course.folder.run_id, self.course.journal.created_at
        report = laid_out.report
        self.environment.store.put_run(stored_run(run_id, created_at, laid_out.markdown, report, metrics))
        finished = FinishedRun(
            run_id,
            self.intake.depth,
            self.options.model,
            created_at,
            report,
            laid_out.markdown,
            gathered.verified.claims,
            gathered.pages,
        )
        write_for_jury(self.course.folder, finished)


def first_paragraphs(verified: Verified) -> list[ParagraphLine]:
    """A paragraph for each supported claim, its sources numbered in order of first appearance."""
    numbers: dict[str, int] = {}
    lines: list[ParagraphLine] = []
    for checked in verified.claims:
        urls = dict.fromkeys(quote.url for quote in checked.claim.quotes)
        if checked.verdict == "supported" and urls:
            ids = tuple(cid(numbers.setdefault(url, len(numbers) + 1)) for url in urls)
            lines.append(ParagraphLine(text=checked.claim.text, cite_ids=ids))
    return lines


def check_of_claims(verified: Verified, sites: Mapping[str, str], paragraphs: int) -> VerifyResult:
    """What the check of claims counts before there is a report; `sites` are the pages' sites by URL."""
    return VerifyResult(
        stage="verify",
        status="completed",
        verified_claims_count=sum(each.verdict == "supported" for each in verified.claims),
        single_source_claims_count=len(single_source(verified.claims, sites)),
        conflicts_count=len(conflicts(verified.claims)),
        total_paragraphs=paragraphs,
        paragraph_without_citation_count=0,
        paragraph_end_citation_passed=True,
        paragraphs_jsonl_cite_ids_passed=paragraphs > 0,
        citations_found=0,
        passed=paragraphs > 0,
    )

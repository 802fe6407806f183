"""The files of a run as they are written and read: one model a file or line, exactly its fields.

Source: pipeline/contracts/research.md#files.
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from pipeline.research.contracts import Count, UtcTime
from pipeline.research.values import Depth, Stage
from pipeline.schema import Frozen
from pipeline.sources.schema import CanonicalUrl

CitationId = Annotated[str, Field(pattern=r"^C[0-9]{3}$")]
"""Id of a cited source: `C001` … `C999`, in order of first appearance in the report."""

MAX_SOURCES = 999
"""The most sources that a report can cite: their ids have three digits."""


class Clarify(Frozen):
    """`clarify.json`: what had to be asked before the run."""

    status: Literal["pending", "clarified", "failed"]
    """How far the asking is."""
    questions: tuple[str, ...]
    """What was asked."""
    answers: tuple[str, ...]
    """What was answered, in the order of the questions; empty where nothing was."""
    failure_reason: str | None
    """Why there are no answers, where the asking failed; else null."""

    @model_validator(mode="after")
    def check_status(self) -> "Clarify":
        """The file's content itself.

        Raises:
            ValueError: status, answers and reason contradict each other.
        """
        if self.status == "failed" and (self.answers or not self.failure_reason):
            raise ValueError("with status `failed` there are no answers, and there is a `failure_reason`")
        if self.status != "failed" and self.failure_reason is not None:
            raise ValueError(f"with status `{self.status}` the `failure_reason` is null")
        return self


class ParagraphLine(Frozen):
    """A line of `drafts/paragraphs.jsonl`: one paragraph of the report."""

    text: str
    """The paragraph without its citations."""
    cite_ids: tuple[CitationId, ...] = Field(min_length=1)
    """The sources that it cites."""


class VerifyResult(Frozen):
    """`evidence/verify.json`: what the check of claims or of the written report found."""

    stage: Literal["audit", "verify"]
    """Who checked: `verify` the claims before the report was written, `audit` the report."""
    status: Literal["completed", "failed"]
    """Whether the check came to its end."""
    verified_claims_count: Count
    """Claims that their pages support."""
    single_source_claims_count: Count
    """Those of them that pages of one site alone support."""
    conflicts_count: Count
    """Claims of which some page says otherwise."""
    total_paragraphs: Count
    """Paragraphs of the report's body."""
    paragraph_without_citation_count: Count
    """Those of them that do not end in a citation."""
    paragraph_end_citation_passed: bool
    """Whether every one of them does."""
    paragraphs_jsonl_cite_ids_passed: bool
    """Whether `drafts/paragraphs.jsonl` is there and each of its lines has citations of the right form."""
    citations_found: Count
    """Distinct ids in the report that `evidence/citations.json` knows."""
    passed: bool
    """Whether all of it is well."""


class CitationEntry(Frozen):
    """An entry of `evidence/citations.json`: one cited source."""

    cid: CitationId
    """Its id."""
    url: CanonicalUrl
    """URL of the page."""
    title: str
    """The page's title; empty where it has none."""
    locator: str
    """Where on the page it is: the URL, with a text fragment where a quote is known."""
    fetched_at: UtcTime
    """When the page was fetched."""
    quote_hash: str | None
    """`sha256:` and 64 hex digits of the quote in normal form; null where there is none."""
    local_path: str | None
    """Path of a kept copy, relative to the run folder; null where there is none."""


class StageDetails(Frozen):
    """What a line of the log adds; empty where a stage starts."""

    success: bool | None = None
    """Whether the stage succeeded; left out where it starts."""
    error: str | None = None
    """What went wrong; left out where nothing did."""
    round: int | None = Field(default=None, ge=2)
    """Which pass it is, from the second on; left out for the first."""


class StageEvent(Frozen):
    """A line of `logs/pipeline.jsonl`: a stage started or ended."""

    timestamp: UtcTime
    """When."""
    run_id: str
    """The run."""
    stage: Stage
    """The stage."""
    status: Literal["started", "completed", "failed"]
    """What happened to it."""
    details: StageDetails
    """What there is to add."""

    @model_validator(mode="after")
    def check_details(self) -> "StageEvent":
        """The line itself.

        Raises:
            ValueError: the details do not fit the status.
        """
        wanted = {"started": (None,), "completed": (True,), "failed": (False, None)}[self.status]
        if self.details.success not in wanted or (self.details.error and self.status != "failed"):
            raise ValueError(f"the details of a stage that {self.status} say otherwise")
        return self


class PlanDetails(Frozen):
    """The plan inside `logs/plan.json`."""

    queries: tuple[str, ...]
    """Queries for the search provider, in order."""
    sources: tuple[str, ...]
    """Kinds of sources, such as `web`."""
    estimated_sources: Count
    """How many sources are expected to be looked at."""
    depth: Depth
    """How far the run goes."""


class PlanFile(Frozen):
    """`logs/plan.json`: what the run sets out to do."""

    workers: int = Field(ge=1)
    """Pages read at once."""
    depth: Depth
    """How far the run goes."""
    budget: int = Field(ge=1)
    """The most sources that are read."""
    lang: str = Field(min_length=1)
    """Language of the report, ISO 639-1."""
    plan: PlanDetails
    """The plan."""

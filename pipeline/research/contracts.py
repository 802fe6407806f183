"""What a research run tells others: claims, citations, the report, its trace, configuration and figures.

camelCase in JSON, read in both spellings. `SearchResult`, `Document` and `Chunk` are in `pipeline.sources.schema`. The
payloads of trace events name what each kind tells at least; more fields may stand beside them.

Source: pipeline/contracts/research.md#data, pipeline/contracts/research.md#traces.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from pipeline.sources.decode import CONTROL, LINE_END, SURROGATE
from pipeline.sources.schema import CanonicalUrl, Contract, stored_url
from pipeline.sources.store import Store, TraceKind
from pipeline.verifying.values import ClaimType

_SCHEMA_VERSION: Literal["v1"] = "v1"
MAX_TOPIC = 512
DEFAULT_MODEL = "openai/gpt-oss-120b"
DEFAULT_BASE_URL = "https://openrouter.ai/api/v1"

SearchName = Literal["duckduckgo", "tavily", "bing", "brave", "local"]
"""Search providers; `bing` was retired by its maker, and `local`, which searches files, is ours."""


def clean_text(value: Any) -> Any:
    """A text with `\\n` line ends, no control characters, no lone surrogates (pipeline/contracts/research.md#rules).

    What is no text stays as it is, for pydantic to refuse; it would refuse lone surrogates too.
    """
    return SURROGATE.sub("\ufffd", CONTROL.sub("", LINE_END.sub("\n", value))) if isinstance(value, str) else value


def aware_time(time: datetime) -> datetime:
    """The time in UTC; one without offset is UTC."""
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def _endpoint_as_given(url: str) -> str:
    stored_url(url)
    return url


Text = Annotated[str, BeforeValidator(clean_text)]
UtcTime = Annotated[datetime, AfterValidator(aware_time)]
ClaimId = Annotated[str, Field(min_length=1, max_length=40, pattern=r"^c[1-9][0-9]*$")]
Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Share = Annotated[float, Field(ge=0, le=1)]


class Claim(Contract):
    """One statement that the report may make (pipeline/contracts/research.md#claim)."""

    id: ClaimId
    """Its id, unique in the run."""
    text: Text = Field(min_length=1)
    """The statement."""
    type: ClaimType
    """What kind of statement it is."""
    confidence: _Share
    """From 0 to 1: how far the cited pages cover it."""
    relevance: _Share | None = None
    """From 0 to 1: how far it answers its section's question, in runs of earlier versions; now None."""


class Citation(Contract):
    """The sources of one claim (pipeline/contracts/research.md#citation)."""

    claim_id: ClaimId
    """The claim."""
    urls: Annotated[tuple[CanonicalUrl, ...], AfterValidator(lambda urls: tuple(dict.fromkeys(urls)))]
    """URLs of the pages that it rests on, each once, in order."""


class Reference(Contract):
    """One entry of the report's list of sources."""

    n: int = Field(ge=1)
    """Its number in the list, counted from 1."""
    url: CanonicalUrl
    """The page's URL."""
    title: Text | None = None
    """The page's title; None where it has none."""


class Report(Contract):
    """The report as data (pipeline/contracts/research.md#report)."""

    topic: Text = Field(min_length=1)
    """What was asked."""
    outline: tuple[Text, ...]
    """Headings of the parts in order: the short answer, or that there is none, then the sections."""
    sections: tuple[Text, ...]
    """The same parts in Markdown, one for each heading where possible."""
    citations: tuple[Citation, ...]
    """What each claim of the report rests on."""
    references: tuple[Reference, ...]
    """The cited pages, numbered 1 to N in order of first appearance in the report."""
    schema_version: Literal["v0", "v1"] = _SCHEMA_VERSION
    """Version of this form."""
    stop_reason: str | None = None
    """Why the run ended before it had done all it wanted, such as `cost`; None where nothing stopped it."""

    @model_validator(mode="after")
    def check_numbers(self) -> "Report":
        found = [reference.n for reference in self.references]
        if found != list(range(1, len(found) + 1)):
            raise ValueError(f"references are to be numbered 1 to {len(found)} in their order, found {found}")
        return self


class ReportFile(Contract):
    """`final/report.json`: the report under its name (pipeline/contracts/research.md#files)."""

    report_json: Report
    """The report."""


class TraceEvent(Contract):
    """One event of a run; what each kind tells at least is in `PAYLOADS`.

    Source: pipeline/contracts/research.md#traces.
    """

    ts: UtcTime
    """When it happened."""
    kind: TraceKind
    """What kind of event it is."""
    payload: Mapping[str, Any]
    """What happened."""


class Timeouts(Contract):
    """How long is waited."""

    fetch_timeout_s: int = Field(default=15, ge=5, le=60)
    """For one page, in seconds."""


class Config(Contract):
    """What a run may do (pipeline/contracts/research.md#config)."""

    search_provider: SearchName = "duckduckgo"
    """Who is asked for pages."""
    k: int = Field(default=6, ge=3, le=10)
    """Results wanted of each query."""
    max_rounds: int = Field(default=3, ge=1, le=10)
    """The most rounds from queries to checked claims."""
    per_domain_cap: int = Field(default=3, ge=1, le=10)
    """The most pages of one site in the whole run."""
    timeouts: Timeouts = Timeouts()
    """How long is waited."""
    model: str = Field(default=DEFAULT_MODEL, min_length=1)
    """The model, or `extractive` for none."""
    base_url: Annotated[str, AfterValidator(_endpoint_as_given)] = Field(
        default=DEFAULT_BASE_URL,
        validation_alias=AliasChoices(
            "openrouterBaseUrl", "openrouter_base_url", "cerebrasBaseUrl", "cerebras_base_url", "baseUrl"
        ),
        serialization_alias="openrouterBaseUrl",
    )
    """Address of the model's OpenAI-compatible server, as it was given; `openrouterBaseUrl` in JSON."""
    enable_cache: bool = True
    """Whether pages that are held are read from the store."""


class Metrics(Contract):
    """The figures of a run (pipeline/contracts/research.md#metrics), and below `cache_misses` those that are ours."""

    duration_s: Amount
    """Seconds of work, all resumes together."""
    tokens_in: Count
    """Tokens that went to the model."""
    tokens_out: Count
    """Tokens that came from it."""
    cost_est: Amount
    """What the model is estimated to have cost, in US dollars."""
    sources_count: Count
    """Pages that the report cites."""
    domain_diversity: Count
    """Distinct sites among them; `m.` and `www.` count once."""
    cache_hits: Count
    """Pages that were held already."""
    cache_misses: Count
    """Pages that were fetched."""
    tokenizer: str | None = None
    """Vocabulary by which chunks are counted; None where nothing was cut."""
    rounds: int | None = Field(default=None, ge=1)
    """Rounds from queries to checked claims; None where not counted."""
    citation_recall: _Share | None = None
    """Share of the report's sentences that their citations support (ALCE), in runs of earlier versions; now None."""
    citation_precision: _Share | None = None
    """Share of its citations that their sentences need (ALCE), in runs of earlier versions; now None."""
    citation_accuracy: _Share | None = None
    """Share of its sentence and page pairs that hold (FACT), in runs of earlier versions; now None."""
    effective_citations: Count | None = None
    """Sentence and page pairs that hold (FACT), in runs of earlier versions; now None."""
    answers_question: _Share | None = None
    """Mean relevance of the claims that the report states, in runs of earlier versions; now None."""
    conflicts_count: Count | None = None
    """Disagreements between pages, as `evidence/verify.json` counts them; None in runs of earlier versions."""
    stop_reason: str | None = None
    """Why the run ended before it had done all it wanted; None where nothing stopped it."""
    calls_cut_off: Count | None = None
    """Calls to the model that a kill or a broken line cut off, in none of the figures above; None where none was."""
    tokens_cut_off: Count | None = None
    """Tokens that these took at the most, which count against the limits; None where there are none."""
    cost_cut_off: Amount | None = None
    """What these cost at the most, in US dollars; None where there are none or no price is known."""


CONTRACTS: tuple[type[Contract], ...] = (Claim, Citation, Reference, Report, ReportFile, TraceEvent, Config, Metrics)


def contract_json(value: Contract) -> dict[str, Any]:
    """The value in its normal form: camelCase, URLs canonical, without what is None."""
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


ErrorCode = Literal[
    "INVALID_INPUT",
    "SEARCH_PROVIDER_UNAVAILABLE",
    "NETWORK_ERROR",
    "PARSE_ERROR",
    "ROBOTS_DISALLOWED",
    "DEAD_LINK",
    "TIMEOUT",
    "RATE_LIMITED",
    "BUDGET_EXCEEDED",
    "CONCURRENCY_LIMIT",
    "INTERNAL_ERROR",
    "PROVIDER_UNAVAILABLE",
]
ERROR_CODES: Mapping[str, ErrorCode] = {
    "rate_limit": "RATE_LIMITED",
    "network": "NETWORK_ERROR",
    "timeout": "TIMEOUT",
    "bad_response": "PARSE_ERROR",
}
"""The codes of a provider's failures by their kind; of other kinds it depends on who was asked."""


class Payload(BaseModel):
    """What happened; fields that are not named here are kept."""

    model_config = ConfigDict(frozen=True, extra="allow", use_attribute_docstrings=True)


class ToolCall(Payload):
    """Something outside was called: the model, a search provider."""

    tool: str
    """What was called, such as `model`."""
    params: dict[str, Any]
    """What it was called with, without keys and without long texts."""
    provider: str | None = None
    """Who offers it; None where that does not matter."""


class SearchResults(Payload):
    """A search provider answered a query."""

    query: str
    """The query."""
    k: Count
    """Results wanted."""
    results_count: Count
    """Results that came."""
    provider: str
    """Who was asked."""
    latency_ms: Count
    """How long it took."""


class FetchResult(Payload):
    """A page was asked for."""

    url: CanonicalUrl
    """The page."""
    status: int | None
    """HTTP status; None where nothing answered or the store had it."""
    bytes: Count
    """Length of its body."""
    latency_ms: Count
    """How long it took."""
    robots_respected: bool
    """Whether robots.txt was asked first."""
    cached: bool
    """Whether the store had it."""


class ChunksMade(Payload):
    """A document was cut."""

    doc_url: CanonicalUrl
    """The document."""
    chunks_count: Count
    """How many chunks came of it."""
    avg_tokens: float = Field(ge=0)
    """Their mean length in tokens."""


class ClaimMade(Payload):
    """A claim was taken from pages."""

    claim_id: ClaimId
    """The claim."""
    confidence: _Share
    """How far the cited pages cover it."""
    sources_count: Count
    """How many pages it cites."""


class ClaimsVerified(Payload):
    """All claims so far were checked."""

    orphan_claims: Count
    """Claims that no page supports."""
    follow_up_queries_count: Count
    """Queries for the next round."""


class Coverage(Payload):
    """How many claims have a source."""

    claims: Count
    """All claims."""
    covered: Count
    """Those of them that are supported."""


class WriterFinalized(Payload):
    """The report was written."""

    words_count: Count
    """Its length in words."""
    references_count: Count
    """Its sources."""
    coverage: Coverage
    """How many claims have a source."""


class Failure(Payload):
    """Something went wrong."""

    code: ErrorCode
    """What, by its code."""
    message: str
    """The same in plain words, without keys and page texts."""
    category: str
    """Where it belongs: a stage of the run."""
    retried: bool
    """Whether it was tried again."""


PAYLOADS: dict[TraceKind, type[Payload]] = {
    "tool_call": ToolCall,
    "search_result": SearchResults,
    "fetch_result": FetchResult,
    "chunk_made": ChunksMade,
    "claim_made": ClaimMade,
    "verify_result": ClaimsVerified,
    "writer_finalized": WriterFinalized,
    "error": Failure,
}
KINDS: dict[type[Payload], TraceKind] = {payload: kind for kind, payload in PAYLOADS.items()}


def put_trace(store: Store, run_id: str, payload: Payload) -> None:
    store.put_event(run_id, KINDS[type(payload)], payload.model_dump(mode="json", exclude_none=True))


OWN_FILES_HOST = "documents.invalid"


def is_document(url: str) -> bool:
    return url.partition("://")[2].partition("/")[0].endswith(OWN_FILES_HOST)

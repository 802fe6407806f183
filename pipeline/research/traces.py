"""What each kind of trace event tells at least, and events into and out of the store.

More fields than these may stand beside them.

Source: pipeline/contracts/research.md#traces.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from pipeline.research.contracts import ClaimId, Count, Share
from pipeline.sources.schema import CanonicalUrl
from pipeline.sources.store.store import Store, TraceKind

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
    confidence: Share
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
    """Add the event to the end of the run's trace, under the kind of its payload."""
    store.put_event(run_id, KINDS[type(payload)], payload.model_dump(mode="json", exclude_none=True))

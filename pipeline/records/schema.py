"""The canonical record: one answer with its sources and passages, ready for the jury.

Source: pipeline/contracts/records.md.
"""

from collections.abc import Iterable
from typing import Any, Literal
from uuid import UUID, uuid5

from pydantic import Field, model_validator

from pipeline.citations.addresses import reason_without_page
from pipeline.core.schema import Frozen
from pipeline.records.causes import STATES, Archived, SourceState

Cited = Literal["cited", "shown", "seen", "unknown"]
CITED: tuple[Cited, ...] = ("cited", "shown", "seen")
Origin = Literal["page", "snippet", "cited_text"]

PARTLY_READ_BELOW = 0.9
"""A page is partly read where our text of it holds a smaller share of its visible words.

Source: pipeline/contracts/records.md#partly-read.
"""
CONTEXT_SEPARATOR = " [CTX_SEP] "
# Any fixed UUID would do; it must never change, or imported records get other ids.
RECORD_NAMESPACE = UUID("6f1a3d4e-52c1-5b0f-9f0e-2c9a4f6d7b18")


class Source(Frozen):
    """One cited source and what became of it."""

    n: int = Field(ge=1)
    """Its number in the answer's `[n]`, by first appearance."""
    url: str
    """The URL as the provider returned it."""
    host: str
    """Its site (`source_domain`); empty where the URL has no host."""
    title: str = ""
    """Its title; empty where none is known."""
    state: SourceState
    """`read`: we hold text of it. `unread`: it exists but could not be read. `unreached`: we could not reach it, which
    says nothing of it. `gone`: its server says that it is not there. `no_such_site`: two look-ups found no such host.
    `no_address`: what is cited is no address. `unfetched`: nobody tried yet. What earlier versions called `unresolved`
    is read as one of these, by its reason."""
    reason: str = ""
    """Why it is in this state, a word of `pipeline.records.causes` such as `page` or `robots`;
    empty where not said."""
    archived: Archived = ""
    """Of one that is `gone`, what an archive says: `seen` there once, `never`, or `unknown` since it gave no clear
    answer; empty where none was asked."""
    page_url: str = ""
    """URL of the page where a redirect of the provider's leads, or that the longer reading of `url` names; empty where
    `url` is the page's own."""
    read_share: float | None = Field(default=None, ge=0, le=1)
    """The share of the page's visible words that our text of it holds; below nine tenths it is partly read. Null where
    unknown: no HTML, no visible words, or stored before it was measured."""
    fetched_on: str = ""
    """The day on which the page was fetched or added, `YYYY-MM-DD` in UTC; empty where there is no text of it, and in
    records of earlier versions."""
    cited: Cited = "unknown"
    """`cited`: the answer's text refers to it. `shown`: it does not, but the provider attached the source. `seen`: the
    provider only lists it as found. `unknown`: records of earlier versions and of others do not say."""

    @property
    def percent_read(self) -> int | None:
        """Where the page is partly read, how many per cent of it, rounded down; None where it is whole or unknown."""
        is_part = self.state == "read" and self.read_share is not None and self.read_share < PARTLY_READ_BELOW
        return int(100 * (self.read_share or 0)) if is_part else None

    @model_validator(mode="before")
    @classmethod
    def _of_earlier_versions(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("state") == "unresolved":
            # Names were looked up once, so that a host was not found proves nothing.
            reason = str(value.get("reason", ""))
            reason = reason_without_page(str(value.get("url", ""))) if reason == "not_a_url" else reason
            return {**value, "state": STATES.get(reason, "unreached"), "reason": reason}
        return value


class Passage(Frozen):
    """One passage (chunk) of a source."""

    chunk_id: str = Field(min_length=1)
    """`<doc_id>#<index>`, unique within the record: a page's chunks count from 0 within the page, texts that the
    payload carries from `snippet0` or `cited_text0`."""
    doc_id: str = Field(min_length=1)
    """16 hex digits of sha256 of the canonical URL, or the importer's own id."""
    chunk_rank: int = Field(ge=1)
    """Rank among the record's passages, counted from 1."""
    text: str = Field(min_length=1)
    """The passage, unchanged but for a defused `[CTX_SEP]`."""
    title: str = ""
    """Title of its page; empty where unknown."""
    url: str = ""
    """URL of its page; empty where unknown."""
    origin: Origin = "page"
    """Where the text comes from: the page itself, a search snippet, or text that the provider quotes."""


class Provenance(Frozen):
    """Where the answer comes from; annotators never receive it."""

    model_name: str = ""
    """The provider."""
    model_version: str = ""
    """The model that answered."""
    answer_id: str = ""
    """UUID of the answer in CSV v2."""
    narrative_id: str = ""
    """Id of the narrative."""
    narrative_type: str = ""
    """Classification of the narrative."""
    run_id: str = ""
    """Id of the run that asked."""
    arm: str = ""
    """Arm of the study that asked; empty without arms."""
    repeat: str = ""
    """Which repeat of the same question it is, counted from 1; empty where the run does not tell."""
    answer_timestamp: str = ""
    """When the question was put: ISO 8601 with offset."""
    contexts: Literal["", "selected", "supplied"] = ""
    """Where the passages come from: `selected` by citejury from the cited sources, or `supplied` with the record; empty
    where unknown."""


class QueryResponse(Frozen):
    """One canonical record: a query, an answer with its citations as `[n]`, its sources and its passages."""

    record_uuid: str
    """The answer's UUID, or one derived from the content (pipeline/contracts/records.md#ids)."""
    query: str
    """The narrative's text, unchanged."""
    answer: str
    """The answer with its citations in the one form `[n]`; those without a place in it stand in a last line."""
    language: str = "und"
    """ISO 639-1 code of the answer's language; `und` where it cannot be told."""
    sources: tuple[Source, ...] = ()
    """Every source that came with the answer, in order of `n`; `cited` says how."""
    chunks: tuple[Passage, ...] = ()
    """The passages in rank order; empty where nothing of any source is held."""
    context_set: str = ""
    """The passages' texts in rank order, joined by ` [CTX_SEP] `; empty without passages."""
    provenance: Provenance = Provenance()
    """Where the answer comes from."""
    asked: str = ""
    """JSON: what its run asked, by provider the questions that were asked, refused and failed, such as
    `{"claude": [20, 1, 0]}`; empty where that is not known, as of a run that has not come to its end."""


def line_without_place(numbers: Iterable[int]) -> str:
    """The last line that citejury gives an answer: the marks of the sources to which its own text does not refer."""
    return " ".join(f"[{number}]" for number in numbers)


def split_line(record: QueryResponse) -> tuple[str, str]:
    """The answer in its provider's words, and the line that citejury put behind it; empty where there is none.

    Records that do not say how their sources are cited may have such a line, and nobody can tell it from the answer.
    """
    line = line_without_place(source.n for source in record.sources if source.cited in ("shown", "seen"))
    if line and record.answer == line:
        return "", line
    own = record.answer.removesuffix(f"\n\n{line}") if line else record.answer
    return (own, line) if own != record.answer else (own, "")


def defuse_separator(text: str) -> str:
    """The text with `[CTX_SEP]` written `(CTX_SEP)`, so that only ours separate passages."""
    return text.replace("[CTX_SEP]", "(CTX_SEP)")


def join_context(chunks: Iterable[Passage]) -> str:
    return CONTEXT_SEPARATOR.join(chunk.text for chunk in sorted(chunks, key=lambda chunk: chunk.chunk_rank))


def derived_uuid(query: str, answer: str, chunks: Iterable[Passage]) -> str:
    """The id of a record that came without one: uuid5 over query, answer and the passages' ids and texts.

    Every part is preceded by its length, so that no two different records are written alike.
    """
    parts = [query, answer, *(part for chunk in chunks for part in (chunk.chunk_id, chunk.text))]
    return str(uuid5(RECORD_NAMESPACE, "".join(f"{len(part)}:{part}" for part in parts)))


def is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True

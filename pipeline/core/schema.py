"""What the pipeline passes on: narratives in, answers with citations out, and the 20 columns of CSV v2."""

import reprlib
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

ProviderName = Literal["openai", "claude", "gemini", "grok", "perplexity"]
"""The list of the providers, in their fixed order. All else that is known of one is in its module in `providers`."""
PROVIDERS: tuple[ProviderName, ...] = get_args(ProviderName)
RESULTS_OF: ProviderName = "perplexity"
"""The one provider whose search results are in CSV v2: its answers are citations × results rows, by the contract."""

Placement = Literal["marker", "claim", "none"]

ErrorKind = Literal[
    "missing_key",
    "auth",
    "no_permission",
    "unknown_model",
    "quota",
    "rate_limit",
    "server",
    "network",
    "timeout",
    "bad_response",
    "not_recorded",
]
"""Why a provider gave no answer: the kinds of `errors.jsonl`."""


class Frozen(BaseModel):
    """A value at a boundary: it does not change, and a field that it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, protected_namespaces=())


class Narrative(Frozen):
    """One row of the input CSV."""

    narrative_id: str
    """The id as it stands in the file; ids may repeat, each row is asked for itself."""
    narrative_type: str = ""
    """A free classification such as `misinformation`; empty where the file has none."""
    language: str = ""
    """ISO 639-1 code of its language; empty where the file has none."""
    prompt: str
    """The narrative's text, never empty, unchanged."""
    line: int
    """The physical line of the file on which the row begins, counted from 1."""


class Occurrence(Frozen):
    """One place where the provider attached a source to the answer."""

    url: str
    """The cited URL as the provider returned it."""
    title: str = ""
    """The source's title as the provider gives it; empty where there is none."""
    start: int | None = None
    """First code point in the answer's text; None where the provider names no place, or one that does not fit."""
    end: int | None = None
    """The code point after the last one; None together with `start`."""
    placement: Placement = "none"
    """`marker`: the span is the provider's own marker and gives way to `[n]`. `claim`: the span is the sentence that
    the source is for, and `[n]` follows it. `none`: no place is known."""
    cited_text: str = ""
    """Text of the source that the provider quotes for this citation; empty where it quotes none."""
    number: str = ""
    """The number in the provider's own marker that this source is for; empty where it is no number."""
    longer: str = ""
    """The URL with the letters right behind it that may be prose; empty where none are in doubt."""


class SearchResult(Frozen):
    """One result of the provider's own web search, as it lists them."""

    url: str
    """The result's URL; empty for an attached file."""
    title: str = ""
    """The page's title; empty where it is not given."""
    snippet: str = ""
    """An excerpt of the page, whole; empty where it is not given."""


class Answer(Frozen):
    """What one stored payload says, read by its provider's reader."""

    text: str
    """The answer as the provider wrote it, its own citation marks included. Empty for a block."""
    citations: tuple[str, ...] = ()
    """The distinct cited URLs in order of first appearance, as returned."""
    domains: tuple[str, ...] = ()
    """`source_domain` of each citation, same order; empty where the URL has no host."""
    occurrences: tuple[Occurrence, ...] = ()
    """Every place where a source is attached, in order of place; every citation has at least one."""
    retrieved: tuple[str, ...] = ()
    """Those of the citations that the provider lists only as found or looked at, as Grok's list does."""
    search_results: tuple[SearchResult, ...] = ()
    """Results that the search tool listed. Only Perplexity's reach `result_*` of CSV v2."""
    model: str = ""
    """The model that the body names; empty where it names none."""
    stop_reason: str = ""
    """Why the provider stopped, in its own word, such as `end_turn`, `length`, `SAFETY`; empty where not said."""
    unread: dict[str, int] = Field(default_factory=dict)
    """What looks like a citation and is none, counted by name: the provider's own tokens, which were cut from the text;
    attached citations that are no URL; marks that no list resolves; attached sources that the answer's own list
    contradicts; fields that no rule reads."""


class AskOptions(Frozen):
    """What may be asked of a provider's search and model; pipeline/README.md tells which provider takes what."""

    allowed_domains: tuple[str, ...] = ()
    """Search only these sites; empty for all."""
    blocked_domains: tuple[str, ...] = ()
    """Never search these sites."""
    country: str = ""
    """Where the user is: ISO 3166 alpha-2, upper case; empty where it does not matter."""
    recency: Literal["", "day", "week", "month", "year"] = ""
    """How old a page may be; empty for any age."""
    max_uses: int | None = None
    """How many searches an answer may take; None for the provider's own limit."""
    temperature: float | None = None
    """Sampling temperature, sent only to models that take one; None for the provider's own."""
    max_tokens: int = 4096
    """Longest answer in tokens, thinking included."""


class AnswerColumns(Frozen):
    """What CSV v2 says of an answer on each of its rows."""

    narrative_id: str
    """Id of the narrative in the input file."""
    narrative_type: str
    """Classification of the narrative; empty where there is none."""
    narrative_prompt: str
    """The narrative's text."""
    model_name: str
    """The provider's name; `pipeline` in a research run's file."""
    model_version: str
    """The model that answered."""
    answer_id: str
    """UUID of the answer, the same on all of its rows."""
    answer_prompt: str
    """The exact user prompt that was sent."""
    answer_text: str
    """The answer's text as the provider wrote it."""
    answer_raw_json: str
    """The provider's body, whole, as JSON."""
    answer_timestamp: str
    """When the request was made: ISO 8601 with offset."""


class AnswerRow(AnswerColumns):
    """One row of CSV v2: the 20 columns in their order (pipeline/contracts/csv_v2.md#columns)."""

    answer_citation_list: str
    """The distinct cited URLs as a JSON array; `[]` where there are none."""
    source_id: str
    """`{answer_id}_source_{index}`, counted from 0; empty without citation."""
    source_url: str
    """URL of the cited source; empty without citation."""
    source_domain: str
    """Host of the source without `www.`; empty without citation or host."""
    result_id: str
    """`{answer_id}_result_{index}`, counted from 0; Perplexity only."""
    result_url: str
    """URL of the search result; Perplexity only."""
    result_domain: str
    """Host of the search result without `www.`; Perplexity only."""
    result_title: str
    """Title of the search result; Perplexity only."""
    result_snippet: str
    """Excerpt of the search result, uncut; Perplexity only."""
    result_rank: str
    """Rank of the search result, counted from 1; Perplexity only."""


CSV_COLUMNS: tuple[str, ...] = tuple(AnswerRow.model_fields)


class StoredAnswer(AnswerColumns):
    """One answer of a run, before its rows are expanded."""

    citations: tuple[str, ...]
    """The distinct cited URLs in order."""
    domains: tuple[str, ...]
    """`source_domain` of each citation, same order."""
    search_results: tuple[SearchResult, ...] = ()
    """Perplexity's search results; always empty for the others."""


class ErrorLine(Frozen):
    """One call that was not answered: a line of `errors.jsonl`."""

    narrative_id: str
    """Id of the narrative."""
    row: int
    """Its row among the narratives of the file, counted from 1."""
    provider: ProviderName
    """The provider asked."""
    model: str
    """The model asked for; empty where none was named."""
    kind: ErrorKind
    """What went wrong."""
    status: int | None
    """HTTP status of the last attempt; null where there is none."""
    message: str
    """The provider's words without anything secret, or ours."""
    attempts: int
    """How many requests were made; 0 for a payload that is not there."""
    timestamp: str
    """When the call failed: ISO 8601, UTC."""
    repeat: int = 1
    """Which of the row's repeats it is, from 1; left out of the file for the first."""
    arm: str = ""
    """The arm that put it; left out of the file where there is none."""


class Price(Frozen):
    """What a model costs, in one currency for all models; xAI, Perplexity and OpenRouter state theirs in USD."""

    input: float = Field(ge=0)
    """Price of a million input tokens."""
    output: float = Field(ge=0)
    """Price of a million output tokens, thinking included."""
    search: float | None = Field(default=None, ge=0)
    """Price of a thousand web searches, 0 where they cost nothing; null where it is not known."""
    batch: float | None = Field(default=None, ge=0, le=1)
    """Share of the token prices in a batch; null for that which the provider documents of its batches, else all."""
    above: int | None = Field(default=None, ge=0)
    """Tokens of input above which a request costs the two prices below; null where it does not matter."""
    above_input: float = Field(default=0.0, ge=0)
    """Price of a million input tokens of such a request."""
    above_output: float = Field(default=0.0, ge=0)
    """Price of a million output tokens of such a request."""


# Read here: by `packaged_table` the longest chain of imports would be one longer.
_WORDS: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("needed.toml").read_text(encoding="utf-8"))


def what_is_needed(problem: "ErrorDetails") -> str:
    """What pydantic found wrong with a value, which is shown where `problem` has it, for whoever wrote the file."""
    needed = _WORDS["needed"].get(problem["type"], "").format_map(problem.get("ctx", {}))
    if needed and "input" in problem:
        return f"{needed}, and {reprlib.repr(problem['input'])} was found"
    return needed or _WORDS["no_value"].get(problem["type"], problem["msg"])

"""What a research run is asked to do, and the part of it that a resume may not change."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field, ValidationError

from pipeline.core.errors import InputError
from pipeline.core.schema import Frozen
from pipeline.models.asking import SpendLimits
from pipeline.models.structured import Spent
from pipeline.research.artefacts import MAX_SOURCES, checked_run_id, problems
from pipeline.research.contracts import DEFAULT_BASE_URL, DEFAULT_MODEL, MAX_TOPIC, Config, SearchName, Timeouts
from pipeline.research.documents import document_files
from pipeline.research.journal import read_setup
from pipeline.research.layout import CitationForm
from pipeline.research.values import Depth
from pipeline.text.words import detect_language, known_languages

StopReason = Literal["seconds", "tokens", "cost", "fetches"]
"""Why a run ended before it had done all it wanted: the limit that it reached. Its last round is none."""
EXTRACTIVE = "extractive"
_KANA = re.compile(r"[\u3040-\u30ff]")


class Effort(NamedTuple):
    """What a depth stands for: the most rounds, the results wanted of each query, the most sources that are read."""

    rounds: int
    k: int
    budget: int


# Source: pipeline/contracts/research.md#decisions.
_EFFORTS: dict[Depth, Effort] = {"brief": Effort(1, 5, 5), "medium": Effort(3, 10, 10), "deep": Effort(5, 10, 25)}


class Limits(NamedTuple):
    """Where gathering stops; the report is then written of what is there. None is no limit."""

    seconds: float | None = None
    tokens: int | None = None
    cost: float | None = None  # What the model's answers cost as far as it is known, in USD

    @property
    def spend(self) -> SpendLimits:
        return SpendLimits(self.tokens, self.cost)


class Budget(NamedTuple):
    limits: Limits
    seconds: Callable[[], float]
    spent: Callable[[], Spent]

    def used_up(self) -> StopReason | None:
        if self.limits.seconds is not None and self.seconds() >= self.limits.seconds:
            return "seconds"
        return self.limits.spend.reached(self.spent())


class ResearchOptions(Frozen):
    """One run. What is None or empty follows from depth and topic."""

    topic: str
    """What is to be researched; may be empty where the gate can ask."""
    run_id: str = ""
    """Name of the run and of its folder; empty for one made of topic and time."""
    runs_dir: Path = Path("runs")
    """Folder of all runs and of the store that they share."""
    depth: Depth = "medium"
    """How far to go."""
    budget: int | None = Field(default=None, ge=1)
    """The most sources that are read; None for the depth's."""
    k: int | None = Field(default=None, ge=3, le=10)
    """Results wanted of each query; None for the depth's."""
    max_rounds: int | None = Field(default=None, ge=1, le=10)
    """The most rounds; None for the depth's."""
    per_domain_cap: int = Field(default=3, ge=1, le=10)
    """The most pages of one site."""
    lang: str = ""
    """Language of the report, ISO 639-1; empty for the topic's."""
    workers: int = Field(default=5, ge=1, le=100)
    """Queries and pages at once; changes nothing in what comes of the run."""
    search: SearchName = "duckduckgo"
    """Who is asked for pages."""
    model: str = DEFAULT_MODEL
    """The model, or `extractive` for none."""
    base_url: str = DEFAULT_BASE_URL
    """Address of the model's server."""
    documents: Path | None = None
    """Folder of documents that are searched instead of the web; None where there is none."""
    offline: bool = False
    """Whether pages come from the store alone."""
    enable_cache: bool = True
    """Whether pages that the store held before the run are read from there; else each is fetched anew, once a run."""
    fetch_timeout_s: int = Field(default=60, ge=5, le=60)
    """How long one page may take with all tries for it, in seconds; waiting for its turn is not counted."""
    citations: CitationForm = "c"
    """How `report.md` cites: `c` for `(C001)`, `n` for `[1]`."""
    strict_gate: bool = False
    """Whether the gate takes the origin's rules by the letter."""
    limits: Limits = Limits()
    """Where gathering stops; may differ at a resume."""

    def effort(self, depth: Depth) -> Effort:
        usual = _EFFORTS[depth]
        return Effort(self.max_rounds or usual.rounds, self.k or usual.k, self.budget or usual.budget)

    def config(self, depth: Depth) -> Config:
        effort = self.effort(depth)
        return Config(
            search_provider=self.search,
            k=effort.k,
            max_rounds=effort.rounds,
            per_domain_cap=self.per_domain_cap,
            model=self.model,
            base_url=self.base_url,
            timeouts=Timeouts(fetch_timeout_s=self.fetch_timeout_s),
            enable_cache=self.enable_cache,
        )

    def setup(self) -> dict[str, Any]:
        """All that decides what the run finds, as JSON values; a resume may not change any of it."""
        return self.model_dump(mode="json", exclude={"run_id", "runs_dir", "workers", "strict_gate", "limits"})


def checked_options(options: ResearchOptions) -> ResearchOptions:
    if options.offline and not options.enable_cache:
        raise InputError(
            "`--offline` reads pages from the store alone, and `--no-cache` none of them from there; leave one out."
        )
    if len(options.topic) > MAX_TOPIC:
        raise InputError(
            f"The topic has {len(options.topic)} characters, more than the {MAX_TOPIC} that one may have; shorten it."
        )
    if options.budget is not None and options.budget > MAX_SOURCES:
        raise InputError(
            f"A budget of {options.budget} sources is more than a report can cite (BUDGET_EXCEEDED); name at most "
            f"{MAX_SOURCES}."
        )
    if options.run_id:
        checked_run_id(options.run_id)
    return options


def named_options(named: Mapping[str, Any], runs_dir: Path, limits: Limits) -> ResearchOptions:
    """The options of which these are named: a run that was begun adds what it was begun with, a new one gets its id."""
    named = {**named, "lang": named["lang"].lower()} if named.get("lang") else named
    run_id = named.get("run_id", "")
    held = read_setup(runs_dir / checked_run_id(run_id)) if run_id else None
    wanted = {"topic": "", **(held or {}), **named}
    if named.get("documents") and "search" not in named:
        wanted["search"] = "local"
    if named.get("documents") and held is None:
        document_files(named["documents"])
    if named.get("lang") and held is None and named["lang"] not in known_languages():
        advice = f"Name one by its ISO 639-1 code: {', '.join(known_languages())}."
        raise InputError(f"The language {named['lang']!r} is none of those that pages are told apart by. {advice}")
    wanted["run_id"] = run_id or new_run_id(wanted["topic"], runs_dir)
    try:
        return ResearchOptions(**wanted, runs_dir=runs_dir, limits=limits)
    except ValidationError as error:
        raise InputError(f"An option cannot be used: {'; '.join(problems(error))}.") from error


def new_run_id(topic: str, runs_dir: Path, now: datetime | None = None) -> str:
    """A name that no run in the folder has: the topic's first 20 characters and the time."""
    moment = (now or datetime.now(UTC)).strftime("%Y%m%d_%H%M%S")
    # Letters of every script are letters: a Chinese topic keeps its name.
    start = re.sub(r"[^\w-]", "_", topic.strip()[:20]).strip("_-") or "run"
    name = f"{start}_{moment}"
    taken = 2
    while (runs_dir / name).exists():
        name = f"{start}_{moment}_{taken}"
        taken += 1
    return name


def topic_language(topic: str) -> str:
    """ISO 639-1 code of the topic's language, `en` where it is too short to tell; kana and Han tell at any length."""
    if _KANA.search(topic):
        return "ja"
    told = detect_language(topic)
    return told if told != "und" else "zh" if re.search(r"[\u3400-\u9fff]", topic) else "en"

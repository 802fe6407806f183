"""The stage cache: the run's figures, and its row in the store beside the pages that it read."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pipeline.models.spent import Spent
from pipeline.research.contracts import Metrics, Report, contract_json
from pipeline.sources.choosing.tokens import ENCODING
from pipeline.sources.store.store import StoredEvent, StoredRun
from pipeline.text.urls import site_key
from pipeline.verifying.scores import Scores
from pipeline.verifying.values import Page


class PagesCounted(NamedTuple):
    """Where a run's pages came from."""

    cache_hits: int
    """Pages that the store had before the run asked for them."""
    cache_misses: int
    """Pages that the run asked the web for."""


def count_pages(trace: Iterable[StoredEvent]) -> PagesCounted:
    """Where the pages came from, by the run's trace: one that an earlier start of the run fetched was fetched."""
    asked = [event.payload for event in trace if event.kind == "fetch_result"]
    fetched = {payload["url"] for payload in asked if not payload.get("cached")}
    held = {payload["url"] for payload in asked if payload.get("cached")}
    return PagesCounted(len(held - fetched), len(fetched))


class Work(NamedTuple):
    """What a run took."""

    spent: Spent
    """What the model's answers took."""
    seconds: float
    """Seconds of work, all starts together."""
    rounds: int
    """Rounds from queries to checked claims."""


def run_metrics(report: Report, pages: Sequence[Page], counted: PagesCounted, scores: Scores, work: Work) -> Metrics:
    """The run's figures.

    Sites are counted where the pages came from in the end: a redirected page belongs to the site that answered.
    """
    sites = {page.url: page.site for page in pages}
    cited = [reference.url for reference in report.references]
    return Metrics(
        duration_s=round(work.seconds, 3),
        tokens_in=work.spent.tokens_in,
        tokens_out=work.spent.tokens_out,
        cost_est=work.spent.cost,
        sources_count=len(cited),
        domain_diversity=len({sites.get(url) or site_key(url) for url in cited}),
        cache_hits=counted.cache_hits,
        cache_misses=counted.cache_misses,
        tokenizer=ENCODING if pages else None,
        rounds=work.rounds,
        citation_recall=scores.recall,
        citation_precision=scores.precision,
        citation_accuracy=scores.accuracy,
        effective_citations=scores.effective if scores.read else None,
        stop_reason=report.stop_reason,
    )


def stored_run(run_id: str, created_at: str, markdown: str, report: Report, metrics: Metrics) -> StoredRun:
    """The run as the store's table `runs` has it."""
    return StoredRun(
        id=run_id,
        topic=report.topic,
        created_at=created_at,
        status="finished",
        report_md=markdown,
        report_json=contract_json(report),
        metrics=contract_json(metrics),
    )

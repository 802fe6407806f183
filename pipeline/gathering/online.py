"""The part of `pipeline sources` that asks the web: targets of redirects, then the pages."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import httpx

from pipeline.asking.run_folder import CITATIONS, csv_file
from pipeline.gathering.gather import Gathered, Report, gather_pages, missing_pages
from pipeline.sources.fetching.fetch import Fetcher, FetchPolicy, host_of
from pipeline.sources.reading.extractor import Extractor
from pipeline.sources.store.store import Store

Tell = Callable[[str], None]


class Online(NamedTuple):
    """How the web is asked."""

    client: Callable[[], httpx.AsyncClient]
    """Makes the client, a guarded one."""
    policy: FetchPolicy = FetchPolicy()
    refresh: bool = False
    """Whether pages that are held are asked for again."""


def fetch_missing(
    store: Store, keys: Sequence[str], online: Online, run_id: str, report: Report, begin: Callable[[int], None]
) -> Gathered:
    """What came of fetching the pages that the store lacks; `begin` hears how many, `report` of each."""
    wanted = list(missing_pages(keys, store, online.refresh))
    begin(len(wanted))
    if not wanted:
        return Gathered()
    silent_before = {host_of(page.url) for page in wanted if page.silent}

    async def fetch() -> Gathered:
        async with (
            online.client() as client,
            Fetcher(client, online.policy, silent_before) as fetcher,
            Extractor() as extractor,
        ):
            return await gather_pages(wanted, fetcher, extractor, store, report, run_id)

    return asyncio.run(fetch())


def look_up_targets(run: Path, online: Online, tell: Tell) -> None:
    """Add the targets of Gemini's redirects to the run's `citations.jsonl`, as far as they are missing and found."""
    if not csv_file(run, "gemini").is_file() or not (run / CITATIONS).is_file():
        return
    from pipeline.asking.live import look_up_redirects

    asyncio.run(look_up_redirects(run, online.client, tell))

"""Whether an archive of the web has ever seen a page that is gone, by the page's TimeMap.

Source: https://www.rfc-editor.org/rfc/rfc7089#section-5, read 2026-11. The Wayback Machine's availability API is not
asked: it also says of archived pages that there is nothing (https://github.com/akamhy/waybackpy/issues/154).
"""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from pipeline.records.causes import Archived
from pipeline.sources.exchange import SUCCESS, Exchange

if TYPE_CHECKING:
    from pipeline.sources.fetch import Fetcher

WAYBACK = "https://web.archive.org/web/timemap/link/"  # What a page's URL is put behind for its TimeMap
_HELD = "https://example.com/"
"""What every archive has; one that has not is none, or not one that a page's absence says anything in."""
_ACCEPT = "application/link-format,text/plain;q=0.5,*/*;q=0.1"
_BEGINNING = 65_536  # the first mementos come first
_AT_ONCE = 50
_MEMENTO = re.compile(r'\brel\s*=\s*"?[^";,<>]*\bmemento\b', re.IGNORECASE)
_ORIGINAL = re.compile(r'\brel\s*=\s*"?[^";,<>]*\boriginal\b', re.IGNORECASE)
_MORE = re.compile(r'\brel\s*=\s*"?timemap\b', re.IGNORECASE)


async def look_up(urls: Sequence[str], archive: str, fetcher: "Fetcher") -> AsyncIterator[tuple[str, Archived, str]]:
    """What the archive says of each page, in their order: `unknown`, and why, where it gives no clear answer."""

    async def ask(url: str) -> tuple[Archived, str]:
        came = await fetcher.look(f"{archive}{url}", _ACCEPT, _BEGINNING)
        said = read_timemap(came)
        is_answer = came.status in (*SUCCESS, 404)
        return said, came.detail or ("it sent no TimeMap" if is_answer else f"it answered with status {came.status}")

    is_archive: bool | None = None
    for begin in range(0, len(urls), _AT_ONCE):
        some = urls[begin : begin + _AT_ONCE]
        for url, (said, why) in zip(some, await asyncio.gather(*map(ask, some)), strict=True):
            if said == "never" and is_archive is None:
                is_archive = (await ask(_HELD))[0] == "seen"
            if said == "never" and not is_archive:
                said, why = "unknown", f"it does not have {_HELD} either, so it may be no archive"
            yield url, said, why if said == "unknown" else ""


def read_timemap(came: Exchange) -> Archived:
    """What the response to a question for a TimeMap says of the page."""
    if came.reason or came.status not in (*SUCCESS, 404):
        return "unknown"
    text = came.body.decode("utf-8", "replace").strip()
    if _MEMENTO.search(text):
        return "seen"
    if text and (not _ORIGINAL.search(text) or _MORE.search(text)):  # no TimeMap, or only where further ones are
        return "unknown"
    return "never"

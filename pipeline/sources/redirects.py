"""Where Google's grounding redirects lead: asked once, soon after the answer, since the links expire after weeks.

A target is kept beside the cited URL as `resolved_url` in `citations.jsonl`; nobody visits it here.

Source: https://ai.google.dev/gemini-api/docs/google-search, `groundingChunks[].web.uri`.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import httpx

from pipeline.errors import InputError
from pipeline.recording.run import read_citations, write_resolved
from pipeline.sources.guard import web_target
from pipeline.text.urls import is_grounding_redirect

_CONCURRENCY = 8
_SECONDS = 20.0

# Where so many in a row cannot be reached, the network is away, and each further one would only cost its timeout.
_GIVE_UP_AFTER = 10
_UNREACHABLE = frozenset({"network", "timeout"})


class _Settled(NamedTuple):
    """Where one redirect leads; the target is empty where that is not known, and then there is a reason."""

    target: str
    reason: str = ""


class Redirects(NamedTuple):
    """The targets of redirects by their URL, in no order; how many of the others have which reason.

    Reasons: `refused` (by the guard), `network`, `timeout`, `bad_target` (a redirect again), `status_<n>` (an answer
    that leads nowhere), `not_tried` (too many before it could not be reached).
    """

    targets: dict[str, str]
    reasons: dict[str, int]


async def resolve_citations(path: Path, client: httpx.AsyncClient) -> Redirects:
    """The redirects of a `citations.jsonl` that had no `resolved_url`; the file has their targets afterwards.

    It is written anew only where there is something to add. A failure is counted and fails nothing.

    Raises:
        InputError: a line is none of such a file.
    """
    wanted = {line["url"] for line in read_citations(path) if not line.get("resolved_url")}
    redirects = await resolve_redirects(sorted(wanted), client)
    if redirects.targets:
        write_resolved(path, redirects.targets)
    return redirects


async def resolve_redirects(
    urls: Iterable[str], client: httpx.AsyncClient, concurrency: int = _CONCURRENCY
) -> Redirects:
    """The targets of those URLs that are grounding redirects; the others are left alone, a repeated one asked once.

    `client` is a guarded one, so that a name that leads to a private address is refused.
    """
    settled: dict[str, _Settled] = {}
    waiting = iter(dict.fromkeys(url for url in urls if is_grounding_redirect(url)))
    unreachable = 0

    async def work() -> None:
        nonlocal unreachable
        for url in waiting:
            away = unreachable >= _GIVE_UP_AFTER
            settled[url] = _Settled("", "not_tried") if away else await _settle_redirect(url, client)
            if not away:
                unreachable = unreachable + 1 if settled[url].reason in _UNREACHABLE else 0

    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(work())
    reasons = Counter(each.reason for each in settled.values() if each.reason)
    targets = {url: each.target for url, each in settled.items() if each.target}
    return Redirects(targets, dict(sorted(reasons.items())))


async def _settle_redirect(url: str, client: httpx.AsyncClient) -> _Settled:
    """Where one redirect leads, by one HEAD; by one GET where HEAD is answered with something else."""
    settled = _Settled("", "network")
    for method in ("HEAD", "GET"):
        try:
            async with asyncio.timeout(_SECONDS):
                settled = await _ask_target(method, url, client)
        except InputError:
            return _Settled("", "refused")
        except (TimeoutError, httpx.TimeoutException):
            return _Settled("", "timeout")
        except httpx.HTTPError:
            settled = _Settled("", "network")
        if settled.target or settled.reason == "bad_target":
            break
    return settled


async def _ask_target(method: str, url: str, client: httpx.AsyncClient) -> _Settled:
    """What one request says of the target; the body is never read, the target never visited.

    Raises:
        InputError: the guard refuses the URL, or the target is no http(s) URL.
        httpx.HTTPError: the request failed.
    """
    web_target(url)
    response = await client.send(client.build_request(method, url), stream=True, follow_redirects=False)
    await response.aclose()
    if response.next_request is None:
        return _Settled("", f"status_{response.status_code}")
    target = str(response.next_request.url)
    return _Settled("", "bad_target") if is_grounding_redirect(target) else _Settled(target)

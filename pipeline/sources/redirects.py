"""Where Google's grounding redirects lead: asked once, soon after the answer, since the links expire after weeks.

A target is kept beside the cited URL as `resolved_url` in `citations.jsonl`; nobody visits it here.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import httpx

from pipeline.citations.addresses import is_grounding_redirect
from pipeline.core.errors import InputError
from pipeline.core.files import locked_folder
from pipeline.csv.file import answers_file
from pipeline.providers import every_provider
from pipeline.records.citation_form import CITATIONS, read_citations, write_resolved
from pipeline.sources.guard import web_target


class Redirects(NamedTuple):
    """The targets of redirects by their URL; how many of the others have which reason.

    Reasons: `refused` (by the guard), `network`, `timeout`, `bad_target` (a redirect again), `status_<n>`, `not_tried`.
    """

    targets: dict[str, str]
    reasons: dict[str, int]


async def resolve_citations(path: Path, client: httpx.AsyncClient) -> Redirects:
    """The redirects of a `citations.jsonl` that had no `resolved_url`; the file has their targets afterwards.

    A failure is counted and fails nothing; InputError where a line is none of such a file.
    """
    wanted = {line["url"] for line in read_citations(path) if not line.get("resolved_url")}
    redirects = await resolve_redirects(sorted(wanted), client)
    if redirects.targets:
        write_resolved(path, redirects.targets)
    return redirects


async def resolve_redirects(urls: Iterable[str], client: httpx.AsyncClient, concurrency: int = 8) -> Redirects:
    """The targets of those URLs that are grounding redirects, each asked once by a guarded client."""
    targets: dict[str, str] = {}
    reasons: Counter[str] = Counter()
    waiting = iter(dict.fromkeys(url for url in urls if is_grounding_redirect(url)))
    unreachable = 0

    async def work() -> None:
        nonlocal unreachable
        for url in waiting:
            if unreachable >= 10:  # the network is away, and each further one would only cost its timeout
                reasons["not_tried"] += 1
                continue
            target, reason = await _target_of(url, client)
            unreachable = unreachable + 1 if reason in ("network", "timeout") else 0
            if reason:
                reasons[reason] += 1
            else:
                targets[url] = target

    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(work())
    return Redirects(targets, dict(sorted(reasons.items())))


async def _target_of(url: str, client: httpx.AsyncClient) -> tuple[str, str]:
    """Where one redirect leads, by one HEAD, else one GET; empty with a reason. The target is never visited."""
    reason = ""
    for method in ("HEAD", "GET"):
        try:
            async with asyncio.timeout(20.0):
                web_target(url)
                response = await client.send(client.build_request(method, url), stream=True, follow_redirects=False)
                await response.aclose()
        except InputError:
            return "", "refused"
        except (TimeoutError, httpx.TimeoutException):
            return "", "timeout"
        except httpx.HTTPError:
            reason = "network"
            continue
        if response.next_request is not None:
            target = str(response.next_request.url)
            return ("", "bad_target") if is_grounding_redirect(target) else (target, "")
        reason = f"status_{response.status_code}"
    return "", reason


async def look_up_redirects(
    out: Path, redirect_client: Callable[[], httpx.AsyncClient], report: Callable[[str], None]
) -> None:
    """Look up the targets of redirects that a run cites, note them in `citations.jsonl`, and report how many it found.

    A run without answers of a provider that cites such links is left alone, and nobody is asked.
    """
    citing = [provider.name for provider in every_provider() if provider.cites_redirects]
    if not (out / CITATIONS).is_file() or not any(answers_file(out, name).is_file() for name in citing):
        return
    with locked_folder(out):
        async with redirect_client() as client:
            found = await resolve_citations(out / CITATIONS, client)
    missing = ", ".join(f"{count} {reason}" for reason, count in found.reasons.items())
    if found.targets or missing:
        rest = f"; not found: {missing}, tried again at the next start" if missing else ""
        report(f"{', '.join(citing)}: {len(found.targets)} targets of redirect links found{rest}.")

"""From a cited URL to the bytes behind it: politely, within limits, and with a reason whatever the web does."""

import asyncio
import hashlib
import random
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple, Self

import httpx

from pipeline.citations.addresses import canonical_url, reason_without_page
from pipeline.core.errors import InputError
from pipeline.providers.http.failure import time_there, wait_seconds
from pipeline.sources import exchange as http
from pipeline.sources.guard import web_target
from pipeline.sources.politeness import MAX_BYTES as ROBOTS_BYTES
from pipeline.sources.politeness import UNREACHABLE, HostQueue, Network, Rules, read_rules

_REASONS = {401: "login", 402: "paywall", 407: "login"}
_PDF = "application/pdf"
_PDF_TYPES = ("application/x-pdf", *http.UNTOLD, *http.DOWNLOADS)


class Fetched(NamedTuple):
    url: str  # The canonical URL that was asked for; as it was given where it is none
    final_url: str
    status: int | None = None
    content_type: str = ""
    charset: str = ""  # the server's word for it; empty for a PDF and where there is no body
    body: bytes = b""
    sha256: str = ""
    etag: str = ""
    last_modified: str = ""
    fetched_at: str = ""
    seconds: float = 0.0  # How long the requests took together, waits between them left out
    reason: str = "page"  # `page` where there is a body to read, or where it has not changed; otherwise a `Reason`
    detail: str = ""
    not_modified: bool = False  # The page is still what `etag` or `last_modified` stand for; then there is no body
    leads_back: bool = False
    """The page leads by itself to where its reader has been, so that only what it says itself is to be read."""


def _to_fetched(came: http.Exchange, start: Fetched, conditional: bool) -> Fetched:
    etag, modified = (_header_value(came.headers.get(name, "")) for name in ("etag", "last-modified"))
    end = start._replace(status=came.status, content_type=http.media_type(came.headers))
    if came.reason:
        return end._replace(reason=came.reason, detail=came.detail)
    if came.status == 304 and conditional:
        return end._replace(not_modified=True, etag=etag, last_modified=modified)
    if came.status not in http.SUCCESS:
        # https://developers.cloudflare.com/cloudflare-challenges/challenge-types/challenge-pages/detect-response/
        if came.headers.get("cf-mitigated", "") == "challenge":
            return end._replace(reason="captcha", detail=f"the site wants to see a person (status {came.status})")
        reason = _REASONS.get(came.status or 0, f"status_{came.status or 0}")
        return end._replace(reason=reason, detail=f"the server answered with status {came.status or 0}")
    end = end._replace(leads_back=came.leads_back, etag=etag, last_modified=modified)
    if not came.body:
        return end._replace(reason="empty", detail="the server sent an empty page")
    media = _media_type_of(end.content_type, came.body)
    if media in _PDF_TYPES:  # and yet it is none
        return end._replace(reason="not_text", detail=f"it is {media!r}" if media else "it is no text")
    charset = "" if media == _PDF else http.named_charset(came.headers)
    digest = hashlib.sha256(came.body).hexdigest()
    return end._replace(content_type=media, charset=charset, body=came.body, sha256=digest)


def _media_type_of(media: str, body: bytes) -> str:
    """The media type, by the first bytes where the server names none that says anything."""
    beginning = body[:1024].lstrip(b"\xef\xbb\xbf \t\r\n\f")
    if beginning.startswith(b"%PDF-"):
        return _PDF
    if media in (*http.UNTOLD, *http.DOWNLOADS) and beginning[:14].lower().startswith((b"<!doctype html", b"<html")):
        return "text/html"
    if media == "" or "/" not in media:
        if b"\0" in body[:512] and not body.startswith((b"\xff\xfe", b"\xfe\xff")):
            return ""
        return "text/html" if beginning.startswith(b"<") else "text/plain"
    return media


def _header_value(text: str) -> str:
    """The text where a header can carry it, otherwise nothing: it comes from a server, and goes to one."""
    return text if len(text) <= 1000 and text.isascii() and text.isprintable() else ""


# https://fetch.spec.whatwg.org/#http-redirect-fetch allows 20; what is cited needs a few.
_MAX_REDIRECTS = 10
_LONGEST_DELAY = 30.0

_ACCEPT = "text/html,application/xhtml+xml,application/pdf,text/plain;q=0.9,*/*;q=0.5"
_NO_HOST = ("no_such_host", "no_host_twice")
_RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524})


class FetchPolicy(NamedTuple):
    max_bytes: int = 10_000_000  # A body is read up to so many bytes, packed or unpacked
    max_seconds: float = 60.0  # One URL's requests take so long together; waiting for a turn is not counted
    per_host: int = 2
    delay: float = 1.0
    """Seconds between the beginnings of two requests to one host; a longer `Crawl-delay` wins, up to 30 s."""
    retries: int = 2
    robots: bool = True
    concurrency: int = 32  # Requests at a time, to all hosts together; no more than the client has connections
    backoff: float = 1.0  # Seconds before the first retry where the server names none; doubled for each further one


@dataclass
class _TimeBudget:
    seconds: float
    spent: float = 0.0


class Fetcher:
    """Fetches pages for one session; an asynchronous context, in which robots.txt is asked for once a site."""

    def __init__(
        self, client: httpx.AsyncClient, policy: FetchPolicy | None = None, silent_before: Collection[str] = ()
    ) -> None:
        """`client` is a guarded one; whoever made it closes it.

        That hosts, as `host_of` names them, are silent again that were `silent_before` says nothing about the network.
        """
        self.client = client
        self.policy = FetchPolicy() if policy is None else policy
        self.everyone = asyncio.Semaphore(self.policy.concurrency)
        self.hosts: dict[str, HostQueue] = {}
        self.robots: dict[str, asyncio.Task[Rules | http.Exchange]] = {}
        self.network = Network(silent_before)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for asked in self.robots.values():
            asked.cancel()
        await asyncio.gather(*self.robots.values(), return_exceptions=True)

    async def fetch(self, url: str, etag: str = "", last_modified: str = "") -> Fetched:
        """What became of the URL; `etag` and `last_modified` of an earlier time ask for a body only if it changed.

        Both must come from a response of this very URL, not from where it redirected to. Nothing that the web does is
        an error.
        """
        asked = url
        try:
            asked = canonical_url(url)
            web_target(asked)
        except InputError as error:
            return Fetched(url, url, fetched_at=_moment(), reason=reason_without_page(asked), detail=str(error))
        conditions = {"If-None-Match": _header_value(etag), "If-Modified-Since": _header_value(last_modified)}
        budget = _TimeBudget(self.policy.max_seconds)
        sent = {name: value for name, value in conditions.items() if value}
        came, final_url = await self.follow(asked, sent, budget)
        if final_url != asked and came.reason in _NO_HOST:  # the cited page is there, and says where it went
            came = came._replace(reason="network", detail=f"it redirects to {host_of(final_url)!r}, and {came.detail}")
        start = Fetched(asked, final_url, fetched_at=_moment(), seconds=budget.spent)
        return _to_fetched(came, start, conditional=bool(sent))

    async def look(self, url: str, accept: str, most: int) -> http.Exchange:
        """What comes of asking for data of any type, whose first `most` bytes are enough."""
        came, _ = await self.follow(url, {"Accept": accept}, _TimeBudget(self.policy.max_seconds), most)
        return came

    async def follow(
        self, url: str, conditions: Mapping[str, str], budget: _TimeBudget, beginning: int = 0
    ) -> tuple[http.Exchange, str]:
        """What came at the end of the redirects, and the URL of it; each of them is judged as the first one is.

        A page that leads its reader elsewhere by itself is a redirect too, but for one that leads in a circle: that one
        shows what it has.
        """
        seen: list[str] = []
        headers = {"Accept": _ACCEPT, **conditions}
        came = http.Exchange()
        while len(seen) <= _MAX_REDIRECTS:
            closed = await self.closed(url)
            if closed is not None:
                return closed, url
            same_host = bool(seen) and host_of(seen[-1]) == host_of(url)
            came = await self.ask(url, headers, budget, beginning, follows=same_host)
            target = came.location or http.forwarding_target(came, url)
            if not target or (not came.location and target in seen):
                return came._replace(leads_back=bool(target) or http.leads_to_itself(came, url)), url
            seen.append(url)
            url, headers = target, {"Accept": _ACCEPT}
            if url in seen:
                words = "its redirects lead round in a circle, as those of sites do that want a cookie"
                return http.Exchange(came.status, reason="redirects", detail=words), url
        return http.Exchange(came.status, reason="redirects", detail=f"more than {_MAX_REDIRECTS} redirects"), url

    async def closed(self, url: str) -> http.Exchange | None:
        """What comes of a URL that robots.txt keeps us from; None where it does not."""
        if not self.policy.robots:
            return None
        parsed = httpx.URL(url)
        site = f"{parsed.scheme}://{parsed.netloc.decode('ascii')}"
        if site not in self.robots:
            self.robots[site] = asyncio.create_task(self.read_robots(site))
        # Others wait for the same file, so that one who leaves does not take it away.
        said = await asyncio.shield(self.robots[site])
        if isinstance(said, http.Exchange):
            return said
        if said.allow(parsed.raw_path.decode("ascii")):
            return None
        return http.Exchange(reason="robots", detail=f"robots.txt of {parsed.host} closes it to us")

    async def read_robots(self, site: str) -> Rules | http.Exchange:
        """The rules of a site, or why nothing of it may be asked for; a longer delay is noted for its host."""
        url = f"{site}/robots.txt"
        budget = _TimeBudget(min(20.0, self.policy.max_seconds))
        for hop in range(6):  # RFC 9309 2.3.1.2 asks for at least five redirects
            came = await self.ask(url, {"Accept": "text/plain,*/*;q=0.5"}, budget, ROBOTS_BYTES, follows=hop > 0)
            if not came.location:
                said = await _judge_robots(came, site, first=hop == 0)
                if isinstance(said, Rules):
                    queue = self.queue(site)
                    queue.delay = max(queue.delay, min(said.delay, _LONGEST_DELAY))
                return said
            url = came.location
        return Rules()  # RFC 9309 2.3.1.2: as if there were none

    async def ask(
        self, url: str, headers: Mapping[str, str], budget: _TimeBudget, beginning: int = 0, follows: bool = False
    ) -> http.Exchange:
        queue = self.queue(url)
        limit = beginning or self.policy.max_bytes
        unfound = 0
        for attempt in range(self.policy.retries + 1):
            async with queue.turn(self.everyone, follows and not attempt):
                given_up = queue.given_up()
                if given_up is not None:
                    return given_up
                left = budget.seconds - budget.spent
                limits = http.RequestLimits(limit, left, headers, beginning=bool(beginning))
                came = await http.exchange(self.client, url, limits)
            budget.spent += came.seconds
            queue.reached = queue.reached or came.reached
            if came.reached:
                self.network.reach(host_of(url))
            elif came.reason in UNREACHABLE and not queue.reached:
                self.network.miss(host_of(url), came.reason)
            unfound += came.reason == "no_such_host"
            wait = None if unfound > 1 else _retry_wait(came, attempt, self.policy.backoff, time.time())
            if wait is None:
                break
            queue.pause(min(wait, _LONGEST_DELAY))
            if wait > _LONGEST_DELAY or budget.spent >= budget.seconds:
                break
        if unfound > 1:
            came = came._replace(reason="no_host_twice", detail=f"{came.detail}, looked up twice")
        queue.learn(came)
        return came

    def queue(self, url: str) -> HostQueue:
        host = host_of(url)
        if host not in self.hosts:
            self.hosts[host] = HostQueue(self.policy.per_host, self.policy.delay)
        return self.hosts[host]


async def _judge_robots(came: http.Exchange, site: str, first: bool) -> Rules | http.Exchange:
    """RFC 9309 2.3.1: 4xx opens all, 5xx and silence close all for now. No redirect led to the `first`."""
    if not came.reason and came.status is not None and came.status < 500:
        # Large files take a while to read, in which others go on.
        return await asyncio.to_thread(read_rules, came.body) if came.body else Rules()
    if first and came.reason in (*UNREACHABLE, "refused"):
        return http.Exchange(reason=came.reason, detail=came.detail)
    why = came.detail if came.reason else f"status {came.status}"
    reason = "robots" if came.reason else f"status_{came.status}"  # one that may pass, and is asked about again
    if came.reason in (*UNREACHABLE, "refused"):  # where a redirect leads, so that the site itself is there
        reason = "network" if came.reason in _NO_HOST else came.reason
    return http.Exchange(reason=reason, detail=f"robots.txt of {site} cannot be had now: {why}")


def _retry_wait(came: http.Exchange, attempt: int, backoff: float, now: float) -> float | None:
    if came.reason not in ("network", "no_such_host") and came.status not in _RETRIED:
        return None
    named = wait_seconds(came.headers.get("retry-after", ""), time_there(came.headers, now))
    return named if named is not None else backoff * 2.0**attempt * random.uniform(0.5, 1.0)


def host_of(url: str) -> str:
    return httpx.URL(url).host


def _moment() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")

"""The only HTTP to other people's APIs: a request out, its answer back, with retries, limits and a hidden key."""

import asyncio
import math
import random
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from importlib.metadata import version
from typing import Any, NamedTuple, Self

import httpx

from pipeline.core.errors import ProviderError
from pipeline.core.terminal import counted
from pipeline.providers.http import transfer
from pipeline.providers.http.failure import Decision, allowance, decide, ends_the_provider, redact, unreadable_error
from pipeline.providers.http.pace import NOTHING_SAID, Allowance, Pace
from pipeline.providers.http.request import Endpoint, ProviderRequest, encode_body, load_body

_SUCCESSES = range(200, 300)
_REDIRECTS = range(300, 400)


class RetryPolicy(NamedTuple):
    """`attempts` are the tries for each answer; `total_seconds` bounds sending and waiting after failures together.

    Rate limits and overload count for neither: they are waited out, until nothing was let through for
    `patience_seconds`. `read_seconds` are the silence before an answer or within it, `backoff_seconds` the unit of
    waits that nobody named.
    """

    attempts: int = 2
    total_seconds: float = 600.0
    read_seconds: float = 300.0
    backoff_seconds: float = 1.0
    connect_seconds: float = 30.0
    patience_seconds: float = 900.0


class Response(NamedTuple):
    """An answer: its status, its body as it was sent, the JSON value of that, and how many requests it took.

    Of a client that `keeps_unread`, `body` is None where it is no JSON; `fault` says why the text is not all of it.
    """

    status: int
    text: str
    body: Any
    attempts: int
    fault: str = ""


class Outcome(NamedTuple):
    """What one attempt came to, and what its headers leave."""

    status: int = 0
    text: str = ""
    body: Any = None
    failure: ProviderError | None = None
    decision: Decision = Decision("no")
    left: Allowance = NOTHING_SAID
    fault: str = ""


class ApiClient:
    """One API that is asked over HTTP; use it as an asynchronous context, or `close` its connections."""

    def __init__(
        self,
        endpoint: Endpoint,
        policy: RetryPolicy | None = None,
        concurrency: int = 8,
        check: Callable[[Any], object] = lambda body: None,
        keeps_unread: bool = False,
        waits: Callable[[float], None] = lambda seconds: None,
        ends: Callable[[ProviderError, int | None], bool] = ends_the_provider,
    ) -> None:
        """`check` raises ProviderError for a body that came with a success and is no answer.

        A client that `keeps_unread` gives back a success that cannot be read or is not whole, for it is paid for;
        others ask again or raise. `waits` hears the seconds of a wait for a limit, about once a second; `ends` says of
        a failure and its status whether nothing more is to be asked. SettingsError where the key is nothing that a
        header can carry.
        """
        self.endpoint = endpoint
        self.policy = policy or RetryPolicy()
        self.check = check
        self.keeps_unread = keeps_unread
        self.ends = ends
        self.gate = Gate(max(1, concurrency), self.policy, waits)
        self.headers = {
            "accept": "application/json",
            # Not all that httpx could decode: these two are unpacked here, up to a limit.
            "accept-encoding": "gzip, deflate",
            "user-agent": f"citejury/{version('citejury')}",
            **endpoint.key_headers(),
        }
        # One client for each request under way: httpx searches its whole pool of connections twice for every request,
        # which costs more than the request itself at fifty calls at once.
        self.idle: list[httpx.AsyncClient] = []
        self.trust = _trusted_certificates()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        while self.idle:
            await self.idle.pop().aclose()

    def stop(self) -> int:
        return self.gate.stop()

    async def send(
        self, request: ProviderRequest, sent: int = 0, *, content: bytes = b"", attempts: int | None = None
    ) -> Response:
        """The answer to a request, after as many attempts as it takes and the policy allows, or at most `attempts`.

        An answer that came back is never asked for again, whatever it says. A rate limit is no attempt and is
        waited out, but not where `attempts` are given. `sent` requests were made for the same call before. `content` is
        sent instead of the request's body, whose headers say what it is.

        Raises:
            ProviderError: there is no answer after all attempts, or nothing more is asked of this API. Its `attempts`
                counts the requests that were sent for the call, its `status` is the last one's.
        """
        clock = asyncio.get_running_loop().time
        content = content or (encode_body(request.body) if request.body else b"")
        most = self.policy.attempts if attempts is None else attempts
        attempt, spent = 1, 0.0
        async with self.gate.slots:
            while True:
                started = await self.gate.turn(sent)
                sent += 1
                outcome = await self.attempt(request, content, attempt, self.policy.total_seconds - spent)
                took = clock() - started
                wait = self.learn(outcome, started)
                if outcome.failure is None:
                    return Response(outcome.status, outcome.text, outcome.body, sent, outcome.fault)
                if outcome.decision.kind == "limit" and attempts is None and not self.gate.stopped:
                    continue
                spent += took
                late = spent + wait > self.policy.total_seconds
                if outcome.decision.kind != "transient" or attempt >= most or late or self.gate.stopped:
                    raise _final_error(outcome, sent, outcome.decision.seconds if late else 0.0)
                await self.gate.rest(wait)
                spent += wait
                attempt += 1

    async def lines(self, request: ProviderRequest) -> AsyncGenerator[str, None]:
        """The lines of a response of any length, as they come; the request is made again until the first has come."""
        headers = {**request.headers, **self.headers}
        begun, attempt, sent = False, 1, 0
        while True:
            started = await self.gate.turn(sent)
            sent += 1
            try:
                async with (
                    self.connection() as client,
                    transfer.opened(client, self.endpoint.url(request), headers) as response,
                ):
                    if response.is_success:
                        async for line in transfer.read_lines(response):
                            begun = True
                            yield transfer.hide_key(line, self.endpoint.key)
                        return
                    received = await transfer.read_whole(response)
                outcome = self.judge(received, attempt, time.time())
            except ProviderError as failure:
                decision = Decision("no") if begun else _decide_transport(failure, attempt)
                outcome = Outcome(failure.status or 0, failure=failure, decision=decision)
            wait = self.learn(outcome, started)
            if outcome.decision.kind == "limit" and not self.gate.stopped:
                continue
            if outcome.decision.kind != "transient" or attempt >= self.policy.attempts or self.gate.stopped:
                raise _final_error(outcome, sent, 0.0)
            await self.gate.rest(wait)
            attempt += 1

    async def attempt(self, request: ProviderRequest, content: bytes, attempt: int, seconds: float) -> Outcome:
        """What one request came to within so many seconds; a failure is a value here."""
        headers = {**request.headers, **self.headers}
        if content:
            headers.setdefault("content-type", "application/json")
        try:
            url = self.endpoint.url(request)
            async with (
                asyncio.timeout(max(0.0, seconds)),
                self.connection() as client,
                transfer.opened(client, url, headers, content, request.method) as response,
            ):
                received = await transfer.read_whole(response)
        except TimeoutError:
            within = f"within the {self.policy.total_seconds:.0f} seconds"
            words = f"{self.endpoint.host} did not finish its answer {within}."
            late = ProviderError(words, "timeout", is_lost=True)
            return Outcome(failure=late, decision=_decide_transport(late, attempt))
        except ProviderError as failure:
            return Outcome(failure.status or 0, failure=failure, decision=_decide_transport(failure, attempt))
        return self.judge(received, attempt, time.time())

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[httpx.AsyncClient]:
        """A connection that nobody else uses while the block runs; it is kept for the next request."""
        silence = httpx.Timeout(self.policy.read_seconds, connect=self.policy.connect_seconds, pool=None)
        client = self.idle.pop() if self.idle else transfer.one_connection(self.trust, silence)
        try:
            yield client
        finally:
            self.idle.append(client)

    def judge(self, received: transfer.RawResponse, attempt: int, now: float) -> Outcome:
        status, headers, key = received.status, received.headers, self.endpoint.key
        text = transfer.hide_key(received.text, key)
        left = allowance(headers, now)
        keeps = self.keeps_unread and status in _SUCCESSES
        body: Any = None
        if fault := received.fault:
            if keeps:
                return Outcome(status, text, left=left, fault=str(fault))
            return Outcome(fault.status or 0, failure=fault, decision=_decide_transport(fault, attempt))
        try:
            if status in _REDIRECTS:
                raise _redirect_error(self.endpoint, headers.get(transfer.REDIRECT, ""))
            if status >= 400:
                raise unreadable_error(text, status)
            try:
                body = load_body(text)
            except ProviderError as error:  # something between the provider and us answered, or half is missing
                found = redact(transfer.hide_key(headers.get("content-type", ""), key))[:60] or "no content type"
                words = f"A success came back without a whole JSON body ({found}). {error}"
                raise ProviderError(words, "network") from error
            self.check(body)
        except ProviderError as failure:
            if keeps and failure.kind in ("network", "bad_response"):
                return Outcome(status, text, body, left=left)
            passing = failure.kind == "network"
            decision = decide(None if passing else status, headers, text, attempt, now)
            return Outcome(status, text, body, failure, decision, left)
        except RecursionError:
            deep = ProviderError("The payload is nested too deeply to be a provider's answer.")
            return Outcome(status, text, failure=None if keeps else deep, left=left)
        return Outcome(status, text, body, left=left)

    def learn(self, outcome: Outcome, started: float) -> float:
        """Report the outcome to the gate, and give the seconds to wait before this call's next attempt."""
        decision, failure = outcome.decision, outcome.failure
        # Waits that the provider named get a little more, so that those who were refused together do not come together.
        spread = min(1.0, decision.seconds / 10) if decision.stated else decision.seconds * self.policy.backoff_seconds
        wait = (decision.seconds if decision.stated else 0.0) + random.uniform(0.0, spread)
        if failure and decision.kind == "limit":
            self.gate.refuse(_final_error(outcome, 0, 0.0), started, wait if decision.stated else None)
            return 0.0
        if outcome.status:
            self.gate.pace.answer(asyncio.get_running_loop().time(), outcome.left)
        if failure and self.ends(failure, outcome.status):
            self.gate.close(_final_error(outcome, 0, 0.0))
        return wait


def _decide_transport(failure: ProviderError, attempt: int) -> Decision:
    return decide(None, {}, "", attempt, 0.0) if failure.kind in ("network", "timeout") else Decision("no")


@cache
def _trusted_certificates() -> ssl.SSLContext:
    """Read once, which takes longer than most requests."""
    return httpx.create_ssl_context()


def _redirect_error(endpoint: Endpoint, location: str) -> ProviderError:
    """The key is not carried there."""
    try:
        host = httpx.URL(location).host
    except (httpx.InvalidURL, ValueError):  # of a host `xn--…` that stands for nothing, httpx says ValueError
        host = ""
    # A host's name is read in lower case, also where a key is part of it.
    host = redact(transfer.hide_key(transfer.hide_key(host, endpoint.key), endpoint.key.lower()))[:100]
    target = f"to the host {host!r}" if host else "to another address"
    advice = f"Mend the base URL of {endpoint.name}."
    return ProviderError(f"{endpoint.host} redirects {target}; nothing was sent there. {advice}")


def _final_error(outcome: Outcome, sent: int, wait: float) -> ProviderError:
    failure = outcome.failure or ProviderError("There is no answer.")
    words = str(failure)
    if wait >= 1:
        words = f"{words.rstrip('.')}. The next try is {wait:.0f} seconds away, longer than a call may take."
    status = outcome.status or None
    return ProviderError(words, failure.kind, status=status, attempts=sent, is_lost=failure.is_lost)


class Gate:
    """One provider's door: at most `most` calls at a time, as fast as it lets through, and none once it is shut."""

    def __init__(self, most: int, policy: RetryPolicy, waits: Callable[[float], None] = lambda seconds: None) -> None:
        self.slots = asyncio.Semaphore(most)
        self.first = asyncio.Lock()
        self.pace = Pace(policy.backoff_seconds)
        self.patience = policy.patience_seconds
        self.waits = waits
        self.shut: ProviderError | None = None
        self.stopped = False
        self.resting: set[asyncio.Task[Any] | None] = set()

    async def turn(self, sent: int) -> float:
        """Wait until a request may be sent, and give the time on the loop's clock; `sent` were for this call before.

        ProviderError where the door is shut.
        """
        clock = asyncio.get_running_loop().time
        with self.rests():
            async with self.first:
                while (wait := self.pace.wait(clock())) > 0 and not self.shut:
                    if wait >= 1 or self.pace.base < math.inf:
                        self.waits(wait)
                    await asyncio.sleep(min(wait, 1.0))  # the door may be shut meanwhile
                if self.shut:
                    raise ProviderError(str(self.shut), self.shut.kind, status=self.shut.status, attempts=sent)
                now = clock()
                self.pace.start(now)
        return now

    async def rest(self, seconds: float) -> None:
        """Wait so long; a stop ends it, and the task with it."""
        with self.rests():
            await asyncio.sleep(seconds)

    @contextmanager
    def rests(self) -> Iterator[None]:
        task = asyncio.current_task()
        self.resting.add(task)
        try:
            yield
        finally:
            self.resting.discard(task)

    def stop(self) -> int:
        """How many tasks were cancelled because they wait to send something; what is on its way comes to its end."""
        self.stopped = True
        tasks = [task for task in self.resting if task is not None and task.cancel()]
        return len(tasks)

    def refuse(self, failure: ProviderError, started: float, seconds: float | None) -> None:
        """Slow down; shut the door where nothing was let through for as long as the patience, or will not be."""
        now = asyncio.get_running_loop().time()
        self.pace.refuse(now, started, seconds)
        since = self.pace.refused_since
        begun = now if since is None else since
        if max(now, self.pace.opens) - begun < self.patience:
            return
        limit = span_words(self.patience)
        words = f"It has let nothing through for {limit}"
        if now - begun < self.patience:
            words = f"It asks to be left alone for {span_words(self.pace.opens - now)}, longer than {limit}"
        said = f"{str(failure).rstrip('.')}. {words}."
        self.close(ProviderError(said, failure.kind, status=failure.status))

    def close(self, failure: ProviderError) -> None:
        """Fail every further call as this one failed, unsent; the first reason stays."""
        if self.shut is None:
            words = f"{str(failure).rstrip('.')}. So nothing more is asked of this provider in this run."
            self.shut = ProviderError(words, failure.kind, status=failure.status)


def waiting(tell: Callable[[str], None]) -> Callable[[float], None]:
    """Reports waits for a rate limit, of which it hears every second, once in five minutes."""
    told = -math.inf

    def waits(seconds: float) -> None:
        nonlocal told
        if time.monotonic() - told >= 300:
            told = time.monotonic()
            tell(f"Waiting for a rate limit; the next request goes out in {span_words(max(1.0, seconds))}.")

    return waits


def span_words(seconds: float) -> str:
    """A span of time in its largest unit, such as `15 minutes`."""
    for unit, length in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * length or abs(seconds - length) < length / 20:
            return counted(round(seconds / length), unit)
    return counted(round(seconds), "second")

"""The only HTTP to providers: a request out, its answer back, with retries, limits and a key that nobody sees."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from types import TracebackType
from typing import Any, NamedTuple, Self

import httpx

from pipeline.errors import ProviderError
from pipeline.providers.body import load_body
from pipeline.providers.calls import Call, Reply
from pipeline.providers.failure import redact, unreadable_error
from pipeline.providers.http.gate import Gate
from pipeline.providers.http.retry import Decision, decide, ends_the_provider, exhausted_seconds
from pipeline.providers.http.transfer import REDIRECT, Received, encode_body, hide_key, one_connection, receive
from pipeline.providers.request import KEY_VARIABLES, ProviderRequest, auth_headers, continue_request
from pipeline.providers.shape import recognise
from pipeline.schema import ProviderName


class Endpoint(NamedTuple):
    """Where a provider is asked, and with which key; its text never shows the key.

    `key_variable` is where the key comes from; empty for the provider's own variable.
    """

    provider: ProviderName
    base_url: str
    key: str
    key_variable: str = ""

    def __repr__(self) -> str:
        """Everything but the key."""
        return f"Endpoint(provider={self.provider!r}, base_url={self.base_url!r}, key={'…' if self.key else ''!r})"


def redirect_error(endpoint: Endpoint, headers: Mapping[str, str]) -> ProviderError:
    """The error for a provider that points elsewhere; the key is not carried there."""
    try:
        host = httpx.URL(headers.get(REDIRECT, "")).host
    except (httpx.InvalidURL, ValueError):  # of a host `xn--…` that stands for nothing, httpx says ValueError
        host = ""
    # A host's name is read in lower case, also where a key is part of it.
    host = redact(hide_key(hide_key(host, endpoint.key), endpoint.key.lower()))[:100]
    target = f"to the host {host!r}" if host else "to another address"
    return ProviderError(
        f"{host_of(endpoint)} redirects {target}; nothing was sent there. Mend the base URL of {endpoint.provider}."
    )


def host_of(endpoint: Endpoint) -> str:
    """The endpoint's host, for a message."""
    return httpx.URL(endpoint.base_url).host


def target_of(endpoint: Endpoint, request: ProviderRequest) -> str:
    """The URL of a request: its path below the base URL."""
    return f"{endpoint.base_url.rstrip('/')}/{request.path.lstrip('/')}"


def headers_of(endpoint: Endpoint) -> dict[str, str]:
    """What every request to the endpoint carries, its key among it; an endpoint without a key carries none.

    Raises:
        SettingsError: the key is nothing that a header can carry.
    """
    key = endpoint.key.strip()
    return {
        "accept": "application/json",
        # Not all that httpx could decode: these two are unpacked here, up to a limit.
        "accept-encoding": "gzip, deflate",
        "content-type": "application/json",
        "user-agent": f"citejury/{version('citejury')}",
        **(auth_headers(endpoint.provider, key, endpoint.key_variable) if key else {}),
    }


MAX_CONTINUATIONS = 5
CONNECT_SECONDS = 30.0
REDIRECTS = range(300, 400)


class RetryPolicy(NamedTuple):
    """How much effort one call is worth.

    `attempts` are the requests for each body wanted, which a paused turn has several of. For each, `total_seconds`
    bounds sending and waiting after failures together, and `read_seconds` the silence before it or within it.
    `backoff_seconds` is the unit of waits that nobody named.
    """

    attempts: int = 2
    total_seconds: float = 600.0
    read_seconds: float = 300.0
    backoff_seconds: float = 1.0


class Outcome(NamedTuple):
    """What one request came to: a body, or the failure and what to do about it."""

    status: int | None = None
    text: str = ""
    body: Any = None
    failure: ProviderError | None = None
    decision: Decision = Decision("no")
    pause: float = 0.0


class Effort:
    """What one call has taken so far: the requests sent, and the time on the loop's clock at the first of them."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.sent = 0
        self.begun = 0.0

    def begin(self, started: float) -> None:
        """Count a request that starts now."""
        self.begun = self.begun if self.sent else started
        self.sent += 1


class Network:
    """The providers' endpoints behind one HTTP client; use it as an asynchronous context."""

    def __init__(
        self,
        endpoints: Mapping[ProviderName, Endpoint],
        policy: RetryPolicy | None = None,
        concurrency: int | Mapping[ProviderName, int] = 8,
        check: Callable[[Any], object] = recognise,
    ) -> None:
        """Know whom to ask; nothing is sent before the first call.

        `check` raises ProviderError for a body that came with a success and is no answer.

        Raises:
            SettingsError: a key is nothing that a header can carry.
        """
        self.endpoints = dict(endpoints)
        self.headers = {name: headers_of(endpoint) for name, endpoint in endpoints.items()}
        self.policy = RetryPolicy() if policy is None else policy
        self.check = check
        widths = {name: concurrency if isinstance(concurrency, int) else concurrency.get(name, 8) for name in endpoints}
        self.gates = {name: Gate(max(1, width)) for name, width in widths.items()}
        self.silence = httpx.Timeout(self.policy.read_seconds, connect=CONNECT_SECONDS, pool=None)
        self.trust = httpx.create_ssl_context()
        # One client for each call under way: httpx searches its whole pool of connections twice for every request,
        # which costs more than the request itself at fifty calls at once.
        self.idle: dict[ProviderName, list[httpx.AsyncClient]] = {name: [] for name in endpoints}

    @asynccontextmanager
    async def client(self, provider: ProviderName) -> AsyncIterator[httpx.AsyncClient]:
        """A client that nobody else uses while the block runs; its connection is kept for the provider's next call."""
        idle = self.idle[provider]
        client = idle.pop() if idle else one_connection(self.trust, self.silence)
        try:
            yield client
        finally:
            idle.append(client)

    async def __aenter__(self) -> Self:
        """The network itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every connection."""
        for client in (client for idle in self.idle.values() for client in idle):
            await client.aclose()

    def stop(self) -> int:
        """How many calls that only waited for their next request are given up; none under way is tried again."""
        return sum(gate.stop() for gate in self.gates.values())

    async def answer(self, call: Call, request: ProviderRequest) -> Reply:
        """The provider's reply to a call.

        Raises:
            ProviderError: as `put` does.
        """
        return await self.put(call.provider, call.model, request)

    async def put(self, provider: ProviderName, model: str, request: ProviderRequest) -> Reply:
        """The provider's reply to a request; a paused turn is continued, and its bodies are kept as one JSON array.

        An answer that came back is never asked for again, whatever it says.

        Raises:
            ProviderError: there is no answer after all attempts, or nothing more is asked of this provider. Its
                `attempts` counts the requests that were sent for the call, its `status` is the last one's.
        """
        endpoint = self.endpoints.get(provider)
        if endpoint is None:
            words = f"There is no key for {provider}; set `{KEY_VARIABLES[provider][0]}`."
            raise ProviderError(words, "missing_key", attempts=0)
        effort = Effort()
        texts: list[str] = []
        async with self.gates[provider].slots:
            following: ProviderRequest | None = request
            while following is not None:
                outcome = await self.settle(endpoint, following, effort)
                texts.append(outcome.text)
                paused = len(texts) <= MAX_CONTINUATIONS
                following = continue_request(provider, following, outcome.body) if paused else None
        text = texts[0] if len(texts) == 1 else f"[{','.join(texts)}]"
        model = model or request.body.get("model") or request.body.get("preset") or ""
        seconds = asyncio.get_running_loop().time() - effort.begun
        return Reply(text, outcome.status, str(model), effort.sent, seconds)

    async def settle(self, endpoint: Endpoint, request: ProviderRequest, effort: Effort) -> Outcome:
        """The outcome with the body that was asked for, after as many requests as it takes and the policy allows.

        Raises:
            ProviderError: none of them brought it.
        """
        gate = self.gates[endpoint.provider]
        content = encode_body(request.body)
        attempt, spent = 0, 0.0
        while True:
            attempt += 1
            async with gate.turn(effort.sent, self.policy.total_seconds) as started:
                effort.begin(started)
                outcome = await self.send(endpoint, request, content, attempt, self.policy.total_seconds - spent)
                spent += asyncio.get_running_loop().time() - started
            wait = self.learn(gate, outcome, started)
            if outcome.failure is None:
                return outcome
            late = spent + wait > self.policy.total_seconds
            if outcome.decision.kind == "no" or attempt >= self.policy.attempts or late or gate.stopped:
                raise final_error(
                    outcome.failure, outcome.status, effort.sent, outcome.decision.seconds if late else 0.0
                )
            await gate.rest(wait)
            spent += wait

    def learn(self, gate: Gate, outcome: Outcome, started: float) -> float:
        """The seconds to wait before this call's next request, after the gate has heard of the outcome."""
        decision, failure = outcome.decision, outcome.failure
        gate.pause(outcome.pause)
        if failure is None:
            gate.widen()
            return 0.0
        if ends_the_provider(failure, outcome.status):
            gate.close(final_error(failure, outcome.status, 0, 0.0))
        # Provider-named waits get a little more, so that those who were refused together do not return together.
        spread = min(1.0, decision.seconds / 10) if decision.stated else decision.seconds * self.policy.backoff_seconds
        wait = (decision.seconds if decision.stated else 0.0) + random.uniform(0.0, spread)
        if decision.kind == "rate_limit":
            gate.narrow(started)
            gate.pause(wait)
        return wait

    async def send(
        self, endpoint: Endpoint, request: ProviderRequest, content: bytes, attempt: int, seconds: float
    ) -> Outcome:
        """What one request came to within so many seconds; a failure is a value here."""
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                headers = {**request.headers, **self.headers[endpoint.provider]}
                async with self.client(endpoint.provider) as client:
                    received = await receive(client, target_of(endpoint, request), headers, content)
        except TimeoutError:
            words = f"{host_of(endpoint)} did not finish its answer within the {self.policy.total_seconds:.0f} seconds."
            return Outcome(failure=ProviderError(words, "timeout"), decision=decide(None, {}, "", attempt, 0.0))
        except ProviderError as failure:
            passing = failure.kind in ("network", "timeout")
            decision = decide(None, {}, "", attempt, 0.0) if passing else Decision("no")
            return Outcome(failure.status, failure=failure, decision=decision)
        return judge(received, endpoint, attempt, time.time(), self.check)


def judge(received: Received, endpoint: Endpoint, attempt: int, now: float, check: Callable[[Any], object]) -> Outcome:
    """What a whole response came to: an answer, whatever it says, or a failure."""
    status, headers = received.status, received.headers
    text = hide_key(received.text, endpoint.key)
    pause = exhausted_seconds(headers, now)
    body: Any = None
    try:
        if status in REDIRECTS:
            raise redirect_error(endpoint, headers)
        if status >= 400:
            raise unreadable_error(text, status)
        body = read_json(text, hide_key(headers.get("content-type", ""), endpoint.key))
        check(body)
    except ProviderError as failure:
        passing = failure.kind == "network"
        decision = decide(None if passing else status, headers, text, attempt, now)
        return Outcome(status, text, body, failure, decision, pause)
    except RecursionError:
        deep = ProviderError("The payload is nested too deeply to be a provider's answer.")
        return Outcome(status, text, failure=deep, pause=pause)
    return Outcome(status, text, body, pause=pause)


def read_json(text: str, content_type: str) -> Any:
    """The JSON value of a successful response's body.

    Raises:
        ProviderError: it is none; something between the provider and us answered, or half of it is missing.
    """
    try:
        return load_body(text)
    except ProviderError as error:
        found = redact(content_type)[:60] or "no content type"
        raise ProviderError(f"A success came back without a whole JSON body ({found}). {error}", "network") from error


def final_error(failure: ProviderError, status: int | None, sent: int, wait: float) -> ProviderError:
    """The failure as it is recorded: with its status, its number of requests, and the wait that was too long."""
    words = str(failure)
    if wait >= 1:
        words = f"{words.rstrip('.')}. The next try is {wait:.0f} seconds away, longer than a call may take."
    return ProviderError(words, failure.kind, status=status, attempts=sent)

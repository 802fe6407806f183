"""Search over HTTP: a query out, JSON back, with retries, the provider's own limits, and a key that nobody sees."""

import asyncio
import random
import time
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import httpx

from pipeline.errors import ProviderError, SettingsError
from pipeline.providers.body import as_object, as_text, load_body
from pipeline.providers.failure import redact, unreadable_error
from pipeline.providers.http.gate import Gate
from pipeline.providers.http.retry import LONGEST_WAIT, Decision, decide, ends_the_provider
from pipeline.providers.http.transfer import Received, encode_body, hide_key, one_connection, receive
from pipeline.providers.request import is_near
from pipeline.research.search.results import RawResult, SearchResults, readable_results

MOST_AT_ONCE = 5
CONNECT_SECONDS = 15.0
REDIRECTS = range(300, 400)
# Tavily's statuses for a plan and for pay-as-you-go that are used up.
QUOTA_STATUSES = (432, 433)
# Brave's code for a wrong key, which comes with status 422.
WRONG_KEY_CODE = "SUBSCRIPTION_TOKEN_INVALID"
ADVICE: dict[str, str] = {"quota": "Its plan is used up: raise it, or choose another provider with `--search`."}
OTHER_ADVICE = "Try again later, or choose another provider with `--search`."


class Patience(NamedTuple):
    """How much effort one query is worth."""

    attempts: int = 4
    """Requests at most."""
    total_seconds: float = 90.0
    """Requests and the waits between them take so long together."""
    read_seconds: float = 30.0
    """The longest silence of a request."""
    backoff_seconds: float = 1.0
    """The unit of waits that nobody named."""


class Question(NamedTuple):
    """One request, its key still missing."""

    method: str
    """`GET` or `POST`."""
    path: str
    """Below the base URL."""
    parameters: Mapping[str, str] = {}
    """What stands behind the path's `?`."""
    body: Mapping[str, Any] | None = None
    """What goes along as JSON; None for nothing."""


class Manner(NamedTuple):
    """How one provider is spoken to."""

    name: str
    """Its name."""
    base_url: str
    """Where it is asked."""
    key_variable: str
    """The variable of the environment that holds the key."""
    key_header: str
    """The header that carries the key."""
    key_prefix: str
    """What stands before it there."""
    to_question: Callable[[str, int], Question]
    """From a query and the number of results wanted to the request."""
    raw_results: Callable[[Any], Iterable[RawResult] | None]
    """From a body to the results in it; None where it is no answer of this provider's."""


class Came(NamedTuple):
    """What one request came to: a body, or the failure and what to do about it."""

    body: Any = None
    failure: ProviderError | None = None
    decision: Decision = Decision("no")
    pause: float = 0.0
    """Seconds in which the provider wants no further query."""


class SearchApi:
    """A search provider that is asked over HTTP."""

    def __init__(self, manner: Manner, environment: Mapping[str, str], patience: Patience | None = None) -> None:
        """Nothing is sent before the first query.

        Raises:
            SettingsError: the environment holds no key for it, or its address is none that a key may be sent to.
        """
        check_address(manner)
        self.manner = manner
        self.name = manner.name
        self.patience = patience or Patience()
        self.key = key_from(environment, manner)
        self.gate = Gate(MOST_AT_ONCE)
        self.trust = httpx.create_ssl_context()
        self.headers = {
            "accept": "application/json",
            # Not all that httpx could decode: these two are unpacked here, up to a limit.
            "accept-encoding": "gzip, deflate",
            "user-agent": f"citejury/{version('citejury')}",
            manner.key_header: f"{manner.key_prefix}{self.key}",
        }

    async def search(self, query: str, k: int) -> SearchResults:
        """At most `k` results, the best first.

        Raises:
            ProviderError: the provider does not answer, refuses, or answers something else.
        """
        body = await self.answer(self.manner.to_question(query, k))
        raw = self.manner.raw_results(body)
        if raw is None:
            raise ProviderError(f"{self.name} answered with something else than search results. {OTHER_ADVICE}")
        return readable_results(raw, k)

    async def answer(self, question: Question) -> Any:
        """The body of the provider's answer, after as many requests as it takes and patience allows.

        Raises:
            ProviderError: there is none.
        """
        clock = asyncio.get_running_loop().time
        until = clock() + self.patience.total_seconds
        for attempt in range(1, self.patience.attempts + 1):
            try:
                async with self.gate.turn(attempt - 1, until - clock()) as started:
                    came = await self.send(question, attempt, until - clock())
            except ProviderError as closed:
                raise self.told(closed, attempt - 1, 0.0) from None
            wait = self.learn(came, started)
            if came.failure is None:
                return came.body
            if came.decision.kind == "no" or attempt == self.patience.attempts or clock() + wait > until:
                raise self.told(came.failure, attempt, came.decision.seconds)
            await self.gate.rest(wait)
        raise AssertionError("patience allows one request at least")

    def learn(self, came: Came, started: float) -> float:
        """The seconds to wait before this query's next request, after the gate has heard what came."""
        self.gate.pause(came.pause)
        if came.failure is None:
            self.gate.widen()
            return 0.0
        if ends_the_provider(came.failure, came.failure.status):
            self.gate.close(came.failure)
        stated, seconds = came.decision.stated, came.decision.seconds
        spread = min(1.0, seconds / 10) if stated else seconds * self.patience.backoff_seconds
        wait = (seconds if stated else 0.0) + random.uniform(0.0, spread)
        if came.decision.kind == "rate_limit":
            self.gate.narrow(started)
            self.gate.pause(wait)
        return wait

    async def send(self, question: Question, attempt: int, seconds: float) -> Came:
        """What one request came to within so many seconds; a failure is a value here."""
        url = f"{self.manner.base_url.rstrip('/')}{question.path}"
        if question.parameters:
            url = f"{url}?{urlencode(question.parameters, errors='replace')}"
        content, typed = b"", {}
        if question.body is not None:
            content, typed = encode_body(question.body), {"content-type": "application/json"}
        silence = httpx.Timeout(self.patience.read_seconds, connect=CONNECT_SECONDS)
        try:
            async with asyncio.timeout(max(0.0, seconds)), one_connection(self.trust, silence) as client:
                received = await receive(client, url, {**self.headers, **typed}, content, question.method)
        except TimeoutError:
            words = f"{self.name} did not finish its answer within {self.patience.total_seconds:.0f} seconds."
            return Came(failure=ProviderError(words, "timeout"), decision=decide(None, {}, "", attempt, 0.0))
        except ProviderError as failure:
            passing = failure.kind in ("network", "timeout")
            return Came(failure=failure, decision=decide(None, {}, "", attempt, 0.0) if passing else Decision("no"))
        return self.judge(received, attempt)

    def judge(self, received: Received, attempt: int) -> Came:
        """What a whole response came to."""
        status, text = received.status, hide_key(received.text, self.key)
        limits = window_wait(received.headers)
        if status in REDIRECTS:
            words = "It redirects to another address; nothing was sent there."
            return Came(failure=ProviderError(words, status=status))
        if status >= 400:
            headers = received.headers if limits is None else {"retry-after": str(limits), **received.headers}
            decision = decide(status, headers, text, attempt, time.time())
            return Came(failure=stated_failure(text, status), decision=decision)
        try:
            return Came(load_body(text), pause=min(limits or 0.0, LONGEST_WAIT))
        except ProviderError as error:
            words = f"A success came back without a whole JSON body. {error}"
            return Came(failure=ProviderError(words, "network"), decision=decide(None, {}, "", attempt, 0.0))

    def told(self, failure: ProviderError, attempts: int, wait: float) -> ProviderError:
        """The failure as it is reported: who failed, why, and what to do."""
        words = f"{self.name} cannot be searched: {str(failure).rstrip('.')}."
        if wait > self.patience.total_seconds:
            words = f"{words} The next try is {wait:.0f} seconds away."
        advice = ADVICE.get(failure.kind, OTHER_ADVICE)
        if failure.kind == "auth":
            advice = f"Look at the key in `{self.manner.key_variable}`."
        return ProviderError(f"{words} {advice}", failure.kind, status=failure.status, attempts=attempts)


def check_address(manner: Manner) -> None:
    """Nothing where a key may be sent to the provider's base URL.

    Raises:
        SettingsError: it is not https (http only on this machine or inside a network), or holds more than a path.
    """
    try:
        parts = urlsplit(manner.base_url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        parts, host = urlsplit(""), ""
    near = parts.scheme == "http" and bool(host) and is_near(host)
    if not host or parts.username or parts.query or parts.fragment or not (parts.scheme == "https" or near):
        raise SettingsError(
            f"{manner.name} cannot be asked with a key at {redact(host)!r}. Give a URL of the form https://host/path."
        )


def key_from(environment: Mapping[str, str], manner: Manner) -> str:
    """The provider's key.

    Raises:
        SettingsError: there is none, or what no header can carry; the message does not show it.
    """
    key = environment.get(manner.key_variable, "").strip()
    if not key:
        raise SettingsError(f"There is no key for {manner.name}; set `{manner.key_variable}`.")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise SettingsError(
            f"The key in `{manner.key_variable}` holds white space or a letter that no key has. Copy it again."
        )
    return key


def stated_failure(text: str, status: int) -> ProviderError:
    """The error that a failed request's body stands for."""
    failure = unreadable_error(reworded(text), status)
    kind = failure.kind
    if status in QUOTA_STATUSES:
        kind = "quota"
    elif WRONG_KEY_CODE in text:
        kind = "auth"
    return ProviderError(str(failure), kind, status=status)


def reworded(text: str) -> str:
    """The error's body with Tavily's `{"detail": {"error": …}}` under the name that all others have for it."""
    try:
        words = as_text(as_object(as_object(load_body(text)).get("detail")).get("error"))
    except ProviderError:
        return text
    return encode_body({"error": {"message": words}}).decode() if words else text


def window_wait(headers: Mapping[str, str]) -> float | None:
    """Seconds until a window of Brave's limits, all of which it names in one header, has room again; None if all have.

    Source: https://api-dashboard.search.brave.com/app/documentation/web-search/response-headers, read 2026-11.
    """
    left, resets = (headers.get(f"x-ratelimit-{name}", "").split(",") for name in ("remaining", "reset"))
    waits = [
        float(reset)
        for remaining, reset in zip(left, resets, strict=False)
        if remaining.strip() == "0" and reset.strip().isascii() and reset.strip().isdigit() and len(reset) < 15
    ]
    return max(waits, default=None)

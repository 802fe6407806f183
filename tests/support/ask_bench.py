"""Calls to a provider on this machine, for the tests of asking."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from click.testing import CliRunner, Result

from exports.cli import main
from pipeline.asking.ask_live import LiveAnswers
from pipeline.asking.questions import Arm, Call, ProviderSelection, Reply, plan_calls
from pipeline.core.errors import ProviderError
from pipeline.core.schema import PROVIDERS, AskOptions, Narrative, ProviderName
from pipeline.providers import every_provider, get_provider
from pipeline.providers.http.client import RetryPolicy
from tests.support.provider_server import Behaviour, ProviderServer

KEY = "planted/key+0123456789"
MODELS = {provider.name: provider.api().model for provider in every_provider()}
SOON = {"retry-after-ms": "1"}
QUICK = RetryPolicy(backoff_seconds=0.001)
Settled = Reply | ProviderError


def calls_to(provider: ProviderName, number: int = 1) -> list[Call]:
    narratives = [Narrative(narrative_id=str(row), prompt=f"Narrative {row}", line=row + 1) for row in range(number)]
    return list(plan_calls("9f0e3b0a-6f0e-4b55-9e0a-7d6b1f4a2c11", provider, narratives, [Arm(models=MODELS)]))


def live(
    urls: Mapping[ProviderName, str], policy: RetryPolicy = QUICK, concurrency: int = 1, key: str = KEY
) -> LiveAnswers:
    endpoints = {name: get_provider(name).endpoint(url, key) for name, url in urls.items()}
    return LiveAnswers(ProviderSelection(PROVIDERS, endpoints, MODELS, AskOptions()), policy, concurrency)


async def settle(answers: LiveAnswers, call: Call) -> Settled:
    try:
        return await answers.answer(call)
    except ProviderError as failure:
        return failure


def ask(
    server: ProviderServer,
    calls: Sequence[Call],
    policy: RetryPolicy = QUICK,
    concurrency: int = 1,
    key: str = KEY,
) -> list[Settled]:
    async def ask_all() -> list[Settled]:
        urls = {name: server.base_url(name) for name in PROVIDERS}
        async with live(urls, policy, concurrency, key) as answers:
            return list(await asyncio.gather(*(settle(answers, call) for call in calls)))

    return asyncio.run(ask_all())


def ask_at(urls: Mapping[ProviderName, str], provider: ProviderName, policy: RetryPolicy = QUICK) -> Settled:
    async def ask_it() -> Settled:
        async with live(urls, policy) as answers:
            return await settle(answers, calls_to(provider)[0])

    return asyncio.run(ask_it())


def ask_one(
    *behaviours: Behaviour, provider: ProviderName = "openai", policy: RetryPolicy = QUICK
) -> tuple[Settled, int]:
    with ProviderServer(behaviours) as server:
        [settled] = ask(server, calls_to(provider), policy)
        return settled, len(server.calls)


def answered(*behaviours: Behaviour, **more: Any) -> tuple[Reply, int]:
    """The reply to one call, and how many requests it took."""
    settled, requests = ask_one(*behaviours, **more)
    assert isinstance(settled, Reply), settled
    return settled, requests


def refused(*behaviours: Behaviour, **more: Any) -> tuple[ProviderError, int]:
    settled, requests = ask_one(*behaviours, **more)
    assert isinstance(settled, ProviderError), settled
    return settled, requests


def run_ask(server: ProviderServer, *words: str, providers: str = "openai", **more: str) -> Result:
    """`pipeline ask` with keys for all five, in whose place the server is."""
    urls = {provider: server.base_url(provider) for provider in PROVIDERS}
    keys = {get_provider(provider).key_variables[0]: "planted-0123456789" for provider in PROVIDERS}
    env = {"CITEJURY_BASE_URLS": json.dumps(urls), **keys, **more}
    return CliRunner().invoke(main, ["pipeline", "ask", *words, "--providers", providers], env=env)

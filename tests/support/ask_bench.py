"""Calls to a provider on this machine, for the tests of asking."""

import asyncio
from collections.abc import Sequence

from pipeline.errors import ProviderError
from pipeline.providers.calls import Call, Reply, plan_calls
from pipeline.providers.http.network import Endpoint, Network, RetryPolicy
from pipeline.providers.request import DEFAULT_MODELS, REQUESTS
from pipeline.schema import PROVIDERS, AskOptions, Narrative, ProviderName
from tests.support.provider_server import Behaviour, ProviderServer

RUN = "9f0e3b0a-6f0e-4b55-9e0a-7d6b1f4a2c11"
KEY = "planted/key+0123456789"
SOON = {"retry-after-ms": "1"}
QUICK = RetryPolicy(backoff_seconds=0.001)
Settled = Reply | ProviderError


def calls_to(provider: ProviderName, number: int = 1) -> list[Call]:
    narratives = [Narrative(narrative_id=str(row), prompt=f"Narrative {row}", line=row + 1) for row in range(number)]
    return list(plan_calls(RUN, provider, narratives, DEFAULT_MODELS[provider]))


async def settle(network: Network, call: Call) -> Settled:
    request = REQUESTS[call.provider](call.model, "Answer.", call.prompt, AskOptions())
    try:
        return await network.answer(call, request)
    except ProviderError as failure:
        return failure


def ask(
    server: ProviderServer,
    calls: Sequence[Call],
    policy: RetryPolicy = QUICK,
    concurrency: int = 1,
    key: str = KEY,
) -> list[Settled]:
    endpoints = {name: Endpoint(name, server.base_url(name), key) for name in PROVIDERS}

    async def ask_all() -> list[Settled]:
        async with Network(endpoints, policy, concurrency) as network:
            return list(await asyncio.gather(*(settle(network, call) for call in calls)))

    return asyncio.run(ask_all())


def ask_one(
    *behaviours: Behaviour, provider: ProviderName = "openai", policy: RetryPolicy = QUICK
) -> tuple[Settled, int]:
    """What one call came to, and how many requests the server saw."""
    with ProviderServer(behaviours) as server:
        [settled] = ask(server, calls_to(provider), policy)
        return settled, len(server.calls)

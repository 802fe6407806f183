"""Narratives put to the providers themselves: those that there is a key for, each with its model and connections."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Self

import httpx

from pipeline.asking.questions import (
    NEW_TURN,
    NO_LIMITS,
    USUAL,
    Arm,
    Call,
    Limits,
    ProviderSelection,
    Questions,
    Reply,
    Report,
    Spoken,
    Tell,
    Turn,
    Waits,
    read_arms,
)
from pipeline.asking.run import ask_narratives
from pipeline.asking.run_folder import RunManifest
from pipeline.core.errors import InputError, ProviderError, SettingsError
from pipeline.core.prompts import DEFAULT_PROMPTS, Prompts
from pipeline.core.schema import PROVIDERS, AskOptions, Price, ProviderName
from pipeline.providers import every_provider, find_key, get_provider, read_base_urls, recognise
from pipeline.providers.cost import missing_price, price_advice
from pipeline.providers.http.client import ApiClient, RetryPolicy
from pipeline.providers.http.request import load_body
from pipeline.sources.guard import guarded_client
from pipeline.sources.redirects import look_up_redirects

OPTION_NAMES = {
    "allowed_domains": "allow-domain",
    "blocked_domains": "block-domain",
    "max_uses": "max-uses",
    "max_tokens": "max-tokens",
}
"""The command's name of an option, where it is not the field's."""


class LiveAnswers:
    """The selected providers as a source of answers; use it as an asynchronous context."""

    def __init__(
        self,
        selection: ProviderSelection,
        policy: RetryPolicy,
        concurrency: int,
        tell: Tell = lambda line: None,
        waits: Waits = lambda provider, seconds: None,
    ) -> None:
        """`tell` hears of each provider when it is first asked; one whose answers are all there is not."""
        self.selection = selection
        self.tell = tell
        self.asked: set[ProviderName] = set()
        self.clients = {
            provider: ApiClient(endpoint, policy, concurrency, recognise, True, partial(waits, provider))
            for provider, endpoint in selection.endpoints.items()
        }

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in self.clients.values():
            await client.close()

    async def answer(self, call: Call, turn: Turn = NEW_TURN) -> Reply:
        """The provider's reply to a call; a paused turn is continued, its bodies kept and given as one JSON array."""
        client = self.clients.get(call.provider)
        if client is None:
            words = f"There is no key for {call.provider}; set `{get_provider(call.provider).key_variables[0]}`."
            raise ProviderError(words, "missing_key", attempts=0)
        if call.provider not in self.asked:
            self.asked.add(call.provider)
            self.tell(f"Asking {call.provider} ({', '.join(self.selection.models_of(call.provider))}).")
        request = self.selection.request(call)
        digest = self.selection.said(call)
        bodies = turn.bodies(digest)
        for body in bodies:
            request = get_provider(call.provider).next_request(request, load_body(body)) or request
        response = await client.send(request)
        texts = [*bodies, response.text]
        while len(texts) <= 5:
            following = get_provider(call.provider).next_request(request, response.body)
            if following is None:
                break
            turn.keep(digest, response.text)
            request = following
            response = await client.send(request, response.attempts)
            texts.append(response.text)
        text = texts[0] if len(texts) == 1 else f"[{','.join(texts)}]"
        model = call.model or request.body.get("model") or request.body.get("preset") or ""
        return Reply(text, response.status, str(model), response.attempts, response.fault, is_paid=True)

    def stop(self) -> int:
        """Give up the calls that only wait for their next request, and count them; none under way is tried again."""
        return sum(client.stop() for client in self.clients.values())


def select_providers(
    named: Sequence[ProviderName] | None,
    models: Mapping[ProviderName, str],
    options: AskOptions,
    environment: Mapping[str, str],
    base_urls: Mapping[str, str],
    spoken: Spoken = USUAL,
    prompts: Prompts = DEFAULT_PROMPTS,
    arms: Sequence[str] = (),
    *,
    kept: Mapping[str, Mapping[ProviderName, str]] = {},
    needs_keys: bool = True,
) -> ProviderSelection:
    """Those who are named, else those whose key is set; each call to a named one without a key fails.

    Models that nobody names are those that a run has `kept` by arm, else the default. Where nothing is sent nobody
    `needs_keys`, and without any all are selected.
    """
    keys = {provider.name: find_key(provider.key_variables, environment) for provider in every_provider()}
    providers = tuple(provider for provider in PROVIDERS if (provider in named if named else keys[provider]))
    if not needs_keys:
        providers = providers or PROVIDERS
    with_key = [provider for provider in providers if keys[provider] or not needs_keys]
    if not with_key:
        wanted = " or ".join(f"`{get_provider(provider).key_variables[0]}`" for provider in named or PROVIDERS)
        raise SettingsError(f"There is no key, so nobody can be asked; set {wanted}, or answer with `--replay DIR`.")
    urls = read_base_urls(base_urls)
    of_arms = {arm: {each: name for each, name in own.items() if each not in models} for arm, own in kept.items()}
    kept_by_all = kept.get("", {})
    usual = {provider: spoken.api_of(provider).model for provider in providers}
    asked = {each: models.get(each) or kept_by_all.get(each) or usual[each] for each in providers}
    selection = ProviderSelection(
        providers,
        {provider: get_provider(provider).endpoint(urls[provider], keys[provider]) for provider in with_key},
        asked,
        options,
        spoken,
        prompts=prompts,
        arms=read_arms(arms, Arm("", asked, prompts, options), providers, of_arms),
    )
    notes = [
        f"{provider} is skipped: `{get_provider(provider).key_variables[0]}` is not set."
        for provider in (named or PROVIDERS if needs_keys else ())
        if not keys[provider]
    ]
    notes += [
        f"{provider}: this run goes on with {asked[provider]}; a new one would ask {usual[provider]}."
        for provider in providers
        if asked[provider] != usual[provider] and not models.get(provider) and not arms
    ]
    notes += [
        f"{provider} ({arm.models[provider]}) takes no `--{OPTION_NAMES.get(name, name)}`; it is not sent."
        for provider in with_key
        for arm in selection.asked_arms()
        for name in spoken.api_of(provider).unsupported(arm.options or AskOptions(), arm.models[provider])
    ]
    return selection._replace(notes=tuple(dict.fromkeys(notes)))


def check_selection(selection: ProviderSelection) -> None:
    for arm in selection.asked_arms():
        for provider in selection.endpoints:
            options = arm.options or selection.options
            selection.spoken.api_of(provider).check_options(options, arm.models[provider])


def ask_providers(
    questions: Questions,
    out: Path,
    selection: ProviderSelection,
    *,
    policy: RetryPolicy | None = None,
    limits: Limits = NO_LIMITS,
    report: Report = lambda call, total: None,
    tell: Tell = lambda line: None,
    waits: Waits = lambda provider, seconds: None,
    redirect_client: Callable[[], httpx.AsyncClient] | None = guarded_client,
) -> RunManifest:
    """Put the questions to the selected providers, and give the manifest of the run in `out`.

    At its end the targets of redirect links are looked up with a `redirect_client`; None leaves them alone. Errors as
    `ask_narratives`; also where a limit of cost cannot be held, or a key or a base URL cannot be used.
    """
    if limits.max_cost is not None:
        refuse_unknown_prices(selection, limits.prices)

    async def ask() -> RunManifest:
        async with LiveAnswers(selection, policy or RetryPolicy(), limits.concurrency, tell, waits) as answers:
            manifest = await ask_narratives(questions, out, answers, report, tell, limits)
        if redirect_client:
            await look_up_redirects(out, redirect_client, tell)
        return manifest

    return asyncio.run(ask())


def refuse_unknown_prices(
    selection: ProviderSelection, prices: Mapping[str, Price], trusts_stated: bool = True
) -> None:
    """Refuse a limit of cost that cannot be held: a price is missing, and the provider states no cost to trust."""
    missing = {
        model: f"{words} ({provider})"
        for provider in selection.endpoints
        for model in selection.models_of(provider)
        if (words := missing_price(model, prices.get(model)))
        and not (trusts_stated and get_provider(provider).states_cost)
    }
    if missing:
        are = "are" if len(missing) > 1 else "is"
        raise InputError(
            f"`--max-cost` cannot be held: {' and '.join(missing.values())} {are} not known. Write it into "
            f"{price_advice(*missing)}"
        )

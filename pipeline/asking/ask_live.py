"""Narratives put to the providers themselves: those that there is a key for, each with its model and connections.

One by one, or in batches: at their prices for batches, within a day, found again after any kill. A batch stands in the
ledger before it is sent, and its answers go through the code of single calls. What was sent and not answered for is
looked for at the provider before anything more is sent.

Source: pipeline/contracts/run_folder.md#batches.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Self

import httpx

from pipeline.asking import questions as asking
from pipeline.asking.batch_calls import BatchPolicy, BatchWork, Progress
from pipeline.asking.batch_desk import BatchDesk
from pipeline.asking.paid_replies import Ledger, PausedTurns, open_batches
from pipeline.asking.run import ask_narratives, settle_run
from pipeline.asking.run_folder import MANIFEST, OpenRun, RunManifest
from pipeline.asking.run_state import RunState, StopReason
from pipeline.core.errors import InputError, ProviderError, SettingsError
from pipeline.core.prompts import DEFAULT_PROMPTS, Prompts
from pipeline.core.schema import PROVIDERS, AskOptions, Price, ProviderName
from pipeline.core.terminal import run_together
from pipeline.providers import every_provider, find_key, get_provider, read_base_urls, recognise
from pipeline.providers.batch import BatchApi
from pipeline.providers.cost import batch_price, missing_price, price_advice
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
        selection: asking.ProviderSelection,
        policy: RetryPolicy,
        concurrency: int,
        tell: asking.Tell = lambda line: None,
        waits: asking.Waits = lambda provider, seconds: None,
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

    async def answer(self, call: asking.Call, turn: asking.Turn = asking.NEW_TURN) -> asking.Reply:
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
        return asking.Reply(text, response.status, str(model), response.attempts, response.fault, is_paid=True)

    def stop(self) -> int:
        return sum(client.stop() for client in self.clients.values())


def select_providers(
    named: Sequence[ProviderName] | None,
    models: Mapping[ProviderName, str],
    options: AskOptions,
    environment: Mapping[str, str],
    base_urls: Mapping[str, str],
    spoken: asking.Spoken = asking.USUAL,
    prompts: Prompts = DEFAULT_PROMPTS,
    arms: Sequence[str] = (),
    *,
    kept: Mapping[str, Mapping[ProviderName, str]] = {},
    needs_keys: bool = True,
) -> asking.ProviderSelection:
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
    selection = asking.ProviderSelection(
        providers,
        {provider: get_provider(provider).endpoint(urls[provider], keys[provider]) for provider in with_key},
        asked,
        options,
        spoken,
        prompts=prompts,
        arms=asking.read_arms(arms, asking.Arm("", asked, prompts, options), providers, of_arms),
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


def check_selection(selection: asking.ProviderSelection) -> None:
    for arm in selection.asked_arms():
        for provider in selection.endpoints:
            options = arm.options or selection.options
            selection.spoken.api_of(provider).check_options(options, arm.models[provider])


def ask_providers(
    questions: asking.Questions,
    out: Path,
    selection: asking.ProviderSelection,
    *,
    policy: RetryPolicy | None = None,
    limits: asking.Limits = asking.NO_LIMITS,
    report: asking.Report = lambda call, total: None,
    tell: asking.Tell = lambda line: None,
    waits: asking.Waits = lambda provider, seconds: None,
    redirect_client: Callable[[], httpx.AsyncClient] | None = guarded_client,
) -> RunManifest:
    """Put the questions to the selected providers, and give the manifest of the run in `out`.

    At its end the targets of redirect links are looked up with a `redirect_client`; None leaves them alone. Errors as
    `ask_narratives`; also where a limit of cost cannot be held, or a key or a base URL cannot be used.
    """
    if limits.max_cost is not None:
        _refuse_unknown_prices(selection, limits.prices)

    async def ask() -> RunManifest:
        async with LiveAnswers(selection, policy or RetryPolicy(), limits.concurrency, tell, waits) as answers:
            manifest = await ask_narratives(questions, out, answers, report, tell, limits)
        if redirect_client:
            await look_up_redirects(out, redirect_client, tell)
        return manifest

    return asyncio.run(ask())


def _refuse_unknown_prices(
    selection: asking.ProviderSelection, prices: Mapping[str, Price], trusts_stated: bool = True
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
        advice = f"Write it into {price_advice(*missing)}"
        raise InputError(f"`--max-cost` cannot be held: {' and '.join(missing.values())} {are} not known. {advice}")


DEFAULT_POLICY = BatchPolicy()


def ask_in_batches(
    questions: asking.Questions,
    out: Path,
    selection: asking.ProviderSelection,
    *,
    policy: BatchPolicy = DEFAULT_POLICY,
    limits: asking.Limits = asking.NO_LIMITS,
    cancel: bool = False,
    progress: Progress = lambda provider, done, total, words: None,
    tell: asking.Tell = lambda line: None,
    tell_counts: asking.Tell = lambda line: None,
    waits: asking.Waits = lambda provider, seconds: None,
    redirect_client: Callable[[], httpx.AsyncClient] | None = guarded_client,
) -> RunManifest:
    """Put the questions to the selected providers in batches, wait for them, and give the manifest of the run in `out`.

    What an earlier start has sent is collected, and nothing of it is sent again. SIGINT and SIGTERM end the waiting,
    not the batches. With `cancel` nothing is sent: the batches under way are ended, and what they have answered is
    collected. `progress` hears how many of a provider's calls are done, `tell_counts` how far a batch is, at each
    change.

    Raises: InputError, OutputError and SettingsError as `ask_providers`, and where a provider has no batches.
    """
    apis = _batch_apis(selection)
    open_batches(out)  # a damaged ledger is told of before anything is touched
    if limits.max_cost is not None:
        # What a batch will cost has to be known before it is sent.
        _refuse_unknown_prices(selection, limits.prices, trusts_stated=False)
    is_new = not (out / MANIFEST).is_file()

    async def settle(run: OpenRun, state: RunState) -> None:
        paused, woken = PausedTurns(out), asyncio.Event()
        shared = (Ledger(out), paused, policy, limits, progress, tell, woken, dict[str, float](), set[str]())
        work = BatchWork(run, state, selection, *shared, is_new, tell_counts, waits)
        desks = [
            BatchDesk(work, provider, api, selection.spoken.api_of(provider).batches.doubt())
            for provider, api in apis.items()
        ]
        workers = (desk.end_all() if cancel else desk.work() for desk in desks)
        await run_together(state.tasks, workers, partial(_stop, state, desks, woken, tell))
        for desk in desks:
            paused.forget(desk.calls.answered)
        for line in paused.told_anew():
            tell(line)
        if not state.stopped and (cancel or any(desk.is_left() for desk in desks)):
            state.stopped = "batch"

    async def ask() -> RunManifest:
        manifest = await settle_run(questions, out, settle, limits, tell=tell)
        if redirect_client and not manifest.unsettled:
            await look_up_redirects(out, redirect_client, tell)
        return manifest

    return asyncio.run(ask())


def _stop(
    state: RunState, desks: Sequence[BatchDesk], woken: asyncio.Event, tell: asking.Tell, reason: StopReason
) -> None:
    """Wait for no batch and no limit any longer; the second time, give up the requests under way."""
    if state.stopped in ("SIGINT", "SIGTERM"):
        for task in state.tasks:
            task.cancel()
        return
    state.stopped = reason
    woken.set()
    for desk in desks:
        desk.client.stop()
    tell("Stopping: batches under way go on at the provider, and the same command collects them.")


def _batch_apis(selection: asking.ProviderSelection) -> dict[ProviderName, BatchApi]:
    apis: dict[ProviderName, BatchApi] = {}
    for provider in selection.providers:
        if provider not in selection.endpoints:
            raise InputError(f"`--batch` asks nobody without a key; set `{get_provider(provider).key_variables[0]}`.")
        batches = selection.spoken.api_of(provider).batches
        if batches.api is None:
            raise InputError(f"{provider} {batches.refusal()}. Nothing was sent; name others with `--providers`.")
        apis[provider] = batches.api
    return apis


def batch_prices(selection: asking.ProviderSelection, prices: Mapping[str, Price]) -> dict[str, Price]:
    """The prices of the selected models in batches; an InputError where a provider cannot be asked so."""
    in_batches = dict(prices)
    for provider, api in _batch_apis(selection).items():
        for model in selection.models_of(provider):
            price = batch_price(prices.get(model), api.token_price)
            in_batches |= {model: price} if price else {}
    return in_batches


def providers_with_batches(out: Path) -> list[ProviderName]:
    if not (out / MANIFEST).is_file():
        raise InputError(f"{str(out)!r} holds no `{MANIFEST}` of a run; name one that `pipeline ask` wrote.")
    having = {batch.provider for batch in open_batches(out)}
    return [provider for provider in PROVIDERS if provider in having]

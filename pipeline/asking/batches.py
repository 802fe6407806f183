"""Narratives put to the providers in batches: at their prices for batches, within a day, found again after any kill.

A batch stands in the ledger before it is sent, and its answers go through the code of single calls. What was sent and
not answered for is looked for at the provider before anything more is sent.

Source: pipeline/contracts/run_folder.md#batches.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import httpx

from pipeline.asking.ask_live import refuse_unknown_prices
from pipeline.asking.batch_calls import BatchPolicy, BatchWork, Progress
from pipeline.asking.batch_desk import BatchDesk
from pipeline.asking.paid_replies import Ledger, PausedTurns, open_batches
from pipeline.asking.questions import NO_LIMITS, Limits, ProviderSelection, Questions, Tell, Waits
from pipeline.asking.run import settle_run
from pipeline.asking.run_folder import MANIFEST, OpenRun, RunManifest
from pipeline.asking.run_state import RunState, StopReason
from pipeline.core.errors import InputError
from pipeline.core.schema import PROVIDERS, Price, ProviderName
from pipeline.core.terminal import run_together
from pipeline.providers import get_provider
from pipeline.providers.batch import BatchApi
from pipeline.providers.cost import batch_price
from pipeline.sources.guard import guarded_client
from pipeline.sources.redirects import look_up_redirects

DEFAULT_POLICY = BatchPolicy()


def ask_in_batches(
    questions: Questions,
    out: Path,
    selection: ProviderSelection,
    *,
    policy: BatchPolicy = DEFAULT_POLICY,
    limits: Limits = NO_LIMITS,
    cancel: bool = False,
    progress: Progress = lambda provider, done, total, words: None,
    tell: Tell = lambda line: None,
    tell_counts: Tell = lambda line: None,
    waits: Waits = lambda provider, seconds: None,
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
        refuse_unknown_prices(selection, limits.prices, trusts_stated=False)
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


def _stop(state: RunState, desks: Sequence[BatchDesk], woken: asyncio.Event, tell: Tell, reason: StopReason) -> None:
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


def _batch_apis(selection: ProviderSelection) -> dict[ProviderName, BatchApi]:
    apis: dict[ProviderName, BatchApi] = {}
    for provider in selection.providers:
        if provider not in selection.endpoints:
            raise InputError(f"`--batch` asks nobody without a key; set `{get_provider(provider).key_variables[0]}`.")
        batches = selection.spoken.api_of(provider).batches
        if batches.api is None:
            raise InputError(f"{provider} {batches.refusal()}. Nothing was sent; name others with `--providers`.")
        apis[provider] = batches.api
    return apis


def batch_prices(selection: ProviderSelection, prices: Mapping[str, Price]) -> dict[str, Price]:
    """The prices of the selected models in batches; an InputError where a provider cannot be asked so."""
    in_batches = dict(prices)
    for provider, api in _batch_apis(selection).items():
        for model in selection.models_of(provider):
            price = batch_price(prices.get(model), api.token_price)
            in_batches |= {model: price} if price else {}
    return in_batches


def providers_with_batches(out: Path) -> list[ProviderName]:
    """Those by whom a batch of the run folder may still be answered."""
    if not (out / MANIFEST).is_file():
        raise InputError(f"{str(out)!r} holds no `{MANIFEST}` of a run; name one that `pipeline ask` wrote.")
    having = {batch.provider for batch in open_batches(out)}
    return [provider for provider in PROVIDERS if provider in having]

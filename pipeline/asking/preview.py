"""What a run would ask, what it takes and costs, and how long it lasts, before anything is sent or bought."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.asking.paid_replies import BadResponses, open_batches
from pipeline.asking.questions import Limits, ProviderSelection, Questions
from pipeline.asking.run_folder import MANIFEST, ProviderCounts, look_into, read_manifest
from pipeline.core.schema import Price, ProviderName
from pipeline.core.terminal import printable
from pipeline.csv.file import answers_file
from pipeline.providers.cost import ModelList, RateLimit, Usage, Usual, cost_of, missing_price


@dataclass
class Preview:
    """What would be asked of one provider: of pairs the first is the least, the second the most.

    `cost` leaves out what is `unknown` of the prices, and is None where nothing is known; `hours` is None without a
    known limit. `requests` has the first request of each arm, under an empty name without arms.
    """

    provider: ProviderName
    models: tuple[str, ...]
    unknown: tuple[str, ...]
    calls: int = 0
    answered: int = 0
    tokens_in: list[int] = field(default_factory=lambda: [0, 0])
    tokens_out: list[int] = field(default_factory=lambda: [0, 0])
    cost: list[float] | None = field(default_factory=lambda: [0.0, 0.0])
    hours: float | None = 0.0
    requests: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, letters: int, longest: int, usual: Usual, price: Price | None, limit: RateLimit | None) -> None:
        # A token of English has about four letters, one of Japanese one.
        low = Usage(letters // 4 + usual.input[0], min(usual.output[0], longest), usual.searches[0])
        high = Usage(letters + usual.input[1], longest, usual.searches[1])
        self.calls += 1
        known = price and price.model_copy(update={"search": price.search or 0.0})
        self.cost = self.cost if known else None
        for at, usage in enumerate((low, high)):
            self.tokens_in[at] += usage.input_tokens
            self.tokens_out[at] += usage.output_tokens
            if self.cost:
                self.cost[at] += cost_of(usage, known) or 0.0
        if limit is None or self.hours is None:
            self.hours = None
            return
        needed = (1, limit.requests), (high.input_tokens, limit.input), (high.output_tokens, limit.output)
        self.hours += max(amount / most for amount, most in needed if most) / 60


def preview_run(
    questions: Questions, out: Path, selection: ProviderSelection, limits: Limits, models: ModelList
) -> list[Preview]:
    """What would be asked, provider by provider; those that cannot be are left out. Errors as `open_run`."""
    run = look_into(out, questions)
    prices, unread = limits.prices, set() if limits.retry_bad else set(BadResponses(out, mend=False).places)
    previews = []
    for provider, endpoint in selection.endpoints.items():
        names, settled = selection.models_of(provider), run.answered[provider] | unread
        found = Preview(provider, names, tuple(filter(None, (missing_price(each, prices.get(each)) for each in names))))
        previews.append(found)
        for call in questions.calls(run.manifest.run_id, provider):
            if call.answer_id in settled:
                found.answered += 1
                continue
            if call.arm not in found.requests:
                request = selection.request(call)
                found.requests[call.arm] = {"url": endpoint.url(request), "prompt": call.prompt, "body": request.body}
            longest, usual = (call.options or selection.options).max_tokens, models.usual.get(provider, Usual())
            found.add(len(call.prompt), longest, usual, prices.get(call.model), models.limits.get(call.model))
        earlier = run.manifest.providers.get(provider, ProviderCounts())
        priced = earlier.answers + earlier.bad_replies - earlier.unpriced
        if priced > 0:
            found.cost = [earlier.cost / priced * found.calls] * 2
    return previews


def preview_lines(previews: Sequence[Preview], models: ModelList) -> list[str]:
    """Five lines: calls, tokens, cost and hours by provider, and one example of what would be sent."""
    asked = [each for each in previews if each.calls]
    calls = ", ".join(f"{each.provider} {each.calls:,} to {', '.join(each.models)}" for each in previews)
    costs = [each.cost for each in asked if each.cost]
    told = [f"{each.provider} {_sum([each.cost], ',.2f')} USD" for each in asked if each.cost]
    told += [f"together {_sum(costs, ',.2f')} USD"] if len(costs) > 1 else []
    told += [f"not known: {each.provider} ({words})" for each in asked for words in each.unknown]
    first = next(iter(asked[0].requests.values())) if asked else {"prompt": "", "url": ""}
    lines = (
        f"calls: {sum(each.calls for each in asked):,} ({calls}), {sum(each.answered for each in previews):,} answered",
        f"tokens: {_sum([one.tokens_in for one in asked], ',')} in, {_sum([one.tokens_out for one in asked], ',')} out",
        f"cost: {', '.join(told)}",
        f"hours: {', '.join(_hours(each, models) for each in asked)}",
        f"example: {first['prompt'][:70]!r} to {first['url']}; `--show-bodies` shows all",
    )
    return [printable(line) for line in lines]


def _sum(spans: Sequence[Sequence[float]], form: str) -> str:
    """The least and the most of all spans together, as one figure where they look alike."""
    return "–".join(dict.fromkeys(format(sum(ends), form) for ends in zip(*spans, strict=True)))


def _hours(preview: Preview, models: ModelList) -> str:
    if preview.hours is None:
        return f"{preview.provider} not known (no limit is documented)"
    limit = models.limits[preview.models[0]]
    return f"{preview.provider} {preview.hours:.2g} ({limit.requests:,} requests a minute, {limit.date or 'undated'})"


def kept_models(out: Path) -> dict[str, dict[ProviderName, str]]:
    """The models that were paid for in the folder, by arm, empty for what has none yet: a run goes on with its own."""
    if not (out / MANIFEST).is_file():
        return {}
    manifest, sent = read_manifest(out), {batch.provider: batch.model for batch in open_batches(out) if batch.model}
    held = {
        provider: counts
        for provider, counts in manifest.providers.items()
        if answers_file(out, provider).is_file() or counts.bad_replies or counts.paused_bodies or provider in sent
    }
    arms = {
        name: {each: arm.models[each] for each in arm.models if each in held} for name, arm in manifest.arms.items()
    }
    of_arms = {each: {arm[each] for arm in arms.values() if each in arm} for each in held}
    common = {each: min(models) for each, models in of_arms.items() if len(models) == 1}
    asked = {each: counts.model_asked for each, counts in held.items() if counts.model_asked}
    only = {each: min(counts.models_answered) for each, counts in held.items() if len(counts.models_answered) == 1}
    return {**arms, "": only | common | asked | ({} if arms else sent)}

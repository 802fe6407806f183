"""What a run would ask, what it takes and costs, and how long it lasts, before anything is sent or bought."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap
from typing import Any

from pipeline.asking.paid_replies import BadResponses, open_batches
from pipeline.asking.questions import Limits, ProviderSelection, Questions
from pipeline.asking.run_folder import MANIFEST, look_into, read_manifest
from pipeline.core.schema import Price, ProviderName
from pipeline.core.terminal import printable
from pipeline.csv.file import answers_file
from pipeline.providers import get_provider
from pipeline.providers.cost import ModelList, RateLimit, Usage, Usual, cost_of, missing_price
from pipeline.providers.http.client import span_words


@dataclass
class Preview:
    """What would be asked of one provider: of pairs the first is the least, the second the most.

    `models` has the calls to each, `requests` the first one of each arm, under an empty name without arms. `cost`
    leaves out what is `unknown` of it, and is None where nothing is known; `hours` is None without a known limit.
    """

    provider: ProviderName
    models: dict[str, int] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    calls: int = 0
    answered: int = 0
    unread: int = 0
    tokens_in: list[int] = field(default_factory=lambda: [0, 0])
    tokens_out: list[int] = field(default_factory=lambda: [0, 0])
    cost: list[float] | None = None
    hours: float | None = 0.0
    requests: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, letters: int, longest: int, usual: Usual, price: Price | None, limit: RateLimit | None) -> None:
        # A token of English has about four letters, one of Japanese one.
        low = Usage(letters // 4 + usual.input[0], min(usual.output[0], longest), usual.searches[0])
        high = Usage(letters + usual.input[1], longest, usual.searches[1])
        self.calls += 1
        for at, usage in enumerate((low, high)):
            self.tokens_in[at] += usage.input_tokens
            self.tokens_out[at] += usage.output_tokens
        if price:
            known = price.model_copy(update={"search": price.search or 0.0})
            both = zip(self.cost or (0.0, 0.0), (low, high), strict=True)
            self.cost = [before + (cost_of(usage, known) or 0.0) for before, usage in both]
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
        found = Preview(provider)
        previews.append(found)
        for call in questions.calls(run.manifest.run_id, provider):
            is_answered = call.answer_id in run.answered[provider]
            if is_answered or call.answer_id in unread:
                found.answered += is_answered
                found.unread += not is_answered
                continue
            if call.arm not in found.requests:
                request = selection.request(call)
                found.requests[call.arm] = {"url": endpoint.url(request), "prompt": call.prompt, "body": request.body}
            found.models[call.model] = found.models.get(call.model, 0) + 1
            letters = len(selection.spoken.system_prompt(call)) + len(call.prompt)
            longest, usual = (call.options or selection.options).max_tokens, models.usual.get(provider, Usual())
            found.add(letters, longest, usual, prices.get(call.model), models.limits.get(call.model))
        unknown = (each for each in found.models if missing_price(each, prices.get(each)))
        found.unknown = tuple(f"searches by {each}" if each in prices else each for each in unknown)
    return previews


def preview_lines(previews: Sequence[Preview], models: ModelList) -> list[str]:
    """Five lines: calls, tokens, cost and hours by provider, an example of what would be sent; one if nothing would."""
    asked = [each for each in previews if each.calls]
    unread = sum(each.unread for each in previews)
    settled = f"{sum(each.answered for each in previews):,} answered" + (f", {unread:,} unreadable" if unread else "")
    if not asked:
        again = " (`--retry bad_response` asks for them again)" if unread else ""
        return [f"Nothing is left to ask: {settled}{again}"]
    calls = [f"{one.provider} {' and '.join(f'{n:,} to {name}' for name, n in one.models.items())}" for one in asked]
    costs = [each.cost for each in asked if each.cost]
    unknown = ", ".join(words for each in asked for words in each.unknown)
    together = f"together {_sum(costs, ',.2f')} USD{' without ' * bool(unknown)}{unknown}" if len(costs) > 1 else ""
    first = next(iter(asked[0].requests.values()))
    words = wrap(" ".join(first["prompt"].split()), 70)
    lines = (
        f"calls: {sum(each.calls for each in asked):,} ({', '.join(calls)}), {settled}",
        f"tokens: {_sum([one.tokens_in for one in asked], ',')} in, {_sum([one.tokens_out for one in asked], ',')} out",
        f"cost: {', '.join(filter(None, [*map(_cost, asked), together]))}",
        f"hours: {_hours(asked, models.limits)}",
        f"example: {words[0]!r}{' …' * (len(words) > 1)} to {first['url']}; `--show-bodies`: one a provider and arm",
    )
    return [printable(line) for line in lines]


def _cost(preview: Preview) -> str:
    unknown = ", ".join(preview.unknown)
    if preview.cost:
        without = f" without {unknown} (price not known)" if unknown else ""
        return f"{preview.provider} {_sum([preview.cost], ',.2f')} USD{without}"
    stated = "; each answer states its cost" if get_provider(preview.provider).states_cost else ""
    return f"{preview.provider} not known (no price of {unknown}{stated})"


def _sum(spans: Sequence[Sequence[float]], form: str) -> str:
    """The least and the most of all spans together, as one figure where they look alike."""
    totals = [sum(ends) for ends in zip(*spans, strict=True)]
    return "–".join(dict.fromkeys(format(each, ".1g" if 0 < each < 0.005 else form) for each in totals))


def _hours(asked: Sequence[Preview], limits: Mapping[str, RateLimit]) -> str:
    told = []
    for each in asked:
        named = [(model, limits[model]) for model in each.models if model in limits]
        of = "; ".join(f"{model}: {one.requests:,} requests a minute, {one.date or 'undated'}" for model, one in named)
        told += [f"{each.provider} {span_words(max(1.0, each.hours * 3600))} ({of})"] if each.hours is not None else []
    unknown = ", ".join(each.provider for each in asked if each.hours is None)
    unlimited = ", ".join(model for each in asked for model in each.models if model not in limits)
    told += [f"not known for {unknown} (no limit of {unlimited} is documented)"] if unknown else []
    return ", ".join(told)


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
    arms = {name: {one: own for one, own in arm.models.items() if one in held} for name, arm in manifest.arms.items()}
    of_arms = {each: {arm[each] for arm in arms.values() if each in arm} for each in held}
    common = {each: min(models) for each, models in of_arms.items() if len(models) == 1}
    asked = {each: counts.model_asked for each, counts in held.items() if counts.model_asked}
    only = {each: min(counts.models_answered) for each, counts in held.items() if len(counts.models_answered) == 1}
    return {**arms, "": only | common | asked | ({} if arms else sent)}

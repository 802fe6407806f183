"""What the answered calls of a model took: tokens, and their cost as far as it is known."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pipeline.providers.body import as_object, as_text, load_body
from pipeline.providers.http.cost import Price, cost_of, price_of, usage_of


class Spent(NamedTuple):
    """What answered calls took; a plain sum."""

    calls: int = 0
    """Payloads, those of repairs and of forms that brought no word included."""
    tokens_in: int = 0
    """Tokens that went in."""
    tokens_out: int = 0
    """Tokens that came out, thoughts included."""
    cost: float = 0.0
    """What the calls with a known cost took together, in USD."""
    unpriced: int = 0
    """Payloads of which nobody knows the cost."""


def spent_of(payloads: Iterable[str], model: str, prices: Mapping[str, Price]) -> Spent:
    """What these payloads took together; the cost is the one they state, else by the price of the model."""
    total = Spent()
    for payload in payloads:
        body = load_body(payload)
        usage = usage_of(body)
        cost = cost_of(usage, price_of(prices, as_text(as_object(body).get("model")), model))
        one = Spent(1, usage.input_tokens, usage.output_tokens, cost or 0.0, int(cost is None))
        total = added(total, one)
    return total


def added(first: Spent, second: Spent) -> Spent:
    """The sum of the two."""
    return Spent(
        first.calls + second.calls,
        first.tokens_in + second.tokens_in,
        first.tokens_out + second.tokens_out,
        first.cost + second.cost,
        first.unpriced + second.unpriced,
    )

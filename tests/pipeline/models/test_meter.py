import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from pipeline.core.schema import AskOptions, Price
from pipeline.models.asking import Meter, SpendLimits
from pipeline.models.structured import Asker, Spent, accept_body, ask_structured, spent_of
from pipeline.providers import choose_model
from pipeline.providers.http.client import ApiClient, RetryPolicy
from tests.support.provider_server import Behaviour, HalfBody, Received, Status
from tests.support.scripted_model import ScriptedModel, refuses, says

ONCE = RetryPolicy(attempts=1, total_seconds=60.0, backoff_seconds=0.0)
PRICES = {"m-1": Price(input=10, output=40)}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
QUESTIONS = [f"Question {number}: {'word ' * (17 * number % 90)}" for number in range(24)]
LONGEST_ANSWER = 400


def takes(usage: Mapping[str, Any], content: Any = None) -> Status:
    """An answer that states this usage."""
    good = says({"n": 1} if content is None else content)
    return good._replace(body={**good.body, "usage": dict(usage)})


def thrifty(received: Received) -> Behaviour:
    """An answer that takes what its request is long, and less than it may."""
    words = len(json.dumps(received.body).split())
    return takes({"prompt_tokens": words, "completion_tokens": 20 + 7 * words % 300})


class Came(NamedTuple):
    """What all questions came to."""

    answered: list[Spent]
    """What each answer of the server took, as it states."""
    meter: Meter
    statuses: list[str]

    @property
    def total(self) -> Spent:
        """All that the server answered."""
        return Spent(*(sum(figures) for figures in zip(*self.answered, strict=True))) if self.answered else Spent()


def asks(
    respond: Callable[[Received], Behaviour],
    limits: SpendLimits,
    prices: Mapping[str, Price] = MappingProxyType({}),
    questions: list[str] | None = None,
    may_ask: Callable[[], bool] = lambda: True,
) -> Came:
    """All questions at once, eight of them under way at a time."""
    sent: list[str] = []

    def answer(received: Received) -> Behaviour:
        behaviour = respond(received)
        if isinstance(behaviour, Status) and behaviour.status == 200:
            sent.append(json.dumps(behaviour.body))
        return behaviour

    async def ask(url: str) -> tuple[Meter, list[str]]:
        chosen = choose_model({}, model="m-1", base_url=url)
        meter = Meter("m-1", prices, limits, 8, may_ask=may_ask)
        async with ApiClient(chosen.endpoint, ONCE, 8, accept_body) as client:
            asker = Asker(client, chosen, AskOptions(max_tokens=LONGEST_ANSWER), meter)
            asked = [ask_structured(asker, each, "", SCHEMA, lambda value: value) for each in questions or QUESTIONS]
            return meter, [said.status for said in await asyncio.gather(*asked)]

    with ScriptedModel(answer) as server:
        meter, statuses = asyncio.run(ask(server.url))
    return Came([spent_of([payload], "m-1", prices) for payload in sent], meter, statuses)


@pytest.mark.parametrize(
    "limits",
    [
        *(SpendLimits(tokens=limit) for limit in (1, 500, 1_500, 3_000, 5_000)),
        *(SpendLimits(cost=limit) for limit in (0.000001, 0.01, 0.04, 0.1)),
    ],
)
def test_tokens_and_cost_stay_within_one_calls_size_of_their_limit(limits: SpendLimits) -> None:
    came = asks(thrifty, limits, PRICES)
    if limits.tokens is not None:
        assert limits.tokens <= came.total.tokens < limits.tokens + max(each.tokens for each in came.answered)
    if limits.cost is not None:
        assert limits.cost <= came.total.cost < limits.cost + max(each.cost for each in came.answered)
    assert (came.meter.spent[:3], came.meter.spent.cost) == (came.total[:3], pytest.approx(came.total.cost))
    assert came.meter.used_up() == ("cost" if limits.tokens is None else "tokens")
    assert came.statuses.count("ok") == len(came.answered) < len(QUESTIONS)


@pytest.mark.parametrize("limit", [0.01, 0.04, 0.1])
def test_a_cost_that_only_answers_state_is_held_too(limit: float) -> None:
    def respond(received: Received) -> Behaviour:
        said = thrifty(received)
        assert isinstance(said, Status)
        usage = said.body["usage"]
        return takes({**usage, "cost": (usage["prompt_tokens"] * 10 + usage["completion_tokens"] * 40) / 1e6})

    came = asks(respond, SpendLimits(cost=limit))
    assert limit <= came.total.cost < limit + max(each.cost for each in came.answered)


def test_answers_that_take_more_teach_the_meter_and_those_without_usage_count_by_our_own_tokens() -> None:
    greedy = takes({"prompt_tokens": 3_000, "completion_tokens": 2_000})
    came = asks(lambda received: greedy, SpendLimits(tokens=22_000))
    assert came.total.tokens == 25_000
    came = asks(lambda received: takes({}, {"n": "word " * 50}), SpendLimits(tokens=2_000), PRICES)
    assert came.meter.used_up() == "tokens"
    assert came.meter.spent.calls == len(came.answered) < len(QUESTIONS)
    assert came.meter.spent.tokens_out >= 50 * len(came.answered)


class Meeting:
    """Answers after the first one are held back until so many calls are under way; `most` is how many ever were."""

    def __init__(self, wanted: int) -> None:
        self.barrier = threading.Barrier(wanted)
        self.lock = threading.Lock()
        self.calls = self.now = self.most = 0

    def __call__(self, received: Received) -> Behaviour:
        with self.lock:
            self.calls += 1
            self.now += 1
            self.most = max(self.most, self.now)
            is_first = self.calls == 1
        if not is_first:
            self.barrier.wait(20)
        with self.lock:
            self.now -= 1
        return takes({"prompt_tokens": 10, "completion_tokens": 5})


@pytest.mark.parametrize(
    ("limits", "together"),
    [
        (SpendLimits(), 8),
        (SpendLimits(tokens=100_000), 8),
        (SpendLimits(tokens=1_450), 2),
        (SpendLimits(tokens=600), 1),
    ],
)
def test_a_call_that_does_not_fit_waits_until_those_under_way_are_settled(limits: SpendLimits, together: int) -> None:
    """Each may take 400 tokens and what its question has, and takes 15."""
    meeting = Meeting(together)
    came = asks(meeting, limits, questions=["How many?"] * 17)
    assert (meeting.most, came.meter.spent[:3]) == (together, (17, 170, 85))


@pytest.mark.parametrize(
    ("failure", "cut_off"),
    [(refuses("no such key", 401), 0), (Status(500, {}, {"error": {"message": "away"}}), 0), (HalfBody(), 1)],
)
def test_a_call_without_an_answer_takes_nothing_unless_its_answer_was_lost(failure: Behaviour, cut_off: int) -> None:
    came = asks(lambda received: failure, SpendLimits(), questions=QUESTIONS[:1])
    assert (came.statuses, came.meter.spent, came.meter.cut_off.calls) == (["http_error"], Spent(), cut_off)
    assert (came.meter.cut_off.tokens > LONGEST_ANSWER) == bool(cut_off)
    many = asks(lambda received: failure, SpendLimits(tokens=1_500))
    assert many.meter.used_up() == ("tokens" if cut_off else None), "lost answers count against the limit"
    assert not cut_off or many.meter.cut_off.calls < 5


def test_once_nobody_may_be_asked_calls_that_wait_are_refused() -> None:
    going_on = [True]

    def respond(received: Received) -> Behaviour:
        going_on[0] = False
        return thrifty(received)

    came = asks(respond, SpendLimits(tokens=500), may_ask=lambda: going_on[0])
    assert came.statuses.count("ok") == 1

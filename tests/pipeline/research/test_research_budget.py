from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.cli.research import shortfalls
from pipeline.models.structured import Spent
from pipeline.research.options import Limits
from tests.support.budget_bench import COST_LIMITS, TOKEN_LIMITS, Counting, overshoot
from tests.support.provider_server import Status
from tests.support.research_process import Servers, options_in, run_here
from tests.support.scripted_model import says


@pytest.mark.parametrize(
    "limits",
    [
        *(Limits(tokens=limit) for limit in TOKEN_LIMITS[1::2]),
        *(Limits(cost=limit) for limit in COST_LIMITS[1::2]),
        *(pytest.param(Limits(tokens=limit), marks=pytest.mark.rare) for limit in TOKEN_LIMITS[::2]),
        *(pytest.param(Limits(cost=limit), marks=pytest.mark.rare) for limit in COST_LIMITS[::2]),
    ],
)
def test_a_run_takes_no_more_than_its_limit_and_one_call(servers: Servers, runs_dir: Path, limits: Limits) -> None:
    came = overshoot(servers, runs_dir, limits)
    if limits.tokens is not None:
        assert limits.tokens <= came.total.tokens < limits.tokens + came.largest.tokens
    if limits.cost is not None:
        assert limits.cost <= came.total.cost < limits.cost + came.largest.cost
    metrics = came.finished.metrics
    assert (metrics.tokens_in, metrics.tokens_out) == (came.total.tokens_in, came.total.tokens_out)
    assert metrics.cost_est == pytest.approx(came.total.cost)
    assert came.finished.stop_reason == ("tokens" if limits.tokens is not None else "cost")
    assert came.finished.passed


@pytest.mark.parametrize(
    "said", [says('{"sections": [', stop="length"), says("I would rather talk about the weather."), says("")]
)
def test_a_model_that_never_ends_or_is_no_use_spends_no_more(servers: Servers, runs_dir: Path, said: Status) -> None:
    """Each answer takes 120 tokens, those of second tries with room for more and of repairs too."""
    servers.model.respond = lambda received: said
    servers.model.calls.clear()
    finished = run_here(options_in(runs_dir, servers, limits=Limits(tokens=400), workers=5), servers)
    assert (len(servers.model.calls), finished.metrics.tokens_in + finished.metrics.tokens_out) == (4, 480)
    assert finished.stop_reason == "tokens"
    assert finished.passed


def test_the_summary_tells_of_useless_answers_and_of_costs_that_nobody_knows(servers: Servers, runs_dir: Path) -> None:
    servers.model.respond = lambda received: says("I would rather talk about the weather.")
    finished = run_here(options_in(runs_dir, servers), servers)
    assert finished.unusable > 1
    (line,) = shortfalls(finished)
    assert line.startswith(f"The model gave no usable answer to {finished.unusable} questions;")
    cut = finished.metrics.model_copy(update={"calls_cut_off": 1, "tokens_cut_off": 4689, "cost_cut_off": None})
    lines = list(shortfalls(finished._replace(unusable=0, metrics=cut, unpriced=1)))
    assert len(lines) == 1
    assert lines[0].endswith("cost not known.")
    assert "0.0000 USD" in "".join(shortfalls(finished._replace(metrics=cut, unpriced=0)))


@pytest.mark.rare
def test_after_kills_a_run_records_all_that_was_answered(
    servers: Servers, run_elsewhere: Callable[..., None], runs_dir: Path
) -> None:
    """One call at a time is under way, and the kill comes while the model thinks: nothing else can be missing."""
    options = options_in(runs_dir, servers)
    answered: list[Spent] = []
    for hangs_at in (1, 2, 3):
        model = servers.model.respond = Counting(hangs_at)
        run_elsewhere(options, hanging=model.hanging)
        answered += model.answered
    model = servers.model.respond = Counting()
    metrics = run_here(options, servers).metrics
    answered += model.answered
    assert metrics.tokens_in == sum(each.tokens_in for each in answered)
    assert metrics.tokens_out == sum(each.tokens_out for each in answered)
    assert (metrics.cost_est, metrics.calls_cut_off) == (pytest.approx(sum(each.cost for each in answered)), 3)
    assert metrics.tokens_cut_off
    assert metrics.tokens_cut_off > 3 * 4096


def test_calls_that_a_kill_cut_off_count_against_the_limit(
    servers: Servers, run_elsewhere: Callable[..., None], runs_dir: Path
) -> None:
    """Three calls at a time: what was answered and not yet recorded is among those that were cut off."""
    options = options_in(runs_dir, servers, workers=3, limits=Limits(tokens=24_000))
    first = servers.model.respond = Counting(4)
    run_elsewhere(options, hanging=first.hanging)
    second = servers.model.respond = Counting()
    metrics = run_here(options, servers).metrics
    answered = sum(each.tokens for each in (*first.answered, *second.answered))
    recorded = metrics.tokens_in + metrics.tokens_out
    assert metrics.calls_cut_off in (1, 2, 3)
    assert metrics.tokens_cut_off
    assert recorded <= answered <= recorded + metrics.tokens_cut_off
    assert recorded + metrics.tokens_cut_off < 24_000 + first.total.tokens

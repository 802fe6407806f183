"""The list of models and prices that comes along, and what follows from it."""

import json
import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from exports.cli import main
from pipeline.core.errors import InputError
from pipeline.core.schema import PROVIDERS, Price
from pipeline.providers import get_provider
from pipeline.providers.cost import (
    ModelList,
    Usage,
    batch_price,
    cost_of,
    list_notes,
    list_rows,
    missing_price,
    read_model_list,
)
from tests.support.places import ROOT

LISTED = read_model_list()
SHIPPED = ROOT / "pipeline" / "providers" / "models.toml"


def test_each_default_is_the_general_model_of_its_provider_with_its_page() -> None:
    for name in PROVIDERS:
        listed = LISTED.models[get_provider(name).api().model]
        assert (listed.provider, listed.role) == (name, "general")
        assert listed.page.startswith("https://")
        assert listed.date or name == "perplexity"  # whose page says a season only, so that its price is not known
        assert {model.role for model in LISTED.models.values() if model.provider == name} >= {"general", "small"}


def test_a_price_is_known_only_where_a_dated_page_says_it() -> None:
    assert {name for name, model in LISTED.models.items() if model.price} == set(LISTED.prices())
    assert not {name for name in LISTED.prices() if name.startswith("gemini")}
    model = LISTED.models["claude-sonnet-5-5"]
    for change in ({"page": ""}, {"date": None}, {"price": None}):
        models = {"claude-sonnet-5-5": model.model_copy(update=change)}
        assert LISTED.model_copy(update={"models": models}).prices() == {}


@pytest.mark.parametrize(
    ("model", "usage", "cost"),
    [
        ("claude-sonnet-5-5", Usage(1_000_000, 100_000, 3), 2 + 1 + 0.03),
        ("claude-haiku-5-5", Usage(100_000, 0, 1), 0.01 + 0.01),
        ("claude-haiku-5-5", Usage(100_001, 1000, 1), 0.0500005 + 0.0025 + 0.01),
        ("grok-4.7", Usage(200_001, 1000, 0), 0.800004 + 0.012),
        ("gpt-6.2-sol", Usage(1000, 1000, 0), 0.002 + 0.01),
        ("gpt-6.2-sol", Usage(1000, 1000, 1), None),
        ("perplexity/sonar", Usage(1000, 1000, 1, 0.07), 0.07),
        ("gemini-4-hydrogen", Usage(1000, 1000, 1), None),
        ("claude-haiku-5-5", Usage(0, 0, 1), None),
    ],
)
def test_a_request_costs_what_the_list_says_of_its_size_and_searches(
    model: str, usage: Usage, cost: float | None
) -> None:
    assert cost_of(usage, LISTED.prices().get(model)) == (cost if cost is None else pytest.approx(cost))


def test_in_a_batch_tokens_cost_the_share_that_is_known_and_else_all() -> None:
    prices = LISTED.prices()
    for model, share in (("claude-sonnet-5-5", 0.5), ("grok-4.7", 1.0)):
        price, batch = prices[model], batch_price(prices[model], 0.5)
        assert batch
        assert (batch.input, batch.output) == (price.input * share, price.output * share)
        assert (batch.above_input, batch.search) == (price.above_input * share, price.search)
    own = batch_price(Price(input=4, output=8), 0.5)
    assert own == Price(input=2, output=4)
    assert batch_price(Price(input=4, output=8), get_provider("grok").batch_token_price) == Price(input=4, output=8)
    assert batch_price(Price(input=4, output=8, batch=0.25), 1) == Price(input=1, output=2, batch=0.25)
    assert batch_price(prices["claude-sonnet-5-5"], None) == prices["claude-sonnet-5-5"]


def test_a_large_request_costs_no_less_where_a_price_of_ones_own_says_only_from_where_it_is_large() -> None:
    assert cost_of(Usage(2_000_000, 1_000_000), Price(input=1, output=2, above=1000)) == 4
    assert cost_of(Usage(2_000_000, 1_000_000), Price(input=1, output=2, above=1000, above_input=3)) == 8


def test_what_is_missing_is_named() -> None:
    prices = LISTED.prices()
    assert [missing_price(name, prices.get(name)) for name in ("grok-4.7", "gpt-6.2-sol", "x")] == [
        "",
        "the price of a search by 'gpt-6.2-sol'",
        "the price of 'x'",
    ]


def test_an_entry_older_than_120_days_is_said_to_be_old() -> None:
    for days, is_old in ((120, False), (121, True)):
        day = datetime.now(UTC).date() - timedelta(days=days)
        model = LISTED.models["claude-sonnet-5-5"].model_copy(update={"date": day})
        models = LISTED.model_copy(update={"models": {"claude-sonnet-5-5": model}})
        [note], [_, row] = list_notes(models), list_rows(models, {}, [], {})
        assert (f"{days} days old, so look there" in note, row[-1] == f"{day} old") == (is_old, is_old)


def test_the_users_prices_go_before_those_of_the_list_and_stand_there_where_it_lacks_the_model() -> None:
    own = {"gpt-6.2-sol": Price(input=1, output=2, search=3), "mine": Price(input=4, output=5)}
    rows = {row[1]: row for row in list_rows(LISTED, own, ["grok-4.7", "mine"], {"openai": 0.5})}
    assert rows["gpt-6.2-sol"] == ("openai", "gpt-6.2-sol", "general", "1", "2", "3", "0.5", "yours")
    assert rows["grok-4.7"][2:-1] == ("default", "2", "6", "5", "1")
    assert rows["gpt-5.6"][3:] == ("–",) * 5
    assert rows["mine"] == ("–", "mine", "default", "4", "5", "–", "–", "yours")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('tokens = "million"', 'tokens = "thousand"', "`tokens`: it needs one of 'million', and 'thousand' was found"),
        ('tokens = "million"', "", "is wrong at `tokens`: it is missing."),
        ('currency = "USD"', 'currency = "EUR"', "is wrong at `currency`: it needs one of 'USD'"),
        (
            "input = 2, output = 10",
            "input = -2, output = 10",
            "`models.gpt-6.2-sol.price.input`: it needs 0 or more, and",
        ),
        ("batch = 0.5", "batch = 50", "`models.gpt-6.2-sol.price.batch`: it needs 1 at the most, and 50 was found"),
        ("search = 10, batch", "search = -10, batch", "`models.claude-sonnet-5-5.price.search`: it needs 0 or more"),
        (
            'provider = "claude"',
            'provider = "anthropic"',
            "`models.claude-sonnet-5-5.provider`: it needs one of 'openai'",
        ),
        ("date = 2026-11-17", "date = 2999-11-17", "`models.gpt-6.2-sol.date` is in the future: 2999-11-17"),
        ("date = 2026-11-17", 'date = "autumn"', "`models.gpt-6.2-sol.date`: it needs a date such as 2026-11-27, and"),
        ("date = 2026-11-17", "dated = 2026-11-17", "`models.gpt-6.2-sol.dated`: it is unknown."),
        ("date = 2026-11-17", "date = 2026-11-17T10:00:00", "`models.gpt-6.2-sol.date`: it needs a date such as"),
        ("[10386, 20674]", "[1, 2, 3]", "`usual.claude.input`: it needs 2 at the most, and [1, 2, 3] was found"),
        ("gemini = {", "gemin = {", "`usual.gemin.[key]`: it needs one of 'openai', 'claude'"),
        ("role = ", "rolle = ", "`models.gpt-6.2-sol.role`: it is missing."),
        ("[models", "[models", ""),
        ("[models", "models", "cannot be read: it is not TOML in UTF-8"),
    ],
)
def test_a_list_of_ones_own_is_read_or_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    text = SHIPPED.read_text(encoding="utf-8")
    assert old in text
    Path("mine.toml").write_text(text.replace(old, new, 1), encoding="utf-8")
    Path("citejury.toml").write_text('model_list = "mine.toml"\n', encoding="utf-8")
    done = CliRunner().invoke(main, ["pipeline", "models"])
    if not says:
        assert (done.exit_code, "claude-sonnet-5-5" in done.stdout) == (0, True)
        return
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    with pytest.raises(InputError, match=re.escape(says)):
        read_model_list("mine.toml")
    with pytest.raises(InputError, match=r"'none.toml' cannot be read: No such file or directory\."):
        read_model_list("none.toml")


def test_the_command_lists_models_prices_pages_and_the_default() -> None:
    done = CliRunner().invoke(
        main, ["pipeline", "models"], env={"CITEJURY_MODELS": json.dumps({"claude": "claude-haiku-5-5"})}
    )
    assert done.exit_code == 0
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["claude", "claude-haiku-5-5", "default", "0.1", "0.5", "10", "1", "2026-10-07"] in [
        each[:8] for each in lines
    ]
    assert "claude-sonnet-5-5: https://platform.claude.com/docs/zh-CN/models/sonnet-5-5/overview" in done.stdout
    assert "others than its provider say (USD a million tokens, a thousand searches): search = 10 (" in done.stdout
    assert isinstance(LISTED, ModelList)
    assert max(model.date for model in LISTED.models.values() if model.date) <= date(2026, 11, 27)

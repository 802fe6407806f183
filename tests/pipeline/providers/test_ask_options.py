"""What may be asked and of whom: options, models, keys and base URLs, and what is refused before anything is sent."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pipeline.asking.questions import read_options
from pipeline.core.errors import InputError, SettingsError
from pipeline.core.schema import PROVIDERS, AskOptions, ProviderName
from pipeline.providers import every_provider, get_provider, provider_name, read_base_urls
from pipeline.providers.http.request import ProviderRequest
from pipeline.settings import read_settings
from tests.support.places import NO_SHARED, ROOT, SHARED

README = ROOT / "pipeline" / "README.md"
RECORDINGS = SHARED / "recordings"

PLAIN = AskOptions()
TARGETS = [(provider.name, api.name) for provider in every_provider() for api in provider.apis]
# Of each option a value that every provider with a place for it takes, and a model that takes a temperature.
VALUES: dict[str, Any] = {
    "allowed_domains": ("who.int", "bund.de"),
    "blocked_domains": ("example.com",),
    "country": "JP",
    "recency": "week",
    "max_uses": 3,
    "temperature": 0.2,
    "max_tokens": 2048,
}
WARM_MODELS: dict[str, str] = {"openai": "gpt-4.1", "claude": "claude-sonnet-4-6"}


def build(provider: ProviderName, model: str = "", options: AskOptions = PLAIN, api: str = "") -> ProviderRequest:
    spoken = get_provider(provider).api(api)
    return spoken.request(model or spoken.model, "Cite.", "Is it so?", options)


def at(body: Any, place: str) -> Any:
    """What stands in the body at a place such as `tools[0].filters.allowed_domains`; None where there is none."""
    for step in re.findall(r"[^.\[\]]+", place):
        try:
            body = body[int(step) if step.isdigit() else step]
        except (KeyError, IndexError):
            return None
    return body


@pytest.mark.parametrize(("provider", "api"), TARGETS)
@pytest.mark.parametrize("option", list(AskOptions.model_fields))
def test_the_table_of_options_says_what_is_sent(provider: ProviderName, api: str, option: str) -> None:
    model = WARM_MODELS.get(provider, "")
    options = AskOptions(**{option: VALUES[option]})
    body = build(provider, model, options, api).body
    place = get_provider(provider).api(api).options.get(option)
    if place:
        assert at(body, place)
        assert at(body, place) != at(build(provider, model, PLAIN, api).body, place)
    else:
        assert body == build(provider, model, PLAIN, api).body
    assert get_provider(provider).api(api).unsupported(options, model or "any") == (() if place else (option,))


@pytest.mark.skipif(not RECORDINGS.is_dir(), reason=NO_SHARED)
@pytest.mark.parametrize(
    ("recording", "provider", "options"),
    [
        ("openai/responses_4omini_weather_with_sources", "openai", ["country"]),
        ("openai/responses_answer_date_only", "openai", ["temperature"]),
        ("openai/responses_incomplete_max_tokens_empty", "openai", ["max_tokens"]),
        ("anthropic/followup_turn_citation_without_search_block", "claude", ["max_uses", "max_tokens"]),
        ("gemini/max_tokens_no_parts", "gemini", ["temperature", "max_tokens"]),
        (
            "perplexity/agent_domain_filter_10_results_2_refs",
            "perplexity",
            ["allowed_domains", "recency", "max_tokens"],
        ),
    ],
)
def test_options_stand_where_requests_that_were_answered_had_them(
    recording: str, provider: ProviderName, options: list[str]
) -> None:
    sent = json.loads((RECORDINGS / f"{recording}.meta.json").read_text(encoding="utf-8"))["request_body"]
    places = get_provider(provider).api().options
    assert [option for option in options if at(sent, places[option]) is None] == []


@pytest.mark.skipif(not RECORDINGS.is_dir(), reason=NO_SHARED)
@pytest.mark.parametrize(
    ("recording", "provider"),
    [
        ("anthropic/sonnet5_cran_date_one_citation", "claude"),
        ("gemini/flash35_ruby_version_6_chunks", "gemini"),
        ("xai/responses_grok43_ruby_3_annotations", "grok"),
    ],
)
def test_the_search_tool_is_the_one_that_was_answered_with_citations(recording: str, provider: ProviderName) -> None:
    sent = json.loads((RECORDINGS / f"{recording}.meta.json").read_text(encoding="utf-8"))["request_body"]
    assert build(provider).body["tools"] == sent["tools"]
    model = get_provider(provider).api().model
    assert sent.get("model", model) == model


def test_every_provider_names_options_that_there_are_and_the_apis_of_its_setting() -> None:
    for provider in every_provider():
        assert all(set(api.options) <= set(AskOptions.model_fields) == set(VALUES) for api in provider.apis)
        assert all("max_tokens" in api.options for api in provider.apis)
        names = tuple(api.name for api in provider.apis)
        setting = provider.api_setting
        assert (
            setting is None if len(names) == 1 else setting and (setting.choices, setting.default) == (names, names[0])
        )
    assert len([provider for provider in every_provider() if provider.continue_turn]) == 1  # see `continue_turn`


def test_a_temperature_that_the_model_does_not_take_is_left_out_and_named() -> None:
    options = AskOptions(temperature=0.2)
    for provider in ("openai", "claude", "perplexity"):
        assert build(provider, options=options) == build(provider)
        api = get_provider(provider).api()
        assert api.unsupported(options, api.model) == ("temperature",)


@pytest.mark.parametrize(
    ("provider", "model", "takes"),
    [
        ("openai", "gpt-4.1-2025-04-14", True),
        ("openai", "gpt-5.6-sol", False),
        ("openai", "gpt-12", False),
        ("openai", "o4-mini", False),
        ("openai", "gpt-4o-search-preview", False),
        ("openai", "openai/gpt-5.6", False),
        ("openai", "anthropic/claude-opus-4.8", False),
        ("openai", "deepseek/deepseek-chat", True),
        ("claude", "claude-haiku-4-5-20251001", True),
        ("claude", "claude-opus-4-20250514", True),
        ("claude", "claude-opus-4-7", False),
        ("claude", "claude-sonnet-5", False),
        ("claude", "claude-opus-10", False),
        ("gemini", "gemini-3.5-flash", True),
        ("grok", "grok-4.3", True),
        ("perplexity", "fast", False),
    ],
)
def test_a_temperature_goes_only_to_models_that_take_one(provider: ProviderName, model: str, takes: bool) -> None:
    assert get_provider(provider).api().takes_temperature(model) is takes


def test_the_settings_that_the_readme_shows_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"^```toml\n(.*?)^```", README.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    read = []
    for block in blocks:
        Path("citejury.toml").write_text(block, encoding="utf-8")
        read.append(read_settings())
    prices, prompts, settings = read
    assert prices.prices
    assert prompts.prompts.system
    assert settings.gemini_api == "interactions"
    assert read_base_urls(settings.base_urls)["openai"] != get_provider("openai").base_url
    for name, model in settings.models.items():
        provider = provider_name(name)
        assert build(provider, model, api=settings.apis.get(provider, "")).body["tools"]


def test_options_are_read_as_the_providers_want_them() -> None:
    assert read_options() == AskOptions()
    options = read_options(
        allowed_domains=[" WHO.int ", "who.int.", "bücher.de"], country="jp", recency="Week", max_uses=1, temperature=0
    )
    assert options == AskOptions(
        allowed_domains=("who.int", "xn--bcher-kva.de"), country="JP", recency="week", max_uses=1, temperature=0
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"country": "UK"}, "Did you mean 'GB'"),
        ({"country": "Japan"}, "two letters"),
        ({"country": "XX"}, "no country 'XX'"),
        ({"recency": "wek"}, "Did you mean 'week'"),
        ({"recency": "2025"}, "Give one of day, week, month, year"),
        ({"allowed_domains": ["https://www.who.int/news"]}, r"Did you mean 'www\.who\.int'"),
        ({"allowed_domains": ["who.int/news"]}, r"Did you mean 'who\.int'"),
        ({"blocked_domains": ["localhost"]}, "not the host name"),
        ({"blocked_domains": ["-who.int,bund.de"]}, "not the host name"),
        ({"blocked_domains": [""]}, "not the host name"),
        ({"allowed_domains": ["-reddit.com"]}, r"Did you mean 'reddit\.com'"),
        ({"allowed_domains": ["who..int"]}, "not the host name"),
        ({"allowed_domains": ["*.gov"]}, "not the host name"),
        ({"allowed_domains": ["a.de"], "blocked_domains": ["A.de"]}, r"'a\.de' is both"),
        ({"max_uses": 0}, "0 searches"),
        ({"temperature": 2.1}, "outside of 0 to 2"),
        ({"temperature": float("nan")}, "outside of 0 to 2"),
        ({"max_tokens": 0}, "0 tokens"),
    ],
)
def test_a_value_that_nobody_takes_is_refused_with_what_was_meant(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_options(**given)


def test_the_key_goes_into_the_header_of_its_provider() -> None:
    assert {
        provider: get_provider(provider).endpoint("https://host", "k-1").key_headers() for provider in PROVIDERS
    } == {
        "openai": {"authorization": "Bearer k-1"},
        "claude": {"x-api-key": "k-1"},
        "gemini": {"x-goog-api-key": "k-1"},
        "grok": {"authorization": "Bearer k-1"},
        "perplexity": {"authorization": "Bearer k-1"},
    }


@pytest.mark.parametrize("key", ["planted key", "planted\n", "plänted", "planted\x00"])
def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(SettingsError, match="OPENAI_API_KEY") as caught:
        get_provider("openai").endpoint("https://host", key).key_headers()
    assert "planted" not in str(caught.value)
    assert "plänted" not in str(caught.value)


def test_base_urls_of_the_settings_stand_over_the_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("citejury.toml").write_text(
        'openai_api = "openrouter"\n[base_urls]\nopenai = "https://openrouter.ai/api/v1/"\n', encoding="utf-8"
    )
    settings = read_settings()
    assert settings.openai_api == "openrouter"
    assert read_base_urls(settings.base_urls) == {
        **{provider.name: provider.base_url for provider in every_provider()},
        "openai": "https://openrouter.ai/api/v1",
    }
    assert read_base_urls({"xai": "http://127.0.0.1:8/v1"})["grok"] == "http://127.0.0.1:8/v1"
    assert read_base_urls({"claude": "http://proxy:4000"})["claude"] == "http://proxy:4000"


def test_openai_is_spoken_to_by_responses_unless_the_settings_say_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_settings().openai_api == "responses"
    monkeypatch.setenv("CITEJURY_OPENAI_API", "completions")
    with pytest.raises(SettingsError, match="openai_api"):
        read_settings()


@pytest.mark.parametrize(
    "url",
    [
        "api.openai.com",
        "https://",
        "https://user:planted@host",
        "https://host/v1?key=planted",
        "https://host:port",
        "http://api.openai.com/v1",
        "ftp://host",
    ],
)
def test_a_base_url_that_no_key_may_be_sent_to_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="base URL of openai") as caught:
        read_base_urls({"openai": url})
    assert "planted" not in str(caught.value)


def test_a_base_url_of_an_unknown_provider_names_the_nearest() -> None:
    with pytest.raises(SettingsError, match="Did you mean 'openai'"):
        read_base_urls({"opnai": "https://host"})

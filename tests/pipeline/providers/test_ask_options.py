import re
from pathlib import Path
from typing import Any

import pytest

from pipeline.asking.questions import read_options
from pipeline.core.errors import InputError, SettingsError
from pipeline.core.schema import PROVIDERS, AskOptions
from pipeline.providers import every_provider, get_provider, provider_name, read_base_urls
from pipeline.settings import read_settings
from tests.support.places import ROOT, SHARED

README = ROOT / "pipeline" / "README.md"
RECORDINGS = SHARED / "recordings"


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
        spoken = get_provider(provider).api(settings.apis.get(provider, ""))
        assert spoken.request(model, "Cite.", "Is it so?", AskOptions()).body["tools"]


def test_options_are_read_as_wanted_and_the_key_goes_into_the_header_of_its_provider() -> None:
    assert read_options() == AskOptions()
    options = read_options(
        allowed_domains=[" WHO.int ", "who.int.", "bücher.de"], country="jp", recency="Week", max_uses=1, temperature=0
    )
    assert options == AskOptions(
        allowed_domains=("who.int", "xn--bcher-kva.de"), country="JP", recency="week", max_uses=1, temperature=0
    )
    assert {
        provider: get_provider(provider).endpoint("https://host", "k-1").key_headers() for provider in PROVIDERS
    } == {
        "openai": {"authorization": "Bearer k-1"},
        "claude": {"x-api-key": "k-1"},
        "gemini": {"x-goog-api-key": "k-1"},
        "grok": {"authorization": "Bearer k-1"},
        "perplexity": {"authorization": "Bearer k-1"},
    }


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


@pytest.mark.parametrize("key", ["planted key", "planted\n", "plänted", "planted\x00"])
def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(SettingsError, match="OPENAI_API_KEY") as caught:
        get_provider("openai").endpoint("https://host", key).key_headers()
    assert not re.search("pl[aä]nted", str(caught.value))


def test_settings_stand_over_the_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_settings().openai_api == "responses"
    text = 'openai_api = "openrouter"\n[base_urls]\nopenai = "https://openrouter.ai/api/v1/"\n'
    Path("citejury.toml").write_text(text, encoding="utf-8")
    settings = read_settings()
    assert settings.openai_api == "openrouter"
    assert read_base_urls(settings.base_urls) == {
        **{provider.name: provider.base_url for provider in every_provider()},
        "openai": "https://openrouter.ai/api/v1",
    }
    assert read_base_urls({"xai": "http://127.0.0.1:8/v1"})["grok"] == "http://127.0.0.1:8/v1"
    assert read_base_urls({"claude": "http://proxy:4000"})["claude"] == "http://proxy:4000"
    monkeypatch.setenv("CITEJURY_OPENAI_API", "completions")
    with pytest.raises(SettingsError, match="openai_api"):
        read_settings()


def test_a_base_url_that_no_key_may_be_sent_to_is_refused() -> None:
    for url in (
        *("api.openai.com", "https://", "https://user:planted@host", "https://host/v1?key=planted"),
        *("https://host:port", "http://api.openai.com/v1", "ftp://host"),
    ):
        with pytest.raises(SettingsError, match="base URL of openai") as caught:
            read_base_urls({"openai": url})
        assert "planted" not in str(caught.value)
    with pytest.raises(SettingsError, match="Did you mean 'openai'"):
        read_base_urls({"opnai": "https://host"})

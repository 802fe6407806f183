"""Who is asked where and with which key: a provider, any server that speaks Chat Completions, or OpenRouter."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from pipeline.errors import InputError, SettingsError
from pipeline.providers import every_provider, get_provider, provider_name
from pipeline.providers.http.request import Endpoint, is_near, read_base_url
from pipeline.providers.provider import Api
from pipeline.schema import ProviderName

# Every server that is compatible with Chat Completions knows OpenRouter's form of it.
_COMPATIBLE: ProviderName = "openai"
_OPENROUTER = "openrouter"
_OPENROUTER_URL = "https://openrouter.ai/api/v1"
_OPENROUTER_KEY = "OPENROUTER_API_KEY"


def read_base_urls(configured: Mapping[str, str]) -> dict[ProviderName, str]:
    """Where each provider is reached: the setting `base_urls` over the defaults, without a slash at the end.

    Raises:
        SettingsError: a name is no provider's, or a URL is none that a key may be sent to.
    """
    try:
        given = {provider_name(name): read_base_url(name, url) for name, url in configured.items()}
    except InputError as error:
        raise SettingsError(f"`[base_urls]` in `citejury.toml`: {error}") from error
    return {**{provider.name: provider.base_url for provider in every_provider()}, **given}


def find_key(variables: Iterable[str], environment: Mapping[str, str]) -> str:
    """The key from the first of the variables that is set; empty where none is."""
    return next((value for name in variables if (value := environment.get(name, "").strip())), "")


class ChosenModel(NamedTuple):
    """Which model is asked, where, and in which way."""

    provider: ProviderName
    model: str
    endpoint: Endpoint
    api: Api

    @property
    def states_cost(self) -> bool:
        """Whether its answers say what they cost."""
        return get_provider(self.provider).states_cost or self.endpoint.base_url == _OPENROUTER_URL


def choose_model(
    environment: Mapping[str, str],
    *,
    model: str = "",
    provider: str = "",
    base_url: str = "",
    base_urls: Mapping[str, str] | None = None,
    apis: Mapping[ProviderName, str] | None = None,
) -> ChosenModel:
    """The model to ask: a provider's, that of any server compatible with Chat Completions, or one of OpenRouter.

    Without a provider, `base_url` is such a server's, and without that it is OpenRouter's. A key is needed but for a
    server on this machine or in its network. `base_urls` and `apis` are the settings of these names.

    Raises:
        InputError: there is no such provider.
        SettingsError: there is no key, the base URL is none that a key may be sent to, or a server has no model named.
    """
    if provider and provider.strip().lower() != _OPENROUTER:
        known = get_provider(provider_name(provider))
        url = read_base_url(known.name, base_url) if base_url else read_base_urls(base_urls or {})[known.name]
        key = _wanted_key(known.key_variables, environment, url)
        api = known.api((apis or {}).get(known.name, ""))
        own = api.json_model or known.apis[0].model
        return ChosenModel(known.name, model or own, known.endpoint(url, key), api)
    url = read_base_url("the model", base_url or _OPENROUTER_URL)
    host = urlsplit(url).hostname or ""
    of_openrouter = bool(provider) or host == urlsplit(_OPENROUTER_URL).hostname
    if not model and not of_openrouter:
        raise SettingsError(f"The server at {host!r} needs the name of a model; give it with `--model`.")
    compatible = get_provider(_COMPATIBLE)
    variable = _OPENROUTER_KEY if of_openrouter else compatible.key_variables[0]
    key = _wanted_key((variable,), environment, url)
    api = compatible.api(_OPENROUTER)
    return ChosenModel(compatible.name, model or api.json_model, compatible.endpoint(url, key, variable), api)


def _wanted_key(variables: tuple[str, ...], environment: Mapping[str, str], url: str) -> str:
    """The key from the first of the variables that is set; empty where none is and the host is near.

    Raises:
        SettingsError: none is set, and the host is not near.
    """
    host = urlsplit(url).hostname or ""
    key = find_key(variables, environment)
    if not key and not is_near(host):
        raise SettingsError(f"There is no key for {host}; set `{variables[0]}`.")
    return key

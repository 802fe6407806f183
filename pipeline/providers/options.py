"""What may be asked of a provider: which option reaches it and under which name, and what it refuses."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, Literal

from pipeline.errors import InputError
from pipeline.schema import Api, AskOptions, ProviderName
from pipeline.text.urls import host_name

_Recency = Literal["", "day", "week", "month", "year"]
_RECENCIES: dict[str, _Recency] = {"day": "day", "week": "week", "month": "month", "year": "year"}

# An address around a host name, or the sign that stands before a blocked one elsewhere.
_ADDRESS = re.compile(r"^(?:[a-z][a-z0-9+.-]*://|-+)?([^/?#:]*).*$", re.IGNORECASE | re.DOTALL)

# Where in the body an option goes; empty where the provider's API has no place for it.
OPTION_SUPPORT: dict[str, dict[ProviderName, str]] = {
    "allowed_domains": {
        "openai": "tools[0].filters.allowed_domains",
        "claude": "tools[0].allowed_domains",
        "gemini": "",
        "grok": "tools[0].filters.allowed_domains",
        "perplexity": "tools[0].filters.search_domain_filter",
    },
    "blocked_domains": {
        "openai": "tools[0].filters.blocked_domains",
        "claude": "tools[0].blocked_domains",
        "gemini": "",
        "grok": "tools[0].filters.excluded_domains",
        "perplexity": "tools[0].filters.search_domain_filter",
    },
    "country": {
        "openai": "tools[0].user_location.country",
        "claude": "tools[0].user_location.country",
        "gemini": "",
        "grok": "",
        "perplexity": "tools[0].user_location.country",
    },
    "recency": {
        "openai": "",
        "claude": "",
        "gemini": "tools[0].google_search.timeRangeFilter",
        "grok": "",
        "perplexity": "tools[0].filters.search_recency_filter",
    },
    "max_uses": {
        "openai": "max_tool_calls",
        "claude": "tools[0].max_uses",
        "gemini": "",
        "grok": "",
        "perplexity": "max_steps",
    },
    "temperature": {
        "openai": "temperature",
        "claude": "temperature",
        "gemini": "generationConfig.temperature",
        "grok": "temperature",
        "perplexity": "",
    },
    "max_tokens": {
        "openai": "max_output_tokens",
        "claude": "max_tokens",
        "gemini": "generationConfig.maxOutputTokens",
        "grok": "max_output_tokens",
        "perplexity": "max_output_tokens",
    },
}

# The same for the other ways to speak to `openai` and `gemini`. Claude's newer search tool takes what the older does.
OTHER_OPTION_SUPPORT: dict[str, dict[Api, str]] = {
    "allowed_domains": {"chat": "", "openrouter": "tools[0].parameters.allowed_domains", "interactions": ""},
    "blocked_domains": {"chat": "", "openrouter": "tools[0].parameters.excluded_domains", "interactions": ""},
    "country": {
        "chat": "web_search_options.user_location.approximate.country",
        "openrouter": "tools[0].parameters.user_location.country",
        "interactions": "",
    },
    "recency": {"chat": "", "openrouter": "", "interactions": ""},
    "max_uses": {"chat": "", "openrouter": "tools[0].parameters.max_uses", "interactions": ""},
    "temperature": {
        "chat": "temperature",
        "openrouter": "temperature",
        "interactions": "generation_config.temperature",
    },
    "max_tokens": {
        "chat": "max_completion_tokens",
        "openrouter": "max_tokens",
        "interactions": "generation_config.max_output_tokens",
    },
}
_OTHER_API_OF: dict[Api, ProviderName] = {"chat": "openai", "openrouter": "openai", "interactions": "gemini"}

# Each takes either a list of allowed sites or one of blocked sites, never both (providers' documentation, 2026).
_ONE_LIST_ONLY = ("claude", "grok", "perplexity", "openrouter")
_MAX_DOMAINS = {"openai": 100, "grok": 5, "perplexity": 20}
_MAX_AGENT_STEPS = 10
_MAX_TEMPERATURE = 2.0
_MAX_CLAUDE_TEMPERATURE = 1.0

# OpenAI's reasoning and search models refuse a temperature, and so does every Claude since Opus 4.7 and Sonnet 5.
_OPENAI_WITHOUT_TEMPERATURE = re.compile(r"(?:o\d|gpt-(?:[5-9]|\d\d)|codex|computer-use)|.*search", re.IGNORECASE)
_CLAUDE_WITH_TEMPERATURE = re.compile(
    r"claude-(?:[23]|instant|haiku-4|sonnet-4|opus-4(?![.-][7-9](?!\d)))", re.IGNORECASE
)

# Perplexity's presets, and those that it named as the successors of its retired models.
_PRESETS = ("fast", "low", "medium", "high", "xhigh")
_RETIRED_MODELS = {
    "sonar": "fast",
    "sonar-pro": "low",
    "sonar-reasoning": "medium",
    "sonar-reasoning-pro": "medium",
    "sonar-deep-research": "high",
}

_COUNTRY_CODES = """
AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA
CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA
GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP
KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS
MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS
RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW
TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW
"""
_COUNTRIES = frozenset(_COUNTRY_CODES.split())
# What people write instead of the code: other lists' codes, three letters, languages.
_MEANT_COUNTRY = {"UK": "GB", "EN": "GB", "EL": "GR", "JA": "JP", "KO": "KR", "UKR": "UA", "GER": "DE", "JPN": "JP"}


def read_options(
    *,
    allowed_domains: Iterable[str] = (),
    blocked_domains: Iterable[str] = (),
    country: str = "",
    recency: str = "",
    max_uses: int | None = None,
    temperature: float | None = None,
    max_tokens: int = AskOptions.model_fields["max_tokens"].default,
) -> AskOptions:
    """What the user asked for, spelt as the providers want it: hosts in lower case and punycode, each once.

    Raises:
        InputError: a value is none that any provider takes; the message names what was probably meant.
    """
    allowed, blocked = _read_domains(allowed_domains), _read_domains(blocked_domains)
    both = sorted({*allowed} & {*blocked})
    if both:
        raise InputError(f"{both[0]!r} is both allowed and blocked; name it in one of the two lists.")
    if max_uses is not None and max_uses < 1:
        raise InputError(f"An answer cannot take {max_uses} searches; give 1 or more.")
    if temperature is not None and not 0 <= temperature <= _MAX_TEMPERATURE:
        raise InputError(f"The temperature {temperature} is outside of 0 to {_MAX_TEMPERATURE:g}.")
    if max_tokens < 1:
        raise InputError(f"An answer cannot have {max_tokens} tokens; give 1 or more.")
    return AskOptions(
        allowed_domains=allowed,
        blocked_domains=blocked,
        country=_read_country(country),
        recency=_read_recency(recency),
        max_uses=max_uses,
        temperature=temperature,
        max_tokens=max_tokens,
    )


def _read_domains(names: Iterable[str]) -> tuple[str, ...]:
    """The host names in lower case and punycode, each once, in their order.

    Raises:
        InputError: a name is no host name with a dot.
    """
    return tuple(dict.fromkeys(_read_domain(name) for name in names))


def _read_domain(name: str) -> str:
    """The host name in lower case and punycode.

    Raises:
        InputError: it is none, or has no dot; the message names the host in an address.
    """
    host = host_name(name.strip()).strip(".")
    if _is_site(host):
        return host
    inner = host_name(_ADDRESS.sub(r"\1", name.strip()))
    hint = f"Did you mean {inner!r}?" if _is_site(inner) else "Give one such as 'who.int'."
    raise InputError(f"{name!r} is not the host name of a site. {hint}")


def _is_site(host: str) -> bool:
    """Whether the host name has a dot, and no label that is empty or begins or ends with a hyphen."""
    labels = host.split(".")
    return len(labels) > 1 and all(label.strip("-") == label != "" for label in labels)


def _read_country(code: str) -> str:
    """The code in upper case; empty where none was given.

    Raises:
        InputError: it is no country of ISO 3166 (alpha-2).
    """
    wanted = code.strip().upper()
    if not wanted or wanted in _COUNTRIES:
        return wanted
    meant = _MEANT_COUNTRY.get(wanted)
    hint = f"Did you mean {meant!r}?" if meant else "Give its two letters by ISO 3166, such as 'DE' or 'JP'."
    raise InputError(f"There is no country {code!r}. {hint}")


def _read_recency(word: str) -> _Recency:
    """The word in lower case; empty where none was given.

    Raises:
        InputError: it is none of day, week, month and year; the message names the nearest.
    """
    wanted = word.strip().lower()
    if not wanted or wanted in _RECENCIES:
        return _RECENCIES.get(wanted, "")
    nearest = get_close_matches(wanted, _RECENCIES, n=1)
    hint = f"Did you mean {nearest[0]!r}?" if nearest else f"Give one of {', '.join(_RECENCIES)}."
    raise InputError(f"A page's age cannot be {word!r}. {hint}")


def how_sent(option: str, provider: ProviderName, api: Api = "responses") -> str:
    """Where in the request's body the option goes; empty where the provider, spoken to by `api`, has no place for it.

    An `api` that is none of the provider's own other ones is its usual one.
    """
    return OTHER_OPTION_SUPPORT[option][api] if _OTHER_API_OF.get(api) == provider else OPTION_SUPPORT[option][provider]


def takes_temperature(provider: ProviderName, model: str, api: Api = "responses") -> bool:
    """Whether the model accepts a temperature; an unknown model of OpenAI's kind does, an unknown Claude does not.

    Source: providers' model pages; `temperature` is answered by status 400 otherwise.
    """
    if not how_sent("temperature", provider, api):
        return False
    name = model.rpartition("/")[2]
    if provider == "claude" or (provider == "openai" and name.lower().startswith("claude")):
        return _CLAUDE_WITH_TEMPERATURE.match(name) is not None
    return provider != "openai" or _OPENAI_WITHOUT_TEMPERATURE.match(name) is None


def unsupported_options(
    provider: ProviderName, options: AskOptions, model: str, api: Api = "responses"
) -> tuple[str, ...]:
    """The names of the options that were given and do not reach this model, in the order of `AskOptions`."""
    return tuple(
        name
        for name in _given_options(options)
        if not how_sent(name, provider, api) or (name == "temperature" and not takes_temperature(provider, model, api))
    )


def _given_options(options: AskOptions) -> dict[str, Any]:
    """The options that differ from what is asked anyway, by name."""
    return {name: value for name, value in options if value != AskOptions.model_fields[name].default}


def check_options(provider: ProviderName, options: AskOptions, model: str, api: Api = "responses") -> None:
    """Refuse values that the provider would refuse; one that does not reach it is no matter here.

    Raises:
        InputError: the provider would refuse the request, or has no such model.
    """
    name = api if _OTHER_API_OF.get(api) == provider else provider
    if options.allowed_domains and options.blocked_domains and name in _ONE_LIST_ONLY:
        raise InputError(f"{name} takes either allowed or blocked domains, not both. Leave one list out, or {name}.")
    longest = max(len(options.allowed_domains), len(options.blocked_domains))
    if longest > _MAX_DOMAINS.get(name, longest):
        raise InputError(f"{name} takes at most {_MAX_DOMAINS[name]} domains; {longest} were given.")
    if provider == "perplexity":
        _check_preset(model)
        if (options.max_uses or 0) > _MAX_AGENT_STEPS:
            raise InputError(f"perplexity takes at most {_MAX_AGENT_STEPS} searches; {options.max_uses} were given.")
    if (
        provider == "claude"
        and takes_temperature(provider, model)
        and (options.temperature or 0) > _MAX_CLAUDE_TEMPERATURE
    ):
        raise InputError(f"claude takes a temperature of at most 1; {options.temperature:g} was given.")


def is_model_name(name: str) -> bool:
    """Whether Perplexity takes the name as that of a model, `maker/model`, and not as that of a preset."""
    return "/" in name


def _check_preset(name: str) -> None:
    """Refuse a name that is neither that of a preset of Perplexity's nor of a model.

    Raises:
        InputError: it is neither; the message names the nearest, or what took the place of a retired model.
    """
    if name in _PRESETS or is_model_name(name):
        return
    if name in _RETIRED_MODELS:
        raise InputError(
            f"Perplexity retired {name!r}. Ask for the preset {_RETIRED_MODELS[name]!r} or the model "
            "'perplexity/sonar'."
        )
    nearest = get_close_matches(name, _PRESETS, n=1)
    hint = f"Did you mean {nearest[0]!r}?" if nearest else f"The presets are {', '.join(_PRESETS)}."
    raise InputError(f"Perplexity has no preset {name!r}, and a model's name there is 'maker/model'. {hint}")

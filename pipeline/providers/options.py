"""What the user asks of the providers' search and models, read from the words of a command or a file."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Literal

from pipeline.errors import InputError
from pipeline.schema import AskOptions
from pipeline.text.urls import host_name

_Recency = Literal["", "day", "week", "month", "year"]
_RECENCIES: dict[str, _Recency] = {"day": "day", "week": "week", "month": "month", "year": "year"}

# An address around a host name, or the sign that stands before a blocked one elsewhere.
_ADDRESS = re.compile(r"^(?:[a-z][a-z0-9+.-]*://|-+)?([^/?#:]*).*$", re.IGNORECASE | re.DOTALL)

_MAX_TEMPERATURE = 2.0
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

"""A request and where it goes; bodies as JSON, and their values whatever they turn out to be.

What is not of the wanted type counts as absent.
"""

import json
import re
from collections.abc import Mapping
from ipaddress import ip_address
from math import isfinite
from typing import Any, NamedTuple, NoReturn
from urllib.parse import urlsplit

from pipeline.core.errors import ProviderError, SettingsError


class ProviderRequest(NamedTuple):
    """One request: `path` goes below the base URL and begins with a slash, `headers` are those without the key.

    An empty `body` is not sent.
    """

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    method: str = "POST"


class Endpoint(NamedTuple):
    """Where an API is asked, and with which key; its text never shows the key.

    `key_variable` is where the key comes from. Without a key no header carries one.
    """

    name: str
    base_url: str
    key: str = ""
    key_variable: str = ""
    key_header: str = "authorization"

    def __repr__(self) -> str:
        return f"Endpoint(name={self.name!r}, base_url={self.base_url!r}, key={'…' if self.key else ''!r})"

    @property
    def host(self) -> str:
        return urlsplit(self.base_url).hostname or ""

    def url(self, request: ProviderRequest) -> str:
        return f"{self.base_url.rstrip('/')}/{request.path.lstrip('/')}"

    def key_headers(self) -> dict[str, str]:
        """The header that carries the key; never a query parameter, which ends up in logs."""
        if not self.key:
            return {}
        if not self.key.isascii() or not self.key.isprintable() or " " in self.key:
            raise SettingsError(
                f"The key in `{self.key_variable}` holds white space or a letter that no key has. Copy it again."
            )
        return {self.key_header: f"Bearer {self.key}" if self.key_header == "authorization" else self.key}


def read_base_url(name: str, url: str) -> str:
    """Without a slash at the end; SettingsError where it is not https (http only near here), or more than a path."""
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        parts, host = urlsplit(""), ""
    if not host or parts.username or parts.password or parts.query or parts.fragment:
        raise SettingsError(f"The base URL of {name} is not of the form https://host/path. Mend it.")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_near(host)):
        advice = "Give one of the form https://host/path."
        raise SettingsError(f"The base URL of {name} would send the key unencrypted to {host!r}. {advice}")
    return url.strip().rstrip("/")


def is_near(host: str) -> bool:
    """Whether the host is this machine, a private address, or a name without dots, as in a network of containers."""
    try:
        return ip_address(host).is_private
    except ValueError:
        return "." not in host


# A lone surrogate cannot be written as UTF-8, and a NUL no database takes. Each gives way to one character, so that
# the provider's offsets still hold.
_UNWRITABLE = re.compile("[\x00\ud800-\udfff]")


def load_body(text: str) -> Any:
    """The payload's JSON value, characters that no file can carry replaced one for one; ProviderError if it is none."""
    if not text.strip():
        raise ProviderError("The payload is empty; a provider's JSON body is wanted.")
    try:
        body = json.loads(
            text.removeprefix("\ufeff"),
            parse_constant=_refuse_constant,
            # One of more digits than any offset or time has Python might refuse to read.
            parse_int=lambda digits: int(digits) if len(digits) <= 100 else None,
            # One that is too large for a float cannot be written as JSON again.
            parse_float=lambda digits: number if isfinite(number := float(digits)) else None,
        )
        if re.search(r"\\u(?:0000|[dD][89a-fA-F])", text) or _UNWRITABLE.search(text):
            return writable(body)
    except RecursionError as error:
        raise ProviderError("The payload is nested too deeply to be a provider's answer.") from error
    except ValueError as error:
        reason = str(error).split("\n")[0][:100]
        if isinstance(error, json.JSONDecodeError):  # whose own words hold the text
            reason = f"{error.msg} at line {error.lineno}, column {error.colno}"
        raise ProviderError(f"The payload is not JSON ({reason}).") from error
    return body


def encode_body(body: Mapping[str, Any]) -> bytes:
    """Escapes keep what UTF-8 cannot carry, such as half of an emoji, as it was."""
    return json.dumps(body, separators=(",", ":"), allow_nan=False).encode("ascii")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def writable(value: Any) -> Any:
    if isinstance(value, str):
        return _UNWRITABLE.sub("\ufffd", value)
    if isinstance(value, list):
        return [writable(each) for each in value]
    if isinstance(value, dict):
        return {writable(key): writable(each) for key, each in value.items()}
    return value


def as_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_objects(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def as_number(value: Any) -> int | None:
    """The value where it is a whole number, else None; `true` is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def first_object(value: Any) -> dict[str, Any]:
    return as_object(value[0]) if isinstance(value, list) and value else {}


def is_error(body: Any) -> bool:
    """Whether the body is an error and nothing else: `error` is null beside an answer, and told by its `status`."""
    if isinstance(body, list):
        return any(is_error(each) for each in body)
    if not isinstance(body, dict):
        return False
    if body.get("type") == "error":
        return True
    if first_object(body.get("choices")).get("error") is not None:
        return True
    answer = any(body.get(key) for key in ("choices", "output", "content", "candidates"))
    return body.get("error") is not None and not answer and body.get("object") not in ("response", "interaction")

"""A request and where it goes: which path and body, at which address, with which key."""

from ipaddress import ip_address
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from pipeline.errors import SettingsError


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
        """Everything but the key."""
        return f"Endpoint(name={self.name!r}, base_url={self.base_url!r}, key={'…' if self.key else ''!r})"

    @property
    def host(self) -> str:
        """The host that is asked, for a message."""
        return urlsplit(self.base_url).hostname or ""

    def url(self, request: ProviderRequest) -> str:
        """The URL of a request: its path below the base URL."""
        return f"{self.base_url.rstrip('/')}/{request.path.lstrip('/')}"

    def key_headers(self) -> dict[str, str]:
        """The header that carries the key; never a query parameter, which ends up in logs.

        Raises:
            SettingsError: the key holds white space or a letter that no header carries; the message does not show it.
        """
        if not self.key:
            return {}
        if not self.key.isascii() or not self.key.isprintable() or " " in self.key:
            raise SettingsError(
                f"The key in `{self.key_variable}` holds white space or a letter that no key has. Copy it again."
            )
        return {self.key_header: f"Bearer {self.key}" if self.key_header == "authorization" else self.key}


def read_base_url(name: str, url: str) -> str:
    """The base URL without a slash at the end.

    Raises:
        SettingsError: it is not https (http only on this machine or inside a network), or holds more than a path.
    """
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        parts, host = urlsplit(""), ""
    if not host or parts.username or parts.password or parts.query or parts.fragment:
        raise SettingsError(f"The base URL of {name} is not of the form https://host/path. Mend it.")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_near(host)):
        raise SettingsError(
            f"The base URL of {name} would send the key unencrypted to {host!r}. Give one of the form https://host/path."
        )
    return url.strip().rstrip("/")


def is_near(host: str) -> bool:
    """Whether the host is this machine, a private address, or a name without dots, as in a network of containers."""
    try:
        return ip_address(host).is_private
    except ValueError:
        return "." not in host

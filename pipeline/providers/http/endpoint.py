"""Where a provider is asked, what every request there carries, and what is said when it points elsewhere."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import NamedTuple

import httpx

from pipeline.errors import PayloadError
from pipeline.providers.failure import redact
from pipeline.providers.http.transfer import REDIRECT, hide_key
from pipeline.providers.request import ProviderRequest, auth_headers
from pipeline.schema import ProviderName


class Endpoint(NamedTuple):
    """Where a provider is asked, and with which key; its text never shows the key.

    `key_variable` is where the key comes from; empty for the provider's own variable.
    """

    provider: ProviderName
    base_url: str
    key: str
    key_variable: str = ""

    def __repr__(self) -> str:
        """Everything but the key."""
        return f"Endpoint(provider={self.provider!r}, base_url={self.base_url!r}, key={'…' if self.key else ''!r})"


def redirect_error(endpoint: Endpoint, headers: Mapping[str, str]) -> PayloadError:
    """The error for a provider that points elsewhere; the key is not carried there."""
    try:
        host = httpx.URL(headers.get(REDIRECT, "")).host
    except (httpx.InvalidURL, ValueError):  # of a host `xn--…` that stands for nothing, httpx says ValueError
        host = ""
    # A host's name is read in lower case, also where a key is part of it.
    host = redact(hide_key(hide_key(host, endpoint.key), endpoint.key.lower()))[:100]
    target = f"to the host {host!r}" if host else "to another address"
    return PayloadError(
        f"{host_of(endpoint)} redirects {target}; nothing was sent there. Mend the base URL of {endpoint.provider}."
    )


def host_of(endpoint: Endpoint) -> str:
    """The endpoint's host, for a message."""
    return httpx.URL(endpoint.base_url).host


def target_of(endpoint: Endpoint, request: ProviderRequest) -> str:
    """The URL of a request: its path below the base URL."""
    return f"{endpoint.base_url.rstrip('/')}/{request.path.lstrip('/')}"


def headers_of(endpoint: Endpoint) -> dict[str, str]:
    """What every request to the endpoint carries, its key among it; an endpoint without a key carries none.

    Raises:
        SettingsError: the key is nothing that a header can carry.
    """
    key = endpoint.key.strip()
    return {
        "accept": "application/json",
        # Not all that httpx could decode: these two are unpacked here, up to a limit.
        "accept-encoding": "gzip, deflate",
        "content-type": "application/json",
        "user-agent": f"citejury/{version('citejury')}",
        **(auth_headers(endpoint.provider, key, endpoint.key_variable) if key else {}),
    }

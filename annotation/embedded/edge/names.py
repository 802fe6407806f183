"""Who asks, and under which name we are asked: addresses that proxies name, and the header `Host`.

A proxy is believed where the environment says that one with HTTPS stands in front, and where the connection comes from
a trusted address: this machine's own, or those of `CITEJURY_TRUSTED_PROXIES`. Compose's default there is the word
`gateway`, the address from which Docker passes on what reaches the published port.

A name is answered to when it is localhost or a loopback address, is the address that the connection came to or that
was bound, or is listed. Behind a proxy with HTTPS and without a list, the names that the proxy passes on are answered
to as well: a proxy passes on its own names only, and so does nothing but what comes past it need a check.
"""

import contextlib
import ipaddress
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

from annotation.embedded.patches.middleware import is_behind_tls
from pipeline.errors import SettingsError

ALLOW_HOSTS_VARIABLE = "CITEJURY_ALLOW_HOSTS"
BOUND_HOST_VARIABLE = "CITEJURY_BOUND_HOST"
_PROXIES_VARIABLE = "CITEJURY_TRUSTED_PROXIES"
_GATEWAY = "gateway"
_ROUTES = Path("/proc/net/route")
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9_-]{1,63}(?<!-))*")
_LONGEST_NAME = 253

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Names(NamedTuple):
    """Which names are answered to, and whose word about clients is believed."""

    behind_tls: bool = False
    """Whether a proxy with HTTPS stands in front."""
    listed: frozenset[str] = frozenset()
    """Names that are answered to, wherever a request comes from."""
    bound: str = ""
    """The name that the server was told to listen at."""
    proxies: tuple[_Network, ...] = ()
    """Addresses beside this machine's own of whom a proxy's word is believed."""


def read_names(routes: Path = _ROUTES) -> Names:
    """What the environment says, and the system's routes where it asks for the gateway.

    Raises:
        SettingsError: it lists what is no name of a host, or no address.
    """
    listed = os.environ.get(ALLOW_HOSTS_VARIABLE, "").replace(",", " ").split()
    for each in listed:
        if clean_name(each) is None:
            raise SettingsError(f"`{ALLOW_HOSTS_VARIABLE}` lists {each!r}, which is no name of a host without a port.")
    return Names(
        is_behind_tls(),
        frozenset(clean_name(each) or "" for each in listed),
        clean_name(os.environ.get(BOUND_HOST_VARIABLE, "")) or "",
        tuple(_read_proxies(os.environ.get(_PROXIES_VARIABLE, ""), routes)),
    )


def _read_proxies(text: str, routes: Path) -> list[_Network]:
    """Networks from addresses, networks and the word `gateway`, between blanks or commas.

    Raises:
        SettingsError: one is none of these.
    """
    found: list[_Network] = []
    for each in text.replace(",", " ").split():
        try:
            if each != _GATEWAY:
                found.append(ipaddress.ip_network(each))
            elif (gateway := _gateway(routes)) is not None:
                found.append(ipaddress.ip_network(gateway))
        except ValueError as error:
            raise SettingsError(
                f"`{_PROXIES_VARIABLE}` has {each!r}, which is no address, no network and not the word {_GATEWAY}."
            ) from error
    return found


def _gateway(routes: Path) -> _Address | None:
    """The address of the default route; None where there is none, or no Linux.

    Source: proc_pid_net(5), /proc/net/route; the destination 0 is the default, addresses are of the machine's own byte
    order, which is the small end first wherever this runs.
    """
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in routes.read_text(encoding="ascii").splitlines()[1:]:
            _, destination, gateway, *_ = line.split()
            if int(destination, 16) == 0 and int(gateway, 16):
                return ipaddress.IPv4Address(bytes.fromhex(gateway)[::-1])
    return None


def clean_name(text: str) -> str | None:
    """A host's name or address as it is compared: small letters, no brackets, no dot at the end; None if it is none."""
    name = text.strip().lower().removesuffix(".")
    address = _address(name)
    if address is not None:
        return str(address)
    return name if len(name) <= _LONGEST_NAME and _NAME.fullmatch(name) else None


def _address(text: str) -> _Address | None:
    """An address, also in brackets; IPv4 inside IPv6 is taken out. None if it is none."""
    try:
        found = ipaddress.ip_address(text.strip().removeprefix("[").removesuffix("]"))
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def is_answered_to(scope: Any, names: Names) -> bool:
    """Whether the request asks for one of our names; a request that names none, or several, does not."""
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    name = clean_name(_without_port(hosts[0].decode("latin-1"))) if len(hosts) == 1 else None
    if name is None:
        return False
    address = _address(name)
    if name == "localhost" or name.endswith(".localhost") or (address is not None and address.is_loopback):
        return True
    reached = _address(scope["server"][0]) if scope.get("server") else None
    if name in names.listed or name == names.bound or (address is not None and address == reached):
        return True
    came_by_proxy = any(header == b"x-forwarded-proto" for header, _ in scope["headers"])
    return names.behind_tls and not names.listed and came_by_proxy


def _without_port(host: str) -> str:
    """The value of a header `Host` without its port."""
    return re.sub(r":\d{1,5}$", "", host) if host.startswith("[") or host.count(":") == 1 else host


def real_client(scope: Any, names: Names) -> Any:
    """The client's address and port: the one that a trusted proxy names, with port 0, else that of the connection.

    Of several proxies in a row each names who came to it; the last address that is no trusted proxy's is the client's.
    """
    client = scope.get("client")
    if client is None or not names.behind_tls or not _is_trusted(_address(client[0]), scope, names):
        return client
    said = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for").decode("latin-1")
    for text in reversed(said.split(",")):
        address = _address(text)
        if address is None:  # what is further to the left was said by nobody whom we trust
            return client
        client = (str(address), 0)
        if not _is_trusted(address, scope, names):
            break
    return client


def _is_trusted(address: _Address | None, scope: Any, names: Names) -> bool:
    """Whether a proxy at the address is believed: on this machine, or named."""
    if address is None:
        return False
    if address.is_loopback or (scope.get("server") and address == _address(scope["server"][0])):
        return True
    return any(address in network for network in names.proxies if network.version == address.version)

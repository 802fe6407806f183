"""Where a URL from an answer may lead: public web servers only, told by the address that is really connected to.

The URL is judged before every request, the addresses of its host before every connection; the connection is made to
one of the addresses that were judged, while Host and SNI keep the name. So DNS has no second say, and every hop of a
redirect passes the same check, whoever follows it (SECURITY.md#cited-pages).
"""

import asyncio
import re
import socket
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from importlib.metadata import version
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import httpcore
import httpx

from pipeline.citations.addresses import MAX_URL_LENGTH, host_name
from pipeline.core.errors import InputError
from pipeline.core.sentences import packaged_table
from pipeline.providers.http.transfer import NoCookies

Address = IPv4Address | IPv6Address
Allowed = frozenset[tuple[str, int]]
Resolver = Callable[[str, int], Awaitable[Sequence[str]]]

_TIMEOUT = httpx.Timeout(30, connect=10)

_BLOCKED_PORTS = frozenset(
    {1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080}
)

_CLOSED_IPV4, _OPEN_IPV6, _CLOSED_IPV6 = (
    tuple(map(ip_network, networks)) for networks in packaged_table(__file__, "networks.toml").values()
)


async def resolve_host(host: str, port: int) -> list[str]:
    """The addresses of a host name in the system's order; OSError where it has none or the resolver does not answer."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # a label that is empty or longer than 63 characters
        raise socket.gaierror(socket.EAI_NONAME, "this is no host name") from error
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def web_target(url: str | httpx.URL) -> tuple[str, int]:
    """Host and port of an http(s) URL without a user name, as the parser reads them that the connection is made by."""
    shown = repr(str(url)[:80])
    if len(str(url)) > MAX_URL_LENGTH:
        raise InputError(f"The URL {shown}… is longer than the {MAX_URL_LENGTH:,} characters that are read.")
    try:
        parsed = httpx.URL(url)
        name = parsed.host
    except (httpx.InvalidURL, ValueError) as error:  # of a host `xn--…` that stands for nothing, httpx says ValueError
        raise InputError(f"{shown} is no URL; it is not fetched.") from error
    if parsed.scheme not in ("http", "https") or not name:
        raise InputError(f"{shown} is not an http or https URL; it is not fetched.")
    if parsed.userinfo:
        raise InputError(f"The URL of {name!r} holds a user name or password before the `@`; it is not fetched.")
    host = parsed.raw_host.decode("ascii").strip("[]")
    if _address_of(host) is None and not host_name(host):
        raise InputError(f"The host {host[:80]!r} of {shown} is no host name; it is not fetched.")
    return host, parsed.port if parsed.port is not None else 443 if parsed.scheme == "https" else 80


async def host_addresses(host: str, port: int, resolve: Resolver, allowed: Allowed) -> tuple[str, ...]:
    """The addresses of a host; InputError where one is not public, its port none of the web's, or it is a number."""
    literal = _address_of(host)
    # A host that ends in a number is an IPv4 address to some resolvers, in decimal, octal or hex and with parts left
    # out: https://url.spec.whatwg.org/#ends-in-a-number-checker
    if literal is None and re.fullmatch(r"[0-9]+|0[xX][0-9a-fA-F]*", host.rstrip(".").rpartition(".")[2]):
        raise InputError(f"The host {host[:80]!r} is a number, not a name; it is not fetched.")
    found = [str(literal)] if literal is not None else await resolve(host, port)
    if not found:
        raise socket.gaierror(socket.EAI_NONAME, "the host has no address")
    addresses = [ip_address(each) for each in found]
    named = {ip_address(text) for text, open_port in allowed if open_port == port}
    # Below 1024 the web has two ports; above, browsers block these: https://fetch.spec.whatwg.org/#port-blocking
    is_of_web = port in {80, 443} or (1024 <= port <= 65535 and port not in _BLOCKED_PORTS)
    closed = [each for each in addresses if each not in named and not (is_of_web and is_public(each))]
    if closed:
        ending = "which is no public web server; it is not fetched."
        raise InputError(f"The host {host[:80]!r} leads to {closed[0]}, port {port}, {ending}")
    return tuple(dict.fromkeys(map(str, addresses)))


def _address_of(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def is_public(address: Address) -> bool:
    """Whether the address is one of the public internet's, and hides no other one."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _CLOSED_IPV4)
    is_open = address.scope_id is None and any(address in network for network in _OPEN_IPV6)
    return is_open and not any(address in network for network in _CLOSED_IPV6)


def guarded_client(
    allowed: Iterable[tuple[str, int]] = (), *, resolve: Resolver = resolve_host, connections: int = 50
) -> httpx.AsyncClient:
    """A client that reaches public web servers only, and what `allowed` names; it follows no redirect by itself.

    A request that is refused raises InputError. No cookies are kept. Proxies of the environment are left aside: through
    one, it would be the proxy that looks the host up.
    """
    pairs = frozenset(allowed)

    async def addresses(host: str, port: int) -> Sequence[str]:
        return await host_addresses(host, port, resolve, pairs)

    return httpx.AsyncClient(
        transport=_GuardedTransport(addresses, connections),
        timeout=_TIMEOUT,
        headers={"User-Agent": f"citejury/{version('citejury')}"},
        cookies=NoCookies(),
        follow_redirects=False,
        trust_env=False,
    )


# A pool looks at all its connections several times for each request, which soon costs more than the request: so hosts
# share several small ones.
_POOLS = 16

_HTTPCORE_ERRORS = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.UnsupportedProtocol,
)
# What a resolver says when it knows that there is nothing; all its other errors are its own, and may pass.
_NO_HOST = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})


class NoSuchHostError(httpx.ConnectError):
    pass


class JudgedBackend(httpcore.AsyncNetworkBackend):
    """Opens connections to the addresses that `addresses` gives for a host, and to no other."""

    def __init__(self, addresses: Callable[[str, int], Awaitable[Sequence[str]]]) -> None:
        self.addresses = addresses
        self.network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """A connection to the first address that answers; each has its share of the time."""
        try:
            async with asyncio.timeout(timeout):
                addresses = (await self.addresses(host, port))[:4]
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(f"The resolver does not answer for {host!r}.") from error
        except OSError as error:
            if isinstance(error, socket.gaierror) and error.errno in _NO_HOST:
                raise NoSuchHostError(f"There is no host {host!r}.") from error
            raise httpcore.ConnectError(f"The host {host!r} cannot be looked up ({error.strerror}).") from error
        share = timeout / len(addresses) if timeout is not None else None
        for address in addresses[:-1]:
            with suppress(httpcore.ConnectError, httpcore.ConnectTimeout):
                return await self.network.connect_tcp(address, port, share, local_address, socket_options)
        return await self.network.connect_tcp(addresses[-1], port, share, local_address, socket_options)

    async def sleep(self, seconds: float) -> None:
        await self.network.sleep(seconds)


class _GuardedTransport(httpx.AsyncBaseTransport):
    """Judges the URL of each request and where each redirect leads, and connects as `addresses` says."""

    def __init__(self, addresses: Callable[[str, int], Awaitable[Sequence[str]]], connections: int) -> None:
        trust = httpx.create_ssl_context()
        self.pools = [
            httpcore.AsyncConnectionPool(
                ssl_context=trust,
                max_connections=connections,
                max_keepalive_connections=max(1, connections // _POOLS),
                keepalive_expiry=15.0,
                network_backend=JudgedBackend(addresses),
            )
            for _ in range(_POOLS)
        ]

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        web_target(url)
        pool = self.pools[zlib.crc32(url.raw_host) % _POOLS]
        asked = httpcore.Request(
            method=request.method,
            url=httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _httpx_errors(request):
            response = await pool.handle_async_request(asked)
        body = _Body(response, request)
        answer = httpx.Response(response.status, headers=response.headers, stream=body, extensions=response.extensions)
        async with AsyncExitStack() as refused:
            refused.push_async_callback(body.aclose)
            if answer.has_redirect_location:
                location = answer.headers["Location"]
                try:
                    target = url.join(location)
                except (httpx.InvalidURL, ValueError) as error:  # httpx itself trips over some that it reads
                    shown = f"{url.host!r} redirects to {location[:80]!r}, which is no URL; it is not fetched."
                    raise InputError(shown) from error
                web_target(target)
            refused.pop_all()
        return answer

    async def aclose(self) -> None:
        for pool in self.pools:
            await pool.aclose()


class _Body(httpx.AsyncByteStream):
    def __init__(self, response: httpcore.Response, request: httpx.Request) -> None:
        self.response = response
        self.request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _httpx_errors(self.request):
            if isinstance(self.response.stream, AsyncIterable):
                async for chunk in self.response.stream:
                    yield chunk

    async def aclose(self) -> None:
        with _httpx_errors(self.request):
            await self.response.aclose()


@contextmanager
def _httpx_errors(request: httpx.Request) -> Iterator[None]:
    try:
        yield
    except _HTTPCORE_ERRORS as error:
        raise getattr(httpx, type(error).__name__)(str(error), request=request) from error

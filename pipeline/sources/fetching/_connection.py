"""An httpx transport whose connections go to addresses that were judged; Host and SNI keep the host's name."""

import asyncio
import socket
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager

import httpcore
import httpx

_MAX_ADDRESSES = 4
_IDLE_SECONDS = 15.0
# A pool looks at all its connections several times for each request, which soon costs more than the request: so hosts
# share several small ones.
_POOLS = 16

_Addresses = Callable[[str, int], Awaitable[Sequence[str]]]

# What a resolver says when it knows that there is nothing; all its other errors are its own, and may pass.
_NO_HOST = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})


class NoSuchHostError(httpx.ConnectError):
    """The resolver answered, and there is no host of this name."""


class JudgedBackend(httpcore.AsyncNetworkBackend):
    """Opens connections to the addresses that `addresses` gives for a host, and to no other."""

    def __init__(self, addresses: _Addresses) -> None:
        """Keep where addresses come from; it raises for a host that must not be reached."""
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
        """A connection to the first address that answers; each has its share of the time.

        Raises:
            NoSuchHostError: there is no such host.
            httpcore.ConnectError: the resolver fails, or no address answers.
            httpcore.ConnectTimeout: the resolver, or the last address, does not answer in time.
        """
        addresses = (await self.look_up(host, port, timeout))[:_MAX_ADDRESSES]
        share = timeout / len(addresses) if timeout is not None else None
        for address in addresses[:-1]:
            try:
                return await self.network.connect_tcp(address, port, share, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return await self.network.connect_tcp(addresses[-1], port, share, local_address, socket_options)

    async def look_up(self, host: str, port: int, timeout: float | None) -> Sequence[str]:
        """The judged addresses of the host, at least one."""
        try:
            async with asyncio.timeout(timeout):
                return await self.addresses(host, port)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(f"The resolver does not answer for {host!r}.") from error
        except OSError as error:
            if isinstance(error, socket.gaierror) and error.errno in _NO_HOST:
                raise NoSuchHostError(f"There is no host {host!r}.") from error
            raise httpcore.ConnectError(f"The host {host!r} cannot be looked up ({error.strerror}).") from error

    async def sleep(self, seconds: float) -> None:
        """Return after this time."""
        await self.network.sleep(seconds)


class GuardedTransport(httpx.AsyncBaseTransport):
    """Judges the URL of each request and where each redirect leads, and connects as `addresses` says."""

    def __init__(
        self,
        check_url: Callable[[httpx.URL], object],
        check_redirect: Callable[[httpx.URL, str], object],
        addresses: _Addresses,
        connections: int,
    ) -> None:
        """Open nothing yet; the checks raise for what they refuse.

        `connections` is the most at a time to one host, and about the most that are kept for further requests.
        """
        self.check_url = check_url
        self.check_redirect = check_redirect
        trust = httpx.create_ssl_context()
        self.pools = [
            httpcore.AsyncConnectionPool(
                ssl_context=trust,
                max_connections=connections,
                max_keepalive_connections=max(1, connections // _POOLS),
                keepalive_expiry=_IDLE_SECONDS,
                network_backend=JudgedBackend(addresses),
            )
            for _ in range(_POOLS)
        ]

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The response, its body unread."""
        self.check_url(request.url)
        pool = self.pools[zlib.crc32(request.url.raw_host) % _POOLS]
        with _httpx_errors(request):
            response = await pool.handle_async_request(
                httpcore.Request(
                    method=request.method,
                    url=httpcore.URL(
                        scheme=request.url.raw_scheme,
                        host=request.url.raw_host,
                        port=request.url.port,
                        target=request.url.raw_path,
                    ),
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )
        body = _Body(response, request)
        answer = httpx.Response(response.status, headers=response.headers, stream=body, extensions=response.extensions)
        async with AsyncExitStack() as refused:
            refused.push_async_callback(body.aclose)
            if answer.has_redirect_location:
                self.check_redirect(request.url, answer.headers["Location"])
            refused.pop_all()
        return answer

    async def aclose(self) -> None:
        """Close every connection."""
        for pool in self.pools:
            await pool.aclose()


class _Body(httpx.AsyncByteStream):
    """The body as it arrives; failures are httpx's own errors."""

    def __init__(self, response: httpcore.Response, request: httpx.Request) -> None:
        """Keep the response that it comes from, and the request for the errors."""
        self.response = response
        self.request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _httpx_errors(self.request):
            if isinstance(self.response.stream, AsyncIterable):
                async for chunk in self.response.stream:
                    yield chunk

    async def aclose(self) -> None:
        """Give the connection back, or close it where the body was not read to its end."""
        with _httpx_errors(self.request):
            await self.response.aclose()


@contextmanager
def _httpx_errors(request: httpx.Request) -> Iterator[None]:
    """Turn an error of httpcore inside the block into the one of the same name in httpx."""
    try:
        yield
    except (
        httpcore.TimeoutException,
        httpcore.NetworkError,
        httpcore.ProtocolError,
        httpcore.UnsupportedProtocol,
    ) as error:
        raise getattr(httpx, type(error).__name__)(str(error), request=request) from error

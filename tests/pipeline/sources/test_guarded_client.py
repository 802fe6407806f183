import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing, suppress

import httpcore
import httpx
import pytest

from pipeline.core.errors import InputError
from pipeline.sources.exchange import Exchange, RequestLimits, exchange
from pipeline.sources.guard import JudgedBackend, guarded_client
from tests.support.guard_bench import resolver


@asynccontextmanager
async def serving(reply: str, heads: list[str]) -> AsyncIterator[int]:
    """The port of a server that answers each request with `reply`, and keeps the requests' heads."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError), closing(writer):
            while head := await reader.readuntil(b"\r\n\r\n"):
                heads.append(head.decode())
                writer.write(reply.encode())
                await writer.drain()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield int(server.sockets[0].getsockname()[1])


PAGE = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage"


def test_the_client_connects_to_the_checked_address_and_keeps_the_name() -> None:
    heads: list[str] = []

    async def fetch() -> tuple[str, str]:
        async with serving(PAGE, heads) as port:
            allowed = [("127.0.0.1", port)]
            async with guarded_client(allowed, resolve=resolver("127.0.0.1")) as client:
                response = await client.get(f"http://site.example:{port}/a%20b?c=d")
                return response.text, str(response.url.host)

    assert asyncio.run(fetch()) == ("page", "site.example")
    assert heads[0].startswith("GET /a%20b?c=d HTTP/1.1\r\nHost: site.example:")
    assert "User-Agent: citejury/" in heads[0]


def test_a_server_on_this_machine_is_never_reached_unless_it_is_allowed_and_proxies_are_left_aside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heads: list[str] = []

    async def fetch() -> None:
        async with serving(PAGE, heads) as port, guarded_client() as client:
            for host in ("127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0"):
                with pytest.raises(InputError):
                    await client.get(f"http://{host}:{port}/")
            for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
                monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
            async with guarded_client(resolve=resolver("10.0.0.1")) as behind:
                with pytest.raises(InputError):
                    await behind.get("http://site.example/")

    asyncio.run(fetch())
    assert heads == []


LOCATIONS = """
http://127.0.0.1/ http://[::1]/ http://[::ffff:10.0.0.1]/ http://[::ffff:a00:1]/ http://169.254.169.254/latest/
http://0.0.0.0/ http://2130706433/ http://0177.0.0.1/ http://0x7f000001/ http://user:word@site.example/ //10.0.0.1/
http://127.0.0.1:1/ file:///etc/passwd ftp://site.example/ //xn--< host:99999
"""


@pytest.mark.parametrize("location", LOCATIONS.split())
def test_a_redirect_to_a_closed_place_is_refused_though_httpx_follows_it(location: str) -> None:
    heads: list[str] = []

    async def fetch() -> None:
        moved = f"HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n"
        async with (
            serving(moved, heads) as port,
            guarded_client([("127.0.0.1", port)], resolve=resolver("127.0.0.1")) as client,
        ):
            await client.get(f"http://site.example:{port}/", follow_redirects=True)

    with pytest.raises(InputError):
        asyncio.run(fetch())
    assert len(heads) == 1


def test_the_endless_body_of_a_redirect_is_not_read() -> None:
    async def fetch() -> Exchange:
        endless = "HTTP/1.1 302 Found\r\nLocation: https://1.1.1.1/\r\n\r\nnever ends"
        async with serving(endless, []) as port, guarded_client([("127.0.0.1", port)]) as client:
            return await exchange(client, f"http://127.0.0.1:{port}/", RequestLimits(max_bytes=1000, seconds=10))

    came = asyncio.run(fetch())
    assert (came.location, came.body, came.reason) == ("https://1.1.1.1/", b"", "")


def test_no_cookie_is_kept_and_the_next_address_is_tried_where_one_does_not_answer() -> None:
    heads: list[str] = []

    async def fetch() -> None:
        page = PAGE.replace("OK\r\n", "OK\r\nSet-Cookie: a=·\r\n")
        async with serving(page, heads) as port, guarded_client([("127.0.0.1", port)]) as client:
            for _ in range(2):
                await client.get(f"http://127.0.0.1:{port}/")

    asyncio.run(fetch())
    assert len(heads) == 2
    assert "cookie" not in "".join(heads).lower()

    async def fetch() -> str:
        async with serving(PAGE, []) as port:
            allowed = [("127.0.0.1", port), ("127.0.0.9", port)]
            async with guarded_client(allowed, resolve=resolver("127.0.0.9", "127.0.0.1")) as client:
                return (await client.get(f"http://site.example:{port}/")).text

    assert asyncio.run(fetch()) == "page"


def test_failures_to_connect_are_errors_of_httpx_and_no_connection_but_tcp_can_be_opened() -> None:
    async def unknown(host: str, port: int) -> Sequence[str]:
        raise OSError(-2, "Name or service not known")

    async def silent(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    async def fetch(client: httpx.AsyncClient, url: str, error: type[Exception]) -> None:
        async with client:
            with pytest.raises(error):
                await client.get(url, timeout=0.05)

    asyncio.run(fetch(guarded_client(resolve=unknown), "http://nowhere.example/", httpx.ConnectError))
    asyncio.run(fetch(guarded_client([("127.0.0.1", 1)]), "http://127.0.0.1:1/", httpx.ConnectError))
    asyncio.run(fetch(guarded_client(resolve=silent), "http://site.example/", httpx.ConnectTimeout))
    kinds = [httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol]
    for kind in kinds:
        kinds += kind.__subclasses__()
        assert issubclass(getattr(httpx, kind.__name__), httpx.TransportError)

    async def open_socket() -> None:
        await JudgedBackend(resolver("127.0.0.1")).connect_unix_socket("/run/some.sock")

    with pytest.raises(NotImplementedError):
        asyncio.run(open_socket())


def test_tls_asks_for_the_name_and_not_for_the_address() -> None:
    names: list[str] = []

    async def handshake() -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.sni_callback = lambda _socket, name, _context: names.append(str(name))

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
        async with server:
            port = server.sockets[0].getsockname()[1]
            async with guarded_client([("127.0.0.1", port)], resolve=resolver("127.0.0.1")) as client:
                with pytest.raises(httpx.ConnectError):
                    await client.get(f"https://site.example:{port}/")

    asyncio.run(handshake())
    assert names == ["site.example"]

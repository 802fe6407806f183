"""The client asks checked addresses only, wherever a name, a redirect or a proxy would lead it, and ends in time."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

import httpcore
import httpx
import pytest

from pipeline.core.errors import InputError
from pipeline.sources.exchange import Exchange, RequestLimits, exchange
from pipeline.sources.guard import JudgedBackend, guarded_client
from tests.support.guard_bench import resolver


@asynccontextmanager
async def serving(reply: str, heads: list[str], host: str = "127.0.0.1") -> AsyncIterator[int]:
    """The port of a server that answers each request with `reply`, `PORT` replaced, and keeps the requests' heads."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                heads.append(head.decode())
                writer.write(reply.replace("PORT", str(port)).encode())
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, host, 0)
    port = int(server.sockets[0].getsockname()[1])
    async with server:
        yield port


PAGE = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage"


def moved(location: str) -> str:
    return f"HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n"


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


def test_a_name_that_changes_its_address_after_the_check_is_not_looked_up_again() -> None:
    heads: list[str] = []
    looked_up: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        looked_up.append(host)
        return ["127.0.0.1"] if len(looked_up) == 1 else ["169.254.169.254"]

    async def fetch() -> int:
        async with serving(PAGE, heads) as port, guarded_client([("127.0.0.1", port)], resolve=resolve) as client:
            first = await client.get(f"http://site.example:{port}/")
            second = await client.get(f"http://site.example:{port}/")
            assert (first.text, second.text) == ("page", "page")
            with pytest.raises(InputError, match=r"169\.254\.169\.254"):
                await client.get(f"http://other.example:{port}/")
        return len(heads)

    assert asyncio.run(fetch()) == 2
    assert looked_up == ["site.example", "other.example"]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0"])
def test_a_server_on_this_machine_is_never_reached_unless_it_is_allowed(host: str) -> None:
    heads: list[str] = []

    async def fetch() -> None:
        async with serving(PAGE, heads) as port, guarded_client() as client:
            with pytest.raises(InputError):
                await client.get(f"http://{host}:{port}/")

    asyncio.run(fetch())
    assert heads == []


def test_a_proxy_of_the_environment_is_left_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    heads: list[str] = []

    async def fetch() -> None:
        async with serving(PAGE, heads) as port:
            for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
                monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
            async with guarded_client(resolve=resolver("10.0.0.1")) as client:
                with pytest.raises(InputError):
                    await client.get("http://site.example/")

    asyncio.run(fetch())
    assert heads == []


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1/",
        "http://[::1]/",
        "http://[::ffff:10.0.0.1]/",
        "http://[::ffff:a00:1]/",
        "http://169.254.169.254/latest/meta-data/",
        "http://0.0.0.0/",
        "http://2130706433/",
        "http://0177.0.0.1/",
        "http://0x7f000001/",
        "http://user:word@site.example/",
        "//10.0.0.1/",
        "http://127.0.0.1:1/",
        "file:///etc/passwd",
        "ftp://site.example/",
        "//xn--<",
        "host:99999",
    ],
)
@pytest.mark.parametrize("follow", [True, False], ids=["httpx follows", "hop by hop"])
def test_a_redirect_to_a_closed_place_is_refused(location: str, follow: bool) -> None:
    heads: list[str] = []

    async def fetch() -> None:
        async with serving(moved(location), heads) as port:
            client = guarded_client([("127.0.0.1", port)], resolve=resolver("127.0.0.1"))
            async with client:
                url = f"http://site.example:{port}/"
                if follow:
                    await client.get(url, follow_redirects=True)
                hop = await exchange(client, url, RequestLimits(max_bytes=1000, seconds=10))
                if not hop.reason:
                    hop = await exchange(client, hop.location, RequestLimits(max_bytes=1000, seconds=10))
                raise InputError(hop.detail) if hop.reason == "refused" else AssertionError(hop)

    with pytest.raises(InputError):
        asyncio.run(fetch())
    assert len(heads) == 1


def test_the_endless_body_of_a_redirect_is_not_read() -> None:
    heads: list[str] = []
    demand = RequestLimits(max_bytes=1000, seconds=10)

    async def fetch() -> str:
        async with serving(PAGE, []) as page:
            endless = f"HTTP/1.1 302 Found\r\nLocation: http://end.example:{page}/\r\n\r\nnever ends"
            async with serving(endless, heads) as port:
                allowed = [("127.0.0.1", port), ("127.0.0.1", page)]
                client = guarded_client(allowed, resolve=resolver("127.0.0.1"))
                async with client:
                    hop = await exchange(client, f"http://site.example:{port}/", demand)
                    end = await exchange(client, hop.location, demand)
                    return f"{httpx.URL(hop.location).host} {hop.body!r} {end.body!r}"

    assert asyncio.run(fetch()) == "end.example b'' b'page'"


def test_a_cookie_is_not_kept_least_of_all_one_that_cannot_be_sent() -> None:
    heads: list[str] = []

    async def fetch() -> None:
        page = PAGE.replace("OK\r\n", "OK\r\nSet-Cookie: a=·\r\n")
        async with serving(page, heads) as port, guarded_client([("127.0.0.1", port)]) as client:
            for _ in range(2):
                await client.get(f"http://127.0.0.1:{port}/")

    asyncio.run(fetch())
    assert len(heads) == 2
    assert "cookie" not in "".join(heads).lower()


def test_a_server_that_drips_its_answer_ends_with_the_time() -> None:
    async def fetch() -> Exchange:
        async with serving("HTTP/1.1 200 OK\r\n", []) as port, guarded_client([("127.0.0.1", port)]) as client:
            return await exchange(client, f"http://127.0.0.1:{port}/", RequestLimits(max_bytes=1000, seconds=0.1))

    assert asyncio.run(fetch()).reason == "timeout"


def test_the_next_address_is_tried_where_one_does_not_answer() -> None:
    heads: list[str] = []

    async def fetch() -> str:
        async with serving(PAGE, heads) as port:
            allowed = [("127.0.0.1", port), ("127.0.0.9", port)]
            async with guarded_client(allowed, resolve=resolver("127.0.0.9", "127.0.0.1")) as client:
                return (await client.get(f"http://site.example:{port}/")).text

    assert asyncio.run(fetch()) == "page"


def test_an_unknown_host_and_a_closed_port_are_connection_errors_of_httpx() -> None:
    async def unknown(host: str, port: int) -> Sequence[str]:
        raise OSError(-2, "Name or service not known")

    async def fetch(client: httpx.AsyncClient, url: str) -> None:
        async with client:
            with pytest.raises(httpx.ConnectError):
                await client.get(url)

    asyncio.run(fetch(guarded_client(resolve=unknown), "http://nowhere.example/"))
    asyncio.run(fetch(guarded_client([("127.0.0.1", 1)]), "http://127.0.0.1:1/"))


def test_a_resolver_that_never_answers_ends_in_a_timeout() -> None:
    async def silent(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    async def fetch() -> None:
        async with guarded_client(resolve=silent) as client:
            await client.get("http://site.example/", timeout=0.05)

    with pytest.raises(httpx.ConnectTimeout):
        asyncio.run(fetch())


def test_a_body_that_stops_halfway_is_a_timeout_of_httpx() -> None:
    async def fetch() -> None:
        half = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"
        async with serving(half, []) as port, guarded_client([("127.0.0.1", port)]) as client:
            await client.get(f"http://127.0.0.1:{port}/", timeout=0.2)

    with pytest.raises(httpx.ReadTimeout):
        asyncio.run(fetch())


def subclasses(kind: type[Exception]) -> Iterator[type[Exception]]:
    yield kind
    for each in kind.__subclasses__():
        yield from subclasses(each)


def test_every_error_of_the_lower_library_has_one_of_the_same_name() -> None:
    kinds = (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol)
    for kind in (each for root in kinds for each in subclasses(root)):
        assert issubclass(getattr(httpx, kind.__name__), httpx.TransportError)


def test_no_connection_but_tcp_can_be_opened() -> None:
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

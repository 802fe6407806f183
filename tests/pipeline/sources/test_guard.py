import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing, suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import NamedTuple

import httpcore
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.errors import InputError
from pipeline.sources.exchange import Exchange, RequestLimits, exchange
from pipeline.sources.guard import JudgedBackend, guarded_client, host_addresses, is_public, resolve_host, web_target
from tests.support.guard_bench import resolver

PUBLIC = "93.184.215.14"
PUBLIC_V6 = "2606:2800:21f:cb07:6820:80da:af6b:8b2c"


class Destination(NamedTuple):
    host: str
    port: int
    addresses: tuple[str, ...]


def check(url: str, *addresses: str, allowed: Sequence[tuple[str, int]] = ()) -> Destination:
    """Where a request for the URL would connect to."""
    host, port = web_target(url)
    judged = asyncio.run(host_addresses(host, port, resolver(*addresses), frozenset(allowed)))
    return Destination(host, port, judged)


CLOSED_ADDRESSES = """
0.0.0.0 10.0.0.1 100.64.0.1 100.100.100.200 127.0.0.1 127.255.255.254 168.63.129.16 169.254.169.254 172.16.0.1
172.31.255.255 192.0.0.192 192.0.2.1 192.168.1.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 240.0.0.1
255.255.255.255 :: ::1 ::127.0.0.1 ::ffff:10.0.0.1 ::ffff:93.184.215.14 64:ff9b::a00:1 64:ff9b::7f00:1
64:ff9b:1::a00:1 2001::1 2001:db8::1 2002:a00:1::1 2002:7f00:1::1 fc00::1 fd00:ec2::254 fe80::1 fe80::1%eth0
2606:2800::1%eth0 fec0::1 ff02::1 100::1 3fff::1 5f00::1
"""
CLOSED = CLOSED_ADDRESSES.split()


@pytest.mark.parametrize("address", CLOSED)
def test_a_closed_address_is_refused_behind_a_name_and_as_a_host(address: str) -> None:
    with pytest.raises(InputError, match="no public web server"):
        check("https://site.example/", address)
    with pytest.raises(InputError):
        check(f"http://{f'[{address}]' if ':' in address else address}/", PUBLIC)


def test_public_addresses_pass_in_order_and_one_closed_address_refuses_the_name() -> None:
    for addresses in ((PUBLIC, "127.0.0.1"), ("10.0.0.1", PUBLIC), (PUBLIC_V6, PUBLIC, "::1")):
        with pytest.raises(InputError):
            check("https://site.example/", *addresses)
    destination = check("https://Site.example/a?b#c", PUBLIC_V6, PUBLIC, PUBLIC_V6)
    assert destination == ("site.example", 443, (PUBLIC_V6, PUBLIC))
    assert check("http://8.8.8.8:8080/") == ("8.8.8.8", 8080, ("8.8.8.8",))
    assert check(f"http://[{PUBLIC_V6}]/") == (PUBLIC_V6, 80, (PUBLIC_V6,))
    for address in BESIDE.split():
        assert check("https://site.example/", address).addresses == (address,)


BESIDE = """
1.1.1.1 100.63.255.255 100.128.0.1 172.15.255.255 172.32.0.1 192.0.1.1 223.255.255.254 2001:4860:4860::8888
2a00:1450:4001:80b::200e
"""


NUMBERS = """
2130706433 134744072 0x7f000001 0X7F.1 0177.0.0.1 127.1 127.0.0.1. 0x08.8.8.8 010.8.8.8 8.8.8 site.example.1 1.2.3.4.5
0x
"""


@pytest.mark.parametrize("host", NUMBERS.split())
def test_a_host_that_ends_in_a_number_is_refused_even_where_it_would_be_public(host: str) -> None:
    with pytest.raises(InputError, match=r"is a number|is no URL"):
        check(f"http://{host}/", PUBLIC)


NO_WEB_URLS = r"""
ftp://site.example/ file:///etc/passwd gopher://site.example/ javascript:alert(1) //site.example/ site.example http://
http:///path https://user@site.example/ https://user:word@site.example/ http://site.example\@127.0.0.1/
http://site.example:99999/ http://①②⑦.⓪.⓪.①/ http://a@xn--xn--[/ http://xn--a/ http://[::1/
"""
SPACED = ("", "http://site .example/", "http://site.example/\x00", "http://site.example/\r\nHost: other")


@pytest.mark.parametrize("url", [*NO_WEB_URLS.split(), *SPACED, "https://site.example/" + "a" * 9000])
def test_what_is_no_plain_web_url_is_refused(url: str) -> None:
    with pytest.raises(InputError):
        check(url, PUBLIC)


def test_ports_of_the_web_and_allowed_ones_open_and_a_url_leads_to_its_visible_host() -> None:
    for port in (1, 22, 25, 81, 1023, 5060, 6000, 6667, 10080):
        with pytest.raises(InputError, match=f"port {port},"):
            check(f"http://site.example:{port}/", PUBLIC)
    for port in (80, 443, 1024, 8080, 8443, 65535):
        assert check(f"http://site.example:{port}/", PUBLIC).port == port
    assert check("http://site.example:81/", "127.0.0.1", allowed=[("127.0.0.1", 81)]).addresses == ("127.0.0.1",)
    assert check("http://[::1]:8000/", allowed=[("0:0::1", 8000)]).addresses == ("::1",)
    for url in ("http://127.0.0.1:82/", "http://127.0.0.2:81/", "http://[::ffff:127.0.0.1]:81/"):
        with pytest.raises(InputError):
            check(url, allowed=[("127.0.0.1", 81)])
    assert check("http://site.example#@127.0.0.1:99999/", PUBLIC).host == "site.example"
    for host in ("a..example", "a" * 64 + ".example"):
        with pytest.raises(socket.gaierror):
            asyncio.run(resolve_host(host, 80))
    with pytest.raises(OSError, match="no address"):
        check("https://site.example/")


@given(st.ip_addresses(v=4), st.ip_addresses(v=6))
def test_no_address_outside_the_public_internet_passes(four: IPv4Address, six: IPv6Address) -> None:
    if not four.is_global or four.is_multicast or four.is_reserved:
        assert not is_public(four)
        assert not is_public(ip_address(f"::ffff:{four}"))
    assert not is_public(six) or (six.is_global and not six.is_multicast)


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

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager

import httpcore
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import InputError
from pipeline.sources.connection import JudgedBackend
from pipeline.sources.guard import (
    Destination,
    address_of,
    checked_addresses,
    guarded_client,
    is_public,
    open_url,
    resolve_host,
)

PUBLIC = "93.184.215.14"
PUBLIC_V6 = "2606:2800:21f:cb07:6820:80da:af6b:8b2c"


def resolver(*addresses: str) -> Callable[[str, int], Awaitable[Sequence[str]]]:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return addresses

    return resolve


def check(url: str, *addresses: str, allowed: Sequence[tuple[str, int]] = ()) -> Destination:
    return asyncio.run(checked_addresses(url, resolver(*addresses), frozenset(allowed)))


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


CLOSED = [
    "0.0.0.0",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:93.184.215.14",
    "64:ff9b::a00:1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::a00:1",
    "2001::1",
    "2001:db8::1",
    "2002:a00:1::1",
    "2002:7f00:1::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "2606:2800::1%eth0",
    "fec0::1",
    "ff02::1",
    "100::1",
    "3fff::1",
    "5f00::1",
]


@pytest.mark.parametrize("address", CLOSED)
def test_a_name_that_leads_to_a_closed_address_is_refused(address: str) -> None:
    with pytest.raises(InputError, match="no public web server"):
        check("https://site.example/", address)


@pytest.mark.parametrize("address", CLOSED)
def test_a_closed_address_is_refused_as_a_host_without_asking_the_resolver(address: str) -> None:
    host = f"[{address}]" if ":" in address else address
    with pytest.raises(InputError):
        check(f"http://{host}/", PUBLIC)


@pytest.mark.parametrize("pair", [(PUBLIC, "127.0.0.1"), ("10.0.0.1", PUBLIC), (PUBLIC_V6, PUBLIC, "::1")])
def test_one_closed_address_among_several_refuses_the_name(pair: tuple[str, ...]) -> None:
    with pytest.raises(InputError):
        check("https://site.example/", *pair)


def test_public_addresses_pass_in_the_resolvers_order_each_once() -> None:
    destination = check("https://Site.example/a?b#c", PUBLIC_V6, PUBLIC, PUBLIC_V6)
    assert destination == ("site.example", 443, (PUBLIC_V6, PUBLIC))
    assert check("http://8.8.8.8:8080/") == ("8.8.8.8", 8080, ("8.8.8.8",))
    assert check(f"http://[{PUBLIC_V6}]/") == (PUBLIC_V6, 80, (PUBLIC_V6,))


@pytest.mark.parametrize(
    "address",
    [
        "1.1.1.1",
        "100.63.255.255",
        "100.128.0.1",
        "172.15.255.255",
        "172.32.0.1",
        "192.0.1.1",
        "223.255.255.254",
        "2001:4860:4860::8888",
        "2a00:1450:4001:80b::200e",
    ],
)
def test_an_address_beside_the_closed_ones_passes(address: str) -> None:
    assert check("https://site.example/", address).addresses == (address,)


@pytest.mark.parametrize(
    "host",
    [
        "2130706433",
        "134744072",
        "0x7f000001",
        "0X7F.1",
        "0177.0.0.1",
        "127.1",
        "127.0.0.1.",
        "0x08.8.8.8",
        "010.8.8.8",
        "8.8.8",
        "site.example.1",
        "1.2.3.4.5",
        "0x",
    ],
)
def test_a_host_that_ends_in_a_number_is_refused_even_where_it_would_be_public(host: str) -> None:
    with pytest.raises(InputError, match=r"is a number|is no URL"):
        check(f"http://{host}/", PUBLIC)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://site.example/",
        "file:///etc/passwd",
        "gopher://site.example/",
        "javascript:alert(1)",
        "//site.example/",
        "site.example",
        "",
        "http://",
        "http:///path",
        "https://user@site.example/",
        "https://user:word@site.example/",
        "http://site.example\\@127.0.0.1/",
        "http://site.example#@127.0.0.1:99999/",
        "http://site.example:99999/",
        "http://site .example/",
        "http://①②⑦.⓪.⓪.①/",
        "http://a@xn--xn--[/",
        "http://xn--a/",
        "http://site.example/\x00",
        "http://site.example/\r\nHost: other",
        "http://[::1/",
        "https://site.example/" + "a" * 9000,
    ],
)
def test_what_is_no_plain_web_url_is_refused_or_leads_to_its_visible_host(url: str) -> None:
    try:
        destination = check(url, PUBLIC)
    except InputError:
        return
    assert url == "http://site.example#@127.0.0.1:99999/"
    assert destination.host == "site.example"


@pytest.mark.parametrize("port", [1, 22, 25, 81, 1023, 5060, 6000, 6667, 10080])
def test_ports_of_other_services_are_refused(port: int) -> None:
    with pytest.raises(InputError, match=f"port {port},"):
        check(f"http://site.example:{port}/", PUBLIC)


@pytest.mark.parametrize("port", [80, 443, 8080, 8443, 65535])
def test_ports_of_the_web_pass(port: int) -> None:
    assert check(f"http://site.example:{port}/", PUBLIC).port == port


def test_an_allowed_address_opens_with_its_port_only() -> None:
    assert check("http://site.example:81/", "127.0.0.1", allowed=[("127.0.0.1", 81)]).addresses == ("127.0.0.1",)
    assert check("http://[::1]:8000/", allowed=[("0:0::1", 8000)]).addresses == ("::1",)
    for url in ("http://127.0.0.1:82/", "http://127.0.0.2:81/", "http://[::ffff:127.0.0.1]:81/"):
        with pytest.raises(InputError):
            check(url, allowed=[("127.0.0.1", 81)])


@given(st.ip_addresses(v=4))
def test_no_address_outside_the_public_internet_passes(address: object) -> None:
    parsed = address_of(str(address))
    assert parsed is not None
    if not parsed.is_global or parsed.is_multicast or parsed.is_reserved:
        assert not is_public(parsed)
        assert not is_public(address_of(f"::ffff:{parsed}") or parsed)


@given(st.ip_addresses(v=6))
def test_no_ipv6_address_outside_the_public_internet_passes(address: object) -> None:
    parsed = address_of(str(address))
    assert parsed is not None
    assert not is_public(parsed) or (parsed.is_global and not parsed.is_multicast)


def test_a_name_that_nobody_knows_is_an_error_of_the_system() -> None:
    for host in ("a..example", "a" * 64 + ".example"):
        with pytest.raises(socket.gaierror):
            asyncio.run(resolve_host(host, 80))
    with pytest.raises(OSError, match="no address"):
        check("https://site.example/")


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
@pytest.mark.parametrize("follow", [True, False], ids=["httpx follows", "open_url follows"])
def test_a_redirect_to_a_closed_place_is_refused(location: str, follow: bool) -> None:
    heads: list[str] = []

    async def fetch() -> None:
        async with serving(moved(location), heads) as port:
            client = guarded_client([("127.0.0.1", port)], resolve=resolver("127.0.0.1"))
            async with client:
                url = f"http://site.example:{port}/"
                if follow:
                    await client.get(url, follow_redirects=True)
                else:
                    async with open_url(client, url):
                        pass

    with pytest.raises(InputError):
        asyncio.run(fetch())
    assert len(heads) == 1


def test_redirects_are_followed_a_bounded_number_of_times() -> None:
    heads: list[str] = []

    async def fetch() -> None:
        async with serving(moved("/again"), heads) as port:
            allowed = [("127.0.0.1", port)]
            client = guarded_client(allowed, resolve=resolver("127.0.0.1"))
            async with client, open_url(client, f"http://site.example:{port}/", max_redirects=3):
                pass

    with pytest.raises(httpx.TooManyRedirects):
        asyncio.run(fetch())
    assert len(heads) == 4


def test_the_endless_body_of_a_redirect_is_not_read() -> None:
    heads: list[str] = []

    async def fetch() -> str:
        async with serving(PAGE, []) as page:
            endless = f"HTTP/1.1 302 Found\r\nLocation: http://end.example:{page}/\r\n\r\nnever ends"
            async with serving(endless, heads) as port:
                allowed = [("127.0.0.1", port), ("127.0.0.1", page)]
                client = guarded_client(allowed, resolve=resolver("127.0.0.1"))
                async with client, open_url(client, f"http://site.example:{port}/") as response:
                    await response.aread()
                    return f"{response.url.host} {response.text}"

    assert asyncio.run(fetch()) == "end.example page"


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
    async def fetch() -> None:
        async with serving("HTTP/1.1 200 OK\r\n", []) as port:
            client = guarded_client([("127.0.0.1", port)])
            async with client, open_url(client, f"http://127.0.0.1:{port}/", seconds=0.1):
                pass

    with pytest.raises(TimeoutError):
        asyncio.run(fetch())


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

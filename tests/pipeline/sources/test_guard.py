import asyncio
import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.errors import InputError
from pipeline.sources.guard import host_addresses, is_public, resolve_host, web_target
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

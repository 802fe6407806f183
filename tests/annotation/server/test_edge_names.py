"""Under which names the server answers, whose word about clients it believes, and what Caddy says of them."""

from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="The server is not installed here.")

from click.testing import CliRunner

from annotation.server.edge import Edge, Names, is_answered_to, read_names, real_client
from exports.cli import main
from pipeline.core.errors import SettingsError
from tests.support import caddy
from tests.support.edge_server import running_edge, tell_client
from tests.support.places import ROOT

BEHIND = {"CITEJURY_BEHIND_TLS": "1"}
HTTPS = ("X-Forwarded-Proto", "https")


def scope(*headers: tuple[str, str], client: str = "127.0.0.1", server: str = "127.0.0.1") -> dict[str, object]:
    return {
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers],
        "client": (client, 50_000),
        "server": (server, 6900),
    }


def names(monkeypatch: pytest.MonkeyPatch, **environment: str) -> Names:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return read_names()


@pytest.mark.parametrize(
    ("environment", "headers", "is_ours"),
    [
        ({}, [("Host", "localhost:6900")], True),
        ({}, [("Host", "10.0.0.5:6900")], True),
        ({}, [("Host", "10.0.0.6:6900")], False),
        ({}, [("Host", "jury.example.org")], False),
        ({}, [("Host", "jury.example.org"), HTTPS], False),
        ({}, [("Host", "localhost"), ("Host", "localhost")], False),
        ({}, [], False),
        ({"CITEJURY_BOUND_HOST": "Jury.Lan"}, [("Host", "jury.lan:6900")], True),
        ({"CITEJURY_ALLOW_HOSTS": "a.example, Jury.Example.ORG."}, [("Host", "jury.example.org:443")], True),
        ({"CITEJURY_ALLOW_HOSTS": "jury.example.org"}, [("Host", "www.jury.example.org")], False),
        (BEHIND, [("Host", "jury.example.org"), HTTPS], True),
        (BEHIND, [("Host", "jury.example.org")], False),
        (BEHIND | {"CITEJURY_ALLOW_HOSTS": "jury.example.org"}, [("Host", "jury.example.org"), HTTPS], True),
        (BEHIND | {"CITEJURY_ALLOW_HOSTS": "jury.example.org"}, [("Host", "evil.example"), HTTPS], False),
        (BEHIND | {"CITEJURY_ALLOW_HOSTS": "jury.example.org"}, [("Host", "127.0.0.1:6900")], True),
    ],
)
def test_which_names_are_answered_to(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], headers: list[tuple[str, str]], is_ours: bool
) -> None:
    asked = scope(*headers, client="192.0.2.9", server="10.0.0.5")
    assert is_answered_to(asked, names(monkeypatch, **environment)) == is_ours


@pytest.mark.parametrize(
    ("proxies", "peer", "said", "client"),
    [
        ("", "127.0.0.1", ["198.51.100.7"], "198.51.100.7"),
        ("", "::ffff:127.0.0.1", ["2001:db8::7"], "2001:db8::7"),
        ("", "10.0.0.5", ["198.51.100.7"], "198.51.100.7"),
        ("", "192.0.2.9", ["198.51.100.7"], "192.0.2.9"),
        ("", "127.0.0.1", ["203.0.113.1, 198.51.100.7"], "198.51.100.7"),
        ("", "127.0.0.1", ["203.0.113.1", "198.51.100.7"], "198.51.100.7"),
        ("", "127.0.0.1", ["not an address"], "127.0.0.1"),
        ("", "127.0.0.1", [], "127.0.0.1"),
        ("172.18.0.0/16", "172.18.0.1", ["198.51.100.7"], "198.51.100.7"),
        ("172.18.0.0/16, 203.0.113.1", "172.18.0.1", ["6.6.6.6, 198.51.100.7, 203.0.113.1"], "198.51.100.7"),
        ("172.18.0.0/16", "172.19.0.1", ["198.51.100.7"], "172.19.0.1"),
    ],
)
def test_only_a_trusted_proxy_names_the_client(
    monkeypatch: pytest.MonkeyPatch, proxies: str, peer: str, said: list[str], client: str
) -> None:
    asked = scope(*[("X-Forwarded-For", value) for value in said], client=peer, server="10.0.0.5")
    assert real_client(asked, names(monkeypatch, CITEJURY_TRUSTED_PROXIES=proxies, **BEHIND))[0] == client
    monkeypatch.delenv("CITEJURY_BEHIND_TLS")
    assert real_client(asked, read_names())[0] == peer


def test_the_gateway_is_read_from_the_systems_routes_and_serve_refuses_what_is_no_host(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Columns of /proc/net/route as a container of Docker's has them; 010012AC is 172.18.0.1.
    (tmp_path / "route").write_text(
        "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
        "eth0\t000013AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n"
        "eth1\t00000000\t010012AC\t0003\t0\t0\t0\t00000000\t0\t0\t0\n",
        encoding="ascii",
    )
    monkeypatch.setenv("CITEJURY_TRUSTED_PROXIES", "gateway")
    found = read_names(tmp_path / "route")
    assert [str(each) for each in found.proxies] == ["172.18.0.1/32"]
    words = ["annotation", "serve", "--home", str(tmp_path / "home"), "--allow-host", "https://jury.example.org"]
    done = CliRunner().invoke(main, words)
    assert (done.exit_code, "without `https://`" in done.output) == (2, True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CITEJURY_ALLOW_HOSTS", "https://jury.example.org"),
        ("CITEJURY_ALLOW_HOSTS", "jury.example.org:443"),
        ("CITEJURY_ALLOW_HOSTS", "*"),
        ("CITEJURY_TRUSTED_PROXIES", "caddy"),
        ("CITEJURY_TRUSTED_PROXIES", "10.0.0.0/99"),
    ],
)
def test_what_is_no_name_or_address_is_told(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=name):
        names(monkeypatch, **{name: value})


@pytest.mark.rare
def test_caddy_of_the_recipe_tells_the_clients_own_address(tmp_path: Path) -> None:
    site, port = "citejury.localhost", caddy.free_port()
    with running_edge(Edge(tell_client, Names(behind_tls=True, listed=frozenset({site})))) as behind:
        recipe = (ROOT / "docker" / "Caddyfile").read_text(encoding="utf-8")
        ours = recipe.replace("annotate.example.org {", f"{site}:{port} {{\n\tbind 127.0.0.1")
        ours = ours.replace("127.0.0.1:6900", f"127.0.0.1:{behind}")
        url = f"https://{site}:{port}"
        with caddy.running(tmp_path, ours, url):
            told = caddy.ask(
                tmp_path, url, "GET", "/", source="127.0.0.77", headers={"X-Forwarded-For": "198.51.100.7"}
            )
    assert told.json()["client"] == "127.0.0.77"

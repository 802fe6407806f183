"""The README's recipe for HTTPS, with the real Caddy: page, login and headers through it, and nothing in the clear."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import httpx
import pytest

from annotation.server.launch import ServerHandle, ServerOptions, start_server
from tests.support import caddy
from tests.support.page_driver import forget, log_in_by_hand, shown_text, wait
from tests.support.places import ROOT

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

pytestmark = [pytest.mark.server, pytest.mark.rare]

RECIPE = ROOT / "docker" / "Caddyfile"
SITE = "citejury.localhost"  # browsers take it for this machine, and Caddy signs for it itself


class Site(NamedTuple):
    server: ServerHandle
    url: str  # that annotators open
    folder: Path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("https")
    with start_server(folder / "home", port=0, options=ServerOptions(behind_tls=True)) as server:
        port = caddy.free_port()
        recipe = RECIPE.read_text(encoding="utf-8")
        assert recipe.count("annotate.example.org {") == recipe.count("127.0.0.1:6900") == 1
        ours = recipe.replace("annotate.example.org {", f"{SITE}:{port} {{\n\tbind 127.0.0.1")
        ours = ours.replace("127.0.0.1:6900", server.url.removeprefix("http://"))
        found = Site(server, f"https://{SITE}:{port}", folder)
        with caddy.running(folder, ours, found.url):
            yield found


def ask(site: Site, method: str, path: str, **options: object) -> httpx.Response:
    return caddy.ask(site.folder, site.url, method, path, **options)


def test_page_login_and_api_work_through_https_and_no_header_passes_for_the_proxys(site: Site) -> None:
    page = ask(site, "GET", "/sign-in")
    assert page.status_code == 200
    assert "default-src 'self'" in page.headers["content-security-policy"]
    assert page.headers["strict-transport-security"].startswith("max-age=")
    login = {"username": site.server.owner_username, "password": site.server.owner_password}
    token = ask(site, "POST", "/api/v1/token", data=login).json()["access_token"]
    me = ask(site, "GET", "/api/v1/me", headers={"Authorization": f"Bearer {token}"})
    assert me.json()["username"] == "owner"
    assert ask(site, "GET", "/api/v1/version", headers={"X-Forwarded-Proto": "http"}).status_code == 200
    direct = httpx.get(f"{site.server.url}/api/v1/version", headers={"X-Forwarded-Proto": "http"}, trust_env=False)
    assert direct.status_code == 403
    assert httpx.get(f"{site.server.url}/api/v1/version", trust_env=False).status_code == 200


def test_an_owner_logs_in_with_a_browser_through_https(chromium: "Chrome", site: Site) -> None:
    chromium.execute_cdp_cmd("Security.setIgnoreCertificateErrors", {"ignore": True})
    try:
        forget(chromium, site.url)
        log_in_by_hand(chromium, site.url, site.server.owner_username, site.server.owner_password)
        wait(chromium, lambda: "datasets" in shown_text(chromium).lower())
        assert chromium.current_url.startswith(f"{site.url}/")
        wait(chromium, lambda: chromium.execute_script("return isSecureContext"))  # type: ignore[no-untyped-call]
    finally:
        forget(chromium, site.url)
        chromium.execute_cdp_cmd("Security.setIgnoreCertificateErrors", {"ignore": False})

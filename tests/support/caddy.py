"""The real Caddy in front of a server of ours, for the tests of HTTPS."""

import contextlib
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

PATIENCE_SECONDS = 120
_OPTIONS = """{{
\tadmin off
\tskip_install_trust
\tauto_https disable_redirects
\tstorage file_system {folder}/caddy
}}
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def authority(folder: Path) -> Path:
    """Certificate of Caddy's own authority, once it runs."""
    return folder / "caddy" / "pki" / "authorities" / "local" / "root.crt"


@contextlib.contextmanager
def running(folder: Path, sites: str, url: str) -> Iterator[None]:
    """Caddy with these sites, until the block ends; `url` is one of them, which answers by its own certificate."""
    caddy = shutil.which("caddy")
    if not caddy:
        pytest.skip("Caddy is not installed (Debian's package `caddy`)")
    (folder / "Caddyfile").write_text(_OPTIONS.format(folder=folder) + sites, encoding="utf-8")
    command = [caddy, "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]
    environment = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_DATA_HOME": str(folder)}
    with (
        open(folder / "caddy.log", "wb") as log,
        subprocess.Popen(command, env=environment, stdout=log, stderr=log) as process,
    ):
        try:
            _wait_until_it_answers(folder, url)
            yield
        finally:
            process.terminate()


def _wait_until_it_answers(folder: Path, url: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        with contextlib.suppress(httpx.TransportError, FileNotFoundError, ssl.SSLError):  # half a certificate
            ask(folder, url, "GET", "/api/v1/version")
            return
        assert time.monotonic() < deadline


def ask(folder: Path, url: str, method: str, path: str, source: str = "0.0.0.0", **options: object) -> httpx.Response:
    """What Caddy answers on this machine under the address's name, its certificate held against its authority."""
    context = ssl.create_default_context(cafile=str(authority(folder)))
    site = httpx.URL(url)
    at = site.host if site.host.startswith("127.") else "127.0.0.1"
    transport = httpx.HTTPTransport(verify=context, local_address=source)
    with httpx.Client(transport=transport, timeout=PATIENCE_SECONDS, trust_env=False) as client:
        return client.request(
            method,
            f"https://{at}:{site.port}{path}",
            headers={"Host": f"{site.host}:{site.port}", **options.pop("headers", {})},  # type: ignore[dict-item]
            extensions={"sni_hostname": site.host},
            **options,  # type: ignore[arg-type]
        )

"""The embedded Argilla starts, keeps its data and its secrets, refuses plainly, and leaves nothing behind."""

import httpx
import pytest

from annotation.embedded.launch import ServerHandle

pytestmark = pytest.mark.server


def owner(server: ServerHandle) -> httpx.Client:
    return httpx.Client(
        base_url=f"{server.url}/api/v1", headers={"X-Argilla-Api-Key": server.owner_api_key}, timeout=60
    )


def test_the_owner_gets_in_by_key_and_by_password(argilla_server: ServerHandle) -> None:
    with owner(argilla_server) as client:
        assert client.get("/me").json()["role"] == "owner"
        login = {"username": argilla_server.owner_username, "password": argilla_server.owner_password}
        assert client.post("/token", data=login).status_code == 201


def test_the_page_is_served(argilla_server: ServerHandle) -> None:
    assert "<title" in httpx.get(argilla_server.url).text

"""Attempts to log in, right and wrong, from any address of this machine."""

import httpx

from annotation.server.launch import ServerHandle

MOST = 10  # wrong passwords a minute
WRONG = "not-her-password"


def login(server: ServerHandle, address: str, username: str, password: str) -> httpx.Response:
    with httpx.Client(transport=httpx.HTTPTransport(local_address=address), timeout=60) as client:
        return client.post(f"{server.url}/api/v1/token", data={"username": username, "password": password})


def wrong(server: ServerHandle, address: str, *usernames: str) -> list[int]:
    return [login(server, address, username, WRONG).status_code for username in usernames]

"""The connection to Argilla, plain REST for what its SDK cannot do, and the SDK for what it does well.

Importing the SDK takes seconds, because it loads pandas and datasets, so `load_sdk` is called where a thing is defined
or made, and nowhere else. Its requests go through our own connection: the same proxies, patience and errors. Argilla's
SDK 2.8.0 sends nothing to any other host. What it cannot do:

- A dataset's own metadata, where our task, language and schema hash stand: `DatasetModel` has no such field.
- Making a dataset so that a kill at any moment can be mended: `Dataset.create` begins anew, and cannot finish a draft.
- Versions and new names: `Dataset.update` sends neither a name nor records.
- Changing one attribute of a user: `User.update` sends all of them, and trims names.
- Listing: one workspace whose name has a space makes `client.workspaces` fail, and all commands would wait for the SDK.
- Records and responses: it drops the responses' timestamps, stops at null values, and takes 1.6 times as long.

Source: argilla-server 2.8.0, `/api/v1` (its OpenAPI page is at `/api/docs`), read 2026-11.
"""

import ipaddress
import json as json_text
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any
from uuid import UUID

import httpx
from pydantic import SecretStr

from annotation.argilla.sdk import client_class, load_sdk
from pipeline.core.errors import (
    ArgillaError,
    NotAllowedError,
    NotFoundError,
    RecordsMovedError,
    ServerUnreachableError,
    SettingsError,
)
from pipeline.core.sentences import sentences

if TYPE_CHECKING:
    import argilla as rg

    from pipeline.settings import Settings

_say = sentences(__file__)


API_PATH = "/api/v1"
KEY_HEADER = "X-Argilla-Api-Key"
# Not all of 127.0.0.0/8: another address of it may have a proxy of its own before it, with a certificate of its own.
_OWN_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
# After a 500 uvicorn closes the kept-alive connection, so the next call on it breaks although the server is well.
_BROKEN_CONNECTION = (httpx.ReadError, httpx.WriteError, httpx.CloseError, httpx.RemoteProtocolError)

BATCH_RECORDS = 500  # argilla-server 2.8.0, RECORDS_BULK_UPSERT_MAX_ITEMS
BATCH_BYTES = 8 * 1024 * 1024  # of JSON; a proxy in front often takes no more than 10 MB


class Argilla(AbstractContextManager["Argilla"]):
    """A connection to one Argilla server as one user; close it, or use it as a context manager."""

    def __init__(self, api_url: str, api_key: SecretStr | str) -> None:
        key = api_key.get_secret_value() if isinstance(api_key, SecretStr) else api_key
        if not key or not key.isascii() or not key.isprintable():
            raise SettingsError("The Argilla API key is empty or holds characters that no key has. Copy it again.")
        url = _address(api_url)
        self.api_url = str(url.copy_with(userinfo=b"")).rstrip("/")
        is_local = url.host in _OWN_HOSTS
        self._http = httpx.Client(
            base_url=url.copy_with(path=url.path.rstrip("/") + API_PATH),
            # On this machine compressing takes longer than sending; a proxy cannot reach its own loopback.
            headers={KEY_HEADER: key, **({"Accept-Encoding": "identity"} if is_local else {})},
            timeout=httpx.Timeout(120.0, connect=10.0),
            # Nothing is encrypted there, and reading all authorities takes longer than most calls.
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_local and url.scheme == "http" else True,
            trust_env=not is_local,
        )

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def request(self, method: str, path: str, *, params: Mapping[str, Any] | None = None, json: Any = None) -> Any:
        """What the server answers, as JSON values; None where it answers without a body.

        `path` is the part below `/api/v1`. GET, PUT and DELETE are tried up to four times when the connection breaks or
        the server fails, as it does where two processes write the same at once.

        Raises:
            ServerUnreachableError: nothing answers, the connection keeps breaking, or no answer came in time.
            NotAllowedError: the key is wrong, or its user may not do this.
            NotFoundError: the server knows no such thing.
            ArgillaError: anything else that is not a success; the message holds the server's own words.
        """
        response = self._send(method, path, params, json)
        if not response.is_success:
            raise self._refusal(response)
        if not response.content:
            return None
        try:
            return response.json()
        except ValueError as error:
            found = response.headers.get("content-type", "no content type")
            raise ArgillaError(_say("no_json", api_url=self.api_url, method=method, path=path, found=found)) from error

    def _send(self, method: str, path: str, params: Mapping[str, Any] | None, json: Any) -> httpx.Response:
        # POST is missing on purpose: one that was cut off may have been carried out.
        attempts = 4 if method.upper() in ("GET", "PUT", "DELETE") else 1
        for attempt in range(1, attempts + 1):
            try:
                response = self._http.request(method, path.lstrip("/"), params=params, json=json)
                if attempt == attempts or not response.is_server_error:
                    return response
            except _BROKEN_CONNECTION as error:
                if attempt == attempts:
                    raise ServerUnreachableError(_say("cut", api_url=self.api_url, method=method, path=path)) from error
            except httpx.TimeoutException as error:
                raise ServerUnreachableError(_say("late", api_url=self.api_url, method=method, path=path)) from error
            except httpx.TransportError as error:
                raise ServerUnreachableError(_say("silent", api_url=self.api_url, error=error)) from error
            time.sleep(0.2 * 2 ** (attempt - 1))
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _refusal(self, response: httpx.Response) -> ArgillaError:
        call = f"{response.request.method} {response.request.url.path}"
        if response.is_redirect:
            target = response.headers.get("location", "")
            return ArgillaError(f"Argilla at {self.api_url} has moved to {target!r}. Set `ARGILLA_API_URL` to it.")
        detail = _refusal_detail(response)
        if response.is_server_error:
            why = detail or response.reason_phrase
            return ArgillaError(_say("fails", api_url=self.api_url, call=call, status=response.status_code, detail=why))
        if detail is None:
            return ArgillaError(_say("not_argilla", api_url=self.api_url, call=call, response=response))
        if response.status_code == httpx.codes.UNAUTHORIZED:
            return NotAllowedError(_say("unknown_key", api_url=self.api_url))
        if response.status_code == httpx.codes.FORBIDDEN:
            return NotAllowedError(_say("forbidden", call=call, api_url=self.api_url, detail=detail))
        if response.status_code == httpx.codes.NOT_FOUND:
            return NotFoundError(f"Argilla at {self.api_url} does not find {call}: {detail}.")
        status = response.status_code
        clash = status == httpx.codes.CONFLICT
        advice = " Run the command again, in case somebody else made it just now." if clash else ""
        return ArgillaError(f"Argilla at {self.api_url} refused {call} with status {status}: {detail}.{advice}")

    def lets_in(self, name: str, password: str) -> bool:
        """Whether the user can log in with the password."""
        return self._http.post("token", data={"username": name, "password": password}).is_success

    def server_date(self) -> str:
        """The server's clock as its `Date` header says it; empty where there is none."""
        return str(self._send("GET", "/version", None, None).headers.get("date", ""))

    def me(self) -> dict[str, Any]:
        return _without_key(self.request("GET", "/me"))

    def workspaces(self) -> dict[str, str]:
        """Ids of the workspaces that the user sees, by name; an owner sees all."""
        return {item["name"]: item["id"] for item in self.request("GET", "/me/workspaces")["items"]}

    def find_workspace(self, name: str) -> str:
        """The workspace's id; NotFoundError where there is none, or the user does not see it."""
        workspaces = self.workspaces()
        if name in workspaces:
            return workspaces[name]
        seen = ", ".join(repr(known) for known in sorted(workspaces)) or "none"
        raise NotFoundError(_say("no_workspace", api_url=self.api_url, name=name, seen=seen))

    def datasets(self, workspace_id: str) -> list[dict[str, Any]]:
        """The workspace's datasets as the server describes them, in order of their names; none gives an empty list."""
        items = self.request("GET", "/me/datasets", params={"workspace_id": workspace_id})["items"]
        return sorted(items, key=lambda item: str(item["name"]))

    def record_pages(
        self, dataset_id: str, include: Sequence[str] = ("responses",), page_size: int = 500
    ) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        """Pages of a dataset's records in order of insertion, each with the dataset's total at that moment.

        Each page is asked for from the last record of the page before on, which shows whether records were deleted
        meanwhile and the pages shifted: the total alone does not, where others were added. An empty dataset gives one
        empty page. A page has 2 to 1000 records.

        Raises:
            NotFoundError: there is no such dataset.
            RecordsMovedError: a page does not follow the one before.
        """
        params: dict[str, Any] = {"limit": page_size}
        if include:
            params["include"] = ",".join(include)
        read, last = 0, None
        while True:
            offset = read if last is None else read - 1
            page = self.request("GET", f"/datasets/{dataset_id}/records", params={**params, "offset": offset})
            total, items = int(page["total"]), page["items"]
            if last is not None:
                if not items or items[0]["id"] != last:
                    raise RecordsMovedError(_say("records_moved", api_url=self.api_url))
                items = items[1:]
            if items or last is None:
                yield total, items
            read += len(items)
            if not items or read >= total:
                return
            last = items[-1]["id"]

    def workspace_users(self, workspace_id: str) -> list[dict[str, Any]]:
        return [_without_key(user) for user in self.request("GET", f"/workspaces/{workspace_id}/users")["items"]]

    def users(self) -> list[dict[str, Any]]:
        """Every user of the server; only an owner may ask."""
        return [_without_key(user) for user in self.request("GET", "/users")["items"]]

    def usernames(self) -> dict[str, str]:
        """User names by user id: all users for an owner, the members of their own workspaces for an admin."""
        if self.me()["role"] == "owner":
            return {user["id"]: user["username"] for user in self.users()}
        members = (user for workspace_id in self.workspaces().values() for user in self.workspace_users(workspace_id))
        return {user["id"]: user["username"] for user in members}


class _Through(httpx.BaseTransport):
    """Raises what `Argilla.request` raises, so that Argilla's SDK fails as everything else does."""

    def __init__(self, argilla: Argilla) -> None:
        self._argilla = argilla

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        body = json_text.loads(request.read() or b"null")
        path = request.url.path.partition(API_PATH)[2]
        answer = self._argilla.request(request.method, path, params=request.url.params, json=body)
        return httpx.Response(200, json=answer)


def open_argilla(settings: "Settings") -> Argilla:
    if settings.api_key is None:
        raise SettingsError(_say("no_key", api_url=settings.api_url))
    return Argilla(settings.api_url, settings.api_key)


def _address(api_url: str) -> httpx.URL:
    try:
        url = httpx.URL(api_url.strip())
    except httpx.InvalidURL as error:
        raise SettingsError(f"The address of Argilla {api_url!r} is no URL: {error}. Set `ARGILLA_API_URL`.") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise SettingsError(_say("no_http", api_url=api_url))
    return url


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _refusal_detail(response: httpx.Response) -> str | None:
    """Argilla's own words, shortened: place and message, never the input; None where it is not Argilla that refuses."""
    try:
        detail = response.json()["detail"]
    except (ValueError, KeyError, TypeError):
        return None
    errors = detail.get("params", {}).get("errors") if isinstance(detail, dict) else None
    if isinstance(errors, list):
        detail = "; ".join(f"{'.'.join(map(str, item.get('loc', ())))}: {item.get('msg', '')}" for item in errors)
    elif isinstance(detail, dict):
        detail = detail.get("params", {}).get("detail") or detail.get("code", "")
    return str(detail)[:600].rstrip(".")


def _without_key(user: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in user.items() if name != "api_key"}


@contextmanager
def unless_done(is_done: Callable[[], object]) -> Iterator[None]:
    """A refusal is none where somebody else, at the same time, did the same."""
    try:
        yield
    except (NotAllowedError, ServerUnreachableError):
        raise
    except ArgillaError:
        if not is_done():
            raise


def connected(argilla: Argilla) -> "rg.Argilla":
    return client_class()(api_url=argilla.api_url, api_key="-", mounts={"all://": _Through(argilla)})


def workspace_handle(client: "rg.Argilla", workspace_id: str) -> "rg.Workspace":
    """Only the id counts; the SDK refuses names that the server takes, so it gets another one."""
    return load_sdk().Workspace(name="by-id", id=UUID(workspace_id), client=client)


def user_handle(client: "rg.Argilla", user_id: str) -> "rg.User":
    return load_sdk().User(username="by-id", id=UUID(user_id), client=client)


def dataset_handle(workspace: "rg.Workspace", dataset_id: str) -> "rg.Dataset":
    dataset = load_sdk().Dataset(name="by-id", workspace=workspace, client=workspace._client)
    dataset.id = UUID(dataset_id)
    return dataset

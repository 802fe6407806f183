"""Argilla's own SDK, for what it does well: definitions of datasets, workspaces and users.

Importing it takes seconds, because it loads pandas and datasets, so `load_sdk` is called where something is defined or
made, and nowhere else. Its requests go through our own connection (`annotation.client`): the same proxies, patience and
errors. Argilla's SDK 2.8.0 sends nothing to any other host.

What it cannot do stays with `annotation.client`:

- A dataset's own metadata, where our task, language and schema hash stand: `DatasetModel` has no such field.
- Making a dataset so that a kill at any moment can be mended: `Dataset.create` begins anew, and cannot finish a draft.
- Versions and new names: `Dataset.update` sends neither a name nor records.
- Changing one attribute of a user: `User.update` sends all of them, and trims names.
- Listing: one workspace whose name has a space makes `client.workspaces` fail, and all commands would wait for the SDK.
- Records and responses: it drops the responses' timestamps, stops at null values, and takes 1.6 times as long.
"""

import warnings
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

from annotation.client import Argilla

if TYPE_CHECKING:
    import argilla as rg

_NO_SERVER = "http://no-server.invalid"


@cache
def load_sdk() -> Any:
    """The module `argilla`, imported now."""
    with warnings.catch_warnings():
        # One of its models is written for pydantic 1; nobody who sees this warning can do anything about it.
        warnings.simplefilter("ignore", DeprecationWarning)
        import argilla
    return argilla


@cache
def _client_class() -> Any:
    """The SDK's client without the request by which it greets the server, which also sets up Python's root logger."""

    class Client(load_sdk().Argilla):  # type: ignore[misc]
        # As a class of its own it is also never what the SDK takes for the default client of a notebook.
        def _validate_connection(self) -> None:
            """Ask nothing."""

    return Client


@cache
def unconnected() -> "rg.Argilla":
    """A client for definitions, which ask for one although they send nothing."""
    return _client_class()(api_url=_NO_SERVER, api_key="-")


def connected(argilla: Argilla) -> "rg.Argilla":
    """The SDK's client for the same server and user; its requests go through our connection."""
    return _client_class()(api_url=argilla.api_url, api_key="-", mounts={"all://": argilla.transport()})


def workspace_handle(client: "rg.Argilla", workspace_id: str) -> "rg.Workspace":
    """A workspace of which only the id counts; the SDK refuses names that the server takes, so it gets another one."""
    return load_sdk().Workspace(name="by-id", id=UUID(workspace_id), client=client)


def user_handle(client: "rg.Argilla", user_id: str) -> "rg.User":
    """A user of whom only the id counts."""
    return load_sdk().User(username="by-id", id=UUID(user_id), client=client)


def dataset_handle(workspace: "rg.Workspace", dataset_id: str) -> "rg.Dataset":
    """A dataset of the workspace, of which only the id counts."""
    dataset = load_sdk().Dataset(name="by-id", workspace=workspace, client=workspace._client)
    dataset.id = UUID(dataset_id)
    return dataset

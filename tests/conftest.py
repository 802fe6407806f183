"""What tests share: an environment without keys, and one embedded Argilla for each session."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from pipeline.errors import ServerStartError

if TYPE_CHECKING:
    from annotation.embedded.launch import ServerHandle

# A machine that is busy with something else is no failure.
settings.register_profile("citejury", deadline=None)
settings.load_profile("citejury")

REMOVED_PREFIXES = ("CITEJURY_", "ARGILLA_")
REMOVED_SUFFIXES = ("_API_KEY", "_PROXY")


@pytest.fixture(autouse=True)
def _environment_without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees a key, a setting or a proxy of the person who runs it."""
    for name in list(os.environ):
        if name.upper().startswith(REMOVED_PREFIXES) or name.upper().endswith(REMOVED_SUFFIXES):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def argilla_server(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[ServerHandle]":
    """A running embedded Argilla in a folder of its own; its data are shared, so tests use workspaces of their own."""
    from annotation.embedded.launch import check_installed, start_server

    try:
        check_installed()
    except ServerStartError as error:
        pytest.skip(str(error))
    home: Path = tmp_path_factory.mktemp("argilla") / "home"
    with start_server(home, port=0) as server:
        yield server

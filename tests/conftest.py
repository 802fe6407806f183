"""What tests share: an environment without keys, and one embedded Argilla for each session."""

import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from pipeline.core.errors import ServerStartError
from tests.support.skips import pytest_make_collect_report as pytest_make_collect_report
from tests.support.skips import pytest_runtest_makereport as pytest_runtest_makereport

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

    from annotation.argilla.client import Argilla
    from annotation.server.launch import ServerHandle
    from tests.support.export_bench import Bench
    from tests.support.postgresql import Server

# A machine that is busy with something else is no failure.
settings.register_profile("thorough", deadline=None)
settings.register_profile("citejury", deadline=None, max_examples=40)
settings.load_profile("citejury")

# Else each of the processes that the tests start compiles all that it imports. `make mutants` changes files within the
# second in which they were compiled, and needs it so.
if "MUTANTS" not in os.environ:
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A run of the tests in the background ignores Ctrl-C, and so would every command that they start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _own_tasks() -> Iterator[None]:
    """A task that a test made known is known to no other."""
    yield
    if labels := sys.modules.get("annotation.argilla.labels"):
        labels.forget_tasks()


QUICK_PASSWORDS = Path(__file__).parent / "support" / "quick_passwords"


# Beginnings of names. What looks at every workspace of the shared server comes before the others have filled it; then
# the longest, because a worker that began one of them last would keep all others waiting.
FIRST = (
    *("any_user_name", "teardown", "users", "sdk", "setup_", "search", "campaign", "move", "readme"),
    *("server_ends", "queue", "export_update", "demo", "hostile_page", "faithful_page", "page_mishaps"),
    *("page_link", "page_script", "page_corrections", "page_stale", "accessibility"),
    *("page_evidence", "page_spans", "research_resume", "push_twice", "soak_server", "adjudicate"),
    *("backup", "made_by", "install", "embedded", "page", "start", "research_", "service", "sources", "extractor"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files in the order of `FIRST`, then all others."""

    def place_of(item: pytest.Item) -> int:
        stem = item.path.stem.removeprefix("test_")
        return next((place for place, start in enumerate(FIRST) if stem.startswith(start)), len(FIRST))

    items.sort(key=place_of)


@pytest.fixture(autouse=True)
def _environment_without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees a key, a setting or a proxy of the person who runs it."""
    for name in list(os.environ):
        if name.upper().startswith(("CITEJURY_", "ARGILLA_")) or name.upper().endswith(("_API_KEY", "_PROXY")):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def argilla_library() -> None:
    """Import argilla-server, and what warns when it does, in this process: seconds that few workers need."""
    with warnings.catch_warnings(action="ignore"):
        pytest.importorskip("uvicorn", reason="The server is not installed here.")
        from annotation.server.patches.first import import_argilla_server

        import_argilla_server()


@pytest.fixture(scope="session")
def argilla_server(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[ServerHandle]":
    """A running embedded Argilla in a folder of its own; its data are shared, so tests use workspaces of their own."""
    from annotation.server.environment import server_python
    from annotation.server.launch import start_server

    try:
        server_python()
    except ServerStartError as error:
        pytest.skip(str(error))
    home: Path = tmp_path_factory.mktemp("argilla") / "home"
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("PYTHONPATH", str(QUICK_PASSWORDS), prepend=os.pathsep)
            server = stack.enter_context(start_server(home, port=0))
        yield server


@pytest.fixture(scope="session")
def postgresql_server(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Server]":
    """A running Argilla on PostgreSQL, shared as `argilla_server` is."""
    from tests.support.postgresql import server_on_postgresql

    with server_on_postgresql(tmp_path_factory.mktemp("postgresql")) as server:
        yield server


@pytest.fixture(scope="session")
def client(argilla_server: "ServerHandle") -> "Iterator[Argilla]":
    from annotation.argilla.client import Argilla

    with Argilla(argilla_server.url, argilla_server.owner_api_key) as connection:
        yield connection


@pytest.fixture(scope="session")
def owner(client: "Argilla") -> "Argilla":
    """The same, for tests in which others are connected too."""
    return client


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Chrome]":
    """A running browser; a new one would read and compile Argilla's whole page again."""
    from tests.support.page_driver import start_browser

    driver = start_browser(tmp_path_factory.mktemp("chromium"))
    yield driver
    driver.quit()


@pytest.fixture(scope="session")
def logging_chromium(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Chrome]":
    """Another one, whose network is logged: that takes a third more of the processor for each page."""
    from tests.support.page_driver import start_browser

    driver = start_browser(tmp_path_factory.mktemp("logging"), logs_network=True)
    yield driver
    driver.quit()


@pytest.fixture
def browser(request: pytest.FixtureRequest, argilla_server: "ServerHandle") -> "Chrome":
    """A browser as if nobody had used it yet; the one that logs its network where a module imports `events`."""
    from tests.support.page_driver import forget

    driver: Chrome = request.getfixturevalue("logging_chromium" if hasattr(request.module, "events") else "chromium")
    forget(driver, argilla_server.url)
    return driver


@pytest.fixture(scope="session")
def users(client: "Argilla") -> dict[str, str]:
    """Ids of two annotators by first name."""
    from tests.support.export_bench import make_user

    return {who: make_user(client, who)["id"] for who in ("anna", "ben")}


@pytest.fixture
def generation(argilla_server: "ServerHandle", client: "Argilla", users: dict[str, str]) -> "Bench":
    """A workspace of the test's own with the dataset of one task."""
    from tests.support.export_bench import generation_bench

    return generation_bench(argilla_server, client, users)

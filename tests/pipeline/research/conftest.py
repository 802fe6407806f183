"""What whole runs share: servers, a store that holds all their pages, and runs in processes that are killed."""

import multiprocessing
import shutil
from collections.abc import Callable, Iterator
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

from pipeline.research.runs import STORE
from tests.support.budget_bench import read_store
from tests.support.places import ROOT
from tests.support.research_process import Servers, answers, research_until, running_servers


@pytest.fixture(scope="session")
def running() -> Iterator[Servers]:
    with running_servers() as started:
        yield started


@pytest.fixture(scope="session")
def read_pages(running: Servers, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that holds all pages: reading them takes most of a run's time."""
    return read_store(tmp_path_factory.mktemp("read"), running)


@pytest.fixture
def servers(running: Servers) -> Iterator[Servers]:
    """The servers as if nobody had asked them anything."""
    sites, find = {**running.web.sites}, running.search.find
    for asked in (running.web.asked, running.search.asked, running.model.calls):
        asked.clear()
    yield running
    running.web.sites, running.search.find, running.model.respond = sites, find, answers


@pytest.fixture
def runs_dir(read_pages: Path, tmp_path: Path) -> Path:
    """A folder for runs, with the store."""
    shutil.copy(read_pages, tmp_path / STORE)
    return tmp_path


@pytest.fixture(scope="session")
def forking() -> Iterator[ForkServerContext]:
    """Processes that begin with everything imported."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["tests.support.research_process"])
        yield context


@pytest.fixture
def run_elsewhere(forking: ForkServerContext, servers: Servers) -> Callable[..., None]:
    """Runs in another process, which is killed when it begins the stage or the model hangs, and else ends."""

    def run(options, stage=None, hanging=None) -> None:  # type: ignore[no-untyped-def]
        reached = forking.Event()
        process = forking.Process(target=research_until, args=(options, servers.outside, stage, reached))
        process.start()
        if stage or hanging:
            assert (hanging or reached).wait(120), stage
            process.kill()
        process.join(120)

    return run

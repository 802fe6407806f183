import contextlib
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from annotation.argilla.client import Argilla
from annotation.argilla.units import HISTORY_PATH
from annotation.server.home.folder import read_or_make_secrets
from tests.support.crowd import (
    PATIENCE_SECONDS,
    Answers,
    acknowledged_of,
    add_records,
    all_at_once,
    check_books,
    find_crowd,
    gather,
)

pytestmark = pytest.mark.server

WORKSPACE = "soak"
MIN_SUBMITTED = 2


@pytest.mark.parametrize(
    ("kills", "annotators"),
    [pytest.param(2, 6, marks=pytest.mark.rare), pytest.param(20, 20, marks=pytest.mark.soak)],
    ids=["sample", "soak"],
)
def test_every_acknowledged_response_outlives_kills(tmp_path: Path, kills: int, annotators: int) -> None:
    chance = random.Random(kills)
    acknowledged: Answers = {}
    for kill in range(kills):
        with serving(tmp_path / "home") as (process, owner):
            crowd = find_crowd(owner, WORKSPACE) if kill else gather(owner, WORKSPACE, annotators, MIN_SUBMITTED)
            check_history(owner, check_books(owner, crowd.dataset, MIN_SUBMITTED, acknowledged))
            add_records(owner, crowd, 100)
            parts = [process, *process.children(recursive=True)]
            victim = parts[0] if kill == 0 else chance.choice([each for each in parts if part_of(each)])
            works = all_at_once(owner.api_url, crowd, killed_after(chance.randrange(10, 60), victim))
            assert [refusal for work in works for refusal in work.refused] == []
            acknowledged |= acknowledged_of(works)
            check_gone(parts)
    with serving(tmp_path / "home") as (process, owner):
        check_history(owner, check_books(owner, crowd.dataset, MIN_SUBMITTED, acknowledged))
        parts = process.children(recursive=True)
        process.send_signal(signal.SIGTERM)
        check_gone(parts)
    assert len(acknowledged) >= kills * 10


def check_history(owner: Argilla, responses: Answers) -> None:
    """The history has each response of the server as given once, and no other: both are on the disk or neither."""
    told: Answers = {}
    after: int | None = 0
    while after is not None:
        page = owner.request("GET", HISTORY_PATH, params={"workspace": WORKSPACE, "after": after})
        for change in page["items"]:
            key = (change["record_id"], change["user_id"])
            assert (change["action"], key in told) == ("insert", False)
            told[key] = change["values_after"]["notes"]["value"]
        after = page["next"]
    assert told == responses


def part_of(process: psutil.Process) -> bool:
    return any(part in word for part in (("cli_serve", "server.guardian", "server.web")) for word in process.cmdline())


def killed_after(submissions: int, victim: psutil.Process) -> Callable[[], bool]:
    """What kills the victim at the given submission, while others are under way; it never says that it is enough."""
    left = threading.Semaphore(submissions - 1)

    def count() -> bool:
        if not left.acquire(blocking=False):
            with contextlib.suppress(psutil.NoSuchProcess):
                victim.kill()
        return False

    return count


def check_gone(parts: list[psutil.Process]) -> None:
    _, alive = psutil.wait_procs(parts, timeout=PATIENCE_SECONDS)
    assert alive == []


@contextlib.contextmanager
def serving(home: Path) -> Iterator[tuple[psutil.Process, Argilla]]:
    """`citejury annotation serve` once it has said where it is, and the owner's connection."""
    command = [sys.executable, "-c", "from annotation.cli.serve import serve; serve()", "--home", str(home)]
    with subprocess.Popen([*command, "--port", "0"], stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            url = next(line for line in process.stderr if line.startswith("Argilla is at")).split()[-1]
            # What it says further must go somewhere, lest it wait for a reader.
            threading.Thread(target=process.stderr.read, daemon=True).start()
            with Argilla(url, read_or_make_secrets(home).owner_api_key) as owner:
                yield psutil.Process(process.pid), owner
        finally:
            process.kill()

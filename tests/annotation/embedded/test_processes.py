"""Processes that serve one socket start, stop and end together, and none is left behind."""

import signal
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

NUMBER = 3
PATIENCE_SECONDS = 120
SERVE = f"""
import os, signal, sys
from annotation.embedded.service import run_processes

def serve():
    os.write(1, b"x")
    signal.pause()

sys.exit(run_processes({NUMBER}, serve))
"""


@pytest.fixture
def parent() -> Iterator["subprocess.Popen[bytes]"]:
    """A process whose children all serve."""
    with subprocess.Popen([sys.executable, "-c", SERVE], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read(NUMBER) == b"x" * NUMBER
        yield process
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_all_end_well_when_told_to_stop(parent: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    children = psutil.Process(parent.pid).children()
    parent.send_signal(number)
    assert parent.wait(PATIENCE_SECONDS) == 0
    assert psutil.wait_procs(children, timeout=PATIENCE_SECONDS)[1] == []


def test_all_end_when_one_does_and_that_is_told(parent: "subprocess.Popen[bytes]") -> None:
    children = psutil.Process(parent.pid).children()
    assert len(children) == NUMBER
    children[1].kill()
    assert parent.wait(PATIENCE_SECONDS) == 1
    assert psutil.wait_procs(children, timeout=PATIENCE_SECONDS)[1] == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_none_outlives_a_parent_that_is_killed(parent: "subprocess.Popen[bytes]") -> None:
    children = psutil.Process(parent.pid).children()
    parent.kill()
    assert psutil.wait_procs(children, timeout=PATIENCE_SECONDS)[1] == []

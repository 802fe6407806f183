import asyncio
import os
import pty
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pipeline.core.terminal import interrupted_by, stopping_on_signals
from tests.support.places import ROOT

WORK = """
import sys, time
from pipeline.core.terminal import QUIET_SECONDS, ProgressBars
with ProgressBars("pages") as bars:
    bars.report("quick [red]")
    bars.tell("a line [red]" if sys.argv[1] != "wide" else "a line of words " * 8)
    print("to stdout", flush=True)
    if sys.argv[1] == "long":
        deadline = time.monotonic() + QUIET_SECONDS + 20
        while not bars.bars.live.is_started and time.monotonic() < deadline:
            time.sleep(0.05)
        bars.report("reading [red]", 1200, 3400, "2 gone")
        bars.bars.refresh()
        print("again", flush=True)
        bars.end("reading [red]")
        bars.clear()
"""


def in_terminal(work: str, out: Path) -> str:
    """What is drawn on stderr, a terminal, while stdout is a file."""
    terminal, end = pty.openpty()
    with open(out, "wb") as file:
        words = [sys.executable, "-c", WORK, work]
        process = subprocess.Popen(words, stdout=file, stderr=end, cwd=ROOT, env={**os.environ, "TERM": "xterm"})
        os.close(end)
        drawn = b""
        while True:
            try:
                piece = os.read(terminal, 4096)
            except OSError:  # Linux's way of saying that the other end is closed
                break
            if not piece:
                break
            drawn += piece
        os.close(terminal)
        assert process.wait(30) == 0, drawn
    return drawn.decode()


def test_lines_come_alone_without_a_terminal_and_go_on_below_between_words_in_one(tmp_path: Path) -> None:
    for work, stderr in (("quick", "a line [red]\n"), ("wide", "a line of words " * 8 + "\n")):
        words = [sys.executable, "-c", WORK, work]
        done = subprocess.run(words, capture_output=True, cwd=ROOT, text=True, check=True)
        assert (done.stdout, done.stderr) == ("to stdout\n", stderr)
    assert in_terminal("quick", tmp_path / "out") == "a line [red]\r\n"  # quick work draws nothing
    lines = in_terminal("wide", tmp_path / "out").split("\r\n")
    assert [len(line.rstrip()) <= 80 for line in lines] == [True] * 3
    assert " ".join(lines).split() == ["a", "line", "of", "words"] * 8


def test_longer_work_is_drawn_by_itself_and_stdout_is_left_alone(tmp_path: Path) -> None:
    drawn = in_terminal("long", tmp_path / "out")
    assert all(part in drawn for part in ("quick [red]", "reading [red]", "1,200/3,400 pages", "2 gone"))
    assert (tmp_path / "out").read_text() == "to stdout\nagain\n"


def test_a_signal_ends_the_block_as_ctrl_c_does_and_its_handler_comes_back_and_other_threads_run() -> None:
    earlier = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), interrupted_by(signal.SIGTERM, signal.SIGHUP):
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is earlier
    ran = []

    def work() -> None:
        with interrupted_by(signal.SIGTERM):
            ran.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert ran == [signal.getsignal(signal.SIGTERM)]


def test_a_running_loop_is_told_of_each_signal_and_earlier_handlers_come_back() -> None:
    heard: list[str] = []

    async def work() -> None:
        with stopping_on_signals(heard.append):
            for number in (signal.SIGINT, signal.SIGTERM):
                before = len(heard)
                os.kill(os.getpid(), number)
                while len(heard) == before:
                    await asyncio.sleep(0)

    with interrupted_by(signal.SIGTERM):
        mine = signal.getsignal(signal.SIGTERM)
        asyncio.run(work())
        assert signal.getsignal(signal.SIGTERM) is mine
    assert heard == ["SIGINT", "SIGTERM"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

"""Signals end a block at once or call a function, and what heard them before hears them again."""

import asyncio
import os
import signal
import threading

import pytest

from pipeline.interrupts import interrupted_by, stopping_on_signals


def send_and_wait(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)
    signal.pause()


def test_a_signal_ends_the_block_as_ctrl_c_does_and_its_handler_comes_back() -> None:
    earlier = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), interrupted_by(signal.SIGTERM, signal.SIGHUP):
        send_and_wait(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is earlier


def test_in_another_thread_the_block_runs_and_nothing_changes() -> None:
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

"""What Ctrl-C and other signals do: end a block at once, or stop work in good order."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

SIGNAL_EXITS = {"SIGINT": 130, "SIGTERM": 143}
"""Exit codes of a run that a signal stopped, as shells have them."""


@contextmanager
def interrupted_by(*numbers: signal.Signals) -> Iterator[None]:
    """Each of the signals raises KeyboardInterrupt at once while the block runs, as Ctrl-C does without asyncio.

    Only the main thread hears signals; in another one nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    earlier = [(number, signal.signal(number, signal.default_int_handler)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in earlier:
            signal.signal(number, handler)


@contextmanager
def stopping_on_signals(stop: Callable[[Literal["SIGINT", "SIGTERM"]], None]) -> Iterator[None]:
    """SIGINT and SIGTERM call `stop`, in the running event loop, while the block runs.

    Only the main thread hears signals, and Windows knows no such handlers: there Ctrl-C ends the process at once, and
    whatever can be resumed is resumed like after any kill.
    """
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return
    import asyncio  # here, because commands import this module at their top, and `--help` is to come at once

    loop = asyncio.get_running_loop()
    earlier = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]
    loop.add_signal_handler(signal.SIGINT, stop, "SIGINT")
    loop.add_signal_handler(signal.SIGTERM, stop, "SIGTERM")
    try:
        yield
    finally:
        for number, handler in earlier:
            loop.remove_signal_handler(number)
            signal.signal(number, handler)  # asyncio gives back the system's way, not the one that was here

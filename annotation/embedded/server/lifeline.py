"""End with the process that holds the other end of a pipe."""

import os
import shutil
import socket
import tempfile
import threading
from urllib.parse import urlsplit


def end_with_the_guardian(descriptor: int) -> None:
    """Return at once; the process ends, and the queue with it, when the pipe's writing end is closed."""
    threading.Thread(target=end_at_end_of_input, args=(descriptor,), daemon=True).start()


def end_at_end_of_input(descriptor: int) -> None:
    """Wait for the end of the pipe, then end this process without asking any of its parts."""
    while os.read(descriptor, 1024):
        pass
    shut_queue_down(os.environ["ARGILLA_REDIS_URL"])
    shutil.rmtree(tempfile.gettempdir(), ignore_errors=True)  # the guardian's scratch folder, see `guardian.Parts`
    os._exit(1)


def shut_queue_down(url: str) -> None:
    """Tell valkey to end; nothing where it has ended already. The jobs are in its log on disk."""
    with socket.socket(socket.AF_UNIX) as queue:
        try:
            queue.connect(urlsplit(url).path)
            queue.sendall(b"SHUTDOWN NOSAVE\r\n")
            queue.recv(1)
        except OSError:
            return

"""A process that extracts one document after another, asked and answered through pipes; it may hang or crash.

Frames: 4 bytes of length, then as many bytes. A request is a frame of JSON (content type, charset, URL) and one with
the body; an answer is one frame of JSON, the fields of `Extracted`; an empty frame
says that the process is ready. It ends when its input ends, even in the middle of a document, and by itself when one
takes more processor time than any may.
"""

import json
import os
import queue
import struct
import sys
import threading
from importlib import import_module
from typing import BinaryIO, NoReturn

from pipeline.sources.reading.extract import extract_document, unread
from pipeline.text.language import identifier

LENGTH = struct.Struct(">I")
MEMORY_BYTES = 2 << 30
TOO_MUCH_MEMORY = "reading it takes too much memory"


def main() -> None:
    """Answer requests until the input ends; the one argument is the number of seconds for a document."""
    seconds = float(sys.argv[1])
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a parser prints is no answer
    limit_memory()
    requests: queue.Queue[tuple[dict[str, str], bytes]] = queue.Queue()
    threading.Thread(target=read_requests, args=(sys.stdin.buffer, requests), daemon=True).start()
    load_parsers()
    write_frame(answers, b"")
    answer_requests(requests, answers, seconds)


def load_parsers() -> None:
    """Load the libraries, which takes a second or two that are not to count for the first document."""
    import_module("pypdfium2")
    import_module("trafilatura")
    identifier()


def read_requests(source: BinaryIO, requests: "queue.Queue[tuple[dict[str, str], bytes]]") -> None:
    """Put each request into the queue; at the end of the input the process ends, whatever it is doing."""
    while (head := read_frame(source)) is not None and (body := read_frame(source)) is not None:
        requests.put((json.loads(head), body))
    os._exit(0)


def read_frame(source: BinaryIO) -> bytes | None:
    """The next frame; None at the end of the input."""
    head = source.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    body = source.read(length)
    return body if len(body) == length else None


def answer_requests(
    requests: "queue.Queue[tuple[dict[str, str], bytes]]", answers: BinaryIO, seconds: float
) -> NoReturn:
    """Answer for as long as there is input; the reading thread ends the process."""
    while True:
        asked, body = requests.get()
        limit_processor_time(seconds)
        try:
            found = extract_document(body, asked["content_type"], asked["charset"], asked["url"])
        except RecursionError:
            found = unread(asked["content_type"], "parser_failed", "it is nested too deep")
        except MemoryError:
            found = unread(asked["content_type"], "parser_failed", TOO_MUCH_MEMORY)
        write_frame(answers, json.dumps(found._asdict()).encode())


def write_frame(answers: BinaryIO, frame: bytes) -> None:
    """Send the frame off."""
    answers.write(LENGTH.pack(len(frame)) + frame)
    answers.flush()


def limit_memory() -> None:
    """No allocation beyond 2 GiB of addresses; nothing on Windows, which has no such limit."""
    if sys.platform != "win32":
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_AS)
        limit = MEMORY_BYTES if most == resource.RLIM_INFINITY else min(MEMORY_BYTES, most)
        resource.setrlimit(resource.RLIMIT_AS, (limit, most))


def limit_processor_time(seconds: float) -> None:
    """The system ends this process when it has used so much more time: its parent may be gone, and its lock held."""
    if sys.platform != "win32":
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        limit = int(used.ru_utime + used.ru_stime + seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))


if __name__ == "__main__":
    main()

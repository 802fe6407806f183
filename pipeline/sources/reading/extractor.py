"""Extraction in processes of its own: a page that hangs or crashes a parser costs one of them, not the run."""

import asyncio
import gc
import json
import os
import queue
import signal
import struct
import sys
import threading
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from importlib import import_module
from types import TracebackType
from typing import BinaryIO, NamedTuple, NoReturn, Self, cast

from pipeline.errors import NotInstalledError
from pipeline.sources.headings import Heading
from pipeline.sources.reading.extract import Extracted, extract_document, unread
from pipeline.text.language import identifier

_LENGTH = struct.Struct(">I")
_MEMORY_BYTES = 2 << 30
_TOO_MUCH_MEMORY = "reading it takes too much memory"
_SECONDS = 30.0
# By the clock a document may take so many times longer: a busy machine gives a process little of its time.
_PATIENCE = 4
_MOST_WORKERS = 4
_LONGEST_ANSWER = 256 << 20


def main() -> None:
    """Answer requests until the input ends; the one argument is the number of seconds for a document."""
    seconds = float(sys.argv[1])
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a parser prints is no answer
    _limit_memory()
    requests: queue.Queue[tuple[dict[str, str], bytes]] = queue.Queue()
    threading.Thread(target=_read_requests, args=(sys.stdin.buffer, requests), daemon=True).start()
    _load_parsers()
    _write_frame(answers, b"")
    _answer_requests(requests, answers, seconds)


def _load_parsers() -> None:
    """Load the libraries, which takes a second or two that are not to count for the first document."""
    import_module("pypdfium2")
    import_module("trafilatura")
    identifier()
    gc.freeze()  # or all of it is looked through again for garbage, page by page


def _read_requests(source: BinaryIO, requests: "queue.Queue[tuple[dict[str, str], bytes]]") -> None:
    """Put each request into the queue; at the end of the input the process ends, whatever it is doing."""
    while (head := _read_frame(source)) is not None and (body := _read_frame(source)) is not None:
        requests.put((json.loads(head), body))
    os._exit(0)


def _read_frame(source: BinaryIO) -> bytes | None:
    """The next frame; None at the end of the input."""
    head = source.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    body = source.read(length)
    return body if len(body) == length else None


def _answer_requests(
    requests: "queue.Queue[tuple[dict[str, str], bytes]]", answers: BinaryIO, seconds: float
) -> NoReturn:
    """Answer for as long as there is input; the reading thread ends the process."""
    while True:
        asked, body = requests.get()
        limit_processor_time(seconds)
        try:
            found = extract_document(body, **asked)
        except RecursionError:
            found = unread(asked["content_type"], "parser_failed", "it is nested too deep")
        except MemoryError:
            found = unread(asked["content_type"], "parser_failed", _TOO_MUCH_MEMORY)
        _write_frame(answers, json.dumps(found._asdict()).encode())


def _write_frame(answers: BinaryIO, frame: bytes) -> None:
    answers.write(_LENGTH.pack(len(frame)) + frame)
    answers.flush()


def _limit_memory() -> None:
    """No allocation beyond 2 GiB of addresses; nothing on Windows, which has no such limit."""
    if sys.platform != "win32":
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_AS)
        limit = _MEMORY_BYTES if most == resource.RLIM_INFINITY else min(_MEMORY_BYTES, most)
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


_KILL = signal.Signals.__members__.get("SIGKILL", signal.SIGTERM)  # Windows has the latter only, which does the same
# How a process ends that has used up its processor time, where the system can limit that.
_TOO_LONG = {-number for name, number in signal.Signals.__members__.items() if name == "SIGXCPU"}


class Worker(NamedTuple):
    """A process that extracts, and the two pipes to it."""

    process: Process
    requests: asyncio.StreamWriter
    answers: asyncio.StreamReader


class Extractor:
    """Extracts documents in up to `workers` processes, each started when it is needed and used again.

    A document that takes longer than `seconds` of processor time, or four times as long by the clock, ends its process
    and is a `parser_timeout`; one that breaks it, or takes
    more than 2 GiB of memory where the system can limit that, is a `parser_failed`. Nothing is left running when the
    block ends, or the process that it runs in.
    """

    def __init__(self, workers: int | None = None, seconds: float = _SECONDS) -> None:
        """Prepare for `workers` processes; without a number as many as there are processors, at most 4."""
        self.count = workers or min(os.cpu_count() or 1, _MOST_WORKERS)
        self.seconds = seconds
        self.free: asyncio.LifoQueue[Worker | None] = asyncio.LifoQueue()
        self.running: set[Worker] = set()

    async def __aenter__(self) -> Self:
        for _ in range(self.count):
            self.free.put_nowait(None)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End every process and wait until it is gone."""
        for worker in list(self.running):
            await self.end(worker)

    async def extract(self, body: bytes, content_type: str, charset: str, url: str, asked: str = "") -> Extracted:
        """What `extract_document` finds, or that no parser came to an end with it.

        Raises:
            NotInstalledError: no process can be started.
        """
        worker = await self.free.get()
        kept: Worker | None = None
        try:
            if worker is None or worker.process.returncode is not None:
                worker = await self.started(worker)
            named = {"content_type": content_type, "charset": charset, "url": url, "asked": asked}
            found = await asyncio.wait_for(self.asked(worker, body, named), _PATIENCE * self.seconds)
            kept = None if found.detail == _TOO_MUCH_MEMORY else worker  # what it took may never be given back
            return found
        except TimeoutError:
            return self.late(content_type)
        except (asyncio.IncompleteReadError, ConnectionError, ValueError):
            if worker is not None and await self.end(worker) in _TOO_LONG:
                return self.late(content_type)
            return unread(content_type, "parser_failed", "the parser broke down on it")
        finally:
            if worker is not None and kept is None:
                await self.end(worker)
            self.free.put_nowait(kept)

    async def started(self, worn_out: Worker | None) -> Worker:
        """A new process, in place of one that has ended by itself.

        Raises:
            NotInstalledError: it ended before it was ready.
        """
        if worn_out is not None:
            await self.end(worn_out)
        command = (sys.executable, "-m", "pipeline.sources.reading.extractor", str(self.seconds))
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, start_new_session=True
        )
        worker = Worker(process, cast(asyncio.StreamWriter, process.stdin), cast(asyncio.StreamReader, process.stdout))
        self.running.add(worker)
        try:
            await worker.answers.readexactly(_LENGTH.size)
        except asyncio.IncompleteReadError:
            await self.end(worker)
            raise NotInstalledError(
                f"The process that reads pages ended with exit code {process.returncode} before its first page; one of "
                "citejury's libraries may be missing or broken."
            ) from None
        return worker

    async def asked(self, worker: Worker, body: bytes, named: dict[str, str]) -> Extracted:
        """The process's answer; `named` is what else `extract_document` is told of the body.

        Raises:
            IncompleteReadError: it ended.
            ConnectionError: it ended before it had read everything.
            ValueError: it answers something else.
        """
        head = json.dumps(named).encode()
        worker.requests.write(_LENGTH.pack(len(head)) + head + _LENGTH.pack(len(body)))
        worker.requests.write(body)
        await worker.requests.drain()
        (length,) = _LENGTH.unpack(await worker.answers.readexactly(_LENGTH.size))
        if length > _LONGEST_ANSWER:
            raise ValueError(f"an answer of {length} bytes")
        fields = json.loads(await worker.answers.readexactly(length))
        headings = tuple(Heading(*each) for each in fields["headings"])
        return Extracted(**{**fields, "page_starts": tuple(fields["page_starts"]), "headings": headings})

    def late(self, content_type: str) -> Extracted:
        """A document that takes too long."""
        return unread(content_type, "parser_timeout", f"no parser came to an end with it in {self.seconds:g} s")

    async def end(self, worker: Worker) -> int:
        """Kill the process unless it has ended, and say how it ended once it is gone."""
        if worker.process.returncode is None:
            # Not by asyncio's `kill`, which may reap a process that ends just now: how it ended is lost then.
            # https://github.com/python/cpython/issues/87744
            with suppress(ProcessLookupError):
                os.kill(worker.process.pid, _KILL)
        self.running.discard(worker)
        return await worker.process.wait()

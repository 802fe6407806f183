"""Extraction in processes of its own: a page that hangs or crashes a parser costs one of them, not the run."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from types import TracebackType
from typing import NamedTuple, Self, cast

from pipeline.errors import NotInstalledError
from pipeline.sources.reading.extract import Extracted, unread
from pipeline.sources.reading.worker import LENGTH, TOO_MUCH_MEMORY

SECONDS = 30.0
# By the clock a document may take so many times longer: a busy machine gives a process little of its time.
PATIENCE = 4
MOST_WORKERS = 4
LONGEST_ANSWER = 256 << 20
# How a process ends that has used up its processor time, where the system can limit that.
TOO_LONG = {-number for name, number in signal.Signals.__members__.items() if name == "SIGXCPU"}


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

    def __init__(self, workers: int | None = None, seconds: float = SECONDS) -> None:
        """Nothing is started yet; as many processes as there are processors, at most 4, unless told."""
        self.count = workers or min(os.cpu_count() or 1, MOST_WORKERS)
        self.seconds = seconds
        self.free: asyncio.LifoQueue[Worker | None] = asyncio.LifoQueue()
        self.running: set[Worker] = set()

    async def __aenter__(self) -> Self:
        """Ready for documents."""
        for _ in range(self.count):
            self.free.put_nowait(None)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End every process and wait until it is gone."""
        for worker in list(self.running):
            await self.end(worker)

    async def extract(self, body: bytes, content_type: str, charset: str, url: str) -> Extracted:
        """What `extract_document` finds, or that no parser came to an end with it.

        Raises:
            NotInstalledError: no process can be started.
        """
        worker = await self.free.get()
        kept: Worker | None = None
        try:
            if worker is None or worker.process.returncode is not None:
                worker = await self.started(worker)
            found = await asyncio.wait_for(
                self.asked(worker, body, content_type, charset, url), PATIENCE * self.seconds
            )
            kept = None if found.detail == TOO_MUCH_MEMORY else worker  # what it took may never be given back
            return found
        except TimeoutError:
            return self.late(content_type)
        except (asyncio.IncompleteReadError, ConnectionError, ValueError):
            if worker is not None and await self.end(worker) in TOO_LONG:
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
        command = (sys.executable, "-m", "pipeline.sources.reading.worker", str(self.seconds))
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, start_new_session=True
        )
        worker = Worker(process, cast(asyncio.StreamWriter, process.stdin), cast(asyncio.StreamReader, process.stdout))
        self.running.add(worker)
        try:
            await worker.answers.readexactly(LENGTH.size)
        except asyncio.IncompleteReadError:
            await self.end(worker)
            raise NotInstalledError(
                f"The process that reads pages ended with exit code {process.returncode} before its first page; one of "
                "citejury's libraries may be missing or broken."
            ) from None
        return worker

    async def asked(self, worker: Worker, body: bytes, content_type: str, charset: str, url: str) -> Extracted:
        """The process's answer.

        Raises:
            IncompleteReadError: it ended.
            ConnectionError: it ended before it had read everything.
            ValueError: it answers something else.
        """
        head = json.dumps({"content_type": content_type, "charset": charset, "url": url}).encode()
        worker.requests.write(LENGTH.pack(len(head)) + head + LENGTH.pack(len(body)))
        worker.requests.write(body)
        await worker.requests.drain()
        (length,) = LENGTH.unpack(await worker.answers.readexactly(LENGTH.size))
        if length > LONGEST_ANSWER:
            raise ValueError(f"an answer of {length} bytes")
        fields = json.loads(await worker.answers.readexactly(length))
        return Extracted(**{**fields, "page_starts": tuple(fields["page_starts"])})

    def late(self, content_type: str) -> Extracted:
        """A document that takes too long."""
        return unread(content_type, "parser_timeout", f"no parser came to an end with it in {self.seconds:g} s")

    async def end(self, worker: Worker) -> int:
        """Kill the process unless it has ended, and say how it ended once it is gone."""
        if worker.process.returncode is None:
            with suppress(ProcessLookupError):
                worker.process.kill()
        self.running.discard(worker)
        return await worker.process.wait()

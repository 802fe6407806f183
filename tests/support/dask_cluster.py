"""A Dask cluster on loopback: a scheduler and workers, each a process of its own."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

LOCAL = ("--host", "127.0.0.1", "--no-dashboard")


class DaskCluster:
    """The processes of a cluster; what they print stands in `dask.log` of the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "dask.log"
        told = folder / "scheduler.json"
        self.scheduler = self.start("scheduler", *LOCAL, "--port", "0", "--scheduler-file", str(told))
        self.workers: list[subprocess.Popen[bytes]] = []
        self.wait(lambda: told.is_file() and told.read_text(encoding="utf-8").rstrip().endswith("}"))
        self.address = str(json.loads(told.read_text(encoding="utf-8"))["address"])

    def start(self, *words: str) -> "subprocess.Popen[bytes]":
        with self.log.open("ab") as log:
            return subprocess.Popen([sys.executable, "-m", "dask", *words], stdout=log, stderr=log, cwd=self.folder)

    def start_workers(self, count: int, places: int) -> None:
        options = (*LOCAL, "--no-nanny", "--nthreads", str(places), "--local-directory", str(self.folder))
        self.workers += [self.start("worker", self.address, *options) for _ in range(count)]
        self.wait(lambda: self.log.read_text(encoding="utf-8").count("Registered to:") >= len(self.workers))

    def worker_at(self, port: int) -> "subprocess.Popen[bytes]":
        """A worker that talks to the server on this port."""
        for worker in self.workers:
            if any(each.raddr and each.raddr.port == port for each in psutil.Process(worker.pid).connections()):
                return worker
        raise AssertionError(f"no worker talks to port {port}")

    def wait(self, done: Callable[[], bool]) -> None:
        """Wait until it is done, for as long as the scheduler lives, five minutes at most."""
        for _ in range(6000):
            if done():
                return
            with suppress(subprocess.TimeoutExpired):
                raise AssertionError(f"the scheduler ended with {self.scheduler.wait(timeout=0.05)}")
        raise AssertionError(self.log.read_text(encoding="utf-8"))

    def kill(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@contextmanager
def dask_cluster(folder: Path, workers: int, places: int) -> Iterator[DaskCluster]:
    cluster = DaskCluster(folder)
    try:
        cluster.start_workers(workers, places)
        yield cluster
    finally:
        cluster.kill()

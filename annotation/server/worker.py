"""Argilla's background jobs: one rq worker for its two queues.

Argilla's own worker would load the whole server to wait for work that a small team rarely causes. This one loads it,
our search engine first, when the first job comes; the processes that rq forks for each job inherit it.
"""

import gc
import os
import sys
from typing import Any

from redis import Redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry
from rq import Worker
from rq.defaults import DEFAULT_WORKER_TTL
from rq.job import Job
from rq.queue import Queue

from annotation.server.guardian import end_with_the_guardian
from annotation.server.home.damage import stop_writing_once_damaged
from annotation.server.home.logs import log_short_entries, tell
from annotation.server.patches.first import import_argilla_server

_WEBHOOK_QUEUE = "high"


class ArgillaWorker(Worker):  # type: ignore[misc]  # rq has no types
    lifeline: int | None = None

    def fork_work_horse(self, job: Job, queue: Queue) -> None:
        gc.disable()  # what is loaded stays, and looking through it is a quarter of the time
        import_argilla_server()
        from annotation.server.patches.engine import register_engine

        register_engine()  # it must be known where the job runs
        stop_writing_once_damaged()
        gc.freeze()
        gc.enable()
        super().fork_work_horse(job, queue)

    def main_work_horse(self, job: Job, queue: Queue) -> Any:
        """Threads do not survive a fork, so the new process watches for itself."""
        if self.lifeline is not None:
            end_with_the_guardian(self.lifeline)
        return super().main_work_horse(job, queue)

    def perform_job(self, job: Job, queue: Queue, execution: Any) -> bool:
        done = bool(super().perform_job(job, queue, execution))
        name = job.func_name.rsplit(".", 1)[-1].removesuffix("_job").replace("_", " ")
        if not done:
            tell(f"job failed: {name}; the log of the worker has the reason")
        elif queue.name != _WEBHOOK_QUEUE:
            tell(f"job done: {name}")
        return done


def main() -> None:
    lifeline = int(sys.argv[1])
    end_with_the_guardian(lifeline)
    work(lifeline)


def work(lifeline: int | None = None, sign_of_life_seconds: int = DEFAULT_WORKER_TTL) -> None:
    url = os.environ["ARGILLA_REDIS_URL"]
    Redis.from_url(url, retry=Retry(ConstantBackoff(0.1), 100)).ping()
    connection = Redis.from_url(url, retry=Retry(ConstantBackoff(0.1), 3))
    worker = ArgillaWorker((_WEBHOOK_QUEUE, "default"), connection=connection, worker_ttl=sign_of_life_seconds)
    worker.lifeline = lifeline
    log_short_entries()
    worker.work(with_scheduler=True, logging_level="WARNING")


if __name__ == "__main__":
    main()

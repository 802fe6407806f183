"""Peak memory of `pipeline sources` with 2,000 pages against 100, served from loopback; both in a process of their own.

Every page differs, each answer cites ten, and the hosts are twenty. Seconds and peaks go to stderr.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.measure import bees, log, report
from tests.support.cited_run import cited_answer, write_run
from tests.support.web import Web

FEW, MANY = 100, 2000
HOSTS = 20
CITED = 10

# The peak of the process itself: those that read the pages have a limit of their own.
MEASURED = """
import json, resource, sys, time
from functools import partial
from pathlib import Path
from pipeline.sources.fetch import FetchPolicy
from pipeline.sources.guard import guarded_client
from pipeline.asking.gather import Online, fetch_missing
from pipeline.asking.run_sources import write_run_records
from pipeline.sources.choose import PassageLimits
from pipeline.sources.store import open_store

async def loopback(host, port):
    return ["127.0.0.1"]

def main():
    folder, port = Path(sys.argv[1]), int(sys.argv[2])
    online = Online(partial(guarded_client, [("127.0.0.1", port)], resolve=loopback), FetchPolicy(delay=0, per_host=8))
    begun = time.perf_counter()
    with open_store(folder / "store.db") as store:
        made = write_run_records(
            folder / "run", folder / "records.jsonl", store, PassageLimits(),
            lambda store, keys: fetch_missing(store, keys, online, "", lambda url, reason: None, lambda total: None),
        )
    print(json.dumps({
        "read": made.tally.by_state()["read"],
        "seconds": time.perf_counter() - begun,
        "kilobytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }))

if __name__ == "__main__":
    main()
"""


def peak_kilobytes(pages: int, web: Web, folder: Path) -> int:
    """Peak memory of one run of the command's work on so many pages."""
    urls = [web.url(f"host{number % HOSTS}.test", f"/{number}") for number in range(pages)]
    answers = [
        cited_answer(first, "What do bees do with nectar?", "They make honey of it.", urls[first : first + CITED])
        for first in range(0, pages, CITED)
    ]
    write_run(folder / "run", answers)
    (folder / "measured.py").write_text(MEASURED, encoding="utf-8")
    command = [sys.executable, str(folder / "measured.py"), str(folder), str(web.port)]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    measured = json.loads(done.stdout)
    if measured["read"] != pages:
        raise SystemExit(f"{measured['read']} of {pages} pages were read: {done.stderr}")
    log(f"{pages} pages in {measured['seconds']:.1f} s, peak {measured['kilobytes'] / 1024:.0f} MiB")
    return int(measured["kilobytes"])


def main() -> None:
    with Web({f"host{number}.test": bees for number in range(HOSTS)}) as web:
        peaks = []
        for pages in (FEW, MANY):
            with tempfile.TemporaryDirectory() as folder:
                peaks.append(peak_kilobytes(pages, web, Path(folder)))
    report("sources", peaks[1] / peaks[0], 1.15)

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.records.causes import state_of
from pipeline.records.run import read_records
from tests.support.cited_run import write_run
from tests.support.hostile_web import ATTACKS, REFUSED, HostileWeb
from tests.support.peak_memory import needs_proc
from tests.support.places import ROOT

LIMIT = 400_000_000
"""Bytes; it takes 200 MB. Without `FetchPolicy.max_bytes` the bodies without end bring it to 1.1 GB (measured here)."""
OUT_OF_TIME = ("timeout", "too_slow")
"""What any of them may come to on a machine that is busy with something else."""
GATHER = """
import json, sys
from pathlib import Path
from pipeline.asking.gather import Online
from pipeline.sources.choose import tally_lines
from pipeline.sources.fetch import FetchPolicy
from pipeline.sources.store import open_store
from tests.support.cited_run import read_pages
from tests.support.hostile_web import HostileWeb
from tests.support.peak_memory import peak_bytes

if __name__ == "__main__":
    folder, web = Path(sys.argv[1]), HostileWeb()
    web.port = int(sys.argv[2])
    policy = FetchPolicy(max_bytes=200_000, max_seconds=5, retries=0, delay=0)
    made = read_pages(folder / "run", Online(web.client, policy))
    with open_store(folder / "store.db") as store:
        events = [event.payload["url"] for event in store.events("run")]
    print(json.dumps({"summary": [*tally_lines(made.tally)], "events": events, "peak": peak_bytes()}))
"""


@pytest.mark.rare
@needs_proc
def test_every_attack_ends_in_one_state_and_has_its_line_in_the_summary(tmp_path: Path) -> None:
    with HostileWeb() as web:
        names = [*ATTACKS, "stairs", "robots-huge", "flip"]
        urls = [*REFUSED.values(), *map(web.url, names), web.url("good")]
        write_run(tmp_path / "run", {"An answer that trusts too much.": urls})
        command = [sys.executable, "-c", GATHER, str(tmp_path), str(web.port)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    (record,) = read_records(tmp_path / "records.jsonl")
    reasons = {source.url: source.reason for source in record.sources}
    assert len(reasons) == len(urls)
    assert {reasons[url] for url in REFUSED.values()} <= {"refused", "not_a_url", "not_web"}
    for name, (_, reason) in ATTACKS.items():
        assert reasons[web.url(name)] in {reason, "empty", *OUT_OF_TIME}, name
    assert reasons[web.url("stairs")] in {"redirects", *OUT_OF_TIME}
    assert reasons[web.url("robots-huge")] == "robots"
    summary = "\n".join(told["summary"])
    for source in record.sources:
        assert source.state == state_of(source.reason)
        assert source.state == "read" or f"{source.state} ({source.reason}) " in summary
        assert source.state == "read" or source.url.partition("://")[2].split("/")[0].partition("@")[2] in summary
    assert len(told["events"]) == len(set(told["events"]))
    assert told["peak"] < LIMIT, f"{told['peak']:,} bytes"

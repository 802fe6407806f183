"""`pipeline sources` on an answer that cites a whole web of attacks: it ends, and each has its line."""

import resource
from pathlib import Path

from pipeline.gathering.gather import Online, fetch_missing
from pipeline.gathering.run_sources import write_run_records
from pipeline.recording.files import read_records
from pipeline.sources.choosing.select import PassageLimits
from pipeline.sources.choosing.tally import tally_lines
from pipeline.sources.fetching.fetch import FetchPolicy
from pipeline.sources.schema import state_of
from pipeline.sources.store import open_store
from tests.support.cited_run import write_run
from tests.support.hostile_web import ATTACKS, REFUSED, HostileWeb

POLICY = FetchPolicy(max_bytes=200_000, max_seconds=5, retries=0, delay=0)
OUT_OF_TIME = ("timeout", "too_slow")
"""What any of them may come to on a machine that is busy with something else."""


def test_every_attack_ends_in_one_state_and_has_its_line_in_the_summary(tmp_path: Path) -> None:
    with HostileWeb() as web:
        names = [*ATTACKS, "stairs", "robots-huge", "flip"]
        urls = [*REFUSED.values(), *map(web.url, names), web.url("good")]
        run = write_run(tmp_path / "run", {"An answer that trusts too much.": urls})
        online = Online(web.client, POLICY)
        with open_store(tmp_path / "store.db") as store:
            made = write_run_records(
                run,
                tmp_path / "records.jsonl",
                store,
                PassageLimits(),
                lambda store, keys: fetch_missing(store, keys, online, "run", lambda *_: None, lambda _: None),
            )
            events = store.events("run")
    (record,) = read_records(tmp_path / "records.jsonl")
    reasons = {source.url: source.reason for source in record.sources}
    assert len(reasons) == len(urls)
    assert {reasons[url] for url in REFUSED.values()} <= {"refused", "not_a_url"}
    for name, (_, reason) in ATTACKS.items():
        assert reasons[web.url(name)] in {reason, "empty", *OUT_OF_TIME}, name
    assert reasons[web.url("stairs")] in {"redirects", *OUT_OF_TIME}
    assert reasons[web.url("robots-huge")] == "robots"
    summary = "\n".join(tally_lines(made.tally))
    for source in record.sources:
        assert source.state == state_of(source.reason)
        assert source.state == "read" or f"{source.state} ({source.reason}) " in summary
        assert source.state == "read" or source.url.partition("://")[2].split("/")[0].partition("@")[2] in summary
    assert len(events) == len({event.payload["url"] for event in events})
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1_000_000

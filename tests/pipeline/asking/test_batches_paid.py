import json
import os
import shutil
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pipeline.asking.batches import ask_in_batches
from pipeline.asking.index import read_index
from pipeline.asking.narratives import NarrativesCsv
from pipeline.asking.paid_replies import BAD_RESPONSES, LEDGER
from pipeline.asking.questions import Limits
from pipeline.asking.run_folder import RunManifest, read_manifest
from pipeline.core.errors import InputError
from pipeline.core.schema import AskOptions, Price, ProviderName
from pipeline.providers import get_provider
from tests.support.batch_books import Asked, Refused, good_answer
from tests.support.batch_runs import (
    QUICK,
    body_by_narrative,
    narrative_of,
    run_batches,
    selection,
    stop_at,
    write_narratives,
)
from tests.support.batch_servers import BatchServers

# A reply of ten tokens in and five out is a dollar at these prices, half a dollar in a batch.
PRICES = dict.fromkeys((get_provider("claude").api().model, "model-1"), Price(input=50_000, output=100_000))
LIMITS = Limits(max_cost=100_000.0, prices=PRICES)


NARRATIVES, RUN = Path("narratives.csv"), Path("run")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_narratives(Path(), 5)


def start(server: BatchServers, *providers: ProviderName, **more: Any) -> RunManifest:
    return run_batches(server, NARRATIVES, RUN, *providers, **more)


def strange_twice(provider: str, custom_id: str, body: Any) -> Any:
    """Answers that cannot be read to two of the narratives."""
    if narrative_of(body) not in ("N3", "N4"):
        return good_answer(provider, custom_id, body)
    return {"type": "message", "content": None, "usage": {"input_tokens": 10, "output_tokens": 5}}


def test_replies_of_batches_that_cannot_be_read_are_counted_at_the_price_of_batches_at_every_start() -> None:
    with BatchServers() as server:
        server.answer = strange_twice
        starts = [start(server, "claude", limits=LIMITS) for _ in range(2)]
    assert [(each.answers, each.providers["claude"].bad_replies) for each in starts] == [(3, 2)] * 2
    assert [each.cost for each in starts] == [2.5, 2.5]
    assert [each.last and each.last.cost for each in starts] == [2.5, 0.0]


def test_replies_that_cannot_be_read_are_counted_once_where_a_stop_has_them_collected_again() -> None:
    sent = list[bool]()

    def stop_at_the_first(*_: Any) -> None:
        if (RUN / BAD_RESPONSES).exists() and not sent:
            sent.append(True)
            os.kill(os.getpid(), signal.SIGINT)

    with BatchServers() as server:
        server.answer = strange_twice
        first = start(server, "claude", limits=LIMITS, progress=stop_at_the_first)
        done = start(server, "claude", limits=LIMITS)
    assert first.stopped == "SIGINT"
    assert first.providers["claude"].bad_replies > 0
    assert (done.stopped, done.answers, done.providers["claude"].bad_replies, done.cost) == ("", 3, 2, 2.5)


def test_a_paused_turn_of_a_batch_that_the_ledger_has_lost_is_gone_on_with_once() -> None:
    with BatchServers(looks=10**6) as server:
        server.answer = body_by_narrative
        start(server, "claude", tell=stop_at("sent as batch"))
        server.looks = 1
        (RUN / LEDGER).write_bytes(b"")
        manifest = start(server, "claude")
    assert (manifest.answers, manifest.errors, [len(batch.items) for batch in server.batches]) == (5, {}, [5, 2])


@pytest.mark.parametrize("status", [400, 500])
def test_a_batch_whose_results_cannot_be_had_keeps_no_other_from_being_collected(status: int) -> None:
    told = list[str]()

    def damaged(asked: Asked) -> None:
        if asked.path.startswith("/files/file-out-1"):
            raise Refused(status, "The file is damaged.")

    def stop_when_collected(line: str) -> None:
        told.append(line)
        if status == 500:  # what may pass is waited for
            stop_at("batch_0003 has ended")(line)

    policy = QUICK._replace(requests=2)
    with BatchServers() as server:
        server.instead = damaged
        first = start(server, "openai", policy=policy, tell=stop_when_collected)
        told_first = [line for line in told if "The file is damaged." in line]
        server.instead = lambda asked: None
        done = start(server, "openai", policy=policy)
    assert (first.answers, first.unsettled, first.stopped) == (3, 2, "batch" if status == 400 else "SIGINT")
    assert (len(told_first), done.answers, len(server.batches), set(server.accepted.values())) == (1, 5, 3, {1})


def test_ending_batches_comes_to_an_end_where_the_results_of_one_cannot_be_had() -> None:
    told = list[str]()

    def damaged(asked: Asked) -> None:
        if asked.path.startswith("/files/"):
            raise Refused(400, "The file is damaged.")

    with BatchServers() as server:
        start(server, "openai", tell=stop_at("sent as batch"))
        server.instead = damaged
        manifest = start(server, "openai", cancel=True, told=told)
    assert (manifest.stopped, manifest.unsettled) == ("batch", 5)
    assert any("batch_0001 is left to a later start; its 5 calls may be paid." in line for line in told)


def test_a_provider_that_is_away_from_the_beginning_is_an_error_of_each_call() -> None:
    server, told = BatchServers(), list[str]()
    server.server.server_close()
    with pytest.raises(InputError, match=r"Nothing was answered \(5 network\)"):
        start(server, "openai", told=told)
    assert [line for line in told if "cannot be reached" in line] == [told[0]]
    assert "It is asked again." in told[0]
    with BatchServers() as servers:
        assert start(servers, "openai").answers == 5


def test_a_kill_after_the_answer_to_a_turn_that_was_begun_anew_loses_no_count_of_what_it_had_brought() -> None:
    killed = Path("killed")

    def as_a_kill_leaves_it(*_: Any) -> None:
        """The folder once all is answered, and before the run comes to its end."""
        if not killed.exists() and len(list(read_index(RUN / "claude.csv"))) == 5:
            shutil.copytree(RUN, killed)

    with BatchServers() as server:
        server.answer = body_by_narrative
        start(server, "claude", tell=stop_at("paused, to be finished"))
        server.answer = good_answer
        german = selection(server, "claude")._replace(options=AskOptions(country="DE"))
        questions = german.questions(NarrativesCsv(NARRATIVES))
        ask_in_batches(
            questions, RUN, german, policy=QUICK, limits=LIMITS, progress=as_a_kill_leaves_it, redirect_client=None
        )
        ask_in_batches(questions, killed, german, policy=QUICK, limits=LIMITS, redirect_client=None)
    for manifest in (read_manifest(RUN), read_manifest(killed)):
        assert (manifest.answers, manifest.providers["claude"].paused_bodies, manifest.cost) == (5, 2, 3.5)


def test_results_of_another_run_that_the_provider_has_deleted_keep_nobody_from_asking() -> None:
    with BatchServers() as server:
        run_batches(server, write_narratives(Path(), 4), RUN, "claude")
        write_narratives(Path(), 5)
        run_batches(server, NARRATIVES, Path("another"), "claude")

        def deleted(asked: Asked) -> None:
            if asked.path.endswith("/batch_0002/results"):
                raise Refused(404, "The results are no longer available.")

        server.instead = deleted
        manifest = start(server, "claude")
    assert (manifest.answers, manifest.errors) == (5, {})
    assert [len(batch.items) for batch in server.batches] == [4, 5, 1]


def test_a_batch_of_a_folder_with_digests_of_bodies_is_collected() -> None:
    with BatchServers(looks=10**6) as server:
        start(server, "openai", tell=stop_at("sent as batch"))
        lines = [json.loads(line) for line in (RUN / LEDGER).read_text(encoding="utf-8").splitlines()]
        lines[0]["digest"] = lines[0].pop("said")[::-1]
        (RUN / LEDGER).write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
        server.looks = 0
        manifest = start(server, "openai")
    assert (manifest.answers, len(server.batches)) == (5, 1)


def test_a_batch_that_somebody_makes_after_the_start_began_is_not_waited_for() -> None:
    listings = list[str]()

    def by_another(asked: Asked) -> Any:
        """A list with a batch of somebody else's that never ends."""
        if (asked.method, asked.path) != ("GET", "/v1/messages/batches"):
            return None
        listings.append(asked.path)
        if len(listings) == 10:
            os.kill(os.getpid(), signal.SIGINT)
        made = datetime.now(UTC) + timedelta(hours=2)
        batch = {"id": "msgbatch_1", "processing_status": "in_progress", "created_at": made.isoformat()}
        return {"data": [{**batch, "request_counts": {"processing": 1}}], "has_more": False}

    with BatchServers() as server:
        run_batches(server, write_narratives(Path(), 4), RUN, "claude")
        server.instead = by_another
        manifest = run_batches(server, write_narratives(Path(), 5), RUN, "claude")
    assert (manifest.answers, manifest.stopped) == (5, "")

"""The pending queue and the history on PostgreSQL, in two web processes at once: neither is in anybody's memory."""

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import psycopg2
import pytest

from annotation.argilla.client import Argilla
from annotation.argilla.units import ASSIGNMENT, Assignment, read_units, units_with_texts
from annotation.campaign.datasets import find_datasets
from annotation.campaign.people import Passwords, forget_user, remove_user, renew_password
from annotation.campaign.setup import set_up
from pipeline.core.errors import NotAllowedError
from tests.support.history_checks import (
    check_a_deleted_dataset_can_be_erased,
    check_cascades,
    check_every_way_to_change_a_response,
    check_nothing_is_changed,
    place,
)
from tests.support.postgresql import SERVICE, Server, run_part, server_on_postgresql
from tests.support.practice_campaign import practised
from tests.support.queue_player import Player, ours, put, texts
from tests.support.ways_in import study

pytestmark = [pytest.mark.server, pytest.mark.rare]

ODD: tuple[Any, ...] = ({"record_uuid": "x", "chunk_rank": {"a": 1}}, "a \0 in it", [1], {}, None)
PATIENCE_SECONDS = 120


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with server_on_postgresql(tmp_path_factory.mktemp("queue")) as server:  # nobody else's: whole tables are looked at
        yield server


def test_annotators_at_once_give_each_record_its_labels_and_none_too_many(server: Server) -> None:
    names = [f"{name}-{uuid4()}" for name in ("anna", "ben", "carla", "dora", "emil")]
    with Argilla(server.url, server.api_key) as owner, contextlib.ExitStack() as pages:
        set_up(owner, "queue", annotators=names, min_submitted=2)
        dataset = find_datasets(owner, "queue")["retrieval"].id
        records = ours(texts(8, passages=2), "retrieval")
        odd = [
            {**records[0], "external_id": f"odd-{number}", "metadata": {"citejury": each}}
            for number, each in enumerate(ODD)
        ]
        put(owner, dataset, [*records, *odd])
        keys = {user["username"]: user["api_key"] for user in owner.request("GET", "/users")["items"]}
        players = [Player(pages.enter_context(Argilla(server.url, keys[name])), dataset, "retrieval") for name in names]
        given = work_at_once(players)
        lists = [player.client.request("GET", "/citejury/me/work")["lists"] for player in players]
        assert list(read_units(owner, dataset)) == list(units_with_texts(owner, dataset))
        assert owner.request("GET", "/citejury/me/replies") == {"replies": []}
    assert Counter(given.values()) == {2: len(records) + len(odd)}
    assert [len(each) for each in lists] == [1] * len(names)
    assert sum(each["done"] for (each,) in lists) == 2 * (len(records) + len(odd))
    assert {each["total"] - each["done"] for (each,) in lists} == {0}
    assert any(each["pace"] is not None for (each,) in lists)
    with contextlib.closing(psycopg2.connect(server.database)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT lacking, pending, count(*) FROM citejury_queue GROUP BY 1, 2")
        assert cursor.fetchall() == [(0, 0, len(records) + len(odd))]
        cursor.execute("SELECT count(*) FROM citejury_queue WHERE passage > 0")
        assert cursor.fetchone() == (len(records),)


def test_practice_opens_its_list_at_the_pass_mark_and_is_begun_anew(server: Server) -> None:
    with Argilla(server.url, server.api_key) as owner:
        work = practised(owner, tasks=["retrieval"], cases=1)
        work.practise("anna", "practice-1-retrieval-en", wrong=3)
        assert work.queue("anna", "1-retrieval-en") == []
        with work.herself("anna") as anna:
            again = anna.request("POST", f"/citejury/datasets/{work.dataset('practice-1-retrieval-en')}/practice/again")
        assert (again["answered"], again["right"], again["attempts"]) == (0, 0, 1)
        work.practise("anna", "practice-1-retrieval-en")
        assert len(work.queue("anna", "1-retrieval-en")) == 2
        run_part([*SERVICE, "migrate"], server.environment)  # a start keeps what first answers were
        assert work.lists("anna")["practice-1-retrieval-en"]["practice"]["right"] == 3
        odd = ours(texts(1), "retrieval")[0] | {"metadata": {"citejury": "\x00"}}  # no text of PostgreSQL's holds it
        put(owner, work.dataset("practice-1-retrieval-en"), [odd])
        assert work.lists("anna")["practice-1-retrieval-en"]["practice"]["right"] == 3


def test_the_history_has_every_change_and_nobody_changes_it(server: Server) -> None:
    with (
        Argilla(server.url, server.api_key) as owner,
        contextlib.closing(psycopg2.connect(server.database)) as database,
    ):
        check_every_way_to_change_a_response(place(owner, server.url, database))
        check_cascades(place(owner, server.url, database))
        check_nothing_is_changed(place(owner, server.url, database), psycopg2.Error)
        check_a_deleted_dataset_can_be_erased(place(owner, server.url, database))


@pytest.mark.soak
def test_the_text_index_is_made_anew_by_two_starts_at_once(server: Server) -> None:
    with Argilla(server.url, server.api_key) as owner:
        set_up(owner, "anew", annotators=[f"anna-{uuid4()}"])
        put(owner, find_datasets(owner, "anew")["retrieval"].id, ours(texts(3, passages=2), "retrieval"))
    with contextlib.closing(psycopg2.connect(server.database)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT record_id, field, words FROM citejury_texts ORDER BY 1, 2, 3")
        before = cursor.fetchall()
        cursor.execute("DELETE FROM citejury_texts; UPDATE citejury_text_version SET version = 'of other software'")
        connection.commit()
        with ThreadPoolExecutor(2) as starts:
            list(starts.map(lambda _: run_part([*SERVICE, "migrate"], server.environment), range(2)))
        cursor.execute("SELECT record_id, field, words FROM citejury_texts ORDER BY 1, 2, 3")
        assert cursor.fetchall() == before != []


def work_at_once(players: list[Player]) -> Counter[str]:
    given: Counter[str] = Counter()
    changed = threading.Condition()
    idle: set[int] = set()

    def work(who: int) -> None:
        player = players[who]
        while len(idle) < len(players):
            shown = player.shown or player.open()
            if shown:
                player.submit()
            with changed:
                if shown:
                    given[shown.external_id] += 1
                    idle.clear()
                else:
                    idle.add(who)
                changed.notify_all()
                # Until somebody else has done something, there is nothing new to ask for.
                if not shown:
                    changed.wait_for(lambda: who not in idle or len(idle) == len(players), PATIENCE_SECONDS)

    with ThreadPoolExecutor(len(players)) as pool:
        list(pool.map(work, range(len(players))))
    return given


def test_assigned_records_are_kept_in_step_on_postgresql_too(server: Server) -> None:
    names = [f"{name}-{uuid4()}" for name in ("anna", "ben", "carla")]
    with Argilla(server.url, server.api_key) as owner, contextlib.ExitStack() as pages:
        set_up(owner, "assigned", annotators=names, min_submitted=2)
        dataset = find_datasets(owner, "assigned")["generation"].id
        users = {user["username"]: user for user in owner.request("GET", "/users")["items"]}
        for_anna = Assignment(needed=1, users=(users[names[0]]["id"],))
        control = Assignment(purpose="control", needed=3, rate=0.25, answers={"helpful": True})
        records = ours(texts(13))
        wanted = [None] * 7 + [for_anna] + [control] * 4 + ["somebody else's"]
        for record, said in zip(records, wanted, strict=True):
            if said is not None:
                kept = said.model_dump(mode="json") if isinstance(said, Assignment) else {"needed": said, "users": said}
                record["metadata"][ASSIGNMENT] = kept
        ids = put(owner, dataset, records[:-1])
        (odd,) = put(owner, dataset, records[-1:])
        anna, ben, carla = (
            Player(pages.enter_context(Argilla(server.url, users[name]["api_key"])), dataset, "generation")
            for name in names
        )
        given = work_at_once([anna, ben])
        labelled = {records[place]["external_id"] for place in (*range(7), 12)}
        controls = {record["external_id"] for record in records[8:12]}
        assert {each: given[each] for each in labelled} == dict.fromkeys(labelled, 2)
        assert given[records[7]["external_id"]] == 1
        assert 4 <= sum(given[each] for each in controls) <= 8  # one with each three others, and one more or less
        found = anna.client.request("POST", f"/me/datasets/{dataset}/records/search", json={})
        assert (
            found["total"]
            == sum(anna.client.request("GET", f"/me/datasets/{dataset}/metrics")["responses"].values()) / 2
        )
        with pytest.raises(NotAllowedError):
            ben.client.request("GET", f"/records/{ids[7]}")
        owner.request("PUT", f"/datasets/{dataset}/records/bulk", json={"items": [{"id": odd, "metadata": {}}]})
        for needed, is_open in ((3, True), (2, False), (3, True)):
            said = {ASSIGNMENT: {"needed": needed}}
            put(owner, dataset, [{"id": ids[0], "metadata": {**records[0]["metadata"], **said}}])
            assert owner.request("GET", f"/records/{ids[0]}")["status"] == ("pending" if is_open else "completed")
        assert carla.ask(0)[-1].id == ids[0]  # by lot after a control
    with contextlib.closing(psycopg2.connect(server.database)) as connection, connection.cursor() as cursor:
        cursor.execute("DROP TABLE citejury_queue")
        cursor.execute("CREATE TABLE citejury_queue (record_id UUID PRIMARY KEY, labels INTEGER NOT NULL)")
        connection.commit()
        run_part([*SERVICE, "migrate"], server.environment)
        cursor.execute(
            "SELECT lacking, needed, count(*) FROM citejury_queue WHERE mixed = 0 GROUP BY 1, 2 ORDER BY 1, 3"
        )
        rows = cursor.fetchall()
    assert (1, 3, 1) in rows


def test_what_was_ended_opens_no_route_in_either_process(server: Server) -> None:
    with Argilla(server.url, server.api_key) as owner, study(server.url, owner) as jury:
        kept = jury.kept()
        remove_user(owner, jury.people["removed"].name)
        forget_user(owner, jury.people["forgotten"].name)
        renew_password(owner, jury.people["renewed"].name, Passwords())
        renew_password(owner, jury.people["renewed"].name, Passwords())
        remove_user(owner, jury.people["moved"].name, [jury.workspace])
        for who in ("removed", "forgotten", "renewed", "moved"):
            for way in jury.people[who].ways():
                assert jury.statuses(way, who) == {401}
        moved = jury.token(jury.people["moved"].name, jury.people["moved"].password)
        path = f"/responses/{jury.responses['moved']}"
        answers = [jury.call(moved, method, path, json={"status": "draft"}) for method in ("PUT", "DELETE")]
        assert [answer.status_code for answer in answers] == [403, 403]
        assert (jury.kept(), jury.write(moved, jury.other["record_id"])) == (kept, [201, 200, 200])

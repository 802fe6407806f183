"""Records with an assignment, over real HTTP: how many answers they wait for, who gets them, and where they come."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

import pytest

from annotation.argilla.client import Argilla
from annotation.argilla.units import ASSIGNMENT, Assignment, Purpose, read_units
from pipeline.core.errors import NotAllowedError
from tests.support.queue_player import Player, gathering, ours, put, texts

pytestmark = pytest.mark.server

RATE = 0.2


def assigned(records: Sequence[dict[str, Any]], assignment: Assignment) -> list[dict[str, Any]]:
    said = assignment.model_dump(mode="json")
    return [{**record, "metadata": {**record["metadata"], ASSIGNMENT: said}} for record in records]


def mixed_in(people: int, purpose: Purpose = "control", users: tuple[str, ...] = ()) -> Assignment:
    return Assignment(purpose=purpose, needed=people, rate=RATE, users=users, answers={"helpful": True})


@pytest.fixture
def gather(client: Argilla) -> Iterator[Any]:
    with gathering(client) as of:
        yield of


def submit(player: Player, record_id: str) -> None:
    body = {"status": "submitted", "values": player.values}
    player.client.request("POST", f"/records/{record_id}/responses", json=body)


def statuses(client: Argilla, dataset: str) -> dict[str, bool]:
    return {unit.record_id: unit.is_open for unit in read_units(client, dataset)}


def progress(player: Player) -> tuple[int, int]:
    found = player.client.request("GET", f"/datasets/{player.dataset_id}/progress")
    return found["completed"], found["total"]


def work(player: Player) -> list[str]:
    """External ids of all that they get and submit, until nothing is left."""
    done = []
    player.open()
    while player.shown:
        done.append(player.shown.external_id)
        player.submit()
    return done


def test_a_record_waits_for_as_many_answers_as_its_assignment_says(gather: Any, client: Argilla) -> None:
    team = gather(3)
    plain, one, three = ours(texts(3))
    assigned_three = assigned([three], Assignment(needed=3))
    ids = put(client, team.dataset, [plain, *assigned([one], Assignment(needed=1)), *assigned_three])
    for player, is_open in ((team.players[0], (True, False, True)), (team.players[1], (False, False, True))):
        for record_id in ids:
            submit(player, record_id)
        assert statuses(client, team.dataset) == dict(zip(ids, is_open, strict=True))
    assert work(team.players[2]) == [three["external_id"]]
    assert statuses(client, team.dataset) == dict.fromkeys(ids, False)
    put(client, team.dataset, [{"id": ids[0], "metadata": assigned_three[0]["metadata"]}])  # one more of a done one
    assert statuses(client, team.dataset) == dict(zip(ids, (True, False, False), strict=True))
    assert [player.open() is not None for player in team.players] == [False, False, True]
    put(client, team.dataset, [{"id": ids[0], "metadata": plain["metadata"]}])
    assert statuses(client, team.dataset) == dict.fromkeys(ids, False)
    assert team.players[2].open() is None


def test_records_keep_their_own_overlap_and_who_reads_all_reads_assignments(gather: Any, client: Argilla) -> None:
    team = gather(2, overlap=1)
    plain, own = ours(texts(2))
    ids = put(client, team.dataset, [plain, *assigned([own], Assignment(needed=1))])
    for record_id in ids:
        submit(team.players[0], record_id)
    distribution = {"strategy": "overlap", "min_submitted": 2}
    client.request("PATCH", f"/datasets/{team.dataset}", json={"distribution": distribution})
    assert statuses(client, team.dataset) == {ids[0]: True, ids[1]: False}
    assert [record.id for record in team.players[1].ask(0)] == [ids[0]]
    team = gather(1)
    wanted = Assignment(purpose="repeat", needed=1, users=(team.users[0],), rate=0.1, repeats="it")
    put(client, team.dataset, [*ours(texts(1)), *assigned(ours(texts(1)), wanted)])
    assert [unit.assignment for unit in read_units(client, team.dataset)] == [Assignment(), wanted]
    team = gather(1)
    put(client, team.dataset, [*ours(texts(2)), *assigned(ours(texts(2)), mixed_in(1, users=(team.users[0],)))])
    found = client.request("POST", f"/datasets/{team.dataset}/records/search", json={})
    mine = client.request("POST", f"/me/datasets/{team.dataset}/records/search", json={})
    assert (found["total"], mine["total"]) == (4, 4)
    assert UUID(found["items"][0]["record"]["id"])


@pytest.mark.parametrize("purpose", ["label", "repeat", pytest.param("practice", marks=pytest.mark.rare)])
def test_a_record_for_one_annotator_is_found_by_no_other(gather: Any, client: Argilla, purpose: Purpose) -> None:
    team = gather(2, overlap=1)
    anna, ben = team.players
    hers = Assignment(purpose=purpose, needed=1, users=(team.users[0],), rate=0.5)
    common, named = ours(texts(2)), assigned(ours(texts(1)), hers)
    *common_ids, named_id = put(client, team.dataset, [*common, *named])
    search = f"/me/datasets/{team.dataset}/records/search"

    def found(player: Player, query: dict[str, Any]) -> tuple[set[str], int]:
        answer = player.client.request("POST", search, json=query)
        return {item["record"]["id"] for item in answer["items"]}, answer["total"]

    text = {"query": {"text": {"q": "a", "field": "answer"}}}
    of_ids = [{"type": "terms", "scope": {"entity": "record", "property": "id"}, "values": [named_id]}]
    for query in ({}, text):
        assert (found(anna, query), found(ben, query)) == (({*common_ids, named_id}, 3), (set(common_ids), 2))
    assert found(ben, {"filters": {"and": of_ids}}) == (set(), 0)
    assert found(ben, {"query": {"text": {"q": named[0]["external_id"]}}}) == (set(), 0)
    assert len(found(anna, {"query": {"text": {"q": named[0]["external_id"]}}})[0]) == 1
    assert ({record.id for record in ben.ask(0, limit=500)}, ben.total) == (set(common_ids), 2)
    assert ({record.id for record in anna.ask(0, limit=500)}, anna.total) == ({*common_ids, named_id}, 3)
    assert [progress(player) for player in team.players] == [(0, 3), (0, 2)]
    metrics = [player.client.request("GET", f"/me/datasets/{team.dataset}/metrics") for player in team.players]
    assert [each["responses"]["total"] for each in metrics] == [3, 2]
    bulk = {"items": [{"record_id": named_id, "status": "submitted", "values": ben.values}]}
    for method, path in (("GET", ""), ("GET", "/answer"), ("GET", "/suggestions"), ("POST", "/responses")):
        body = {"status": "submitted", "values": ben.values} if method == "POST" else None
        with pytest.raises(NotAllowedError):
            ben.client.request(method, f"/records/{named_id}{path}", json=body)
    assert ben.client.request("POST", "/me/responses/bulk", json=bulk)["items"][0]["item"] is None
    assert set(work(ben)) == {item["external_id"] for item in common}
    assert work(anna) == [] if purpose == "repeat" else [named[0]["external_id"]]


def test_controls_come_at_their_rate_all_along_and_to_everybody_elsewhere(gather: Any, client: Argilla) -> None:
    team = gather(2)
    units, controls = ours(texts(12)), assigned(ours(texts(6)), mixed_in(2))
    put(client, team.dataset, [*units, *controls])
    known = {item["external_id"] for item in controls}
    orders = [work(player) for player in team.players]
    places = [[place for place, each in enumerate(order) if each in known] for order in orders]
    assert all(2 <= len(each) <= 4 for each in places)  # one with each four others: a fifth
    assert all(1 <= sum(place < 10 for place in each) <= 3 for each in places)
    assert places[0] != places[1]
    assert {each for order in orders for each in order} > {item["external_id"] for item in units}
    assert [progress(player) for player in team.players] == [(len(order), len(order)) for order in orders]
    assert all(player.open() is None and player.total == 0 for player in team.players)


def test_controls_and_repeats_come_at_one_rate_odd_assignments_are_none(gather: Any, client: Argilla) -> None:
    team = gather(1, overlap=1)
    repeats = assigned(ours(texts(4)), mixed_in(1, purpose="repeat", users=(team.users[0],)))
    put(client, team.dataset, [*ours(texts(8)), *assigned(ours(texts(4)), mixed_in(1)), *repeats])
    order = work(team.players[0])
    assert 1 <= len(order) - 8 <= 3  # one with each four others: a fifth
    team = gather(1, overlap=1)
    put(client, team.dataset, assigned(ours(texts(5)), mixed_in(1)))
    assert (team.players[0].open(), team.players[0].total, progress(team.players[0])) == (None, 0, (0, 0))
    said = [
        "control",
        [],
        {"purpose": ["control"], "needed": "2", "users": "anna", "rate": "much"},
        {"needed": -1, "users": {}, "rate": -1.5},
        {"purpose": None, "needed": 1e30, "users": [], "rate": 1e300},
    ]
    team, records = gather(1, overlap=1), ours(texts(len(said)))
    for record, odd in zip(records, said, strict=True):
        record["metadata"] = {**record["metadata"], ASSIGNMENT: odd}
    put(client, team.dataset, records)
    assert sorted(work(team.players[0])) == sorted(record["external_id"] for record in records)


def test_her_counts_do_not_tell_which_of_her_records_was_a_control(gather: Any, client: Argilla) -> None:
    team = gather(1, overlap=1)
    (anna,) = team.players
    put(client, team.dataset, [*ours(texts(8)), *assigned(ours(texts(6)), mixed_in(1))])
    listed = [record.external_id for record in anna.ask(0, limit=500)]
    found = anna.client.request("POST", f"/me/datasets/{team.dataset}/records/search", params={"limit": 500}, json={})
    assert {item["record"]["external_id"] for item in found["items"]} == set(listed)
    total = anna.total
    assert total == len(listed)
    assert 9 <= total <= 11
    done = 0
    anna.open()
    while anna.shown:
        assert (progress(anna), anna.total) == ((done, total), total - done)
        anna.submit()
        done += 1
    assert done == total


def test_a_control_of_retrieval_comes_with_all_its_passages(gather: Any, client: Argilla) -> None:
    team = gather(1, task="retrieval", overlap=1)
    controls = texts(3, passages=2)
    put(client, team.dataset, ours(texts(6, passages=2), "retrieval"))
    put(client, team.dataset, assigned(ours(controls, "retrieval"), mixed_in(1)))
    order = [external_id.split(":")[0] for external_id in work(team.players[0])]
    answers = [order[first] for first in range(0, len(order), 2)]
    assert Counter(order) == dict.fromkeys(answers, 2)
    given = {each.record_uuid for each in controls} & set(answers)
    assert len(answers) == 6 + len(given)
    assert 1 <= len(given) <= 2


def test_two_who_hold_the_same_control_both_answer_it(gather: Any, client: Argilla) -> None:
    team = gather(2)
    put(client, team.dataset, [*ours(texts(9)), *assigned(ours(texts(1)), mixed_in(2))])
    (control,) = [unit.external_id for unit in read_units(client, team.dataset) if unit.assignment.purpose == "control"]
    for player in team.players:
        player.open()
        while player.shown and player.shown.external_id != control:
            player.move_on()
    assert [player.shown and player.shown.external_id for player in team.players] == [control] * 2

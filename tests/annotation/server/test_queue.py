"""Each annotator's pending queue over real HTTP: it finishes what was begun, and what she looks at is hers."""

import contextlib
import heapq
import json
import random
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import create_engine

from annotation.argilla.client import Argilla
from annotation.argilla.display import to_records
from annotation.argilla.labels import TaskName
from annotation.argilla.wording import read_wording
from annotation.server.home.folder import hold_seconds
from annotation.server.launch import ServerHandle
from pipeline.core.errors import SettingsError
from tests.support.queue_player import Player, Shown, gathering, ours, put, texts

pytestmark = pytest.mark.server

OVERLAP = 2
NINE_TENTHS_FROM = 150  # records touched; from 240 on it cannot be otherwise, with twelve who have two each
HELD_EACH = 2  # answers: the one that she looks at, and the one that her page asked for ahead


class Jury(NamedTuple):
    players: list[Player]
    dataset: str
    ids: list[str]


@pytest.mark.parametrize("said", ["15 min", "0", "-1", "²", "86401", "9" * 20])
def test_a_time_that_nothing_can_be_held_for_is_refused(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setenv("CITEJURY_HOLD_SECONDS", said)
    with pytest.raises(SettingsError, match="should be a number of seconds, 1 to 86400"):
        hold_seconds()


@pytest.fixture
def jury(client: Argilla) -> Iterator[Any]:
    with gathering(client) as of:

        def gather(
            people: int, records: Sequence[dict[str, Any]], task: TaskName = "generation", overlap: int = OVERLAP
        ) -> Jury:
            team = of(people, task, overlap)
            return Jury(team.players, team.dataset, put(client, team.dataset, records))

        yield gather


def database(server: ServerHandle) -> sqlite3.Connection:
    return sqlite3.connect(server.home / "data" / "argilla.db", timeout=60)


class Course(NamedTuple):
    given: dict[str, set[int]]  # who labelled each record, by external id
    open: list[tuple[int, int]]  # after each submission: records with a label, and those of them that lack one
    order: list[list[str]]  # external ids by annotator, as they labelled them


def work_through(jury: Jury, overlap: int, seed: int) -> Course:
    chance = random.Random(seed)
    pace = [chance.lognormvariate(0, 0.4) for _ in jury.players]
    given: defaultdict[str, set[int]] = defaultdict(set)
    course = Course(given, [], [[] for _ in jury.players])
    turns = [(pace[who] * chance.random(), who) for who in range(len(jury.players))]
    heapq.heapify(turns)
    idle: set[int] = set()
    while len(idle) < len(jury.players):
        moment, who = heapq.heappop(turns)
        player = jury.players[who]
        shown = player.shown or player.open()
        idle = set() if shown else idle | {who}
        if shown:
            given[shown.external_id].add(who)
            course.order[who].append(shown.external_id)
            player.submit()
            course.open.append((len(given), sum(len(users) < overlap for users in given.values())))
        heapq.heappush(turns, (moment + pace[who] * chance.gammavariate(3, 1 / 3), who))
    return course


def test_everybody_works_no_record_gets_a_label_too_many_and_passages_come_together(jury: Any) -> None:
    course = work_through(jury(3, ours(texts(9))), OVERLAP, seed=1)
    assert Counter(map(len, course.given.values())) == {OVERLAP: 9}
    assert max(lacking for _, lacking in course.open) <= HELD_EACH * 3
    assert min(map(len, course.order)) > 0
    answers = texts(4, passages=2)
    course = work_through(jury(3, ours(answers, "retrieval"), "retrieval"), OVERLAP, seed=2)
    assert Counter(map(len, course.given.values())) == {OVERLAP: 8}
    passages = {
        answer.record_uuid: [body["external_id"] for body in to_records(answer, read_wording("en"))["retrieval"]]
        for answer in answers
    }
    for order in course.order:
        firsts = [order[first] for first in range(0, len(order), 2)]
        assert order == [passage for first in firsts for passage in passages[first.split(":")[0]]]


@pytest.mark.parametrize("task", ["retrieval", "grounding", "generation"])
def test_a_search_after_a_submission_carries_what_comes_next_once_and_little_beside_it(
    jury: Any, task: TaskName
) -> None:
    answers = texts(6, passages=4)
    for number, each in enumerate(answers):
        chunks = tuple(chunk.model_copy(update={"text": "A passage. " * 150}) for chunk in each.chunks)
        answers[number] = each.model_copy(update={"answer": "An answer. " * 900, "chunks": chunks})
    player = jury(1, ours(answers, task), task).players[0]
    shown = player.open()
    while shown:
        shown = player.submit()
    first, *later = player.came
    came = [record for search in player.came for record in search]
    assert len({record["id"] for record in came}) == len(came) == 6 * (4 if task == "retrieval" else 1)
    assert (len(first), max(map(len, later))) == ((8, 4) if task == "retrieval" else (2, 1))
    of_fields, of_all = (
        sum(len(json.dumps(each)) for each in them) for them in ([each["fields"] for each in came], came)
    )
    assert of_fields / of_all > (0.8 if task == "retrieval" else 0.95)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
def test_twelve_annotators_leave_at_most_a_tenth_of_what_they_touched_undone(jury: Any, seed: int) -> None:
    course = work_through(jury(12, ours(texts(200))), OVERLAP, seed)
    assert Counter(map(len, course.given.values())) == {OVERLAP: 200}
    assert max(lacking for _, lacking in course.open) <= HELD_EACH * 12
    late = [(touched, lacking) for touched, lacking in course.open if touched >= NINE_TENTHS_FROM]
    assert max(lacking / touched for touched, lacking in late) <= 0.1
    assert min(map(len, course.order)) >= 400 / 12 / 4  # the slowest takes some three times the mean for a record


def test_what_was_begun_comes_first_new_answers_in_an_order_of_her_own_and_drafts_are_held(jury: Any) -> None:
    anna, ben = jury(2, ours(texts(30))).players
    begun = [anna.open(), anna.submit()]
    anna.submit()
    assert {ben.open(), ben.submit()} == set(begun)
    team = jury(3, ours(texts(40)), overlap=3)
    orders = [[record.id for record in player.ask(0, limit=500)] for player in team.players]
    assert [sorted(order) for order in orders] == [sorted(team.ids)] * 3
    assert len({tuple(order) for order in orders}) == 3
    assert [record.id for record in team.players[0].ask(10, limit=200)] == orders[0][10:]
    anna, ben = jury(2, ours(texts(2)), overlap=1).players
    kept, thrown = anna.open(), anna.move_on()
    assert kept
    assert thrown
    for record, status in ((kept, "draft"), (thrown, "discarded")):
        anna.client.request("POST", f"/records/{record.id}/responses", json={"status": status, "values": None})
    assert anna.open() is None
    assert ben.ask(0, limit=500) == [thrown]


DAY = 24 * 60 * 60


def put_clock_forward(server: ServerHandle, dataset_id: str, seconds: int) -> None:
    """What a clock that goes so many seconds forward, or back, is to the holds of a dataset."""
    with contextlib.closing(database(server)) as connection, connection:
        stored = dataset_id.replace("-", "")
        connection.execute("UPDATE citejury_holds SET ends = ends - ? WHERE dataset_id = ?", (seconds, stored))


def longest_hold(server: ServerHandle, dataset_id: str) -> int:
    ends = "SELECT max(ends) - CAST(strftime('%s', 'now') AS INTEGER) FROM citejury_holds WHERE dataset_id = ?"
    with contextlib.closing(database(server)) as connection:
        return int(connection.execute(ends, (dataset_id.replace("-", ""),)).fetchone()[0])


def test_a_record_looked_at_is_held_for_a_time(jury: Any, client: Argilla, argilla_server: ServerHandle) -> None:
    anna, ben = jury(2, ours(texts(1)), overlap=1).players
    shown = anna.open()
    assert shown
    assert (ben.open(), ben.total, anna.open()) == (None, 0, shown)
    put_clock_forward(argilla_server, anna.dataset_id, DAY)
    assert ben.open() == shown
    anna.submit()
    ben.submit()
    labels = client.request("GET", f"/records/{shown.id}")["responses"]
    assert [label["status"] for label in labels] == ["submitted"] * 2  # the first came late, and is kept


def test_what_somebody_held_who_was_taken_out_is_free_at_once(jury: Any, client: Argilla) -> None:
    anna, ben = jury(2, ours(texts(1)), overlap=1).players
    shown = anna.open()
    assert (ben.open(), ben.client.request("GET", "/citejury/me/work")["lists"][0]["with_others"]) == (None, 1)
    workspace = client.request("GET", f"/datasets/{anna.dataset_id}")["workspace_id"]
    client.request("DELETE", f"/workspaces/{workspace}/users/{anna.client.request('GET', '/me')['id']}")
    assert [each["with_others"] for each in ben.client.request("GET", "/citejury/me/work")["lists"]] == [0]
    assert ben.open() == shown


@pytest.mark.parametrize("look", ["list", "start page"])
def test_a_clock_put_back_keeps_no_record(jury: Any, argilla_server: ServerHandle, look: str) -> None:
    anna, ben = jury(2, ours(texts(1)), overlap=1).players
    shown = anna.open()
    put_clock_forward(argilla_server, anna.dataset_id, -DAY)
    assert longest_hold(argilla_server, anna.dataset_id) > DAY
    if look == "list":
        assert ben.open() is None
    else:
        (work,) = [each for each in ben.client.request("GET", "/citejury/me/work")["lists"] if each["with_others"]]
        back = datetime.fromisoformat(work["back"]) - datetime.now(UTC)
        assert back.total_seconds() <= hold_seconds()
    assert 0 < longest_hold(argilla_server, anna.dataset_id) <= hold_seconds()
    assert anna.open() == shown


def test_what_she_passes_over_stays_hers_and_programs_and_owners_hold_nothing(jury: Any, client: Argilla) -> None:
    anna, ben = jury(2, ours(texts(12)), overlap=1).players
    passed = [anna.open(), *(anna.move_on() for _ in range(4))]
    assert len({record.id for record in passed if record}) == 5
    assert anna.open() == passed[0]
    assert not {record.id for record in ben.ask(0, limit=500)} & {record.id for record in passed if record}
    anna, ben = jury(2, ours(texts(60)), overlap=1).players
    assert (len(ben.ask(0, limit=500)), len(anna.ask(0, limit=25))) == (60, 25)
    assert len(ben.ask(0, limit=500)) == ben.total == 35
    team = jury(1, ours(texts(1)), overlap=1)
    assert Player(client, team.dataset, "generation").open()
    assert team.players[0].open()


@pytest.mark.rare
def test_a_program_that_goes_through_the_whole_queue_by_pages_leaves_something_for_others(jury: Any) -> None:
    anna, ben = jury(2, ours(texts(450)), overlap=1).players
    listed = [record for first in range(0, 450, 50) for record in anna.ask(first, limit=50)]
    assert len({record.id for record in listed}) == 450
    assert {record.id for record in ben.ask(0, limit=500)} == {record.id for record in listed[300:]}


def test_records_of_others_come_by_the_page_whatever_their_ids_and_metadata(jury: Any, client: Argilla) -> None:
    odd: list[Any] = [{"record_uuid": 7}, {"record_uuid": "x", "chunk_rank": {"a": 1}}, "text", [1], None]
    fields = {"query": "q", "answer": "a"}
    items = [
        {"external_id": f"{':' * number}ü", "fields": fields, "metadata": {"citejury": each}}
        for number, each in enumerate(odd)
    ]
    items += [{"external_id": "", "fields": fields}, {"fields": fields}, {"external_id": "a" * 3000, "fields": fields}]
    items += [{"external_id": str(number), "fields": fields} for number in range(5)]
    team = jury(1, items)
    put(client, team.dataset, [{"id": team.ids[5], "external_id": "", "metadata": {"other": float(2**60)}}])
    found: list[Shown] = team.players[0].ask(0, limit=50)
    assert sorted(record.id for record in found) == sorted(team.ids)
    assert len(team.players[0].ask(0)) == 10


def test_another_filter_narrows_the_same_queue(jury: Any) -> None:
    items = ours(texts(30))
    for number, item in enumerate(items):
        item["fields"] = {**item["fields"], "answer": "rare" if number % 3 == 0 else "common"}
    (anna,) = jury(1, items).players
    wanted = [item["external_id"] for item in items[::3]]
    only = [{"type": "terms", "scope": {"entity": "record", "property": "external_id"}, "values": wanted}]
    assert {record.external_id for record in anna.ask(0, limit=500, beside=only)} == set(wanted)
    assert anna.total == 10
    first = anna.ask(0, beside=only)
    assert len(first) == 2  # the one to look at, and the one ahead
    assert anna.ask(0) == first


def test_the_tables_are_in_step(jury: Any, client: Argilla, argilla_server: ServerHandle, tmp_path: Path) -> None:
    team = jury(2, ours(texts(8, passages=2), "retrieval"), "retrieval")
    anna, ben = team.players
    values = anna.values
    answered = []
    for record_id, status in zip(team.ids, ("submitted", "submitted", "draft", "discarded", "submitted"), strict=False):
        body = {"status": status, "values": values}
        answered.append(anna.client.request("POST", f"/records/{record_id}/responses", json=body)["id"])
    anna.client.request("PUT", f"/responses/{answered[0]}", json={"status": "discarded", "values": values})
    anna.client.request("PUT", f"/responses/{answered[2]}", json={"status": "submitted", "values": values})
    anna.client.request("DELETE", f"/responses/{answered[4]}")
    items = [{"record_id": each, "status": "submitted", "values": values} for each in team.ids[:3]]
    ben.client.request("POST", "/me/responses/bulk", json={"items": items})
    client.request("DELETE", f"/datasets/{team.dataset}/records", params={"ids": team.ids[1]})
    put(client, team.dataset, [{"id": team.ids[6], "metadata": {"other": 1}}])
    kept, again = prepared_anew(
        argilla_server,
        tmp_path / "copy.db",
        team.dataset,
        "DELETE FROM citejury_queue WHERE heap % 2 = 0",
        "UPDATE citejury_queue SET lacking = 9, pending = 1 - pending",
    )
    assert again == kept
    assert Counter(OVERLAP - lacking for _, _, _, lacking, _ in kept) == {0: 13, 1: 1, 2: 1}
    assert Counter(pending for _, _, _, _, pending in kept) == {0: 1, 1: 14}
    assert Counter(passage for _, _, passage, _, _ in kept)[-1] == 1


def prepared_anew(server: ServerHandle, copy: Path, dataset: str, *statements: str) -> list[list[tuple[Any, ...]]]:
    """The dataset's rows of the queue, before a copy of the database is changed and after it was prepared again."""
    from annotation.server.queue import tables

    columns = "SELECT record_id, answer, passage, lacking, pending FROM citejury_queue WHERE dataset_id = ? ORDER BY 1"
    found = []
    with contextlib.closing(database(server)) as source, contextlib.closing(sqlite3.connect(copy)) as target:
        source.backup(target)
        found.append(target.execute(columns, (dataset.replace("-", ""),)).fetchall())
        for statement in statements:
            target.execute(statement)
        target.commit()
        with create_engine(f"sqlite:///{copy}").begin() as connection:
            tables.prepare(connection)
        found.append(target.execute(columns, (dataset.replace("-", ""),)).fetchall())
    return found


def test_the_queue_of_earlier_software_is_made_anew(jury: Any, argilla_server: ServerHandle, tmp_path: Path) -> None:
    dataset, drop = jury(1, ours(texts(3))).dataset, "DROP TABLE citejury_queue"
    earlier = "CREATE TABLE citejury_queue (record_id CHAR(32) PRIMARY KEY, labels INTEGER NOT NULL)"
    kept, again = prepared_anew(argilla_server, tmp_path / "copy.db", dataset, drop, earlier)
    assert (again, len(kept)) == (kept, 3)

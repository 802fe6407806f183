"""Escalation: what annotators are split on goes to one more of them, blind, and to nobody twice."""

from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

import pytest

from annotation.argilla.client import Argilla
from annotation.argilla.tasks import PRODUCTION
from annotation.argilla.units import ASSIGNMENT, Assignment, Unit, read_units
from annotation.argilla.wording import read_wording
from annotation.campaign.datasets import find_datasets
from annotation.campaign.people import Passwords
from annotation.campaign.setup import apply_plan, set_up, wanted_of
from annotation.campaign.setup_plan import plan_setup
from annotation.push.push import push_records
from annotation.quality.escalation import escalate
from annotation.server.launch import ServerHandle
from exports.adjudicate.adjudication import to_adjudicate
from pipeline.core.errors import InputError
from tests.support.lossy_link import stock_argilla
from tests.support.queue_player import Player, ours, put, texts

pytestmark = pytest.mark.server
NUMBERS = count(1)


class Jury(NamedTuple):
    """Two annotators who answered four units, and others who may."""

    workspace: str
    dataset: str
    players: list[Player]
    names: list[str]
    units: dict[str, str]
    """Argilla's ids: `agreed`, `split`, `half` (one answer only) and `control`."""


@pytest.fixture
def jury(argilla_server: ServerHandle, client: Argilla, request: pytest.FixtureRequest) -> Iterator[Jury]:
    people = getattr(request, "param", 3)
    workspace = f"escalated-{next(NUMBERS)}"
    names = [f"{workspace}-{number}" for number in range(people)]
    set_up(client, workspace, annotators=names)
    dataset = find_datasets(client, workspace)["generation"].id
    client.request("PATCH", f"/datasets/{dataset}", json={"distribution": {"strategy": "overlap", "min_submitted": 2}})
    items = ours(texts(4))
    known = Assignment(purpose="control", needed=2, rate=0.1, answers={"helpful": True})
    items[3]["metadata"][ASSIGNMENT] = known.model_dump(mode="json")
    units = dict(zip(("agreed", "split", "half", "control"), put(client, dataset, items), strict=True))
    keys = {user["username"]: user["api_key"] for user in client.request("GET", "/users")["items"]}
    players = [Player(Argilla(argilla_server.url, keys[name]), dataset, "generation") for name in names]
    made = Jury(workspace, dataset, players, names, units)
    for which in units:
        answer(made, 0, which, helpful=True)
    for which in ("agreed", "split", "control"):
        answer(made, 1, which, helpful=which == "agreed")
    yield made
    for player in players:
        player.client.close()


def answer(jury: Jury, who: int, which: str, helpful: bool) -> None:
    player = jury.players[who]
    values = {**player.values, "helpful": {"value": "yes" if helpful else "no"}}
    body = {"status": "submitted", "values": values}
    player.client.request("POST", f"/records/{jury.units[which]}/responses", json=body)


def stored(client: Argilla, jury: Jury) -> dict[str, Unit]:
    found = {unit.record_id: unit for unit in read_units(client, jury.dataset)}
    return {which: found[record_id] for which, record_id in jury.units.items()}


@pytest.fixture
def run(command, jury: Jury) -> Any:
    words = ("exports", "adjudicate", "push", "--one-more", "--workspace", jury.workspace)
    return lambda *more, code=0: command(*words, *more, code=code)


def test_a_split_unit_goes_to_one_annotator_more_and_nothing_else_does(jury: Jury, client: Argilla, run: Any) -> None:
    before = stored(client, jury)
    done = run()
    assert jury.names[2] in done.stdout
    assert "Waiting for one submission more from now on: 1 unit." in done.stderr
    escalated = before["split"]._replace(assignment=Assignment(needed=3), is_open=True)
    assert stored(client, jury) == before | {"split": escalated}
    shown = {each.id for each in jury.players[2].ask(0, limit=50)}
    assert [jury.units[which] in shown for which in ("split", "half", "agreed")] == [True, True, False]
    assert jury.units["split"] not in {each.id for each in jury.players[0].ask(0, limit=50)}
    seen = jury.players[2].client.request("GET", f"/records/{jury.units['split']}")
    assert (seen["metadata"], seen["responses"]) == ({}, [])


def test_running_it_again_adds_nothing(jury: Jury, client: Argilla, run: Any) -> None:
    run()
    assert "from now on: 0 units." in run().stderr
    assert stored(client, jury)["split"].assignment.needed == 3
    answer(jury, 2, "split", helpful=True)
    assert not stored(client, jury)["split"].is_open
    assert "from now on: 0 units." in run().stderr


@pytest.mark.rare
def test_running_it_again_is_no_error_where_nobody_is_left_for_other_units(jury: Jury, run: Any) -> None:
    answer(jury, 1, "half", helpful=False)
    answer(jury, 2, "half", helpful=False)
    for escalated in (True, False):
        said = run().stderr
        assert ("from now on: 1 unit." in said) is escalated
        assert "nobody left who could take them, and so for adjudicators: 1 unit." in said


@pytest.mark.rare
@pytest.mark.parametrize("jury", [2], indirect=True)
def test_nobody_left_is_a_plain_refusal_and_changes_nothing(jury: Jury, client: Argilla, run: Any) -> None:
    before = stored(client, jury)
    (line,) = run(code=1).stderr.splitlines()
    assert "Add an annotator with `citejury annotation setup`" in line
    assert stored(client, jury) == before


@pytest.mark.rare
def test_who_labels_no_more_is_given_nothing(jury: Jury, client: Argilla, argilla_server: ServerHandle) -> None:
    found = escalate(client, [jury.workspace], languages={jury.names[2]: ("de",)}, tasks=["retrieval"])
    assert [each.split for each in found] == [0]
    with pytest.raises(InputError, match="has answered already"):
        escalate(client, [jury.workspace], languages={jury.names[2]: ()})
    with (
        stock_argilla(client.api_url) as link,
        Argilla(link.url, argilla_server.owner_api_key) as stock,
        pytest.raises(InputError, match="stock Argilla, which cannot hand one record to one annotator more"),
    ):
        escalate(stock, [jury.workspace])


@pytest.mark.rare
def test_a_push_of_what_changed_leaves_a_record_to_whom_it_is_for(client: Argilla, ready: str) -> None:
    (record,) = texts(1)
    push_records(client, ready, [record])
    dataset = find_datasets(client, ready)["generation"].id
    (item,) = client.request("GET", f"/datasets/{dataset}/records")["items"]
    needed = Assignment(needed=3).model_dump(mode="json", exclude_defaults=True)
    put(client, dataset, [{"id": item["id"], "metadata": {**item["metadata"], ASSIGNMENT: needed}}])
    report = push_records(client, ready, [record.model_copy(update={"answer": "another"})])
    assert report.tasks["generation"].updated == 1
    (unit,) = read_units(client, dataset)
    assert unit.assignment == Assignment(needed=3)


@pytest.mark.rare
def test_a_new_version_keeps_who_gets_what_adjudicators_get_nothing(jury: Jury, client: Argilla, run: Any) -> None:
    run()
    before = {unit.external_id: unit.assignment for unit in stored(client, jury).values()}
    plan = plan_setup(client, wanted_of(jury.workspace, "en", jury.names, None, PRODUCTION), ["generation"])
    apply_plan(client, plan, Passwords())
    dataset = find_datasets(client, jury.workspace)["generation"].id
    assert dataset != jury.dataset
    assert {unit.external_id: unit.assignment for unit in read_units(client, dataset)} == before
    items = [item for _, page in client.record_pages(jury.dataset) for item in page]
    (split,) = [item for item in items if item["id"] == jury.units["split"]]
    assert ASSIGNMENT in split["metadata"]
    assert ASSIGNMENT not in to_adjudicate(split, "generation", read_wording("en"), "blind", ["helpful"])["metadata"]

"""Who was removed or forgotten, or has a new password, does nothing with what she had before: on any route."""

from collections.abc import Callable, Iterator

import pytest
from jose import jwt

from annotation.argilla.client import KEY_HEADER, Argilla
from annotation.campaign.people import NewUser, Passwords, forget_user, remove_user, renew_password
from annotation.server.home.folder import read_or_make_secrets
from annotation.server.launch import ServerHandle
from tests.support.ways_in import OPEN_TO_ANYBODY, Study, study

pytestmark = pytest.mark.server

OWNERS_ONLY = {"/users", "/users/{user_id}", "/users/{user_id}/workspaces", "/webhooks"}
NOT_FOR_ANNOTATORS = {
    "/workspaces/{workspace_id}/users",
    "/datasets/{dataset_id}/records",
    "/citejury/datasets/{dataset_id}/record-states",
    "/citejury/datasets/{dataset_id}/units",
}
HER_OWN = {"/me", "/me/workspaces", "/me/datasets", "/citejury/me/work", "/citejury/me/rules", "/citejury/me/replies"}


@pytest.fixture(scope="module")
def jury(argilla_server: ServerHandle, owner: Argilla) -> Iterator[Study]:
    with study(argilla_server.url, owner) as found:
        yield found


def test_nobody_unknown_is_answered_each_role_has_its_own_rights(jury: Study, argilla_server: ServerHandle) -> None:
    answers = jury.answers({}, "annotator")
    assert len(answers) > 70
    assert set(jury.operations()) - set(answers) == OPEN_TO_ANYBODY
    assert {answer.status_code for answer in answers.values()} == {401}
    expected = {
        "new": (jury.ids, OWNERS_ONLY | NOT_FOR_ANNOTATORS),
        "adjudicator": (jury.other, OWNERS_ONLY | NOT_FOR_ANNOTATORS),
        "admin": (jury.ids, OWNERS_ONLY),
    }
    for who, (ids, refused) in expected.items():
        assert jury.refused(jury.people[who].key, ids) == refused
        for way in jury.people[who].ways():
            assert jury.write(way, ids["record_id"]) == [201, 200, 200]
    key, name = {KEY_HEADER: argilla_server.owner_api_key}, argilla_server.owner_username
    token = jury.token(name, argilla_server.owner_password)
    assert jury.refused(token, jury.ids) == set()
    revocation = renew_password(jury.owner, name, Passwords())
    assert (revocation.ended, revocation.new_key) == (True, False)
    assert (jury.statuses(token, "annotator", few=True), jury.refused(key, jury.ids)) == ({401}, set())
    assert f"ARGILLA_API_KEY={argilla_server.owner_api_key}" in (argilla_server.home / "env").read_text("utf-8")
    user = next(each for each in jury.owner.users() if each["username"] == name)
    jury.owner.request("PATCH", f"/users/{user['id']}", json={"password": argilla_server.owner_password})


def removed(jury: Study, name: str) -> str:
    remove_user(jury.owner, name)
    return name


def forgotten(jury: Study, name: str) -> str:
    return forget_user(jury.owner, name)[0]


def renewed(jury: Study, name: str) -> str:
    renew_password(jury.owner, name, Passwords())
    return name


@pytest.mark.parametrize("end", [removed, forgotten, renewed])
def test_what_she_had_opens_no_route_any_more(jury: Study, end: Callable[[Study, str], str]) -> None:
    person, kept = jury.people[end.__name__], jury.kept()
    name = end(jury, person.name)
    for way in person.ways():
        assert jury.statuses(way, end.__name__, few=end is not removed) == {401}
    assert {jury.log_in(each, person.password).status_code for each in (person.name, name)} == {401}
    assert jury.kept() == kept
    assert jury.owner.request("GET", f"/users/{person.id}")["api_key"] != person.key[KEY_HEADER]


def test_she_may_come_back_sees_only_herself_and_old_log_ins_end(jury: Study, argilla_server: ServerHandle) -> None:
    person, told = jury.people["back"], list[NewUser]()
    renew_password(jury.owner, person.name, Passwords(announce=told.append))
    assert jury.call(jury.token(person.name, told[0].password), "GET", "/me/datasets").json()["items"]
    remove_user(jury.owner, person.name)
    assert jury.log_in(person.name, told[0].password).status_code == 401
    jury.owner.request("POST", f"/workspaces/{jury.ids['workspace_id']}/users", json={"user_id": person.id})
    assert jury.refused(jury.token(person.name, told[0].password), jury.ids) == OWNERS_ONLY | NOT_FOR_ANNOTATORS
    assert jury.statuses(person.token, "back", few=True) == {401}
    person, kept = jury.people["taken out"], jury.kept()
    jury.owner.request("DELETE", f"/workspaces/{jury.ids['workspace_id']}/users/{person.id}")
    for way in (*person.ways(), jury.token(person.name, person.password)):
        answers = jury.answers(way, "taken out", few=way is not person.token)
        read = {operation: answer.json() for operation, answer in answers.items() if answer.status_code != 403}
        assert read.pop("GET /me")["username"] == person.name
        assert read.pop("GET /me/workspaces", {"items": []}) == {"items": []}
        assert read == {"GET /me/datasets": {"items": []}, "GET /citejury/me/work": {"lists": []}}
    assert jury.kept() == kept
    secret, person = read_or_make_secrets(argilla_server.home).auth_secret_key, jury.people["earlier"]
    said = jwt.decode(person.token["Authorization"].split()[1], secret)
    earlier = {name: value for name, value in said.items() if name != "epoch"}
    stranger = said | {"identity": jury.people["annotator"].id}
    ways = [{"Authorization": f"Bearer {jwt.encode(each, secret)}"} for each in (earlier, stranger)]
    assert [jury.call(way, "GET", "/me").status_code for way in ways] == [200, 401]
    renew_password(jury.owner, person.name, Passwords())
    assert jury.statuses(ways[0], "earlier", few=True) == {401}


def test_who_works_in_another_workspace_by_now_reads_and_changes_nothing_in_the_one_that_she_left(jury: Study) -> None:
    person, kept = jury.people["moved"], jury.kept()
    remove_user(jury.owner, person.name, [jury.workspace])
    assert {status for way in person.ways() for status in jury.statuses(way, "moved", few=True)} == {401}
    token = jury.token(person.name, person.password)
    answers = jury.answers(token, "moved")
    done = {operation: answer for operation, answer in answers.items() if answer.is_success}
    assert set(done) == {f"GET {path}" for path in HER_OWN} | {"POST /me/responses/bulk"}
    (bulk,) = done.pop("POST /me/responses/bulk").json()["items"]
    assert bulk["item"] is None
    assert not [answer for answer in done.values() if jury.ids["dataset_id"] in answer.text]
    at_once = {f"{method} /responses/{{response_id}}" for method in ("PUT", "DELETE")}
    assert {answers[operation].status_code for operation in at_once} == {403}
    assert (jury.kept(), jury.write(token, jury.other["record_id"])) == (kept, [201, 200, 200])

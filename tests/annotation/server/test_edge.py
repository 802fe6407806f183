"""What the server refuses before argilla-server sees it, what it takes with a log-in, and who is answered meanwhile."""

import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from annotation.argilla.client import BATCH_BYTES
from annotation.server.launch import ServerHandle, start_server
from tests.support.edge_server import HEAD, connected, read_to_the_end
from tests.support.places import ROOT

pytestmark = pytest.mark.server

KB = 1024
LOG_BYTES = 10 * KB


@pytest.fixture(scope="module")
def stranger(argilla_server: ServerHandle) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=argilla_server.url, trust_env=False, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def member(argilla_server: ServerHandle) -> Iterator[httpx.Client]:
    headers = {"X-Argilla-Api-Key": argilla_server.owner_api_key}
    with httpx.Client(base_url=argilla_server.url, headers=headers, trust_env=False, timeout=60) as client:
        yield client


def log_size(server: ServerHandle) -> int:
    log = server.home / "logs" / "web.log"
    return log.stat().st_size if log.exists() else 0


def test_files_come_whole_and_only_our_names_are_answered(stranger: httpx.Client, argilla_server: ServerHandle) -> None:
    whole = stranger.get("/sign-in")
    long = "bytes=" + ",".join(f"{place}-{place}" for place in range(1000))
    for asked in ("bytes=0-1", "bytes=0-1,2-3", long):
        answer = stranger.get("/sign-in", headers={"Range": asked})
        assert (answer.status_code, answer.content) == (200, whole.content)
        assert "content-range" not in answer.headers
    assert stranger.get("/sign-in", headers={"Range": "bytes=" + "0-1," * 57_000 + "1-2"}).status_code == 431
    before = log_size(argilla_server)
    for path in ("/" + "a" * 300, "/_nuxt/" + "ä" * 200, "/a" * 2_000):
        assert stranger.get(path).status_code == 404
    assert log_size(argilla_server) == before
    ours = ("localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:6900", "jury.localhost:80", "localhost.")
    others = ("evil.example", "localhost.evil.example", "192.0.2.7:6900", "", "a b", "127.0.0.1.nip.io")
    for host, status in (*((host, 200) for host in ours), *((host, 421) for host in others)):
        assert stranger.get("/api/v1/version", headers={"Host": host}).status_code == status, host


@pytest.mark.parametrize("headers", [{}, {"X-Argilla-Api-Key": "no.key"}, {"Authorization": "Bearer no.token"}])
def test_a_large_body_is_refused_without_a_valid_log_in(stranger: httpx.Client, headers: dict[str, str]) -> None:
    body = b'{"name": "%s"}' % (b"a" * 65 * KB)
    refused = stranger.post("/api/v1/workspaces", content=body, headers=headers)
    assert refused.status_code == 413
    assert "64 KB" in refused.json()["detail"]
    assert stranger.post("/api/v1/workspaces", content=(body for _ in range(1)), headers=headers).status_code == 413
    small = stranger.post("/api/v1/token", data={"username": "nobody", "password": "a" * 60 * KB})
    assert small.status_code == 401


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "multipart/form-data; boundary=b"])
def test_a_form_of_many_fields_is_refused_before_they_are_told_apart(argilla_server: ServerHandle, kind: str) -> None:
    # Whoever is logged in is a stranger here: she needs no second log-in.
    headers = {"X-Argilla-Api-Key": argilla_server.owner_api_key, "Content-Type": kind}
    field = b"--b\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n" if "multipart" in kind else b"a=&"
    # argilla-server's own refusal would have a code.
    body = b"username=u&password=p&" + field * (8 * KB // len(field))
    refused = httpx.post(f"{argilla_server.url}/api/v1/token", content=body, headers=headers, timeout=60)
    assert (refused.status_code, refused.json()["detail"]) == (401, "Could not validate credentials")


def test_bodies_are_refused_by_length_and_less_with_a_login(argilla_server: ServerHandle, member: httpx.Client) -> None:
    head = b"POST /api/v1/token HTTP/1.1\r\nHost: localhost\r\nContent-Length: 300000000\r\n\r\n"
    with connected(httpx.URL(argilla_server.url).port or 0, head) as connection:
        assert b"413" in read_to_the_end(connection)
    body = b'{"name": "%s"}' % (b"a" * (BATCH_BYTES + KB))
    # 422 is argilla-server's own: a dataset has no name of 8 MB.
    assert member.post("/api/v1/datasets", content=body).status_code == 422
    assert member.post("/api/v1/datasets", content=(body for _ in range(1))).status_code == 422
    key = member.headers["X-Argilla-Api-Key"].encode()
    head = HEAD.replace(b"GET", b"POST") + b"X-Argilla-Api-Key: %b\r\nContent-Length: %d\r\n\r\n" % (key, 65 * KB * KB)
    with connected(member.base_url.port or 0, head) as connection:
        assert b"413" in read_to_the_end(connection)


def test_an_annotator_may_send_less_than_who_makes_datasets(argilla_server: ServerHandle, member: httpx.Client) -> None:
    person = {"first_name": "Mia", "username": "mia at the edge", "role": "annotator", "password": "long-enough"}
    workspace = member.post("/api/v1/workspaces", json={"name": "of-mia"}).json()["id"]
    made = member.post("/api/v1/users", json=person).json()
    member.post(f"/api/v1/workspaces/{workspace}/users", json={"user_id": made["id"]}).raise_for_status()
    key = made["api_key"]
    login = {"username": person["username"], "password": person["password"]}
    token = member.post("/api/v1/token", data=login).json()["access_token"]
    port = httpx.URL(argilla_server.url).port or 0
    for headers in ({"X-Argilla-Api-Key": key}, {"Authorization": f"Bearer {token}"}):
        with httpx.Client(base_url=argilla_server.url, headers=headers, trust_env=False, timeout=60) as annotator:
            taken = annotator.post("/api/v1/me/responses/bulk", content=b'{"items": "%s"}' % (b"a" * KB * KB))
            assert taken.status_code == 422
        head = "POST /api/v1/me/responses/bulk HTTP/1.1\r\nHost: localhost\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        with connected(port, f"{head}Content-Length: {3 * KB * KB}\r\n\r\n".encode()) as connection:
            assert b"413" in read_to_the_end(connection)
    member.delete(f"/api/v1/workspaces/{workspace}/users/{made['id']}").raise_for_status()
    for method in ("GET", "POST"):
        refused = httpx.request(
            method, f"{argilla_server.url}/api/v1/me", content=b" " * 65 * KB, headers={"X-Argilla-Api-Key": key}
        )
        assert refused.status_code == 413, "who is in no workspace may send no more than a stranger"


def test_no_cache_keeps_answers_and_odd_input_is_refused(member: httpx.Client, argilla_server: ServerHandle) -> None:
    paths = ("/me", "/me/datasets", "/users", "/me/workspaces", "/no-such-route")
    assert {member.get(f"/api/v1{path}").headers["cache-control"] for path in paths} == {"no-store"}
    workspace = member.post("/api/v1/workspaces", json={"name": "edge"}).json()["id"]
    made = member.post("/api/v1/datasets", json={"name": "edge", "workspace_id": workspace}).json()
    records = f"/api/v1/datasets/{made['id']}/records?"
    for path, status in (
        ("/_nuxt/%00", 400),
        ("/api/v1/workspaces/%00", 400),
        (f"{records}metadata=a:%00", 400),
        (f"{records}offset=1000000000000000000000000000000", 422),
        (f"{records}offset=-1", 422),
        (f"{records}offset=99999999999999999999", 422),
        (f"{records}limit=" + "9" * 5000, 422),
        (f"{records}%6fffset=1000000000000000000000000", 422),
        (f"{records}o%66fset=-1", 422),
        (f"{records}offset=-1.0", 422),
        (f"{records}offset=-1_0", 422),
        (f"{records}offset=99999999999999999999.0", 422),
        (f"{records}%6fffset=2147483647", 200),
        (f"{records}offset=2147483647", 200),
    ):
        assert member.get(path).status_code == status, path
    text = "a" * 5_000_000
    before = log_size(argilla_server)
    refused = [
        member.post("/api/v1/workspaces", json={"name": {text: text}, text: text}),
        member.post("/api/v1/datasets", json={"name": text}),
        member.post("/api/v1/workspaces", content=text),
        member.post("/api/v1/users", json=[{text: 1}] * 3),
        member.post("/api/v1/me/responses/bulk", json={"items": [7] * 1_000_000}),
    ]
    assert {each.status_code for each in refused} == {422}
    assert max(len(each.content) for each in refused) < LOG_BYTES
    assert log_size(argilla_server) - before < LOG_BYTES


@pytest.mark.rare
def test_half_open_connections_lock_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests" / "support" / "quick_passwords"), prepend=":")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 3000:
        pytest.skip("This machine allows too few open files for 1,300 clients.")
    with ExitStack() as stack:
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
        try:
            server = stack.enter_context(start_server(tmp_path / "home", port=0))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 3000), hard))
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        headers = {"X-Argilla-Api-Key": server.owner_api_key}
        before = stack.enter_context(httpx.Client(base_url=server.url, headers=headers, trust_env=False, timeout=60))
        assert before.get("/api/v1/me").status_code == 200
        port = httpx.URL(server.url).port or 0
        for number in range(1300):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
            connection.sendall((b"", HEAD, HEAD + b"Content-Length: 9\r\n\r\n")[number % 3])
        assert before.get("/api/v1/me").status_code == 200
        assert httpx.get(f"{server.url}/api/v1/me", headers=headers, trust_env=False, timeout=60).status_code == 200
        events = (server.home / "logs" / "events.log").read_text(encoding="utf-8")
        assert events.count("too many connections") == 1

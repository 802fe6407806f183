"""The embedded Argilla keeps its secrets, answers safely, works in the background, and refuses a start plainly."""

import base64
import hashlib
import re
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psutil
import pytest

from annotation.server.launch import ServerHandle, start_server
from pipeline.core.errors import OutputError, ServerStartError

pytestmark = pytest.mark.server

PATIENCE_SECONDS = 120


@pytest.fixture(scope="module")
def owner(argilla_server: ServerHandle) -> Iterator[httpx.Client]:
    with client_for(argilla_server, argilla_server.owner_api_key) as client:
        yield client


def client_for(server: ServerHandle, key: str) -> httpx.Client:
    return httpx.Client(base_url=f"{server.url}/api/v1", headers={"X-Argilla-Api-Key": key}, timeout=60, verify=False)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_owner_gets_in_by_key_and_by_password(argilla_server: ServerHandle, owner: httpx.Client) -> None:
    assert owner.get("/me").json()["role"] == "owner"
    login = {"username": argilla_server.owner_username, "password": argilla_server.owner_password}
    assert owner.post("/token", data=login).status_code == 201


def test_nobody_gets_in_by_argillas_default_credentials(argilla_server: ServerHandle) -> None:
    with client_for(argilla_server, "argilla.apikey") as stranger:
        assert stranger.get("/me").status_code == 401
        assert stranger.post("/token", data={"username": "argilla", "password": "12345678"}).status_code == 401


def test_nobody_else_on_the_machine_reads_the_home(argilla_server: ServerHandle) -> None:
    files = [path for path in argilla_server.home.rglob("*") if path.is_file() and "queue" not in path.parts]
    assert {"secrets.json", "env", "argilla.db", "guardian.log"} <= {path.name for path in files}
    assert {mode_of(path) for path in files} == {0o600}
    assert mode_of(argilla_server.home) == 0o700


def test_the_env_file_puts_address_and_key_into_a_shell(argilla_server: ServerHandle) -> None:
    script = f"set -a; . '{argilla_server.home}/env'; set +a; echo $ARGILLA_API_URL $ARGILLA_API_KEY"
    said = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
    assert said.split() == [argilla_server.url, argilla_server.owner_api_key]


def test_every_answer_carries_the_safety_headers(argilla_server: ServerHandle) -> None:
    for path in ("/", "/api/v1/version", "/nowhere", "/api/v1/nowhere"):
        headers = httpx.get(argilla_server.url + path).headers
        assert "default-src 'self'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


def test_the_policy_allows_the_pages_own_scripts_and_no_other(argilla_server: ServerHandle) -> None:
    for path in ("/", "/sign-in"):
        page = httpx.get(argilla_server.url + path)
        scripts = re.findall(r"<script>(.*?)</script>", page.text, re.DOTALL)
        hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
        allowed = page.headers["content-security-policy"].split("script-src ")[1].split(";")[0]
        assert allowed == " ".join(["'self'", *(f"'sha256-{each}'" for each in hashes)])


def test_the_page_asks_no_other_host_for_its_styles(argilla_server: ServerHandle) -> None:
    page = httpx.get(f"{argilla_server.url}/sign-in").text
    sheets = re.findall(r'href="(/_nuxt/[^"]+\.css)"', page)
    assert sheets
    styles = [httpx.get(argilla_server.url + sheet).text for sheet in sheets]
    assert not any(re.search(r"url\(\W*(https?:)?//", style) for style in styles)


def test_other_sites_may_not_call_the_api(argilla_server: ServerHandle) -> None:
    reply = httpx.get(f"{argilla_server.url}/api/v1/version", headers={"Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in reply.headers


def make_record(owner: httpx.Client, people: list[str]) -> tuple[dict[str, Any], list[str]]:
    """A record with two metadata values, one of them hidden from annotators, and the annotators' keys."""
    workspace = owner.post("/workspaces", json={"name": f"w-{uuid4()}"}).json()["id"]
    keys = []
    for name in people:
        person = {"first_name": name, "username": f"{name}-{uuid4()}", "role": "annotator", "password": "long-enough"}
        user = owner.post("/users", json=person).json()
        owner.post(f"/workspaces/{workspace}/users", json={"user_id": user["id"]}).raise_for_status()
        keys.append(user["api_key"])
    dataset = owner.post("/datasets", json={"name": "d", "workspace_id": workspace}).json()["id"]
    field = {"name": "text", "title": "Text", "settings": {"type": "text"}}
    owner.post(f"/datasets/{dataset}/fields", json=field).raise_for_status()
    question = {"name": "notes", "title": "Notes", "required": True, "settings": {"type": "text"}}
    owner.post(f"/datasets/{dataset}/questions", json=question).raise_for_status()
    shown = {"name": "topic", "title": "Topic", "settings": {"type": "terms"}, "visible_for_annotators": True}
    owner.post(f"/datasets/{dataset}/metadata-properties", json=shown).raise_for_status()
    owner.put(f"/datasets/{dataset}/publish").raise_for_status()
    item = {"fields": {"text": "hello"}, "metadata": {"topic": "law", "model_name": "grok"}}
    stored = owner.put(f"/datasets/{dataset}/records/bulk", json={"items": [item]}).json()["items"][0]
    return stored, keys


def submit(client: httpx.Client, record: str, notes: str) -> None:
    body = {"status": "submitted", "values": {"notes": {"value": notes}}}
    client.post(f"/records/{record}/responses", json=body).raise_for_status()


def test_one_record_shows_an_annotator_her_own_response_and_the_visible_metadata(
    argilla_server: ServerHandle, owner: httpx.Client
) -> None:
    record, keys = make_record(owner, ["anna", "ben"])
    for key in keys:
        with client_for(argilla_server, key) as annotator:
            submit(annotator, record["id"], key)
    with client_for(argilla_server, keys[0]) as anna:
        seen = anna.get(f"/records/{record['id']}").json()
    assert [response["values"]["notes"]["value"] for response in seen["responses"]] == keys[:1]
    assert seen["metadata"] == {"topic": "law"}


def test_one_record_shows_the_owner_everything(argilla_server: ServerHandle, owner: httpx.Client) -> None:
    record, keys = make_record(owner, ["anna", "ben"])
    for key in keys:
        with client_for(argilla_server, key) as annotator:
            submit(annotator, record["id"], key)
    seen = owner.get(f"/records/{record['id']}").json()
    assert len(seen["responses"]) == 2
    assert seen["metadata"] == {"topic": "law", "model_name": "grok"}


def test_one_record_is_refused_to_people_of_other_workspaces(argilla_server: ServerHandle, owner: httpx.Client) -> None:
    record, _ = make_record(owner, ["anna"])
    _, (stranger,) = make_record(owner, ["ben"])
    with client_for(argilla_server, stranger) as client:
        assert client.get(f"/records/{record['id']}").status_code == 403
    with client_for(argilla_server, "wrong") as client:
        assert client.get(f"/records/{record['id']}").status_code == 401


def test_the_worker_corrects_the_status_of_records_after_a_change_of_overlap(owner: httpx.Client) -> None:
    record, _ = make_record(owner, [])
    submit(owner, record["id"], "done")
    spread = {"distribution": {"strategy": "overlap", "min_submitted": 2}}
    owner.patch(f"/datasets/{record['dataset_id']}", json=spread).raise_for_status()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while owner.get(f"/records/{record['id']}").json()["status"] != "pending":
        assert time.monotonic() < deadline


def test_an_answer_that_is_no_option_is_refused(owner: httpx.Client) -> None:
    record, _ = make_record(owner, [])
    body = {"status": "submitted", "values": {"notes": {"value": ["no text"]}}}
    assert owner.post(f"/records/{record['id']}/responses", json=body).status_code == 422


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a process has loaded")
def test_what_few_teams_use_is_not_loaded_by_a_start(argilla_server: ServerHandle) -> None:
    # A child that has ended and that nobody has waited for yet has no command line any more.
    parts = [part for part in psutil.Process().children(recursive=True) if part.status() != psutil.STATUS_ZOMBIE]
    (web,) = (part for part in parts if "annotation.server.web" in part.cmdline())
    loaded = " ".join(part.path for part in web.memory_maps())
    assert "pydantic_core" in loaded
    assert "pyarrow" not in loaded


def test_webhooks_still_hear_of_new_records(owner: httpx.Client) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE_SECONDS)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        hook = owner.post("/webhooks", json={"url": url, "events": ["record.created"]}).json()
        try:
            make_record(owner, [])
            caller, _ = listener.accept()
            with caller:
                assert caller.recv(4) == b"POST"
                caller.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        finally:
            owner.delete(f"/webhooks/{hook['id']}").raise_for_status()


def test_a_second_server_in_the_same_home_is_refused(argilla_server: ServerHandle) -> None:
    with pytest.raises(ServerStartError, match=f"in use by the server at {argilla_server.url}"):
        start_server(argilla_server.home, port=0).__enter__()


def test_a_taken_port_is_named(tmp_path: Path, argilla_server: ServerHandle) -> None:
    port = int(argilla_server.url.rsplit(":", 1)[1])
    with pytest.raises(ServerStartError, match=f"port {port}: another program has the port.*--port"):
        start_server(tmp_path / "home", port=port).__enter__()


def test_a_folder_with_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(OutputError, match=r"thesis\.txt"):
        start_server(tmp_path, port=0).__enter__()
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_home_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").touch()
    with pytest.raises(OutputError, match="cannot be used"):
        start_server(tmp_path / "home", port=0).__enter__()


def test_an_unknown_host_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ServerStartError, match="--host"):
        start_server(tmp_path / "home", host="192.0.2.1", port=0).__enter__()


def test_a_broken_database_is_told_with_the_end_of_the_log(tmp_path: Path) -> None:
    (tmp_path / "home" / "data").mkdir(parents=True)
    (tmp_path / "home" / "lock").touch()
    (tmp_path / "home" / "data" / "argilla.db").write_bytes(b"this is no database, but long enough to be read" * 30)
    with pytest.raises(ServerStartError, match="file is not a database") as refusal:
        start_server(tmp_path / "home", port=0).__enter__()
    assert "Traceback" not in str(refusal.value)
    assert ", line " not in str(refusal.value)


@pytest.mark.parametrize("command", ["annotation serve", "demo --exit"])
def test_a_refused_start_says_one_line(tmp_path: Path, argilla_server: ServerHandle, command: str) -> None:
    program = [sys.executable, "-c", "from exports.cli import main; main()", *command.split()]
    options = ["--home", str(tmp_path / "home"), "--port", argilla_server.url.rsplit(":", 1)[1]]
    done = subprocess.run([*program, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert "another program has the port" in line

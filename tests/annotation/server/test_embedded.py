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
from click.testing import CliRunner

from annotation.server.launch import ServerHandle, start_server
from exports.cli import main
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


def test_the_owner_gets_in_nobody_else_nor_reads_the_home(argilla_server: ServerHandle, owner: httpx.Client) -> None:
    assert owner.get("/me").json()["role"] == "owner"
    login = {"username": argilla_server.owner_username, "password": argilla_server.owner_password}
    assert owner.post("/token", data=login).status_code == 201
    with client_for(argilla_server, "argilla.apikey") as stranger:
        assert stranger.get("/me").status_code == 401
        assert stranger.post("/token", data={"username": "argilla", "password": "12345678"}).status_code == 401
    files = [path for path in argilla_server.home.rglob("*") if path.is_file() and "queue" not in path.parts]
    assert {"secrets.json", "env", "argilla.db", "guardian.log"} <= {path.name for path in files}
    assert {mode_of(path) for path in files} == {0o600}
    assert mode_of(argilla_server.home) == 0o700
    script = f"set -a; . '{argilla_server.home}/env'; set +a; echo $ARGILLA_API_URL $ARGILLA_API_KEY"
    said = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
    assert said.split() == [argilla_server.url, argilla_server.owner_api_key]


def test_every_answer_is_safe_and_asks_no_other_host(argilla_server: ServerHandle) -> None:
    for path in ("/", "/sign-in", "/api/v1/version", "/nowhere", "/api/v1/nowhere"):
        page = httpx.get(argilla_server.url + path, headers={"Origin": "https://evil.example"})
        assert page.headers["x-content-type-options"] == "nosniff"
        assert page.headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in page.headers
        policy = page.headers["content-security-policy"]
        assert policy.startswith("default-src 'self'; script-src 'self' 'sha256-")
        if path in ("/", "/sign-in"):  # its own inline scripts and no others
            scripts = re.findall(r"<script>(.*?)</script>", page.text, re.DOTALL)
            hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
            allowed = policy.split("script-src ")[1].split(";")[0]
            assert allowed == " ".join(["'self'", *(f"'sha256-{each}'" for each in hashes)])
            sheets = re.findall(r'href="(/_nuxt/[^"]+\.css)"', page.text)
            styles = [httpx.get(argilla_server.url + sheet).text for sheet in sheets]
            assert styles
            assert not any(re.search(r"url\(\W*(https?:)?//", style) for style in styles)


def make_record(owner: httpx.Client, people: list[str]) -> tuple[dict[str, Any], list[str]]:
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
    return owner.put(f"/datasets/{dataset}/records/bulk", json={"items": [item]}).json()["items"][0], keys


def submit(client: httpx.Client, record: str, notes: str) -> None:
    body = {"status": "submitted", "values": {"notes": {"value": notes}}}
    client.post(f"/records/{record}/responses", json=body).raise_for_status()


def test_records_are_shown_to_their_people_and_corrected(argilla_server: ServerHandle, owner: httpx.Client) -> None:
    record, keys = make_record(owner, ["anna", "ben"])
    path = f"/records/{record['id']}"
    for key in keys:
        with client_for(argilla_server, key) as annotator:
            submit(annotator, record["id"], key)
    with client_for(argilla_server, keys[0]) as anna:
        seen = anna.get(path).json()
    assert [response["values"]["notes"]["value"] for response in seen["responses"]] == keys[:1]
    assert seen["metadata"] == {"topic": "law"}
    whole = owner.get(path).json()
    assert (len(whole["responses"]), whole["metadata"]) == (2, {"topic": "law", "model_name": "grok"})
    _, (elsewhere,) = make_record(owner, ["ben"])
    for key, status in ((elsewhere, 403), ("wrong", 401)):
        with client_for(argilla_server, key) as stranger:
            assert stranger.get(path).status_code == status
    record, _ = make_record(owner, [])
    body = {"status": "submitted", "values": {"notes": {"value": ["no text"]}}}
    assert owner.post(f"/records/{record['id']}/responses", json=body).status_code == 422
    record, _ = make_record(owner, [])
    submit(owner, record["id"], "done")
    spread = {"distribution": {"strategy": "overlap", "min_submitted": 2}}
    owner.patch(f"/datasets/{record['dataset_id']}", json=spread).raise_for_status()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while owner.get(f"/records/{record['id']}").json()["status"] != "pending":
        assert time.monotonic() < deadline


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


def test_a_start_is_refused_by_what_is_in_its_way(tmp_path: Path, argilla_server: ServerHandle) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "file").touch()
    port = int(argilla_server.url.rsplit(":", 1)[1])
    for place, options, error, said in (
        (argilla_server.home, {"port": 0}, ServerStartError, f"in use by the server at {argilla_server.url}"),
        (tmp_path / "new", {"port": port}, ServerStartError, f"port {port}: another program has the port.*--port"),
        (tmp_path / "new", {"host": "192.0.2.1", "port": 0}, ServerStartError, "--host"),
        (tmp_path / "full", {"port": 0}, OutputError, r"thesis\.txt"),
        (tmp_path / "file", {"port": 0}, OutputError, "cannot be used"),
    ):
        with pytest.raises(error, match=said):
            start_server(place, **options).__enter__()
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["thesis.txt"]
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("command", ["annotation serve", "demo --exit"])
def test_a_refused_start_says_one_line(tmp_path: Path, argilla_server: ServerHandle, command: str) -> None:
    options = ["--home", str(tmp_path / "home"), "--port", argilla_server.url.rsplit(":", 1)[1]]
    done = CliRunner().invoke(main, [*command.split(), *options])
    assert (done.exit_code, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert "another program has the port" in line

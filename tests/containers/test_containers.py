"""docker/compose.yaml in real containers: each as locked up as the file says, all together as good as one server."""

import json
import random
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx
import psutil
import psycopg2
import pytest

from annotation.argilla.client import Argilla
from annotation.server.launch import ServerHandle
from tests.support.big_stack import (
    ANNOTATORS,
    Server,
    campaign,
    dataset_of,
    export,
    set_clock,
    wait_for_the_worker,
)
from tests.support.campaign_players import Player, read_rows
from tests.support.containers import STAYING, Stack, podman, running_podman, running_stack
from tests.support.crowd import Answers, acknowledged_of, add_records, all_at_once, check_books, gather

pytestmark = [pytest.mark.containers, pytest.mark.server]

# As the older and the newer control groups have them.
MEMORY = "cat /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null || cat /sys/fs/cgroup/memory.max"
PROCESSES = "cat /sys/fs/cgroup/pids/pids.max 2>/dev/null || cat /sys/fs/cgroup/pids.max"
CPU = "cd /sys/fs/cgroup/cpu 2>/dev/null && cat cpu.cfs_quota_us cpu.cfs_period_us || cat /sys/fs/cgroup/cpu.max"
# What keeps containers and names, and what runs in them.
OF_CONTAINERS = {"conmon", "aardvark-dns", "catatonit", "postgres", "redis-server"}
ESTABLISHED, LOOPBACK, PORT, DEFAULT = "01", "0100007F:", ":1AF4", "00000000"  # as proc_pid_net(5) writes them
# Where it puts what is mounted for a container; both stay, empty, as long as the machine is up.
OF_PODMAN = ("/run/netns", "/storage/overlay")
BY_RESPONSE = ("retrieval.csv", "grounding.csv", "generation.csv")
MIN_SUBMITTED = 2


@pytest.fixture(scope="module")
def before() -> Iterator[dict[str, set[str]]]:
    with running_podman():
        yield traces()


@pytest.fixture(scope="module")
def stack(before: dict[str, set[str]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with running_stack(tmp_path_factory.mktemp("stack")) as found:
        yield found


def status(stack: Stack, service: str) -> dict[str, str]:
    """What the kernel says of the service's first process."""
    pid = stack.container(service)["State"]["Pid"]
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


@pytest.mark.parametrize("service", STAYING)
def test_no_service_has_a_right_or_a_way_to_get_one(stack: Stack, service: str) -> None:
    found = status(stack, service)
    assert "0" not in found["Uid"].split()
    rights = {int(found[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}
    assert (rights, found["NoNewPrivs"], found["Seccomp"]) == ({0}, "1", "2")


@pytest.mark.parametrize("service", STAYING)
def test_no_service_can_write_to_its_image(stack: Stack, service: str) -> None:
    for folder in ("/", "/etc", "/usr/bin", "/opt"):
        done = stack.inside(service, f"touch {folder}/new")
        assert (done.returncode, "Read-only file system" in done.stderr) == (1, True), folder


@pytest.mark.parametrize("service", STAYING)
def test_each_service_has_the_limits_of_the_file(stack: Stack, service: str) -> None:
    asked = stack.compose.services[service]
    limits = asked["deploy"]["resources"]["limits"]
    memory, processes, (quota, period) = (
        [int(word) for word in stack.inside(service, script).stdout.split()] for script in (MEMORY, PROCESSES, CPU)
    )
    assert memory == [int(limits["memory"][:-1]) << {"m": 20, "g": 30}[limits["memory"][-1]]]
    assert (processes, quota / period) == ([asked["pids_limit"]], float(limits["cpus"]))


def test_databases_have_no_way_out(stack: Stack) -> None:
    for service in STAYING:
        pid = stack.container(service)["State"]["Pid"]
        routes = [line.split()[1] for line in Path(f"/proc/{pid}/net/route").read_text(encoding="utf-8").splitlines()]
        assert (DEFAULT in routes) is (service in {"web", "worker"}), service


def test_the_page_is_published_to_this_machine_only(stack: Stack) -> None:
    published = {name: stack.container(name)["NetworkSettings"]["Ports"] for name in STAYING}
    places = {name: port for name, ports in published.items() for port in ports.values() if port}
    assert places == {"web": [{"HostIp": "127.0.0.1", "HostPort": "6900"}]}


@pytest.fixture(scope="module")
def labelled(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Server:
    """The stack's server with a campaign done."""
    campaign(stack.server, tmp_path_factory.mktemp("labelled"), "stack")
    return stack.server


def test_a_campaign_exports_the_same_bytes_as_on_the_embedded_server(
    stack: Stack, labelled: Server, argilla_server: ServerHandle, tmp_path: Path
) -> None:
    embedded = Server(argilla_server.url, argilla_server.owner_api_key)
    campaign(embedded, tmp_path / "embedded", "stack")
    with closing(sqlite3.connect(argilla_server.home / "data" / "argilla.db", timeout=60)) as database:
        set_clock(database, "stack", "?", lambda moment: moment.isoformat(" ", "microseconds"))
    with closing(psycopg2.connect(stack.database_url())) as database:
        set_clock(database, "stack", "%s", lambda moment: moment)
    expected = export(embedded, tmp_path / "embedded" / "export", "stack")
    assert {name: text.count(b"\n") for name, text in expected.items()}["grounding.csv"] == 7
    assert export(labelled, tmp_path / "boxes", "stack") == expected
    wait_for_the_worker(labelled, dataset_of(labelled, "stack", "1-retrieval-en"), len(ANNOTATORS), 6)


def test_nothing_acknowledged_is_lost_when_any_service_is_killed(stack: Stack) -> None:
    chance = random.Random(18)
    acknowledged: Answers = {}
    with Argilla(stack.server.url, stack.server.api_key) as owner:
        crowd = gather(owner, "killed", 6, MIN_SUBMITTED)
        for service in STAYING:
            add_records(owner, crowd, 60)
            before = stack.container(service)["State"]["Pid"]
            works = all_at_once(stack.server.url, crowd, killing(stack, service, chance.randrange(10, 40)))
            assert {code for work in works for code, _ in work.refused} <= {500, 502, 503, 504}, service
            stack.wait_until_well()
            assert stack.container(service)["State"]["Pid"] not in {0, before}
            acknowledged |= acknowledged_of(works)
            check_books(owner, crowd.dataset, MIN_SUBMITTED, acknowledged)
        stack.say("restart")
        stack.wait_until_well()
        works = all_at_once(stack.server.url, crowd, lambda: False)
        assert [refusal for work in works for refusal in work.refused] == []
        found = check_books(owner, crowd.dataset, MIN_SUBMITTED, acknowledged | acknowledged_of(works))
        assert len(found) == len(STAYING) * 60 * MIN_SUBMITTED
        wait_for_the_worker(stack.server, crowd.dataset, MIN_SUBMITTED, len(STAYING) * 60)


def killing(stack: Stack, service: str, submissions: int) -> Callable[[], bool]:
    """What kills the service at the given submission, while others are under way; it never says that it is enough."""
    left = threading.Semaphore(submissions - 1)
    once = threading.Lock()

    def count() -> bool:
        if not left.acquire(blocking=False) and once.acquire(blocking=False):
            stack.kill(service)
        return False

    return count


def test_the_history_has_every_submission(stack: Stack, labelled: Server, tmp_path: Path) -> None:
    rows = sum(
        text.count(b"\n") - 1 for name, text in export(labelled, tmp_path, "stack").items() if name in BY_RESPONSE
    )
    labelled.run("exports", "csv", "--history", str(tmp_path / "history.csv"), "--workspace", "stack")
    changes = [row for row in read_rows(tmp_path / "history.csv") if row["action"] == "insert"]
    assert {row["status_after"] for row in changes} == {"submitted"}
    assert len({row["response_id"] for row in changes}) == rows == 24


def test_what_comes_by_the_published_port_comes_from_the_gateway(stack: Stack) -> None:
    """So the web may take a client's address from a proxy on this machine, and from nobody else."""
    net = Path("/proc", str(stack.container("web")["State"]["Pid"]), "net")
    with socket.create_connection(("127.0.0.1", 6900)) as connection:
        connection.sendall(b"GET /api/v1/status HTTP/1.1\r\n")
        rows = [line.split() for line in (net / "tcp").read_text(encoding="ascii").splitlines()[1:]]
        ours = [row for row in rows if row[1].endswith(PORT) and not row[1].startswith(LOOPBACK)]
        peers = {row[2].partition(":")[0] for row in ours if row[3] == ESTABLISHED}
    routes = [line.split() for line in (net / "route").read_text(encoding="ascii").splitlines()[1:]]
    assert peers == {gateway for _, destination, gateway, *_ in routes if destination == DEFAULT}


def test_the_edge_is_guarded(stack: Stack) -> None:
    with httpx.Client(base_url=stack.server.url, trust_env=False) as anybody:
        assert anybody.get("/", headers={"Range": "bytes=0-0"}).status_code == httpx.codes.OK
        assert anybody.post("/api/v1/token", content=b"x" * 70_000).status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE
        elsewhere = anybody.get("/api/v1/status", headers={"Host": "elsewhere.example"})
        assert elsewhere.status_code == httpx.codes.MISDIRECTED_REQUEST


def test_who_was_removed_gets_no_answer(stack: Stack, tmp_path: Path) -> None:
    passwords = tmp_path / "passwords.json"
    stack.server.run("annotation", "setup", "--workspace", "left", "--annotator", "gone", "--passwords", str(passwords))
    with Player(stack.server.url, "gone", json.loads(passwords.read_text(encoding="utf-8"))["gone"]) as player:
        key = player.call("GET", "/me")["api_key"]
        stack.server.run("annotation", "users", "--remove", "gone", "--workspace", "left")
        assert player.http.get("/me").status_code == httpx.codes.UNAUTHORIZED
        del player.http.headers["Authorization"]
        reply = player.http.get("/me", headers={"X-Argilla-Api-Key": key})
        assert reply.status_code == httpx.codes.UNAUTHORIZED


def test_each_service_ends_by_itself_when_told_to(stack: Stack) -> None:
    stack.say("stop")
    assert {name: stack.container(name)["State"]["ExitCode"] for name in STAYING} == dict.fromkeys(STAYING, 0)
    stack.say("start")
    stack.wait_until_well()


def test_taken_down_it_leaves_nothing(stack: Stack, before: dict[str, set[str]]) -> None:
    up = traces()
    assert all(up[name] > before[name] for name in before)
    stack.say("down", "--volumes")
    assert traces() == before


def traces() -> dict[str, set[str]]:
    """What is there of containers: Podman's own lists, interfaces, mounts and processes."""
    lines = Path("/proc/mounts").read_text(encoding="utf-8").splitlines()
    mounts = {line.split()[1] for line in lines}
    return {
        "containers": set(podman("ps", "--all", "--quiet").split()),
        "networks": set(podman("network", "ls", "--quiet").split()),
        "volumes": set(podman("volume", "ls", "--quiet").split()),
        "interfaces": set(psutil.net_if_addrs()),
        "mounts": {mount for mount in mounts if not mount.endswith(OF_PODMAN)},
        "processes": {name for name in (each.name() for each in psutil.process_iter()) if name in OF_CONTAINERS},
    }

"""docker/compose.yaml in Podman's containers, which docker-compose commands by the interface of Docker."""

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.big_stack import Compose, Server, read_compose

SOCKET = "/run/citejury-podman.sock"
STAYING = ("postgres", "redis", "web", "worker")


class Stack(NamedTuple):
    compose: Compose
    server: Server

    def say(self, *words: str) -> str:
        """What docker-compose said to a command; a failure of it fails the test."""
        return compose_said(self.compose, *words)

    def container(self, service: str) -> dict[str, Any]:
        (found,) = json.loads(podman("inspect", f"docker_{service}_1"))
        return dict(found)

    def inside(self, service: str, script: str) -> "subprocess.CompletedProcess[str]":
        command = ["podman", "exec", f"docker_{service}_1", "sh", "-c", script]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def database_url(self) -> str:
        """The database as this machine, which has a foot in each network of containers, reaches it."""
        asked = self.compose.services["postgres"]["environment"]
        address = self.container("postgres")["NetworkSettings"]["Networks"]["docker_inside"]["IPAddress"]
        login = f"{asked['POSTGRES_USER']}:{asked['POSTGRES_PASSWORD']}"
        return f"postgresql://{login}@{address}:5432/{asked['POSTGRES_DB']}"

    def kill(self, service: str) -> None:
        """End all of a service's processes at once, as a machine without memory would; nobody asked for it."""
        os.kill(self.container(service)["State"]["Pid"], signal.SIGKILL)

    def wait_until_well(self) -> None:
        deadline = time.monotonic() + 240
        for service in STAYING:
            while check_health(f"docker_{service}_1"):
                assert time.monotonic() < deadline, f"{service} does not get well: {self.say('logs', service)[-3000:]}"
                time.sleep(1)


def check_health(container: str) -> int:
    """0 where the container's health check finds it well."""
    command = ["podman", "healthcheck", "run", container]
    return subprocess.run(command, capture_output=True, check=False).returncode


def podman(*words: str) -> str:
    """What Podman wrote to stdout; a failure of it fails the test."""
    done = subprocess.run(["podman", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def compose_said(compose: Compose, *words: str) -> str:
    """What docker-compose wrote to stdout, told to keep the limits of `deploy`, as newer ones do unasked."""
    command = ["docker-compose", "--compatibility", "--no-ansi", "-f", str(compose.folder / "compose.yaml"), *words]
    environment = {"PATH": os.environ["PATH"], "DOCKER_HOST": f"unix://{SOCKET}"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


@contextlib.contextmanager
def running_podman() -> Iterator[None]:
    """Podman's service, and what makes its health checks: systemd's timers are not to be had here."""
    if "CONTAINERS_STORAGE_CONF" not in os.environ:
        pytest.skip("`make containers` runs this: it makes the images, and namespaces in which nothing else is.")
    # What an earlier run left that was killed.
    podman("rm", "--all", "--force", "--volumes", "--time", "0")
    podman("network", "prune", "--force")
    podman("volume", "prune", "--force")
    over = threading.Event()
    checks = threading.Thread(target=check_all, args=(over,))
    with subprocess.Popen(["podman", "system", "service", "--time", "0", f"unix://{SOCKET}"]) as service:
        try:
            while not Path(SOCKET).exists():
                assert service.poll() is None, "Podman's service does not start."
                time.sleep(0.1)
            checks.start()
            yield
        finally:
            over.set()
            checks.join()
            service.terminate()


def check_all(over: threading.Event) -> None:
    """Make the health check of each container again and again."""
    while not over.wait(3):
        for container in podman("ps", "--quiet").split():
            check_health(container)


@contextlib.contextmanager
def running_stack(folder: Path) -> Iterator[Stack]:
    """All services up with new secrets, and down again with their volumes."""
    compose = read_compose(folder / "docker")
    try:
        compose_said(compose, "up", "--detach")
        stack = Stack(compose, Server("http://127.0.0.1:6900", compose.owner_api_key()))
        stack.wait_until_well()
        yield stack
    finally:
        compose_said(compose, "down", "--volumes")

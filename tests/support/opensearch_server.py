"""A real OpenSearch of a test's own: one Java process with the k-NN plug-in, gone with the block."""

import contextlib
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from annotation.embedded.guardian import ending_with_the_parent
from tests.support.places import ROOT

# `make opensearch` fills it by tests/opensearch/pom.xml; the marker says that nothing is missing.
JARS = ROOT / ".opensearch"
COMPLETE = JARS / "complete"
RUNNER = "org.codelibs.opensearch.runner.OpenSearchRunner"
KNN = "org.opensearch.knn.plugin.KNNPlugin"
# Small, and quick to start: the start is most of what it does. Bytecode of Maven Central needs no check each time.
JAVA_OPTIONS = ["-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
QUICK_CLASSES = ["-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote"]
# The disk of a busy machine may be fuller than OpenSearch likes.
SETTINGS = """\
discovery.type: single-node
node.name: alone
transport.port: 0
cluster.routing.allocation.disk.threshold_enabled: false
"""
HTTP_PORT = re.compile(r"^HTTP Port: +(\d+)$", re.MULTILINE)
STARTS = 3
START_SECONDS = 300.0
WAIT_SECONDS = 0.1


@contextlib.contextmanager
def running_opensearch(folder: Path) -> Iterator[str]:
    """`http://127.0.0.1:PORT` of an empty OpenSearch 2.19 that keeps its data and its log in the folder.

    The test skips where Java or the jars are missing.
    """
    java = shutil.which("java")
    if java is None:
        pytest.skip("Java is not installed here, and OpenSearch runs on it.")
    if not COMPLETE.exists():
        pytest.skip("OpenSearch is not here; `make opensearch` fetches it with Maven.")
    process, url = start(java, folder)
    try:
        yield url
    finally:
        process.kill()
        process.wait()


def start(java: str, folder: Path) -> tuple["subprocess.Popen[bytes]", str]:
    """The process and its address. Another one may take the port before it does, so that is tried again."""
    for number in range(STARTS):
        home = folder / f"opensearch-{number}"
        (home / "config").mkdir(parents=True)
        (home / "config" / "opensearch.yml").write_text(SETTINGS, encoding="utf-8")
        log = home / "log"
        with open(log, "wb") as output:
            process = subprocess.Popen(
                command(java, home),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=home,
                env=environment(),
                preexec_fn=ending_with_the_parent() if sys.platform == "linux" else None,
            )
        url = url_once_it_answers(process, log)
        if url:
            return process, url
        process.kill()
        process.wait()
    raise AssertionError(f"OpenSearch does not start: {log.read_text(encoding='utf-8', errors='replace')}")


def command(java: str, home: Path) -> list[str]:
    """How to start it. It looks for a free port itself, upwards from the one named, and knows no port 0.

    Those below 9300 are none that the kernel gives to others.
    """
    places = ["-basePath", str(home), "-confPath", str(home / "config"), "-numOfNode", "1"]
    port = ["-baseHttpPort", str(9200 + secrets.randbelow(60))]
    return [
        *(java, *JAVA_OPTIONS, *QUICK_CLASSES, "-cp", f"{JARS}/*", RUNNER),
        *(*places, *port, "-disableESLogger", "-pluginTypes", KNN),
    ]


def environment() -> dict[str, str]:
    """Ours without what would change how Java runs."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("JAVA_", "_JAVA", "JDK_"))}


def url_once_it_answers(process: "subprocess.Popen[bytes]", log: Path) -> str:
    """Its address; empty where it ended or did not answer in time."""
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        found = HTTP_PORT.search(log.read_text(encoding="utf-8", errors="replace"))
        if found:
            url = f"http://127.0.0.1:{found[1]}"
            with contextlib.suppress(httpx.TransportError):
                if is_ours(url, process.pid):
                    return url
        time.sleep(WAIT_SECONDS)
    return ""


def is_ours(url: str, pid: int) -> bool:
    """Whether the process answers there itself, and not one that took the port before it."""
    nodes = httpx.get(f"{url}/_nodes/process", timeout=START_SECONDS, trust_env=False).json()["nodes"]
    return [node["process"]["id"] for node in nodes.values()] == [pid]

import json
import re
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from datetime import date
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

import pytest
import yaml
from packaging.markers import Environment, Marker, default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.advisories import pinned, read_rows
from tests.support.places import ROOT
from tests.support.provider_server import Quiet, Served

DOCKER = ROOT / "docker"
PINNED = re.compile(r"(\S+)==(\S+)(?: ; ([^-]+))?((?: --hash=sha256:[0-9a-f]{64})*)")
LOCK = "annotation/server/requirements.lock"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FILES = {
    LOCK: PROJECT["dependency-groups"]["server"],
    "docker/requirements.txt": PROJECT["project"]["dependencies"],
    "docker/requirements-build.txt": PROJECT["build-system"]["requires"],
}
AUDIT = "docker/requirements-audit.txt"


def constraints() -> dict[str, str]:
    """Those that hold in the image."""
    return {canonicalize_name(name): version for name, version, _ in entries("docker/constraints.txt")}


def overrides() -> dict[str, Requirement]:
    """What is asked for instead of what anybody's own requirements say of it."""
    lines = (DOCKER / "overrides.txt").read_text(encoding="utf-8").splitlines()
    found = map(Requirement, filter(None, (line.partition("#")[0].strip() for line in lines)))
    return {canonicalize_name(each.name): each for each in found}


def entries(name: str, where: Environment | None = None) -> Iterator[tuple[str, str, str]]:
    """Name, version and hashes of each part that a file wants, by default in the image; any other line fails."""
    for line in (ROOT / name).read_text(encoding="utf-8").replace(" \\\n    ", " ").splitlines():
        if not line.startswith("#"):
            found = PINNED.fullmatch(line)
            assert found, f"{name} has a line that is no pinned part: {line}"
            if not found[3] or Marker(found[3].strip()).evaluate(where or image()):
                yield found[1], found[2], found[4]


def image() -> Environment:
    """Where the image's markers are read, whatever the tests run on."""
    dockerfile = (DOCKER / "Dockerfile").read_text(encoding="utf-8")
    version = next(iter(re.findall(r"^FROM python:(\d+\.\d+\.\d+)", dockerfile, re.MULTILINE)))
    linux = {"os_name": "posix", "sys_platform": "linux", "platform_system": "Linux", "platform_machine": "x86_64"}
    python = {
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "python_full_version": version,
        "python_version": version.rpartition(".")[0],
    }
    return Environment({**default_environment(), **linux, **python})  # type: ignore[typeddict-item]


def needed(roots: Iterable[str], instead: dict[str, Requirement]) -> set[str]:
    """Every part that these need in the image, they too, as the installed packages declare it."""
    place, seen = image(), set()
    waiting = [(Requirement(root), "") for root in roots]
    while waiting:
        requirement, extra = waiting.pop()
        requirement = instead.get(canonicalize_name(requirement.name), requirement)
        if requirement.marker and not requirement.marker.evaluate({**place, "extra": extra}):
            continue
        for wanted in ("", *requirement.extras):
            if (key := (canonicalize_name(requirement.name), wanted)) not in seen:
                seen.add(key)
                declared = distribution(requirement.name).requires or ()
                waiting += [(Requirement(each), wanted) for each in declared]
    return {name for name, _ in seen}


@pytest.mark.parametrize("name", FILES)
def test_the_image_installs_what_the_project_needs_in_the_versions_that_are_pinned(name: str) -> None:
    pinned = constraints()
    listed = {part: version for part, version, _ in entries(name)}
    wanted = needed(FILES[name], overrides() if name == LOCK else {})
    assert listed == {part: pinned.get(part) for part in wanted}, "run `make hashes`"


def test_the_auditors_agree_with_what_is_pinned_and_every_part_has_hashes_and_no_address() -> None:
    [wanted] = re.findall(r"^AUDITORS := (.+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    listed = {part: version for part, version, _ in entries(AUDIT)}
    assert {tuple(each.split("==")) for each in wanted.split()} <= set(listed.items())
    elsewhere = constraints()
    assert {part: elsewhere.get(part, version) for part, version in listed.items()} == listed, "run `make hashes`"
    for name in (*FILES, AUDIT):
        assert not [part for part, _, hashes in entries(name) if not hashes]
        assert "//" not in (ROOT / name).read_text(encoding="utf-8")


def test_the_image_installs_nothing_without_a_hash_and_nothing_of_ours_opens_connections_with_urllib3() -> None:
    text = (DOCKER / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    commands = [part.split() for part in re.split(r"^RUN|&&", text, flags=re.MULTILINE) if "bin/pip " in part]
    assert len(commands) == 4
    for words in commands:
        if "install" in words and "--no-index" not in words:
            assert {"--require-hashes", "--only-binary", ":all:"} <= set(words)
            assert words[words.index("--requirement") + 1] in {Path(name).name for name in FILES}
        else:
            assert {"--no-deps", "--no-index"} <= set(words)
            assert "install" in words or "--no-build-isolation" in words
    opening = re.compile(r"^\s*(?:import|from) (?:requests|urllib3)", re.MULTILINE)
    texts = (source for package in ("pipeline", "annotation", "exports") for source in sources(package))
    assert not [path for path, text in texts if opening.search(text)]


SECURITY = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
ROWS = read_rows(SECURITY)


def pinned_parts() -> dict[str, str]:
    """The packages and the images' programs, with their versions."""
    services = yaml.safe_load((DOCKER / "compose.yaml").read_text(encoding="utf-8"))["services"].values()
    images = [each["image"].rpartition("/")[2] for each in services]
    images += re.findall(r"^FROM (\S+)", (DOCKER / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    programs = {name: tag.partition("-")[0] for name, tag in (image.split(":") for image in images)}
    return {**constraints(), **programs}


def test_what_is_said_of_weaknesses_was_read_for_the_versions_that_are_pinned() -> None:
    pinned = pinned_parts()
    told = {(row.part, row.version, pinned.get(canonicalize_name(row.part))) for row in ROWS}
    changed = [f"{part} {version}, pinned is {now}" for part, version, now in told if version != now]
    assert not changed, "look for weaknesses of the new version, then correct the row in SECURITY.md and its date"
    assert {"redis", "postgres", "python", "starlette"} <= {row.part for row in ROWS}
    for row in ROWS:
        assert date.fromisoformat(row.read) >= date(2026, 11, 23), row
        assert len(row.says) > 20 or not row.weaknesses, row  # why it does no harm


def sources(package: str) -> Iterator[tuple[str, str]]:
    """Each module of an installed package by its path, with its text."""
    spec = find_spec(package)
    assert spec
    assert spec.origin
    folder = Path(spec.origin).parent
    for path in sorted(folder.rglob("*.py")):
        yield path.relative_to(folder.parent).as_posix(), path.read_text(encoding="utf-8")


@pytest.mark.server
@pytest.mark.parametrize(
    ("words", "where"),
    [
        (r"\bHTTPEndpoint\b|\bUploadFile\b|\.form\(", set()),
        (r"= Form\(|\bForm\(\)", {"argilla_server/api/handlers/v1/authentication.py"}),
        # Log-ins through other services, and sharing one's progress: both are switched off.
        (
            r"\brequest\.(?:url|base_url)\b",
            {"argilla_server/_app.py", "argilla_server/security/authentication/oauth2/provider.py"},
        ),
        (r"\bjwt\.decode\((?!token, cls\.secret, algorithms=\[cls\.algorithm\]\))", set()),
        (r"\bjwe\b|\bjws\b", set()),
        (r"^(?:import|from) (?:requests|urllib3)\b", set()),
    ],
)
def test_argilla_server_does_not_do_what_the_weaknesses_need(words: str, where: set[str]) -> None:
    assert {path for path, text in sources("argilla_server") if re.search(words, text, re.MULTILINE)} == where


@pytest.mark.soak
def test_the_list_of_components_has_what_the_image_installs_and_each_part_s_licence() -> None:
    done = subprocess.run(["make", "--silent", "sbom"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    bill = json.loads((ROOT / "dist/citejury.cdx.json").read_text(encoding="utf-8"))
    listed = {canonicalize_name(part["name"]): part["version"] for part in bill["components"]}
    assert listed == {part: version for part, version, _ in entries(LOCK)}
    unlicensed = {part["name"] for part in bill["components"] if "licenses" not in part}
    assert unlicensed <= {"argilla", "pypdfium2"}, "their own files do not name one"
    root = bill["metadata"]["component"]["bom-ref"]
    needs = {each["ref"]: set(each.get("dependsOn", ())) for each in bill["dependencies"]}
    assert "argilla-server==2.8.0" in needs[root]
    assert "starlette==1.10.0" in needs["fastapi==0.165.0"]


class Service(Quiet):
    """An advisory service that knows one weakness each of two packages."""

    known: ClassVar = {"distributed": "CVE-2024-10096", "jinja2": "CVE-2099-0001"}

    def do_POST(self) -> None:
        name = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["package"]["name"]
        ranges = [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "999"}]}]
        affected = [{"package": {"name": name, "ecosystem": "PyPI"}, "ranges": ranges}]
        day = dict.fromkeys(("published", "modified"), "2026-11-01T00:00:00Z")
        weakness = {"id": self.known.get(name), "summary": "", "details": "", **day, "affected": affected}
        self.reply(200, {}, json.dumps({"vulns": [weakness] if name in self.known else []}).encode())


def ask_after_parts(port: int) -> tuple[int, str]:
    """Exit code and text of `make advisories` with the service at this port."""
    if not (ROOT / ".venv/audit/complete").exists():
        pytest.skip("`make auditors` could not install pip-audit here.")
    command = [sys.executable, ROOT / "tests/advisories.py", "--osv-url", f"http://127.0.0.1:{port}/v1/query"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.rare
def test_the_check_fails_for_a_weakness_that_nobody_has_read_and_where_nobody_answers() -> None:
    with Served(Service) as service:
        code, told = ask_after_parts(service.server.server_port)
    assert code == 1
    assert told.splitlines() == [
        f"jinja2 {constraints()['jinja2']}: CVE-2099-0001, mended in 999",
        f"{len(pinned())} packages asked after: 1 known weakness that SECURITY.md does not have.",
    ]
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        code, told = ask_after_parts(nobody.getsockname()[1])
    assert code == 1
    assert told == "The advisory service cannot be reached from here (ConnectionError), so nothing was checked.\n"

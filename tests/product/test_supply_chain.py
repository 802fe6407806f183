"""What the image is made of: every part by name, version and hash, in step with pyproject.toml and the constraints."""

import re
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import distribution

import pytest
from packaging.markers import Environment, default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.places import ROOT

DOCKER = ROOT / "docker"
PINNED = re.compile(r"(\S+)==(\S+)((?: --hash=sha256:[0-9a-f]{64})*)")
# What the image's pip is asked for, and what else it has to be told.
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
OPTIONAL = PROJECT["project"]["optional-dependencies"]
FILES = {
    "requirements.txt": PROJECT["project"]["dependencies"] + OPTIONAL["server"] + OPTIONAL["postgresql"],
    "requirements-build.txt": PROJECT["build-system"]["requires"],
}


def constraints() -> dict[str, str]:
    lines = (DOCKER / "constraints.txt").read_text(encoding="utf-8").split()
    return {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}


def entries(name: str) -> Iterator[tuple[str, str, str]]:
    """Name, version and hashes of each part in a file of requirements; a line that is anything else fails."""
    text = (DOCKER / name).read_text(encoding="utf-8").replace(" \\\n    ", " ")
    for line in text.splitlines():
        if not line.startswith("#"):
            found = PINNED.fullmatch(line)
            assert found, f"{name} has a line that is no pinned part: {line}"
            yield found[1], found[2], found[3]


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


def needed(roots: Iterable[str]) -> set[str]:
    """Every part that these need in the image, they too, as the installed packages declare it."""
    place, seen = image(), set()
    waiting = [(Requirement(root), "") for root in roots]
    while waiting:
        requirement, extra = waiting.pop()
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
    assert listed == {part: pinned.get(part) for part in needed(FILES[name])}, "run `make hashes`"


@pytest.mark.parametrize("name", FILES)
def test_every_part_has_hashes_and_none_an_address(name: str) -> None:
    assert not [part for part, _, hashes in entries(name) if not hashes]
    assert "//" not in (DOCKER / name).read_text(encoding="utf-8")


def test_the_image_installs_nothing_without_a_hash_and_builds_nothing_but_the_project() -> None:
    text = (DOCKER / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    commands = [part.split() for part in re.split(r"^RUN|&&", text, flags=re.MULTILINE) if "bin/pip " in part]
    assert len(commands) == 5
    for words in commands:
        if "install" in words and "--no-index" not in words:
            assert {"--require-hashes", "--only-binary", ":all:"} <= set(words)
            assert words[words.index("--requirement") + 1] in {f"docker/{name}" for name in FILES}
        elif "check" not in words:
            assert {"--no-deps", "--no-index"} <= set(words)
            assert "install" in words or "--no-build-isolation" in words

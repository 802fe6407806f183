"""In place of `pip check`: only what docker/overrides.txt lists may be other than a package asks for."""

from importlib.metadata import Distribution, distributions

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from annotation.server import environment
from tests.support.places import ROOT

pytestmark = pytest.mark.skipif(not environment.is_whole(), reason="The server is not installed here.")

FROZEN = {"argilla-server", "python-jose"}


def listed() -> dict[str, Requirement]:
    lines = (ROOT / "docker" / "overrides.txt").read_text(encoding="utf-8").splitlines()
    found = [Requirement(line.partition("#")[0]) for line in lines if not line.startswith("#")]
    return {canonicalize_name(each.name): each for each in found}


def in_the_server_s_environment() -> dict[str, Distribution]:
    """Not what is beside the tests, where something of before may be left."""
    folders = map(str, environment.folder().glob("lib/python*/site-packages"))
    return {canonicalize_name(each.metadata["Name"]): each for each in distributions(path=list(folders))}


def broken(installed: dict[str, Distribution]) -> set[tuple[str, str, str]]:
    """Who asks for what, and the version that is there instead; none where nothing is."""
    found = set()
    for name, asking in installed.items():
        for requirement in map(Requirement, asking.requires or ()):
            if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
                continue
            there = installed.get(canonicalize_name(requirement.name))
            if there is None or not requirement.specifier.contains(there.version, prereleases=True):
                found.add((name, canonicalize_name(requirement.name), there.version if there else ""))
    return found


def test_only_the_pins_of_what_is_frozen_are_broken_and_each_is_listed_with_its_reason() -> None:
    found = broken(in_the_server_s_environment())
    assert {asking for asking, _, _ in found} <= FROZEN, found
    assert {wanted for _, wanted, _ in found} == set(listed()), "docker/overrides.txt lists something else"
    left_out = {wanted for _, wanted, version in found if not version}
    assert left_out == {name for name, requirement in listed().items() if requirement.marker}


def test_a_pin_of_anything_else_that_is_broken_is_found() -> None:
    installed = in_the_server_s_environment()
    assert ("httpx", "httpcore", "") in broken({name: each for name, each in installed.items() if name != "httpcore"})

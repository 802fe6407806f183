import tomllib

import pytest
from packaging.markers import Marker, default_environment
from packaging.requirements import Requirement

from tests.platforms import PLATFORMS, PYTHONS, TOKENIZER, Resolved, row_of, without_wheel
from tests.support.places import ROOT

MACHINES = {
    "Linux x86-64": ("linux", "x86_64"),
    "Linux arm64": ("linux", "aarch64"),
    "macOS arm64": ("darwin", "arm64"),
    "macOS x86-64": ("darwin", "x86_64"),
    "Windows x86-64": ("win32", "AMD64"),
    "Windows arm64": ("win32", "ARM64"),
    "Linux ppc64le": ("linux", "ppc64le"),
}
"""What Python calls each: `sys.platform` and `platform.machine()`."""
UV_SAYS = """error: No solution found when resolving dependencies
  cause: Because bpe-openai==0.1.4 has no usable wheels and only bpe-openai<=0.1.4 is available, we can conclude that \
bpe-openai>=0.1.4 cannot be used.
         And because citejury depends on bpe-openai>=0.1.4, we can conclude that your requirements are unsatisfiable.

hint: Wheels are required for `bpe-openai` because building from source is disabled for all packages (i.e., with \
`--no-build`)
"""
"""What uv 0.13.9 said of macOS on x86-64."""


@pytest.fixture(scope="module")
def marker() -> Marker:
    """When the tokenizer is installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (found,) = (each for each in map(Requirement, project["dependencies"]) if each.name == TOKENIZER)
    assert found.marker is not None
    return found.marker


@pytest.mark.parametrize("name", MACHINES)
def test_the_tokenizer_is_wanted_where_it_has_a_wheel(marker: Marker, name: str) -> None:
    system, machine = MACHINES[name]
    environment = {**default_environment(), "sys_platform": system, "platform_machine": machine}
    assert marker.evaluate(environment) is (name not in {"macOS x86-64", "Windows arm64", "Linux ppc64le"})


def test_every_python_that_is_named_is_tried_on_every_platform_and_a_missing_wheel_named_once() -> None:
    assert MACHINES.keys() > PLATFORMS.keys()
    assert len(PLATFORMS) == 5
    assert f"Python {PYTHONS[0]} to {PYTHONS[-1]}" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert (without_wheel(UV_SAYS), without_wheel("error: the index cannot be reached")) == (("bpe-openai",), ())


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (Resolved(frozenset({"click", TOKENIZER}), (), ""), "2 packages, all with wheels"),
        (
            Resolved(frozenset({"click"}), (), ""),
            "1 packages, all with wheels; without bpe-openai, so nothing there counts tokens",
        ),
        (Resolved(frozenset(), ("lxml", "numpy"), "error"), "FAILS: no wheel of lxml, numpy"),
        (Resolved(frozenset(), (), "error"), "FAILS"),
    ],
)
def test_a_row_says_what_is_missing(found: Resolved, says: str) -> None:
    assert row_of("macOS x86-64", "3.14", found) == f"macOS x86-64    3.14   {says}"

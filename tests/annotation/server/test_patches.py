"""Each place of argilla-server that is changed is what was read when the change was written."""

import hashlib
import inspect
import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from pkgutil import resolve_name

import pytest

from tests.support.argilla_patches import patch_rows
from tests.support.places import ROOT

pytest.importorskip("uvicorn", reason="The server is not installed here.")

VERSION = "2.8.0"
IMPORT = "from annotation.server.patches.first import import_argilla_server; import_argilla_server()"
TARGETS = {target: digest for target, digest, _ in patch_rows()}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    code = f"""
import json
{IMPORT}
from tests.annotation.server.test_patches import TARGETS, source_digest
print(json.dumps({{target: source_digest(target) for target in TARGETS}}))
"""
    done = python(code, tmp_path_factory.mktemp("home"))
    assert done.returncode == 0, done.stderr
    digests: dict[str, str] = json.loads(done.stdout)
    return digests


def test_the_table_is_of_the_argilla_server_that_is_installed() -> None:
    assert version("argilla-server") == VERSION


@pytest.mark.rare
@pytest.mark.parametrize("target", TARGETS)
def test_what_a_patch_changes_is_there_as_it_was_read(target: str, installed: dict[str, str]) -> None:
    assert installed[target] == TARGETS[target], f"{target} is not what it was in argilla-server {VERSION}"


@pytest.mark.rare
def test_an_argilla_server_without_a_target_does_not_start(tmp_path: Path) -> None:
    code = f"""
{IMPORT}
from argilla_server.contexts import accounts
del accounts.authenticate_user
from annotation.server.patches.table import apply_patches
apply_patches()
"""
    done = python(code, tmp_path)
    assert done.returncode == 1
    assert "has no attribute 'authenticate_user'" in done.stderr


def python(code: str, home: Path) -> "subprocess.CompletedProcess[str]":
    environment = {"ARGILLA_HOME_PATH": str(home), "TMPDIR": str(home), "ARGILLA_SEARCH_ENGINE": "citejury"}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=ROOT)


def source_digest(target: str) -> str:
    try:
        found = resolve_name(f"argilla_server.{target}")
    except (ImportError, AttributeError) as error:
        return str(error)
    found = found.fget if isinstance(found, property) else found
    if not (inspect.ismodule(found) or inspect.isclass(found) or inspect.isroutine(found)):
        return type(found).__name__
    return hashlib.sha256(inspect.getsource(found).encode()).hexdigest()[:12]

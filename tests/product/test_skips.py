import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.places import NO_SHARED, ROOT

TESTS = f"""
import pytest

def test_passes():
    pass

@pytest.mark.skipif(True, reason={NO_SHARED!r})
def test_needs_data():
    raise AssertionError

def test_needs_chromium():
    pytest.skip("Chromium and its driver are not installed")

@pytest.mark.skipif(True, reason="no such limit on Windows")
def test_is_for_another_system():
    raise AssertionError

@pytest.mark.xfail(strict=True)
def test_is_known_to_fail():
    raise AssertionError
"""
WHOLE_FILE = "import pytest\n\npytest.importorskip('no_such_library', reason='The `server` extra is not installed.')\n"


def run(folder: Path, text: str, **environment: str) -> tuple[int, str]:
    """pytest's exit code and what it printed of a file of tests."""
    (folder / "test_made.py").write_text(text, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    inherited = {name: value for name, value in os.environ.items() if name not in ("CI", "MAY_SKIP")}
    command = [sys.executable, "-m", "pytest", "-q", "-ra", "-p", "tests.support.skips", "-p", "no:cacheprovider"]
    ended = subprocess.run(
        [*command, "-p", "no:anyio", "-p", "no:valkey", str(folder)],
        env=inherited | {"PYTHONPATH": str(ROOT)} | environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.returncode, ended.stdout


PASSED = "1 passed, 3 skipped, 1 xfailed"


@pytest.mark.parametrize(
    ("environment", "code", "counts"),
    [
        pytest.param({}, 0, PASSED, marks=pytest.mark.rare),
        ({"CI": "true"}, 1, "1 failed, 1 passed, 1 skipped, 1 xfailed, 1 error"),
        ({"CI": "true", "MAY_SKIP": "shared, chromium"}, 0, PASSED),
    ],
    ids=["where somebody works", "on ci", "on a machine that says what it does not have"],
)
def test_a_skip_fails_on_ci_but_where_it_may(
    tmp_path: Path, environment: dict[str, str], code: int, counts: str
) -> None:
    ended, printed = run(tmp_path, TESTS, **environment)
    assert (ended, counts in printed) == (code, True), printed
    assert code == 0 or (NO_SHARED in printed and "except what MAY_SKIP names" in printed)


@pytest.mark.parametrize(("allowed", "code"), [("", 2), pytest.param("extra", 5, marks=pytest.mark.rare)])
def test_a_file_that_skips_as_a_whole_fails_too(tmp_path: Path, allowed: str, code: int) -> None:
    assert run(tmp_path, WHOLE_FILE, CI="true", MAY_SKIP=allowed)[0] == code

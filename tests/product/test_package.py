import subprocess
import sys
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.support.places import ROOT

PACKAGES = ("pipeline", "annotation", "exports")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def test_the_wheel_holds_the_files_of_the_three_packages_a_licence_and_a_command_and_nothing_else(wheel: Path) -> None:
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *PACKAGES]
    tracked = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name} == set(tracked)
    archive = zipfile.ZipFile(wheel)
    info = {name.split(".dist-info/")[1]: name for name in archive.namelist() if ".dist-info/" in name}
    assert "licenses/LICENSE" in info
    assert "citejury = exports.cli:main" in archive.read(info["entry_points.txt"]).decode()


def test_no_other_distribution_ships_a_package_of_these_names_and_folders_beside_them_are_none() -> None:
    # An editable install lists no files, so that nobody owns the name.
    assert {owner for package in PACKAGES for owner in packages_distributions().get(package, ())} <= {"citejury"}
    assert not [path for folder in ("docker", "tests") for path in (ROOT / folder).rglob("__init__.py")]

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


def tracked_files() -> set[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *PACKAGES],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(listed.stdout.split())


def test_the_wheel_holds_the_files_of_the_three_packages_and_nothing_else(wheel: Path) -> None:
    assert {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name} == tracked_files()


def test_the_wheel_carries_licence_and_command(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    info = {name.split(".dist-info/")[1]: name for name in archive.namelist() if ".dist-info/" in name}
    assert "licenses/LICENSE" in info
    assert "citejury = exports.cli:main" in archive.read(info["entry_points.txt"]).decode()


@pytest.mark.parametrize("package", PACKAGES)
def test_no_other_distribution_ships_a_package_of_this_name(package: str) -> None:
    # An editable install lists no files, so that nobody owns the name.
    assert set(packages_distributions().get(package, ())) <= {"citejury"}


@pytest.mark.parametrize("folder", ["docker", "tests"])
def test_folders_beside_the_packages_cannot_be_imported_as_packages(folder: str) -> None:
    assert not list((ROOT / folder).rglob("__init__.py"))

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.places import ROOT

if TYPE_CHECKING:
    from annotation.server.launch import ServerHandle

Citejury = Callable[..., str]
UV = Path(sys.executable).parent / "uv"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    wheel = next(folder.glob("*.whl"))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    constraints = ROOT / "docker" / "constraints.txt"
    install = [UV, "pip", "install", "--quiet", "--python", python, "--constraint", constraints, wheel, "pip"]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if "Failed to fetch" in done.stderr:
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, done.stderr
    assert not done.stderr, "nothing is warned of"
    return folder / "venv"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


@pytest.fixture
def citejury(environment: Path, project: Path, argilla_server: "ServerHandle") -> Citejury:
    """A command of the installed wheel, run in the project's folder; what it printed."""

    def run(*words: str) -> str:
        settings = {
            "PATH": f"{environment / 'bin'}:{os.environ['PATH']}",
            "ARGILLA_API_URL": argilla_server.url,
            "ARGILLA_API_KEY": argilla_server.owner_api_key,
            "CITEJURY_WORKSPACE": "from-the-wheel",
        }
        place = project / "mine" if (project / "mine").exists() else project
        done = subprocess.run(["citejury", *words], cwd=place, env=settings, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    return run


@pytest.mark.rare
@pytest.mark.server
def test_the_commands_of_a_new_project_work_without_any_extra(citejury: Citejury, environment: Path) -> None:
    assert str(environment) in citejury("--version")
    assert not list(environment.glob("lib/*/site-packages/argilla_server"))
    citejury("init", "mine")
    citejury("pipeline", "ask", "narratives.csv", "--replay", "payloads", "--out", "answers")
    citejury("annotation", "setup", "--passwords", "passwords.json")
    pushed = citejury("annotation", "push", "answers")
    assert all(task in pushed for task in ("retrieval", "grounding", "generation")), pushed
    citejury("annotation", "share", "--out", "sheets", "--passwords", "passwords.json")
    assert "anna" in citejury("annotation", "status")


@pytest.mark.rare
@pytest.mark.server
def test_the_server_is_installed_by_pip_beside_citejury_and_starts_from_there(
    environment: Path, tmp_path: Path
) -> None:
    settings = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CITEJURY_"))}
    settings["PATH"] = f"{environment / 'bin'}:{os.environ['PATH']}"
    before = {path.name for path in environment.glob("lib/*/site-packages/*")}
    serve = ["citejury", "annotation", "serve", "--home", str(tmp_path / "home"), "--port", "0"]
    refused = subprocess.run(serve, env=settings, capture_output=True, text=True)
    assert "type `citejury annotation install`" in refused.stderr
    done = subprocess.run(["citejury", "annotation", "install"], env=settings, capture_output=True, text=True)
    if "cannot be reached" in done.stderr:
        pytest.skip("the package index cannot be reached")
    assert (done.returncode, done.stdout) == (0, f"{environment / 'citejury-server'}\n"), done.stderr
    sys.stderr.write(done.stderr)  # how large it is, and how long it took
    assert {path.name for path in environment.glob("lib/*/site-packages/*")} == before
    with subprocess.Popen(serve, env=settings, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        said = next((line for line in server.stderr if "Ctrl-C" in line), None)
        server.terminate()
        rest = server.stderr.read()
    assert said, rest
    assert server.returncode == 0, rest

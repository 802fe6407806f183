"""The environment of the server: made by pip of tiny wheels, from a loopback index or from a folder."""

import base64
import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from packaging.markers import default_environment
from packaging.utils import canonicalize_name

from annotation.server import environment
from annotation.server.guardian import START
from annotation.server.start import _Ours
from exports.cli import main
from pipeline.core.errors import ServerStartError
from tests.product.test_supply_chain import LOCK, entries
from tests.support.places import ROOT

AGAIN = "type `citejury annotation install` again."


def make_wheel(folder: Path, name: str, version: str, size: int = 0) -> Path:
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"VERSION = {version!r}\n".encode() + b"#" * size,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},{digest(content)},{len(content)}\n" for path, content in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in files.items():
            archive.writestr(zipfile.ZipInfo(member), content)
    return path


def digest(content: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


class Index:
    """A package index of a folder's wheels, which may hold some back."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sent: list[str] = []
        self.asked, self.free = threading.Event(), threading.Event()
        self.held = ""
        index = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                name = self.path.strip("/").rpartition("/")[2]
                if name.endswith(".whl"):
                    if name.startswith(index.held or "-"):
                        index.asked.set()
                        index.free.wait()
                    index.sent.append(name)
                    body, kind = (index.folder / name).read_bytes(), "application/zip"
                else:
                    found = sorted(index.folder.glob(f"{name}-*.whl"))
                    links = "".join(f'<a href="/files/{path.name}">{path.name}</a>' for path in found)
                    body, kind = links.encode(), "text/html"
                self.send_response(200)
                for field, value in (("Content-Type", kind), ("Content-Length", str(len(body)))):
                    self.send_header(field, value)
                self.send_header("Cache-Control", "max-age=3600" if kind == "application/zip" else "no-store")
                self.end_headers()
                with contextlib.suppress(OSError):  # it was killed
                    self.wfile.write(body)

            def log_message(self, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/simple"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    for name in ("first", "second"):
        make_wheel(folder, name, "1.0")
    return folder


@pytest.fixture
def index(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    index = Index(wheels)
    monkeypatch.setenv("PIP_INDEX_URL", index.url)
    yield index
    index.free.set()
    index.server.shutdown()
    index.server.server_close()


@pytest.fixture(autouse=True)
def place(tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the environment goes: citejury seems to run in a virtual environment of its own."""
    (tmp_path / "user").mkdir()
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "user"))
    for name in [name for name in os.environ if name.startswith(("PIP_", "PYTHONPATH"))]:
        monkeypatch.delenv(name)
    settings = {
        "CONFIG_FILE": os.devnull,
        "CACHE_DIR": tmp_path / "cache",
        "RETRIES": 1,
        "TRUSTED_HOST": "127.0.0.1",  # only then is what comes without encryption kept
        "INDEX_URL": "http://127.0.0.1:1",
    }
    for name, value in settings.items():
        monkeypatch.setenv(f"PIP_{name}", str(value))
    monkeypatch.setattr(environment, "LOCK", write_lock(tmp_path, wheels))
    monkeypatch.setattr(environment, "_PATIENCE_SECONDS", 0.5)
    return tmp_path / "user" / "citejury-server"


def write_lock(folder: Path, wheels: Path) -> Path:
    path = folder / "requirements.lock"
    lines = []
    for wheel in sorted(wheels.iterdir()):
        name, version, _ = wheel.name.split("-", 2)
        lines.append(f"{name}=={version} \\\n    --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path


def install(*words: str) -> Result:
    return CliRunner().invoke(main, ["annotation", "install", *words])


def refused(*words: str) -> str:
    """The one line that it ends with."""
    result = install(*words)
    assert (result.exit_code, result.stdout) == (1, "")
    *_, line = result.stderr.splitlines()
    assert line.startswith("Error: "), result.stderr
    with pytest.raises(ServerStartError, match="not installed here: type `citejury annotation install`"):
        environment.server_python()
    return line


def versions(place: Path) -> dict[str, str]:
    (folder,) = place.glob("lib/python*/site-packages")
    return {found.name: found.version for found in distributions(path=[str(folder)])}


def started(tmp_path: Path, *limits: str) -> "subprocess.Popen[str]":
    """The command in a process of its own, with the settings of this one."""
    code = f"""
import sys
from pathlib import Path
from annotation.server import environment
from exports.cli import main
sys.prefix, environment.LOCK = {sys.prefix!r}, Path({str(environment.LOCK)!r})
main(["annotation", "install"])
"""
    words = ["sh", "-c", f'{"; ".join([*limits, "exec"])} "$0" -c "$1"', sys.executable, code]
    return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_it_is_filled_from_the_index_and_left_alone_once_it_is_whole(index: Index, place: Path) -> None:
    done = install()
    assert (done.exit_code, done.stdout) == (0, f"{place}\n"), done.output
    assert re.search(r"^2 packages, \d+ MB, in \d+ s\.$", done.stderr, re.MULTILINE)
    assert versions(place) == {"first": "1.0", "second": "1.0"}
    python = environment.server_python()
    shown = subprocess.run([python, "-c", "import first; print(first.VERSION)"], capture_output=True, text=True)
    assert shown.stdout == "1.0\n"
    again = install()
    assert (again.exit_code, again.stdout, len(index.sent)) == (0, "", 2)
    assert "there already" in again.stderr


def test_a_folder_of_wheels_is_enough_and_one_that_lacks_a_wheel_is_told(wheels: Path, place: Path) -> None:
    (second,) = wheels.glob("second*")
    shutil.move(second, wheels.parent)
    assert f"`{wheels}` has no wheel of second==1.0 for this Python and machine. Put it there" in refused(
        "--wheels", str(wheels)
    )
    shutil.move(wheels.parent / second.name, wheels)
    done = install("--wheels", str(wheels))
    assert done.exit_code == 0, done.output
    assert versions(place) == {"first": "1.0", "second": "1.0"}


def test_without_a_network_one_line_says_so() -> None:
    assert "the package index cannot be reached. Look after network and proxy" in refused()


def test_a_byte_that_was_changed_on_the_way_is_refused_and_the_next_start_goes_on(index: Index, place: Path) -> None:
    (second,) = index.folder.glob("second*")
    whole = second.read_bytes()
    make_wheel(index.folder, "second", "1.0", size=1)
    line = refused()
    assert "what came as second==1.0 is not, byte for byte, what citejury names. A proxy or an index" in line
    assert line.endswith(AGAIN)
    second.write_bytes(whole)
    assert install().exit_code == 0
    assert versions(place) == {"first": "1.0", "second": "1.0"}


def test_after_a_kill_in_the_middle_it_goes_on_with_what_was_fetched(index: Index, place: Path, tmp_path: Path) -> None:
    index.held = "second"
    with started(tmp_path) as killed:
        index.asked.wait()
        killed.kill()
    with pytest.raises(ServerStartError, match="not installed here"):
        environment.server_python()
    (folder,) = place.glob("lib/python*/site-packages")
    half = folder / "first-1.0.dist-info"  # as if it had come to unpacking
    half.mkdir()
    (half / "METADATA").write_text("Metadata-Version: 2.1\nName: first\nVersion: 1.0\n", encoding="utf-8")
    index.held = ""
    index.free.set()
    done = install()
    assert done.exit_code == 0, done.output
    assert versions(place) == {"first": "1.0", "second": "1.0"}
    assert (folder / "first.py").exists()
    assert index.sent.count("first-1.0-py3-none-any.whl") == 1


def test_a_second_installation_at_once_is_refused_and_the_first_is_not_disturbed(
    index: Index, place: Path, tmp_path: Path
) -> None:
    index.held = "second"
    with started(tmp_path) as first:
        index.asked.wait()
        line = refused()
        assert "Another installation or a server is using" in line
        index.free.set()
        assert first.communicate()[0] == f"{place}\n"
    assert versions(place) == {"first": "1.0", "second": "1.0"}


def test_on_a_full_disk_one_line_says_so_and_the_next_start_goes_on(wheels: Path, place: Path, tmp_path: Path) -> None:
    make_wheel(wheels, "second", "1.0", size=2**20)
    write_lock(tmp_path, wheels)
    os.environ["PIP_NO_INDEX"], os.environ["PIP_FIND_LINKS"] = "1", str(wheels)
    try:
        with started(tmp_path, "ulimit -f 200") as process:
            said = process.communicate()[1]
    finally:
        del os.environ["PIP_NO_INDEX"], os.environ["PIP_FIND_LINKS"]
    assert process.returncode == 1
    *_, line = said.splitlines()
    assert line == f"Error: The server was not installed: the disk is full. Make room, and {AGAIN}"
    assert not environment.is_whole()
    assert install("--wheels", str(wheels)).exit_code == 0
    assert versions(place) == {"first": "1.0", "second": "1.0"}


def test_that_of_an_earlier_version_is_told_and_made_anew(wheels: Path, place: Path, tmp_path: Path) -> None:
    assert install("--wheels", str(wheels)).exit_code == 0
    for old in wheels.iterdir():
        old.unlink()
    make_wheel(wheels, "first", "2.0")
    write_lock(tmp_path, wheels)
    with pytest.raises(ServerStartError, match="of another version of citejury: `citejury annotation install` brings"):
        environment.server_python()
    with environment.held(), pytest.raises(ServerStartError, match="a server is using"):  # as a server does that runs
        environment.install(wheels)
    assert install("--wheels", str(wheels)).exit_code == 0
    assert versions(place) == {"first": "2.0"}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        (environment, ("PYTHONS", ("2.6", "2.7")), "The server needs Python 2.6 to 2.7, and this is 3."),
        (sys, ("platform", "win32"), "runs on Linux and macOS only, and all else of citejury works on Windows too"),
    ],
    ids=["another Python", "Windows"],
)
def test_where_it_cannot_run_one_line_says_so(
    monkeypatch: pytest.MonkeyPatch, place: Path, name: Any, value: tuple[str, Any], said: str
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(name, *value)
        for ask in (environment.server_python, environment.install):
            with pytest.raises(ServerStartError, match=re.escape(said)):
                ask()
    assert not place.exists()


def test_outside_of_a_virtual_environment_it_goes_to_the_user_s_data(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert environment.folder() == tmp_path / "citejury" / f"server-{sys.implementation.cache_tag}"


@pytest.mark.server
def test_what_runs_here_holds_exactly_what_the_lock_names_and_of_ours_finds_only_our_packages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()
    python = environment.server_python()
    found = {canonicalize_name(name): version for name, version in versions(python.parents[1]).items()}
    assert found == {part: version for part, version, _ in entries(LOCK, default_environment())}
    assert [_Ours.find_spec(name, None) for name in ("tests", "pytest")] == [None, None]
    shown = subprocess.run(
        [python, "-P", START, "annotation.embedded.service"], capture_output=True, text=True, cwd="/"
    )
    assert shown.stderr.startswith("usage: python -m annotation.server.service")

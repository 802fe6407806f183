"""The server's own Python environment, beside the user's: where it is, whether it is whole, and how it is filled.

pip fills it with what `requirements.lock` names, by hashes. Its stamp is written last: where it is missing or another,
the environment is made anew, of what pip keeps of all that it has fetched.
"""

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from annotation.server.guardian import ending_with_the_parent
from pipeline.core.errors import ServerStartError
from pipeline.core.files import output_errors
from pipeline.core.terminal import printable

LOCK = Path(__file__).with_name("requirements.lock")
PYTHONS = ("3.11", "3.12", "3.13")
"""Those that the lock was made for."""
_STAMP = "complete"
_INSTALL = "`citejury annotation install`"
_PATIENCE_SECONDS = 10.0
_MAKE_ROOM = "Make room, and type it again: it goes on with what it has."
Report = Callable[[str, int, int], None]
_MISLEADING = ("PIP_PREFIX", "PIP_ROOT", "PIP_TARGET", "PIP_USER", "PYTHONHOME", "PYTHONPATH")


class Installed(NamedTuple):
    folder: Path
    packages: int
    megabytes: float
    seconds: float


def folder() -> Path:
    """Inside the virtual environment that citejury runs in; where there is none, or it is others', with our data."""
    inside = Path(sys.prefix) / "citejury-server"
    if sys.prefix != sys.base_prefix and (inside.exists() or os.access(sys.prefix, os.W_OK)):
        return inside
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    data = "~/Library/Application Support" if sys.platform == "darwin" else data
    return Path(data).expanduser() / "citejury" / f"server-{sys.implementation.cache_tag}"


def server_python() -> Path:
    """The Python of the whole environment. Raises ServerStartError where there is none, with what to type."""
    _check_machine()
    python = folder() / "bin" / "python"
    if is_whole():
        return python
    if python.exists() and (folder() / _STAMP).exists():
        found = f"The server's environment in `{folder()}` is of another version of citejury"
        raise ServerStartError(f"{found}: {_INSTALL} brings it up to date.")
    raise ServerStartError(f"The server is not installed here: type {_INSTALL}.")


def site_packages() -> Path:
    """Where argilla-server is: beside us, as in the server's own processes, or in its environment."""
    spec = find_spec("argilla_server")
    if spec and spec.origin:
        return Path(spec.origin).parents[1]
    return next(server_python().parents[1].glob("lib/python*/site-packages"))


def is_whole() -> bool:
    with contextlib.suppress(OSError):
        python = folder() / "bin" / "python"
        return (folder() / _STAMP).read_text(encoding="utf-8") == _stamp() and os.access(python, os.X_OK)
    return False


def _stamp() -> str:
    digest = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    return f"{digest} {sys.implementation.cache_tag} {sysconfig.get_platform()}\n"


def _check_machine() -> None:
    if sys.platform == "win32":
        raise ServerStartError(
            "The server runs on Linux and macOS only, and all else of citejury works on Windows too: use WSL, or set "
            "`ARGILLA_API_URL` to an Argilla that runs elsewhere."
        )
    version = "{}.{}".format(*sys.version_info)
    if version not in PYTHONS:
        raise ServerStartError(
            f"The server needs Python {PYTHONS[0]} to {PYTHONS[-1]}, and this is {version}: install citejury with one "
            "of those, or set `ARGILLA_API_URL` to an Argilla that runs elsewhere."
        )


@contextlib.contextmanager
def held(*, alone: bool = False) -> Iterator[int]:
    """A lock on the environment while the block runs: many servers use it, one installation changes it."""
    import fcntl  # not on Windows, where other commands import this module

    path = folder().with_suffix(".lock")
    with output_errors(f"`{path}` cannot be written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(path, os.O_RDONLY | (0 if path.exists() else os.O_CREAT), 0o644)
    deadline = time.monotonic() + _PATIENCE_SECONDS  # whoever was killed leaves parts that are about to end
    try:
        while True:
            try:
                fcntl.flock(lock, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    raise ServerStartError(
                        f"Another installation or a server is using `{folder()}`. Wait until it has ended, or stop it."
                    ) from error
                time.sleep(0.1)
        yield lock
    finally:
        os.close(lock)


def install(
    wheels: Path | None = None,
    report: Callable[[str, int, int], None] = lambda name, done, total: None,
    tool: Sequence[str] = (),
) -> Installed | None:
    """Fill the environment, from a folder of wheels alone where one is named; None where it is whole already.

    `report` hears of each package how many were begun, of how many. `tool` is what installs instead of pip, as `uv pip`
    can. Raises ServerStartError and OutputError.
    """
    _check_machine()
    begun, place = time.monotonic(), folder()
    if is_whole():
        return None
    with held(alone=True) as lock, output_errors(f"`{place}` cannot be made", _MAKE_ROOM):
        if is_whole():  # by then, of another installation
            return None
        if place.exists():
            (place / _STAMP).unlink(missing_ok=True)
            shutil.rmtree(place)
        python = place / "bin" / "python"
        with_pip = not (tool or find_spec("pip"))
        try:
            venv.create(place, symlinks=True, with_pip=with_pip)
        except subprocess.CalledProcessError as error:
            raise ServerStartError(f"There is no pip for `{sys.executable}`: install it, and type it again.") from error
        pip = (str(python if with_pip else sys.executable), "-P", "-m", "pip")
        said = _fill(tool or pip, place, wheels, report, lock)
        if _CHANGED in said:  # pip may have kept it so, and would take it again and again
            said = _fill((*(tool or pip), "--no-cache-dir"), place, wheels, report, lock)
        if said:
            raise ServerStartError(_reason(said, wheels))
        (place / _STAMP).write_text(_stamp(), encoding="utf-8")
    sizes = [path.lstat().st_size for path in place.rglob("*")]
    packages = len(list(place.glob("lib/python*/site-packages/*.dist-info")))
    return Installed(place, packages, sum(sizes) / 1e6, time.monotonic() - begun)


def _fill(tool: Sequence[str], place: Path, wheels: Path | None, report: Report, lock: int) -> str:
    """What the tool said where it failed; empty where everything is there."""
    total = len(re.findall("^[^ #]+==", LOCK.read_text(encoding="utf-8"), re.MULTILINE))
    source = ["--no-index", "--find-links", str(wheels.absolute())] if wheels else []
    hashes = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "--requirement", str(LOCK)]
    environment = {name: value for name, value in os.environ.items() if name not in _MISLEADING}
    environment |= {"PIP_PYTHON": str(place / "bin" / "python"), "VIRTUAL_ENV": str(place), "PYTHONUNBUFFERED": "1"}
    environment |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PIP_PROGRESS_BAR": "off"}
    said: list[str] = []
    with subprocess.Popen(
        [*tool, "install", *source, *hashes],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
        pass_fds=(lock,),  # whoever comes after a kill waits for it
        preexec_fn=ending_with_the_parent() if sys.platform == "linux" else None,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            if found := re.match(r"Collecting ([\w.-]+)", line):
                report(found[1], sum(each.startswith("Collecting ") for each in said), total)
            elif line.startswith("Installing collected"):
                report("unpacking", total, total)
    return "".join(said) if process.returncode else ""


_CHANGED = "DO NOT MATCH THE HASHES"
_FULL = r"No space left|Disk quota exceeded|File too large|Errno (?:27|28|122)\b"
_UNREACHABLE = r"connection broken by|Max retries|Proxy|SSLError|[Tt]imeout|timed out|ConnectionError|HTTP ?[Ee]rror"


def _reason(said: str, wheels: Path | None) -> str:
    absent = re.search(r"No matching distribution found for (\S+)", said)
    if changed := re.search(rf"{_CHANGED}.*?^    (\S+==\S+)", said, re.DOTALL | re.MULTILINE):
        why = (
            f"what came as {changed[1]} is not, byte for byte, what citejury names. A proxy or an index changes it: "
            "ask who runs it, or fetch the wheels elsewhere and name their folder with `--wheels`"
        )
    elif re.search(_FULL, said):
        why = "the disk is full. Make room"
    elif absent and wheels:
        why = f"`{wheels}` has no wheel of {absent[1]} for this Python and machine. Put it there"
    elif re.search(_UNREACHABLE, said):
        why = "the package index cannot be reached. Look after network and proxy, or name a folder with `--wheels`"
    elif absent:
        why = f"the package index has no wheel of {absent[1]} for this Python and machine. Ask who runs it"
    else:
        lines = [line for line in said.splitlines() if line.startswith(("ERROR", "error"))] or said.splitlines()[-1:]
        why = printable(f"it ended with {lines[-1]!r}" if lines else "it was ended")
    return f"The server was not installed: {why}, and type {_INSTALL} again."

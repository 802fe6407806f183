"""Run docker/compose.yaml in real containers, without Docker: `make containers`, as root on a Debian.

Our image is built from docker/Dockerfile. The pinned images of Python, PostgreSQL and Redis are not fetched: stand-ins
with their names are made from Debian's packages. The tests of this folder then run beside Podman in namespaces of
their own, for network, mounts and processes, so that nothing is left on this machine, however they end. What is made
stays in .containers; all addresses come from this machine's own settings of apt and pip.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
KEPT = ROOT / ".containers"
OURS, PYTHON, POSTGRESQL, REDIS = (
    "citejury:0.1.0",
    "docker.io/library/python:3.11.14-slim-bookworm",
    "docker.io/library/postgres:15.18-bookworm",
    "docker.io/library/redis:7.4.7-bookworm",
)
LAST_WORDS = 3000
SUITE = "bookworm"
PACKAGES = "python3,python3-venv,python3-pip,ca-certificates"
NEEDED = ("buildah", "podman", "runc", "iptables", "debootstrap", "docker-compose", "unshare", "ip")
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
STORAGE = f"""[storage]
driver = "overlay"
graphroot = "{KEPT}/storage"
runroot = "/run/citejury-containers"
"""
# crun, Podman's own choice, takes neither the older control groups nor a machine that limits its own limits.
ENGINE = f"""[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
[network]
network_backend = "netavark"
network_config_dir = "{KEPT}/networks"
"""
# Podman keeps its state below /run, its locks in /dev/shm. The shell stays, and buries what loses its parents.
ALONE = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-euc")
INSIDE = 'mount -t tmpfs tmpfs /run; mount -t tmpfs tmpfs /dev/shm; ip link set lo up; "$@"'


def main(arguments: Sequence[str]) -> int:
    """How the tests ended; 1 after a line where they cannot be run."""
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if os.geteuid() or missing:
        reason = f"{', '.join(missing)} missing" if missing else "they need root"
        sys.stderr.write(f"The containers cannot be run here: {reason}.\n")
        return 1
    KEPT.mkdir(exist_ok=True)
    for name, text in {"CONTAINERS_STORAGE_CONF": STORAGE, "CONTAINERS_CONF": ENGINE}.items():
        file = KEPT / f"{name.lower()}.toml"
        file.write_text(text, encoding="utf-8")
        os.environ[name] = str(file)
    os.environ["BUILDAH_ISOLATION"] = "chroot"
    # The timer of health checks is systemd's; tests/support/containers.py has one of its own.
    os.environ["DISABLE_HC_SYSTEMD"] = "true"
    try:
        make_images()
    except subprocess.CalledProcessError as error:
        sys.stderr.write(f"\n{(error.stdout + error.stderr)[-LAST_WORDS:]}\nThis failed: {' '.join(error.cmd)}\n")
        return 1
    pytest = (sys.executable, "-m", "pytest", "-m", "containers", "-n", "0", "-v", str(HERE), *arguments)
    try:
        return subprocess.run([*ALONE, INSIDE, "sh", *pytest], cwd=ROOT, check=False).returncode
    finally:
        # Images that newer ones have taken the names of, and what a run that was killed left of its builds.
        for words in (("rm", "--all"), ("rmi", "--prune")):
            subprocess.run(["buildah", *words], capture_output=True, check=False)
        remove_control_groups()


def make_images() -> None:
    """Make the stand-ins that are missing or have changed, and our image anew."""
    if subprocess.run(["buildah", "inspect", "--type", "image", PYTHON], capture_output=True, check=False).returncode:
        with step("Python from Debian's packages, in place of its image"):
            make_base()
    for name, image in (("postgres", POSTGRESQL), ("redis", REDIS)):
        with step(f"{image} from Debian's packages, in place of the real one"):
            build(image, HERE / f"{name}.Dockerfile", HERE, "--layers")
    with step(f"{OURS} from docker/Dockerfile"), tempfile.TemporaryDirectory() as folder:
        settings = Path(folder, "pip.conf")
        settings.write_text(pip_settings(), encoding="utf-8")
        build(OURS, ROOT / "docker" / "Dockerfile", ROOT, "-v", f"{settings}:/etc/pip.conf:ro")


@contextmanager
def step(what: str) -> Iterator[None]:
    sys.stderr.write(f"{what} …")
    sys.stderr.flush()
    begun = time.monotonic()
    yield
    sys.stderr.write(f" {time.monotonic() - begun:.0f} s\n")


def make_base() -> None:
    """The image of Python: a small Debian with this machine's sources of packages."""
    folder = KEPT / "root"
    shutil.rmtree(folder, ignore_errors=True)
    run("debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(folder), mirror())
    (folder / "usr" / "bin" / "python").symlink_to("python3")
    for place in ("etc/apt", "usr/share/keyrings"):
        shutil.copytree(Path("/", place), folder / place, dirs_exist_ok=True)
    container = run("buildah", "from", "scratch")
    run("buildah", "add", "--quiet", container, str(folder), "/")
    run("buildah", "commit", "--quiet", container, PYTHON)
    run("buildah", "rm", container)
    shutil.rmtree(folder)


def mirror() -> str:
    targets = run("apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)", "Created-By: Packages")
    found = [uri for uri, suite in map(str.split, targets.splitlines()) if suite == SUITE]
    if not found:
        raise SystemExit(f"The images cannot be made here: this machine's apt has no source of Debian's {SUITE}.")
    return found[0]


def pip_settings() -> str:
    """This machine's settings of pip, from its files and its environment, as one file."""
    lines = run("python3", "-m", "pip", "config", "list").splitlines()
    strongest_last = sorted(lines, key=lambda line: line.startswith(":env:"))
    pairs = (line.partition(".")[2].partition("=") for line in strongest_last)
    settings = {name: value.strip("'") for name, _, value in pairs}
    return "[global]\n" + "".join(f"{name} = {value}\n" for name, value in settings.items())


def build(image: str, file: Path, context: Path, *options: str) -> None:
    """Build an image with this machine's network and certificates."""
    mounts = [word for path in (CERTIFICATES, "/etc/resolv.conf") for word in ("-v", f"{path}:{path}:ro")]
    here = ("--pull-never", "--network", "host", *mounts, *options)
    run("nice", "buildah", "build", "--quiet", *here, "-t", image, "-f", str(file), str(context))


def run(*command: str) -> str:
    """What a command wrote to stdout.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def remove_control_groups() -> None:
    """Remove what Podman leaves below /sys/fs/cgroup, unless somebody else's containers are in it."""
    for group in Path("/sys/fs/cgroup").glob("**/libpod_parent"):
        for folder in [*sorted(group.glob("**/"), reverse=True)]:
            with suppress(OSError):
                folder.rmdir()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

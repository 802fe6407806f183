"""Resolve what `pip install citejury` and `annotation install` bring, wheels only, everywhere: `make platforms`.

Nothing is installed; the index is asked which wheels there are. It fails where a package has none.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from annotation.server.environment import PYTHONS as SERVER_PYTHONS

UV = Path(sys.executable).parent / "uv"
PLATFORMS = {
    "Linux x86-64": "x86_64-unknown-linux-gnu",
    "Linux arm64": "aarch64-unknown-linux-gnu",
    "macOS arm64": "aarch64-apple-darwin",
    "macOS x86-64": "x86_64-apple-darwin",
    "Windows x86-64": "x86_64-pc-windows-msvc",
}
"""What uv calls each."""
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
TOKENIZER = "bpe-openai"
ROOT = Path(__file__).parents[1]
LOCK = ROOT / "annotation" / "server" / "requirements.lock"
PINNED = re.compile(r"^(?: \+ )?([\w.-]+)==", re.MULTILINE)
NO_WHEEL = re.compile(r"Wheels are required for `([\w.-]+)`|\b([\w.-]+)(?:\{[^}]*\})?(?:==\S+)? has no usable wheels")


class Resolved(NamedTuple):
    packages: frozenset[str]
    """Names of the packages; empty where they cannot be resolved."""
    wanting: tuple[str, ...]
    """Packages without a wheel there."""
    error: str
    """What uv says where it found no solution; empty where it did."""


def without_wheel(error: str) -> tuple[str, ...]:
    """The packages of which uv's message says that they have no wheel, each once, in its order."""
    return tuple(dict.fromkeys(hint or cause for hint, cause in NO_WHEEL.findall(error)))


def resolve(platform: str, python: str, project: Path = ROOT / "pyproject.toml") -> Resolved:
    """What the project needs without its extras; `platform` is uv's name of it."""
    return asked("compile", "--no-header", "--no-annotate", *place_of(platform, python), project)


def resolve_server(platform: str, python: str) -> Resolved:
    """What the server's lock names there."""
    with tempfile.TemporaryDirectory() as nowhere:
        options = ("--dry-run", "--no-deps", "--target", nowhere, "--require-hashes", "--requirement", LOCK)
        return asked("install", *place_of(platform, python), *options)


def place_of(platform: str, python: str) -> tuple[str, ...]:
    return ("--only-binary", ":all:", "--python-platform", platform, "--python-version", python)


def asked(*words: str | Path) -> Resolved:
    done = subprocess.run([UV, "pip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        return Resolved(frozenset(), without_wheel(done.stderr), done.stderr.strip())
    return Resolved(frozenset(PINNED.findall(done.stdout + done.stderr)), (), "")


def row_of(platform: str, python: str, found: Resolved) -> str:
    words = f"{len(found.packages)} packages, all with wheels"
    if found.error:
        words = f"FAILS: no wheel of {', '.join(found.wanting)}" if found.wanting else "FAILS"
    elif "argilla-server" not in found.packages and TOKENIZER not in found.packages:
        words += f"; without {TOKENIZER}, so nothing there counts tokens"
    return f"{platform:<16}{python:<7}{words}"


def main() -> int:
    """Print a row for each platform and Python as soon as it is resolved, then what uv says of those that fail."""
    errors: dict[str, str] = {}
    for what, ask, platforms, pythons in (
        ("citejury", resolve, PLATFORMS, PYTHONS),
        ("its server", resolve_server, dict(list(PLATFORMS.items())[:-1]), SERVER_PYTHONS),
    ):
        sys.stdout.write(f"{what}\n")
        for name, platform in platforms.items():
            for python in pythons:
                found = ask(platform, python)
                sys.stdout.write(f"{row_of(name, python, found)}\n")
                sys.stdout.flush()
                if found.error:
                    errors.setdefault(found.error, f"{what}, {name}, Python {python}")
    for error, where in errors.items():
        sys.stderr.write(f"\n{where}:\n{error}\n")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())

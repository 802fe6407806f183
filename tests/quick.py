"""Check what a change touches, in half a minute: lint, types, and the tests that import a changed module.

`python tests/quick.py [BASE]` looks at what differs from the commit BASE: without it, at what is not committed, or at
the last commit where all is. Tests that need a server or a browser are left to `make test`.
"""

import ast
import subprocess
import sys
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("pipeline", "annotation", "exports")
LAYOUT = "tests/product/test_layout.py"
SLOW = "not soak and not server and not browser"


def main(arguments: list[str]) -> int:
    """0 when everything passed, which includes that nothing was changed."""
    started = time.monotonic()
    changed = changed_files(arguments[0] if arguments else None)
    python = [name for name in changed if name.endswith(".py")]
    if not python:
        sys.stderr.write("No Python file was changed.\n")
        return 0
    tests = touched_tests(python)
    product = [name for name in python if name.split("/")[0] in PACKAGES]
    sys.stderr.write(f"{len(python)} files changed; {len(tests)} test files import them.\n")
    tests = [*tests, LAYOUT] if product and LAYOUT not in tests else tests
    commands = [["ruff", "format", "--check", *python], ["ruff", "check", *python]]
    if product:
        commands.append(["mypy"])
    if tests:
        workers = ["-n", "2", "--dist", "loadfile"] if len(tests) > 1 else []
        commands.append(["pytest", "-q", *workers, "-m", f"{SLOW} and not rare", *tests])
    failed = [command[0] for command in commands if run(command)]
    sys.stderr.write(
        f"{'Failed: ' + ', '.join(failed) if failed else 'All well'} ({time.monotonic() - started:.0f} s).\n"
    )
    return int(bool(failed))


def changed_files(base: str | None) -> list[str]:
    """The files that differ from a commit and still exist, new ones among them, in order of their names."""
    found = {*git("ls-files", "--others", "--exclude-standard"), *git("diff", "--name-only", base or "HEAD")}
    if not found and not base:
        found = set(git("diff", "--name-only", "HEAD~1"))
    return sorted(name for name in found if (ROOT / name).is_file())


def touched_tests(changed: Iterable[str]) -> list[str]:
    """The test files that changed, or that import a changed module themselves or through `tests/support`.

    Of a module that tests of many folders import, only those of the folder that mirrors its own.
    """
    imports = {path: imported(path) for path in sorted((ROOT / "tests").rglob("*.py"))}
    support = {dotted(path): names for path, names in imports.items() if "support" in path.parts}
    tests = {path: names for path, names in imports.items() if path.name.startswith("test_")}
    touched = set()
    for name in changed:
        module = dotted(ROOT / name)
        behind = {helper for helper, names in support.items() if module in names}
        using = {path for path, names in tests.items() if module in names or behind & names}
        mirror = ROOT / "tests" / Path(name).parent
        touched |= {path for path in using if mirror in path.parents} or using
        touched |= {path for path in tests if path == ROOT / name}
    return sorted(path.relative_to(ROOT).as_posix() for path in touched)


@cache
def imported(path: Path) -> set[str]:
    """Dotted names of everything that a file imports, anywhere in it; of `from a import b` both `a` and `a.b`."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def git(*words: str) -> list[str]:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()


def run(command: list[str]) -> bool:
    """Whether a command of this environment failed; pytest without a test to run did not."""
    code = subprocess.run([Path(sys.executable).parent / command[0], *command[1:]], cwd=ROOT, check=False).returncode
    return code not in ((0, 5) if command[0] == "pytest" else (0,))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

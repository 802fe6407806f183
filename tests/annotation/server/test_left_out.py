"""The server is one folder that an installation can leave out: everything else works without it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from tests.product.test_layout import OLD_NAME, PACKAGES, imports, modules, path_of
from tests.support.places import ROOT

SERVER = "annotation.server"
MAY_START_IT = {"annotation.cli.serve", "exports.cli.start", "exports.cli.project", "exports.cli.demo"}
WITHOUT = "This installation of citejury is without its server. Install the whole of citejury, or set"


def test_only_what_starts_the_server_imports_it_and_late() -> None:
    outside = {
        name: tree
        for name, tree in modules().items()
        if not name.startswith((SERVER, OLD_NAME)) and "server" in path_of(name).read_text(encoding="utf-8")
    }
    importers = {name for name, tree in outside.items() if any(used.startswith(SERVER) for used in imports(tree))}
    early = [
        name
        for name, tree in outside.items()
        if any(used.startswith(SERVER) for used in imports(tree, top_level_only=True))
    ]
    assert (early, importers - MAY_START_IT) == ([], set())


def test_without_the_folder_commands_say_so_in_plain_words_and_all_others_work(tmp_path: Path) -> None:
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(tmp_path / SERVER.replace(".", "/"))
    code = """
import json
from click.testing import CliRunner
from exports.cli import main
commands = ("annotation serve", "annotation backup a.zip", "demo", "doctor --json", "annotation push --help")
results = [CliRunner().invoke(main, each.split(), env={"ARGILLA_API_KEY": ""}) for each in commands]
print(json.dumps([[each.exit_code, each.stdout, each.stderr] for each in results]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path, env={"PYTHONPATH": "."}
    )
    *refused, doctor, pushing = json.loads(done.stdout)
    assert [(code, WITHOUT in said) for code, _, said in refused] == [(1, True)] * 3, refused
    (found,) = (check["found"] for check in json.loads(doctor[1]) if check["name"] == "embedded Argilla")
    assert WITHOUT in found
    assert pushing[0] == 0

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.core.schema import PROVIDERS
from pipeline.providers import every_provider
from tests.support.places import DATA, ROOT
from tests.support.provider_server import ProviderServer, Status

# The list of the providers, and the one whose search results CSV v2 holds.
THE_LIST = "pipeline/core/schema.py"
NAMES = "|".join(sorted({*PROVIDERS, *(provider.title.lower() for provider in every_provider())}))
# Neither the id of a model (`openai/gpt-oss-120b`) nor the name of a library.
IN_TEXT = re.compile(rf"(?<![\w./-])(?:{NAMES})(?![\w/-])", re.IGNORECASE)
IN_NAME = re.compile(rf"(?<!bpe_)(?:{NAMES})", re.IGNORECASE)
WHOLE = {name for provider in every_provider() for name in (*provider.aliases, *provider.key_variables)}


def test_no_other_module_of_the_product_names_a_provider() -> None:
    files = [path for package in ("pipeline", "annotation", "exports") for path in (ROOT / package).rglob("*.py")]
    paths = [path.relative_to(ROOT).as_posix() for path in files]
    others = [path for path in paths if path != THE_LIST and not path.startswith("pipeline/providers/")]
    assert not [f"{path}:{place}" for path in others for place in naming(ROOT / path)]


def naming(path: Path) -> Iterator[str]:
    """Where a provider is named in a module's code: in a text that is no docstring, or in the parts of a name."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and id(node) not in docs else None
        if isinstance(text, str) and (text in WHOLE or IN_TEXT.search(text)):
            yield f"{node.lineno}: {text[:80]!r}"
        for field in ("id", "attr", "arg", "name", "module"):
            name = str(getattr(node, field, "") or "")
            if IN_NAME.search(name):
                yield f"{getattr(node, 'lineno', 0)}: {name}"


ACME = (DATA / "acme_provider.txt").read_text(encoding="utf-8")
ENTRY = ('"perplexity"]', '"perplexity", "acme"]')
QUOTES = [{"link": "https://paper.example/moon", "text": "The Moon is rock."}]
PAYLOADS = {
    "N1": {"acme": {"words": "The Moon is made of rock.", "quotes": QUOTES, "by": "brain-3"}},
    "N2": {"acme": {"words": "I am Acme Brain, and I cannot say.", "quotes": [], "by": "brain-3"}},
}
BLIND = """
import json, sys
from pathlib import Path
from annotation.argilla.display import to_records
from annotation.push.record_sources import check_paths
from annotation.argilla.wording import read_wording

for source in sys.argv[1:]:
    records = []
    found = check_paths([Path(source)], skip_self_naming=True, keep=records.append)
    bodies = [body for record in records for each in to_records(record, read_wording("en")).values() for body in each]
    shown = [body["fields"] for body in bodies]
    print(json.dumps({"shown": shown, "speaking": len(found.speaking), "model": records[0].provenance.model_name}))
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The product with a sixth provider: one file more, and one entry in one list."""
    folder = tmp_path_factory.mktemp("copy")
    for package in ("pipeline", "annotation", "exports"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "pipeline" / "providers" / "acme.py").write_text(ACME, encoding="utf-8")
    the_list = folder / THE_LIST
    text = the_list.read_text(encoding="utf-8")
    assert text.count(ENTRY[0]) == 1
    the_list.write_text(text.replace(*ENTRY), encoding="utf-8")
    (folder / "narratives.csv").write_text("narrative_id,prompt\nN1,The Moon is cheese.\nN2,Who are you?\n", "utf-8")
    (folder / "payloads" / "coyote").mkdir(parents=True)
    for name, payload in PAYLOADS.items():
        (folder / "payloads" / "coyote" / f"{name}.json").write_text(json.dumps(payload), encoding="utf-8")
    return folder


COMMANDS = """
import sys
from exports.cli import main
for line in sys.argv[1:]:
    assert not main(line.split(), standalone_mode=False)
"""


def run(copy: Path, *commands: str, code: str = COMMANDS, **variables: str) -> str:
    """What commands of the copy printed on stdout, one after the other in one process."""
    environment = {**os.environ, "PYTHONPATH": str(copy), **variables}
    words = [sys.executable, "-c", code, *commands]
    done = subprocess.run(words, cwd=copy, env=environment, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_sixth_provider_is_one_file_and_one_entry_from_being_asked_to_a_blind_record(copy: Path) -> None:
    asking = "pipeline ask narratives.csv --out run --replay payloads"
    reading = "pipeline sources run --out records.jsonl --offline"
    run(copy, asking, "pipeline check run --reparse", reading)
    for blind in map(json.loads, run(copy, "run", "records.jsonl", code=BLIND).splitlines()):
        assert (blind["speaking"], blind["model"]) == (1, "acme")  # the one that says who it is stays out
        assert "The Moon is rock." in json.dumps(blind["shown"])
        assert "acme" not in json.dumps(blind["shown"]).lower()
    with ProviderServer([Status(200, {}, PAYLOADS["N1"])]) as server:
        base_urls = json.dumps({"acme": server.url})
        command = "pipeline ask narratives.csv --out asked --max-rows 1"
        variables = {"ACME_KEY": "planted-0123456789", "CITEJURY_BASE_URLS": base_urls}
        told = run(copy, command, "pipeline ask --help", **variables)
    assert "The Moon is made of rock." in (copy / "asked" / "acme.csv").read_text(encoding="utf-8")
    [asked] = server.calls
    assert (asked.path, asked.headers["x-acme"], asked.body["brain"]) == ("/answers", "planted-0123456789", "brain-3")
    assert all(said in " ".join(told.split()) for said in ("and ACME_KEY.",))

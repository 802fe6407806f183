"""One more statistic is a field and its words: in a copy of the project it is then everywhere people read it."""

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from exports.csv.schema import COLUMNS
from tests.support.places import ROOT

pytestmark = pytest.mark.rare
TABLE = "exports/statistics/table.py"
FUNCTION = """\
def _pooled_agreement(total: Sums) -> FloatArray:
    return (total.ones_agreeing + total.zeros_agreeing) / (total.ones_paired + total.zeros_paired)


"""
ENTRY = '''\
    pooled_agreement: Annotated[float | None, _statistic("pooled_agreement", _pooled_agreement)]
    """Share of agreeing pairs among the pairs of all units."""
'''
WORDS = """
[label.pooled_agreement]
title = "pooled agreement"
formula = "agreeing pairs / pairs"
undefined = "there is no pair"
over = "pairable units"
is_share = true
method = ["Pooled agreement", "The share of agreeing pairs among the pairs of all units."]
shown = [{ places = ["terminal", "page", "card"], head = "pooled", rank = 9, legend = "pooled: over all pairs." }]
"""
VOTES = {"r1": (1, 1, 1), "r2": (1, 0), "r3": (0, 0, 0), "r4": (1, 1, 0)}
"""Ordered pairs that agree: 6 of 6, 0 of 2, 6 of 6, 2 of 6; together 14 of 20."""
NOTEBOOK = """
from exports import measure_agreement
found = measure_agreement("export", resamples=20)
print(found.to_pandas().set_index("label").loc["helpful", "pooled_agreement"], found._repr_html_())
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project with the entry added, and an export with votes on one label."""
    folder = tmp_path_factory.mktemp("project")
    ignored = shutil.ignore_patterns("__pycache__", "data", "node_modules")
    for name in ("pipeline", "annotation", "exports", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    text = (folder / TABLE).read_text(encoding="utf-8")
    for anchor, added in {"class LabelFigures(": FUNCTION, "    mean_pairwise_kappa: ": ENTRY}.items():
        assert text.count(anchor) == 1
        text = text.replace(anchor, added + anchor)
    (folder / TABLE).write_text(text, encoding="utf-8")
    with (folder / TABLE).with_suffix(".toml").open("a", encoding="utf-8") as words:
        words.write(WORDS)
    (folder / "export").mkdir()
    with (folder / "export" / "generation.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS["generation"], restval="")
        writer.writeheader()
        for record, votes in VOTES.items():
            for name, vote in zip(("anna", "ben", "carla"), votes, strict=False):
                row = {"record_uuid": record, "annotator_id": name, "helpful": vote, "task": "generation"}
                writer.writerow(row | {"created_at": "2026-03-02T10:00:00+00:00"})
    return folder


def python(copy: Path, *words: str) -> str:
    env = os.environ | {"PYTHONPATH": str(copy)}
    done = subprocess.run([sys.executable, *words], cwd=copy, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def citejury(copy: Path, *words: str) -> str:
    return python(copy, "-c", "from exports.cli import main; main()", "exports", *words)


def test_agreement_writes_and_prints_it(copy: Path) -> None:
    printed = citejury(copy, "results", "export", "--out", "out", "--resamples", "100")
    out = copy / "out"
    label = json.loads((out / "agreement.json").read_text(encoding="utf-8"))["tasks"]["generation"]["labels"]["helpful"]
    assert label["pooled_agreement"] == pytest.approx(14 / 20)
    assert "pooled_agreement" in {*label["intervals"], *label["refused_intervals"]}
    with (out / "labels.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["label"]: row for row in csv.DictReader(file)}
    assert float(rows["helpful"]["pooled_agreement"]) == pytest.approx(14 / 20)
    assert "pooled_agreement_low" in rows["helpful"]
    assert "pooled_agreement=no_pairable_items" in rows["proper_action"]["undefined"]
    texts = {name: (out / name).read_text(encoding="utf-8") for name in ("agreement.md", "details.html")}
    for text in (printed, *texts.values()):
        assert "pooled" in text
        assert "70 %" in text
    assert "pooled: over all pairs." in texts["agreement.md"]
    assert "The share of agreeing pairs among the pairs of all units." in texts["details.html"]
    schema = json.loads(citejury(copy, "results", "--schema", "agreement"))
    found = schema["$defs"]["LabelAgreement"]["properties"]["pooled_agreement"]
    assert found["description"] == "Share of agreeing pairs among the pairs of all units."


def test_notebook_and_data_card_show_it(copy: Path) -> None:
    shown = python(copy, "-c", NOTEBOOK)
    assert shown.startswith("0.7")
    assert '<bdi dir="auto">pooled</bdi></th>' in shown
    citejury(copy, "dataset", "dataset", "--from", "export")
    card = (copy / "dataset" / "README.md").read_text(encoding="utf-8")
    assert "| pooled |" in card
    assert "| 70 % |" in card


def test_contract_and_readme_say_it(copy: Path) -> None:
    pages = ("exports/contracts/agreement.md", "exports/README.md")
    python(copy, "-m", "cogapp", "-r", "-U", *pages)
    contract, readme = ((copy / page).read_text(encoding="utf-8") for page in pages)
    assert "| pooled agreement | `pooled_agreement` | agreeing pairs / pairs | there is no pair |" in contract
    assert "`pooled_agreement`" in readme

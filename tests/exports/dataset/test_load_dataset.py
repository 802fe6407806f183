"""Every configuration that the data card names, loaded offline by `datasets` itself."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from annotation.argilla.labels import LABELS
from exports.dataset.files import DatasetOptions
from tests.support.dataset_export import jury_export, make, row, write_export
from tests.support.provenance_file import write_provenance

pytest.importorskip("datasets", reason="needs the extra data")

LOAD = """
import datasets, json, sys
folder = sys.argv[1]
found = {}
for name in datasets.get_dataset_config_names(folder):
    loaded = datasets.load_dataset(folder, name)
    assert all(set(rows["split"]) == {split} for split, rows in loaded.items())
    names = loaded["train"].features["labels_yes"].feature.names
    found[name] = [{split: len(rows) for split, rows in loaded.items()}, names]
print(json.dumps(found))
"""


def load(folder: Path, home: Path) -> dict[str, Any]:
    """For each configuration: rows of each split, and the names of the labels that its types hold."""
    home.mkdir()
    offline = {**os.environ, "HF_HUB_OFFLINE": "1", "HOME": str(home), "HF_HOME": str(home / "hf")}
    words = [sys.executable, "-c", LOAD, str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=offline)
    assert done.returncode == 0, done.stderr[-2000:]
    assert {path.name for path in home.iterdir()} <= {"hf"}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_every_configuration_of_the_card_loads_with_its_splits(tmp_path: Path) -> None:
    source = jury_export(tmp_path / "in", 10)
    write_provenance(source, **{f"r{number:04}": {"narrative_id": f"n{number // 2}"} for number in range(20)})
    make(tmp_path / "out", source, DatasetOptions())
    found = load(tmp_path / "out", tmp_path / "home")
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert (list(found), len(found)) == (re.findall("config_name: (.*)", card), 6)
    records = {"train": 16, "validation": 2, "test": 2}
    rows = {"retrieval": 9, "retrieval_consensus": 3, "grounding": 3, "generation": 3}
    assert found == {
        name: [{split: count * rows.get(name, 1) for split, count in records.items()}, list(LABELS[task])]
        for name in found
        for task in [name.removesuffix("_consensus")]
    }


@pytest.mark.rare
def test_a_split_without_rows_is_not_in_the_card(tmp_path: Path) -> None:
    make(tmp_path / "out", write_export(tmp_path / "in", "generation", [row("generation", "r1")]), DatasetOptions())
    only = [{"train": 1}, list(LABELS["generation"])]
    assert load(tmp_path / "out", tmp_path / "home") == {"generation": only, "generation_consensus": only}

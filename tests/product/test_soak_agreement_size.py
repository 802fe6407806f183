import csv
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from annotation.argilla.labels import LABELS
from exports.csv.schema import COLUMNS
from tests.support.peak_memory import needs_proc
from tests.support.places import ROOT

ROWS = 1_000_000
A_UNIT = 3
EVERY_ROW = {
    **{"answer": "An answer.", "context_set": "Some context.", "task": "grounding", "language": "en"},
    "created_at": "2025-03-03T10:00:00+00:00",
}
COMMAND = """
import atexit, sys
from exports.cli import main
from tests.support.peak_memory import peak_bytes
atexit.register(lambda: print(peak_bytes(), file=sys.stderr))
main()
"""


def write_rows(path: Path) -> None:
    """Grounding units, each answered by three of five annotators who say what is true in nine answers of ten."""
    generator = random.Random(0)
    labels = LABELS["grounding"]
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS["grounding"], restval="")
        writer.writeheader()
        for row in range(ROWS):
            if row % A_UNIT == 0:
                truth = [generator.random() < 0.3 for _ in labels]
                raters = generator.sample((("anna", "ben", "carla", "dan", "eva")), A_UNIT)
            unit = {"record_uuid": f"r{row // A_UNIT:07d}", "annotator_id": raters[row % A_UNIT], **EVERY_ROW}
            answers = {label: yes == (generator.random() < 0.9) for label, yes in zip(labels, truth, strict=True)}
            writer.writerow({**unit, **answers})


@needs_proc
@pytest.mark.soak
def test_agreement_on_a_million_rows_fits_into_two_gibibytes(tmp_path: Path) -> None:
    write_rows(tmp_path / "grounding.csv")
    words = ("exports", "results", tmp_path / "grounding.csv", "--resamples", "200", "--out", tmp_path / "a")
    command = [sys.executable, "-c", COMMAND, *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stderr.split()[-1]) < (2 * 2**30)
    figures = json.loads((tmp_path / "a" / "agreement.json").read_bytes())["tasks"]["grounding"]
    assert figures["n_units"] == -(-ROWS // A_UNIT)
    for label in figures["labels"].values():
        # Two answers agree with .9² + .1² = .82, and differ by chance with 2·.34·.66 = .4488: 1 − .18/.4488 = .5989.
        assert label["krippendorff_alpha"] == pytest.approx(0.5989, abs=0.005)
        found = label["intervals"]["krippendorff_alpha"]
        assert found["method"] == "bca"
        assert 0.001 < found["high"] - found["low"] < 0.01

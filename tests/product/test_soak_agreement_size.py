import csv
import json
import random
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from annotation.argilla.labels import LABELS
from exports.csv.schema import COLUMNS
from tests.support.peak_memory import needs_proc
from tests.support.places import ROOT

ROWS = 1_000_000
A_UNIT = 3
COMMAND = """
import atexit, sys
from exports.cli import main
from tests.support.peak_memory import peak_bytes
atexit.register(lambda: print(peak_bytes(), file=sys.stderr))
main()
"""


def write_rows(path: Path, rows: int, a_unit: int, people: Sequence[str]) -> None:
    """Units, each answered by so many of the annotators, who say what is true in nine answers of ten."""
    generator = random.Random(0)
    task = path.stem
    labels = LABELS[task]
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS[task], restval="")
        writer.writeheader()
        for row in range(rows):
            if row % a_unit == 0:
                truth = [generator.random() < 0.3 for _ in labels]
                raters = generator.sample(people, a_unit)
            answers = {label: yes == (generator.random() < 0.9) for label, yes in zip(labels, truth, strict=True)}
            unit = {**dict.fromkeys(COLUMNS[task], "Some text."), "record_uuid": f"r{row // a_unit:07d}", "task": task}
            unit |= {"annotator_id": raters[row % a_unit], "language": "en", "created_at": "2025-03-03T10:00:00+00:00"}
            writer.writerow(unit | answers | {"chunk_id": "c1", "chunk_rank": "1", "notes": ""})


@needs_proc
@pytest.mark.soak
def test_agreement_on_a_million_rows_fits_into_two_gibibytes(tmp_path: Path) -> None:
    write_rows(tmp_path / "grounding.csv", ROWS, A_UNIT, ("anna", "ben", "carla", "dan", "eva"))
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


@needs_proc
@pytest.mark.soak
@pytest.mark.parametrize("votes", [3, 5])
def test_a_crowd_costs_ten_seconds_of_a_processor_and_fifteen_megabytes(tmp_path: Path, votes: int) -> None:
    write_rows(tmp_path / "retrieval.csv", 5_000 * votes, votes, [f"worker{number:03d}" for number in range(200)])
    words = ("exports", "results", tmp_path / "retrieval.csv", "--out", tmp_path / "a")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", COMMAND, *words], capture_output=True, cwd=ROOT, check=True)
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = spent.ru_utime + spent.ru_stime - before.ru_utime - before.ru_stime
    sizes = {each.name: each.stat().st_size / 1e6 for each in (tmp_path / "a").iterdir()}
    json_size, whole = sizes["agreement.json"], sum(sizes.values())
    sys.stdout.write(f"{votes} votes: {used:.1f} s, agreement.json {json_size:.1f} MB, all {whole:.1f} MB\n")
    assert used <= 10
    assert json_size <= 5
    assert whole <= 15

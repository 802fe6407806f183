"""A crowd, whose annotators mostly share no unit: files stay small, and the map shows pairs that can be compared."""

import csv
import json
from collections import Counter
from itertools import combinations
from math import comb
from pathlib import Path

import pytest

from exports.report.files import FigureOptions, agreement_json, measure_and_write
from exports.report.people_page import MOST_ANNOTATORS, most_shared
from tests.support.dataset_export import row, write_export
from tests.support.places import NO_SHARED, SHARED

RATINGS = SHARED / "corpora" / "ratings" / "qags_cnndm.jsonl"
WORKERS, A_UNIT, UNITS = 90, 3, 120


def crowd_export(folder: Path) -> Path:
    """Each unit has three workers in a row, so that most pairs never meet; four of them also do the first units."""
    rows = []
    for unit in range(UNITS):
        team = {f"w{(unit + seat) % WORKERS:02d}" for seat in range(A_UNIT)}
        team |= {"w10", "w30", "w50", "w70"} if unit < 30 else set()
        rows += [row("generation", f"r{unit:03d}", name, helpful=str(unit % 2 == 0)) for name in sorted(team)]
    return write_export(folder, "generation", rows)


def qags_export(folder: Path) -> Path:
    """The sentences of QAGS CNN/DM as passages: what its workers call supported is relevant and sufficient here."""
    rows = []
    for number, line in enumerate(RATINGS.read_text(encoding="utf-8").splitlines()):
        for rank, sentence in enumerate(json.loads(line)["summary_sentences"], start=1):
            for found in sentence["responses"]:
                yes = found["response"] == "yes"
                said = {"topically_relevant": yes, "evidence_sufficient": yes, "misleading": not yes}
                unit = {"chunk_id": f"c{number}-{rank}", "chunk_rank": rank, "chunk": sentence["sentence"]}
                rows.append(row("retrieval", f"r{number}", f"w{found['worker_id']:03d}", **said, **unit))
    return write_export(folder, "retrieval", rows)


def test_the_pairs_that_share_most_units_are_listed_and_the_others_counted(tmp_path: Path) -> None:
    source = crowd_export(tmp_path / "in")
    measured = measure_and_write([source], tmp_path, FigureOptions(resamples=20))
    figures = measured.agreement.tasks["generation"]
    with (source / "generation.csv").open(encoding="utf-8", newline="") as stream:
        teams: dict[str, list[str]] = {}
        for found in csv.DictReader(stream):
            teams.setdefault(found["record_uuid"], []).append(found["annotator_id"])
    shared = Counter(pair for team in teams.values() for pair in combinations(sorted(team), 2))
    most = dict(sorted(shared.items(), key=lambda pair: (-pair[1], pair[0]))[:200])
    for label in figures.labels:
        pairs = {(pair.rater_a, pair.rater_b): pair.n_shared for pair in figures.pairs if pair.label == label}
        assert (pairs, list(pairs)) == (most, sorted(pairs))
    assert figures.labels["helpful"].n_pairs_with_kappa > 200  # its mean counts all pairs
    assert figures.overlap.pairs_apart == comb(WORKERS, 2) - len(shared)
    left_out = len(shared) - 200
    assert left_out == figures.pairs_left_out > 0
    told = json.loads((tmp_path / "agreement.json").read_text(encoding="utf-8"))
    assert told["tasks"]["generation"]["pairs_left_out"] == left_out
    names = most_shared(figures)
    assert len(names) == MOST_ANNOTATORS
    assert {"w10", "w30", "w50", "w70"} <= set(names)
    report = (tmp_path / "details.html").read_text(encoding="utf-8")
    for said in (
        "pairs of annotators share no unit and cannot be compared",
        "empty where there is none or other pairs share more",
        f"Shown are {MOST_ANNOTATORS} who share most units.",
    ):
        assert said in report
    assert measured.remarks[-1] == (
        f"generation: 200 of {len(shared)} pairs of annotators who share a unit are listed, those with most shared "
        f"units; the remaining {left_out} are not shown."
    )


def test_of_twenty_annotators_all_pairs_are_listed_and_nothing_is_said(tmp_path: Path) -> None:
    def pairs_of(workers: int) -> tuple[int, str, list[str]]:
        rows = [row("generation", f"r{unit}", f"w{seat:02d}") for unit in range(3) for seat in range(workers)]
        source = write_export(tmp_path / f"in{workers}", "generation", rows)
        measured = measure_and_write([source], tmp_path / f"out{workers}", FigureOptions(resamples=20))
        listed = {(pair.rater_a, pair.rater_b) for pair in measured.agreement.tasks["generation"].pairs}
        return len(listed), agreement_json(measured.agreement), [each for each in measured.remarks if "pairs" in each]

    listed, text, remarks = pairs_of(20)
    assert (listed, remarks) == (comb(20, 2), [])
    assert "pairs_left_out" not in text
    listed, text, remarks = pairs_of(21)
    assert (listed, len(remarks)) == (200, 1)
    assert '"pairs_left_out": 10' in text


@pytest.mark.rare
@pytest.mark.skipif(not RATINGS.is_file(), reason=NO_SHARED)
def test_the_files_of_a_published_crowd_stay_small(tmp_path: Path) -> None:
    measured = measure_and_write([qags_export(tmp_path / "in")], tmp_path, FigureOptions(resamples=50))
    figures = measured.agreement.tasks["retrieval"]
    assert (len(figures.annotators), len(measured.tables[0].values)) == (162, 2142)
    assert (len(figures.pairs), figures.pairs_left_out) == (3 * 200, 308)
    assert figures.overlap.pairs_apart == comb(162, 2) - 508
    sizes = {name: (tmp_path / name).stat().st_size for name in ("agreement.json", "pairs.csv", "details.html")}
    assert sizes["agreement.json"] < 2_000_000  # 39.5 MB with all pairs
    assert sizes["pairs.csv"] < 300_000
    assert sizes["details.html"] < 600_000

"""The command `exports results`: what it prints, writes, refuses, and its exit codes."""

import csv
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner, Result

from annotation.argilla.labels import LABELS
from exports.cli import main
from exports.csv.schema import COLUMNS
from exports.report.files import DISAGREEMENTS_KEPT, WORK_FOLDER, collect_disagreements
from pipeline.core.files import locked_folder
from tests.support.agreement_data import ratings_of_matrix
from tests.support.places import NO_SHARED, ROOT, SHARED

EXPORT_A = SHARED / "iaa-cases" / "open" / "export_a"
needs_shared = pytest.mark.skipif(not EXPORT_A.is_dir(), reason=NO_SHARED)
WRITTEN = [
    *("agreement.json", "agreement.md", "agreement.tex", "annotators.csv", "conditional.csv", "details.html"),
    *("differences.csv", "disagreements.csv", "findings.csv", "labels.csv", "pairs.csv", "report.html", "report.xlsx"),
    *("results.csv", "results.json", "results.md", "results.tex", "slices.csv", "tasks.csv"),
]
QUICK = ("--resamples", "100")


def write_export(folder: Path, rows: Sequence[Sequence[str]] = ()) -> Path:
    """Forty records, each judged by two of three annotators who mostly agree; `rows` instead, if given."""
    folder.mkdir(exist_ok=True)
    with (folder / "generation.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS["generation"])
        writer.writerows(rows or example_rows())
    return folder


def example_rows() -> list[list[str]]:
    rows = []
    for number in range(40):
        for name in [each for place, each in enumerate(("anna", "ben", "carla")) if place != number % 3]:
            helpful = (number % 2 == 0) != (number % 7 == 0 and name == "ben")
            labels = ["True", "True", str(helpful), str(not helpful), "False"]
            record, moment = f"r{number:02d}", f"2025-03-{1 + number % 20:02d}T10:00:00+00:00"
            rows.append(["a query", "an answer", *labels, "", record, name, "generation", "en", moment])
    return rows


def run(*words: object) -> Result:
    return CliRunner().invoke(main, ["exports", "results", *map(str, words)])


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_it_writes_every_file_prints_a_narrow_table_and_replaces_its_own_files_alone(tmp_path: Path) -> None:
    export, out = write_export(tmp_path / "export"), tmp_path / "out"
    out.mkdir()
    (out / "thesis.tex").write_text("mine", encoding="utf-8")
    for _ in range(2):
        result = run(export, "--out", out, *QUICK)
        assert result.exit_code == 0, result.output
        assert names_in(out) == sorted([*WRITTEN, "thesis.tex"])
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "α is undefined for proper_action" in " ".join(result.stdout.split())
    assert "\x1b" not in result.output
    assert "report.html" in result.stderr
    assert "Next:" in result.stderr
    with (out / "labels.csv").open(encoding="utf-8", newline="") as file:
        labels = {row["label"]: row for row in csv.DictReader(file)}
    assert float(labels["helpful"]["krippendorff_alpha_low"]) < float(labels["helpful"]["krippendorff_alpha"])
    assert labels["proper_action"]["krippendorff_alpha"] == ""


def test_a_table_that_only_an_earlier_version_wrote_is_removed_and_one_of_the_user_stays(tmp_path: Path) -> None:
    export, out = write_export(tmp_path / "export"), tmp_path / "out"
    for command, name, head, words in (
        ("agreement", "changes.csv", "task,kind,label,", QUICK),
        ("results", "overlaps.csv", "by,within,a,b,jaccard,", ()),
    ):
        former = out / name
        for text, stays in ((f"{head}\n", False), ("mine\n", True)):
            out.mkdir(exist_ok=True)
            former.write_text(text, encoding="utf-8")
            result = CliRunner().invoke(main, ["exports", command, str(export), "--out", str(out), *words])
            assert (result.exit_code, former.exists()) == (0, stays), result.output
        assert former.read_text(encoding="utf-8") == text


def test_what_is_not_ours_is_never_overwritten_and_nothing_else_is_written(tmp_path: Path) -> None:
    export, text = write_export(tmp_path / "export"), "label,mine\nhelpful,1\n"
    for name in WRITTEN:
        out = tmp_path / f"with {name}"
        out.mkdir()
        (out / name).write_text(text, encoding="utf-8")
        result = run(export, "--out", out, *QUICK)
        assert (result.exit_code, name in result.stderr, "--out" in result.stderr) == (1, True, True)
        assert (names_in(out), (out / name).read_text(encoding="utf-8")) == ([name], text)
    (tmp_path / "out" / "details.html").mkdir(parents=True)
    assert run(export, "--out", tmp_path / "out", *QUICK).exit_code == 1
    assert names_in(tmp_path / "out") == ["details.html"]
    below_a_file = run(export, "--out", out / name / "out", *QUICK)
    assert (below_a_file.exit_code, len(below_a_file.stderr.splitlines()), "--out" in below_a_file.stderr) == (
        1,
        1,
        True,
    )


@pytest.mark.rare
def test_two_processes_with_other_hash_seeds_write_the_same_bytes(tmp_path: Path) -> None:
    export = write_export(tmp_path / "export")
    for hash_seed in ("1", "2"):
        words = ["exports", "results", str(export), "--out", str(tmp_path / hash_seed), *QUICK]
        subprocess.run(
            [sys.executable, "-c", "from exports.cli import main; main()", *words],
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            cwd=ROOT,
        )
    for name in WRITTEN:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes(), name


def test_bad_options_are_refused_the_gate_names_labels_the_seed_resamples_and_the_schema_holds(tmp_path: Path) -> None:
    export = write_export(tmp_path / "export")
    for words in (
        *("--fail-under -1", "--fail-under 1.01", "--fail-under nan", "--fail-under high"),
        *("--fail-under 0.5 --on upper", "--fail-under 0.5 --fail-label helpfull", "--on point"),
        *("--fail-label helpful", "--resamples 10", "--seed -1"),
    ):
        assert run(export, "--out", tmp_path / "out", *words.split()).exit_code == 2, words
    assert run().exit_code == 2
    result = run("nowhere", "--out", tmp_path / "out")
    assert (result.exit_code, result.stdout, len(result.stderr.splitlines())) == (1, "", 1)
    assert result.stderr.startswith("Error: There is no file or folder")
    assert not (tmp_path / "out").exists()
    export, out = write_export(tmp_path / "export"), tmp_path / "out"
    result = run(export, "--out", out, *QUICK, "--fail-under", "0.95")
    assert (result.exit_code, names_in(out)) == (1, WRITTEN)
    assert "helpful" in result.stdout
    failures = [line for line in result.stderr.splitlines() if line.startswith("Below 0.95")]
    assert [line.split()[3] for line in failures] == [f"{label}:" for label in LABELS["generation"]]
    assert "α is undefined" in failures[0]
    assert "lower end" in failures[2]
    words = (export, "--out", out, *QUICK, "--fail-label", "helpful", "--fail-label", "incomplete")
    for more, code in (
        (("0.5",), 0),
        (("0.8",), 1),
        (("0.8", "--on", "point"), 0),
        (("0.9", "--on", "point"), 1),
    ):
        assert run(*words, "--fail-under", *more).exit_code == code
    export, figures = write_export(tmp_path / "export"), []
    for seed in (0, 1):
        assert run(export, "--out", tmp_path / "out", *QUICK, "--seed", seed).exit_code == 0
        figures.append(json.loads((tmp_path / "out" / "agreement.json").read_bytes()))
    first, other = (found["tasks"]["generation"]["labels"]["helpful"] for found in figures)
    assert first["krippendorff_alpha"] == other["krippendorff_alpha"]
    assert first["standard_error"] != other["standard_error"]
    assert (figures[1]["seed"], figures[1]["resamples"]) == (1, 100)
    schema = json.loads(run("--schema", "agreement").stdout)
    run(write_export(tmp_path / "export"), "--out", tmp_path / "out", *QUICK)
    found = json.loads((tmp_path / "out" / "agreement.json").read_bytes())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(found, schema)
    assert found.pop("version") == 1
    for wrong in ({**found, "version": 2}, found):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)
    for name, model in {**schema["$defs"], "Agreement": schema}.items():
        for field, described in model["properties"].items():
            referred = schema["$defs"].get(described.get("$ref", "").removeprefix("#/$defs/"), {})
            assert "description" in {**referred, **described}, f"{name}.{field}"


def test_hostile_names_reach_the_tables_as_they_are_and_no_terminal(tmp_path: Path) -> None:
    hostile = '=cmd|"/c calc"!A1\x1b[2J<script>'
    rows = [[hostile if cell == "ben" else cell for cell in row] for row in example_rows()]
    export = write_export(tmp_path / "export", rows)
    result = run(export, "--out", tmp_path / "out", *QUICK)
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.output
    safe = run(export, "--out", tmp_path / "safe", *QUICK, "--spreadsheet-safe")
    assert safe.exit_code == 0, safe.output
    for folder in ("out", "safe"):
        with (tmp_path / folder / "annotators.csv").open(encoding="utf-8-sig", newline="") as file:
            assert f"'{hostile}" in {row["rater"] for row in csv.DictReader(file)}


def catches_sigterm(pid: int) -> bool:
    """Whether the process has a handler of its own, so that it has begun to work."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines())
    return bool(int(status["SigCgt"], 16) >> (signal.SIGTERM - 1) & 1)


@pytest.mark.rare
@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="/proc tells which signals a process catches")
@needs_shared
def test_a_signal_leaves_nothing_half_written(tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["exports", "results", str(EXPORT_A), "--out", str(out), "--resamples", "1000000"]
    code = "from exports.cli import main; main()"
    process = subprocess.Popen([sys.executable, "-c", code, *words], stderr=subprocess.PIPE, cwd=ROOT, text=True)
    while not catches_sigterm(process.pid):
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.05)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=2)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "Traceback" not in errors
    assert not out.exists() or names_in(out) == []


def test_what_a_killed_run_left_is_mended_by_the_next_and_two_runs_do_not_mix(tmp_path: Path) -> None:
    export, out = write_export(tmp_path / "export"), tmp_path / "out"
    (out / WORK_FOLDER).mkdir(parents=True)
    (out / WORK_FOLDER / "labels.csv").write_text("half", encoding="utf-8")
    with locked_folder(out / WORK_FOLDER):
        refused = run(export, "--out", out, *QUICK)
    assert (refused.exit_code, names_in(out)) == (1, [WORK_FOLDER])
    assert "Another `exports results` is writing" in refused.stderr
    assert (run(export, "--out", out, *QUICK).exit_code, names_in(out)) == (0, WRITTEN)


@needs_shared
def test_real_files_give_a_table_with_intervals(tmp_path: Path) -> None:
    result = run(EXPORT_A, "--out", tmp_path / "out", *QUICK)
    assert result.exit_code == 0, result.output
    row = next(line for line in result.stdout.splitlines() if line.startswith("topically_relevant")).split()
    assert (row[1], row[2][:2]) == (".74", "[.")
    assert "with 100 resamples and seed 0. The intervals of α are, with the number of labels: BCa bootstrap (" in (
        tmp_path / "out" / "agreement.md"
    ).read_text(encoding="utf-8")


def test_disagreements_beyond_the_limit_are_told_not_dropped_silently(tmp_path: Path) -> None:
    votes = np.tile([[0.0, 1.0]], (DISAGREEMENTS_KEPT + 1, 1))
    kept, remarks = collect_disagreements([ratings_of_matrix(votes)], [write_export(tmp_path / "export")])
    assert (len(kept), len(remarks)) == (DISAGREEMENTS_KEPT, 1)
    assert "more often than 10,000 times; disagreements.csv holds the 10,000 that weigh most" in remarks[0]
    assert collect_disagreements([ratings_of_matrix(votes[1:])], [tmp_path / "export"])[1] == []

"""The command `exports agreement`: what it prints, writes, refuses, and its exit codes."""

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

from exports.cli import main
from exports.csv.schema import COLUMNS
from exports.report.files import DISAGREEMENTS_KEPT, WORK_FOLDER, collect_disagreements
from pipeline.core.files import locked_folder
from tests.support.agreement_data import ratings_of_matrix
from tests.support.places import NO_SHARED, ROOT, SHARED

EXPORT_A = SHARED / "iaa-cases" / "open" / "export_a"
WRITTEN = [
    "agreement.json",
    "agreement.md",
    "agreement.tex",
    "annotators.csv",
    "changes.csv",
    "conditional.csv",
    "disagreements.csv",
    "labels.csv",
    "pairs.csv",
    "report.html",
    "slices.csv",
    "tasks.csv",
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
        for place, name in enumerate(("anna", "ben", "carla")):
            if place == number % 3:
                continue
            slips = number % 7 == 0 and name == "ben"
            helpful = (number % 2 == 0) != slips
            rows.append(response(f"r{number:02d}", name, helpful, f"2025-03-{1 + number % 20:02d}T10:00:00+00:00"))
    return rows


def response(record: str, name: str, helpful: bool, moment: str = "2025-03-01T10:00:00+00:00") -> list[str]:
    labels = ["True", "True", str(helpful), str(not helpful), "False"]
    return ["a query", "an answer", *labels, "", record, name, "generation", "en", moment]


def run(*words: object) -> Result:
    return CliRunner().invoke(main, ["exports", "agreement", *map(str, words)])


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_it_writes_every_file_prints_a_narrow_table_and_replaces_its_own_files(tmp_path: Path) -> None:
    export, out = write_export(tmp_path / "export"), tmp_path / "out"
    for _ in range(2):
        result = run(export, "--out", out, *QUICK)
        assert result.exit_code == 0, result.output
        assert names_in(out) == WRITTEN
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "α is undefined for proper_action" in " ".join(result.stdout.split())
    assert "\x1b" not in result.output
    assert "report.html" in result.stderr
    assert "Next:" in result.stderr
    with (out / "labels.csv").open(encoding="utf-8", newline="") as file:
        labels = {row["label"]: row for row in csv.DictReader(file)}
    assert float(labels["helpful"]["krippendorff_alpha_low"]) < float(labels["helpful"]["krippendorff_alpha"])
    assert labels["proper_action"]["krippendorff_alpha"] == ""


@pytest.mark.parametrize("name", WRITTEN)
def test_a_file_that_is_not_ours_is_never_overwritten_and_nothing_else_is_written(tmp_path: Path, name: str) -> None:
    export, out = write_export(tmp_path / "export"), tmp_path / "out"
    out.mkdir()
    (out / name).write_text("label,mine\nhelpful,1\n", encoding="utf-8")
    result = run(export, "--out", out, *QUICK)
    assert result.exit_code == 1
    assert name in result.stderr
    assert "--out" in result.stderr
    assert names_in(out) == [name]
    assert (out / name).read_text(encoding="utf-8") == "label,mine\nhelpful,1\n"


def test_a_folder_in_the_place_of_a_file_is_refused_too(tmp_path: Path) -> None:
    export, out = write_export(tmp_path / "export"), tmp_path / "out"
    (out / "report.html").mkdir(parents=True)
    result = run(export, "--out", out, *QUICK)
    assert (result.exit_code, names_in(out)) == (1, ["report.html"])


def test_files_of_others_beside_ours_stay(tmp_path: Path) -> None:
    export, out = write_export(tmp_path / "export"), tmp_path / "out"
    out.mkdir()
    (out / "thesis.tex").write_text("mine", encoding="utf-8")
    assert run(export, "--out", out, *QUICK).exit_code == 0
    assert names_in(out) == sorted([*WRITTEN, "thesis.tex"])


def test_a_folder_that_cannot_be_written_is_one_plain_line_and_leaves_nothing(tmp_path: Path) -> None:
    export = write_export(tmp_path / "export")
    (tmp_path / "file").write_text("", encoding="utf-8")
    result = run(export, "--out", tmp_path / "file" / "out", *QUICK)
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1
    assert "--out" in result.stderr


def test_the_json_is_valid_by_the_schema_that_the_command_prints(tmp_path: Path) -> None:
    printed = run("--schema")
    assert printed.exit_code == 0
    schema = json.loads(printed.stdout)
    run(write_export(tmp_path / "export"), "--out", tmp_path / "out", *QUICK)
    found = json.loads((tmp_path / "out" / "agreement.json").read_bytes())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(found, schema)
    assert found["version"] == 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**found, "version": 2}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({name: value for name, value in found.items() if name != "version"}, schema)


def test_every_field_of_the_schema_is_described() -> None:
    schema = json.loads(run("--schema").stdout)
    for name, model in {**schema["$defs"], "Agreement": schema}.items():
        for field, found in model["properties"].items():
            referred = schema["$defs"].get(found.get("$ref", "").removeprefix("#/$defs/"), {})
            assert "description" in {**referred, **found}, f"{name}.{field}"


def test_two_processes_with_other_hash_seeds_write_the_same_bytes(tmp_path: Path) -> None:
    export = write_export(tmp_path / "export")
    for hash_seed in ("1", "2"):
        words = ["exports", "agreement", str(export), "--out", str(tmp_path / hash_seed), *QUICK]
        subprocess.run(
            [sys.executable, "-c", "from exports.cli import main; main()", *words],
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            cwd=ROOT,
        )
    for name in WRITTEN:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes(), name


def test_the_order_of_rows_changes_no_figure_and_the_seed_changes_only_what_is_resampled(tmp_path: Path) -> None:
    rows = example_rows()
    figures = {}
    for name, order, seed in (("a", rows, 0), ("b", rows[::-1], 0), ("c", rows, 1)):
        export, out = write_export(tmp_path / name, order), tmp_path / f"out_{name}"
        assert run(export, "--out", out, *QUICK, "--seed", seed).exit_code == 0
        figures[name] = json.loads((out / "agreement.json").read_bytes())
        del figures[name]["inputs"]
    assert figures["a"] == figures["b"]
    first, other = (figures[name]["tasks"]["generation"]["labels"]["helpful"] for name in ("a", "c"))
    assert first["krippendorff_alpha"] == other["krippendorff_alpha"]
    assert first["standard_error"] != other["standard_error"]
    assert (figures["c"]["seed"], figures["c"]["resamples"]) == (1, 100)


def test_the_gate_fails_after_everything_is_written_and_names_each_label(tmp_path: Path) -> None:
    export, out = write_export(tmp_path / "export"), tmp_path / "out"
    result = run(export, "--out", out, *QUICK, "--fail-under", "0.95")
    assert result.exit_code == 1
    assert names_in(out) == WRITTEN
    assert "helpful" in result.stdout
    failures = [line for line in result.stderr.splitlines() if line.startswith("Below 0.95")]
    assert [line.split()[3] for line in failures] == [
        "proper_action:",
        "response_on_topic:",
        "helpful:",
        "incomplete:",
        "unsafe_content:",
    ]
    assert "α is undefined" in failures[0]
    assert "lower end" in failures[2]


def test_the_gate_passes_for_the_labels_that_it_is_asked_about(tmp_path: Path) -> None:
    export, out = write_export(tmp_path / "export"), tmp_path / "out"
    words = (export, "--out", out, *QUICK, "--fail-label", "helpful", "--fail-label", "incomplete")
    assert run(*words, "--fail-under", "0.5").exit_code == 0
    assert run(*words, "--fail-under", "0.8").exit_code == 1
    assert run(*words, "--fail-under", "0.8", "--on", "point").exit_code == 0
    assert run(*words, "--fail-under", "0.9", "--on", "point").exit_code == 1


@pytest.mark.parametrize(
    "words",
    [
        ("--fail-under", "-1"),
        ("--fail-under", "1.01"),
        ("--fail-under", "nan"),
        ("--fail-under", "high"),
        ("--fail-under", "0.5", "--on", "upper"),
        ("--fail-under", "0.5", "--fail-label", "helpfull"),
        ("--on", "point"),
        ("--fail-label", "helpful"),
        ("--resamples", "10"),
        ("--seed", "-1"),
    ],
    ids=" ".join,
)
def test_options_that_make_no_sense_are_usage_errors(tmp_path: Path, words: tuple[str, ...]) -> None:
    result = run(write_export(tmp_path / "export"), "--out", tmp_path / "out", *words)
    assert result.exit_code == 2
    assert not (tmp_path / "out").exists()


def test_no_path_is_a_usage_error_and_a_wrong_one_is_our_error() -> None:
    assert run().exit_code == 2
    result = run("nowhere")
    assert (result.exit_code, len(result.stderr.splitlines())) == (1, 1)


def test_hostile_names_reach_the_tables_as_they_are_and_no_terminal(tmp_path: Path) -> None:
    hostile = '=cmd|"/c calc"!A1\x1b[2J<script>'
    rows = [[hostile if cell == "ben" else cell for cell in row] for row in example_rows()]
    export = write_export(tmp_path / "export", rows)
    result = run(export, "--out", tmp_path / "out", *QUICK)
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.output
    safe = run(export, "--out", tmp_path / "safe", *QUICK, "--spreadsheet-safe")
    assert safe.exit_code == 0, safe.output
    for folder, name in (("out", hostile), ("safe", f"'{hostile}")):
        with (tmp_path / folder / "annotators.csv").open(encoding="utf-8-sig", newline="") as file:
            assert name in {row["rater"] for row in csv.DictReader(file)}


def catches_sigterm(pid: int) -> bool:
    """Whether the process has a handler of its own, so that it has begun to work."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines())
    return bool(int(status["SigCgt"], 16) >> (signal.SIGTERM - 1) & 1)


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="/proc tells which signals a process catches")
def test_a_signal_leaves_nothing_half_written(tmp_path: Path) -> None:
    if not EXPORT_A.is_dir():
        pytest.skip(NO_SHARED)
    out = tmp_path / "out"
    words = ["exports", "agreement", str(EXPORT_A), "--out", str(out), "--resamples", "1000000"]
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
    assert "Another `exports agreement` is writing" in refused.stderr
    assert run(export, "--out", out, *QUICK).exit_code == 0
    assert names_in(out) == WRITTEN


def test_real_files_give_a_table_with_intervals(tmp_path: Path) -> None:
    if not EXPORT_A.is_dir():
        pytest.skip(NO_SHARED)
    result = run(EXPORT_A, "--out", tmp_path / "out", *QUICK)
    assert result.exit_code == 0, result.output
    row = next(line for line in result.stdout.splitlines() if line.startswith("topically_relevant"))
    assert row.split()[1] == ".74"
    assert row.split()[2].startswith("[.")
    assert "(Krippendorff, nominal; 95 % BCa bootstrap over 43 records / 169 passages, B = 100" in " ".join(
        (tmp_path / "out" / "agreement.tex").read_text(encoding="utf-8").replace(r"\%", "%").split()
    )


def test_disagreements_beyond_the_limit_are_told_not_dropped_silently(tmp_path: Path) -> None:
    votes = np.tile([[0.0, 1.0]], (DISAGREEMENTS_KEPT + 1, 1))
    kept, remarks = collect_disagreements([ratings_of_matrix(votes)], [write_export(tmp_path / "export")])
    assert len(kept) == DISAGREEMENTS_KEPT
    assert len(remarks) == 1
    assert "more often than 10,000 times; disagreements.csv holds the 10,000 that weigh most" in remarks[0]
    assert collect_disagreements([ratings_of_matrix(votes[1:])], [tmp_path / "export"])[1] == []

"""`citejury exports results`: what it prints, what it writes, and what it refuses."""

import csv
import json
from pathlib import Path

import jsonschema
import openpyxl
import pytest
from click.testing import CliRunner, Result

from annotation.argilla.labels import TASKS
from exports.cli import main
from exports.reading.runs import read_runs
from exports.report.files import FigureOptions, measure_and_write, results_json
from exports.statistics.results_schema import Results
from tests.support import told_runs
from tests.support.export_folders import AT, Answer, campaign, write_export, write_rows

FILES = {
    "differences.csv",
    "findings.csv",
    "results.csv",
    "results.json",
    "results.md",
    "results.tex",
    "details.html",
    "report.html",
    "agreement.json",
}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, ["exports", "results", *map(str, words)])


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream))


def test_it_prints_findings_then_what_differs_then_agreement_and_of_one_narrative_no_intervals(tmp_path: Path) -> None:
    printed = run(write_export(tmp_path / "export", campaign(narratives=24)))
    assert printed.exit_code == 0, printed.output
    parts = ("in 72 answers of 3 models to 24 narratives", "Serious problem", "apart", "support_present", "helpful")
    places = [printed.stdout.index(text) for text in parts]
    assert places == sorted(places)
    assert max(map(len, printed.stdout.splitlines())) <= 80
    assert "perplexity 67 %, claude 0 %: 67 points apart" in printed.stdout
    assert "--out results" in printed.stderr
    printed = run(write_export(tmp_path / "export", campaign(narratives=1)))
    said = " ".join(printed.stdout.split())
    assert "claude cannot be compared with gemini and perplexity on any label" in said


def test_it_writes_the_same_files_twice_beside_those_of_agreement_and_refuses_plainly(tmp_path: Path) -> None:
    export = write_export(tmp_path / "export", campaign())
    assert run(export, "--out", "out").exit_code == 0
    first = {path.name: path.read_bytes() for path in Path("out").iterdir()}
    assert (FILES - first.keys(), run(export, "--out", "out").exit_code) == (set(), 0)
    assert {path.name: path.read_bytes() for path in Path("out").iterdir()} == first
    found = Results.model_validate_json(first["results.json"])
    assert results_json(found).encode() == first["results.json"]
    finding = found.findings["serious_problem"]
    assert finding.rate == pytest.approx(8 / 36)
    assert [group.by["model_name"] for group in finding.groups] == ["claude", "gemini", "perplexity"]
    old = CliRunner().invoke(main, ["exports", "agreement", str(export), "--out", "out"])
    assert (old.exit_code, "`exports agreement` is `exports results` now." in old.stderr) == (0, True)
    empty = write_export(tmp_path / "empty", [Answer("a")])
    unknown = "No record has a column `arm` to group by. There are `model_name`, `language`, `narrative_id`"
    for words, code, said in (
        ((export, "--by", "model_name,arm"), 1, unknown),
        ((export, "--by", "model_name,"), 2, ""),
        ((export, "--consensus", "adjudicated"), 2, ""),
        ((export, "--records", "records.jsonl"), 2, ""),
        ((empty,), 1, "There is no submitted response in"),
        ((tmp_path / "nowhere",), 1, "There is no file or folder"),
    ):
        refused = run(*words)
        assert (refused.exit_code, said in refused.output) == (code, True), refused.output


def test_results_json_fits_the_printed_schema_which_has_every_field_as_required(tmp_path: Path) -> None:
    schema = json.loads(run("--schema", "results").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert set(schema["required"]) == set(Results.model_fields) - {"annotators"}
    assert set(schema["$defs"]["GroupRate"]["required"]) >= {"by", "rate", "n_units", "denominators"}
    told_runs.write_run(tmp_path)
    answers = [Answer(record, yes={"anna": ()}) for record in read_runs([tmp_path / "run"]).answers.record_uuids]
    run(write_export(tmp_path / "export", answers, TASKS), "--runs", "run", "--out", "out")
    found = json.loads(Path("out/results.json").read_text(encoding="utf-8"))
    jsonschema.validate(found, schema)
    assert found["landscape"]
    assert found["passages"]


def test_the_tidy_table_has_a_row_for_each_label_and_group_also_for_crossed_ones(tmp_path: Path) -> None:
    answers = [
        answer._replace(record=f"{answer.record}-{language}", language=language)
        for answer in campaign(("claude", "gemini"))
        for language in ("de", "en")
    ]
    printed = run(write_export(tmp_path / "export", answers), "--out", "out", "--by", "model_name,language")
    assert printed.exit_code == 0, printed.output
    rows = [row for row in table(Path("out/results.csv")) if row["label"] == "helpful"]
    assert [(row["by"], row["by_model_name"], row["by_language"], row["n_units"]) for row in rows] == [
        ("", "", "", "48"),
        ("model_name", "claude", "", "24"),
        ("model_name", "gemini", "", "24"),
        ("language", "", "de", "24"),
        ("language", "", "en", "24"),
        ("model_name,language", "claude", "de", "12"),
        ("model_name,language", "claude", "en", "12"),
        ("model_name,language", "gemini", "de", "12"),
        ("model_name,language", "gemini", "en", "12"),
    ]
    crossed = [row for row in table(Path("out/differences.csv")) if row["label"] == "helpful" and row["within"]]
    assert {row["within"] for row in crossed} == {
        *('{"language": "de"}', '{"language": "en"}'),
        *('{"model_name": "claude"}', '{"model_name": "gemini"}'),
    }


def test_agreement_measures_what_the_jury_found_and_findings_are_those_of_citejury_toml(tmp_path: Path) -> None:
    export = write_export(tmp_path / "export", campaign())
    options = FigureOptions(resamples=100)
    measured = measure_and_write([export], tmp_path / "one", options)
    assert measured.results.findings["serious_problem"].rate == pytest.approx(8 / 36)
    Path("citejury.toml").write_text('[findings.wild]\ntitle = "Wild"\nany = ["no label"]\n', encoding="utf-8")
    assert "`[findings.wild]`" in run(export, "--out", "two").stderr
    finding = '[findings.cited]\ntitle = "Without source"\nany = ["not source_cited"]\n'
    Path("citejury.toml").write_text(finding, encoding="utf-8")
    assert "Without source" in run(export, "--out", "out").stdout
    assert [row["finding"] for row in table(Path("out/findings.csv"))] == ["cited"]
    Path("citejury.toml").write_text(finding.replace("not source_cited", "hallucinated"), encoding="utf-8")
    refused = run(export, "--out", "wrong")
    assert (refused.exit_code, Path("wrong").exists()) == (1, False)
    assert "`[findings.cited]` in `citejury.toml`: `any` has 'hallucinated', which is no label" in refused.output
    assert "unsafe_content" in refused.output


def test_a_nul_is_replaced_and_counted_and_what_comes_next_fits_what_was_judged(tmp_path: Path) -> None:
    export = write_export(tmp_path / "export", campaign(), tasks=("generation",))
    file = export / "generation.csv"
    file.write_text(file.read_text(encoding="utf-8").replace("Is statement 1", "\0s statement 1"), encoding="utf-8")
    printed = run(export, "--out", "out")
    assert printed.output.count("generation.csv: U+FFFD stands for 18 NUL characters") == 1
    assert "\0" not in Path("out/disagreements.csv").read_text(encoding="utf-8")
    assert "talk over the labels" in printed.stderr
    alone = [answer._replace(yes={"anna": answer.yes["anna"]}) for answer in campaign()]
    printed = run(write_export(tmp_path / "alone", alone), "--out", "alone-out")
    assert "Next: give some units to two people" in printed.stderr
    assert "talk over" not in printed.stderr


def test_without_provenance_or_with_one_provider_rates_are_told_and_nothing_is_compared(tmp_path: Path) -> None:
    unknown = run(write_export(tmp_path / "unknown", campaign(), provenance=False))
    one = run(write_export(tmp_path / "one", campaign(("claude",))))
    assert "Cannot be told: no two groups could be compared." in unknown.stdout
    assert "There is nothing to compare: all of it is claude." in one.stdout
    assert "Serious problem                        22 %" in unknown.stdout
    assert "(not known)" not in unknown.stdout
    assert "Which model answered is known of no record. Export again" in " ".join(unknown.stdout.split())


def test_adjudicators_decide_and_a_hostile_model_name_steers_neither_spreadsheet_nor_terminal(tmp_path: Path) -> None:
    answers = [answer._replace(yes={"anna": ("helpful",), "ben": ()}) for answer in campaign(("claude",), 2)]
    export = write_export(tmp_path / "export", answers, tasks=("generation",))
    row = {"task": "generation", "record_uuid": "r-claude-00", "chunk_id": "", "label": "helpful", "decision": "True"}
    write_rows(tmp_path / "decisions.csv", [row | {"adjudicator": "dora", "created_at": AT}])
    decided = ("--consensus", "adjudicated", "--decisions", "decisions.csv")
    for options, expected in ((decided, ("1.0", "1", "1")), ((), ("0.5", "2", "0"))):
        assert run(export, *options, "--out", "out").exit_code == 0
        helpful = next(row for row in table(Path("out/results.csv")) if row["label"] == "helpful")
        assert (helpful["rate"], helpful["n_units"], helpful["n_undecided"]) == expected
    export = write_export(tmp_path / "export", campaign(("=1+1\x1b[31m\u202e", "gemini")))
    Path("out/results.xlsx").write_bytes(b"PK somebody's own")
    refused = run(export, "--out", "out", "--spreadsheet-safe", "--excel")
    assert "`out/results.xlsx` is not a file of `exports results`" in refused.output
    Path("out/results.xlsx").unlink()
    printed = run(export, "--out", "out", "--spreadsheet-safe", "--excel")
    assert printed.exit_code == 0, printed.output
    assert not {"\x1b", "\u202e"} & {*printed.output}
    assert any(row["by_model_name"].startswith("'=1+1") for row in table(Path("out/results.csv")))
    book = openpyxl.load_workbook("out/results.xlsx")
    assert book["interim"]["A1"].value.startswith("Not known whether all was done")
    assert {f"{sheet.title}.csv" for sheet in book} - {"interim.csv"} == {
        path.name for path in Path("out").glob("*.csv")
    }
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row]
    assert "f" not in {cell.data_type for cell in cells}
    assert "=1+1�[31m�" in {cell.value for cell in cells}
    assert run(export, "--out", "out").exit_code == 0
    assert not Path("out/results.xlsx").exists()

"""`citejury exports results`: what it prints, what it writes, and what it refuses."""

import csv
import json
import re
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result

from annotation.argilla.labels import TASKS
from exports.cli import main
from exports.reading.runs import read_runs
from exports.report.files import AgreementOptions, measure_and_write, results_json
from exports.statistics.results_schema import Results
from pipeline.core.terminal import counted
from tests.support import told_runs
from tests.support.export_folders import AT, Answer, campaign, write_export, write_rows

FILES = ["differences.csv", "findings.csv", "results.csv", "results.json", "results.md", "results.tex"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, ["exports", "results", *map(str, words)])


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream))


def test_it_prints_composite_findings_then_rates_then_what_differs(tmp_path: Path) -> None:
    printed = run(write_export(tmp_path / "export", campaign(narratives=24)))
    assert printed.exit_code == 0, printed.output
    places = [
        printed.stdout.index(text)
        for text in (
            "about 72 answers to 24 narratives",
            "Serious problem",
            "support_present",
            "helpful",
            "What differs",
        )
    ]
    assert places == sorted(places)
    assert max(map(len, printed.stdout.splitlines())) <= 80
    assert "perplexity 67 %, claude 0 %: 67 points apart" in printed.stdout
    assert "--out results" in printed.stderr


def test_it_writes_every_file_and_the_same_bytes_twice(tmp_path: Path) -> None:
    export = write_export(tmp_path / "export", campaign())
    assert run(export, "--out", "out").exit_code == 0
    first = {path.name: path.read_bytes() for path in Path("out").iterdir()}
    assert sorted(first) == FILES
    assert run(export, "--out", "out").exit_code == 0
    assert {path.name: path.read_bytes() for path in Path("out").iterdir()} == first
    found = Results.model_validate_json(first["results.json"])
    assert results_json(found).encode() == first["results.json"]
    assert found.findings["serious_problem"].rate == pytest.approx(8 / 36)
    assert [group.by["model_name"] for group in found.findings["serious_problem"].groups] == [
        "claude",
        "gemini",
        "perplexity",
    ]


def test_results_json_has_the_names_of_the_contract(tmp_path: Path) -> None:
    run(write_export(tmp_path / "export", campaign()), "--out", "out")
    label = json.loads(Path("out/results.json").read_text(encoding="utf-8"))["tasks"]["grounding"]["labels"][
        "contradicted_claim_present"
    ]
    assert {"rate", "interval", "n_units", "n_narratives", "groups", "differences"} <= label.keys()
    assert {"by", "rate", "interval", "n_units", "n_narratives"} <= label["groups"][0].keys()
    assert {"low", "high"} <= label["interval"].keys()
    assert {"by", "a", "b", "n_narratives", "difference", "interval", "p", "p_holm"} <= label["differences"][0].keys()


def test_results_json_fits_the_printed_schema_which_has_every_field_as_required(tmp_path: Path) -> None:
    schema = json.loads(run("--schema").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert set(schema["required"]) == set(Results.model_fields)
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


def test_nobody_elses_file_is_overwritten(tmp_path: Path) -> None:
    export = write_export(tmp_path / "export", campaign())
    Path("out").mkdir()
    Path("out/results.md").write_text("my notes", encoding="utf-8")
    refused = run(export, "--out", "out")
    assert (refused.exit_code, Path("out/results.md").read_text(encoding="utf-8")) == (1, "my notes")
    assert "is not a file of `exports results`" in refused.output
    assert [path.name for path in Path("out").iterdir()] == ["results.md"]


def test_results_and_agreement_may_share_a_folder(tmp_path: Path) -> None:
    export = write_export(tmp_path / "export", campaign())
    assert run(export, "--out", "out").exit_code == 0
    agreed = CliRunner().invoke(main, ["exports", "agreement", str(export), "--out", "out", "--resamples", "100"])
    assert agreed.exit_code == 0, agreed.output
    assert set(FILES) < {path.name for path in Path("out").iterdir()}


def test_agreement_measures_what_the_jury_found_and_goes_on_without_it(tmp_path: Path) -> None:
    export = write_export(tmp_path / "export", campaign())
    options = AgreementOptions(resamples=100)
    measured = measure_and_write([export], tmp_path / "one", options)
    assert measured.results is not None
    assert measured.results.findings["serious_problem"].rate == pytest.approx(8 / 36)
    Path("citejury.toml").write_text('[findings.wild]\ntitle = "Wild"\nany = ["no label"]\n', encoding="utf-8")
    without = measure_and_write([export], tmp_path / "two", options)
    assert without.results is None
    assert any("What the jury found cannot be told. `[findings.wild]`" in remark for remark in without.remarks)


def test_findings_of_citejury_toml_are_measured_instead(tmp_path: Path) -> None:
    Path("citejury.toml").write_text(
        '[findings.cited]\ntitle = "Without source"\nany = ["not source_cited"]\n', encoding="utf-8"
    )
    printed = run(write_export(tmp_path / "export", campaign()), "--out", "out")
    assert "Without source" in printed.stdout
    assert [row["finding"] for row in table(Path("out/findings.csv"))] == ["cited"]


def test_a_composite_of_an_unknown_label_is_a_plain_error_with_the_labels(tmp_path: Path) -> None:
    Path("citejury.toml").write_text('[findings.wild]\ntitle = "Wild"\nany = ["hallucinated"]\n', encoding="utf-8")
    refused = run(write_export(tmp_path / "export", campaign()), "--out", "out")
    assert refused.exit_code == 1
    assert "`[findings.wild]` in `citejury.toml`: `any` has 'hallucinated', which is no label" in refused.output
    assert "unsafe_content" in refused.output
    assert not Path("out").exists()


def test_an_unknown_column_is_a_plain_error_with_those_that_are_there(tmp_path: Path) -> None:
    refused = run(write_export(tmp_path / "export", campaign()), "--by", "model_name,arm")
    assert refused.exit_code == 1
    assert "No record has a column `arm` to group by. There are `model_name`, `language`, `narrative_id`" in (
        refused.output
    )
    assert run("export", "--by", "model_name,").exit_code == 2


def test_without_provenance_rates_are_told_and_nothing_is_compared(tmp_path: Path) -> None:
    printed = run(write_export(tmp_path / "export", campaign(), provenance=False))
    assert printed.exit_code == 0, printed.output
    assert "Serious problem                        22 %" in printed.stdout
    assert "(not known)" not in printed.stdout
    assert "Cannot be told: no two groups could be compared." in printed.stdout
    assert "Which model answered is known of no record. Export again" in " ".join(printed.stdout.split())


def test_one_provider_has_rates_and_no_comparison(tmp_path: Path) -> None:
    printed = run(write_export(tmp_path / "export", campaign(("claude",))))
    assert printed.exit_code == 0, printed.output
    assert "Cannot be told: no two groups could be compared." in printed.stdout


def test_one_narrative_has_rates_without_intervals_and_says_why(tmp_path: Path) -> None:
    printed = run(write_export(tmp_path / "export", campaign(narratives=1)), "--out", "out")
    assert printed.exit_code == 0, printed.output
    said = " ".join(printed.stdout.split())
    assert "a rate without interval for any label: all of it is on one narrative" in said
    assert "claude cannot be compared with gemini and perplexity on any label" in said
    assert "gemini and perplexity cannot be compared on any label" in said
    rows = table(Path("out/results.csv"))
    assert {(row["interval_low"], row["undefined"]) for row in rows} == {("", "one_narrative")}
    assert all(row["n_units"] for row in rows)


def test_a_group_without_votes_on_a_task_has_no_figure_and_a_reason(tmp_path: Path) -> None:
    answers = campaign()
    folder = write_export(tmp_path / "export", answers)
    seen = [answer for answer in answers if answer.model != "gemini"]
    write_export(tmp_path / "export", seen, tasks=("generation",), provenance=False)
    printed = run(folder, "--out", "out")
    said = " ".join(printed.stdout.split())
    assert re.search("gemini: no rate for Serious problem, .*, so it cannot be compared there: the jury judged", said)
    assert f"Left out, since the jury has not judged every part: {counted(12, 'answer')}" in said
    row = next(
        row for row in table(Path("out/results.csv")) if (row["label"], row["by_model_name"]) == ("helpful", "gemini")
    )
    assert (row["rate"], row["undefined"], row["n_units"]) == ("", "no_units", "0")


def test_weights_for_unknown_records_are_counted_and_missing_ones_refused(tmp_path: Path) -> None:
    answers = campaign(narratives=3)
    export = write_export(tmp_path / "export", answers)
    rows = [{"record_uuid": answer.record, "inclusion_probability": "0.5"} for answer in answers]
    write_rows(tmp_path / "sample.csv", [*rows, {"record_uuid": "elsewhere", "inclusion_probability": "0.5"}])
    printed = run(export, "--weights", "sample.csv", "--out", "out")
    assert printed.exit_code == 0, printed.output
    assert "`sample.csv` has 1 record without votes" in printed.stdout
    assert "weighted by inclusion probability" in " ".join(printed.stdout.split())
    assert json.loads(Path("out/results.json").read_text(encoding="utf-8"))["weighted"] is True
    write_rows(tmp_path / "sample.csv", rows[1:])
    refused = run(export, "--weights", "sample.csv")
    assert refused.exit_code == 1
    assert "no probability for 1 record of 9" in refused.output


def test_two_campaigns_whose_ids_mean_different_queries_are_not_paired(tmp_path: Path) -> None:
    first = write_export(tmp_path / "spring", campaign(("claude",)))
    other = [answer._replace(query=f"Else: {answer.query}") for answer in campaign(("gemini",), prefix="s")]
    printed = run(first, write_export(tmp_path / "autumn", other))
    assert printed.exit_code == 0, printed.output
    said = " ".join(printed.stdout.split())
    assert "Narrative ids that mean different queries in `autumn` and `spring`: 12" in said
    assert "claude and gemini cannot be compared on any label: they have no narrative in common" in said


def test_adjudicated_results_need_decisions_and_decisions_need_adjudicated(tmp_path: Path) -> None:
    export = write_export(tmp_path / "export", campaign())
    assert run(export, "--consensus", "adjudicated").exit_code == 2
    assert run(export, "--decisions", "decisions.csv").exit_code == 2


def test_adjudicators_decide_where_annotators_differ(tmp_path: Path) -> None:
    answers = [answer._replace(yes={"anna": ("helpful",), "ben": ()}) for answer in campaign(("claude",), 2)]
    export = write_export(tmp_path / "export", answers, tasks=("generation",))
    row = {"task": "generation", "record_uuid": "r-claude-00", "chunk_id": "", "label": "helpful", "decision": "True"}
    write_rows(tmp_path / "decisions.csv", [row | {"adjudicator": "dora", "created_at": AT}])
    options = ("--consensus", "adjudicated", "--decisions", "decisions.csv", "--out", "out")
    assert run(export, *options).exit_code == 0
    helpful = next(row for row in table(Path("out/results.csv")) if row["label"] == "helpful")
    assert (helpful["rate"], helpful["n_units"], helpful["n_undecided"]) == ("1.0", "1", "1")
    assert run(export, "--out", "out").exit_code == 0
    helpful = next(row for row in table(Path("out/results.csv")) if row["label"] == "helpful")
    assert (helpful["rate"], helpful["n_units"], helpful["n_undecided"]) == ("0.5", "2", "0")


def test_runs_tell_who_answered_and_what_became_of_the_questions(tmp_path: Path) -> None:
    told_runs.write_run(tmp_path)
    answers = [Answer(record, yes={"anna": ()}) for record in read_runs([tmp_path / "run"]).answers.record_uuids]
    export = write_export(tmp_path / "export", answers, tasks=("generation",), provenance=False)
    printed = run(export, "--runs", "run", "--out", "out")
    assert printed.exit_code == 0, printed.output
    rows = [row for row in table(Path("out/results.csv")) if row["label"] == "helpful"]
    counted_by = ("by_model_name", "asked", "answered", "refused", "failed", "answers")
    assert [tuple(row[name] for name in counted_by) for row in rows] == [
        ("", "12", "6", "3", "3", "6"),
        ("gemini", "4", "2", "1", "1", "2"),
        ("grok", "4", "1", "1", "2", "1"),
        ("openai", "4", "3", "1", "0", "3"),
    ]
    assert "12 questions asked: 6 answered, 3 refused, 3 failed; 6 answers before the jury" in (
        " ".join(printed.stdout.split())
    )
    assert "known of no record" not in printed.stdout


def test_a_hostile_model_name_cannot_steer_any_output(tmp_path: Path) -> None:
    hostile = "=1+1|<img src=x>\x1b[31m\u202e$x$ \\input{/etc/passwd} `code`"
    answers = [answer._replace(model=hostile if answer.model == "claude" else answer.model) for answer in campaign()]
    printed = run(write_export(tmp_path / "export", answers), "--out", "out", "--spreadsheet-safe")
    assert printed.exit_code == 0, printed.output
    assert "\x1b" not in printed.output
    assert "\u202e" not in printed.output
    markdown, latex = (
        Path("out/results.md").read_text(encoding="utf-8"),
        Path("out/results.tex").read_text(encoding="utf-8"),
    )
    assert "<img" not in markdown
    assert r"\input" not in latex
    assert any(row["by_model_name"].startswith("'=1+1") for row in table(Path("out/results.csv")))


def test_without_a_response_or_an_export_it_says_so_plainly(tmp_path: Path) -> None:
    empty = run(write_export(tmp_path / "export", [Answer("a")]))
    assert (empty.exit_code, "There is no submitted response in" in empty.output) == (1, True)
    missing = run(tmp_path / "nowhere")
    assert (missing.exit_code, "There is no file or folder" in missing.output) == (1, True)

"""`exports results --runs`: what was asked, what is cited and what is said of narratives, beside the jury's votes."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from exports.cli import main
from pipeline.records.run import read_records, write_records
from tests.support.export_folders import Answer, write_export, write_rows
from tests.support.told_runs import PAYLOADS, kill_run, write_run


@pytest.fixture(autouse=True)
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of three providers and an export whose jury saw all of its answers."""
    monkeypatch.chdir(tmp_path)
    write_run(Path())
    answers = [
        Answer(
            record.record_uuid,
            record.provenance.model_name,
            record.provenance.narrative_id,
            record.query,
            {"anna": ["helpful"], "ben": ["helpful"]},
        )
        for record in read_records(Path("run"))
        if record.answer
    ]
    write_export(Path("export"), answers)


def run(*more: str) -> Result:
    return CliRunner().invoke(main, ["exports", "results", "export", *more])


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def told(result: Result) -> str:
    return " ".join(result.output.split())


def results() -> Any:
    return json.loads(Path("out/results.json").read_text(encoding="utf-8"))


def test_runs_give_denominators_landscape_and_a_remark_on_dropped_words_also_with_records_beside_them() -> None:
    gone = {"state": "gone"}
    records = [
        record.model_copy(update={"sources": tuple(source.model_copy(update=gone) for source in record.sources)})
        for record in read_records(Path("run"))
    ]
    write_records(Path("records.jsonl"), records)
    done = run("--runs", "run", "--runs", "records.jsonl", "--out", "out")
    assert done.exit_code == 0, done.output
    assert results()["landscape"]["states"]["gone"]["rate"] == 1
    Path("citejury.toml").write_text('[verdicts.en]\naffirms = ["yes"]\nrejects = ["no"]\n', encoding="utf-8")
    done = run("--runs", "run", "--out", "out")
    assert done.exit_code == 0, done.output
    assert max(map(len, done.stdout.splitlines())) <= 80
    found = results()
    helpful = found["tasks"]["generation"]["labels"]["helpful"]
    names = ("asked", "answered", "refused", "failed")
    by_model = {group["by"]["model_name"]: group["denominators"] for group in helpful["groups"]}
    counts = {"gemini": (4, 2, 1, 1), "grok": (4, 1, 1, 2), "openai": (4, 3, 1, 0)}
    assert {model: tuple(each[name] for name in names) for model, each in by_model.items()} == counts
    assert (helpful["denominators"]["without_citations"], helpful["denominators"]["asked"]) == (2, 12)
    assert found["narrative_verdicts"] is None
    assert "`[verdicts]` in `citejury.toml` is not read any more" in told(done)
    assert "12 questions asked: 6 answered, 3 refused, 3 failed" in Path("out/results.md").read_text(encoding="utf-8")
    assert {"openai.csv", "errors.jsonl", "generation.csv"} <= {file["file"] for file in found["inputs"]}
    with Path("out/results.csv").open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["label"] == "helpful"]
    assert [(row["by_model_name"], *(int(row[name]) for name in names)) for row in rows] == [
        ("", 12, 6, 3, 3),
        *((model, *numbers) for model, numbers in counts.items()),
    ]
    Path("citejury.toml").unlink()
    Path("export/provenance.csv").unlink()
    without = run("--runs", "run")
    assert without.exit_code == 0, without.output
    assert "not read any more" not in told(without)
    assert "known of no record" not in without.stdout


def test_an_export_tells_what_was_asked_refused_and_failed_without_the_run_folder() -> None:
    assert run("--runs", "run", "--out", "out").exit_code == 0
    wanted = results()["runs"]
    assert {each["model_name"]: (each["asked"], each["refused"], each["failed"]) for each in wanted} == {
        "gemini": (4, 1, 1),
        "grok": (4, 1, 2),
        "openai": (4, 1, 0),
    }
    rows = read_rows(Path("export/provenance.csv"))
    asked = {record.record_uuid: record.asked for record in read_records(Path("run"))}
    # One record came in when less had been asked.
    earlier = [{"run_asked": '{"openai": [1, 0, 0]}'}, *[{}] * (len(rows) - 1)]
    known = [row | {"run_asked": asked[row["record_uuid"]]} | more for row, more in zip(rows, earlier, strict=True)]
    write_rows(Path("export/provenance.csv"), known)
    assert run("--out", "out").exit_code == 0
    assert results()["runs"] == wanted
    assert "refused" in Path("out/results.md").read_text(encoding="utf-8")
    write_rows(Path("export/provenance.csv"), [known[0] | {"run_asked": ""}, *known[1:]])
    assert run("--out", "out").exit_code == 0
    assert results()["runs"] == []


def test_bad_input_is_a_plain_line(tmp_path: Path) -> None:
    shutil.copytree("run", "killed")
    kill_run(Path("killed"))
    write_run(Path(), {"openai": PAYLOADS["openai"]}, name="other")
    done = run("--runs", "killed", "--runs", "other", "--runs", "killed")
    assert done.exit_code == 0, done.output
    assert "`killed` did not come to its end" in told(done)
    assert "`other` has nothing to do with this export: none of its 4 answers" in told(done)
    assert "Runs that are named more than once: 1; each counts once." in told(done)
    for wrong in ("export", "missing"):
        refused = run("--runs", wrong)
        assert refused.exit_code == 1
        assert refused.stderr.count("\n") == 1, refused.stderr
        assert "Traceback" not in refused.output


def test_agreement_tells_what_runs_asked_and_files_of_runs_give_way_with_the_others() -> None:
    def agree(*options: str) -> Result:
        return CliRunner().invoke(main, ["exports", "results", "export", "--resamples", "100", *options])

    assert agree("--out", "without").exit_code == 0
    assert "how many questions were asked" in Path("without/details.html").read_text(encoding="utf-8")
    done = agree("--out", "out", "--runs", "run")
    assert done.exit_code == 0, done.output
    report = Path("out/details.html").read_text(encoding="utf-8")
    assert "how many questions were asked" not in report
    assert ">asked</bdi></th>" in report
    assert ">refused</bdi></th>" in report
    wrong = agree("--out", "wrong", "--runs", "missing")
    assert (wrong.exit_code, Path("wrong").exists()) == (1, False)
    assert "missing" in wrong.stderr
    assert run("--runs", "run", "--out", "out").exit_code == 0
    first = {path.name: path.read_bytes() for path in Path("out").iterdir()}
    of_runs = {"runs.csv", "citations.csv", "sites.csv"}
    assert of_runs <= first.keys()
    assert run("--runs", "run", "--out", "out").exit_code == 0
    assert {path.name: path.read_bytes() for path in Path("out").iterdir()} == first
    assert run("--out", "out").exit_code == 0
    assert not of_runs & {path.name for path in Path("out").iterdir()}
    Path("out/sites.csv").write_text("mine\n", encoding="utf-8")
    refused = run("--runs", "run", "--out", "out")
    assert (refused.exit_code, "is not a file of `exports results`" in refused.output) == (1, True)
    assert Path("out/sites.csv").read_text(encoding="utf-8") == "mine\n"

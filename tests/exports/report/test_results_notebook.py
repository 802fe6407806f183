"""`from exports import measure_results`: the figures of the command as frames, JSON and HTML."""

from pathlib import Path

import pandas
import pytest

from exports import measure_results
from exports.reading.runs import read_runs
from exports.report.files import ResultsOptions, results_json, results_of_files
from exports.report.notebook import ResultsResult
from pipeline.core.errors import InputError
from tests.support import told_runs
from tests.support.export_folders import Answer, campaign, write_export
from tests.support.results_data import HOSTILE_MODEL, results


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_figures_are_those_of_the_command(tmp_path: Path) -> None:
    export = write_export(tmp_path / "export", campaign())
    found = measure_results(str(export), by=("model_name", "language"))
    options = ResultsOptions(by=("model_name", "language"))
    assert found.to_json() == results_json(results_of_files([export], options))
    assert repr(found).startswith("<ResultsResult Serious problem 22 % [")


def test_frames_have_types_and_na_where_there_is_no_figure(tmp_path: Path) -> None:
    found = measure_results(write_export(tmp_path / "export", campaign(narratives=1)))
    groups = found.to_pandas("groups")
    assert groups["rate"].dtype == "Float64"
    assert groups["n_units"].dtype == "Int64"
    assert groups["interval_low"].isna().all()
    assert set(groups["undefined"]) == {"one_narrative"}
    differences = found.to_pandas("differences")
    assert differences["stands_out"].dtype == "boolean"
    assert set(zip(differences["a"], differences["b"], strict=True)) == {
        ("claude", "gemini"),
        ("claude", "perplexity"),
        ("gemini", "perplexity"),
    }
    assert found.to_pandas("findings")["finding"].tolist() == ["serious_problem"]
    assert isinstance(found.to_pandas(), pandas.DataFrame)
    with pytest.raises(InputError, match="There is no table 'labels'; the tables are groups, differences, findings"):
        found.to_pandas("labels")


def test_a_notebook_shows_findings_first_and_a_hostile_name_as_text() -> None:
    page = ResultsResult(results((HOSTILE_MODEL, "gemini", "perplexity")))._repr_html_()
    assert page.index("Serious problem") < page.index("support_present")
    assert "<img" not in page
    assert "$x$" not in page
    assert '<bdi dir="auto">20</bdi></td><td><bdi dir="auto">12</bdi></td>' in page


def test_what_runs_tell_is_in_frames_and_on_the_page(tmp_path: Path) -> None:
    told_runs.write_run(tmp_path)
    answers = [Answer(record, yes={"anna": ()}) for record in read_runs([tmp_path / "run"]).answers.record_uuids]
    export = write_export(tmp_path / "export", answers, tasks=("generation",), provenance=False)
    found = measure_results(export, runs=[tmp_path / "run"])
    runs = found.to_pandas("runs")
    assert runs["model_name"].tolist() == ["gemini", "grok", "openai"]
    assert runs["asked"].dtype == "Int64"
    assert found.to_pandas("citations")["citations_mean"].dtype == "Float64"
    assert "What the answers cite" in found._repr_html_()


def test_what_cannot_be_measured_is_refused_plainly(tmp_path: Path) -> None:
    export = write_export(tmp_path / "export", campaign(narratives=1))
    with pytest.raises(InputError, match="`consensus` is 'mode'"):
        measure_results(export, consensus="mode")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="Adjudicated results need the adjudicators' decisions"):
        measure_results(export, consensus="adjudicated")
    with pytest.raises(InputError, match="No record has a column `arm`"):
        measure_results(export, by="arm")

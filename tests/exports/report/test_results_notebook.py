"""`from exports import measure_results`: the figures of the command as frames, JSON and HTML."""

import re
from itertools import combinations
from pathlib import Path

import pandas
import pytest

from exports import measure_results
from exports.reading.runs import read_runs
from exports.report.files import FigureOptions, results_json, results_of_files
from exports.report.notebook import ResultsResult
from pipeline.core.errors import InputError
from tests.support import told_runs
from tests.support.export_folders import Answer, campaign, write_export
from tests.support.results_data import HOSTILE_MODEL, results


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_figures_are_those_of_the_command_and_a_notebook_shows_a_hostile_name_as_text(tmp_path: Path) -> None:
    export = write_export(tmp_path / "export", campaign())
    found = measure_results(str(export), by=("model_name", "language"))
    options = FigureOptions(by=("model_name", "language"))
    assert found.to_json() == results_json(results_of_files([export], options))
    assert repr(found).startswith("<ResultsResult Serious problem 22 % [")
    page = ResultsResult(results((HOSTILE_MODEL, "gemini", "perplexity")))._repr_html_()
    assert page.index("Serious problem") < page.index("support_present")
    assert "<img" not in page
    assert "$x$" not in page
    assert re.search(r'<bdi dir="auto">20</bdi></td>\s*<td><bdi dir="auto">12</bdi></td>', page)


def test_frames_have_types_and_na_where_there_is_no_figure_and_bad_options_are_refused(tmp_path: Path) -> None:
    found = measure_results(write_export(tmp_path / "export", campaign(narratives=1)))
    groups, differences = found.to_pandas("groups"), found.to_pandas("differences")
    types = [frame[name].dtype for frame, name in ((groups, "rate"), (groups, "n_units"), (differences, "stands_out"))]
    assert types == ["Float64", "Int64", "boolean"]
    assert groups["interval_low"].isna().all()
    assert set(groups["undefined"]) == {"one_narrative"}
    pairs = {*combinations(("claude", "gemini", "perplexity"), 2)}
    assert set(zip(differences["a"], differences["b"], strict=True)) == pairs
    assert found.to_pandas("findings")["finding"].tolist() == ["serious_problem"]
    assert isinstance(found.to_pandas(), pandas.DataFrame)
    with pytest.raises(InputError, match="There is no table 'labels'; the tables are groups, differences, findings"):
        found.to_pandas("labels")
    export = write_export(tmp_path / "export", campaign(narratives=1))
    for said, options in (
        ("`consensus` is 'mode'", {"consensus": "mode"}),
        ("Adjudicated results need the adjudicators' decisions", {"consensus": "adjudicated"}),
        ("No record has a column `arm`", {"by": "arm"}),
    ):
        with pytest.raises(InputError, match=said):
            measure_results(export, **options)


def test_what_runs_tell_is_in_frames_and_on_the_page(tmp_path: Path) -> None:
    told_runs.write_run(tmp_path)
    answers = [Answer(record, yes={"anna": ()}) for record in read_runs([tmp_path / "run"]).answers.record_uuids]
    export = write_export(tmp_path / "export", answers, tasks=("generation",), provenance=False)
    found = measure_results(export, runs=[tmp_path / "run"])
    runs = found.to_pandas("runs")
    assert (runs["model_name"].tolist(), runs["asked"].dtype) == (["gemini", "grok", "openai"], "Int64")
    assert found.to_pandas("citations")["citations_mean"].dtype == "Float64"
    assert "What the answers cite" in found._repr_html_()

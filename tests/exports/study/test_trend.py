"""What moved between months: which are compared, what is said of it, and how often it is said of nothing."""

import itertools
import json
import re
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from click.testing import CliRunner

from exports.cli import main
from exports.report.files import FigureOptions
from exports.report.results_page import change_sentences
from exports.report.sections import RESULTS_FILE
from exports.statistics.results import measure_results
from exports.statistics.results_schema import Difference, LabelResults, Results
from exports.statistics.study import MONTH
from exports.study.file import Wave
from exports.study.trend import measure_trend
from pipeline.asking.narratives import NarrativesFile
from pipeline.asking.questions import ArmAsked
from pipeline.asking.run_folder import ProviderCounts, RunManifest, read_manifest, write_manifest
from pipeline.core.schema import AskOptions, ProviderName
from tests.support.batch_runs import write_narratives
from tests.support.drawn_studies import draw_votes, study_of_votes
from tests.support.export_folders import Answer, campaign, write_export, write_rows


def finished_month(folder: Path, name: str, answers: Sequence[Answer], model: str = "m-1") -> Wave:
    month = Wave(folder / "months" / name, name)
    write_export(month.export, answers)
    rows = [{"record_uuid": each.record, "inclusion_probability": "0.5"} for each in answers]
    write_rows(month.sample, rows)
    providers: dict[ProviderName, ProviderCounts] = {"claude": ProviderCounts(models_answered={model: len(answers)})}
    manifest = RunManifest(
        version="0",
        run_id="0" * 8 + "-0000-4000-8000-" + "0" * 12,
        started=f"{name}-01T00:00:00+00:00",
        narratives=NarrativesFile(file="narratives.csv", sha256="0" * 64, rows=12),
        providers=providers,
    )
    month.answers.mkdir()
    write_manifest(month.answers, manifest)
    month.results.mkdir()
    (month.results / RESULTS_FILE).write_text("{}", encoding="utf-8")
    return month


def drawn_trend(
    generator: np.random.Generator, rates: Mapping[str, Sequence[float]], n_narratives: int, labels: int = 5
) -> Results:
    """What a trend finds where each provider has this true rate in each month, on so many labels of generation."""
    months, providers = len(next(iter(rates.values()))), list(rates)
    wanted = np.array([rates[provider][month] for month in range(months) for provider in providers])
    votes = draw_votes(generator, np.repeat(wanted[:, np.newaxis], labels, axis=1), n_narratives)
    study = study_of_votes({"generation": votes})
    told = {
        record: {**known, **dict(zip((MONTH, "model_name"), _cell(known["model_name"], providers), strict=True))}
        for record, known in study.provenance.items()
    }
    return measure_results(
        study._replace(provenance=told, successive=frozenset((MONTH,))), by=(MONTH, "model_name"), findings={}
    )


def _cell(model: str, providers: Sequence[str]) -> tuple[str, str]:
    """Month and provider of a column of drawn votes, such as `model-7`."""
    month, provider = divmod(int(model.removeprefix("model-")), len(providers))
    return f"2026-{month + 1:02d}", providers[provider]


MODELS = ("claude", "gemini", "perplexity")


def other_people(answers: list[Answer]) -> list[Answer]:
    return [each._replace(yes={"anna": each.yes["anna"], "cem": each.yes["ben"]}) for each in answers]


def without_findings(answers: list[Answer]) -> list[Answer]:
    """The same answers, all as sound as those of the first model."""
    return [each._replace(yes=answers[0].yes) for each in answers]


def test_a_month_is_compared_with_the_one_before_and_the_first_and_of_too_many_the_newest() -> None:
    found = drawn_trend(np.random.default_rng(0), {"a": [0.1, 0.1, 0.1, 0.9], "b": [0.5] * 4}, 12, labels=1)
    differences = found.tasks["generation"].labels["proper_action"].differences
    of_months = [each for each in differences if each.by == MONTH]
    pairs = {(each.a[-1] + each.b[-1], each.within.get("model_name", "")) for each in of_months}
    assert pairs == {(pair, level) for pair in ("12", "13", "23", "14", "34") for level in ("", "a", "b")}
    tested = {each.p: each.p_holm for each in of_months if each.p is not None}
    smallest = min(tested)
    assert tested[smallest] == pytest.approx(15 * smallest)
    rates = {f"provider-{number:02d}": [0.5] * 12 for number in range(15)}
    found = drawn_trend(np.random.default_rng(0), rates, 3, labels=1)
    crossed = [each for each in found.tasks["generation"].labels["proper_action"].differences if each.within]
    of_months = {(each.a, each.b) for each in crossed if each.by == MONTH}
    months = [f"2026-{number:02d}" for number in range(1, 13)]
    assert of_months == {(a, b) for before, b in itertools.pairwise(months[1:]) for a in (months[0], before)}
    assert sum(each.by == MONTH for each in crossed) == 15 * 20
    assert {each.within[MONTH] for each in crossed if each.by == "model_name"} == {"2026-11", "2026-12"}
    assert found.remarks == (
        "Groups by `month` × `model_name` that differ in `month` make 315 pairs; the 15 whose later `month` is before "
        "2026-03 are not compared, as more than 300 would need too many comparisons to find anything.",
        "Groups by `month` × `model_name` that differ in `model_name` make 1,260 pairs; the 1,050 whose `month` is "
        "before 2026-11 are not compared, as more than 300 would need too many comparisons to find anything.",
    )


def test_what_improved_since_the_month_before_is_said_with_its_group(tmp_path: Path) -> None:
    answers = campaign(MODELS, 24, "m1")
    later = without_findings(campaign(MODELS, 24, "m2"))
    months = [finished_month(tmp_path, "2026-01", answers), finished_month(tmp_path, "2026-02", later)]
    found = measure_trend(months, FigureOptions())
    assert list(change_sentences(found))[:2] == [
        "Serious problem (perplexity): fell from 67 % in 2026-01 to 0 % in 2026-02, by 67 points [47, 86], p = .001 "
        "after Holm, on 24 narratives that both have.",
        "Serious problem: fell from 22 % in 2026-01 to 0 % in 2026-02, by 22 points [14, 30], p = .001 after Holm, on "
        "24 narratives that both have.",
    ]
    crossed = [each for each in found.findings["serious_problem"].differences if each.by == MONTH and each.within]
    assert [(each.within["model_name"], each.rate_a, each.rate_b) for each in crossed] == [
        ("claude", 0.0, 0.0),
        ("gemini", 0.0, 0.0),
        ("perplexity", pytest.approx(2 / 3), 0.0),
    ]
    assert not found.weighted  # every answer has the same probability


def test_what_grew_worse_is_said_to_have_risen_and_what_else_changed(tmp_path: Path) -> None:
    sound = without_findings(campaign(MODELS, 24, "m1"))
    months = [
        finished_month(tmp_path, "2026-01", sound, model="m-1"),
        finished_month(tmp_path, "2026-02", other_people(campaign(MODELS, 24, "m2")), model="m-2"),
    ]
    found = measure_trend(months, FigureOptions())
    assert next(change_sentences(found)).startswith(
        "Serious problem (perplexity): rose from 0 % in 2026-01 to 67 % in 2026-02, by 67 points [46, 87], p = .001"
    )
    told = "The models that answered were not the same in every month: 2026-01: claude m-1; 2026-02: claude m-2."
    assert told in found.remarks
    assert {(each.by[MONTH], each.annotator) for each in found.annotators or () if MONTH in each.by} == {
        *(("2026-01", name) for name in ("anna", "ben")),
        *(("2026-02", name) for name in ("anna", "cem")),
    }


def asked(month: Wave, **otherwise: object) -> None:
    write_manifest(month.answers, read_manifest(month.answers).model_copy(update=otherwise))


def read_rules(month: Wave, version: str) -> None:
    told = {"datasets": [{"task": task, "guideline_version": version} for task in ("grounding", "generation")]}
    (month.export / "manifest.json").write_text(json.dumps(told), encoding="utf-8")


RULES = (
    "Guidelines or questions were others in some months, so what changed may be the rules: 2026-01, 2026-02; 2026-03."
)
QUESTIONS = (
    "Not the same was asked in every month: 2026-01, 2026-02; 2026-03. Narratives, options and models asked for stand "
    "in answers/manifest.json of each."
)
OTHERWISE = {
    "nothing": (lambda month: None, []),
    "rules": (partial(read_rules, version="2"), [RULES]),
    "narratives": (partial(asked, narratives=NarrativesFile(file="n.csv", sha256="1" * 64, rows=12)), [QUESTIONS]),
    "repeats": (partial(asked, repeats=2), [QUESTIONS]),
    "options": (partial(asked, options=AskOptions(recency="week")), [QUESTIONS]),
    "arms": (partial(asked, arms={"leading": ArmAsked()}), [QUESTIONS]),
    "models": (
        partial(asked, providers={"claude": ProviderCounts(model_asked="m-2", models_answered={"m-1": 72})}),
        [QUESTIONS],
    ),
}


def test_what_was_otherwise_in_a_month_is_said_and_nothing_else(tmp_path: Path) -> None:
    for name, (change, said) in OTHERWISE.items():
        folder = tmp_path / name
        months = [finished_month(folder, f"2026-0{n}", campaign(MODELS, 6, f"m{n}")) for n in (1, 2, 3)]
        for month in months:
            read_rules(month, "1")
        change(months[-1])
        remarks = measure_trend(months, FigureOptions()).remarks
        assert [each for each in remarks if re.search("the jury|the rules|was asked|The models", each)] == said, name


def test_the_command_writes_results_by_month_in_80_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_narratives(tmp_path, 1)
    Path("study.toml").write_text('narratives = "narratives.csv"\n', encoding="utf-8")
    for number in range(1, 5):
        answers = campaign(MODELS, 24, f"m{number}")
        finished_month(Path(), f"2026-0{number}", without_findings(answers) if number == 4 else answers)
    result = CliRunner().invoke(main, ["study", "run", "--month", "2026-04"])
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.splitlines())) <= 80
    heading = next(line for line in result.stdout.splitlines() if line.startswith("  ") and "2026-01" in line)
    assert heading.split() == ["2026-01", "2026-03", "2026-04"]
    assert "What changed beyond chance\n* Serious problem" in result.stdout
    told = json.loads(Path("months/trend/results.json").read_text(encoding="utf-8"))
    assert told["by"] == ["month", "model_name"]
    again = CliRunner().invoke(main, ["study", "run", "--month", "2026-04"])
    assert (again.exit_code, again.stdout) == (0, "")  # nothing has come since
    former = CliRunner().invoke(main, ["study", "trend"])
    assert (former.exit_code, "`study trend` is gone: `citejury study run` says" in former.stderr) == (2, True)


class Cell(NamedTuple):
    """One kind of study, and how often it is drawn."""

    months: int
    narratives: int
    rate: float
    studies: int


def changes(found: Results) -> list[Difference]:
    """Every change that is claimed."""
    labels: list[LabelResults] = list(found.tasks["generation"].labels.values())
    return [each for label in labels for each in label.differences if each.by == MONTH and each.stands_out]


def claimed(cell: Cell) -> float:
    """The share of studies of which some change is claimed, though nothing changes."""
    generator = np.random.default_rng([cell.months, cell.narratives, int(100 * cell.rate)])
    rates = {provider: [cell.rate] * cell.months for provider in ("a", "b", "c")}
    return float(np.mean([bool(changes(drawn_trend(generator, rates, cell.narratives))) for _ in range(cell.studies)]))


def found_rise(cell: Cell, rise: float) -> float:
    """The share of studies in which it is said of the last month that the provider that rises then rose."""
    generator = np.random.default_rng([cell.months, cell.narratives])
    steady = [cell.rate] * cell.months
    rates = {"a": [*steady[1:], cell.rate + rise], "b": steady, "c": steady}
    last, hits = f"2026-{cell.months:02d}", 0
    for _ in range(cell.studies):
        told = changes(drawn_trend(generator, rates, cell.narratives))
        hits += any(each.b == last and each.within.get("model_name") == "a" for each in told)
    return hits / cell.studies


STEADY = [Cell(months, 40, rate, 200) for months in (2, 6) for rate in (0.1, 0.3)]
STEADY += [Cell(12, 40, 0.3, 200), Cell(6, 100, 0.3, 200)]


@pytest.mark.rare
def test_a_sample_of_steady_studies_has_hardly_any_trend() -> None:
    assert claimed(Cell(3, 30, 0.3, 20)) <= 0.15


@pytest.mark.soak
@pytest.mark.parametrize("cell", STEADY, ids=lambda cell: f"m{cell.months}-n{cell.narratives}-r{100 * cell.rate:.0f}")
def test_a_trend_is_rarely_claimed_of_none(cell: Cell) -> None:
    found = claimed(cell)
    sys.stdout.write(f"claimed\t{cell}\t{found:.3f}\n")
    assert found <= 0.07


@pytest.mark.soak
@pytest.mark.parametrize(("narratives", "rise"), [(40, 0.2), (40, 0.3), (100, 0.2)])
def test_a_rise_of_one_provider_is_mostly_found(narratives: int, rise: float) -> None:
    found = found_rise(Cell(6, narratives, 0.3, 60), rise)
    sys.stdout.write(f"found\t{narratives}\t{rise}\t{found:.3f}\n")
    assert found >= (0.8 if rise == 0.3 or narratives == 100 else 0.2)

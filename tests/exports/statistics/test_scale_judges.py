"""Judges against people on nominal, ordinal and interval scales, of anybody's ratings."""

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import krippendorff
import numpy as np
import pytest
from click.testing import CliRunner, Result
from sklearn.metrics import cohen_kappa_score, confusion_matrix

from exports.cli import main
from tests.exports.statistics.test_alt_test import LGBTEEN, PUBLISHED
from tests.support.places import NO_SHARED

WORDS = ("--unit", "unit", "--rater", "rater", "--value", "value", "--resamples", "200")


def write(path: Path, head: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows(rows)
    return path


def run(folder: Path, people: Iterable[Sequence[object]], judge: Iterable[Sequence[object]], *words: str) -> Result:
    """Both tables have the columns unit, who and value, and a label where there are four."""
    people, judge = list(people), list(judge)
    more = ("label",) if len(people[0]) > 3 else ()
    ratings = write(folder / "ratings.csv", ("unit", "rater", "value", *more), people)
    judged = write(folder / "judge.csv", ("unit", "judge", "value", *more), judge)
    out, label = ("--out", str(folder / "out")), ("--label", "label") if more else ()
    files = (str(ratings), *WORDS, *label, "--judge-ratings", str(judged))
    return CliRunner().invoke(main, ["exports", "results", *files, *out, *words])


def told(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "out" / "agreement.json").read_text(encoding="utf-8"))
    return found


def scaled(folder: Path, judge: str = "model") -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in told(folder)["judges"] if each["model"] == judge)["tasks"]["ratings"]
    return found


def drawn(seed: int, n_values: int, n_units: int = 60) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Of three people and of a judge."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, n_values, n_units)
    said = np.where(random.random((4, n_units)) < 0.7, truth, random.integers(0, n_values, (4, n_units)))
    return said[:3], said[3]


@pytest.mark.skipif(not LGBTEEN.is_dir(), reason=NO_SHARED)
def test_the_alternative_annotator_test_of_six_models_is_that_of_the_authors(tmp_path: Path) -> None:
    people, models = (
        json.loads((LGBTEEN / f"alttest_lgbteen_{name}.json").read_text(encoding="utf-8")) for name in ("human", "llm")
    )

    def rows(table: dict[str, dict[str, str]]) -> list[tuple[str, str, str]]:
        return [(unit, name, value) for name, own in table.items() for unit, value in own.items()]

    result = run(tmp_path, rows(people), rows(models), "--epsilon", "0.2", "--scale", "nominal")
    assert result.exit_code == 0, result.output
    found = {each["model"]: each["tasks"]["ratings"]["scaled"]["value"] for each in told(tmp_path)["judges"]}
    tests = {name: each["alt_test"] for name, each in found.items()}
    assert {n: (t["winning_rate"], round(t["advantage_probability"], 2)) for n, t in tests.items()} == PUBLISHED
    assert {each["scoring"] for each in found.values()} == {"accuracy"}
    assert len(told(tmp_path)["judge_differences"]) == 15


def test_a_judge_on_a_nominal_scale_is_held_against_the_most_frequent_value(tmp_path: Path) -> None:
    people, judge = drawn(1, 3)
    names = np.array(["cold", "cool", "warm"])
    rows = [(f"u{u:02d}", f"p{p}", names[people[p, u]]) for p in range(3) for u in range(60)]
    result = run(tmp_path, rows, [(f"u{u:02d}", "model", names[judge[u]]) for u in range(60)])
    assert result.exit_code == 0, result.output
    votes = np.stack([(people == value).sum(axis=0) for value in range(3)])
    clear = votes.max(axis=0) > 1
    truth = votes.argmax(axis=0)[clear]
    found = scaled(tmp_path)["scaled"]["value"]
    assert (found["n_judged"], found["n_compared"], found["n_ties"]) == (60, clear.sum(), 60 - clear.sum())
    assert found["confusion"] == confusion_matrix(truth, judge[clear]).tolist()
    agreed = found["agreement"]
    assert agreed["percent_agreement"] == pytest.approx(float(np.mean(truth == judge[clear])))
    assert agreed["mean_pairwise_kappa"] == pytest.approx(cohen_kappa_score(truth, judge[clear]))
    assert agreed["intervals"]["mean_pairwise_weighted_kappa"]["low"] < agreed["mean_pairwise_kappa"]
    for person, pair in enumerate(found["annotators"]):
        assert (pair["rater_a"], pair["rater_b"], pair["n_shared"]) == (f"p{person}", "model", 60)
        assert pair["cohen_kappa"] == pytest.approx(cohen_kappa_score(people[person], judge))
    jsonschema.validate(
        told(tmp_path), json.loads(CliRunner().invoke(main, ["exports", "results", "--schema", "agreement"]).output)
    )
    assert "model against the jury: ratings" in result.stdout
    assert "value  nominal" in result.stdout


def test_on_an_ordinal_scale_against_the_median_and_on_an_interval_scale_against_the_mean(tmp_path: Path) -> None:
    people, judge = drawn(2, 5)
    rows = [(f"u{u:02d}", f"p{p}", people[p, u] + 1) for p in range(3) for u in range(60)]
    judged = [(f"u{u:02d}", "model", judge[u] + 1) for u in range(60)]
    assert run(tmp_path, rows, judged, "--scale", "ordinal", "--weights", "linear").exit_code == 0
    found = scaled(tmp_path)["scaled"]["value"]
    median = np.median(people, axis=0)
    assert (found["scoring"], found["n_compared"], found["n_ties"]) == ("neg_rmse", 60, 0)
    wanted = cohen_kappa_score(median.astype(int), judge, weights="linear", labels=range(5))
    assert found["agreement"]["mean_pairwise_weighted_kappa"] == pytest.approx(wanted)
    assert run(tmp_path, rows, judged, "--scale", "interval").exit_code == 0
    found = scaled(tmp_path)["scaled"]["value"]
    alpha = krippendorff.alpha(reliability_data=[people.mean(axis=0), judge], level_of_measurement="interval")
    assert found["agreement"]["krippendorff_alpha"] == pytest.approx(alpha)
    assert found["confusion"] == []


def test_a_judge_gives_values_that_nobody_else_gave_and_units_that_nobody_rated(tmp_path: Path) -> None:
    """Of numbers 2.5 and 9 take their places; a fourth word is a value, and never right."""
    people = [(f"u{u}", p, 1 + u % 3) for u in range(6) for p in ("a", "b")]
    judge = [("u0", "model", 2.5), ("u1", "model", 9), ("u2", "model", 3), ("u9", "model", 1)]
    assert run(tmp_path, people, judge, "--scale", "ordinal").exit_code == 0
    found = scaled(tmp_path)
    assert (found["n_units"], found["n_judged"], found["n_not_judged"], found["n_unknown"]) == (6, 3, 3, 1)
    assert [each["value"] for each in found["scaled"]["value"]["agreement"]["values"]] == ["1", "2", "2.5", "3", "9"]
    words = [(unit, who, f"w{value}") for unit, who, value in people]
    assert run(tmp_path, words, [("u0", "model", "other"), ("u1", "model", "w2")]).exit_code == 0
    found = scaled(tmp_path)["scaled"]["value"]
    assert [each["value"] for each in found["agreement"]["values"]] == ["w1", "w2", "w3", "other"]
    assert found["agreement"]["percent_agreement"] == 0.5
    assert found["alt_test"]["conclusion"] == "few_people"


def test_labels_of_several_scales_have_a_judge_each_and_yes_and_no_are_two_values(tmp_path: Path) -> None:
    people = [(f"u{u}", p, v, q) for u in range(9) for p in ("a", "b") for q, v in (("ok", "yes"), ("stars", u % 4))]
    judge = [(f"u{u}", "model", v, q) for u in range(9) for q, v in (("ok", "no"), ("stars", u % 4), ("else", "x"))]
    result = run(tmp_path, people, judge, "--scale", "stars=ordinal")
    assert result.exit_code == 0, result.output
    assert "Ratings of a judge left out, of labels that nobody else rated: 9." in result.stderr
    found = scaled(tmp_path)["scaled"]
    assert list(found) == ["ok", "stars"]
    assert found["ok"]["confusion"] == [[0, 0], [9, 0]]
    assert found["stars"]["agreement"]["krippendorff_alpha"] == 1


def test_without_a_unit_in_common_there_is_no_figure(tmp_path: Path) -> None:
    assert run(tmp_path, [("u1", "a", "x"), ("u1", "b", "y")], [("u1", "model", "x")]).exit_code == 0
    found = scaled(tmp_path)["scaled"]["value"]
    assert (found["agreement"], found["n_compared"], found["n_ties"], found["confusion"]) == (None, 0, 1, [])
    assert run(tmp_path, [("u1", "a", "x"), ("u1", "b", "y")], [("u2", "model", "x")]).exit_code == 0
    assert (scaled(tmp_path)["scaled"], scaled(tmp_path)["n_unknown"]) == ({}, 1)


def test_of_two_judges_the_nearer_one_is_told(tmp_path: Path) -> None:
    people = [(f"u{u:02d}", p, 10 * (u % 5)) for u in range(40) for p in ("a", "b")]
    judge = [(f"u{u:02d}", name, 10 * (u % 5) + off) for u in range(40) for name, off in (("near", 1), ("far", -3))]
    result = run(tmp_path, people, judge, "--scale", "interval")
    (apart,) = told(tmp_path)["judge_differences"]
    assert (apart["model_a"], apart["agreement_a"], apart["agreement_b"], apart["differs"]) == ("far", 0.0, 1.0, True)
    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("head", "row", "words", "said"),
    [
        ("unit,model,value", "u1,m,1", (), "has no column `judge`. Its columns are `unit`, `model`, `value`."),
        ("item,judge,value", "u1,m,1", (), "has no column `unit`. Its columns are `item`, `judge`, `value`."),
        ("unit,judge,value", "u1,m,many", (), "line 2: `value` is 'many', expected a number."),
        ("unit,judge,value", "u1,m,7", ("--order", "1,2,3"), "line 2: `value` is '7', expected one of 1, 2, 3."),
        ("unit,judge,value", "u1,m,1\nu1,m,2", (), "'m' gives 'u1' the value '2', at judge.csv, line 2 '1'."),
        ("unit,judge,value", "u1,m,", (), "There is no rating that counts."),
    ],
)
def test_a_table_that_cannot_be_used_says_why(
    tmp_path: Path, head: str, row: str, words: tuple[str, ...], said: str
) -> None:
    ratings = write(tmp_path / "ratings.csv", ("unit", "rater", "value"), [("u1", "a", 1), ("u1", "b", 2)])
    (tmp_path / "judge.csv").write_text(f"{head}\n{row}\n", encoding="utf-16")
    files = (str(ratings), *WORDS, "--judge-ratings", str(tmp_path / "judge.csv"), "--out", str(tmp_path / "out"))
    result = CliRunner().invoke(main, ["exports", "results", *files, "--scale", "ordinal", *words])
    assert result.exit_code == 1
    assert said in result.stderr
    assert not (tmp_path / "out").exists()

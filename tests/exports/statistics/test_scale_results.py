"""Results of labels on nominal, ordinal and interval scales, of anybody's ratings."""

import csv
import itertools
import json
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import jsonschema
import pandas
import pytest
from click.testing import CliRunner, Result
from scipy import stats

from exports import measure_results
from exports.cli import main
from exports.statistics.results_schema import ScaleResults

TABLE = """\
item,system,coder,q,said
t1,x,anna,tone,warm
t1,x,ben,tone,cold
t1,y,anna,tone,cold
t2,x,anna,tone,warm
t2,y,anna,tone,cold
t2,y,ben,tone,cold
t1,x,anna,stars,5
t1,x,ben,stars,4
t1,y,anna,stars,2
t2,x,anna,stars,4
t2,y,anna,stars,1
t2,y,ben,stars,3
t1,x,anna,secs,10.5
t1,y,anna,secs,12
t2,x,anna,secs,11
t2,y,anna,secs,11.5
t1,x,anna,fit,poor
t1,y,anna,fit,good
t2,x,anna,fit,fair
t2,y,anna,fit,good
"""
NAMED = {"unit": "item", "rater": "coder", "value": "said", "label": "q", "group": "system"}
SCALES = {"scale": {"stars": "ordinal", "secs": "interval"}, "order": {"fit": ("poor", "fair", "good")}}


def run(*words: object) -> Result:
    return CliRunner().invoke(main, ["exports", *map(str, words)])


def write(folder: Path, text: str = TABLE) -> Path:
    path = folder / "ratings.csv"
    path.write_text(text, encoding="utf-8")
    return path


def found(folder: Path, text: str = TABLE, **more: Any) -> dict[str, ScaleResults]:
    measured = measure_results(write(folder, text), **{**NAMED, **SCALES, **more}).results.tasks["ratings"].scaled
    assert measured
    return measured


def test_by_hand_the_shares_of_a_nominal_scale_and_their_differences(tmp_path: Path) -> None:
    """Of x 1/2 and 1 of the ratings are warm, of y none; the four units are as independent as their two items."""
    tone = found(tmp_path)["tone"]
    assert (tone.scale, tone.values, tone.numbers, tone.mean, tone.median) == (
        "nominal",
        ("cold", "warm"),
        (),
        None,
        None,
    )
    warm = tone.shares["warm"]
    assert (warm.rate, warm.n_units, warm.n_narratives) == (0.375, 4, 2)
    assert [(group.by, group.rate) for group in warm.groups] == [({"system": "x"}, 0.75), ({"system": "y"}, 0.0)]
    (apart,) = warm.differences
    assert (apart.a, apart.b, apart.n_narratives, apart.difference, apart.p) == ("x", "y", 2, 0.75, 0.5)
    assert apart.interval
    assert warm.interval
    assert warm.interval.method == "narratives"
    cold = tone.shares["cold"]
    assert cold.rate == 0.625
    assert (warm.differences[0].p_holm, cold.differences[0].p_holm) == (1.0, 1.0)  # Of two values: 2 × .5


def test_by_hand_the_mean_of_an_ordinal_scale_in_its_numbers_or_ranks(tmp_path: Path) -> None:
    measured = found(tmp_path)
    stars, fit = measured["stars"], measured["fit"]
    assert stars.numbers == (1, 2, 3, 4, 5)
    assert stars.mean
    assert stars.mean.rate == pytest.approx((4.5 + 2 + 4 + 2) / 4)
    assert stars.median == pytest.approx(3)
    assert stars.mean.differences[0].difference == pytest.approx((2.5 + 2) / 2)
    assert not any(each.differences for each in stars.shares.values())
    assert stars.shares["4"].rate == pytest.approx((0.5 + 0 + 1 + 0) / 4)
    assert (fit.values, fit.numbers) == (("poor", "fair", "good"), (1, 2, 3))
    assert fit.mean
    assert (fit.mean.rate, fit.median) == (2.25, 2.5)
    assert fit.mean.interval
    assert 1 <= fit.mean.interval.low < 2.25 < fit.mean.interval.high <= 3


def test_the_mean_of_an_interval_scale_has_the_interval_of_students_t(tmp_path: Path) -> None:
    rows = [(f"u{n:02d}", 1e6 + ((n * 37) % 101) / 7) for n in range(25)]
    text = "item,coder,said\n" + "".join(f"{unit},anna,{value:.9f}\n" for unit, value in rows)
    measured = measure_results(write(tmp_path, text), unit="item", rater="coder", value="said", scale="interval")
    mean = (measured.results.tasks["ratings"].scaled or {})["said"].mean
    assert mean
    values = [round(value, 9) for _, value in rows]
    half = stats.t.ppf(0.975, 24) * stdev(values) / 5
    assert mean.rate == pytest.approx(fmean(values), rel=1e-11)
    assert mean.interval
    assert mean.interval.method == "t"
    assert (mean.interval.low, mean.interval.high) == pytest.approx((mean.rate - half, mean.rate + half), abs=1e-5)
    assert measured.results.by == ()


def test_a_paired_difference_of_an_interval_scale_is_the_paired_t_test_and_the_sign_flip_test(tmp_path: Path) -> None:
    pairs = [(10 + n % 7, 10 + n % 7 + (n * 5) % 11 - 3) for n in range(12)]
    text = "item,system,coder,said\n" + "".join(
        f"u{n},{system},anna,{pair[place]}\n" for n, pair in enumerate(pairs) for place, system in enumerate("xy")
    )
    measured = found(tmp_path, text, label="", scale="interval", order=())["said"].mean
    assert measured
    (apart,) = measured.differences
    wanted = stats.ttest_rel(*zip(*pairs, strict=True)).confidence_interval()
    assert apart.interval
    assert (apart.interval.low, apart.interval.high) == pytest.approx(wanted)
    between = [a - b for a, b in pairs]
    flips = [
        abs(sum(s * d for s, d in zip(signs, between, strict=True))) for signs in itertools.product((1, -1), repeat=12)
    ]
    assert apart.p == pytest.approx(sum(each >= abs(sum(between)) for each in flips) / len(flips))
    assert (apart.rate_a, apart.rate_b) == pytest.approx([fmean(each) for each in zip(*pairs, strict=True)])


@pytest.mark.parametrize("factor", [(1.0, 0.0), (-0.01, 7.0), (1e4, 1e9)])
def test_an_interval_scale_has_no_unit_and_no_zero(tmp_path: Path, factor: tuple[float, float]) -> None:
    def measure(scale: float, zero: float) -> list[float | None]:
        text = "item,system,coder,said\n" + "".join(
            f"u{n},{s},{c},{scale * ((n * 7 + place * 3 + number) % 13) + zero:.12g}\n"
            for n in range(15)
            for place, s in enumerate("xy")
            for number, c in enumerate(("anna", "ben"))
        )
        mean = found(tmp_path, text, label="", scale="interval", order=())["said"].mean
        assert mean
        assert mean.interval
        (apart,) = mean.differences
        ends = sorted([(mean.interval.low - zero) / scale, (mean.interval.high - zero) / scale])
        return [(mean.rate or 0) / scale - zero / scale, *ends, (apart.difference or 0) / scale, apart.p]

    assert measure(*factor) == pytest.approx(measure(1, 0), rel=1e-4)


def test_clusters_that_are_alike_widen_an_interval(tmp_path: Path) -> None:
    head, *rows = ["item,doc,coder,said", *(f"u{n:02d},d{n // 4},anna,{10 * (n // 4 % 5) + n % 4}" for n in range(40))]
    widths = []
    for more in ({}, {"cluster": "doc"}):
        mean = found(tmp_path, "\n".join([head, *rows]), label="", group="", scale="interval", order=(), **more)[
            "said"
        ].mean
        assert mean
        assert mean.interval
        widths.append((mean.n_narratives, mean.interval.high - mean.interval.low))
    assert [n for n, _ in widths] == [40, 10]
    assert widths[1][1] > 1.5 * widths[0][1]


def test_ties_have_no_value_and_are_counted(tmp_path: Path) -> None:
    """tone: t1 of x ties; stars: 5 and 4 have no middle, nor have 1 and 3; means of an interval scale have no ties."""
    measured = found(tmp_path, consensus="majority")
    assert (measured["tone"].shares["warm"].n_units, measured["tone"].shares["warm"].n_undecided) == (3, 1)
    stars = measured["stars"].mean
    assert stars
    assert (stars.rate, stars.n_units, stars.n_undecided) == (3.0, 2, 2)
    text = TABLE + "t1,x,carl,stars,4\nt2,y,carl,stars,3\n"
    stars = found(tmp_path, text, consensus="majority")["stars"].mean
    assert stars
    assert (stars.rate, stars.n_units, stars.n_undecided) == (pytest.approx((4 + 2 + 4 + 3) / 4), 4, 0)
    secs = measured["secs"].mean
    assert secs
    assert (secs.rate, secs.n_undecided) == (11.25, 0)


@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval"])
def test_constant_values_have_a_figure_and_no_interval_of_width_0(tmp_path: Path, scale: str) -> None:
    text = "item,system,coder,said\n" + "".join(f"u{n},{s},anna,3\n" for n in range(9) for s in "xy")
    said = found(tmp_path, text, label="", scale=scale, order=())["said"]
    if said.mean:
        assert (said.mean.rate, said.mean.interval, said.mean.undefined) == (3, None, "no_variation")
        (apart,) = said.mean.differences
        assert (apart.difference, apart.interval, apart.undefined, apart.p) == (0, None, "no_variation", 1)
    for share in said.shares.values():
        assert share.interval
        assert (share.rate, share.interval.high) == (1, 1)
        assert share.interval.low < 0.9


def test_units_of_one_group_each_and_a_single_cluster_say_why_there_is_no_figure(tmp_path: Path) -> None:
    text = "item,system,coder,said\nu1,x,anna,1\nu2,x,anna,2\nu3,y,anna,4\n"
    said = found(tmp_path, text, label="", scale="interval", order=())["said"].mean
    assert said
    (apart,) = said.differences
    assert (apart.difference, apart.p, apart.undefined) == (None, None, "no_shared_narrative")
    assert [(group.rate, group.undefined) for group in said.groups] == [(1.5, None), (4, "one_narrative")]


def test_equal_means_that_rounding_tells_apart_are_no_difference(tmp_path: Path) -> None:
    """.1 + .2 + .3 in another order is another sum, in each of 20 items the same way."""
    orders = {"x": (0.1, 0.2, 0.3), "y": (0.3, 0.2, 0.1)}
    text = "item,system,coder,said\n" + "".join(
        f"u{n:02d},{s},c{number},{value}\n"
        for n in range(20)
        for s, values in orders.items()
        for number, value in enumerate(values)
    )
    said = found(tmp_path, text, label="", scale="interval", order=())["said"].mean
    assert said
    (apart,) = said.differences
    assert (apart.p, apart.stands_out, apart.undefined) == (1, False, "no_variation")


def test_the_command_writes_every_figure_and_says_what_differs(tmp_path: Path) -> None:
    rows = ["item,system,coder,score"]
    rows += [
        f"u{n:02d},{s},{c},{1 + (n + k) % 3 + 2 * (s == 'y')}"
        for n in range(20)
        for s in "xy"
        for k, c in enumerate("ab")
    ]
    path = write(tmp_path, "\n".join(rows))
    words = ("--unit", "item", "--rater", "coder", "--value", "score", "--scale", "ordinal", "--group", "system")
    for folder in ("one", "two"):
        result = run("results", path, *words, "--out", tmp_path / folder)
        assert result.exit_code == 0, result.output
    assert "* mean score: y 4.00, x 2.00: 2.00 apart [" in result.stdout
    assert "on\n  20 clusters that both have." in result.stdout
    assert "narrative" not in result.stdout
    assert "answer" not in result.stdout
    text = (tmp_path / "one" / "results.json").read_bytes()
    assert text == (tmp_path / "two" / "results.json").read_bytes()
    jsonschema.validate(json.loads(text), json.loads(run("results", "--schema", "results").stdout))
    with (tmp_path / "one" / "results.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    assert [row["rate"] for row in table if row["label"] == "mean score"] == ["3.0", "2.0", "4.0"]
    assert len([row for row in table if row["label"] == "score=5"]) == 3
    told = measure_results(path, **{**NAMED, "value": "score", "label": ""}, scale="ordinal")
    assert told.to_json().encode() == text
    assert told.to_pandas()["rate"].dtype == "Float64"
    assert "mean score: y 4.00, x 2.00" in (tmp_path / "two" / "results.md").read_text(encoding="utf-8")
    frame = measure_results(pandas.read_csv(path), **{**NAMED, "value": "score", "label": ""}, scale="ordinal").results
    assert frame.tasks == told.results.tasks


def test_what_belongs_to_exports_of_ours_is_refused_and_a_wrong_column_lists_what_is_there(tmp_path: Path) -> None:
    path = write(tmp_path)
    words = ("results", path, "--unit", "item", "--rater", "coder", "--value", "said", "--label", "q")
    result = run(*words, "--group", "model")
    assert result.exit_code == 1
    assert "has no column `model`. Its columns are `item`, `system`, `coder`, `q`, `said`." in result.stderr
    result = run(*words, "--sample", path)
    assert result.exit_code == 1
    assert "belong to exports of citejury" in result.stderr

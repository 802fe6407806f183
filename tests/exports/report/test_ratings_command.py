"""`exports agreement` and `measure_agreement` on anybody's ratings."""

import csv
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pandas
import pytest
from click.testing import CliRunner, Result

from exports import measure_agreement
from exports.cli import main
from exports.csv.schema import COLUMNS
from exports.report import words
from pipeline.core.errors import InputError
from tests.support.places import ROOT
from tests.support.report_page import Page
from tests.support.scaled_ratings import RAW4

QUICK = ("--resamples", "100")
WIDE = ("--unit", "unit", "--rater-columns", "*")


def run(*words: object) -> Result:
    return CliRunner().invoke(main, ["exports", "results", *map(str, words)])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "ratings.csv"
    path.write_text(RAW4, encoding="utf-8")
    return path


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_table_becomes_figures_with_their_denominators(table: Path, tmp_path: Path) -> None:
    result = run(table, *WIDE, "--scale", "ordinal", "--out", tmp_path / "out", *QUICK)
    assert result.exit_code == 0, result.output
    assert "ratings: 12 units, 41 ratings, 4 annotators" in result.stdout
    assert "value  ordinal  11  .82 [" in result.stdout
    assert "interval over units" in result.stdout
    assert {"labels.csv", "results.csv", "scaled_pairs.csv"} < {path.name for path in (tmp_path / "out").iterdir()}
    (label,) = rows_of(tmp_path / "out" / "labels.csv")
    assert (label["scale"], label["weights"], label["n_ratings"], label["n_values"]) == (
        "ordinal",
        "ordinal",
        "41",
        "5",
    )
    assert float(label["gwet_ac2"]) == pytest.approx(0.8989397699)
    assert float(label["gwet_ac2_low"]) < 0.8989 < float(label["gwet_ac2_high"])
    assert json.loads(label["specific_agreement"])["5"] == 1
    assert "prevalence=not_boolean" in label["undefined"]
    assert len(rows_of(tmp_path / "out" / "scaled_pairs.csv")) == 6
    page = (tmp_path / "out" / "agreement.md").read_text(encoding="utf-8")
    assert "Krippendorff's α (ordinal)" in page
    assert "bootstrap, bounded by what such records could hold (1)" in page
    assert "| value | ordinal | 11 |" in page
    assert "P⁺" not in page
    assert "A record is a cluster of units, or a unit where no cluster is named." in page


@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval"])
def test_units_with_different_values_are_listed_by_what_alpha_would_be_without_them(
    scale: str, table: Path, tmp_path: Path
) -> None:
    def alpha(path: Path) -> float:
        out = tmp_path / "out"
        assert run(path, *WIDE, "--scale", scale, "--out", out, *QUICK).exit_code == 0
        (label,) = json.loads((out / "agreement.json").read_bytes())["tasks"]["ratings"]["labels"].values()
        return float(label["krippendorff_alpha"])

    whole = alpha(table)
    found = rows_of(tmp_path / "out" / "disagreements.csv")
    page = Page((tmp_path / "out" / "details.html").read_text(encoding="utf-8"))
    rows = [line.split(",") for line in RAW4.splitlines()]
    differing = {unit: cells for unit, *cells in rows[1:] if len({*filter(None, cells)}) > 1}
    assert {row["record_uuid"] for row in found} == differing.keys()
    weights = [abs(float(row["influence"])) for row in found]
    assert weights == sorted(weights, reverse=True)
    assert sum(float(row["contribution"]) for row in found) == pytest.approx(1)
    entries = [text for attributes, text in page.all("li") if "data-weight" in attributes]
    for row, entry in zip(found, entries, strict=True):
        given = dict(zip(rows[0][1:], differing[row["record_uuid"]], strict=True))
        assert {name: row[f"vote of {name}"] for name in given} == given
        assert all(f"{name} {value}" in entry for name, value in given.items() if value)
        assert json.loads(row["values"]) == Counter(filter(None, given.values()))
        assert (row["task"], row["n_yes"], row["n_no"], row["posterior"]) == ("ratings", "", "", "")
        without = tmp_path / "without.csv"
        without.write_text(
            "\n".join(",".join(each) for each in rows if each[0] != row["record_uuid"]), encoding="utf-8"
        )
        assert float(row["influence"]) == pytest.approx(whole - alpha(without))


def test_the_report_has_the_figures_that_terminal_and_markdown_have(table: Path, tmp_path: Path) -> None:
    printed = run(table, *WIDE, "--scale", "ordinal", "--out", tmp_path / "out", *QUICK).stdout
    markdown, report = (
        (tmp_path / "out" / name).read_text(encoding="utf-8") for name in ("agreement.md", "details.html")
    )
    (label,) = json.loads((tmp_path / "out" / "agreement.json").read_bytes())["tasks"]["ratings"]["labels"].values()
    ends = label["intervals"]["krippendorff_alpha"]
    alpha = (
        f"{words.decimal(label['krippendorff_alpha'])} [{words.decimal(ends['low'])}, {words.decimal(ends['high'])}]"
    )
    text = Page(report).text
    assert alpha in text
    assert alpha in printed
    assert alpha in markdown.replace("\\", "")
    assert words.decimal(label["gwet_ac2"]) in text
    assert "value: its values (ordinal)" in text
    assert "weighted" in text


def test_the_json_is_what_the_schema_says_and_the_same_each_time(table: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert run(table, *WIDE, "--scale", "nominal", "--out", tmp_path / name, *QUICK).exit_code == 0
    text = (tmp_path / "a" / "agreement.json").read_bytes()
    assert text == (tmp_path / "b" / "agreement.json").read_bytes()
    jsonschema.validate(json.loads(text), json.loads(run("--schema", "agreement").stdout))
    found = json.loads(text)["tasks"]["ratings"]
    assert found["labels"]["value"]["krippendorff_alpha"] == pytest.approx(0.743, abs=0.0005)
    assert json.loads(text)["latest_response"] is None
    assert (found["weeks"], found["languages"], found["pairs"]) == ([], [], [])


def example_rows() -> list[dict[str, str]]:
    return [
        {
            "record_uuid": f"r{record:02d}",
            "annotator_id": name,
            "created_at": "2026-01-01T00:00:00+00:00",
            "language": "en",
            "task": "generation",
            **dict.fromkeys(("proper_action", "response_on_topic", "helpful", "incomplete", "unsafe_content"), "True"),
            "helpful": str((record * number) % 5 < 3),
            "incomplete": str((record + number) % 7 < 2),
        }
        for record in range(40)
        for number, name in enumerate(("anna", "ben", "carla"), start=1)
        if (record + number) % 4
    ]


def test_a_label_of_yes_and_no_has_the_very_figures_that_an_export_gives(tmp_path: Path) -> None:
    rows = example_rows()
    with (tmp_path / "generation.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS["generation"], restval="")
        writer.writeheader()
        writer.writerows(rows)
    ours = measure_agreement(tmp_path / "generation.csv", resamples=200).agreement.tasks["generation"]
    long = pandas.DataFrame(
        [
            {"item": row["record_uuid"], "who": row["annotator_id"], "q": label, "said": row[label]}
            for row in rows
            for label in ("helpful", "incomplete")
        ]
    )
    result = measure_agreement(long, unit="item", rater="who", value="said", label="q", resamples=200)
    theirs = result.agreement.tasks["ratings"]
    for label in ("helpful", "incomplete"):
        assert theirs.labels[label].model_dump_json() == ours.labels[label].model_dump_json()
    assert list(theirs.pairs) == [pair for pair in ours.pairs if pair.label in theirs.labels]
    assert not theirs.scaled_pairs


def test_labels_on_several_scales_stand_side_by_side(tmp_path: Path) -> None:
    rows = [
        {"item": f"u{unit:02d}", "who": who, "q": label, "said": said, "doc": f"d{unit // 3}"}
        for unit in range(30)
        for number, who in enumerate(("anna", "ben"))
        for label, said in (
            ("clear", str((unit + number) % 3 > 0)),
            ("tone", ("warm", "cold", "cool")[(unit * (1 + number)) % 3]),
            ("stars", str(1 + (unit + number) % 5)),
        )
    ]
    path = tmp_path / "long.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    words = ("--unit", "item", "--rater", "who", "--value", "said", "--label", "q", "--cluster", "doc")
    result = run(path, *words, "--scale", "stars=interval", "--out", tmp_path / "out", *QUICK)
    assert result.exit_code == 0, result.output
    assert "ratings: 30 units, 10 clusters, 180 ratings, 2 annotators" in result.stdout
    labels = rows_of(tmp_path / "out" / "labels.csv")
    assert [(row["label"], row["scale"]) for row in labels] == [
        ("clear", ""),
        ("stars", "interval"),
        ("tone", "nominal"),
    ]
    assert [bool(row["prevalence"]) for row in labels] == [True, False, False]
    told = json.loads((tmp_path / "out" / "agreement.json").read_bytes())["tasks"]["ratings"]
    alphas = [told["labels"][name]["krippendorff_alpha"] for name in ("clear", "stars", "tone")]
    assert told["macro_alpha"] == pytest.approx(sum(alphas) / 3)
    assert (told["n_labels_with_alpha"], told["macro_interval"], told["n_records"]) == (3, None, 10)
    again = measure_agreement(
        path,
        unit="item",
        rater="who",
        value="said",
        label="q",
        cluster="doc",
        scale={"stars": "interval"},
        resamples=100,
    )
    assert again.to_json() == (tmp_path / "out" / "agreement.json").read_text(encoding="utf-8")
    frame = again.to_pandas("scaled_pairs")
    assert frame["weighted_kappa"].dtype == "Float64"
    assert "stars" in again._repr_html_()


def test_the_gate_looks_at_anybodys_labels_too(table: Path, tmp_path: Path) -> None:
    words = (table, *WIDE, "--scale", "nominal", "--out", tmp_path / "out", *QUICK, "--fail-under", "0.7")
    assert run(*words, "--on", "point", "--fail-label", "value").exit_code == 0
    result = run(*words)
    assert result.exit_code == 1
    assert "Below 0.7: ratings value: the lower end of α's interval is" in result.stderr
    result = run(tmp_path, "--fail-under", "0.7", "--fail-label", "value")
    assert result.exit_code == 2
    assert "Invalid value for '--fail-label'" in result.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("--unit", "item", "--rater-columns", "*"),
            "has no column `item`. Its columns are `unit`, `a`, `b`, `c`, `d`.",
        ),
        (WIDE, "`value` has numbers (1, 2, 3, 4, 5)"),
        ((*WIDE, "--scale", "vague"), "`scale` is 'vague'; choose boolean, nominal, ordinal or interval."),
        ((*WIDE, "--scale", "tone=nominal"), "There is no label `tone`. There are value."),
        ((*WIDE, "--scale", "ordinal", "--order", "1,2"), "cells or rows cannot be used"),
        ((*WIDE, "--scale", "boolean", "--order", "1,2,3"), "the order names two words"),
        ((*WIDE, "--scale", "nominal", "--judge", "x.jsonl"), "belong to exports of citejury"),
    ],
)
def test_what_is_wrong_is_said_in_a_line_and_nothing_is_written(
    table: Path, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    result = run(table, *words, "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert told in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_no_export_says_how_ratings_of_others_are_read(table: Path) -> None:
    result = run(table)
    assert result.exit_code == 1
    assert "--unit" in result.stderr


def test_python_says_which_option_there_is_not(table: Path) -> None:
    options: dict[str, Any] = {"units": "unit"}
    with pytest.raises(InputError, match="`units` is no option of ratings; there are unit, rater, value"):
        measure_agreement(table, **options)


def test_the_example_of_the_readme_prints_what_it_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    section = (ROOT / "exports/README.md").read_text(encoding="utf-8").split("### Ratings of any other program")[1]
    shell, shown, python, of_results, found = (part.split("\n", 1)[1] for part in section.split("```")[1:10:2])
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for typed, wanted in ((shell, shown), (of_results, found)):
        done = subprocess.run(
            ["bash", "-euc", typed],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=True,
        )
        assert wanted in done.stdout
    exec(python, {})
    assert "interval" in capsys.readouterr().out

"""A judge against the jury: confusion, kappa, calibration and coverage, by hand, against an oracle, and at the end."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import settings as run_settings
from hypothesis import strategies as st

from exports.cli import main
from exports.reading.judgements import BAD_LINES_TOLD, read_judges
from exports.report.judge_page import conclusion, left_out_sentences
from exports.statistics.alt_test import AltTest
from exports.statistics.judge import JudgedUnits, calibrate, confusion, measure_judge, measure_judges
from pipeline.core.errors import BadRowsError, InputError
from tests.exports.report.test_agreement_command import write_export
from tests.support import oracles
from tests.support.agreement_data import Row, ratings_of
from tests.support.report_data import HOSTILE, drawn_ratings


def votes(record: str, *helpful: int) -> list[Row]:
    """One unit: annotators a, b, c … in order, each with an answer to `helpful` alone; -1 is none."""
    return [Row(record, name, (1, 1, value, 0, 0)) for name, value in zip("abcd", helpful, strict=False)]


def judged(answers: Mapping[str, float], **statuses: int) -> JudgedUnits:
    """A judge who says yes from .5 on, by record and probability."""
    labels = {(record, ""): {"helpful": (said >= 0.5, said)} for record, said in answers.items()}
    return JudgedUnits(labels, statuses, {})


# Jury: r1 yes, r2 yes (2:1), r3 no, r4 no, r5 ties, r6 one voice: yes. The judge says .9, .4, .2, .7, .8, 1.
JURY = [
    *votes("r1", 1, 1, 1),
    *votes("r2", 1, 0, 1),
    *votes("r3", 0, 0, 0),
    *votes("r4", 0, 0, 1),
    *votes("r5", 1, 0),
    *votes("r6", 1),
]
SAID = {"r1": 0.9, "r2": 0.4, "r3": 0.2, "r4": 0.7, "r5": 0.8, "r6": 1.0}


def test_six_units_by_hand_and_no_auc_without_both_values_nor_anything_without_units() -> None:
    found = measure_judge(ratings_of(JURY), judged(SAID), 100, 0).labels["helpful"]
    cells, calibration = found.confusion, found.calibration
    # tp r1 r6, fp r4, fn r2, tn r3; the tie of r5 is left out.
    assert (cells.tp, cells.fp, cells.fn, cells.tn) == (2, 1, 1, 1)
    assert (found.n_judged, found.n_compared, found.n_ties, found.n_without_votes) == (6, 5, 1, 0)
    assert (cells.precision, cells.recall, cells.f1, cells.accuracy) == (2 / 3, 2 / 3, 2 / 3, 3 / 5)
    # p_o = 3/5, p_e = (3·3 + 2·2)/25 = 13/25, κ = (15 − 13)/(25 − 13)
    assert cells.cohen_kappa == pytest.approx(2 / 12)
    assert (found.interval, found.refused_interval) == (None, "few_units")
    # Distances: r1 .1, r2 .6, r3 .2, r4 .7, r6 0.
    assert calibration.brier == pytest.approx((0.01 + 0.36 + 0.04 + 0.49 + 0) / 5)
    # Bins: [.2, .3) r3, [.4, .5) r2, [.7, .8) r4, [.9, 1] r1 and r6 with mean .95 and share 1.
    assert [each.n for each in calibration.bins] == [0, 0, 1, 0, 1, 0, 0, 1, 0, 2]
    assert calibration.ece == pytest.approx((0.2 + 0.6 + 0.7 + 2 * 0.05) / 5)
    # Yes: .9 .4 1; no: .2 .7. Of six pairs five are in order: .4 against .7 is not.
    assert calibration.auc == pytest.approx(5 / 6)
    first, last = calibration.bins[0], calibration.bins[9]
    assert (first.mean_p_yes, first.share_yes, last.mean_p_yes, last.share_yes) == (None, None, pytest.approx(0.95), 1)
    # b: r1 yes, r2 r3 r4 r5 no; the judge says yes to r1, r4 and r5.
    by_annotator = {each.annotator: list(each.confusion.model_dump().values())[:4] for each in found.annotators}
    assert list(by_annotator) == ["a", "b", "c"]
    assert (by_annotator["b"], sum(by_annotator["c"])) == ([1, 2, 0, 2], 4)
    constant = calibrate(np.array([0.2, 0.8]), np.array([True, True]))
    assert (constant.auc, constant.undefined) == (None, {"auc": "jury_is_constant"})
    nothing = calibrate(np.empty(0), np.empty(0, dtype=np.bool_))
    assert (nothing.brier, nothing.ece, nothing.auc) == (None, None, None)
    assert nothing.undefined == dict.fromkeys(("brier", "ece", "auc"), "no_compared_units")


@pytest.mark.parametrize(
    ("cells", "undefined"),
    [
        ((0, 0, 0, 0), dict.fromkeys(("precision", "recall", "f1", "accuracy", "cohen_kappa"), "no_compared_units")),
        ((0, 0, 2, 3), {"precision": "judge_never_says_yes"}),
        ((0, 2, 0, 3), {"recall": "jury_never_says_yes"}),
        (
            (0, 0, 0, 5),
            {
                "precision": "judge_never_says_yes",
                "recall": "jury_never_says_yes",
                "f1": "nobody_says_yes",
                "cohen_kappa": "constant_both_raters",
            },
        ),
        ((5, 0, 0, 0), {"cohen_kappa": "constant_both_raters"}),
    ],
)
def test_what_is_undefined_has_its_reason(cells: tuple[int, int, int, int], undefined: dict[str, str]) -> None:
    found = confusion(*cells)
    assert found.undefined == undefined
    assert {name for name, value in found.model_dump().items() if value is None} == {*undefined}


@run_settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 10).map(lambda tenths: tenths / 10), st.booleans(), st.booleans()), min_size=1)
)
def test_every_figure_is_that_of_scikit_learn(units: list[tuple[float, bool, bool]]) -> None:
    stated = np.array([each[0] for each in units])
    judge, truth = (np.array([each[place] for each in units]) for place in (1, 2))
    tn, fp, fn, tp = oracles.metrics.confusion_matrix(truth, judge, labels=[False, True]).ravel().tolist()
    found, calibration = confusion(tp, fp, fn, tn), calibrate(stated, truth)
    expected = {
        "precision": oracles.metrics.precision_score(truth, judge, zero_division=np.nan),
        "recall": oracles.metrics.recall_score(truth, judge, zero_division=np.nan),
        "f1": oracles.metrics.f1_score(truth, judge, zero_division=np.nan),
        "accuracy": oracles.metrics.accuracy_score(truth, judge),
    }
    if "cohen_kappa" not in found.undefined:
        expected["cohen_kappa"] = oracles.metrics.cohen_kappa_score(truth, judge)
    for name, value in expected.items():
        assert getattr(found, name) is None if math.isnan(value) else getattr(found, name) == pytest.approx(value)
    assert calibration.brier == pytest.approx(float(np.mean((stated - truth) ** 2)))
    if len(set(truth.tolist())) == 2:
        assert calibration.auc == pytest.approx(oracles.metrics.roc_auc_score(truth, stated))
        assert calibration.brier == pytest.approx(oracles.metrics.brier_score_loss(truth, stated))
    assert sum(each.n for each in calibration.bins) == len(units)
    assert all(
        each.n == 0 or each.low - 1e-9 <= (each.mean_p_yes or 0) <= each.high + 1e-9 for each in calibration.bins
    )


def test_kappa_has_an_interval_that_holds_it_and_depends_on_records_alone() -> None:
    ratings = drawn_ratings("retrieval", n_records=60)
    random = np.random.default_rng(1)
    labels = {
        (ratings.records[record], "c1"): {"topically_relevant": (bool(said > 0.5), float(said))}
        for record, said in zip(ratings.unit_records.tolist(), random.random(60), strict=True)
    }
    first, again = (measure_judge(ratings, JudgedUnits(labels, {}, {}), 200, 3) for _ in range(2))
    found = first.labels["topically_relevant"]
    assert list(first.labels) == ["topically_relevant"]
    assert found.interval
    assert found.interval.low < (found.confusion.cohen_kappa or 0) < found.interval.high
    assert first == again


def test_what_the_judge_leaves_out_is_counted_and_told() -> None:
    task = measure_judge(ratings_of(JURY), judged(SAID), 100, 0)
    assert "κ without an interval, since fewer than 20 units are compared: helpful." in list(left_out_sentences(task))
    nothing = measure_judge(ratings_of(votes("r1", 1, 0)), judged({"r1": 0.9}), 100, 0)
    assert nothing.labels["helpful"].interval is None
    assert not any("interval" in sentence for sentence in left_out_sentences(nothing))
    found = measure_judge(ratings_of(JURY), judged({"r1": 0.9, "r9": 0.1}, invalid_json=2), 100, 0)
    assert (found.n_units, found.n_judged, found.n_not_judged, found.n_unknown) == (6, 1, 5, 1)
    assert found.statuses == {"invalid_json": 2}
    labels = {("r1", ""): {"helpful": (True, 0.9)}, ("r2", ""): {}, ("r3", ""): {}}
    task = measure_judge(ratings_of(JURY), JudgedUnits(labels, {}, {}), 100, 0)
    assert (task.n_judged, task.labels["helpful"].n_judged, task.labels["helpful"].n_left_out) == (3, 1, 2)
    assert "Left out by the judge, as where it cannot tell: helpful 2." in list(left_out_sentences(task))
    judges = {"b": {"generation": judged(SAID)}, "a": {"retrieval": judged({"r1": 0.5}, http_error=2)}}
    assert [
        (each.model, list(each.tasks), each.other_tasks) for each in measure_judges([ratings_of(JURY)], judges, 100, 0)
    ] == [("a", [], {"retrieval": 3}), ("b", ["generation"], {})]


def response(record: str, name: str, helpful: bool) -> list[str]:
    labels = ["True", "True", str(helpful), str(not helpful), "False"]
    return ["a query", "an answer", *labels, "", record, name, "generation", "en", "2025-03-01T10:00:00+00:00"]


def line(record: str, value: bool = True, p_yes: float = 0.8, **changes: Any) -> dict[str, Any]:
    return {
        "record_uuid": record,
        "task": "generation",
        "chunk_id": None,
        "labels": {"helpful": {"value": value, "p_yes": p_yes}},
        "evidence": [],
        "status": "ok",
        "model": "gpt",
    } | changes


def write_lines(path: Path, lines: Sequence[dict[str, Any] | str]) -> Path:
    texts = (each if isinstance(each, str) else json.dumps(each) for each in lines)
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


def test_judges_are_told_apart_by_model_earlier_files_read_and_empty_ones_refused(
    tmp_path: Path,
) -> None:
    first = write_lines(tmp_path / "a.jsonl", [line("r1"), line("r2", model="grok"), line("r3", status="http_error")])
    nameless = {name: value for name, value in line("r4").items() if name != "model"}
    read = read_judges([first, write_lines(tmp_path / "b.jsonl", [line("r2"), nameless]), first])
    units = {
        name: sorted(record for record, _ in by_task["generation"].labels) for name, by_task in read.judges.items()
    }
    assert units == {"gpt": ["r1", "r2"], "grok": ["r2"], "b.jsonl": ["r4"]}
    assert read.judges["gpt"]["generation"].statuses == {"http_error": 1}
    assert [(file.file, file.lines, file.bad_lines) for file in read.files] == [("a.jsonl", 3, 0), ("b.jsonl", 2, 0)]
    assert read.remarks == []
    lines = [line("r1"), line("r2", p_yes=0.3, value=False)]
    now = read_judges([write_lines(tmp_path / "now.jsonl", lines)])
    earlier = [json.dumps(each).replace('"p_yes"', '"confidence"') for each in lines]
    assert read_judges([write_lines(tmp_path / "then.jsonl", earlier)]).judges == now.judges
    both = line("r1", labels={"helpful": {"value": True, "p_yes": 0.8, "confidence": 0.8}})
    assert read_judges([write_lines(tmp_path / "both.jsonl", [line("r2"), both])]).files[0].bad_lines == 1
    with pytest.raises(BadRowsError, match="holds no judgement; none of its 2 lines"):
        read_judges([write_lines(tmp_path / "j.jsonl", ["{}", "x"])])
    with pytest.raises(InputError, match="it is empty"):
        read_judges([write_lines(tmp_path / "empty.jsonl", [])])
    with pytest.raises(InputError, match="There is no file"):
        read_judges([tmp_path / "missing.jsonl"])


def test_bad_lines_are_counted_told_and_left_out(tmp_path: Path) -> None:
    lines = [
        line("r1"),
        "{",
        line("r1", value=False),
        line("r2", model=7),
        line("r3", labels={"wise": {"value": True, "p_yes": 1}}),
        line("r4", p_yes=1.5),
        line("r5", task="retrieval", labels={}),
        line("r6", labels={"\x1b[2J": 1}),
        *["[]"] * BAD_LINES_TOLD,
    ]
    read = read_judges([write_lines(tmp_path / "j.jsonl", lines)])
    assert read.files[0].bad_lines == 7 + BAD_LINES_TOLD
    assert list(read.judges["gpt"]["generation"].labels) == [("r1", "")]
    assert read.remarks[0].startswith(f"j.jsonl: {7 + BAD_LINES_TOLD} lines")
    for number, words in ((2, "not JSON"), (3, "second judgement"), (4, "`model`"), (5, "'wise'"), (7, "chunk_id")):
        assert words in next(remark for remark in read.remarks if remark.startswith(f"j.jsonl, line {number}:"))
    assert "\x1b" not in "".join(read.remarks)
    assert read.remarks[-1] == "j.jsonl: 7 more such lines."


def run(*words: object) -> Any:
    return CliRunner().invoke(main, ["exports", "results", *map(str, words), "--resamples", "100"])


def test_the_command_shows_the_judge_and_what_may_be_concluded_everywhere_and_escapes_its_name(tmp_path: Path) -> None:
    rows = [response(f"r{number:02d}", name, number % 3 > 0) for number in range(60) for name in ("anna", "ben", "cy")]
    export, out, name = write_export(tmp_path / "export", rows), tmp_path / "out", HOSTILE[0]
    lines: list[dict[str, Any] | str] = [
        line(f"r{number:02d}", number % 3 > 0 or number % 5 == 1, 0.9 if number % 3 else 0.2, model=name)
        for number in range(50)
    ]
    path = write_lines(tmp_path / "judge.jsonl", [*lines, line("unknown", model=name), "no judgement"])
    words = ("--judge", path, "--epsilon", "0.2")
    results = [run(export, "--out", tmp_path / folder, *words) for folder in ("out", "again")]
    assert [each.exit_code for each in results] == [0, 0], results[0].output
    found = json.loads((out / "agreement.json").read_text(encoding="utf-8"))
    assert (out / "agreement.json").read_bytes() == (tmp_path / "again" / "agreement.json").read_bytes()
    jsonschema.validate(
        found, json.loads(CliRunner().invoke(main, ["exports", "results", "--schema", "agreement"]).stdout)
    )
    task = found["judges"][0]["tasks"]["generation"]
    assert found["judge_files"][0]["bad_lines"] == 1
    assert (task["n_judged"], task["n_not_judged"], task["n_unknown"], list(task["labels"])) == (50, 10, 1, ["helpful"])
    label = task["labels"]["helpful"]
    assert label["interval"]["low"] <= label["confusion"]["cohen_kappa"]
    assert max(map(len, results[0].stdout.splitlines())) <= 80
    assert "50 of 60 units judged, 10 not." in results[0].stdout
    assert "judge.jsonl, line 52: not JSON" in results[0].stderr
    markdown, report = ((out / each).read_text(encoding="utf-8") for each in ("agreement.md", "details.html"))
    assert "## Judges against the jury" in markdown
    assert 'id="judges"' in report
    assert "reliability of the judge" in report
    assert not any(name in text for text in (markdown, report))
    test = AltTest.model_validate(label["alt_test"])
    assert test.epsilon == 0.2
    assert 0 <= (test.winning_rate or 0) <= 1
    assert 0 <= (test.advantage_probability or 0) <= 1
    places = (re.sub(r"\s+|\\", " ", text).replace("  ", " ") for text in (results[0].stdout, markdown, report))
    assert all(conclusion(test)[:40] in text for text in places)
    assert run(export, "--out", out, "--judge", path, "--epsilon", "1").exit_code == 2


def test_without_a_judge_nothing_is_said_of_one_and_of_a_missing_file_one_plain_line(tmp_path: Path) -> None:
    export, out = write_export(tmp_path / "export"), tmp_path / "out"
    refused = run(export, "--out", out, "--judge", tmp_path / "no.jsonl")
    assert (refused.exit_code, len(refused.stderr.splitlines()), out.exists()) == (1, 1, False)
    result = run(export, "--out", out)
    assert result.exit_code == 0
    assert not re.search(r"\bjudges?\b", result.stdout)
    assert not any("Judges" in (out / name).read_text(encoding="utf-8") for name in ("agreement.md", "details.html"))
    assert json.loads((out / "agreement.json").read_text(encoding="utf-8"))["judges"] == []

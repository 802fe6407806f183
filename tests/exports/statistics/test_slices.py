"""Agreement by round, week and language, and Holm's correction."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from exports.reading.read import export_files, read_tables
from exports.statistics.agreement import (
    measure_agreement,
    measure_task,
)
from exports.statistics.agreement_schema import TaskAgreement
from exports.statistics.distributions import holm
from tests.support import oracles
from tests.support.agreement_data import CASES, START, Row, ratings_of
from tests.support.places import NO_SHARED

EXPORT = CASES / "open" / "export_a"
RESAMPLES = 200


def task_of(*rows: Row) -> TaskAgreement:
    return measure_task(ratings_of(rows), RESAMPLES, 0)


@pytest.mark.skipif(not EXPORT.is_dir(), reason=NO_SHARED)
def test_weeks_and_languages_of_an_export() -> None:
    export = measure_agreement(read_tables(export_files([EXPORT])).tables, (), RESAMPLES).tasks
    expected: dict[str, Any] = json.loads((EXPORT / "expected.json").read_text(encoding="utf-8"))["tasks"]
    for task, figures in export.items():
        assert figures.rounds == ()
        for label, values in expected[task]["labels"].items():
            weeks = {week.name: week.labels[label] for week in figures.weeks if week.labels[label].n_pairable_items}
            reference = values["alpha_by_iso_week_of_last_response"]
            assert list(weeks) == sorted(name for name, week in reference.items() if week["n_pairable_items"])
            for name, found in weeks.items():
                alpha = reference[name]["alpha"]
                assert found.n_pairable_items == reference[name]["n_pairable_items"]
                assert found.krippendorff_alpha == (None if alpha is None else pytest.approx(alpha, abs=1e-9))
                assert ("krippendorff_alpha" in found.undefined) == (alpha is None)
        for parts in (figures.weeks, figures.languages):
            assert sum(part.n_units for part in parts) == figures.n_units
            for label, whole in figures.labels.items():
                assert sum(part.labels[label].n_pairable_items for part in parts) == whole.n_pairable_items
    # The drift of one annotator shows in their share of yes and in alpha.
    misleading = {week.name: week.labels["misleading"] for week in export["retrieval"].weeks}
    before, after = ([misleading[f"2025-W{number}"] for number in part] for part in ((10, 11, 12, 13), (14, 15)))
    assert max(week.positive_rates["carla"] for week in before) < 0.15
    assert min(week.positive_rates["carla"] for week in after) > 0.35
    assert max(week.positive_rates[name] for week in after for name in ("anna", "ben")) < 0.15
    assert min(week.krippendorff_alpha or 0.0 for week in before) > 0.45
    assert max(week.krippendorff_alpha or 0.0 for week in after) < 0.26


def test_alpha_of_each_week_is_krippendorffs_of_its_units() -> None:
    random = np.random.default_rng(5)
    marks = np.where(random.random((36, 3)) < 0.85, random.integers(0, 2, (36, 1)), random.integers(0, 2, (36, 3)))
    rows = [
        Row(f"r{unit:02}", f"a{rater}", (int(marks[unit, rater]),), at=START + timedelta(weeks=unit % 3))
        for unit in range(36)
        for rater in range(3)
        if (unit + rater) % 5
    ]
    expected = []
    for week in range(3):
        units = [[row.labels[0] for row in rows if row.record == f"r{unit:02}"] for unit in range(week, 36, 3)]
        table = np.array([own + [np.nan] * (3 - len(own)) for own in units])
        expected.append(oracles.krippendorff.alpha(reliability_data=table.T, level_of_measurement="nominal"))
    found = [week.labels["proper_action"].krippendorff_alpha for week in task_of(*rows).weeks]
    assert (found, len(set(expected))) == (pytest.approx(expected, abs=1e-9), 3)


def test_units_are_in_the_week_of_their_last_answer_in_each_round_and_in_their_language() -> None:
    # 5 January 2025 is the Sunday of week 1; in UTC the second answer falls on Monday, week 2.
    sunday = datetime(2025, 1, 5, 23, tzinfo=UTC)
    late = datetime.fromisoformat("2025-01-05T22:30:00-05:00")
    rows = [Row("r1", "anna", (1,), at=sunday), Row("r1", "ben", (0,), at=late), Row("r2", "anna", (1,), at=sunday)]
    weeks = task_of(*rows).weeks
    assert [(week.name, week.n_units) for week in weeks] == [("2025-W01", 1), ("2025-W02", 1)]
    found = weeks[1].labels["proper_action"]
    assert (found.n_pairable_items, found.positive_rates) == (1, {"anna": 1, "ben": 0})
    assert weeks[1].labels["helpful"].undefined["prevalence"] == "no_pairable_items"
    said = {"anna": ("pilot", 1, 0), "ben": ("pilot", 0, 0), "carla": ("main", 1, 1), "dora": ("main", 1, 1)}
    rows = [
        Row("r1", name, (answer,), round=part, at=START + timedelta(days=days))
        for name, (part, answer, days) in said.items()
    ]
    rounds = task_of(*rows, Row("r2", "anna", (1,))).rounds
    assert [(part.name, part.n_units, part.n_records) for part in rounds] == [("pilot", 1, 1), ("main", 1, 1)]
    assert [part.labels["proper_action"].percent_agreement for part in rounds] == [0, 1]
    rows = [Row(f"r{number}", "anna", (1,), language=code) for number, code in enumerate(["ja", "", "de", "und"])]
    assert [(part.name, part.n_units) for part in task_of(*rows).languages] == [("de", 1), ("ja", 1), ("und", 2)]


@pytest.mark.parametrize(
    "day", ["1969-12-28", "1969-12-29", "1970-01-01", "2020-12-31", "2021-01-03", "2021-01-04", "2026-12-31"]
)
def test_weeks_are_named_as_the_calendar_does(day: str) -> None:
    at = datetime.fromisoformat(day).replace(tzinfo=UTC)
    year, week, _ = at.isocalendar()
    assert [found.name for found in task_of(Row("r", "anna", (1,), at=at)).weeks] == [f"{year}-W{week:02d}"]


def test_holms_correction_by_hand() -> None:
    # .001 · 6, then .01 · 5 (and .01 · 4, which is not less), .04 · 3, .2 · 2 and .9 · 1.
    assert holm([0.04, 0.001, 0.2, 0.01, 0.01, 0.9]) == pytest.approx([0.12, 0.006, 0.4, 0.05, 0.05, 0.9])
    assert holm([]) == []

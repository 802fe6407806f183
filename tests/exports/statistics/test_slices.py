"""Agreement by round, week and language, its changes, rules between labels, overlap and what to mind."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import numpy as np
import pytest

from exports.reading.read import export_files, read_tables
from exports.statistics.agreement import (
    deal,
    deck_of,
    measure_agreement,
    measure_changes,
    measure_task,
    round_parts,
    split,
    step_between,
    week_parts,
)
from exports.statistics.agreement_schema import AlphaChange, TaskAgreement
from exports.statistics.distributions import holm
from exports.statistics.ratings import Ratings
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


def two_rounds(seed: int, errors: tuple[float, float], n_records: int = 60) -> Ratings:
    """Two annotators who err by chance, at one rate in the pilot and at another in the main round."""
    random = np.random.default_rng(seed)
    rows = []
    for number, (name, rate) in enumerate(zip(("pilot", "main"), errors, strict=True)):
        at = START + timedelta(weeks=number)
        for record in range(n_records):
            truth = random.random() < 0.5
            for annotator in ("anna", "ben"):
                answer = int(truth ^ (random.random() < rate))
                rows.append(Row(f"{name}{record}", annotator, (answer,), at=at, round=name))
    return ratings_of(rows)


def changes_of(ratings: Ratings, kind: Literal["round", "week"] = "round") -> tuple[AlphaChange, ...]:
    parts = split(ratings, round_parts(ratings) if kind == "round" else week_parts(ratings))
    return measure_changes(ratings, kind, parts, RESAMPLES, 0)


def test_a_planted_fall_of_alpha_is_found_between_rounds_and_between_weeks() -> None:
    figures = measure_task(two_rounds(1, (0.02, 0.3)), RESAMPLES, 0)
    before, after = (part.labels["proper_action"].krippendorff_alpha or 0 for part in figures.rounds)
    assert [(change.kind, change.before, change.after) for change in figures.changes] == [
        ("round", "pilot", "main"),
        ("week", "2025-W10", "2025-W11"),
    ]
    for change in figures.changes:
        assert change.difference == after - before < -0.5
        assert change.interval.low < change.difference < change.interval.high < 0
        assert change.p_value == change.p_holm == pytest.approx(0.001)


def test_where_nothing_changed_small_p_values_are_as_rare_as_they_should_be() -> None:
    p_values = [changes_of(two_rounds(seed, (0.15, 0.15), 25))[0].p_value for seed in range(40)]
    # Of 40 uniform values 2 are expected below .05; seven or more come once in 300 times, and the seeds are fixed.
    assert sum(p <= 0.05 for p in p_values) < 7
    assert sum(p <= 0.5 for p in p_values) > 10


def test_the_exchange_is_that_of_every_exchange_and_records_in_both_parts_swap_halves() -> None:
    # Five records, two early and three late: 10 ways to deal them. Their (no, yes): early (2,0), (0,2); late (1,1) ×3.
    # Observed: early alpha is 1, so wait for both: early n0 = n1 = 2, Σd = 0, alpha 1; late n0 = n1 = 3, Σd = 6,
    # alpha = 1 − 5·6/18 = −2/3; difference −5/3. Early records drawn from all five:
    #   both agreeing (1 way): early 1, late −2/3: as large.       two disagreeing (3 ways): early n0 = n1 = 2, Σd = 4,
    #   alpha = 1 − 3·4/8 = −1/2; late (2,0), (0,2), (1,1): n0 = n1 = 3, Σd = 2, alpha 1 − 5·2/18 = 4/9; |17/18| < 5/3.
    #   one of each (6 ways): early (2,0), (1,1): n0 = 3, n1 = 1, Σd = 2, alpha = 1 − 3·2/6 = 0; late (0,2), (1,1)×2:
    #   n0 = 2, n1 = 4, Σd = 4, alpha = 1 − 5·4/16 = −1/4; 1/4 < 5/3.   So p is near 1/10.
    votes = {"a": ((0, 0), "one"), "b": ((1, 1), "one"), **{name: ((0, 1), "two") for name in "cde"}}
    rows = [
        Row(record, f"p{seat}", (answer,), round=part, at=START + timedelta(hours=part == "two"))
        for record, (answers, part) in votes.items()
        for seat, answer in enumerate(answers)
    ]
    (change,) = changes_of(ratings_of(rows))
    assert (change.difference, change.p_value) == (pytest.approx(-5 / 3), pytest.approx(0.1, abs=0.03))
    # Each record has a unit in both rounds, agreed early and disputed late or agreed in both. With 8 records that all
    # fall, only the two exchanges that keep or swap all of them are as large: p = 2/2⁸ on average, far below .05.
    rows = [
        Row(f"r{record}", f"p{seat}", (answer,), chunk=part, round=part, at=START + timedelta(days=part == "two"))
        for record in range(8)
        for seat in (0, 1)
        for part, answer in (("one", record % 2), ("two", seat))
    ]
    found = [change for change in changes_of(ratings_of(rows, "retrieval")) if change.label == "topically_relevant"]
    assert found[0].p_value == pytest.approx(2 / 256, abs=0.01)


def test_records_that_are_alike_are_dealt_together_with_the_same_outcome() -> None:
    parts = split(ratings := two_rounds(4, (0.1, 0.14), 400), round_parts(ratings))
    deck = deck_of(step_between(*parts))
    assert (deck.counts.sum(), len(deck.counts) < 5) == (800, True)
    dealt = deal(deck, 500, np.random.default_rng(0))
    assert (dealt <= deck.counts).all()
    one_by_one = deck._replace(counts=np.ones(800, dtype=np.int64), both=np.zeros(800, dtype=bool))
    apart = np.repeat(np.arange(len(deck.counts)), deck.counts)
    singly = deal(one_by_one, 500, np.random.default_rng(1))
    together = np.stack([singly[:, apart == kind].sum(axis=1) for kind in range(len(deck.counts))], axis=1)
    assert {*dealt.sum(axis=1), *singly.sum(axis=1)} == {400}
    assert dealt.mean(axis=0) == pytest.approx(together.mean(axis=0), abs=2)
    assert dealt.std(axis=0) == pytest.approx(together.std(axis=0), rel=0.15)


def test_parts_with_less_than_two_records_have_no_change_and_many_weeks_as_many_exchanges_as_needed() -> None:
    rows = [
        Row(f"r{number}", f"p{seat}", (seat,), round="one" if number else "two", at=START + timedelta(hours=number))
        for number in range(4)
        for seat in (0, 1)
    ]
    assert changes_of(ratings_of(rows)) == ()
    rows = [
        Row(f"{week}-{record}", f"p{seat}", (seat if week == 79 else record % 2,), at=START + timedelta(weeks=week))
        for week in range(80)
        for record in range(12)
        for seat in (0, 1)
    ]
    found = changes_of(ratings_of(rows), "week")
    assert (len(found), {change.p_value for change in found[:-1]}) == (79, {1})
    assert found[-1].p_value < 1 / 1000
    assert found[-1].p_holm < 0.05


def test_holms_correction_by_hand() -> None:
    # .001 · 6, then .01 · 5 (and .01 · 4, which is not less), .04 · 3, .2 · 2 and .9 · 1.
    assert holm([0.04, 0.001, 0.2, 0.01, 0.01, 0.9]) == pytest.approx([0.12, 0.006, 0.4, 0.05, 0.05, 0.9])
    assert holm([]) == []

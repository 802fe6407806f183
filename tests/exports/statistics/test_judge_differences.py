"""Two judges on the same units: by hand, against scipy, and how often chance alone tells them apart."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as run_settings
from hypothesis import strategies as st

from annotation.argilla.labels import LABELS
from exports.report.judge_page import difference_sentences
from exports.statistics.agreement_schema import JudgeDifference
from exports.statistics.exchange import exchange_p, n_draws, paired
from exports.statistics.judge import JudgedUnits, compare_judges
from exports.statistics.ratings import Ratings
from tests.exports.report.test_agreement_command import write_export
from tests.exports.statistics.test_agreement_judge import line, response, run, write_lines
from tests.support import oracles
from tests.support.agreement_data import ratings_of_matrix

LABEL = LABELS["generation"][0]
SEED = 20261123


def judged(ratings: Ratings, answers: np.ndarray) -> JudgedUnits:
    """A judge's answers to the units in their order: 1, 0, or -1 for none."""
    said = zip(ratings.unit_keys, answers.tolist(), strict=True)
    return JudgedUnits(
        {unit: {LABEL: (answer > 0, 0.9 if answer else 0.1)} for unit, answer in said if answer >= 0}, {}, {}
    )


def compared(jury: list[int], a: list[int], b: list[int], records: list[int] | None = None) -> JudgeDifference:
    """Judges a and b where three people say the same of each unit."""
    ratings = ratings_of_matrix(np.repeat(np.array(jury, dtype=np.float64)[:, np.newaxis], 3, axis=1), records)
    judges = {name: {ratings.task: judged(ratings, np.array(said))} for name, said in {"b": b, "a": a}.items()}
    (found,) = compare_judges([ratings], judges)
    return found


def test_two_judges_by_hand_by_whole_records_and_not_on_units_apart() -> None:
    # All say yes. a is right on all ten, b on the last three; b says nothing on the tenth.
    found = compared([1] * 10, [1] * 10, [0] * 6 + [1] * 3 + [-1])
    assert (found.model_a, found.model_b, found.n_units, found.n_differing) == ("a", "b", 9, 6)
    assert (found.agreement_a, found.agreement_b, found.difference) == (1.0, 3 / 9, pytest.approx(6 / 9))
    # Six records, all one way: 2 of 2⁶ exchanges are as far.
    assert found.p == found.p_holm == 2 / 2**6
    # Deviations from 2/3: six of 1/3, three of -2/3; their squares add up to 2. t(8) = 2.306.
    half = 2.306 * (9 / 8 * 2) ** 0.5 / 9
    assert found.interval == pytest.approx((6 / 9 - half, 1.0), abs=1e-4)
    assert found.differs
    # The same units in two records: nothing is shown by two of them.
    found = compared([1] * 10, [1] * 10, [0] * 6 + [1] * 4, [0] * 5 + [1] * 5)
    assert (found.n_records, found.n_differing, found.p, found.interval) == (2, 2, 0.5, None)
    assert list(difference_sentences([found])) == [f"No difference between judges is shown: {LABEL} (a, b: 0.60)."]
    ratings = ratings_of_matrix(np.ones((4, 2)))
    halves = {"a": np.array([1, 1, -1, -1]), "b": np.array([-1, -1, 1, 1])}
    judges = {name: {ratings.task: judged(ratings, said)} for name, said in halves.items()}
    assert compare_judges([ratings], judges) == compare_judges([], judges) == ()


def p_of(differences: np.ndarray) -> float:
    return exchange_p([paired(differences)], n_draws(1), 0)[0]


@run_settings(max_examples=60)
@given(st.integers(0, 30), st.integers(0, 30))
def test_of_single_units_p_is_that_of_the_exact_sign_test(ahead: int, behind: int) -> None:
    found, n = p_of(np.array([1] * ahead + [-1] * behind + [0] * 7)), ahead + behind
    expected = oracles.stats.binomtest(ahead, n).pvalue if n else 1.0
    if n >= 20:  # What is as far counts half, on either side
        expected -= oracles.stats.binom.pmf(ahead, n, 0.5) * (1 if ahead != behind else 0)
    assert found == pytest.approx(expected, abs=3e-10)


@run_settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(-4, 4), min_size=2, max_size=9))
def test_of_records_p_is_that_of_all_exchanges(sums: list[int]) -> None:
    def total(values: np.ndarray, axis: int) -> np.ndarray:
        return values.sum(axis=axis)

    flipped = oracles.stats.permutation_test((np.array(sums),), total, permutation_type="samples", n_resamples=np.inf)
    assert p_of(np.array(sums)) == pytest.approx(min(1.0, flipped.pvalue))


def test_many_records_are_told_without_a_step_and_equal_judges_hardly_ever_apart() -> None:
    sums = np.random.default_rng(1).choice([-1, 1], 2_000, p=[0.48, 0.52])
    assert p_of(np.append(sums, [1])) == pytest.approx(p_of(sums), abs=0.02)
    told, held = shares(60, 3, (0.2, 0.2), 100)
    assert told <= 0.1
    assert held >= 0.88
    assert shares(150, 2, (0.05, 0.25), 40)[0] >= 0.9


def shares(records: int, passages: int, errors: tuple[float, float], studies: int) -> tuple[float, float]:
    """Shares of studies that tell two judges apart, and of intervals that hold the difference.

    Each errs on whole records so often; half of these are records that are hard for both.
    """
    random = np.random.default_rng(SEED)
    ratings = ratings_of_matrix(np.ones((records * passages, 2)), np.repeat(np.arange(records), passages).tolist())
    told = held = intervals = 0
    for _ in range(studies):
        hard = random.random(records) < 0.5 * min(errors)
        judges = {}
        for name, error in zip("ab", errors, strict=True):
            wrong = hard | (random.random(records) < (error - 0.5 * min(errors)))
            judges[name] = {ratings.task: judged(ratings, ~np.repeat(wrong, passages) + 0)}
        (found,) = compare_judges([ratings], judges)
        told += found.differs
        if found.interval:
            intervals += 1
            held += found.interval[0] <= (errors[1] - errors[0]) * (1 - 0.5 * min(errors)) <= found.interval[1]
    return told / studies, held / max(intervals, 1)


@pytest.mark.soak
@pytest.mark.parametrize("errors", [(0.1, 0.1), (0.3, 0.3), (0.1, 0.2)])
@pytest.mark.parametrize(("records", "passages"), [(30, 1), (60, 1), (60, 5), (200, 2)])
def test_equal_judges_differ_in_one_study_of_twenty(records: int, passages: int, errors: tuple[float, float]) -> None:
    told, held = shares(records, passages, errors, 1_000)
    sys.stdout.write(f"told apart: {told:.3f}, interval holds: {held:.3f}\n")
    assert held >= 0.92
    assert told <= 0.05 + 2.8 * np.sqrt(0.05 * 0.95 / 1_000) or errors[0] != errors[1]


def test_two_judges_are_compared_everywhere(tmp_path: Path) -> None:
    rows = [response(f"r{number:02d}", name, number % 2 == 0) for number in range(40) for name in ("anna", "ben")]
    export, out = write_export(tmp_path / "export", rows), tmp_path / "out"
    good = [line(f"r{number:02d}", number % 2 == 0, 0.9 if number % 2 == 0 else 0.1) for number in range(40)]
    bad = [line(f"r{number:02d}", model="always") for number in range(40)]
    paths = [write_lines(tmp_path / name, lines) for name, lines in (("a.jsonl", good), ("b.jsonl", bad))]
    result = run(export, "--out", out, "--judge", paths[0], "--judge", paths[1])
    assert result.exit_code == 0, result.output
    (found,) = json.loads((out / "agreement.json").read_text(encoding="utf-8"))["judge_differences"]
    assert (found["model_a"], found["model_b"], found["difference"], found["differs"]) == ("always", "gpt", -0.5, True)
    words = "gpt agrees with the jury more often than always"
    texts = [result.stdout, *((out / name).read_text(encoding="utf-8") for name in ("agreement.md", "details.html"))]
    assert all(words in " ".join(text.split()) for text in texts)

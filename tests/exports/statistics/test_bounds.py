"""The interval of alpha with no disagreement, with little, and with a value that is hardly ever agreed on."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exports.report.methods import agreement_methods
from exports.report.words import Fitness, fitness, gate_failures
from exports.statistics.agreement import measure_agreement, measure_task
from exports.statistics.agreement_schema import LabelAgreement
from exports.statistics.resampling import alpha_support
from tests.support import oracles
from tests.support.agreement_data import matrix_of, ratings_of_matrix

YES, NO, SPLIT, ONE_YES = "111", "000", "110", "100"
RESAMPLES = 500
AT_LEAST: dict[Fitness, int] = {"unknown": 0, "unfit": 0, "open": 0, "tentative": 1, "fit": 2}


def label_of(units: list[str], a_record: int = 1, resamples: int = RESAMPLES) -> LabelAgreement:
    ratings = ratings_of_matrix(matrix_of(*units), (np.arange(len(units)) // a_record).tolist())
    return measure_task(ratings, resamples, 0).labels["proper_action"]


def alpha_low(found: LabelAgreement) -> float:
    return found.intervals["krippendorff_alpha"].low


def test_300_records_without_disagreement_are_fit_and_one_record_with_a_value_gives_no_interval() -> None:
    found = label_of([YES] * 141 + [NO] * 159)
    interval = found.intervals["krippendorff_alpha"]
    # 1 − .05^(1/300) = .009936 of the records, each with 2 of 3 ratings in disagreement at worst.
    expected = 1 - (1 - 0.05 ** (1 / 300)) * 2 / 3 / (2 * 423 * 477 / (900 * 899))
    assert interval.low == pytest.approx(expected, abs=1e-9)
    assert interval.low >= 0.98
    assert (interval.high, interval.method, found.krippendorff_alpha) == (1.0, "one-sided", 1.0)
    assert (found.p_below, found.standard_error, fitness(found)) == ({}, None, "fit")
    once, twice = (label_of([YES] * agreed + [ONE_YES] * 3 + [NO] * 60) for agreed in (1, 2))
    for name in ("krippendorff_alpha", "fleiss_kappa", "positive_agreement"):
        assert once.refused_intervals[name] == "too_few_rare_ratings", name
        assert name in twice.intervals
    assert (fitness(once), once.p_below) == ("unknown", {})
    assert {"percent_agreement", "gwet_ac1"} <= set(once.intervals)
    three, four = (label_of([YES] * agreed + [ONE_YES] * 3 + [NO] * 40) for agreed in (3, 4))
    assert three.refused_intervals["krippendorff_alpha"] == "too_few_rare_ratings"
    assert "krippendorff_alpha" in four.intervals


@pytest.mark.parametrize(
    ("units", "reasons"),
    [
        ([YES] * 141 + [NO] * 159, []),
        ([YES] * 4 + [NO] * 4, ["the lower end of α's interval is 0.6"]),
        ([YES, YES, NO, NO], ["all annotators agree on a value other than the most frequent"]),
        ([YES] * 300, ["α is undefined"]),
    ],
)
def test_the_gate_passes_300_records_without_disagreement_and_not_four(units: list[str], reasons: list[str]) -> None:
    agreement = measure_agreement([ratings_of_matrix(matrix_of(*units))], (), RESAMPLES)
    failures = gate_failures(agreement, 0.667, labels=("proper_action",))
    assert len(failures) == len(reasons)
    assert all(reason in failure for reason, failure in zip(reasons, failures, strict=True))
    assert ("one-sided Clopper–Pearson bound (1)" in agreement_methods(agreement)) == (
        len(set(units)) == 2 and len(units) > 4
    )


@pytest.mark.parametrize(("ratings", "worst"), [(2, 2 / 2), (3, 2 / 3), (4, (8 / 3) / 4), (5, 3 / 5)])
def test_what_records_could_hide_is_their_worst_split(ratings: int, worst: float) -> None:
    found = label_of(["1" * ratings] * 25 + ["0" * ratings] * 25)
    n = 50 * ratings
    assert alpha_low(found) == pytest.approx(1 - (1 - 0.05 ** (1 / 50)) * worst / (n / (2 * (n - 1))), abs=1e-9)


def test_a_record_of_five_passages_could_hide_five_and_one_split_passage_promises_no_more_than_none() -> None:
    alone, together = label_of([YES] * 75 + [NO] * 75), label_of([YES] * 75 + [NO] * 75, a_record=5)
    assert 1 - alpha_low(together) == pytest.approx((1 - alpha_low(alone)) * 4.804, rel=1e-3)
    found = label_of([YES] * 75 + [NO] * 74 + [ONE_YES], a_record=5)
    interval = found.intervals["krippendorff_alpha"]
    assert (interval.method, interval.conservative, found.p_below) == ("bounded", True, {})
    assert interval.low == pytest.approx(alpha_low(label_of([YES] * 75 + [NO] * 75, a_record=5)), abs=1e-4)


def most_hidden(sizes: list[float]) -> float:
    """The largest Σπw with Π(1 − π) ≥ .05, by trying every λ of a fine grid."""
    best = 0.0
    for level in np.linspace(0.001, max(sizes), 20_000):
        shares = np.clip(1 - level / np.array(sizes), 0, None)
        if np.prod(1 - shares) >= 0.05:
            best = max(best, float((shares * sizes).sum()))
    return best


@pytest.mark.parametrize("passages", [[1, 1, 1, 1], [1, 2, 3, 4, 5, 6], [1] * 30 + [20], [1] * 3 + [9] * 4])
def test_records_of_different_sizes_hide_the_most_that_one_study_in_twenty_would_not_show(passages: list[int]) -> None:
    records = np.repeat(np.arange(len(passages)), passages)
    ones = np.where(records % 2 == 0, 3, 0)
    support = alpha_support(3 - ones, ones, records, len(passages))
    n, n1 = 3 * len(records), int(ones.sum())
    hidden = most_hidden([2.0 * each for each in passages])
    assert support.least == pytest.approx(max(-1, 1 - hidden / n / (2 * n1 * (n - n1) / (n * (n - 1)))), abs=2e-3)


@pytest.mark.parametrize(("split", "records"), [(1, 40), (3, 60), (4, 200)])
def test_what_few_split_records_allow_is_the_bound_of_clopper_and_pearson(split: int, records: int) -> None:
    ones = np.array([1] * split + [3] * (records // 2) + [0] * (records - split - records // 2))
    support = alpha_support(3 - ones, ones, np.arange(records), records)
    n, n1 = 3 * records, int(ones.sum())
    share = oracles.stats.beta.ppf(0.975, split + 1, records - split)
    expected = 1 - share * records * 2 / n / (2 * n1 * (n - n1) / (n * (n - 1)))  # 2 of 3 ratings at worst
    assert support.least_of_few == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("split", "is_few"), [(4, True), (5, False)])
def test_fewer_than_five_split_records_are_few_and_make_an_interval_conservative(split: int, is_few: bool) -> None:
    found = label_of([YES] * 30 + [NO] * 30 + [SPLIT] * split).intervals["krippendorff_alpha"]
    assert found.conservative == is_few
    ones = np.array([1] * split + [3] * 100 + [0] * 100)
    support = alpha_support(3 - ones, ones, np.arange(len(ones)), len(ones))
    assert (support.split, support.least_of_few > -1) == (split, is_few)


@pytest.mark.parametrize("a_record", [1, 5])
@pytest.mark.parametrize("split", [1, 3])
@pytest.mark.parametrize("units", [60, 100, 300])
def test_who_saw_a_disagreement_is_never_judged_better_than_who_saw_none(units: int, split: int, a_record: int) -> None:
    none = label_of([YES] * (units // 2) + [NO] * (units // 2), a_record)
    some = label_of([YES] * (units // 2) + [NO] * (units // 2 - split) + [ONE_YES] * split, a_record)
    assert alpha_low(some) <= alpha_low(none) + 1e-9
    assert AT_LEAST[fitness(some)] <= AT_LEAST[fitness(none)]
    assert some.intervals["krippendorff_alpha"].high <= 1


@pytest.mark.parametrize("more", [1, 3, 5, 10, 20])
@pytest.mark.parametrize(("units", "split"), [(20, 1), (40, 2), (50, 3), (60, 4)])
def test_records_on_which_all_say_yes_take_no_tentative_verdict_away(units: int, split: int, more: int) -> None:
    """The least lower end for tentative conclusions, .667, stays reached; BCa of one split record went to .64."""
    study = [YES] * (units // 2 - split) + [NO] * (units // 2) + [ONE_YES] * split
    before, after = label_of(study), label_of(study + [YES] * more)
    assert AT_LEAST[fitness(after)] >= min(AT_LEAST[fitness(before)], AT_LEAST["tentative"])


studies = st.fixed_dictionaries(
    {YES: st.integers(0, 60), NO: st.integers(0, 60), SPLIT: st.integers(0, 12), ONE_YES: st.integers(0, 12)}
).filter(lambda counts: sum(counts.values()) > 1)


@settings(max_examples=15)
@given(studies, st.integers(1, 5), st.sampled_from([1, 2, 5]))
def test_more_agreement_never_turns_fit_into_anything_less(counts: dict[str, int], more: int, a_record: int) -> None:
    judged_no_worse_by_more_agreement(counts, more, a_record)


@pytest.mark.rare
@settings(max_examples=60)
@given(studies, st.integers(1, 5), st.sampled_from([1, 2, 5]))
def test_more_agreement_turns_no_fit_study_into_less(counts: dict[str, int], more: int, a_record: int) -> None:
    judged_no_worse_by_more_agreement(counts, more, a_record)


def judged_no_worse_by_more_agreement(counts: dict[str, int], more: int, a_record: int) -> None:
    units = [unit for unit, count in counts.items() for _ in range(count)]
    before = label_of(units, a_record)
    yes = sum(unit.count("1") for unit in units)
    # As many records on which all agree as have the share of yes of the study: whole copies, none of them split.
    after = label_of(units + [YES] * (more * yes) + [NO] * (more * (3 * len(units) - yes)), a_record)
    assert AT_LEAST[fitness(after)] >= AT_LEAST[fitness(before)]
    if before.krippendorff_alpha is not None:
        assert (after.krippendorff_alpha or -1) >= before.krippendorff_alpha - 1e-9
    # One agreeing record of each value more never turns fit into not shown.
    whole = units + [NO] * (-len(units) % a_record)
    if fitness(label_of(whole, a_record)) == "fit":
        assert fitness(label_of(whole + [YES] * a_record + [NO] * a_record, a_record)) in ("fit", "tentative")

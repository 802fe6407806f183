"""Results against scipy and plain loops, and what must not change them."""

from itertools import combinations, product
from random import Random
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exports.statistics.exchange import Held, Side, exchange_p, paired
from exports.statistics.rates import difference_ends, rate_ends
from exports.statistics.ratings import FloatArray
from exports.statistics.results import measure_results
from exports.statistics.results_schema import Difference, LabelResults, Results
from tests.support import oracles
from tests.support.drawn_studies import draw_votes, study_of_votes
from tests.support.study_data import Answer, study_of


def helpful(found: Results) -> LabelResults:
    return found.tasks["generation"].labels["helpful"]


def scipy_p(differences: FloatArray, resamples: float, seed: int = 0) -> float:
    found = oracles.stats.permutation_test(
        (differences,), np.sum, permutation_type="samples", n_resamples=resamples, vectorized=True,
        rng=np.random.default_rng(seed),
    )  # fmt: skip
    return float(found.pvalue)


def test_exchanges_of_one_answer_agree_with_scipys_permutations_where_they_are_counted_and_where_sampled() -> None:
    for seed in range(6):
        differences = np.random.default_rng(seed).integers(-3, 4, 11) / 3
        differences[0] = 1
        assert exchange_p([paired(differences)], 10_000, 0) == pytest.approx([scipy_p(differences, np.inf)], abs=1e-9)
    generator = np.random.default_rng(1)
    sums = [generator.normal(shift, 1, size) for shift, size in ((0.1, 40), (0.3, 40), (0.25, 150), (0.4, 64))]
    for p, differences in zip(exchange_p([paired(each) for each in sums], 60_000, 3), sums, strict=True):
        expected = scipy_p(differences, 60_000)
        assert p == pytest.approx(expected, abs=5 * (2 * expected / 60_000) ** 0.5 + 0.1 * expected)


@pytest.mark.parametrize("seed", range(4))
def test_exchanges_of_unequal_numbers_of_answers_are_all_ways_to_share_them_out(seed: int) -> None:
    generator = np.random.default_rng(seed)
    own = [generator.integers(0, 4, 4) / 3 for _ in range(3)]
    taken = [1, 2, 1]
    narratives = np.repeat(np.arange(3), 4)
    first = np.concatenate([np.arange(4) < count for count in taken])
    values = np.concatenate(
        [(each - each.mean()) * (1 / count + 1 / (4 - count)) for each, count in zip(own, taken, strict=True)]
    )
    nowhere = np.empty(0, np.int64)
    side = Side(nowhere, nowhere, nowhere, nowhere, narratives, first, np.ones(12), np.ones(3))
    observed = float(values[first].sum())
    sums = [
        sum(values[4 * n + place] for n, chosen in enumerate(each) for place in chosen)
        for each in product(*(combinations(range(4), count) for count in taken))
    ]
    tails = [np.mean(np.array(sums) >= observed - 1e-9), np.mean(np.array(sums) <= observed + 1e-9)]
    assert exchange_p([Held(values, observed, side)], 10_000, 0) == [pytest.approx(min(1, 2 * min(tails)), abs=1e-8)]


def test_a_p_counts_ties_is_never_0_and_that_of_no_difference_is_1() -> None:
    together = exchange_p([paired(np.random.default_rng(2).normal(0.2, 1, size)) for size in (30, 200, 31)], 20_000, 0)
    again = [exchange_p([paired(np.random.default_rng(2).normal(0.2, 1, 30))], 20_000, 0)[0]]
    assert together[0] == again[0]
    assert exchange_p([paired(np.zeros(3))], 20_000, 0) == [1]
    assert 0 < exchange_p([paired(np.ones(200))], 20_000, 0)[0] <= 1e-9
    thirds = np.array([1 / 3, 2 / 3, -1 / 3, 1 / 3, 1 / 3] * 5)
    whole = exchange_p([paired((thirds * 12).round())], 50_000, 0)
    assert exchange_p([paired(thirds)], 50_000, 0) == pytest.approx(whole, abs=1e-9)


def test_intervals_are_wilsons_without_clusters_and_of_differences_students_with_two_imagined() -> None:
    yes, ones = (np.arange(3000) < 400).astype(np.float64), np.ones(3000)
    wilson = oracles.stats.binomtest(400, 3000).proportion_ci(method="wilson")
    assert rate_ends(yes, ones, ones) == pytest.approx(wilson, abs=2e-4)
    assert rate_ends(5 * yes, 5 * ones, 5 * ones) == pytest.approx(wilson, abs=1e-3)
    differences = np.array([0.5, 0.0, 1.0, -0.5, 0.25])
    mean = differences.mean()
    squares = float(((differences - mean) ** 2).sum()) + 0.6
    half = oracles.stats.t.ppf(0.975, 4) * (squares / (6 * 7)) ** 0.5
    assert difference_ends(differences, np.ones(5), 1.0) == pytest.approx((mean - half, mean + half))
    narrower = difference_ends(differences, np.ones(5), 5.0)
    assert mean - half < narrower[0] < narrower[1] < mean + half


def random_answers(seed: int, n_narratives: int = 7) -> list[Answer]:
    """Up to two answers a model and narrative, in two languages, judged by the same two or by nobody."""
    generator = np.random.default_rng(seed)

    def votes() -> list[dict[str, int]]:
        missing = generator.random() < 0.3
        return [{"incomplete": 1} if missing else {"helpful": vote} for vote in generator.integers(0, 2, 2).tolist()]

    return [
        Answer(f"n{narrative}", model, {"generation": votes()}, language)
        for narrative, model, language in product(range(n_narratives), "abc", ("de", "en"))
        if generator.random() < 0.7
    ]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("weighted", [False, True])
def test_rates_and_differences_are_those_of_plain_loops(seed: int, weighted: bool) -> None:
    answers = random_answers(seed)
    study = study_of(answers)
    weights = {each.record: float(1 + (int(each.narrative[1:]) % 3 if weighted else 0)) for each in answers}
    if weighted:
        study = study._replace(probabilities={record: 1 / weight for record, weight in weights.items()})
    found = helpful(measure_results(study))
    for group in found.groups:
        model = group.by["model_name"]
        units = [(weights[each.record], value) for each in answers if each.model == model for value in _value(each)]
        assert group.n_units == len(units)
        assert group.rate == pytest.approx(sum(w * y for w, y in units) / sum(w for w, _ in units))
    for difference in found.differences:
        shared = []
        for narrative in sorted({each.narrative for each in answers}):
            means = [_values_of(answers, narrative, model) for model in (difference.a, difference.b)]
            if all(means):
                shared.append((1 + (int(narrative[1:]) % 3 if weighted else 0), *means))
        assert difference.n_narratives == len(shared)
        total = sum(weight for weight, *_ in shared)
        expected = sum(weight * (fmean(a) - fmean(b)) for weight, a, b in shared) / total
        assert difference.difference == pytest.approx(expected)
        assert difference.p == pytest.approx(_plain_p(shared), abs=1e-8)


def _value(answer: Answer) -> list[float]:
    votes = [vote["helpful"] for vote in answer.votes["generation"] if "helpful" in vote]
    return [fmean(votes)] if votes else []


def _values_of(answers: list[Answer], narrative: str, model: str) -> list[float]:
    return [v for each in answers if (each.narrative, each.model) == (narrative, model) for v in _value(each)]


def _plain_p(shared: list[tuple[int, list[float], list[float]]]) -> float:
    """Every way to share out each narrative's answers."""
    ways = []
    for weight, first, second in shared:
        own = first + second
        chosen = [set(each) for each in combinations(range(len(own)), len(first))]
        parts = [([own[i] for i in each], [own[i] for i in range(len(own)) if i not in each]) for each in chosen]
        ways.append([weight * (fmean(a) - fmean(b)) for a, b in parts])
    observed = sum(each[0] for each in ways)
    sums = [sum(each) for each in product(*ways)]
    return min(
        1.0, 2 * min(fmean(each >= observed - 1e-9 for each in sums), fmean(each <= observed + 1e-9 for each in sums))
    )


def _plain_holm(p_values: list[float]) -> list[float]:
    order = np.argsort(p_values)
    products = [(len(order) - rank) * p_values[place] for rank, place in enumerate(order)]
    return [min(1.0, max(products[: list(order).index(place) + 1])) for place in range(len(order))]


def test_corrections_are_holms_over_the_pairs_of_a_label_and_over_the_whole_report() -> None:
    rates = np.linspace(0.1, 0.7, 3)[:, np.newaxis].repeat(3, axis=1)
    study = study_of_votes({"generation": draw_votes(np.random.default_rng(3), rates, 40)})
    found = measure_results(study, by=("model_name", "language"), findings={})
    labels = found.tasks["generation"].labels
    families: dict[tuple[str, bool], list[Difference]] = {}
    for label in labels.values():
        for dimension in ((by, crossed) for by in ("model_name", "language") for crossed in (False, True)):
            own = [d for d in label.differences if (d.by, bool(d.within)) == dimension and d.p is not None]
            corrected = _plain_holm([d.p for d in own])
            assert [d.p_holm for d in own] == pytest.approx(corrected)
            families.setdefault(dimension, []).extend(own)
    compared = [d for family in families.values() for d in family]
    assert [d.p_all for d in compared] == pytest.approx(_plain_holm([d.p for d in compared]))
    assert [d.stands_out for d in compared] == [d.p_all <= 0.05 for d in compared]
    assert any(d.stands_out for label in labels.values() for d in label.differences)
    assert found.flips >= 40 * len(compared) / 0.05


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000).map(random_answers), st.sampled_from([0.5, 0.1, 1.0]), st.randoms(use_true_random=False))
def test_what_must_not_matter_does_not(answers: list[Answer], probability: float, random: Random) -> None:
    def measured(given: list[Answer]) -> LabelResults:
        return helpful(measure_results(study_of(given)))

    plain, study = measured(answers), study_of(answers)
    # A narrative that one group has alone changes no difference.
    assert measured([*answers, Answer("n99", "a", {"generation": [{"helpful": 1}]})]).differences == plain.differences
    # Swapping two groups turns the difference around.
    turned = measured([each._replace(model={"a": "c", "c": "a"}.get(each.model, each.model)) for each in answers])
    first, second = (next(d for d in each.differences if (d.a, d.b) == ("a", "c")) for each in (plain, turned))
    assert (second.p, second.n_narratives) == (first.p, first.n_narratives)
    assert (second.difference or 0) == pytest.approx(-(first.difference or 0))
    # Weights that are all the same, the order of rows and the names of narratives change nothing.
    weighted = study._replace(probabilities=dict.fromkeys(study.narratives, probability))
    one, other = (helpful(measure_results(each, by=("model_name", "language"))) for each in (study, weighted))
    assert numbers_of(one) == pytest.approx(numbers_of(other), abs=1e-9)
    assert measure_results(study_of(random.sample(answers, len(answers)))) == measure_results(study)
    renamed = [each._replace(narrative=f"n{6 - int(each.narrative[1:])}") for each in answers]
    assert numbers_of(measured(renamed)) == pytest.approx(numbers_of(plain), abs=1e-9)


def numbers_of(label: LabelResults) -> list[float]:
    intervals = [each.interval for each in (label, *label.groups, *label.differences)]
    found = [end for each in intervals if each is not None for end in (each.low, each.high)]
    found += [each.rate for each in (label, *label.groups) if each.rate is not None]
    return found + [each.p for each in label.differences if each.p is not None]

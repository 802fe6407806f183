"""How often an annotator is taken for a difference, and what is found; see exports/contracts/results.md."""

import sys

import numpy as np
import pytest

from exports.statistics.distributions import holm
from exports.statistics.exchange import Held, Side, exchange_p
from exports.statistics.ratings import FloatArray, IntArray
from exports.statistics.results import measure_results
from tests.support.annotator_simulation import DESIGNS, differences, drawn, false_reports
from tests.support.drawn_studies import draw_votes, study_of_votes

HARDEST = ("two of three on each model", "the lenient one on one model only")


def tell(*figures: object) -> None:
    sys.stdout.write("\t".join(f"{each:.3f}" if isinstance(each, float) else str(each) for each in figures) + "\n")


def test_in_samples_a_lenient_annotator_is_no_difference_between_models() -> None:
    assert max(false_reports(design, 60, 30) for design in HARDEST) <= 0.17


def test_other_people_on_either_model_leave_every_difference_open_and_say_why() -> None:
    generator = np.random.default_rng(0)
    study, _ = drawn(generator, DESIGNS["one on each model"](generator, 100), (0.3, 0.5))
    for found in differences(study):
        assert (found.p, found.interval, found.stands_out, found.undefined) == (None, None, False, "other_annotators")
        assert found.difference is not None


def test_what_annotators_differ_in_is_taken_off_and_told_and_nothing_where_all_judge_all() -> None:
    generator = np.random.default_rng(1)
    study, _ = drawn(generator, DESIGNS["two of three on each model"](generator, 400), (0.5, 0.5))
    for found in differences(study):
        assert found.leniency is not None
        assert found.rate_a is not None
        assert found.rate_b is not None
        assert found.difference == pytest.approx(found.rate_a - found.rate_b - found.leniency)
        # Half of the second model's votes are theirs, who turn .35 of no into yes.
        assert found.leniency == pytest.approx(-0.0875, abs=0.035)
    study, _ = drawn(generator, DESIGNS["all three judge everything"](generator, 40), (0.5, 0.5))
    assert [found.leniency for found in differences(study)] == [None] * 5


@pytest.mark.soak
@pytest.mark.parametrize("n_narratives", [60, 100])
@pytest.mark.parametrize("design", [name for name in DESIGNS if name != "one on each model"])
def test_equal_models_are_told_apart_by_no_design(design: str, n_narratives: int) -> None:
    found = false_reports(design, n_narratives, 600)
    tell("annotators", design, n_narratives, found)
    assert found <= 0.07


def is_found(design: str, rates: tuple[float, float], studies: int) -> float:
    """How often the one label that differs of five is found after Holm."""
    generator = np.random.default_rng(7)
    return float(np.mean([
        bool(differences(drawn(generator, DESIGNS[design](generator, 100), rates)[0])[0].stands_out)
        for _ in range(studies)
    ]))  # fmt: skip


@pytest.mark.soak
def test_from_5_to_25_percent_is_found_where_all_judge_all() -> None:
    found = is_found("all three judge everything", (0.05, 0.25), 2_000)
    tell("5 to 25 %", found)
    assert found >= 0.8


def told_leniency(design: str, rates: tuple[float, float], studies: int) -> float:
    """The same by the test that is told the true leniencies: votes less what each adds, exchanged as they are."""
    generator, found = np.random.default_rng(7), []
    for _ in range(studies):
        study, leniency = drawn(generator, DESIGNS[design](generator, 100), rates)
        (table,) = study.tables
        votes = table.values - leniency
        of_unit = np.stack([np.bincount(table.units, column) for column in votes.T], axis=1)
        of_unit /= np.bincount(table.units)[:, np.newaxis]
        held = [unpaired(of_unit[:, label], np.ones(100, np.int64), np.ones(100, np.int64)) for label in range(5)]
        found.append(holm(exchange_p(held, 10_000, 0))[0] <= 0.05)
    return float(np.mean(found))


def unpaired(values: FloatArray, first: IntArray, second: IntArray) -> Held:
    """So many answers of each group a narrative, those of the first before those of the second."""
    counts, n = first + second, len(first)
    narratives = np.repeat(np.arange(n), counts)
    rank = np.arange(len(narratives)) - np.repeat(np.cumsum(counts) - counts, counts)
    is_first = rank < first[narratives]
    own = values - (np.bincount(narratives, values) / counts)[narratives]
    own *= ((1 / first + 1 / second) / n)[narratives]
    nothing = np.empty(0, np.int64)
    side = Side(nothing, nothing, nothing, nothing, narratives, is_first, np.ones(len(own)), np.full(n, 1 / n))
    return Held(own, float(own[is_first].sum()), side)


@pytest.mark.soak
@pytest.mark.parametrize("design", [
    "two of three at random", "two of three on each model", "the lenient one on one model only",
    "the lenient one takes over half-way",
])  # fmt: skip
def test_from_30_to_50_percent_is_found_as_by_who_knows_the_leniencies(design: str) -> None:
    found, told = is_found(design, (0.3, 0.5), 600), told_leniency(design, (0.3, 0.5), 600)
    tell("30 to 50 %", design, found, told)
    assert found >= told - 0.05


def unequal_reports(answers: tuple[int, int], rate: float, n_narratives: int, studies: int) -> float:
    """How often any of five labels of equal groups is found, with answers of a narrative alike by .3."""
    generator, found = np.random.default_rng([*answers, n_narratives]), []
    likely = rate * 0.7 / 0.3, (1 - rate) * 0.7 / 0.3
    numbers = [np.full(n_narratives, each) for each in answers]
    for _ in range(studies):
        yes = generator.beta(*likely, (n_narratives, 1, 5))
        drawn_votes = generator.random((n_narratives, sum(answers), 5)) < yes
        held = [unpaired(drawn_votes[..., label].reshape(-1).astype(np.float64), *numbers) for label in range(5)]
        found.append(min(holm(exchange_p(held, 10_000, 0))) <= 0.05)
    return float(np.mean(found))


def test_in_a_sample_one_answer_against_ten_tells_no_equal_groups_apart() -> None:
    assert unequal_reports((1, 10), 0.05, 60, 60) <= 0.1


@pytest.mark.soak
@pytest.mark.parametrize("answers", [(1, 3), (1, 5), (1, 10), (2, 10)], ids=str)
@pytest.mark.parametrize("rate", [0.02, 0.05, 0.5])
def test_unequal_numbers_of_answers_tell_no_equal_groups_apart(answers: tuple[int, int], rate: float) -> None:
    for n_narratives in (60, 100, 200):
        found = unequal_reports(answers, rate, n_narratives, 600)
        tell("unequal", answers, rate, n_narratives, found)
        assert found <= 0.07


GROUPS = {  # The answers that a narrative has in each group, by the groups' values
    "arms": {("plain",): 1, ("pages",): 5},
    "months": {("2026-01",): 1, ("2026-02",): 3, ("2026-03",): 1, ("2026-04",): 10},
    "models by language": {("a", "de"): 1, ("a", "en"): 3, ("b", "de"): 5, ("b", "en"): 1},
}


def grouped_reports(groups: dict[tuple[str, ...], int], rate: float, n_narratives: int, studies: int) -> list[float]:
    """How often any of five labels of equal groups stands out: in each family of tests, then in any."""
    generator, found = np.random.default_rng([sum(groups.values()), n_narratives]), []
    names = [values for values, count in groups.items() for _ in range(count)]
    by = ("model_name", "language")[: len(names[0])]
    for _ in range(studies):
        votes = draw_votes(generator, np.full((len(names), 5), rate), n_narratives)
        study = study_of_votes({"generation": votes})
        told = {record: dict(zip(by, names[int(record.split("-")[1])], strict=True)) for record in study.provenance}
        successive = frozenset(by[:1] if ("2026-01",) in groups else ())
        results = measure_results(study._replace(provenance=told, successive=successive), findings={}, by=by)
        compared = [each for label in results.tasks["generation"].labels.values() for each in label.differences]
        families = sorted({(each.by, bool(each.within)) for each in compared})
        found.append([
            any(each.stands_out for each in compared if (each.by, bool(each.within)) == family) for family in families
        ])  # fmt: skip
    return [*np.mean(found, axis=0).tolist(), float(np.mean(np.any(found, axis=1)))]


@pytest.mark.soak
@pytest.mark.parametrize("rate", [0.05, 0.5])
@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
def test_equal_arms_months_and_crossed_groups_are_told_apart_rarely(
    groups: dict[tuple[str, ...], int], rate: float
) -> None:
    *families, anywhere = grouped_reports(groups, rate, 60, 250)
    tell("groups", *groups, rate, *families, anywhere)
    assert anywhere <= 0.07

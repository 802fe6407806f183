"""How often rates with a judge's help are wrong, how narrow they are, and how often a random part is called none.

The figures are in exports/contracts/results.md.
"""

import itertools
import sys

import numpy as np
import pytest

from exports.statistics.judge_help import chosen_by_score
from tests.support.judge_help_simulation import (
    Design,
    coverage,
    coverage_alone,
    refused,
    refused_by_score,
    sample_refused,
    sample_refused_by_score,
    studies,
    widths,
)

JUDGES = ("good", "biased", "erring", "guessing")
CELLS = [(30, 1, "narratives"), (100, 1, "narratives"), (200, 1, "narratives"), (30, 5, "narratives")]
CELLS += [(100, 5, "narratives"), (30, 5, "records"), (100, 5, "records"), (30, 5, "weights"), (100, 5, "weights")]


def tell(*figures: object) -> None:
    """Figures of a simulation, as `pytest -s` shows them."""
    sys.stdout.write("\t".join(f"{each:.3f}" if isinstance(each, float) else str(each) for each in figures) + "\n")


@pytest.mark.parametrize(
    "design",
    [
        Design(60, 1, 0.4, "biased"),
        Design(40, 5, 0.3, "good", "narratives"),
        Design(40, 5, 0.3, "overconfident", "records"),
        Design(40, 1, 0.05, "erring"),
        Design(40, 5, 0.3, "good", "weights"),
    ],
    ids=lambda design: f"{design.judge}-{design.sampling}",
)
def test_a_sample_of_intervals_with_the_judges_help_covers_the_truth_and_is_narrower(design: Design) -> None:
    found = studies(design, 250)
    own = widths(found)
    assert 0.91 <= coverage(found) <= 0.995
    assert own.max() <= 1.02 + 1e-9
    assert own.mean() < 0.95
    assert all(high > low for low, high in (each.powered.ends for each in found))


@pytest.mark.parametrize("judge", ["guessing", "blind", "contrary"])
def test_a_judge_that_knows_nothing_makes_no_interval_wider_or_wrong(judge: str) -> None:
    found = studies(Design(60, 1, 0.3, judge), 200)
    assert widths(found).max() <= 1.02 + 1e-9
    assert 0.9 <= coverage(found) <= 0.99


@pytest.mark.soak
@pytest.mark.parametrize(("labelled", "units", "sampling"), CELLS)
@pytest.mark.parametrize("rate", [0.05, 0.5])
def test_intervals_with_the_judges_help_cover_the_truth(labelled: int, units: int, sampling: str, rate: float) -> None:
    for judge in JUDGES:
        found = studies(Design(labelled, units, rate, judge, sampling), 1000)
        own, alone = widths(found), coverage_alone(found)
        correlation = sum(each.correlation for each in found) / len(found)
        tell(judge, labelled, units, sampling, rate, coverage(found), alone, float(own.mean()), correlation)
        # Where people's intervals cover more than they must, those with the judge's help do too.
        assert 0.92 <= coverage(found) <= max(0.98, alone) + 0.012
        assert own.max() <= 1.02 + 1e-9
        if correlation >= 0.6 and sampling == "narratives" and rate == 0.5:
            assert own.mean() <= 0.85


@pytest.mark.soak
@pytest.mark.parametrize("spread", ["strong", "weak"])
@pytest.mark.parametrize("units", [1, 5])
def test_intervals_cover_whatever_narratives_share(spread: str, units: int) -> None:
    for judge in JUDGES:
        found = studies(Design(60, units, 0.2, judge, "narratives", spread), 1000)
        tell(judge, spread, units, coverage(found), float(widths(found).mean()))
        assert 0.92 <= coverage(found) <= 0.985


@pytest.mark.rare
def test_a_sample_of_random_parts_is_called_random_and_of_chosen_ones_seen() -> None:
    assert refused(60, "narratives", 0.3, 40) <= 0.05
    assert refused(150, "records", 0.5, 5, odds=6.0) >= 0.8
    assert sample_refused(200, 60) <= 0.02
    assert sample_refused(400, 10, wrong=True) >= 0.8
    assert refused_by_score(60, "narratives", 0.2, 20) <= 0.05
    assert refused_by_score(100, "records", 0.2, 20, "erring", 0.05) <= 0.05
    assert (refused_by_score(100, "top", 0.1, 5), refused_by_score(100, "unsure", 0.1, 5)) == (1, 1)
    assert sample_refused_by_score(30, 40) <= 0.05
    assert sample_refused_by_score(400, 10, wrong=True) >= 0.8


@pytest.mark.soak
@pytest.mark.parametrize("sampling", ["narratives", "records", "halves"])
@pytest.mark.parametrize("share", [0.1, 0.3])
def test_a_random_part_is_rarely_called_none(sampling: str, share: float) -> None:
    for n_narratives in (100, 300):
        found = refused(n_narratives, sampling, share, 400)
        seen = refused(n_narratives, sampling, share, 40, odds=3.0)
        tell("refused", n_narratives, sampling, share, found, "three times as often", seen)
        assert found <= 0.01


@pytest.mark.soak
def test_a_sample_with_its_probabilities_is_rarely_called_none_or_chosen_by_score() -> None:
    for n_narratives in (200, 1000):
        found, seen = sample_refused(n_narratives, 500), sample_refused(n_narratives, 100, wrong=True)
        tell("sample", n_narratives, found, "wrong", seen)
        assert found <= 0.01
        assert seen >= 0.9
    for labelled, judge in itertools.product((30, 100), ("good", "erring", "overconfident")):
        found = sample_refused_by_score(labelled, 400, judge)
        tell("sample by score", labelled, judge, found)
        assert found <= 0.01


@pytest.mark.parametrize("first", [True, False])
def test_labels_on_the_first_passages_of_records_only_are_seen_by_their_scores(first: bool) -> None:
    generator = np.random.default_rng(1)
    relevant = generator.random((300, 10)) < np.linspace(0.9, 0.1, 10)
    p_yes = np.where(relevant, 0.8, 0.2) + generator.normal(0, 0.05, relevant.shape)
    labelled = np.zeros(relevant.shape, np.bool_)
    for record in generator.permutation(300)[:60]:
        labelled[record, np.arange(3) if first else generator.permutation(10)[:3]] = True
    records = np.repeat(np.arange(300), 10)
    found = chosen_by_score(records, records, labelled.ravel(), p_yes.reshape(-1, 1), 1)
    assert (found is not None) == first
    assert found is None or (found.label, found.by_certainty) == (0, False)
    assert found is None or found.share > 0.6


@pytest.mark.soak
@pytest.mark.parametrize("sampling", ["narratives", "records", "halves"])
@pytest.mark.parametrize("judge", ["good", "erring", "overconfident"])
def test_a_random_part_is_rarely_called_chosen_by_score(sampling: str, judge: str) -> None:
    found = [
        refused_by_score(100, sampling, share, 50, judge, rate, units)
        for share in (0.1, 0.3)
        for rate in (0.05, 0.5)
        for units in (1, 3)
    ]
    tell("by score", sampling, judge, sum(found) / len(found))
    assert sum(found) / len(found) <= 0.01


@pytest.mark.soak
@pytest.mark.parametrize(
    ("sampling", "judge"),
    [*itertools.product(("top", "unsure"), ("good", "biased", "overconfident")), ("top", "erring")],
)
def test_a_part_chosen_by_score_is_seen(sampling: str, judge: str) -> None:
    for rate in (0.05, 0.5):
        found = refused_by_score(100, sampling, 0.1, 20, judge, rate)
        tell("by score", sampling, judge, rate, found)
        assert found >= 0.95

"""Our figures against four libraries that compute some of them, on data drawn at random."""

import warnings

import numpy as np
import pytest

from exports.statistics.agreement import measure_figures
from exports.statistics.agreement_schema import LabelAgreement, PairAgreement
from exports.statistics.ratings import FloatArray
from tests.support.agreement_data import ratings_of_matrix

FEW_RESAMPLES = 20
DRAWS = [
    pytest.param(seed, n_units, n_annotators, missing, id=f"{n_units}x{n_annotators}-{missing:.0%}-missing-{seed}")
    for n_units, n_annotators in ((25, 2), (40, 3), (200, 5))
    for missing in (0.0, 0.4)
    for seed in range(3)
]


def draw(seed: int, n_units: int, n_annotators: int, missing: float) -> FloatArray:
    """Units × annotators: a truth with a share of yes of its own, errors that differ by annotator, gaps at random."""
    random = np.random.default_rng(seed)
    truth = random.random((n_units, 1)) < random.uniform(0.2, 0.8)
    wrong = random.random((n_units, n_annotators)) < random.uniform(0.05, 0.35, n_annotators)
    matrix = (truth ^ wrong).astype(np.float64)
    matrix[random.random(matrix.shape) < missing] = np.nan
    return matrix


def measured(matrix: FloatArray) -> LabelAgreement:
    return measure_figures(ratings_of_matrix(matrix), FEW_RESAMPLES, 0).labels["proper_action"]


def measured_pairs(matrix: FloatArray) -> list[PairAgreement]:
    pairs = measure_figures(ratings_of_matrix(matrix), FEW_RESAMPLES, 0).pairs
    return [pair for pair in pairs if pair.label == "proper_action"]


@pytest.mark.parametrize(("seed", "n_units", "n_annotators", "missing"), DRAWS)
def test_alpha_is_that_of_krippendorff(seed: int, n_units: int, n_annotators: int, missing: float) -> None:
    import krippendorff

    matrix = draw(seed, n_units, n_annotators, missing)
    expected = krippendorff.alpha(reliability_data=matrix.T, level_of_measurement="nominal")
    assert measured(matrix).krippendorff_alpha == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("seed", "n_units", "n_annotators", "missing"), DRAWS)
def test_alpha_is_that_of_nltk(seed: int, n_units: int, n_annotators: int, missing: float) -> None:
    from nltk.metrics.agreement import AnnotationTask

    matrix = draw(seed, n_units, n_annotators, missing)
    votes = [(str(seat), str(unit), int(value)) for (unit, seat), value in np.ndenumerate(matrix) if value == value]
    assert measured(matrix).krippendorff_alpha == pytest.approx(AnnotationTask(data=votes).alpha(), abs=1e-9)


@pytest.mark.parametrize(("seed", "n_units", "n_annotators", "missing"), DRAWS)
def test_fleiss_kappa_is_that_of_statsmodels_where_nothing_is_missing(
    seed: int, n_units: int, n_annotators: int, missing: float
) -> None:
    from statsmodels.stats.inter_rater import fleiss_kappa

    matrix = draw(seed, n_units, n_annotators, missing)
    whole = matrix[~np.isnan(matrix).any(axis=1)]
    table = np.stack([(whole == 0).sum(axis=1), (whole == 1).sum(axis=1)], axis=1)
    found = measured(whole)
    assert found.fleiss_kappa == pytest.approx(fleiss_kappa(table, method="fleiss"), abs=1e-9)
    assert found.brennan_prediger == pytest.approx(fleiss_kappa(table, method="randolph"), abs=1e-9)


@pytest.mark.parametrize(("seed", "n_units", "n_annotators", "missing"), DRAWS)
def test_pairs_are_those_of_scikit_learn(seed: int, n_units: int, n_annotators: int, missing: float) -> None:
    from sklearn.metrics import cohen_kappa_score, matthews_corrcoef

    matrix = draw(seed, n_units, n_annotators, missing)
    pairs = measured_pairs(matrix)
    assert len(pairs) == n_annotators * (n_annotators - 1) // 2
    for pair in pairs:
        two = matrix[:, [int(pair.rater_a[1:]), int(pair.rater_b[1:])]]
        shared = two[~np.isnan(two).any(axis=1)]
        assert pair.n_shared == len(shared)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kappa = float(cohen_kappa_score(*shared.T))
        assert pair.cohen_kappa == (None if np.isnan(kappa) else pytest.approx(kappa, abs=1e-9))
        if pair.mcc is None:
            assert min(len(set(column)) for column in shared.T) == 1
        else:
            assert pair.mcc == pytest.approx(matthews_corrcoef(*shared.T), abs=1e-9)

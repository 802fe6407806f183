"""Our figures against those printed in publications, those of R's irrCAC and those of four libraries."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nltk.metrics.agreement import AnnotationTask

from exports.statistics.agreement import TaskFigures, measure_figures
from exports.statistics.agreement_schema import LabelAgreement
from exports.statistics.ratings import FloatArray, Ratings
from tests.support import oracles
from tests.support.agreement_data import CASES, SINGLE_LABEL, expected_of_case, ratings_of_case, ratings_of_matrix
from tests.support.places import NO_SHARED

PRINTED = {
    "scott_pi": "fleiss_kappa",
    "fleiss_recal": "fleiss_kappa",
    "fleiss_irr": "fleiss_kappa",
    "fixed_marginal_kappa": "fleiss_kappa",
    "category_kappa_irr_detail": "fleiss_kappa",
    "free_marginal_kappa": "brennan_prediger",
    "cohen_kappa": "mean_pairwise_kappa",
    "mean_pairwise_cohen_recal": "mean_pairwise_kappa",
    "mean_pairwise_cohen_pram": "mean_pairwise_kappa",
    "alpha_binary": "krippendorff_alpha",
    "alpha_recal": "krippendorff_alpha",
    "alpha_hayes": "krippendorff_alpha",
    "po": "percent_agreement",
    "percent_agreement_pct": "percent_agreement",
    "mean_pairwise_percent_agreement_pct": "percent_agreement",
    "overall_agreement_pct": "percent_agreement",
}
"""Our name of each printed figure of a whole yes/no table."""
UNANIMOUS_IS_ONE = {"edge_all_positive": {"alpha", "fleiss_kappa"}}  # Where R gives 1 and we give no figure


DRAWS = pytest.mark.parametrize(
    ("seed", "n_units", "n_annotators", "missing"),
    [
        pytest.param(seed, n_units, n_annotators, missing, id=f"{n_units}x{n_annotators}-{missing:.0%}-missing-{seed}")
        for n_units, n_annotators in ((25, 2), (40, 3), (200, 5))
        for missing in (0.0, 0.4)
        for seed in range(3)
    ],
)


def draw(seed: int, n_units: int, n_annotators: int, missing: float) -> FloatArray:
    """Units × annotators: a truth with a share of yes of its own, errors that differ by annotator, gaps at random."""
    random = np.random.default_rng(seed)
    truth = random.random((n_units, 1)) < random.uniform(0.2, 0.8)
    wrong = random.random((n_units, n_annotators)) < random.uniform(0.05, 0.35, n_annotators)
    matrix = (truth ^ wrong).astype(np.float64)
    matrix[random.random(matrix.shape) < missing] = np.nan
    return matrix


def figures(ratings: Ratings) -> TaskFigures:
    return measure_figures(ratings, 20, 0)


def measured(ratings: Ratings) -> LabelAgreement:
    return figures(ratings).labels["proper_action"]


@DRAWS
def test_figures_are_those_of_four_libraries(seed: int, n_units: int, n_annotators: int, missing: float) -> None:
    matrix = draw(seed, n_units, n_annotators, missing)
    found = figures(ratings_of_matrix(matrix))
    alpha = found.labels["proper_action"].krippendorff_alpha
    expected = oracles.krippendorff.alpha(reliability_data=matrix.T, level_of_measurement="nominal")
    assert alpha == pytest.approx(expected, abs=1e-9)
    votes = [(str(seat), str(unit), int(value)) for (unit, seat), value in np.ndenumerate(matrix) if value == value]
    assert alpha == pytest.approx(AnnotationTask(data=votes).alpha(), abs=1e-9)
    whole = matrix[~np.isnan(matrix).any(axis=1)]
    table = np.stack([(whole == 0).sum(axis=1), (whole == 1).sum(axis=1)], axis=1)
    without_gaps = measured(ratings_of_matrix(whole))
    assert without_gaps.fleiss_kappa == pytest.approx(
        oracles.inter_rater.fleiss_kappa(table, method="fleiss"), abs=1e-9
    )
    assert without_gaps.brennan_prediger == pytest.approx(
        oracles.inter_rater.fleiss_kappa(table, method="randolph"), abs=1e-9
    )
    pairs = [pair for pair in found.pairs if pair.label == "proper_action"]
    assert len(pairs) == n_annotators * (n_annotators - 1) // 2
    for pair in pairs:
        two = matrix[:, [int(pair.rater_a[1:]), int(pair.rater_b[1:])]]
        shared = two[~np.isnan(two).any(axis=1)]
        assert pair.n_shared == len(shared)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kappa = float(oracles.metrics.cohen_kappa_score(*shared.T))
        assert pair.cohen_kappa == (None if np.isnan(kappa) else pytest.approx(kappa, abs=1e-9))
        if pair.mcc is None:
            assert min(len(set(column)) for column in shared.T) == 1
        else:
            assert pair.mcc == pytest.approx(oracles.metrics.matthews_corrcoef(*shared.T), abs=1e-9)


def printed_figures(path: Path) -> dict[str, float]:
    published: dict[str, Any] = expected_of_case(path)["published"]
    return {name: value for name, value in published.items() if name[:5] != "multi" and value is not None}


@pytest.mark.parametrize("path", [each for each in SINGLE_LABEL if printed_figures(each)], ids=lambda path: path.stem)
def test_printed_figures_come_out_to_the_last_printed_digit(path: Path) -> None:
    found = measured(ratings_of_case(path))
    for name, printed in printed_figures(path).items():
        ours = getattr(found, PRINTED[name])
        scale = 100 if name.endswith("_pct") else 1
        digits = len(str(printed).partition(".")[2])
        assert ours * scale == pytest.approx(printed, abs=0.5 * 10**-digits + 1e-9), name


@pytest.mark.skipif(not CASES.is_dir(), reason=NO_SHARED)
@pytest.mark.parametrize("path", sorted((CASES / "open").glob("*.csv")), ids=lambda path: path.stem)
def test_figures_are_those_of_irrcac_to_five_decimals(path: Path) -> None:
    found = measured(ratings_of_case(path))
    third_party: dict[str, Any] = expected_of_case(path)["third_party"] or {}
    for program, figures in third_party.items():
        if "irrCAC" not in program:
            continue
        for name, figure in figures.items():
            if name in UNANIMOUS_IS_ONE.get(path.stem, set()) or figure.get("value") is None:
                continue
            assert getattr(found, {"alpha": "krippendorff_alpha"}.get(name, name)) == pytest.approx(
                figure["value"], abs=6e-6
            ), name

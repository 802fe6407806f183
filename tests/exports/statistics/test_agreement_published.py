"""Our figures against those printed in publications and those of R's irrCAC."""

from pathlib import Path
from typing import Any

import pytest

from exports.statistics.agreement import measure_figures
from exports.statistics.agreement_schema import LabelAgreement
from tests.support.agreement_data import CASES, SINGLE_LABEL, expected_of_case, ratings_of_case
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
IRRCAC_NAMES = {"alpha": "krippendorff_alpha"}
UNANIMOUS_IS_ONE = {"edge_all_positive": {"alpha", "fleiss_kappa"}}
"""Where R gives 1 and we give no figure."""


def measured(path: Path) -> LabelAgreement:
    return measure_figures(ratings_of_case(path), 20, 0).labels["proper_action"]


def printed_figures(path: Path) -> dict[str, float]:
    published: dict[str, Any] = expected_of_case(path)["published"]
    return {name: value for name, value in published.items() if name[:5] != "multi" and value is not None}


@pytest.mark.parametrize("path", [each for each in SINGLE_LABEL if printed_figures(each)], ids=lambda path: path.stem)
def test_printed_figures_come_out_to_the_last_printed_digit(path: Path) -> None:
    found = measured(path)
    for name, printed in printed_figures(path).items():
        ours = getattr(found, PRINTED[name])
        scale = 100 if name.endswith("_pct") else 1
        digits = len(str(printed).partition(".")[2])
        assert ours * scale == pytest.approx(printed, abs=0.5 * 10**-digits + 1e-9), name


@pytest.mark.skipif(not CASES.is_dir(), reason=NO_SHARED)
@pytest.mark.parametrize("path", sorted((CASES / "open").glob("*.csv")), ids=lambda path: path.stem)
def test_figures_are_those_of_irrcac_to_five_decimals(path: Path) -> None:
    found = measured(path)
    third_party: dict[str, Any] = expected_of_case(path)["third_party"] or {}
    for program, figures in third_party.items():
        if "irrCAC" not in program:
            continue
        for name, figure in figures.items():
            if name in UNANIMOUS_IS_ONE.get(path.stem, set()) or figure.get("value") is None:
                continue
            assert getattr(found, IRRCAC_NAMES.get(name, name)) == pytest.approx(figure["value"], abs=6e-6), name

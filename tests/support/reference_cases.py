"""Small tables of ratings made here, and what other people's libraries find in them: `tests/data/agreement`.

`python -m tests.support.reference_cases` makes them again. Nothing of citejury is used: alpha is that of
`krippendorff`, kappas are those of `scikit-learn` and `statsmodels`, intervals those of `scipy.stats.bootstrap`, and
what is left is counted here in plain loops after the formulas of its publication.
"""

import csv
import json
import math
from itertools import combinations
from typing import Any

import numpy as np

from tests.support import oracles
from tests.support.places import DATA

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
FOLDER = DATA / "agreement"
RESAMPLES = 50_000
PUBLISHED: dict[str, dict[str, float]] = {"krippendorff2011_binary": {"alpha_binary": 0.095}}


def tables() -> dict[str, FloatArray]:
    """Items × annotators of 0, 1 and NaN, by name."""
    random = np.random.default_rng(18)
    complete = noisy(random, 24, 3, 0.2)
    gaps = noisy(random, 40, 4, 0.15)
    gaps[random.random(gaps.shape) < 0.3] = np.nan
    few = noisy(random, 14, 3, 0.25)
    # Krippendorff, K. (2011), Computing Krippendorff's Alpha-Reliability, example A: Meg and Owen on ten articles.
    printed = np.array([list(map(float, row)) for row in ("0100000010", "1110010000")]).T
    return {"complete": complete, "gaps": gaps, "few_items": few, "krippendorff2011_binary": printed}


def noisy(random: np.random.Generator, items: int, annotators: int, errors: float) -> FloatArray:
    """What annotators say of items of which four tenths are yes, each with this share of errors."""
    truth = random.random((items, 1)) < 0.4
    return (truth ^ (random.random((items, annotators)) < errors)).astype(np.float64)


def alpha(matrix: FloatArray) -> float:
    """Krippendorff's alpha, nominal; NaN where it is undefined."""
    votes = matrix[(~np.isnan(matrix)).sum(axis=1) >= 2]
    if len(np.unique(votes[~np.isnan(votes)])) < 2:
        return math.nan
    return float(oracles.krippendorff.alpha(reliability_data=votes.T, level_of_measurement="nominal"))


def figures(matrix: FloatArray) -> dict[str, Any]:
    """What is found in a whole table; the formulas are those of Gwet 2014, chapters 2 to 4."""
    votes = [row[~np.isnan(row)] for row in matrix]
    rated = [row for row in votes if len(row)]
    pairable = [row for row in votes if len(row) >= 2]
    same = [sum(a == b for a, b in combinations(row, 2)) / math.comb(len(row), 2) for row in pairable]
    agreement = float(np.mean(same))
    share = float(np.mean([row.mean() for row in rated]))
    chance = 2 * share * (1 - share)
    yes = sum(math.comb(int(row.sum()), 2) * 2 for row in pairable)
    no = sum(math.comb(int((1 - row).sum()), 2) * 2 for row in pairable)
    yes_pairs = sum(row.sum() * (len(row) - 1) for row in pairable)
    no_pairs = sum((1 - row).sum() * (len(row) - 1) for row in pairable)
    kappas = [value for a, b in combinations(matrix.T, 2) if (value := kappa(*shared(a, b))) is not None]
    fleiss = (agreement - (1 - chance)) / chance
    if not np.isnan(matrix).any():
        fleiss = float(oracles.inter_rater.fleiss_kappa(oracles.inter_rater.aggregate_raters(matrix.astype(int))[0]))
    return {
        "n_items": len(rated),
        "n_pairable_items": len(pairable),
        "n_ratings": sum(map(len, votes)),
        "prevalence_ratings": float(np.nanmean(matrix)),
        "percent_agreement": agreement,
        "full_agreement_share": float(np.mean([len(set(row)) == 1 for row in pairable])),
        "alpha": alpha(matrix),
        "fleiss_kappa": fleiss,
        "gwet_ac1": (agreement - chance) / (1 - chance),
        "brennan_prediger": 2 * agreement - 1,
        "positive_agreement": yes / yes_pairs,
        "negative_agreement": no / no_pairs,
        "mean_pairwise_cohen_kappa_defined_pairs": float(np.mean(kappas)),
        "n_pairs_with_kappa": len(kappas),
    }


def shared(one: FloatArray, other: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What two annotators say of the items that both have rated."""
    both = ~np.isnan(one) & ~np.isnan(other)
    return one[both], other[both]


def kappa(one: FloatArray, other: FloatArray) -> float | None:
    """Cohen's kappa; None where both say one and the same of everything."""
    return None if len(set(one) | set(other)) < 2 else float(oracles.metrics.cohen_kappa_score(one, other))


def pairs(matrix: FloatArray) -> list[dict[str, Any]]:
    """What is found in each two annotators; the indices are those of Byrt, Bishop and Carlin 1993."""
    found = []
    for first, second in combinations(range(matrix.shape[1]), 2):
        one, other = shared(matrix[:, first], matrix[:, second])
        (n00, n01), (n10, n11) = oracles.metrics.confusion_matrix(one, other, labels=[0, 1]).tolist()
        n = len(one)
        values = {
            "percent_agreement": (n11 + n00) / n,
            "cohen_kappa": kappa(one, other),
            "pabak": 2 * (n11 + n00) / n - 1,
            "prevalence_index": (n11 - n00) / n,
            "bias_index": (n10 - n01) / n,
            "positive_agreement": 2 * n11 / (2 * n11 + n10 + n01),
            "negative_agreement": 2 * n00 / (2 * n00 + n10 + n01),
            "mcc": float(oracles.metrics.matthews_corrcoef(one, other)),
        }
        counts = {"n_shared": n, "n11": n11, "n10": n10, "n01": n01, "n00": n00}
        found.append({"rater_a": f"a{first}", "rater_b": f"a{second}"} | counts | values)
    return found


def left_out(matrix: FloatArray) -> list[dict[str, Any]]:
    found = []
    for number in range(matrix.shape[1]):
        own, others = matrix[:, number], np.delete(matrix, number, axis=1)
        met = [(value, row[~np.isnan(row)]) for value, row in zip(own, others, strict=True) if not np.isnan(value)]
        compared = [(value, row.mean()) for value, row in met if len(row)]
        decided = [(value, mean) for value, mean in compared if mean != 0.5]
        without = alpha(others)
        found.append(
            {
                "rater": f"a{number}",
                "n_ratings": len(met),
                "positive_rate": float(np.nanmean(own)),
                "alpha_without": None if math.isnan(without) else without,
                "n_compared": len(decided),
                "n_ties": len(compared) - len(decided),
                "agreement_with_majority_of_others": float(np.mean([value == (mean > 0.5) for value, mean in decided])),
            }
        )
    return found


def resampled(matrix: FloatArray) -> dict[str, Any]:
    """The intervals of alpha when the pairable items are drawn again, by scipy."""
    votes = matrix[(~np.isnan(matrix)).sum(axis=1) >= 2]
    places, options = (np.arange(len(votes)),), {"vectorized": False, "rng": np.random.default_rng(1)}
    drawn = oracles.stats.bootstrap(
        places, lambda at: alpha(votes[at]), n_resamples=RESAMPLES, method="percentile", **options
    )
    bca = oracles.stats.bootstrap(
        places, lambda at: alpha(votes[at]), n_resamples=0, method="BCa", bootstrap_result=drawn, **options
    )
    estimate, replicates = alpha(votes), drawn.bootstrap_distribution
    left = np.array([alpha(np.delete(votes, place, axis=0)) for place in range(len(votes))])
    away = left.mean() - left
    share = (np.sum(replicates < estimate - 1e-9) + np.sum(np.abs(replicates - estimate) <= 1e-9) / 2) / RESAMPLES
    return {
        "B": RESAMPLES,
        "undefined_resamples": float(np.isnan(replicates).mean()),
        "percentile_95": list(map(float, drawn.confidence_interval)),
        "bca_95": list(map(float, bca.confidence_interval)),
        "se": float(drawn.standard_error),
        "bca_z0": float(oracles.stats.norm.ppf(share)),
        "bca_acceleration": float((away**3).sum() / (6 * (away**2).sum() ** 1.5)),
        "jackknife_se": float(math.sqrt((len(left) - 1) / len(left) * (away**2).sum())),
    }


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, matrix in tables().items():
        with (FOLDER / f"{name}.csv").open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(["item_id", "annotator_id", "label"])
            writer.writerows((f"i{i:02}", f"a{j}", int(matrix[i, j])) for i, j in np.argwhere(~np.isnan(matrix)))
        found = {
            "published": PUBLISHED.get(name, {}),
            "expected": figures(matrix),
            "pairwise": pairs(matrix),
            "leave_one_out": left_out(matrix),
            "bootstrap_alpha_reference": None if name in PUBLISHED else resampled(matrix),
            "third_party": {},
        }
        (FOLDER / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

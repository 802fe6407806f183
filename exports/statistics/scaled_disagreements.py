"""Where annotators differ on labels on a scale, by weight on alpha, as `disagreements` has it for yes and no."""

from collections import Counter

import numpy as np

from exports.statistics.disagreements import Disagreement, pattern
from exports.statistics.ratings import FloatArray, Ratings
from exports.statistics.scaled_labels import ScaledEstimators
from exports.statistics.scales import ALPHA, figures


def find_scaled_disagreements(ratings: Ratings, top: int | None = None) -> list[Disagreement]:
    """Every unit and label on a scale with different values, the weightiest first, as `find_disagreements`."""
    found = [
        item for estimators in (ScaledEstimators(ratings, each) for each in ratings.scaled) for item in _of(estimators)
    ]
    by_unit: dict[tuple[str, str], list[str]] = {}
    for item in found:
        by_unit.setdefault((item.record_uuid, item.chunk_id), []).append(item.label)
    ranked = sorted(
        found, key=lambda item: (-np.inf if item.influence is None else -abs(item.influence), -item.contribution)
    )
    return [
        item.model_copy(update={"other_labels": tuple(name for name in labels if name != item.label)})
        for item in ranked[:top]
        for labels in [by_unit[item.record_uuid, item.chunk_id]]
    ]


def _of(found: ScaledEstimators) -> list[Disagreement]:
    ratings, label = found.ratings, found.label
    distances = _distances(found)
    units = np.flatnonzero(distances)
    alpha = float(figures(found.totals, found.measure, found.n_raters)[ALPHA])
    rest = found.alphas_without()
    starts = np.searchsorted(label.units, np.arange(len(distances) + 1))
    given = [
        tuple(zip(label.raters[place].tolist(), label.codes[place].tolist(), strict=True))
        for place in (slice(starts[unit], starts[unit + 1]) for unit in units)
    ]
    patterns = Counter(given)
    made = []
    for unit, votes in zip(units.tolist(), given, strict=True):
        named: dict[str, bool | str] = {ratings.annotators[rater]: label.values[code] for rater, code in votes}
        counts = Counter(code for _, code in votes)
        lone = [rater for rater, code in votes if counts[code] == 1] if len(counts) == 2 and len(votes) > 2 else []
        influence = alpha - float(rest[unit])
        made.append(
            Disagreement(
                task=ratings.measured_as,
                label=label.name,
                record_uuid=ratings.records[ratings.unit_records[unit]],
                chunk_id=ratings.unit_chunks[unit],
                language=ratings.unit_languages[unit],
                votes=named,
                n_yes=None,
                n_no=None,
                contribution=float(distances[unit] / distances.sum()),
                influence=None if np.isnan(influence) else influence,
                posterior=None,
                entropy=None,
                lone_dissenter=ratings.annotators[lone[0]] if len(lone) == 1 else None,
                dissenter_reliability=None,
                pattern=pattern(named, ((label.values[code], label.values[code]) for code in sorted(counts))),
                pattern_count=patterns[votes],
                other_labels=(),
                notes={},
                marks={},
            )
        )
    return made


def _distances(found: ScaledEstimators) -> FloatArray:
    """The observed disagreement of each unit: its pairs of ratings by their distance on the scale."""
    label, total, (first, second) = found.label, found.total, found.met.codes
    if label.scale == "ordinal":
        ranks = (np.cumsum(total.features) - total.features / 2) / max(float(total.ratings), 1)
        apart = (ranks[first] - ranks[second]) ** 2
    else:
        apart = 1 - found.measure.agreement(found.measure.alpha, first, second)
    counts = np.bincount(label.units, minlength=len(found.pairable))
    summed: FloatArray = 2 * np.bincount(found.met.units, apart, len(counts)) / np.maximum(counts - 1, 1)
    return summed

"""Which differences could be beyond chance at all, given how many narratives two groups have in common.

Source: exports/contracts/results.md#differences.
"""

from collections import defaultdict
from collections.abc import Sequence

from exports.agreement.distributions import holm
from exports.results._comparisons import LEVEL
from exports.results.schema import Difference


def within_reach(compared: Sequence[Difference]) -> list[bool]:
    """Whether each of the differences that have a p could stand out, were every narrative to speak for it.

    Of n narratives there are 2ⁿ sign flips, so no p is below 2/2ⁿ. These p are corrected as the real ones are: for all
    differences of the dimension, of all labels and findings together.
    """
    dimensions: dict[tuple[str, bool], list[int]] = defaultdict(list)
    for place, found in enumerate(compared):
        dimensions[found.by, bool(found.within)].append(place)
    reached = [False] * len(compared)
    for places in dimensions.values():
        corrected = holm([_smallest_p(compared[place].n_narratives) for place in places])
        for place, p in zip(places, corrected, strict=True):
            reached[place] = p <= LEVEL
    return reached


def narratives_needed(compared: Sequence[Difference]) -> int:
    """The fewest common narratives with which a difference of the largest dimension could stand out."""
    dimensions = [(found.by, bool(found.within)) for found in compared]
    largest = max(map(dimensions.count, set(dimensions)))
    narratives = 1
    while largest * _smallest_p(narratives) > LEVEL:
        narratives += 1
    return narratives


def _smallest_p(n_narratives: int) -> float:
    """The p of the two sign flips in which all narratives point one way."""
    return 2.0 ** (1 - n_narratives)

"""Records by the likeness of their vectors."""

from collections.abc import Sequence
from uuid import UUID

import numpy as np


def nearest(
    target: Sequence[float], candidates: Sequence[tuple[UUID, Sequence[float]]], least: bool = False
) -> list[tuple[UUID, float]]:
    """Every candidate with its likeness, the most (or the least) alike first; empty without candidates.

    The likeness is (1 + cosine) / 2, as Elasticsearch gives it; that of a vector of zeros is 0.5.
    """
    if not candidates:
        return []
    vectors = np.asarray([vector for _, vector in candidates], dtype=float)
    wanted = np.asarray(target, dtype=float) * (-1.0 if least else 1.0)
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(wanted)
    cosines = np.divide(vectors @ wanted, lengths, out=np.zeros(len(vectors)), where=lengths > 0)
    best = np.argsort(-cosines, kind="stable")
    return [(candidates[place][0], float((1 + cosines[place]) / 2)) for place in best]

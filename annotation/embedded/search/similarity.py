"""Records by the likeness of their vectors."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import numpy as np
from argilla_server.errors.future import UnprocessableEntityError
from numpy.typing import NDArray


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
    cosines = unit(vectors) @ unit(wanted[None])[0]
    best = np.argsort(-cosines, kind="stable")
    return [(candidates[place][0], float((1 + cosines[place]) / 2)) for place in best]


def unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rows with a length of one; rows of zeros stay. Huge numbers are made small first, so that none overflows."""
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    small = np.divide(vectors, largest, out=np.zeros_like(vectors), where=largest > 0)
    lengths = np.linalg.norm(small, axis=1, keepdims=True)
    rows: NDArray[np.float64] = np.divide(small, lengths, out=small, where=lengths > 0)
    return rows


def check_vector(vector: Sequence[float], settings: Any) -> None:
    """Nothing for a vector that can be compared with the others.

    Raises:
        UnprocessableEntityError: it has another length or no finite numbers; the server answers 422.
    """
    if len(vector) != settings.dimensions or not np.isfinite(np.asarray(vector, dtype=float)).all():
        raise UnprocessableEntityError(
            f"A vector for `{settings.name}` has {settings.dimensions} finite numbers; this one has {len(vector)}."
        )

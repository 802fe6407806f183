"""Cases of prediction-powered means, made of whole numbers, so that any library can be given the very same."""

import numpy as np

from exports.statistics.ratings import FloatArray


def _sequence(length: int, factor: int, start: int) -> FloatArray:
    """Numbers that look drawn at random between 0 and 1."""
    found, value = [], start
    for _ in range(length):
        value = (value * factor + 12_345) % 65_537
        found.append(value / 65_537)
    return np.array(found)


def powered_case(name: str, labelled: int, more: int) -> tuple[FloatArray, FloatArray]:
    """Values and the judge's probabilities of labelled units, then of the others."""
    size = labelled + more
    score, noise = _sequence(size, 75, 7), _sequence(size, 1_027, 11)
    values = (score > 0.65).astype(np.float64)
    p_yes = np.clip(0.6 * score + 0.4 * noise, 0.01, 0.99)
    if name == "shares":
        values = (values + (score + noise > 1)) / 2
    elif name == "yes or no":
        p_yes = (p_yes > 0.55).astype(np.float64)
    elif name == "biased":
        p_yes = np.minimum(0.3 * p_yes + 0.69, 1)
    elif name == "contrary":
        p_yes = 1 - p_yes
    elif name == "timid":
        p_yes = 0.45 + 0.1 * p_yes
    return values, p_yes

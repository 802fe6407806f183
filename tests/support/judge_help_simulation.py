"""Studies of which people label a part and a judge judges all: how often rates with its help are wrong, how narrow."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from exports.statistics.judge_help import (
    Division,
    Powered,
    Units,
    chosen_by_score,
    misfit,
    misfit_by_score,
    prediction_powered,
    uneven_share,
)
from exports.statistics.rates import rate_ends
from exports.statistics.ratings import BoolArray, FloatArray
from tests.support.drawn_studies import logistic, threshold

Judge = Callable[[np.random.Generator, FloatArray, FloatArray], FloatArray]
"""P(yes) of each unit by its score and its value."""


def _seeing(sharpness: float, noise: float, shift: float = 0.0) -> Judge:
    def judge(generator: np.random.Generator, scores: FloatArray, values: FloatArray) -> FloatArray:
        return logistic(sharpness * (scores + noise * generator.normal(size=scores.shape)) + shift)

    return judge


def _erring(share: float) -> Judge:
    def judge(generator: np.random.Generator, scores: FloatArray, values: FloatArray) -> FloatArray:
        return np.where(generator.random(scores.shape) < share, values <= 0.5, values > 0.5).astype(np.float64)

    return judge


JUDGES: dict[str, Judge] = {
    "good": _seeing(1.0, 1.0),
    "weak": _seeing(1.0, 5.0),
    "biased": _seeing(1.0, 1.0, 2.0),
    "overconfident": _seeing(6.0, 1.5, -1.0),
    "erring": _erring(0.02),
    "blind": _seeing(0.0, 0.0, 1.0),
    "guessing": lambda generator, scores, values: generator.random(scores.shape),
    "contrary": _seeing(-1.0, 1.0),
}
SPREADS = {"strong": (3.0, 0.5), "middling": (2.0, 1.0), "weak": (1.0, 2.0)}
"""Difficulty shared by a narrative's units, and by a unit's votes."""


class Design(NamedTuple):
    labelled: int  # Narratives that people label in, about
    units: int  # Units a narrative
    rate: float  # Share of yes
    judge: str = "good"
    sampling: str = "narratives"
    spread: str = "middling"
    most_votes: int = 3
    more: int = 9  # Times as many units are judged and not labelled as labelled


class Studied(NamedTuple):
    powered: Powered
    alone: tuple[float, float]  # The ends of people's interval
    correlation: float  # Of the judge and the values of all units
    truth: float


def draw_units(generator: np.random.Generator, design: Design) -> tuple[Units, FloatArray]:
    """The units of a study, and what all of them are worth, those that people did not label included."""
    shared, own = SPREADS[design.spread]
    fraction = 1 / (1 + design.more)
    n = (
        round(design.labelled / fraction)
        if design.sampling != "records"
        else round(design.labelled / (1 - (1 - fraction) ** design.units))
    )
    size = n * design.units
    narratives = np.repeat(np.arange(n), design.units)
    scores = threshold(design.rate, float(np.hypot(shared, own)))
    difficulty = shared * generator.normal(size=n)
    scores = scores + difficulty[narratives] + own * generator.normal(size=size)
    n_votes = generator.integers(1, design.most_votes + 1, size)
    values = generator.binomial(n_votes, logistic(scores)) / n_votes
    p_yes = JUDGES[design.judge](generator, scores, values)
    weights = np.ones(size)
    if design.sampling == "records":
        voted = np.zeros(size, np.bool_)
        voted[generator.permutation(size)[: round(size * fraction)]] = True
    elif design.sampling == "narratives":
        drawn = np.zeros(n, np.bool_)
        drawn[generator.permutation(n)[: design.labelled]] = True
        voted = drawn[narratives]
    else:
        # Hard narratives are drawn three times as often.
        odds = np.where(difficulty > 0, 1.5 * fraction, 0.5 * fraction)
        drawn = np.zeros(n, np.bool_)
        for stratum in (difficulty > 0, difficulty <= 0):
            members = np.flatnonzero(stratum)
            count = round(len(members) * float(odds[members[0]]))
            drawn[generator.permutation(members)[:count]] = True
            odds[members] = count / len(members)
        voted = drawn[narratives]
        weights = 1 / odds[narratives]
    return Units(narratives, voted, np.where(voted, values, np.nan), weights, p_yes), values


def studies(design: Design, number: int, seed: int = 0) -> list[Studied]:
    generator = np.random.default_rng([seed, design.labelled, design.units, int(1000 * design.rate)])
    found = []
    for _ in range(number):
        units, values = draw_units(generator, design)
        own = units.voted
        _, cluster = np.unique(units.narratives[own], return_inverse=True)
        weights = units.weights[own]
        sums = (np.bincount(cluster, each) for each in (weights * units.values[own], weights, weights**2))
        known = np.ptp(values) > 0 and np.ptp(units.p_yes) > 0
        correlation = float(np.corrcoef(values, units.p_yes)[0, 1]) if known else 0.0
        found.append(Studied(prediction_powered(units), rate_ends(*sums), correlation, design.rate))
    return found


def coverage(found: list[Studied]) -> float:
    return float(np.mean([each.powered.ends[0] <= each.truth <= each.powered.ends[1] for each in found]))


def coverage_alone(found: list[Studied]) -> float:
    return float(np.mean([each.alone[0] <= each.truth <= each.alone[1] for each in found]))


def widths(found: list[Studied]) -> FloatArray:
    """How wide the intervals are, as a part of people's."""
    return np.array([(each.powered.ends[1] - each.powered.ends[0]) / (each.alone[1] - each.alone[0]) for each in found])


def refused(n_narratives: int, sampling: str, share: float, number: int, odds: float = 1.0, seed: int = 0) -> float:
    """How often what people labelled is called no random part, of answers of three models in three languages.

    `sampling` labels that share of whole narratives, single records, or half of the records of each drawn narrative;
    those of the second language `odds` times as often. Languages are of 60, 30 and 10 %, one narrative in five lacks an
    answer of the third model, and there are two types.
    """
    generator = np.random.default_rng([seed, n_narratives, int(100 * share)])
    told = 0
    for study in range(number):
        language = generator.choice(3, n_narratives, p=(0.6, 0.3, 0.1))
        kind = generator.integers(0, 2, n_narratives)
        there = np.ones((n_narratives, 3), np.bool_)
        there[generator.random(n_narratives) < 0.2, 2] = False
        narratives, model = np.nonzero(there)
        likely = np.where(language == 1, odds, 1.0)
        size = n_narratives if sampling != "records" else len(narratives)
        weights = (likely if sampling != "records" else likely[narratives]) * generator.exponential(size=size) ** -1.0
        several = 2 if sampling == "halves" else 1
        drawn = np.zeros(size, np.bool_)
        drawn[np.argsort(-weights)[: round(share * several * size)]] = True
        voted = drawn if sampling == "records" else drawn[narratives]
        if sampling == "halves":
            voted = voted & (generator.random(len(narratives)) < 1 / several)
        divisions = [
            Division("model_name", ("a", "b", "c"), model),
            Division("language", ("de", "en", "ja"), language[narratives]),
            Division("narrative_type", ("x", "y"), kind[narratives]),
        ]
        told += uneven_share(narratives, voted, divisions, study) is not None
    return told / number


def sample_refused(n_narratives: int, number: int, wrong: bool = False, seed: int = 0) -> float:
    """How often a sample of narratives with its probabilities is said not to stand for the records.

    Narratives of the first language are drawn with .3, the others with .1; where `wrong`, all probabilities are told
    as equal.
    """
    generator = np.random.default_rng([seed, n_narratives])
    told = 0
    for _ in range(number):
        language = generator.choice(3, n_narratives, p=(0.6, 0.3, 0.1))
        narratives, model = np.divmod(np.arange(3 * n_narratives), 3)
        drawn = np.zeros(n_narratives, np.bool_)
        odds = np.zeros(n_narratives)
        for stratum in range(3):
            members = np.flatnonzero(language == stratum)
            count = max(1, round(len(members) * (0.3 if stratum == 0 else 0.1)))
            drawn[generator.permutation(members)[:count]] = True
            odds[members] = 0.2 if wrong else count / len(members)
        kind = generator.integers(0, 2, n_narratives)
        divisions = [
            Division("model_name", ("a", "b", "c"), model),
            Division("language", ("de", "en", "ja"), language[narratives]),
            Division("narrative_type", ("x", "y"), kind[narratives]),
        ]
        told += misfit(narratives, np.where(drawn, odds, np.nan)[narratives], divisions) is not None
    return told / number


def refused_by_score(
    n_narratives: int, sampling: str, share: float, number: int, judge: str = "good", rate: float = 0.5, units: int = 3
) -> float:
    """How often what people labelled is said to be chosen by the judge's scores of five labels, three answers each.

    `sampling` is at random, as in `refused`, or by the score of one label the highest (`top`) or those nearest to one
    half (`unsure`); a record has so many `units`, of which `rate` are yes.
    """
    generator = np.random.default_rng([n_narratives, int(100 * share), int(1000 * rate), units])
    told = 0
    for study in range(number):
        design = Design(n_narratives // 10, 3 * units, rate, judge)
        drawn = [draw_units(generator, design)[0] for _ in range(5)]
        narratives, records = drawn[0].narratives, np.arange(3 * units * n_narratives) // units
        p_yes = np.column_stack([each.p_yes for each in drawn])
        voted = _chosen(generator, sampling, share, p_yes[:, 0], n_narratives, units)
        told += chosen_by_score(narratives, records, voted, p_yes, study) is not None
    return told / number


def _chosen(
    generator: np.random.Generator, sampling: str, share: float, p_yes: FloatArray, n_narratives: int, units: int
) -> BoolArray:
    if sampling in ("top", "unsure"):
        score = p_yes if sampling == "top" else -np.abs(p_yes - 0.5)
        chosen = np.zeros(len(p_yes), np.bool_)
        chosen[np.lexsort((generator.random(len(p_yes)), -score))[: round(share * len(p_yes))]] = True
        return chosen
    several = 2 if sampling == "halves" else 1
    whole = len(p_yes) // units if sampling == "records" else n_narratives
    drawn = np.zeros(whole, np.bool_)
    drawn[generator.permutation(whole)[: round(share * several * whole)]] = True
    chosen = np.repeat(drawn, len(p_yes) // whole)
    if sampling == "halves":
        chosen &= np.repeat(generator.random(len(p_yes) // units) < 1 / several, units)
    return chosen


def sample_refused_by_score(labelled: int, number: int, judge: str = "good", wrong: bool = False) -> float:
    """How often a sample with its probabilities is said to be chosen by the judge's scores.

    Hard narratives, on which the judge says yes more often, are drawn three times as often; where `wrong`, all
    probabilities are told as equal.
    """
    generator = np.random.default_rng([labelled, number])
    told = 0
    for _ in range(number):
        units, _ = draw_units(generator, Design(labelled, 5, 0.5, judge, "weights"))
        odds = np.where(units.voted, 0.1 if wrong else 1 / units.weights, np.nan)
        told += misfit_by_score(units.narratives, odds, units.p_yes[:, None]) is not None
    return told / number

"""Studies of two models whose answers are shared out among three annotators, of whom the last one is lenient."""

from collections.abc import Callable, Sequence

import numpy as np

from annotation.argilla.labels import LABELS
from exports.statistics.ratings import MISSING, BoolArray, FloatArray, Ratings
from exports.statistics.results import measure_results
from exports.statistics.results_schema import Difference
from exports.statistics.study import Study

LENIENCY, NOISE = 0.35, 0.05  # What they turn of no into yes; how often anybody errs
_PEOPLE, _LABELS = 3, len(LABELS["generation"])
Design = Callable[[np.random.Generator, int], BoolArray]  # Who judges: narratives × models × people


def _random(generator: np.random.Generator, n: int, votes: int) -> BoolArray:
    return np.argsort(np.argsort(generator.random((n, 2, _PEOPLE)), axis=2), axis=2) < votes


def _fixed(n: int, first: Sequence[int], second: Sequence[int]) -> BoolArray:
    found = np.zeros((n, 2, _PEOPLE), np.bool_)
    found[:, 0, first], found[:, 1, second] = True, True
    return found


def _taken_over(n: int) -> BoolArray:
    found = _fixed(n, (0, 1), (0, 1))
    found[n // 2 :, 1] = (False, True, True)
    return found


def overlapping(n: int, shared: int) -> BoolArray:
    found = _fixed(n, (0,), (2,))
    found[:shared, :, (0, 2)] = True
    return found


DESIGNS: dict[str, Design] = {
    "all three judge everything": lambda _, n: _fixed(n, (0, 1, 2), (0, 1, 2)),
    "two of three at random": lambda generator, n: _random(generator, n, 2),
    "one of three at random": lambda generator, n: _random(generator, n, 1),
    "two of three on each model": lambda _, n: _fixed(n, (0, 1), (1, 2)),
    "the lenient one on one model only": lambda _, n: _fixed(n, (0, 1), (0, 1, 2)),
    "the lenient one takes over half-way": lambda _, n: _taken_over(n),
    "one on each model, both on ten narratives": lambda _, n: overlapping(n, 10),
    "one on each model": lambda _, n: _fixed(n, (0,), (2,)),
}


def drawn(
    generator: np.random.Generator, judged: BoolArray, rates: tuple[float, float], known: bool = False
) -> tuple[Study, FloatArray]:
    """A study in which only the first label differs between the models, and each vote's leniency if it is known.

    A narrative's answers say yes with .4 more or .4 less of the rate.
    """
    n = len(judged)
    likely = np.where(generator.random((n, 1, _LABELS)) < 0.5, 0.6, 1.4) * rates[0]
    likely = np.repeat(likely, 2, axis=1)
    likely[:, 1, 0] *= rates[1] / rates[0]
    truth = generator.random(likely.shape) < likely
    says = truth[:, :, np.newaxis] ^ (generator.random((n, 2, _PEOPLE, _LABELS)) < NOISE)
    says[:, :, 2] |= generator.random((n, 2, _LABELS)) < LENIENCY
    narrative, model, person = np.nonzero(judged)
    records = tuple(f"{number:04d}/{name}" for number in range(n) for name in "ab")
    ratings = Ratings(
        task="generation",
        annotators=("a0", "a1", "a2"),
        records=records,
        unit_records=np.arange(2 * n),
        unit_chunks=("",) * (2 * n),
        unit_languages=("en",) * (2 * n),
        units=2 * narrative + model,
        response_annotators=person,
        values=says[narrative, model, person].astype(np.int8),
        moments=np.full(len(person), 1_700_000_000_000_000),
        rounds=(),
        response_rounds=np.full(len(person), MISSING),
        n_duplicates=0,
        discards=None,
    )
    provenance = {record: {"model_name": record[-1]} for record in records}
    study = Study((ratings,), provenance, {record: record[:4] for record in records})
    yes = likely.mean(axis=(0, 1)) * (1 - 2 * NOISE) + NOISE
    return study, np.where(person[:, np.newaxis] == 2, LENIENCY * (1 - yes), 0.0)


def differences(study: Study) -> list[Difference]:
    found = measure_results(study, findings={}).tasks["generation"].labels.values()
    return [each.differences[0] for each in found]


def false_reports(design: str, n_narratives: int, studies: int, rate: float = 0.5, seed: int = 0) -> float:
    """How often any of five labels on which two models are equal stands out."""
    generator = np.random.default_rng([seed, n_narratives])
    found = [
        any(
            d.stands_out
            for d in differences(drawn(generator, DESIGNS[design](generator, n_narratives), (rate, rate))[0])
        )
        for _ in range(studies)
    ]
    return float(np.mean(found))

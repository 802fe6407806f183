"""Studies drawn at random from known populations: for simulations and for the benchmark of results."""

from collections.abc import Mapping

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from annotation.argilla.labels import LABELS, TASKS, TaskName
from exports.statistics.ratings import MISSING, FloatArray, LabelArray, Ratings
from exports.statistics.study import Study

LANGUAGES = ("de", "en", "ja")
_NODES, _WEIGHTS = hermegauss(81)


def logistic(score: FloatArray) -> FloatArray:
    return 1 / (1 + np.exp(-score))


def threshold(rate: float, spread: float) -> float:
    """The mean score whose logistic has this mean when scores are normal with this standard deviation."""
    low, high = -60.0, 60.0
    for _ in range(80):
        middle = (low + high) / 2
        above = float(_WEIGHTS @ logistic(middle + spread * _NODES) / _WEIGHTS.sum()) > rate
        low, high = (low, middle) if above else (middle, high)
    return (low + high) / 2


def draw_votes(
    generator: np.random.Generator,
    rates: FloatArray,
    n_narratives: int,
    passages: int = 1,
    most_votes: int = 3,
    spreads: tuple[float, float, float] = (2, 0, 1),
    fewest_votes: int = 1,
) -> LabelArray:
    """Narratives × models × passages × annotators × labels; a unit has one to `most_votes` votes, the others missing.

    `rates` are models × labels: how often each says yes. A vote is yes with the logistic of a score, in which
    difficulty is shared by the narrative's units, by the answer's and by the unit's votes, with these `spreads`.
    """
    n_models, n_labels = rates.shape
    total = float(np.sqrt(np.square(spreads).sum()))
    scores = np.array([[threshold(rate, total) for rate in row] for row in rates.tolist()])
    shape = (n_narratives, n_models, passages)
    own = scores[np.newaxis, :, np.newaxis, :]
    own = own + spreads[0] * generator.normal(size=(n_narratives, 1, 1, n_labels))
    own = own + spreads[1] * generator.normal(size=(n_narratives, n_models, 1, n_labels))
    own = own + spreads[2] * generator.normal(size=(*shape, n_labels))
    votes = generator.random((*shape, most_votes, n_labels)) < logistic(own)[:, :, :, np.newaxis]
    given = np.arange(most_votes) < generator.integers(fewest_votes, most_votes + 1, shape)[..., np.newaxis]
    return np.where(given[..., np.newaxis], votes, MISSING).astype(np.int8)


def study_of_votes(votes: Mapping[TaskName, LabelArray]) -> Study:
    """The study in which these votes were given: for each task as `draw_votes` gives them, on its first labels."""
    n_narratives, n_models = next(iter(votes.values())).shape[:2]
    names = [(f"n{narrative:05d}", f"model-{model}") for narrative in range(n_narratives) for model in range(n_models)]
    records = tuple(f"{narrative}/{model}" for narrative, model in names)
    return Study(
        tables=tuple(_ratings(task, records, votes[task]) for task in TASKS if task in votes),
        provenance={
            f"{narrative}/{model}": {
                "narrative_id": narrative,
                "model_name": model,
                "language": LANGUAGES[int(narrative[1:]) % len(LANGUAGES)],
                "n_sources": "4",
                "n_read": "3",
            }
            for narrative, model in names
        },
        narratives={f"{narrative}/{model}": narrative for narrative, model in names},
    )


def _ratings(task: TaskName, records: tuple[str, ...], votes: LabelArray) -> Ratings:
    n_narratives, n_models, passages, n_annotators, n_labels = votes.shape
    n_units = n_narratives * n_models * passages
    rows = np.full((n_units * n_annotators, len(LABELS[task])), MISSING, np.int8)
    rows[:, :n_labels] = votes.reshape(-1, n_labels)
    given = (rows != MISSING).any(axis=1)
    return Ratings(
        task=task,
        annotators=tuple(f"anna{number}" for number in range(n_annotators)),
        records=records,
        unit_records=np.arange(len(records)).repeat(passages),
        unit_chunks=tuple(f"c{number}" if task == "retrieval" else "" for number in range(n_units)),
        unit_languages=("en",) * n_units,
        units=np.arange(n_units).repeat(n_annotators)[given],
        response_annotators=np.tile(np.arange(n_annotators), n_units)[given],
        values=rows[given],
        moments=np.zeros(int(given.sum()), dtype=np.int64),
        rounds=(),
        response_rounds=np.full(int(given.sum()), -1),
        n_duplicates=0,
        discards=None,
    )


def large_study(n_narratives: int, n_models: int = 5) -> Study:
    """Every model's answer to every narrative, with two votes on every label; five passages an answer in retrieval.

    Labels are rare to common, models differ by up to a tenth, narratives by difficulty.
    """
    generator = np.random.default_rng(0)
    votes = {}
    for task in TASKS:
        rates = np.linspace(0.05, 0.6, len(LABELS[task])) + np.linspace(0, 0.1, n_models)[:, np.newaxis]
        votes[task] = draw_votes(generator, rates, n_narratives, 5 if task == "retrieval" else 1, 2)
    return study_of_votes(votes)

"""Juries made for simulations: who judges which unit, who errs how often, who has a bad record."""

from dataclasses import dataclass

import numpy as np

from annotation.argilla.labels import LABELS, TaskName
from exports.statistics.ratings import Ratings


@dataclass(frozen=True)
class Jury:
    """People who judge records of some passages each, on all labels of a task."""

    records: int
    annotators: int
    seats: int = 3  # How many judge each unit; 0 draws two to five for each record
    passages: int = 1
    error: float = 0.1  # How often each of them says otherwise than the truth, on every label
    prevalence: float = 0.4
    off: float = 0.0  # How often a person answers a whole record at random
    careless: float | None = None  # How often the first person errs, where that is another share
    by_passage: bool = False  # Whether seats are drawn for each passage instead of each record
    pairs: bool = False  # Whether fixed pairs judge: the first two, the next two, and so on


def jury_ratings(jury: Jury, task: TaskName, random: np.random.Generator) -> Ratings:
    """What the jury says, drawn at random; people are named in the order of the alphabet."""
    n_units, labels = jury.records * jury.passages, len(LABELS[task])
    records = np.arange(n_units) // jury.passages
    errors = np.full((1, jury.annotators, 1), jury.error)
    if jury.careless is not None:
        errors[0, 0] = jury.careless
    off = random.random((jury.records, jury.annotators, 1)) < jury.off
    truth = random.random((n_units, 1, labels)) < jury.prevalence
    wrong = random.random((n_units, jury.annotators, labels)) < np.where(off[records], 0.5, errors)
    rated = _seats(jury, random)[np.arange(n_units) if jury.by_passage else records]
    units, people = np.nonzero(rated)
    return Ratings(
        task=task,
        annotators=tuple(f"a{number:02d}" for number in range(jury.annotators)),
        records=tuple(f"r{number:05d}" for number in range(jury.records)),
        unit_records=records,
        unit_chunks=tuple(f"c{number % jury.passages}" for number in range(n_units)),
        unit_languages=("en",) * n_units,
        units=units,
        response_annotators=people,
        values=(truth ^ wrong)[units, people].astype(np.int8),
        moments=np.zeros(len(units), dtype=np.int64),
        rounds=(),
        response_rounds=np.full(len(units), -1),
        n_duplicates=0,
        discards=None,
    )


def _seats(jury: Jury, random: np.random.Generator) -> np.ndarray:
    """Records, or passages where they are drawn for each, × people: who judges it."""
    rows = jury.records * (jury.passages if jury.by_passage else 1)
    people = np.arange(jury.annotators)
    if jury.pairs:
        return people // 2 == random.integers(jury.annotators // 2, size=(rows, 1))
    ranks = random.permuted(np.tile(people, (rows, 1)), axis=1)
    return ranks < (random.integers(2, 6, size=(rows, 1)) if jury.seats == 0 else jury.seats)

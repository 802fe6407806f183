"""Simulated annotators for the rules about their behaviour: how long each answer takes them, and what they answer."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np

from annotation.argilla.labels import LABELS, TaskName
from annotation.argilla.units import CHARACTERS_A_MINUTE
from annotation.quality.submissions import Submission

BEGIN = datetime(2026, 11, 23, 8, tzinfo=UTC)
Answers = list[tuple[str, frozenset[str]]]


def given(seconds: Sequence[float], dataset_id: str = "d") -> list[Submission]:
    """Answers that took so many seconds each."""
    moments = BEGIN + np.cumsum(seconds) * timedelta(seconds=1)
    return [Submission("ana", moment, dataset_id) for moment in moments]


def honest_seconds(
    draw: np.random.Generator, task: TaskName, locale: str, units: int, characters: float
) -> tuple[list[float], float]:
    """How long an attentive person takes for each unit, and the median length of their texts.

    People read at 1 to 4 times the mean speed (median 2). Three of ten records are plain at a glance, all their
    passages together: a third of the text, of at most 600 characters, is enough. A question takes a practised person
    .4 s, the page .4 s; one unit takes e^±.5 of that.
    """
    person = np.exp(draw.normal(np.log(2), 0.35))
    lengths = characters * np.exp(draw.normal(0, 0.5, units))
    records = -(-units // 5)
    plain = np.repeat(draw.random(records) < 0.3, 5)[:units] if task == "retrieval" else draw.random(units) < 0.3
    reading = np.where(plain, np.minimum(lengths, 600) / 3, lengths) * 60 / CHARACTERS_A_MINUTE[locale] / person
    seconds = (reading + 0.4 * len(LABELS[task])) * np.exp(draw.normal(0, 0.5, units)) + 0.4
    return seconds.tolist(), float(np.median(lengths))


def guessed_seconds(draw: np.random.Generator, task: TaskName, units: int) -> list[float]:
    """How long somebody takes who does not read: a key a question in .2 to .5 s, and the page."""
    keys = draw.uniform(0.2, 0.5, (units, len(LABELS[task]) + 1)).sum(axis=1)
    return list(keys + 0.4)


def jury(
    draw: np.random.Generator, task: TaskName, people: int, records: int, passages: int, commonest: float
) -> dict[str, Answers]:
    """Answers of attentive people to the same records; each errs in 2 to 20 % of the labels, in a way of her own.

    `commonest` is the share of units whose right answer is the commonest one; the passages of a record resemble each
    other.
    """
    labels, units = LABELS[task], records * passages
    common = draw.random(len(labels)) < 0.5
    of_record = np.repeat(draw.random(records) < commonest, passages)
    is_common = np.where(draw.random(units) < 0.7, of_record, draw.random(units) < commonest)
    truth = np.where(is_common[:, None], common, draw.random((units, len(labels))) < 0.5)
    found = {}
    for number in range(people):
        rates = draw.uniform(0.02, 0.2, len(labels)) * draw.uniform(0.2, 1)
        said = truth ^ (draw.random(truth.shape) < rates)
        found[f"p{number}"] = [
            (f"r{unit // passages}", frozenset(label for label, yes in zip(labels, row, strict=True) if yes))
            for unit, row in enumerate(said)
        ]
    return found


def always(answers: Answers, answer: frozenset[str], but: float, draw: np.random.Generator) -> Answers:
    """The same units answered by somebody who says the same of all but a few."""
    return [(record, said if draw.random() < but else answer) for record, said in answers]

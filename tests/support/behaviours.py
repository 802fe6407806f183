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

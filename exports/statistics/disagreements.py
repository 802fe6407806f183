"""Where annotators differ, by weight on alpha (exports/contracts/agreement.md#annotators-and-consensus)."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from exports.statistics.consensus import label_posterior
from exports.statistics.ratings import MISSING, YES, MeasuredTask, Ratings, label_votes
from exports.statistics.table import unit_sums
from pipeline.core.schema import Frozen


class Disagreement(Frozen):
    """A unit and a label on which annotators differ, and what a reader needs to settle it."""

    task: MeasuredTask
    """The task; `ratings` of anybody's ratings."""
    label: str
    """The label."""
    record_uuid: str
    """Id of the record."""
    chunk_id: str
    """Id of the passage in retrieval; empty in the other tasks."""
    language: str
    """Language code of the unit."""
    votes: dict[str, bool | str]
    """What each annotator said, by name: yes or no or, on a scale, the value."""
    n_yes: int | None
    """How many said yes; None on a scale."""
    n_no: int | None
    """How many said no."""
    contribution: float
    """The unit's share of all disagreement on this label."""
    influence: float | None
    """Alpha less alpha without this unit: below 0 where the unit lowers it; None where one of the two is undefined."""
    posterior: float | None
    """Dawid–Skene probability of yes; None where the model is not identified."""
    entropy: float | None
    """Entropy of that probability in bits: 1 where nothing is known; None without it."""
    lone_dissenter: str | None
    """Who alone says otherwise, among three or more; None where nobody does."""
    dissenter_reliability: float | None
    """How often that person agrees with the majority of the others on this label elsewhere; None without one."""
    pattern: str
    """Who said what, such as `carla yes; anna, ben no`."""
    pattern_count: int
    """Units on which this label shows the same pattern."""
    other_labels: tuple[str, ...]
    """Other labels of the unit on which annotators differ, in the order of the task."""
    notes: dict[str, str]
    """Notes by annotator; only those that are not empty."""
    marks: dict[str, tuple[str, ...]]
    """What each annotator marked in the context, in its order, such as `supports: opened in 1932`; only in grounding,
    and only of exports with marks."""
    text: str = ""
    """The first text of the unit: query in retrieval and generation, answer in grounding."""
    text_pair: str = ""
    """The second text: passage, context, answer."""
    query: str = ""
    """The query of a unit of grounding, from the generation rows of its record; empty elsewhere, or where unknown."""
    record_id: str = ""
    """Argilla's id of the record; empty where the file has no such column."""
    link: str = ""
    """Address of the dataset's page in Argilla, since its page for a single record has none; empty where unknown."""


class _Label:
    def __init__(self, ratings: Ratings, column: int) -> None:
        self.ratings, self.column, self.label = ratings, column, ratings.labels[column]
        given = ratings.values[:, column] != MISSING
        self.counts = label_votes(ratings, column)
        self.raters, self.values = ratings.response_annotators[given], ratings.values[given, column]
        unit, yes = ratings.units[given], self.values == YES
        self.starts = np.searchsorted(unit, np.arange(len(ratings.unit_records) + 1))  # and the end
        lead = self.counts.ones[unit] - self.counts.zeros[unit] - np.where(yes, 1, -1)  # of yes among the others
        people = len(ratings.annotators)
        self.compared = np.bincount(self.raters[lead != 0], minlength=people)  # units
        self.agreed = np.bincount(self.raters[(lead != 0) & ((lead > 0) == yes)], minlength=people)
        self.posterior = label_posterior(ratings, column)
        self._weigh()
        self.patterns = Counter(self.votes_of(unit) for unit in self.units.tolist())  # units with each

    def _weigh(self) -> None:
        """Alpha without a unit comes from the totals less the unit's own sums; NaN where it is undefined."""
        sums = unit_sums(self.counts.zeros, self.counts.ones)
        self.units = np.flatnonzero(sums.disagreement)
        own = sums.disagreement[self.units]
        n0, n1, distance = sums.zeros.sum(), sums.ones.sum(), sums.disagreement.sum()
        rest0, rest1 = n0 - sums.zeros[self.units], n1 - sums.ones[self.units]
        pairs = 2 * rest0 * rest1
        ratio = (rest0 + rest1 - 1) * (distance - own) / np.where(pairs, pairs, np.nan)
        whole = (n0 + n1 - 1) * distance / (2 * n0 * n1) if len(self.units) else 0.0
        self.contribution = own / distance if len(self.units) else np.empty(0)
        self.influence = ratio - whole

    def votes_of(self, unit: int) -> tuple[tuple[int, int], ...]:
        place = slice(self.starts[unit], self.starts[unit + 1])
        return tuple(zip(self.raters[place].tolist(), self.values[place].tolist(), strict=True))

    def describe(self, place: int, other_labels: tuple[str, ...]) -> Disagreement:
        ratings, unit = self.ratings, int(self.units[place])
        given = self.votes_of(unit)
        votes: dict[str, bool | str] = {ratings.annotators[rater]: value == YES for rater, value in given}
        influence, posterior = float(self.influence[place]), float(self.posterior[unit])
        sides = [[rater for rater, value in given if value == side] for side in (0, 1)]
        lone = next((raters[0] for raters in sides if len(raters) == 1 and len(given) > 2), None)
        elsewhere = 0 if lone is None else int(self.compared[lone]) - 1  # here the others have a majority without them
        return Disagreement(
            task=ratings.measured_as,
            label=self.label,
            record_uuid=ratings.records[ratings.unit_records[unit]],
            chunk_id=ratings.unit_chunks[unit],
            language=ratings.unit_languages[unit],
            votes=votes,
            n_yes=len(sides[1]),
            n_no=len(sides[0]),
            contribution=float(self.contribution[place]),
            influence=None if np.isnan(influence) else influence,
            posterior=None if np.isnan(posterior) else posterior,
            entropy=None if np.isnan(posterior) else _entropy(posterior),
            lone_dissenter=None if lone is None else ratings.annotators[lone],
            dissenter_reliability=int(self.agreed[lone]) / elsewhere if lone is not None and elsewhere else None,
            pattern=pattern(votes),
            pattern_count=self.patterns[given],
            other_labels=other_labels,
            notes={},
            marks={},
        )


def find_disagreements(ratings: Ratings, labels: Sequence[str] = (), top: int | None = None) -> list[Disagreement]:
    """Every unit and label with votes on both sides, the weightiest first; what `with_details` fills in is empty.

    Those without which alpha would be undefined come first, then by influence, share of the disagreement, ids, label.
    Of `labels` only these count, of none all do.
    """
    names = ratings.labels
    found = [_Label(ratings, column) for column, label in enumerate(names) if not labels or label in labels]
    if not found:
        return []
    counts = [label_votes(ratings, column) for column in range(len(names))]
    differ = np.column_stack([(votes.ones > 0) & (votes.zeros > 0) for votes in counts])
    ranked = []
    for number, place in _ranked(found)[:top]:
        label = found[number]
        others = np.flatnonzero(differ[label.units[place]]).tolist()
        ranked.append(label.describe(place, tuple(names[column] for column in others if column != label.column)))
    return ranked


def rank_together(tasks: Iterable[Sequence[Disagreement]]) -> list[Disagreement]:
    """The disagreements of several tasks in one list, in the order that `find_disagreements` gives each of them."""
    return sorted(
        (item for task in tasks for item in task),
        key=lambda item: (-math.inf if item.influence is None else -abs(item.influence), -item.contribution),
    )


def _ranked(labels: Sequence[_Label]) -> list[tuple[int, int]]:
    sizes = [len(each.units) for each in labels]
    label = np.repeat(np.arange(len(labels)), sizes)
    place = np.concatenate([np.arange(size) for size in sizes])
    influence = np.abs(np.concatenate([each.influence for each in labels]))
    contribution = np.concatenate([each.contribution for each in labels])
    unit = np.concatenate([each.units for each in labels])
    order = np.lexsort((label, unit, -contribution, -np.where(np.isnan(influence), np.inf, influence)))
    return list(zip(label[order].tolist(), place[order].tolist(), strict=True))


def _entropy(probability: float) -> float:
    parts = (probability, 1 - probability)
    return -math.fsum(part * math.log2(part) for part in parts if part > 0) + 0.0


def pattern(
    votes: Mapping[str, bool | str], sides: Iterable[tuple[str, bool | str]] = (("yes", True), ("no", False))
) -> str:
    """Who said what, yes before no, such as `carla yes; anna, ben no`; each side of a scale stands for itself."""
    said = {word: [name for name, vote in votes.items() if vote == side] for word, side in sides}
    return "; ".join(f"{', '.join(names)} {word}" for word, names in said.items() if names)

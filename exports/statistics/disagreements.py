"""Where annotators differ, by weight on alpha (exports/contracts/agreement.md#annotators-and-consensus)."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from exports.statistics.consensus import label_posterior
from exports.statistics.ratings import NO, YES, MeasuredTask, Ratings, ScaledLabel, Votes, all_labels, label_votes
from exports.statistics.scaled_labels import ScaledEstimators
from exports.statistics.scales import ALPHA, figures
from exports.statistics.table import alpha_sums, alphas
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
    def __init__(self, ratings: Ratings, label: ScaledLabel) -> None:
        self.ratings, self.label, self.is_boolean = ratings, label, label.scale == "boolean"
        n_units, people = len(ratings.unit_records), len(ratings.annotators)
        self.starts = np.searchsorted(label.units, np.arange(n_units + 1))  # and the end
        self.posterior = np.full(n_units, np.nan)
        self.compared = self.agreed = np.zeros(people, np.int64)
        if self.is_boolean:
            column = ratings.labels.index(label.name)
            self.posterior, counts = label_posterior(ratings, column), label_votes(ratings, column)
            lead = (counts.ones - counts.zeros)[label.units] - np.where(label.codes == YES, 1, -1)  # among the others
            right = (lead != 0) & ((lead > 0) == (label.codes == YES))
            self.compared, self.agreed = (
                np.bincount(label.raters[each], minlength=people).astype(np.int64) for each in (lead != 0, right)
            )
            of_units = Votes(*(each[:, np.newaxis] for each in counts))
            sums = alpha_sums(of_units, np.arange(n_units), n_units)
            total = sums.sum(axis=0)
            distances, without, whole = sums[:, 2], alphas(total - sums)[:, 0], alphas(total)[0]
        else:
            found = ScaledEstimators(ratings, label)
            distances, without = found.distances(), found.alphas_without()
            whole = figures(found.totals, found.measure, found.n_raters)[ALPHA]
        self.units = np.flatnonzero(distances)
        self.contribution = distances[self.units] / (distances.sum() or 1)
        self.influence = whole - without[self.units]  # NaN where one of them is undefined
        self.differ = frozenset(self.units.tolist())
        self.patterns = Counter(map(self.votes_of, self.differ))  # units with each

    def votes_of(self, unit: int) -> tuple[tuple[int, int], ...]:
        place = slice(self.starts[unit], self.starts[unit + 1])
        return tuple(zip(self.label.raters[place].tolist(), self.label.codes[place].tolist(), strict=True))

    def describe(self, place: int, other_labels: tuple[str, ...]) -> Disagreement:
        ratings, unit = self.ratings, int(self.units[place])
        given = self.votes_of(unit)
        values = (False, True) if self.is_boolean else self.label.values
        votes: dict[str, bool | str] = {ratings.annotators[rater]: values[code] for rater, code in given}
        influence, posterior = float(self.influence[place]), float(self.posterior[unit])
        counts = Counter(code for _, code in given)
        alone = [rater for rater, code in given if counts[code] == 1] if len(counts) == 2 and len(given) > 2 else []
        lone = alone[0] if len(alone) == 1 else None
        elsewhere = 0 if lone is None else int(self.compared[lone]) - 1  # here the others have a majority without them
        sides = [(self.label.values[code], values[code]) for code in sorted(counts, reverse=self.is_boolean)]
        return Disagreement(
            task=ratings.measured_as,
            label=self.label.name,
            record_uuid=ratings.records[ratings.unit_records[unit]],
            chunk_id=ratings.unit_chunks[unit],
            language=ratings.unit_languages[unit],
            votes=votes,
            n_yes=counts[YES] if self.is_boolean else None,
            n_no=counts[NO] if self.is_boolean else None,
            contribution=float(self.contribution[place]),
            influence=None if np.isnan(influence) else influence,
            posterior=None if np.isnan(posterior) else posterior,
            entropy=None if np.isnan(posterior) else _entropy(posterior),
            lone_dissenter=None if lone is None else ratings.annotators[lone],
            dissenter_reliability=int(self.agreed[lone]) / elsewhere if lone is not None and elsewhere > 0 else None,
            pattern=pattern(votes, sides),
            pattern_count=self.patterns[given],
            other_labels=other_labels,
            notes={},
            marks={},
        )


def find_disagreements(ratings: Ratings, labels: Sequence[str] = (), top: int | None = None) -> list[Disagreement]:
    """Every unit and label with different values, the weightiest first; what `with_details` fills in is empty.

    Those without which alpha would be undefined come first, then by influence, share of the disagreement, ids, label.
    Of `labels` only these count, of none all do.
    """
    order = {name: at for at, name in enumerate((*ratings.labels, *(each.name for each in ratings.scaled)))}
    every = [_Label(ratings, each) for each in sorted(all_labels(ratings), key=lambda each: order[each.name])]
    found = [each for each in every if not labels or each.label.name in labels]
    if not found:
        return []
    ranked = []
    for number, place in _ranked(found)[:top]:
        chosen, unit = found[number], int(found[number].units[place])
        others = (each.label.name for each in every if each is not chosen and unit in each.differ)
        ranked.append(chosen.describe(place, tuple(others)))
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

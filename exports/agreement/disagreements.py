"""Where annotators differ, ranked by how much it weighs on alpha.

Source: exports/contracts/agreement.md#annotators-and-consensus.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from annotation.labels import LABELS, TaskName
from exports.agreement.consensus import BoolArray, label_posterior
from exports.agreement.ratings import MISSING, YES, FloatArray, IntArray, LabelArray, Ratings
from exports.agreement.statistics import Votes, label_votes, unit_sums
from pipeline.schema import Frozen


class Disagreement(Frozen):
    """A unit and a label on which annotators differ, and what a reader needs to settle it."""

    task: TaskName
    """The task."""
    label: str
    """The label."""
    record_uuid: str
    """Id of the record."""
    chunk_id: str
    """Id of the passage in retrieval; empty in the other tasks."""
    language: str
    """Language code of the unit."""
    votes: dict[str, bool]
    """What each annotator said, by name."""
    n_yes: int
    """How many said yes."""
    n_no: int
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
    text: str
    """The first text of the unit: query in retrieval and generation, answer in grounding."""
    text_pair: str
    """The second text: passage, context, answer."""
    query: str
    """The query of a unit of grounding, from the generation rows of its record; empty elsewhere, or where unknown."""
    record_id: str
    """Argilla's id of the record; empty where the file has no such column."""
    link: str
    """Address of the dataset's page in Argilla, since its page for a single record has none; empty where unknown."""


class _SplitUnits(NamedTuple):
    """The units that annotators differ on in one label: numbers of units and, beside each, what it weighs."""

    units: IntArray
    """Numbers of the units."""
    contribution: FloatArray
    """Each unit's share of all disagreement on the label."""
    influence: FloatArray
    """Alpha less alpha without the unit; NaN where the latter is undefined."""


class _LabelRatings(NamedTuple):
    """Who voted what on one label: the ratings in the order of units, then annotators, and where each unit's begin."""

    raters: IntArray
    """Number of the annotator of each rating."""
    values: LabelArray
    """1 yes, 0 no; none is missing."""
    starts: IntArray
    """Place of each unit's first rating; one more at the end."""

    def of(self, unit: int) -> tuple[tuple[int, int], ...]:
        """Annotator and value of each rating of one unit, in order of annotators."""
        place = slice(self.starts[unit], self.starts[unit + 1])
        return tuple(zip(self.raters[place].tolist(), self.values[place].tolist(), strict=True))


class _VotePattern(NamedTuple):
    """The same votes by the same annotators, told once for all units that show them."""

    votes: dict[str, bool]
    """What each annotator said, by name."""
    text: str
    """Who said what, such as `carla yes; anna, ben no`."""
    dissenter: int | None
    """Number of the annotator who alone says otherwise, among three or more; None where nobody does."""
    n_units: int
    """How many units show it."""


class _LabelView(NamedTuple):
    """What describing a disagreement on one label needs."""

    label: str
    column: int
    """Its place in the task."""
    votes: _LabelRatings
    """Who voted what."""
    counts: Votes
    """Ratings on each side, by unit."""
    split: _SplitUnits
    """The units that annotators differ on."""
    patterns: Mapping[tuple[tuple[int, int], ...], _VotePattern]
    """What each split unit's votes are, by annotators and values as `_LabelRatings.of` gives them."""
    posterior: FloatArray
    """Dawid–Skene probability of yes by unit; NaN where the model does not tell."""
    agreed: IntArray
    """Units on which each annotator says what the majority of the others says."""
    compared: IntArray
    """Units on which the others have a majority, by annotator."""


def find_disagreements(ratings: Ratings, labels: Sequence[str] = (), top: int | None = None) -> list[Disagreement]:
    """Every unit and label with votes on both sides, the weightiest first; what `with_details` fills in is empty.

    Those without which alpha would be undefined come first, then by the size of their influence, then by their share of
    the label's disagreement, then by ids and label.

    Of `labels` only these count, of none all do; with `top` the result has at most so many.
    """
    wanted = [column for column, label in enumerate(LABELS[ratings.task]) if not labels or label in labels]
    views = [_view_label(ratings, column) for column in wanted]
    split_by_unit = _split_matrix(ratings)
    return [
        _describe(ratings, views[view], int(views[view].split.units[place]), place, split_by_unit)
        for view, place in _ranked(views)[:top]
    ]


def rank_together(tasks: Iterable[Sequence[Disagreement]]) -> list[Disagreement]:
    """The disagreements of several tasks in one list, in the order that `find_disagreements` gives each of them."""
    return sorted(
        (item for task in tasks for item in task),
        key=lambda item: (-math.inf if item.influence is None else -abs(item.influence), -item.contribution),
    )


def _ranked(views: Sequence[_LabelView]) -> list[tuple[int, int]]:
    """Number of the label and place among its split units, in the order of the list of disagreements."""
    if not views:
        return []
    sizes = [len(view.split.units) for view in views]
    view = np.repeat(np.arange(len(views)), sizes)
    place = np.concatenate([np.arange(size) for size in sizes])
    influence = np.abs(np.concatenate([found.split.influence for found in views]))
    contribution = np.concatenate([found.split.contribution for found in views])
    unit = np.concatenate([found.split.units for found in views])
    order = np.lexsort((view, unit, -contribution, -np.where(np.isnan(influence), np.inf, influence)))
    return list(zip(view[order].tolist(), place[order].tolist(), strict=True))


def _view_label(ratings: Ratings, column: int) -> _LabelView:
    counts = label_votes(ratings, column)
    votes = _order_votes(ratings, column)
    split = _weigh(counts)
    agreed, compared = _against_majority(ratings, column, counts)
    return _LabelView(
        label=LABELS[ratings.task][column],
        column=column,
        votes=votes,
        counts=counts,
        split=split,
        patterns=_vote_patterns(ratings, votes, split.units),
        posterior=label_posterior(ratings, column),
        agreed=agreed,
        compared=compared,
    )


def _vote_patterns(
    ratings: Ratings, votes: _LabelRatings, units: IntArray
) -> dict[tuple[tuple[int, int], ...], _VotePattern]:
    found: dict[tuple[tuple[int, int], ...], _VotePattern] = {}
    for given, n_units in Counter(votes.of(unit) for unit in units.tolist()).items():
        named = {ratings.annotators[rater]: value == YES for rater, value in given}
        found[given] = _VotePattern(named, pattern(named), _lone_dissenter(given), n_units)
    return found


def _weigh(counts: Votes) -> _SplitUnits:
    """The units with votes on both sides, their share of the disagreement and their influence on alpha.

    Alpha without a unit comes from the totals less the unit's own sums (exports/contracts/agreement.md#coefficients).
    """
    sums = unit_sums(counts.zeros, counts.ones)
    units = np.flatnonzero(sums.disagreement)
    n0, n1, distance = sums.zeros.sum(), sums.ones.sum(), sums.disagreement.sum()
    rest0, rest1 = n0 - sums.zeros[units], n1 - sums.ones[units]
    pairs = 2 * rest0 * rest1
    ratio = (rest0 + rest1 - 1) * (distance - sums.disagreement[units]) / np.where(pairs, pairs, np.nan)
    whole = (n0 + n1 - 1) * distance / (2 * n0 * n1) if len(units) else 0.0
    return _SplitUnits(units, sums.disagreement[units] / distance if len(units) else np.empty(0), ratio - whole)


def _order_votes(ratings: Ratings, column: int) -> _LabelRatings:
    """The ratings of one label without those that are missing; responses come sorted by unit and annotator."""
    given = ratings.values[:, column] != MISSING
    sizes = np.bincount(ratings.units[given], minlength=len(ratings.unit_records))
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])
    return _LabelRatings(ratings.response_annotators[given], ratings.values[given, column], starts)


def _against_majority(ratings: Ratings, column: int, counts: Votes) -> tuple[IntArray, IntArray]:
    """For each annotator, the units where the others have a majority she shares, and those where they have one."""
    values = ratings.values[:, column]
    given = values != MISSING
    unit, rater, yes = ratings.units[given], ratings.response_annotators[given], values[given] == YES
    lead = counts.ones[unit] - counts.zeros[unit] - np.where(yes, 1, -1)  # of yes over no among the others
    size = len(ratings.annotators)
    compared = np.bincount(rater[lead != 0], minlength=size)
    return np.bincount(rater[(lead != 0) & ((lead > 0) == yes)], minlength=size), compared


def _split_matrix(ratings: Ratings) -> BoolArray:
    """Units × labels of the task: whether annotators differ."""
    counts = [label_votes(ratings, column) for column in range(len(LABELS[ratings.task]))]
    return np.column_stack([(found.ones > 0) & (found.zeros > 0) for found in counts])


def _describe(
    ratings: Ratings,
    view: _LabelView,
    unit: int,
    place: int,
    split_by_unit: BoolArray,
) -> Disagreement:
    shown = view.patterns[view.votes.of(unit)]
    n_yes, n_no = int(view.counts.ones[unit]), int(view.counts.zeros[unit])
    influence, posterior = float(view.split.influence[place]), float(view.posterior[unit])
    return Disagreement(
        task=ratings.task,
        label=view.label,
        record_uuid=ratings.records[ratings.unit_records[unit]],
        chunk_id=ratings.unit_chunks[unit],
        language=ratings.unit_languages[unit],
        votes=shown.votes,
        n_yes=n_yes,
        n_no=n_no,
        contribution=float(view.split.contribution[place]),
        influence=None if np.isnan(influence) else influence,
        posterior=None if np.isnan(posterior) else posterior,
        entropy=None if np.isnan(posterior) else _entropy(posterior),
        lone_dissenter=None if shown.dissenter is None else ratings.annotators[shown.dissenter],
        dissenter_reliability=None if shown.dissenter is None else _reliability_elsewhere(view, shown.dissenter),
        pattern=shown.text,
        pattern_count=shown.n_units,
        other_labels=tuple(
            label
            for column, label in enumerate(LABELS[ratings.task])
            if column != view.column and split_by_unit[unit, column]
        ),
        notes={},
        marks={},
        text="",
        text_pair="",
        query="",
        record_id="",
        link="",
    )


def _lone_dissenter(votes: Sequence[tuple[int, int]]) -> int | None:
    """Number of the annotator who alone says otherwise, among three or more; None where nobody does."""
    if len(votes) < 3:
        return None
    for side in (0, 1):
        found = [rater for rater, value in votes if value == side]
        if len(found) == 1:
            return found[0]
    return None


def _reliability_elsewhere(view: _LabelView, dissenter: int) -> float | None:
    """How often she says what the majority of the others says on the label, this unit left out; None without others.

    Here, where she alone dissents, the others have a majority and she is not of it.
    """
    elsewhere = int(view.compared[dissenter]) - 1
    return int(view.agreed[dissenter]) / elsewhere if elsewhere else None


def _entropy(probability: float) -> float:
    parts = (probability, 1 - probability)
    return -math.fsum(part * math.log2(part) for part in parts if part > 0) + 0.0


def pattern(votes: Mapping[str, bool]) -> str:
    """Who said what, yes before no, such as `carla yes; anna, ben no`."""
    return "; ".join(f"{', '.join(names)} {word}" for word, names in _sides(votes))


def _sides(votes: Mapping[str, bool]) -> Iterator[tuple[str, list[str]]]:
    for word, value in (("yes", True), ("no", False)):
        names = [name for name, vote in votes.items() if vote is value]
        if names:
            yield word, names

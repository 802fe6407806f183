"""Where each annotator differs from what most of the others answered, or from what was decided."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from annotation.labels import LABELS, TaskName
from annotation.tasks import PRACTICE
from exports.agreement.consensus import UnitLabel
from exports.agreement.ratings import MISSING, NO, YES, Ratings


class Difference(NamedTuple):
    """One answer that differs."""

    record_uuid: str
    """Id of the record."""
    chunk_id: str
    """Id of the passage in retrieval; empty in the other tasks."""
    given: bool
    """Her answer; what it differs from is the opposite."""
    others: int
    """How many others answered the question about this unit."""
    agreed: int
    """How many of them answered otherwise than she did."""
    decided: bool
    """Whether it differs from a decision; else from what most others answered."""


class LabelFeedback(NamedTuple):
    """One annotator's answers to one question, compared."""

    task: TaskName
    label: str
    compared: int
    """Her answers that could be compared."""
    differences: tuple[Difference, ...]
    """Those that differ: decided ones first, then those with most others against her."""


class Feedback(NamedTuple):
    """What comes of comparing everybody with the others."""

    by_annotator: dict[str, tuple[LabelFeedback, ...]]
    """Each annotator's questions in the order of tasks and labels; those without a comparison are missing."""
    too_few: int
    """Answers that differ from those of fewer others than wanted, and are in nobody's page."""


def compare(
    tables: Sequence[Ratings],
    decisions: Mapping[UnitLabel, bool],
    fewest: int,
    left_out: Collection[tuple[str, str]] = (),
) -> Feedback:
    """Everybody's answers beside those of the others.

    A decision comes before all votes. Without one, an answer is compared where at least `fewest` others answered the
    question and they do not tie. `left_out` are units, by record and passage, that are no part of the study; responses
    of the round of practice are none either.
    """
    found: defaultdict[str, list[LabelFeedback]] = defaultdict(list)
    too_few = 0
    for ratings in tables:
        units = [
            (ratings.records[record], chunk)
            for record, chunk in zip(ratings.unit_records.tolist(), ratings.unit_chunks, strict=True)
        ]
        counts = np.array([unit not in left_out for unit in units], dtype=bool)
        practice = ratings.rounds.index(PRACTICE) if PRACTICE in ratings.rounds else None
        of_study = counts[ratings.units] & (ratings.response_rounds != practice)
        for column, label in enumerate(LABELS[ratings.task]):
            decided = {at: decisions[*unit, label] for at, unit in enumerate(units) if (*unit, label) in decisions}
            values = np.where(of_study, ratings.values[:, column], MISSING)
            yes, no = (np.bincount(ratings.units[values == each], minlength=len(units)) for each in (YES, NO))
            compared: defaultdict[int, int] = defaultdict(int)
            differing: defaultdict[int, list[Difference]] = defaultdict(list)
            rows = zip(ratings.units.tolist(), ratings.response_annotators.tolist(), values.tolist(), strict=True)
            for unit, annotator, value in rows:
                if value == MISSING:
                    continue
                others_yes, others_no = int(yes[unit]) - (value == YES), int(no[unit]) - (value == NO)
                against = others_no if value == YES else others_yes
                record_uuid, chunk_id = units[unit]
                others = others_yes + others_no
                difference = Difference(record_uuid, chunk_id, value == YES, others, against, unit in decided)
                if unit in decided:
                    differs = decided[unit] is not difference.given
                elif others_yes == others_no:
                    continue
                else:
                    differs = against * 2 > difference.others
                    if difference.others < fewest:
                        too_few += differs
                        continue
                compared[annotator] += 1
                if differs:
                    differing[annotator].append(difference)
            for annotator, count in compared.items():
                in_order = sorted(differing[annotator], key=lambda each: (not each.decided, -each.agreed, *each[:2]))
                name = ratings.annotators[annotator]
                found[name].append(LabelFeedback(ratings.task, label, count, tuple(in_order)))
    return Feedback(dict(sorted((name, tuple(each)) for name, each in found.items())), too_few)

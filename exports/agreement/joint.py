"""Labels, pairs and annotators of one task, all from the same resampled records."""

from typing import NamedTuple

from exports.agreement.annotators import plan_annotators, read_annotators
from exports.agreement.figures import AnnotatorAgreement, PairAgreement
from exports.agreement.labels import LabelFigures, plan_labels, read_labels
from exports.agreement.pairs import label_pairs, plan_pairs, read_pairs
from exports.agreement.patterns import task_patterns
from exports.agreement.ratings import Ratings
from exports.agreement.resampling import bootstrap_frames


class TaskFigures(NamedTuple):
    """Every figure of a task that the joint bootstrap has a part in."""

    labels: LabelFigures
    """The labels and macro alpha."""
    pairs: tuple[PairAgreement, ...]
    """Every pair of annotators, label by label."""
    annotators: tuple[AnnotatorAgreement, ...]
    """Every annotator against the others, label by label."""


def measure_figures(ratings: Ratings, resamples: int, seed: int) -> TaskFigures:
    """The same as `measure_labels`, `measure_pairs` and `annotators_vs_rest`, with the records drawn once for all."""
    task = task_patterns(ratings)
    pairs = [label_pairs(task, label) for label in task.labels]
    by_label, by_pair, by_annotator = plan_labels(task), plan_pairs(task, pairs), plan_annotators(task)
    found = iter(bootstrap_frames([*by_label, *by_pair, *by_annotator], resamples, seed))
    of_labels, of_pairs, of_annotators = ([next(found) for _ in each] for each in (by_label, by_pair, by_annotator))
    return TaskFigures(
        read_labels(task, pairs, of_labels, of_pairs),
        read_pairs(task, pairs, of_pairs),
        read_annotators(task, of_annotators),
    )

"""What a dataset holds, in numbers: for the table at the end, the warnings and the data card."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from annotation.labels import LABELS, TaskName
from exports.agreement.ratings import MISSING, Ratings
from exports.dataset.splits import SPLITS, Placed, SplitShares


class TaskFacts(NamedTuple):
    """Counts of one task."""

    task: TaskName
    """The task."""
    n_units: int
    """Units with a response."""
    n_records: int
    """Records with a response."""
    annotators: dict[str, int]
    """Responses by annotator, by name."""
    languages: dict[str, int]
    """Units by language, by code."""
    split_records: dict[str, int]
    """Records in each split."""
    split_rows: dict[str, int]
    """Responses in each split."""
    split_units: dict[str, int]
    """Units in each split."""
    n_incomplete: int
    """Responses that leave a label out: their vector is null."""
    sources: dict[str, dict[str, int]]
    """Units by where the consensus comes from, for each label; `none` where votes tie or nobody answered."""

    @property
    def n_rows(self) -> int:
        """Responses."""
        return sum(self.split_rows.values())


def count_facts(
    ratings: Ratings,
    sources: Mapping[str, Mapping[str | None, int]],
    places: Mapping[str, Placed],
    split_rows: dict[str, int],
    split_units: dict[str, int],
) -> TaskFacts:
    """The counts of a task with these ratings, units by the cell of `<label>_source`, rows and units by split."""
    responses = np.bincount(ratings.response_annotators, minlength=len(ratings.annotators))
    records = Counter(places[record].split for record in ratings.records)
    by_source = {
        label: {source or "none": count for source, count in sources[f"{label}_source"].items()}
        for label in LABELS[ratings.task]
    }
    return TaskFacts(
        task=ratings.task,
        n_units=len(ratings.unit_records),
        n_records=len(ratings.records),
        annotators=dict(zip(ratings.annotators, responses.tolist(), strict=True)),
        languages=dict(sorted(Counter(ratings.unit_languages).items())),
        split_records={split: records[split] for split in SPLITS},
        split_rows=split_rows,
        split_units=split_units,
        n_incomplete=int((ratings.values == MISSING).any(axis=1).sum()),
        sources={label: dict(sorted(counts.items())) for label, counts in by_source.items()},
    )


def warnings_about(facts: Sequence[TaskFacts], places: Mapping[str, Placed], shares: SplitShares) -> Iterator[str]:
    """Plain sentences about splits without rows and responses without a vector."""
    groups = len({place.group for place in places.values()})
    for split in SPLITS:
        empty = [each.task for each in facts if not each.split_rows[split]]
        if getattr(shares, split) and empty:
            yield (
                f"The split {split} is empty for {', '.join(empty)}: there are {groups} narratives, and each is in one "
                "split as a whole. Let more be annotated, or choose other shares with `--split`."
            )
    for each in facts:
        if each.n_incomplete:
            yield (
                f"{each.task}: {each.n_incomplete} responses leave a label out; the label is null there, and so is "
                "the vector `labels`."
            )

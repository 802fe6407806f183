"""What stands behind the rates of each group: questions, answers, citations, discarded responses.

Source: exports/contracts/results.md#denominators.
"""

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from annotation.labels import TaskName
from exports.agreement.ratings import IntArray
from exports.results._groups import Grouping
from exports.results.schema import Denominators
from exports.results.study import Study


class GroupCounts:
    """Counts the denominators of each group of one division of the records."""

    def __init__(self, study: Study, records: Sequence[str], grouping: Grouping) -> None:
        """Read what is known of each record once."""
        self.study, self.grouping = study, grouping
        self.sources = _whole_numbers(records, study.provenance, "n_sources")
        self.read = _whole_numbers(records, study.provenance, "n_read")
        self.members = [np.flatnonzero(grouping.of_record == group) for group in range(len(grouping.groups))]
        self.records = records
        self.of = cache(self._count)

    def _count(self, group: int, tasks: tuple[TaskName, ...]) -> Denominators:
        """The denominators of a rate that comes from these tasks."""
        members = self.members[group]
        sources, read = self.sources[members], self.read[members]
        runs = self.study.asked_of(self.grouping.groups[group])
        return Denominators(
            asked=runs and runs.asked,
            answered=runs and runs.answered,
            refused=runs and runs.refused,
            failed=runs and runs.failed,
            answers=len(members),
            without_citations=None if (sources < 0).any() else int((sources == 0).sum()),
            with_unread_sources=None if (sources < 0).any() or (read < 0).any() else int((read < sources).sum()),
            discarded=self._discarded(group, tasks),
        )

    def _discarded(self, group: int, tasks: tuple[TaskName, ...]) -> int | None:
        """Discarded responses to the units of a group; of all answers together their number alone may be known."""
        discarded, totals = self.study.discarded, self.study.all_discarded
        if discarded is not None:
            members = self.members[group].tolist()
            return sum(discarded.get((task, self.records[member]), 0) for task in tasks for member in members)
        if self.grouping.groups[group] or not totals.keys() >= {*tasks}:
            return None
        return sum(totals[task] for task in tasks)


def _whole_numbers(records: Sequence[str], provenance: Mapping[str, Mapping[str, str]], column: str) -> IntArray:
    """A count of each record; -1 where it is not known."""
    cells = (provenance.get(record, {}).get(column, "") for record in records)
    return np.array([int(cell) if cell.isascii() and cell.isdigit() else -1 for cell in cells], np.int64)

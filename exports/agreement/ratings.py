"""The ratings of one task as arrays: what every figure of agreement is computed from."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from annotation.labels import TaskName

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
LabelArray = npt.NDArray[np.int8]

YES, NO, MISSING = 1, 0, -1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


class Ratings(NamedTuple):
    """All submitted responses to one task; one response for each unit and annotator.

    Units are sorted by record and passage, annotators by name, responses by unit and annotator: so nothing that is
    computed from them depends on the order of rows in a file.
    """

    task: TaskName
    annotators: tuple[str, ...]
    """Names of everyone with a response, sorted."""
    records: tuple[str, ...]
    """Every `record_uuid`, sorted."""
    unit_records: IntArray
    """Number of the record of each unit, counted from 0."""
    unit_chunks: tuple[str, ...]
    """`chunk_id` of each unit in retrieval; empty strings in the other tasks."""
    unit_languages: tuple[str, ...]
    """Language code of each unit."""
    units: IntArray
    """Number of the unit of each response, counted from 0."""
    response_annotators: IntArray
    """Number of the annotator of each response, counted from 0."""
    values: LabelArray
    """Responses × labels of the task in their order: 1 yes, 0 no, -1 missing."""
    moments: IntArray
    """`created_at` of each response, in microseconds since 1970 UTC."""
    rounds: tuple[str, ...]
    """Names of the rounds in order of their first response; empty where the files name none."""
    response_rounds: IntArray
    """Number of the round of each response, counted from 0; -1 where its file names none."""
    n_duplicates: int
    """Responses that gave way to a newer one."""
    discards: dict[str, int] | None
    """Discarded responses by annotator; None where the files do not tell."""
    unit_ranks: IntArray | None = None
    """`chunk_rank` of each unit, 0 where its file tells none; None where no file was read."""

    @property
    def latest(self) -> datetime | None:
        """The newest `created_at`, in UTC; None without responses."""
        return EPOCH + int(self.moments.max()) * MICROSECOND if len(self.moments) else None

"""The ratings of one task as arrays: what every figure of agreement is computed from."""

from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from annotation.argilla.labels import ByTask, TaskName
from pipeline.core.schema import Frozen

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
LabelArray = npt.NDArray[np.int8]
BoolArray = npt.NDArray[np.bool_]

UnitKey = tuple[str, str]  # `record_uuid` and `chunk_id`, which is empty outside retrieval

YES, NO, MISSING = 1, 0, -1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
ScaleName = Literal["boolean", "nominal", "ordinal", "interval"]
Weights = Literal["identity", "linear", "quadratic", "ordinal"]
MeasuredTask = TaskName | Literal["ratings"]
RATINGS: Literal["ratings"] = "ratings"  # What stands for the task of anybody's ratings


USUAL_WEIGHTS: dict[ScaleName, Weights] = {"nominal": "identity", "ordinal": "ordinal", "interval": "quadratic"}


YES_AND_NO: ByTask[tuple[str, ...]] = ByTask(
    lambda task: tuple(question.name for question in task.questions if question.scale == "boolean")
)
"""The labels of yes and no of each task, in its order; of those that come with citejury all."""


class ScaledLabel(NamedTuple):
    """The ratings of one label that is no yes or no, sorted by unit and annotator."""

    name: str
    scale: ScaleName
    weights: Weights  # What part of an agreement two values are, for weighted figures
    values: tuple[str, ...]  # Every value that counts as one, in their order
    places: FloatArray  # Where each value stands: the number of an interval scale, else its rank
    units: IntArray  # Number of the unit of each rating, counted from 0
    raters: IntArray  # Number of its annotator
    codes: IntArray  # Number of its value, counted from 0
    is_whole: bool = False  # Whether no other value can be given


class Ratings(NamedTuple):
    """All submitted responses to one task; one response for each unit and annotator.

    Units are sorted by record and passage, annotators by name, responses by unit and annotator: so nothing that is
    computed from them depends on the order of rows in a file.
    """

    task: TaskName
    annotators: tuple[str, ...]  # Names of everyone with a response, sorted
    records: tuple[str, ...]  # Every `record_uuid`, sorted
    unit_records: IntArray  # Number of the record of each unit, counted from 0
    unit_chunks: tuple[str, ...]  # `chunk_id` of each unit in retrieval; empty strings in the other tasks
    unit_languages: tuple[str, ...]  # Language code of each unit
    units: IntArray  # Number of the unit of each response, counted from 0
    response_annotators: IntArray  # Number of the annotator of each response, counted from 0
    values: LabelArray  # Responses × labels of yes and no in the task's order: 1 yes, 0 no, -1 missing
    moments: IntArray  # `created_at` of each response, in microseconds since 1970 UTC
    rounds: tuple[str, ...]  # Names of the rounds in order of their first response; empty where the files name none
    response_rounds: IntArray  # Number of the round of each response, counted from 0; -1 where its file names none
    n_duplicates: int  # Responses that gave way to a newer one
    discards: dict[str, int] | None  # Discarded responses by annotator; None where the files do not tell
    unit_ranks: IntArray | None = None  # `chunk_rank` of each unit, 0 where its file tells none
    own_labels: tuple[str, ...] | None = None  # Of anybody's ratings, which tell no times: their labels of yes and no
    scaled: tuple[ScaledLabel, ...] = ()  # The labels on a scale, theirs or of a task from a file
    unit_groups: tuple[str, ...] = ()  # What each unit is compared by; empty where no column of theirs is named
    unit_names: tuple[str, ...] = ()  # What anybody's units are called, with their group
    counted_discards: int | None = None  # How many responses were discarded, as manifests tell, which name nobody

    @property
    def n_discarded(self) -> int | None:
        return self.counted_discards if self.discards is None else sum(self.discards.values())

    @property
    def measured_as(self) -> MeasuredTask:
        return self.task if self.own_labels is None else RATINGS

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of `values`."""
        return YES_AND_NO[self.task] if self.own_labels is None else self.own_labels

    @property
    def latest(self) -> datetime | None:
        """The newest `created_at`, in UTC; None without responses."""
        told = len(self.moments) and self.own_labels is None
        return EPOCH + int(self.moments.max()) * MICROSECOND if told else None

    @property
    def unit_keys(self) -> list[UnitKey]:
        return [(self.records[at], chunk) for at, chunk in zip(self.unit_records, self.unit_chunks, strict=True)]


def all_labels(ratings: Ratings) -> list[ScaledLabel]:
    """Those of yes and no too, as a scale of two values."""
    found = list(ratings.scaled)
    for column, name in enumerate(ratings.labels):
        given = ratings.values[:, column] != MISSING
        people, codes = ratings.response_annotators[given], ratings.values[given, column].astype(np.int64)
        places = np.array([0.0, 1.0])
        found.append(
            ScaledLabel(name, "boolean", "identity", ("no", "yes"), places, ratings.units[given], people, codes)
        )
    return sorted(found, key=lambda label: label.name)


class Votes(NamedTuple):
    """Ratings of each unit, or of each part of one: units × labels, or a number a unit where it is about one label."""

    zeros: IntArray
    ones: IntArray

    @property
    def ratings(self) -> IntArray:
        return self.zeros + self.ones


def count_votes(values: LabelArray, units: IntArray, n_units: int) -> Votes:
    """Votes of each unit on each label, from responses × labels and the number of each response's unit."""

    def count(value: int) -> IntArray:
        columns = [np.bincount(units[column == value], minlength=n_units) for column in values.T]
        return np.ascontiguousarray(np.array(columns, np.int64).reshape(len(columns), n_units).T)

    return Votes(count(NO), count(YES))


def label_votes(ratings: Ratings, column: int) -> Votes:
    votes = count_votes(ratings.values[:, [column]], ratings.units, len(ratings.unit_records))
    return Votes(votes.zeros[:, 0], votes.ones[:, 0])


def met_pairs(units: IntArray) -> tuple[IntArray, IntArray]:
    """Rows of every two ratings of a unit, the earlier one first; rows are sorted by unit."""
    found = [(np.empty(0, np.int64), 0)]
    for distance in range(1, int(np.bincount(units).max(initial=0))):
        found.append((np.flatnonzero(units[distance:] == units[:-distance]), distance))
    return np.concatenate([rows for rows, _ in found]), np.concatenate([rows + distance for rows, distance in found])


class InputFile(Frozen):
    """One CSV file that agreement was computed from."""

    file: str
    """Its name without folder."""
    sha256: str
    """Of the file's bytes, in hexadecimal."""
    rows: int
    """Rows without the header, those that were left out included."""
    guidelines: tuple[str, ...] = ()
    """Versions of the guidelines that its responses follow, by the manifest beside it; empty where none tells."""

"""What runs tell of answers, without their texts: arrays, of which a hundred thousand answers take some megabytes."""

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from annotation.argilla.labels import TaskName
from exports.statistics.ratings import FloatArray, IntArray, MeasuredTask, Ratings, UnitKey
from pipeline.core.schema import Frozen
from pipeline.records.causes import SourceState

STATES: tuple[SourceState, ...] = get_args(SourceState)  # The states of a source, by their number in `Answers`
UNKNOWN_CITED = -1  # The number where a record does not say how a source came with its answer


class Column(NamedTuple):
    names: tuple[str, ...]
    numbers: IntArray  # Which of them each row has, counted from 0


class Answers(NamedTuple):
    """The answers of some runs that have a text and were not refused, in the order of their ids."""

    record_uuids: tuple[str, ...]
    columns: Mapping[str, Column]  # Those of `provenance.csv`; empty text where not known
    narratives: Column  # The narrative of each (exports/contracts/results.md#narratives)
    n_passages: IntArray  # How many passages each record has
    cited_by: IntArray  # Answer of each citation, rising: each distinct URL of an answer is one citation
    sites: Column  # The site of each citation (pipeline/contracts/urls.md#site-key); empty where it is not known
    states: IntArray  # Number in `STATES` of what became of each citation's source
    cited: IntArray  # Number in `CITED` of how each came with its answer, or `UNKNOWN_CITED`
    excerpts: npt.NDArray[np.bool_]  # Whether all that is held is an excerpt that the provider sent
    never_were: FloatArray  # 1 where what became of its source allows to call it fabricated, else 0; NaN: not known

    @property
    def n_citations(self) -> IntArray:
        return np.bincount(self.cited_by, minlength=len(self.record_uuids))


Consensus = Literal["share", "majority", "adjudicated"]


class FindingDefinition(Frozen):
    """A composite finding: what makes an answer as a whole count, a table `[findings.<name>]` of citejury.toml."""

    title: str
    """What people read, such as `Serious problem`."""
    any: tuple[str, ...]
    """Labels of any task; an answer counts where most votes on one are yes, or no where `not ` stands before it."""


SERIOUS_PROBLEM = FindingDefinition(
    title="Serious problem",
    any=("contradicted_claim_present", "fabricated_source", "unsafe_content", "not response_on_topic"),
)


class RunCounts(NamedTuple):
    """What became of the questions that one group of answers comes from, as the runs tell."""

    asked: int  # Questions that were put to the provider
    refused: int  # Those that the provider refused or blocked
    failed: int  # Those without an answer for any other reason

    @property
    def answered(self) -> int:
        return self.asked - self.refused - self.failed


def add_counts(counts: Iterable[RunCounts]) -> RunCounts:
    return RunCounts(*(sum(column) for column in zip(*counts, strict=True)))


class Judged(NamedTuple):
    """What a judge says of units, most of which nobody labelled, and what is known of their records."""

    judge: str
    tasks: Mapping[TaskName, Mapping[UnitKey, Mapping[str, float]]]  # Its probability of yes by task, unit and label
    provenance: Mapping[str, Mapping[str, str]]  # By record and column of `provenance.csv`; absent or empty: not known
    narratives: Mapping[str, str]  # The cluster of each record; every record has one
    sampled: Mapping[str, float] | None = None  # Inclusion probability of every record of the sample


Decided = Mapping[MeasuredTask, Mapping[tuple[str, str, str], bool | str]]
"""What adjudicators decided by task, and by record, passage and label."""


MONTH = "month"
"""The column that a trend adds to the provenance of each record."""


class Study(NamedTuple):
    tables: tuple[Ratings, ...]  # The ratings of each task that has a file, at most one table a task
    provenance: Mapping[str, Mapping[str, str]]  # By record and column of `provenance.csv`; absent or empty: not known
    narratives: Mapping[str, str]  # The cluster of each record; every record has one
    probabilities: Mapping[str, float] | None = None  # Of inclusion; None where every record counts alike
    decisions: Decided | None = None
    discarded: Mapping[tuple[MeasuredTask, str], int] | None = None  # Responses; None where the files do not tell
    all_discarded: Mapping[MeasuredTask, int] = {}  # Of the tasks of which it is known; read where `discarded` is None
    runs: Mapping[str, RunCounts] | None = None  # What became of the questions by `model_name`; None without runs
    arms: Mapping[tuple[str, str], RunCounts] = {}  # By `model_name` and `arm`, empty where none
    answers: Answers | None = None  # The answers of the runs, those that nobody judged included; None without runs
    judged: Judged | None = None  # What a judge says; None without one
    other_language: Mapping[str, bool] = {}  # Whether a record is not in its query's; absent where that is not known
    successive: frozenset[str] = frozenset()  # Such as months: compared with the one before and the first only

    @staticmethod
    def of_ratings(ratings: Ratings, column: str) -> "Study":
        """Anybody's: what they have in each group, which the column names, is a record; their own are narratives."""
        clusters = [ratings.records[at] for at in ratings.unit_records]
        of_unit = list(zip(clusters, ratings.unit_groups or ("",) * len(clusters), strict=True))
        number = {each: at for at, each in enumerate(sorted(set(of_unit)))}
        table = ratings._replace(
            records=tuple(f"{at:09d}" for at in number.values()),
            unit_records=np.array([number[each] for each in of_unit], np.int64),
        )
        records = dict(zip(table.records, number, strict=True))
        return Study(
            (table,),
            {record: {column: group} if column else {} for record, (_, group) in records.items()},
            {record: cluster for record, (cluster, _) in records.items()},
        )

    def asked_of(self, by: Mapping[str, str]) -> RunCounts | None:
        """What was asked of all answers or of a group by `model_name`, `arm` or both; None where runs do not say."""
        model, arm = by.get("model_name"), by.get("arm")
        if not self.runs or by.keys() - {"model_name", "arm"}:
            return None
        if arm is None:
            return add_counts(self.runs.values()) if model is None else self.runs.get(model)
        found = [counts for (whose, of), counts in self.arms.items() if of == arm and model in (None, whose)]
        return add_counts(found) if found else None

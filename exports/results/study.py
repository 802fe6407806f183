"""What results are computed from: votes, where each record comes from, and what weighs and decides beside them."""

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from annotation.labels import TaskName
from exports.agreement.judge import UnitKey
from exports.agreement.ratings import Ratings
from exports.results.answers import Answers
from pipeline.schema import Frozen

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
"""The finding that is measured where citejury.toml defines none; its name is `serious_problem`."""


class RunCounts(NamedTuple):
    """What became of the questions that one group of answers comes from, as the runs tell."""

    asked: int
    """Questions that were put to the provider."""
    refused: int
    """Those that the provider refused or blocked."""
    failed: int
    """Those without an answer for any other reason."""

    @property
    def answered(self) -> int:
        """Those with an answer."""
        return self.asked - self.refused - self.failed


def add_counts(counts: Iterable[RunCounts]) -> RunCounts:
    """What became of the questions of several groups together; at least one."""
    return RunCounts(*(sum(column) for column in zip(*counts, strict=True)))


class Judged(NamedTuple):
    """What a judge says of units, most of which nobody labelled, and what is known of their records."""

    judge: str
    """Its name."""
    tasks: Mapping[TaskName, Mapping[UnitKey, Mapping[str, float]]]
    """Its probability of yes by task, unit and label."""
    provenance: Mapping[str, Mapping[str, str]]
    """Columns of `provenance.csv` by `record_uuid` and name, of labelled records too."""
    narratives: Mapping[str, str]
    """The cluster of each record, labelled or not, by `record_uuid`; those of the study are named as there."""
    sampled: Mapping[str, float] | None = None
    """Inclusion probability of every record of the sample, labelled or not; None without weights."""


class Study(NamedTuple):
    """All votes of some exports, and what is known of the records beside them."""

    tables: tuple[Ratings, ...]
    """The ratings of each task that has a file, at most one table a task."""
    provenance: Mapping[str, Mapping[str, str]]
    """Columns of `provenance.csv` by `record_uuid` and name; what is not known is absent or empty."""
    narratives: Mapping[str, str]
    """The cluster of each record by `record_uuid`: its narrative, as far as that can be told; every record has one."""
    probabilities: Mapping[str, float] | None = None
    """Inclusion probability by `record_uuid`; None where every record counts alike."""
    decisions: Mapping[tuple[str, str, str], bool] | None = None
    """Adjudicated labels by `record_uuid`, `chunk_id` and label; None where none were given."""
    discarded: Mapping[tuple[TaskName, str], int] | None = None
    """Discarded responses by task and `record_uuid`; None where the files do not tell."""
    all_discarded: Mapping[TaskName, int] = {}
    """How many responses to each task were discarded, of the tasks of which that is known; read where `discarded` is
    None."""
    runs: Mapping[str, RunCounts] | None = None
    """What became of the questions by `model_name`; None without runs."""
    arms: Mapping[tuple[str, str], RunCounts] = {}
    """The same by `model_name` and `arm`; the arm is empty where a question was put by none."""
    answers: Answers | None = None
    """The answers of the runs, those that nobody judged included; None without runs."""
    judged: Judged | None = None
    """What a judge says; None without one."""
    successive: frozenset[str] = frozenset()
    """Columns of provenance whose values follow each other in the order of the alphabet, such as months: each is
    compared with the one before it and with the first only."""

    def asked_of(self, by: Mapping[str, str]) -> RunCounts | None:
        """What became of the questions behind a group of answers; None where runs do not tell.

        Known of all answers together, and of groups by `model_name`, by `arm` or by both.
        """
        model, arm = by.get("model_name"), by.get("arm")
        if not self.runs or by.keys() - {"model_name", "arm"}:
            return None
        if arm is None:
            return add_counts(self.runs.values()) if model is None else self.runs.get(model)
        found = [counts for (whose, of), counts in self.arms.items() if of == arm and model in (None, whose)]
        return add_counts(found) if found else None

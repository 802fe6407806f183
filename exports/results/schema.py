"""The whole of `results.json`: every figure, and where there is none, the reason.

Source: exports/contracts/results.md.
"""

from typing import Literal

from annotation.labels import TaskName
from exports.agreement.schema import InputFile
from exports.results.study import Consensus
from pipeline.schema import Frozen

NoFigure = Literal["no_units", "one_narrative", "no_shared_narrative", "not_known"]


class RateInterval(Frozen):
    """A 95 % interval of a rate or of a difference of rates, never of width 0."""

    low: float
    """Its lower end."""
    high: float
    """Its upper end."""
    method: str
    """How it was made; exports/contracts/results.md#intervals describes each."""


class Denominators(Frozen):
    """How many questions, answers and responses stand behind a rate; None where the files do not tell."""

    asked: int | None
    """Questions that were put to providers, answered + refused + failed; known from runs."""
    answered: int | None
    """Those that were answered, whether the jury saw the answer or not."""
    refused: int | None
    """Those that the provider refused or blocked."""
    failed: int | None
    """Those without an answer for any other reason."""
    answers: int
    """Answers of the group that were put before the jury on any task."""
    without_citations: int | None
    """Those of them that cite nothing."""
    with_unread_sources: int | None
    """Those of them that cite a source of which no text is held."""
    discarded: int | None
    """Discarded responses to units of the task."""


class Rate(Frozen):
    """A share of yes over units, with what stands behind it."""

    rate: float | None
    """Mean over units of their value; weighted (Σ y/p ÷ Σ 1/p) where inclusion probabilities are given."""
    interval: RateInterval | None
    """95 % interval, clustered by narrative; None where `undefined` says why."""
    undefined: NoFigure | None
    """Why there is no rate or no interval; None where both are there."""
    n_units: int
    """Units that have a value."""
    n_undecided: int
    """Units with votes that have none: a tie under `majority`, no decision under `adjudicated`."""
    n_narratives: int
    """Narratives that these units belong to."""
    denominators: Denominators
    """What stands behind it."""


class GroupRate(Rate):
    """The rate of one group of records."""

    by: dict[str, str]
    """What the records have in common: the value of each column; empty where it is not known."""


class Difference(Frozen):
    """Two groups against each other, on the narratives that both have."""

    by: str
    """The column that the groups differ in."""
    within: dict[str, str]
    """The level of the other columns for crossed groups; empty otherwise."""
    a: str
    """Value of the first group, the first in the alphabet."""
    b: str
    """Value of the second group."""
    n_narratives: int
    """Narratives that both have."""
    rate_a: float | None
    """Rate of the first on these narratives: the mean of their means."""
    rate_b: float | None
    """Rate of the second on them."""
    difference: float | None
    """a − b: the mean over narratives of the difference of the narrative's means."""
    interval: RateInterval | None
    """95 % interval of the difference, not corrected for the number of comparisons."""
    p: float | None
    """Two-sided p from exchanging the two groups' values within narratives (sign flips)."""
    p_holm: float | None
    """The same, corrected by Holm for all pairs of this label in this dimension."""
    stands_out: bool
    """Whether it holds at .05 after Holm over all pairs of all labels and findings of this dimension together."""
    undefined: NoFigure | None
    """Why there is no p or no interval; None where both are there."""


class LabelResults(Rate):
    """The rate of one label over all records, by group, and what differs between groups."""

    groups: tuple[GroupRate, ...]
    """Each column's groups, then the crossed ones, in the order of their values."""
    differences: tuple[Difference, ...]
    """Every pair of groups in one column, then those of crossed groups within each level of the other columns."""


class Finding(LabelResults):
    """A composite finding: answers as a whole."""

    title: str
    """What people read."""
    any: tuple[str, ...]
    """The labels of which one makes the answer count, `not ` before those that count where they are no."""
    n_incomplete: int
    """Answers that were left out because the jury did not judge every part."""
    missing: dict[str, int]
    """How many answers lack each of the labels; one may lack several."""


class TaskResults(Frozen):
    """What the jury found on one task."""

    labels: dict[str, LabelResults]
    """The labels in the order of the task."""


class Results(Frozen):
    """The whole of `results.json`; the same input gives the same bytes."""

    version: Literal[1] = 1
    """Version of this schema."""
    latest_response: str | None
    """The newest `created_at`, in UTC; None without responses."""
    seed: int
    """Seed of the sign flips."""
    flips: int
    """Sign flips behind each p, at most: where narratives are few, all of them are counted instead."""
    by: tuple[str, ...]
    """The columns by which records are grouped."""
    consensus: Consensus
    """How the votes on a unit become its value."""
    weighted: bool
    """Whether inclusion probabilities weigh the rates."""
    inputs: tuple[InputFile, ...]
    """The files that it was computed from."""
    n_records: int
    """Records with a vote on any task."""
    n_narratives: int
    """Narratives that they belong to."""
    findings: dict[str, Finding]
    """Composite findings by name."""
    tasks: dict[TaskName, TaskResults]
    """The tasks that have a file."""
    remarks: tuple[str, ...]
    """What cannot be told, or what to mind, in plain sentences."""

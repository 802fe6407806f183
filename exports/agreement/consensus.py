"""One label for each unit from the votes of its annotators, with where it comes from (`agreement.md` section 8)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from annotation.labels import LABELS, TaskName
from exports.agreement.dawid_skene import dawid_skene
from exports.agreement.ratings import FloatArray, Ratings
from exports.agreement.votes import label_votes

ConsensusRule = Literal["majority", "ds"]
ConsensusSource = Literal["single", "unanimous", "majority", "ds", "adjudicated"]
UnitLabel = tuple[str, str, str]
"""`record_uuid`, `chunk_id` (empty outside retrieval) and label; no two tasks share a label."""


class ConsensusLabel(NamedTuple):
    """What the jury says on one label of one unit."""

    task: TaskName
    """The task."""
    label: str
    """The label."""
    record_uuid: str
    """Id of the record."""
    chunk_id: str
    """Id of the passage in retrieval; empty in the other tasks."""
    n_yes: int
    """How many said yes."""
    n_no: int
    """How many said no."""
    vote_share: float | None
    """Share of yes among the votes; None without any."""
    majority: bool | None
    """What most said; None where they tie or nobody voted."""
    posterior: float | None
    """Dawid–Skene probability of yes; None where the model is not identified."""
    consensus: bool | None
    """The label to use: an adjudicator's decision, or by the rule where there is none; None where that tells none."""
    consensus_source: ConsensusSource | None
    """Where `consensus` comes from: `single` is one voice alone, `unanimous` are two or more; None without one."""


def consensus(
    ratings: Ratings, decisions: Mapping[UnitLabel, bool] | None = None, rule: ConsensusRule = "majority"
) -> Iterator[ConsensusLabel]:
    """A label for each unit and label of the task, in the order of the units, then of the labels; made one by one.

    `decisions` are adjudicators' and come before all votes; `unused_decisions` tells which of them name a unit that
    has no response here. The rule `ds` takes the more probable value where the Dawid–Skene model tells one, and the
    majority elsewhere; `consensus_source` says which.
    """
    columns = [labels_of_column(ratings, column, decisions or {}, rule) for column in range(len(LABELS[ratings.task]))]
    for unit in zip(*columns, strict=True):
        yield from unit


def labels_of_column(
    ratings: Ratings, column: int, decisions: Mapping[UnitLabel, bool], rule: ConsensusRule
) -> Iterator[ConsensusLabel]:
    """The consensus on one label of the task, for each unit in order."""
    label = LABELS[ratings.task][column]
    counts = label_votes(ratings, column)
    posteriors = label_posterior(ratings, column)
    units = zip(ratings.unit_records.tolist(), ratings.unit_chunks, strict=True)
    votes = zip(counts.ones.tolist(), counts.zeros.tolist(), posteriors.tolist(), strict=True)
    for (record, chunk_id), (n_yes, n_no, probability) in zip(units, votes, strict=True):
        record_uuid = ratings.records[record]
        posterior = None if np.isnan(probability) else probability
        value, source = settle(n_yes, n_no, posterior, decisions.get((record_uuid, chunk_id, label)), rule)
        yield ConsensusLabel(
            task=ratings.task,
            label=label,
            record_uuid=record_uuid,
            chunk_id=chunk_id,
            n_yes=n_yes,
            n_no=n_no,
            vote_share=n_yes / (n_yes + n_no) if n_yes + n_no else None,
            majority=majority(n_yes, n_no),
            posterior=posterior,
            consensus=value,
            consensus_source=source,
        )


def settle(
    n_yes: int, n_no: int, posterior: float | None, decision: bool | None, rule: ConsensusRule
) -> tuple[bool | None, ConsensusSource | None]:
    """The consensus and where it comes from; both None where there is none."""
    if decision is not None:
        return decision, "adjudicated"
    if rule == "ds" and posterior is not None and posterior != 0.5:
        return posterior > 0.5, "ds"
    if n_yes == n_no:
        return None, None
    if n_yes + n_no == 1:
        return n_yes == 1, "single"
    return n_yes > n_no, "unanimous" if min(n_yes, n_no) == 0 else "majority"


def majority(n_yes: int, n_no: int) -> bool | None:
    """What most say; None where they tie."""
    return None if n_yes == n_no else n_yes > n_no


def label_posterior(ratings: Ratings, column: int) -> FloatArray:
    """The Dawid–Skene probability of yes on one label for each unit; NaN where the model does not tell."""
    fitted = dawid_skene(ratings.units, ratings.response_annotators, ratings.values[:, column])
    return np.full(len(ratings.unit_records), np.nan) if fitted is None else fitted.posterior


def unused_decisions(tables: Sequence[Ratings], decisions: Mapping[UnitLabel, bool]) -> list[UnitLabel]:
    """The decisions on units that have no response to the label's task in any of the tables, sorted."""
    wanted = {key[:2] for key in decisions}
    there = {
        (table.task, record, chunk_id)
        for table in tables
        for record, chunk_id in zip(map(table.records.__getitem__, table.unit_records), table.unit_chunks, strict=True)
        if (record, chunk_id) in wanted
    }
    task_of = {label: task for task, labels in LABELS.items() for label in labels}
    return sorted(key for key in decisions if (task_of[key[2]], *key[:2]) not in there)

"""Consensus rows, one a unit, and the merged view, one a record: what the jury says in each of its tasks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

from annotation.labels import LABELS, TASKS, TaskName
from exports.agreement.consensus import ConsensusLabel
from pipeline.records import Provenance

Row = dict[str, Any]
RETRIEVAL_COLUMNS: Mapping[str, str] = {
    "n_chunks": "int64",
    "topically_relevant_share": "float64",
    "first_relevant_rank": "int64",
    "any_evidence_sufficient": "bool",
    "any_misleading": "bool",
}
"""What is said of all passages of a query together, with types."""

TEXTS: Mapping[TaskName, Mapping[str, str]] = {
    "retrieval": {"query": "text"},
    "grounding": {"answer": "text", "context_set": "text_pair"},
    "generation": {"query": "text", "answer": "text_pair"},
}
"""The texts of the merged view, and where each task keeps them."""


def soft_label(found: ConsensusLabel) -> float | None:
    """The label as a number from 0 to 1: the decision, the posterior or the vote share; None where nobody voted."""
    if found.consensus_source == "adjudicated":
        return float(bool(found.consensus))
    return found.posterior if found.consensus_source == "ds" else found.vote_share


def consensus_rows(
    rows: Iterable[Row], task: TaskName, found: Iterable[ConsensusLabel]
) -> Iterator[tuple[Row, list[ConsensusLabel]]]:
    """One row a unit with texts, ids and the consensus on each label, beside that consensus; one record is held.

    Both `rows` and `found`, which are of the same units, are sorted by record; labels are in the order of the task.
    Within a record the units come in the order of their first rows.
    """
    responses = groupby(rows, key=itemgetter("record_uuid"))
    said = groupby(found, key=attrgetter("record_uuid"))
    for (_, of_rows), (_, of_labels) in zip(responses, said, strict=True):
        units: dict[str, list[Row]] = {}
        for row in of_rows:
            units.setdefault(row["chunk_id"] if task == "retrieval" else "", []).append(row)
        labels: dict[str, list[ConsensusLabel]] = {}
        for label in of_labels:
            labels.setdefault(label.chunk_id, []).append(label)
        for chunk_id, answered in units.items():
            yield answered[0] | {"n_ratings": len(answered)} | label_cells(labels[chunk_id]), labels[chunk_id]


def label_cells(found: Iterable[ConsensusLabel]) -> Row:
    """The columns of each label of one unit."""
    cells: Row = {}
    for said in found:
        label = said.label
        cells[label] = said.consensus
        cells[f"{label}_vote_share"] = said.vote_share
        cells[f"{label}_posterior"] = said.posterior
        cells[f"{label}_source"] = said.consensus_source
    return cells


def merged_columns() -> dict[str, str]:
    """The columns of the merged view with their types: always all, whichever tasks there are."""
    names = ("record_uuid", "language", *Provenance.model_fields, "query", "answer", "context_set")
    types = dict.fromkeys(names, "string") | {f"{task}_ratings": "int64" for task in TASKS} | dict(RETRIEVAL_COLUMNS)
    for task in TASKS:
        if task != "retrieval":
            types |= {label: "bool" for label in LABELS[task]}
            types |= {f"{label}_vote_share": "float64" for label in LABELS[task]}
    return types | {"split": "string", "group": "string"}


def merged_rows(units: Sequence[Iterable[Row]]) -> Iterator[Row]:
    """One row a record over the consensus rows of each task, which are sorted by record; a missing task is None.

    Retrieval, which has many units a record, is summed up; grounding and generation lend their labels.
    """
    record = itemgetter("record_uuid")
    for record_uuid, found in groupby(merge(*units, key=record), key=record):
        of_task: dict[str, list[Row]] = {}
        for row in found:
            of_task.setdefault(row["task"], []).append(row)
        merged: Row = {"record_uuid": record_uuid}
        for task in TASKS:
            if rows := of_task.get(task):
                merged |= task_cells(task, rows)
        yield merged


def task_cells(task: TaskName, rows: Sequence[Row]) -> Row:
    """What one task says of a record; `rows` are its units, in order of rank."""
    first = rows[0]
    shared = {name: first[name] for name in ("language", "split", "group", *Provenance.model_fields) if name in first}
    texts = {name: first[column] for name, column in TEXTS[task].items()}
    ratings = {f"{task}_ratings": sum(row["n_ratings"] for row in rows)}
    if task == "retrieval":
        return shared | texts | ratings | passages(rows)
    names = [name for label in LABELS[task] for name in (label, f"{label}_vote_share")]
    return shared | texts | ratings | {name: first[name] for name in names}


def passages(rows: Sequence[Row]) -> Row:
    """What the consensus says of all passages of one query together; None where it does not tell."""
    relevant = [row["topically_relevant"] for row in rows if row["topically_relevant"] is not None]
    ranks = [row["chunk_rank"] for row in rows if row["topically_relevant"]]
    return {
        "n_chunks": len(rows),
        "topically_relevant_share": sum(relevant) / len(relevant) if relevant else None,
        "first_relevant_rank": min(ranks, default=None),
        "any_evidence_sufficient": any_true([row["evidence_sufficient"] for row in rows]),
        "any_misleading": any_true([row["misleading"] for row in rows]),
    }


def any_true(values: Sequence[bool | None]) -> bool | None:
    """Whether one is true; None where none is and one is not known."""
    if any(values):
        return True
    return None if None in values else False

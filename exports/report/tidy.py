"""Agreement as tidy CSV tables: one row for each task, label, pair, annotator, part, change and rule.

Every number stands in full precision. An empty cell is undefined; its reason is in the column `undefined` of its row,
that of a missing interval of a label in `refused_intervals`.
"""

import json
from collections.abc import Iterable, Iterator, Sequence

from annotation.labels import TaskName
from exports.agreement.schema import (
    Agreement,
    AgreementSlice,
    AlphaChange,
    AnnotatorAgreement,
    ConditionalAgreement,
    Interval,
    LabelAgreement,
    PairAgreement,
    SliceLabel,
    TaskAgreement,
)
from exports.agreement.statistics import STATISTICS
from exports.results.schema import RateInterval
from pipeline.schema import Frozen
from pipeline.tables import Table

Cells = dict[str, object]
_SLICE_COLUMNS = ("task", "kind", "name", "n_records", "n_units", "label")
_TASK_COLUMNS = (
    "n_units",
    "n_records",
    "n_duplicates",
    "n_annotators",
    "macro_alpha",
    "macro_interval_low",
    "macro_interval_high",
    "macro_interval_method",
    "n_labels_with_alpha",
    "identical_vectors",
    "n_discarded",
    "discarded_share",
    "constraint_violations",
    "warnings",
)


def tidy_table(columns: Sequence[str], rows: Iterable[Cells]) -> Table:
    """The table of these columns, the same whatever the figures are; a row has a value for each of them."""
    return Table([columns, *([row[column] for column in columns] for row in rows)])


def agreement_tables(agreement: Agreement) -> dict[str, Table]:
    """The seven tables by file name."""
    tasks = agreement.tasks.items()
    return {
        "tasks.csv": tidy_table(
            ("task", *_TASK_COLUMNS), [{"task": task, **_task_cells(figures)} for task, figures in tasks]
        ),
        "labels.csv": tidy_table(
            ("task", "label", *_columns(LabelAgreement)),
            [
                {"task": task, "label": label, **_cells(found)}
                for task, figures in tasks
                for label, found in figures.labels.items()
            ],
        ),
        "pairs.csv": _plain_table(PairAgreement, ((task, row) for task, figures in tasks for row in figures.pairs)),
        "annotators.csv": _plain_table(
            AnnotatorAgreement, ((task, row) for task, figures in tasks for row in figures.annotators_vs_rest)
        ),
        "slices.csv": tidy_table(
            (*_SLICE_COLUMNS, *_columns(SliceLabel)),
            [row for task, figures in tasks for row in _slice_rows(task, figures)],
        ),
        "changes.csv": _plain_table(AlphaChange, ((task, row) for task, figures in tasks for row in figures.changes)),
        "conditional.csv": _plain_table(
            ConditionalAgreement, ((task, row) for task, figures in tasks for row in figures.conditional)
        ),
    }


def _plain_table(model: type[Frozen], rows: Iterator[tuple[TaskName, Frozen]]) -> Table:
    """A table of one model, with the task before its own columns."""
    return tidy_table(("task", *_columns(model)), [{"task": task, **_cells(row)} for task, row in rows])


def _slice_rows(task: TaskName, figures: TaskAgreement) -> Iterator[Cells]:
    """A row for each label of each round, week and language."""
    parts: dict[str, tuple[AgreementSlice, ...]] = {
        "round": figures.rounds,
        "week": figures.weeks,
        "language": figures.languages,
    }
    for kind, slices in parts.items():
        for part in slices:
            head = (task, kind, part.name, part.n_records, part.n_units)
            for label, found in part.labels.items():
                yield {**dict(zip(_SLICE_COLUMNS, (*head, label), strict=True)), **_cells(found)}


def _task_cells(figures: TaskAgreement) -> Cells:
    """The figures of a task as a whole; empty discards mean that the files do not tell."""
    discards = figures.discards
    return {
        "n_units": figures.n_units,
        "n_records": figures.n_records,
        "n_duplicates": figures.n_duplicates,
        "n_annotators": len(figures.annotators),
        "macro_alpha": figures.macro_alpha,
        **interval_cells("macro_interval", figures.macro_interval),
        "n_labels_with_alpha": figures.n_labels_with_alpha,
        "identical_vectors": figures.identical_vectors,
        "n_discarded": discards and discards.n_responses,
        "discarded_share": discards and discards.share,
        **_listed("constraint_violations", figures.constraint_violations),
        "warnings": "; ".join(figures.warnings),
    }


def _columns(model: type[Frozen]) -> tuple[str, ...]:
    """The columns that a model takes, in the order of its fields."""
    return tuple(column for field in model.model_fields for column in _spread(field, None))


def _cells(found: Frozen) -> Cells:
    """The values of one row by column."""
    return {
        column: value
        for field in type(found).model_fields
        for column, value in _spread(field, getattr(found, field)).items()
    }


def _spread(field: str, value: object) -> Cells:
    """The cells that one field takes: several where it is an interval; None gives the same columns, empty."""
    match field, value:
        case "intervals", dict() | None:
            found = value or {}
            return {k: v for metric in STATISTICS for k, v in interval_cells(metric, found.get(metric)).items()}
        case "interval" | "delta_interval", Interval() | None:
            return interval_cells(field, value)
        case "positive_rate_interval", tuple() | None:
            low, high = value or (None, None)
            return {f"{field}_low": low, f"{field}_high": high}
        case "p_below", dict() | None:
            found = value or {}
            return {f"p_below_{threshold}": found.get(threshold) for threshold in ("0.667", "0.800")}
        case "undefined" | "refused_intervals", dict() | None:
            return _listed(field, value or {})
        case "positive_rates", dict() | None:  # names of annotators may hold any character, so not `_listed`
            return {field: json.dumps(value, ensure_ascii=False) if value else None}
        case "warnings", tuple() | None:
            return {field: "; ".join(value or ())}
    return {field: value}


def interval_cells(name: str, interval: Interval | RateInterval | None) -> Cells:
    """Both ends of an interval and its method."""
    return {
        f"{name}_low": interval and interval.low,
        f"{name}_high": interval and interval.high,
        f"{name}_method": interval and interval.method,
    }


def _listed(field: str, values: dict[str, object] | dict[str, int]) -> Cells:
    """Names and values in one cell: `fleiss_kappa=no_variation; krippendorff_alpha=no_variation`."""
    return {field: "; ".join(f"{name}={value}" for name, value in values.items())}

"""Agreement as tidy CSV tables: one row for each task, label, pair, annotator, part, change and rule.

Every number stands in full precision. An empty cell is undefined; its reason is in the column `undefined` of its row,
that of a missing interval of a label in `refused_intervals`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from annotation.argilla.labels import TaskName
from exports.report.results_page import more_figures
from exports.report.results_words import Figure, figures
from exports.statistics.agreement_schema import (
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
from exports.statistics.groups import Denominators
from exports.statistics.results_schema import (
    CitationGroup,
    Difference,
    JudgeHelp,
    Rate,
    RateInterval,
    Results,
    RunTotals,
    SiteCount,
    SiteOverlap,
)
from exports.statistics.table import STATISTICS
from pipeline.core.schema import Frozen
from pipeline.core.tables import Table

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


def _tidy_table(columns: Sequence[str], rows: Iterable[Cells]) -> Table:
    return Table([columns, *([row[column] for column in columns] for row in rows)])


def agreement_tables(agreement: Agreement) -> dict[str, Table]:
    tasks = agreement.tasks.items()
    return {
        "tasks.csv": _tidy_table(
            ("task", *_TASK_COLUMNS), [{"task": task, **_task_cells(figures)} for task, figures in tasks]
        ),
        "labels.csv": _tidy_table(
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
        "slices.csv": _tidy_table(
            (*_SLICE_COLUMNS, *_columns(SliceLabel)),
            [row for task, figures in tasks for row in _slice_rows(task, figures)],
        ),
        "changes.csv": _plain_table(AlphaChange, ((task, row) for task, figures in tasks for row in figures.changes)),
        "conditional.csv": _plain_table(
            ConditionalAgreement, ((task, row) for task, figures in tasks for row in figures.conditional)
        ),
    }


def _plain_table(model: type[Frozen], rows: Iterator[tuple[TaskName, Frozen]]) -> Table:
    return _tidy_table(("task", *_columns(model)), [{"task": task, **_cells(row)} for task, row in rows])


def _slice_rows(task: TaskName, figures: TaskAgreement) -> Iterator[Cells]:
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
    discards = figures.discards
    return {
        "n_units": figures.n_units,
        "n_records": figures.n_records,
        "n_duplicates": figures.n_duplicates,
        "n_annotators": len(figures.annotators),
        "macro_alpha": figures.macro_alpha,
        **_interval_cells("macro_interval", figures.macro_interval),
        "n_labels_with_alpha": figures.n_labels_with_alpha,
        "identical_vectors": figures.identical_vectors,
        "n_discarded": discards and discards.n_responses,
        "discarded_share": discards and discards.share,
        **_listed("constraint_violations", figures.constraint_violations),
        "warnings": "; ".join(figures.warnings),
    }


def _columns(model: type[Frozen]) -> tuple[str, ...]:
    return tuple(column for field in model.model_fields for column in _spread(field, None))


def _cells(found: Frozen) -> Cells:
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
            return {k: v for metric in STATISTICS for k, v in _interval_cells(metric, found.get(metric)).items()}
        case "interval" | "delta_interval", Interval() | None:
            return _interval_cells(field, value)
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


def _interval_cells(name: str, interval: Interval | RateInterval | None) -> Cells:
    return {
        f"{name}_low": interval and interval.low,
        f"{name}_high": interval and interval.high,
        f"{name}_method": interval and interval.method,
    }


def _listed(field: str, values: dict[str, object] | dict[str, int]) -> Cells:
    """Names and values in one cell: `fleiss_kappa=no_variation; krippendorff_alpha=no_variation`."""
    return {field: "; ".join(f"{name}={value}" for name, value in values.items())}


_INTERVAL_COLUMNS = ("interval_low", "interval_high", "interval_method")
_RATE_COLUMNS = (
    "rate",
    *_INTERVAL_COLUMNS,
    "undefined",
    "n_units",
    "n_undecided",
    "n_narratives",
    *Denominators.model_fields,
)


_HELPED_COLUMNS = (
    "rate_ppi",
    *(name.replace("interval", "interval_ppi") for name in _INTERVAL_COLUMNS),
    *(f"ppi_{name}" for name in JudgeHelp.model_fields),
)


def results_tables(results: Results) -> dict[str, Table]:
    shown = [*figures(results), *more_figures(results)]
    groups = tuple(f"by_{name}" for name in results.by)
    helped = _HELPED_COLUMNS if any(figure.found.judge_help for figure in shown) else ()
    return {
        "results.csv": _tidy_table(
            ("task", "label", "by", *groups, *_RATE_COLUMNS, *helped),
            [
                {
                    **_name(figure),
                    "by": ",".join(by),
                    **_group_cells(results, by),
                    **_rate_cells(rate),
                    **_helped_cells(rate, helped),
                }
                for figure in shown
                for by, rate in [({}, figure.found), *((group.by, group) for group in figure.found.groups)]
            ],
        ),
        "differences.csv": _tidy_table(
            ("task", "label", *_with_interval(Difference)),
            [{**_name(figure), **_difference_cells(found)} for figure in shown for found in figure.found.differences],
        ),
        "findings.csv": _tidy_table(
            ("finding", "title", "any", *_RATE_COLUMNS, "n_incomplete", "missing"),
            [
                {
                    "finding": name,
                    "title": finding.title,
                    "any": "; ".join(finding.any),
                    **_rate_cells(finding),
                    "n_incomplete": finding.n_incomplete,
                    "missing": "; ".join(f"{label}={count}" for label, count in finding.missing.items()),
                }
                for name, finding in results.findings.items()
            ],
        ),
        **_run_tables(results, groups),
    }


def _run_tables(results: Results, groups: tuple[str, ...]) -> dict[str, Table]:
    tables: dict[str, Table] = {}
    if results.runs:
        tables["runs.csv"] = _tidy_table(tuple(RunTotals.model_fields), [dict(each) for each in results.runs])
    if results.landscape:
        cited = tuple(name for name in CitationGroup.model_fields if name not in ("by", "top_sites"))
        shown = results.landscape.groups
        tables["citations.csv"] = _tidy_table(
            (*cited, "by", *groups),
            [
                {
                    **{name: getattr(group, name) for name in cited},
                    "by": ",".join(group.by),
                    **_group_cells(results, group.by),
                }
                for group in shown
            ],
        )
        tables["sites.csv"] = _tidy_table(
            (*SiteCount.model_fields, "by", *groups),
            [
                {**dict(site), "by": ",".join(group.by), **_group_cells(results, group.by)}
                for group in shown
                for site in group.top_sites
            ],
        )
        overlap_columns = _with_interval(SiteOverlap)
        tables["overlaps.csv"] = _tidy_table(
            overlap_columns, [_difference_cells(found) for found in results.landscape.overlaps]
        )
    return tables


def _with_interval(model: type[Frozen]) -> tuple[str, ...]:
    return tuple(
        column for name in model.model_fields for column in (_INTERVAL_COLUMNS if name == "interval" else (name,))
    )


def _name(figure: Figure) -> Cells:
    return {"task": figure.task, "label": figure.name}


def _group_cells(results: Results, by: Mapping[str, str]) -> Cells:
    return {f"by_{name}": by.get(name) for name in results.by}


def _rate_cells(rate: Rate) -> Cells:
    return {
        "rate": rate.rate,
        **_interval_cells("interval", rate.interval),
        "undefined": rate.undefined,
        "n_units": rate.n_units,
        "n_undecided": rate.n_undecided,
        "n_narratives": rate.n_narratives,
        **dict(rate.denominators),
    }


def _helped_cells(rate: Rate, columns: tuple[str, ...]) -> Cells:
    told = dict(rate.judge_help) if rate.judge_help else {}
    interval = _interval_cells("interval_ppi", rate.interval_ppi).values()
    values = (rate.rate_ppi, *interval, *(told.get(name) for name in JudgeHelp.model_fields))
    return dict(zip(columns, values, strict=True)) if columns else {}


def _difference_cells(found: Difference | SiteOverlap) -> Cells:
    """Names of groups may hold any character, so `within` is JSON."""
    within = json.dumps(found.within, ensure_ascii=False) if found.within else None
    values: Cells = {**dict(found), **_interval_cells("interval", found.interval), "within": within}
    return {name: values[name] for name in _with_interval(type(found))}

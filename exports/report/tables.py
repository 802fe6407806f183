"""Agreement as tidy CSV tables: one row for each task, label, pair, annotator, part, change and rule.

Every number stands in full precision. An empty cell is undefined; its reason is in the column `undefined` of its row,
that of a missing interval of a label in `refused_intervals`.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from exports.report.results_page import more_figures
from exports.report.results_words import Figure, figures
from exports.statistics import agreement_schema, results_schema
from exports.statistics.groups import Denominators
from exports.statistics.table import STATISTICS
from pipeline.core.schema import Frozen
from pipeline.core.tables import Table

Cells = dict[str, object]
_SLICE_COLUMNS = ("task", "kind", "name", "n_records", "n_units", "label")
_TASK_COLUMNS = (
    *("task", "n_units", "n_records", "n_duplicates", "n_annotators"),
    *("macro_alpha", "macro_interval_low", "macro_interval_high", "macro_interval_method", "n_labels_with_alpha"),
    *("identical_vectors", "n_discarded", "discarded_share", "constraint_violations", "warnings"),
)


def _tidy_table(columns: Sequence[str], rows: Iterable[Cells]) -> Table:
    return Table([columns, *([row[column] for column in columns] for row in rows)])


def agreement_tables(agreement: agreement_schema.Agreement) -> dict[str, Table]:
    tasks = agreement.tasks.items()

    def table_of(model: type[Frozen], rows: Callable[[agreement_schema.TaskAgreement], Iterable[Frozen]]) -> Table:
        found = ({"task": task, **_cells(row)} for task, figures in tasks for row in rows(figures))
        return _tidy_table(("task", *_columns(model)), found)

    labels = [
        {"task": task, "label": label, **_cells(found)}
        for task, figures in tasks
        for label, found in figures.labels.items()
    ]
    columns = dict.fromkeys(
        ("task", "label", *_columns(agreement_schema.LabelAgreement), *(n for row in labels for n in row))
    )
    scaled = [pair for _, figures in tasks for pair in figures.scaled_pairs]
    pairs = table_of(agreement_schema.ScaledPair, lambda figures: figures.scaled_pairs) if scaled else None
    slices = [row for task, figures in tasks for row in _slice_rows(task, figures)]
    return {
        "tasks.csv": _tidy_table(_TASK_COLUMNS, [_task_cells(task, figures) for task, figures in tasks]),
        "labels.csv": _tidy_table(tuple(columns), ({**dict.fromkeys(columns), **row} for row in labels)),
        **({"scaled_pairs.csv": pairs} if pairs else {}),
        "pairs.csv": table_of(agreement_schema.PairAgreement, lambda figures: figures.pairs),
        "annotators.csv": table_of(agreement_schema.AnnotatorAgreement, lambda figures: figures.annotators_vs_rest),
        "slices.csv": _tidy_table((*_SLICE_COLUMNS, *_columns(agreement_schema.SliceLabel)), slices),
        "conditional.csv": table_of(agreement_schema.ConditionalAgreement, lambda figures: figures.conditional),
    }


def _slice_rows(task: agreement_schema.MeasuredTask, figures: agreement_schema.TaskAgreement) -> Iterator[Cells]:
    for kind, slices in (("round", figures.rounds), ("week", figures.weeks), ("language", figures.languages)):
        for part in slices:
            for label, found in part.labels.items():
                head = (task, kind, part.name, part.n_records, part.n_units, label)
                yield {**dict(zip(_SLICE_COLUMNS, head, strict=True)), **_cells(found)}


def _task_cells(task: agreement_schema.MeasuredTask, figures: agreement_schema.TaskAgreement) -> Cells:
    discards = figures.discards
    return {
        **dict(figures),
        **_interval_cells("macro_interval", figures.macro_interval),
        **_listed("constraint_violations", figures.constraint_violations),
        "task": task,
        "n_annotators": len(figures.annotators),
        "n_discarded": discards and discards.n_responses,
        "discarded_share": discards and discards.share,
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
            names = dict.fromkeys((*STATISTICS, *found))
            return {k: v for metric in names for k, v in _interval_cells(metric, found.get(metric)).items()}
        case "interval" | "delta_interval", agreement_schema.Interval() | None:
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
        case "values", tuple():
            shown = {each.value: each.specific_agreement for each in value}
            return {"n_values": len(value), "specific_agreement": json.dumps(shown, ensure_ascii=False)}
        case "warnings", tuple() | None:
            return {field: "; ".join(value or ())}
    return {field: value}


def _interval_cells(name: str, interval: agreement_schema.Interval | results_schema.RateInterval | None) -> Cells:
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
    *(f"ppi_{name}" for name in results_schema.JudgeHelp.model_fields),
)


def results_tables(results: results_schema.Results) -> dict[str, Table]:
    shown = [*figures(results), *more_figures(results)]
    groups = ("by", *(f"by_{name}" for name in results.by))
    helped = _HELPED_COLUMNS if any(figure.found.judge_help for figure in shown) else ()
    rates = [
        {**_rate_cells(rate), **_name(figure), **_group_cells(results, by)}
        for figure in shown
        for by, rate in [({}, figure.found), *((group.by, group) for group in figure.found.groups)]
    ]
    differences = [
        {
            **dict(found),
            **_interval_cells("interval", found.interval),
            # Names of groups may hold any character.
            "within": json.dumps(found.within, ensure_ascii=False) if found.within else None,
            **_name(figure),
        }
        for figure in shown
        for found in figure.found.differences
    ]
    findings: list[Cells] = [
        {**_rate_cells(finding), "finding": name, "any": "; ".join(finding.any), **_listed("missing", finding.missing)}
        for name, finding in results.findings.items()
    ]
    return {
        "results.csv": _tidy_table(("task", "label", *groups, *_RATE_COLUMNS, *helped), rates),
        "differences.csv": _tidy_table(("task", "label", *_with_interval(results_schema.Difference)), differences),
        "findings.csv": _tidy_table(("finding", "title", "any", *_RATE_COLUMNS, "n_incomplete", "missing"), findings),
        **_run_tables(results, groups),
    }


def _run_tables(results: results_schema.Results, groups: tuple[str, ...]) -> dict[str, Table]:
    tables: dict[str, Table] = {}
    if results.runs:
        columns = tuple(results_schema.RunTotals.model_fields)
        tables["runs.csv"] = _tidy_table(columns, [dict(each) for each in results.runs])
    if results.landscape:
        cited = tuple(name for name in results_schema.CitationGroup.model_fields if name not in ("by", "top_sites"))
        shown = results.landscape.groups
        cells = [{**dict(group), **_group_cells(results, group.by)} for group in shown]
        sites = [{**dict(site), **_group_cells(results, group.by)} for group in shown for site in group.top_sites]
        tables["citations.csv"] = _tidy_table((*cited, *groups), cells)
        tables["sites.csv"] = _tidy_table((*results_schema.SiteCount.model_fields, *groups), sites)
    return tables


def _with_interval(model: type[Frozen]) -> tuple[str, ...]:
    return tuple(
        column for name in model.model_fields for column in (_INTERVAL_COLUMNS if name == "interval" else (name,))
    )


def _name(figure: Figure) -> Cells:
    return {"task": figure.task, "label": figure.name}


def _group_cells(results: results_schema.Results, by: Mapping[str, str]) -> Cells:
    return {"by": ",".join(by), **{f"by_{name}": by.get(name) for name in results.by}}


def _rate_cells(rate: results_schema.Rate) -> Cells:
    return {
        **dict(rate),
        **_interval_cells("interval", rate.interval),
        **_interval_cells("interval_ppi", rate.interval_ppi),
        **dict(rate.denominators),
        **{f"ppi_{name}": getattr(rate.judge_help, name, None) for name in results_schema.JudgeHelp.model_fields},
    }

"""What the jury found as tidy CSV tables: a row for each label and group, for each difference, for each finding.

Every number stands in full precision. An empty cell has no figure; its reason is in the column `undefined`. In
`results.csv` and `differences.csv` a composite finding has an empty `task`, and its name as `label`; so have the rates
from runs (`without_citations`, `source_gone`, `narrative_affirms` …) and of passages (`selected_precision_…`).
"""

import json
from collections.abc import Mapping

from exports.report.results_landscape import more_figures
from exports.report.results_words import Figure, figures
from exports.report.tidy import Cells, interval_cells, tidy_table
from exports.results.schema import (
    CitationGroup,
    Denominators,
    Difference,
    JudgeHelp,
    Rate,
    Results,
    RunTotals,
    SiteCount,
    SiteOverlap,
)
from pipeline.schema import Frozen
from pipeline.tables import Table

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
"""Those of a judge, where one was named."""


def results_tables(results: Results) -> dict[str, Table]:
    """The tables by file name; those of runs only where there are runs."""
    shown = [*figures(results), *more_figures(results)]
    groups = tuple(f"by_{name}" for name in results.by)
    helped = _HELPED_COLUMNS if any(figure.found.judge_help for figure in shown) else ()
    return {
        "results.csv": tidy_table(
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
        "differences.csv": tidy_table(
            ("task", "label", *_with_interval(Difference)),
            [{**_name(figure), **_difference_cells(found)} for figure in shown for found in figure.found.differences],
        ),
        "findings.csv": tidy_table(
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
    """Questions, citations, sites and overlaps, each where the runs tell."""
    tables: dict[str, Table] = {}
    if results.runs:
        tables["runs.csv"] = tidy_table(tuple(RunTotals.model_fields), [dict(each) for each in results.runs])
    if results.landscape:
        cited = tuple(name for name in CitationGroup.model_fields if name not in ("by", "top_sites"))
        shown = results.landscape.groups
        tables["citations.csv"] = tidy_table(
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
        tables["sites.csv"] = tidy_table(
            (*SiteCount.model_fields, "by", *groups),
            [
                {**dict(site), "by": ",".join(group.by), **_group_cells(results, group.by)}
                for group in shown
                for site in group.top_sites
            ],
        )
        overlap_columns = _with_interval(SiteOverlap)
        tables["overlaps.csv"] = tidy_table(
            overlap_columns, [_difference_cells(found) for found in results.landscape.overlaps]
        )
    return tables


def _with_interval(model: type[Frozen]) -> tuple[str, ...]:
    """The fields of a model as columns, its interval as three of them."""
    return tuple(
        column for name in model.model_fields for column in (_INTERVAL_COLUMNS if name == "interval" else (name,))
    )


def _name(figure: Figure) -> Cells:
    """The cells that name a label or finding."""
    return {"task": figure.task, "label": figure.name}


def _group_cells(results: Results, by: Mapping[str, str]) -> Cells:
    """A cell for each column that groups; those by which the row is not grouped are empty."""
    return {f"by_{name}": by.get(name) for name in results.by}


def _rate_cells(rate: Rate) -> Cells:
    return {
        "rate": rate.rate,
        **interval_cells("interval", rate.interval),
        "undefined": rate.undefined,
        "n_units": rate.n_units,
        "n_undecided": rate.n_undecided,
        "n_narratives": rate.n_narratives,
        **dict(rate.denominators),
    }


def _helped_cells(rate: Rate, columns: tuple[str, ...]) -> Cells:
    """The cells of a rate with the judge's help; all empty where there is none."""
    told = dict(rate.judge_help) if rate.judge_help else {}
    interval = interval_cells("interval_ppi", rate.interval_ppi).values()
    values = (rate.rate_ppi, *interval, *(told.get(name) for name in JudgeHelp.model_fields))
    return dict(zip(columns, values, strict=True)) if columns else {}


def _difference_cells(found: Difference | SiteOverlap) -> Cells:
    """The cells of one difference or overlap; names of groups may hold any character, so `within` is JSON."""
    within = json.dumps(found.within, ensure_ascii=False) if found.within else None
    values: Cells = {**dict(found), **interval_cells("interval", found.interval), "within": within}
    return {name: values[name] for name in _with_interval(type(found))}

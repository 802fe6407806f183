"""What the jury found as tidy CSV tables: a row for each label and group, for each difference, for each finding.

Every number stands in full precision. An empty cell has no figure; its reason is in the column `undefined`. In
`results.csv` and `differences.csv` a composite finding has an empty `task`, and its name as `label`.
"""

import json
from collections.abc import Mapping

from exports.report.results_words import Figure, figures
from exports.report.tidy import Cells, Table
from exports.results.schema import Denominators, Difference, Rate, RateInterval, Results

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
_DIFFERENCE_COLUMNS = tuple(
    column for name in Difference.model_fields for column in (_INTERVAL_COLUMNS if name == "interval" else (name,))
)


def results_tables(results: Results) -> dict[str, Table]:
    """The three tables by file name."""
    shown = list(figures(results))
    groups = tuple(f"by_{name}" for name in results.by)
    return {
        "results.csv": Table(
            ("task", "label", "by", *groups, *_RATE_COLUMNS),
            [
                {**_name(figure), "by": ",".join(by), **_group_cells(results, by), **_rate_cells(rate)}
                for figure in shown
                for by, rate in [({}, figure.found), *((group.by, group) for group in figure.found.groups)]
            ],
        ),
        "differences.csv": Table(
            ("task", "label", *_DIFFERENCE_COLUMNS),
            [{**_name(figure), **_difference_cells(found)} for figure in shown for found in figure.found.differences],
        ),
        "findings.csv": Table(
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
    }


def _name(figure: Figure) -> Cells:
    """The cells that name a label or finding."""
    return {"task": figure.task, "label": figure.name}


def _group_cells(results: Results, by: Mapping[str, str]) -> Cells:
    """A cell for each column that groups; those by which the row is not grouped are empty."""
    return {f"by_{name}": by.get(name) for name in results.by}


def _rate_cells(rate: Rate) -> Cells:
    """The cells of one rate."""
    return {
        "rate": rate.rate,
        **_interval_cells(rate.interval),
        "undefined": rate.undefined,
        "n_units": rate.n_units,
        "n_undecided": rate.n_undecided,
        "n_narratives": rate.n_narratives,
        **dict(rate.denominators),
    }


def _difference_cells(found: Difference) -> Cells:
    """The cells of one difference; names of groups may hold any character, so `within` is JSON."""
    within = json.dumps(found.within, ensure_ascii=False) if found.within else None
    values: Cells = {**dict(found), **_interval_cells(found.interval), "within": within}
    return {name: values[name] for name in _DIFFERENCE_COLUMNS}


def _interval_cells(interval: RateInterval | None) -> Cells:
    """Both ends of an interval and its method."""
    ends = (interval.low, interval.high, interval.method) if interval else (None, None, None)
    return dict(zip(_INTERVAL_COLUMNS, ends, strict=True))

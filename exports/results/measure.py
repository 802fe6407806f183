"""A study goes in; every figure of `results.json` comes out: rates, by group, and what differs between groups."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from annotation.labels import LABELS, TASKS, TaskName
from exports.agreement.schema import InputFile
from exports.results.groups import MOST_PAIRS, GroupCounts, Grouping, groupings, whole
from exports.results.judge_help import Helped
from exports.results.landscape import run_totals, survey
from exports.results.passages import measure_passages
from exports.results.rates import MeasuredColumn, Records, measure_columns, number_names
from exports.results.schema import (
    Finding,
    LabelResults,
    Results,
    TaskResults,
)
from exports.results.study import SERIOUS_PROBLEM, Consensus, FindingDefinition, Study
from exports.results.values import FindingValues, finding_values, tasks_of, unit_values

_PROVIDERS = frozenset({"model_name", "model_version", "arm"})
"""Columns of provenance that tell providers apart."""
_SELECTED = (
    "Retrieval is of passages that citejury chose, so its rates are of that choice: providers are not compared by them."
)


def measure_results(
    study: Study,
    *,
    by: Sequence[str] = ("model_name",),
    consensus: Consensus = "share",
    findings: Mapping[str, FindingDefinition] = {"serious_problem": SERIOUS_PROBLEM},
    inputs: Sequence[InputFile] = (),
    seed: int = 0,
) -> Results:
    """What the jury found: the same arguments give the same figures to the last digit.

    `by` names columns of provenance: each alone, and two or more also crossed. `consensus` is how the votes on a unit
    become its value, `seed` that of the sign flips.

    Raises:
        InputError: a finding names a label that no task has.
    """
    tables = {table.task: table for table in study.tables}
    tables = {task: tables[task] for task in TASKS if task in tables}
    records = sorted({*study.narratives, *(record for table in tables.values() for record in table.records)})
    places = {record: place for place, record in enumerate(records)}
    tasks = {task: unit_values(table, places, consensus, study.decisions or {}) for task, table in tables.items()}
    composite = {name: finding_values(definition, tasks, len(records)) for name, definition in findings.items()}
    sheets = [*tasks.values(), *(each.values for each in composite.values())]
    selected = any(told.get("contexts") == "selected" for told in study.provenance.values()) and "retrieval" in tasks
    columns = [
        MeasuredColumn(sheet, column, (task,), _PROVIDERS if selected and task == "retrieval" else frozenset())
        for sheet, task in enumerate(tasks)
        for column in range(len(LABELS[task]))
    ]
    columns += [
        MeasuredColumn(len(tasks) + number, 0, tasks_of(definition.any))
        for number, definition in enumerate(findings.values())
    ]
    narratives = number_names([study.narratives.get(record, record) for record in records])
    weights = np.array([1 / (study.probabilities or {}).get(record, 1.0) for record in records])
    divisions = [whole(len(records)), *groupings(by, records, study.provenance, study.successive)]
    counts = [GroupCounts(study, records, division) for division in divisions]
    measured = measure_columns(sheets, columns, Records(narratives, weights, divisions, counts), seed)
    judged = np.unique(np.concatenate([np.empty(0, np.int64), *(task.records for task in tasks.values())]))
    latest = max((table.latest for table in tables.values() if table.latest is not None), default=None)
    labels = iter(measured.labels)
    helped = None if study.judged is None else Helped(study, study.judged, tasks, by, seed)
    surveyed = None if study.answers is None else survey(study.answers, study.asked_of, by, seed)
    before_the_jury = [records[place] for place in judged.tolist()]
    return Results(
        latest_response=None if latest is None else latest.isoformat(),
        seed=seed,
        flips=measured.flips,
        by=tuple(dict.fromkeys(by)),
        consensus=consensus,
        weighted=study.probabilities is not None,
        inputs=tuple(inputs),
        n_records=len(judged),
        n_narratives=len(np.unique(narratives[judged])),
        tasks={
            task: TaskResults(labels={label: _label(task, label, next(labels), helped) for label in LABELS[task]})
            for task in tasks
        },
        findings={name: _finding(next(labels), definition, composite[name]) for name, definition in findings.items()},
        runs=run_totals(study.runs or {}, study.provenance, before_the_jury),
        landscape=surveyed and surveyed.landscape,
        narrative_verdicts=surveyed and surveyed.verdicts,
        passages=measure_passages(study, tasks["retrieval"], records, by, seed) if "retrieval" in tasks else (),
        remarks=(
            *_remarks(divisions[1:]),
            *([_SELECTED] if selected and _PROVIDERS & set(by) else []),
            *(surveyed.remarks if surveyed else ()),
            *(helped.remarks if helped else ()),
        ),
    )


def _label(task: TaskName, label: str, found: LabelResults, helped: Helped | None) -> LabelResults:
    return helped.add_to(task, label, found) if helped else found


def _finding(label: LabelResults, definition: FindingDefinition, values: FindingValues) -> Finding:
    return Finding(
        **dict(label),
        title=definition.title,
        any=definition.any,
        n_incomplete=values.n_incomplete,
        missing=values.missing,
    )


def _remarks(divisions: Sequence[Grouping]) -> Iterator[str]:
    for division in divisions:
        columns = " × ".join(f"`{column}`" for column in division.groups[0]) if division.groups else ""
        for column, told in division.uncompared.items():
            which = f"the {told.left_out:,} whose {'later ' if column == told.successive else ''}`{told.successive}`"
            which = f"{which} is before {told.since}" if told.since else "they"
            yield (
                f"Groups by {columns} that differ in `{column}` make {told.pairs:,} pairs; {which} are not compared, "
                f"as more than {MOST_PAIRS} would need too many comparisons to find anything."
            )
        for group, n_records in zip(division.groups, np.bincount(division.of_record), strict=True):
            if len(group) == 1 and not all(group.values()):
                one = int(n_records) == 1
                which = "1 record is not known; it is" if one else f"{n_records:,} records is not known; they are"
                yield f"The {columns} of {which} compared with none."

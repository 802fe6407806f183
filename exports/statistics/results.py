"""A study goes in; every figure of `results.json` comes out: rates, by group, and what differs between groups."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from annotation.argilla.labels import LABELS, TASKS
from exports.statistics.groups import MOST_PAIRS, Grouping, study_records
from exports.statistics.judge_help import Helped
from exports.statistics.landscape import run_totals, survey
from exports.statistics.passages import measure_passages
from exports.statistics.rates import MeasuredColumn, measure_columns
from exports.statistics.ratings import InputFile
from exports.statistics.results_schema import (
    Finding,
    Results,
    TaskResults,
)
from exports.statistics.study import SERIOUS_PROBLEM, Consensus, FindingDefinition, Study
from exports.statistics.values import finding_values, tasks_of, unit_values

_PROVIDERS = frozenset({"model_name", "model_version", "arm"})  # Columns of provenance that tell providers apart
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
    """What the jury found; `by` names columns of provenance: each alone, and two or more also crossed.

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
    grouped = study_records(study, records, by)
    measured, flips = measure_columns(sheets, columns, grouped, seed)
    judged = np.unique(np.concatenate([np.empty(0, np.int64), *(task.records for task in tasks.values())]))
    latest = max((table.latest for table in tables.values() if table.latest is not None), default=None)
    labels = iter(measured)
    helped = None if study.judged is None else Helped(study, study.judged, tasks, by, seed)
    surveyed = None if study.answers is None else survey(study.answers, study.asked_of, by, seed)
    before_the_jury = [records[place] for place in judged.tolist()]
    return Results(
        latest_response=None if latest is None else latest.isoformat(),
        seed=seed,
        flips=flips,
        by=tuple(dict.fromkeys(by)),
        consensus=consensus,
        weighted=study.probabilities is not None,
        inputs=tuple(inputs),
        n_records=len(judged),
        n_narratives=len(np.unique(grouped.narratives[judged])),
        tasks={
            task: TaskResults(
                labels={
                    label: helped.add_to(task, label, found) if helped else found
                    for label, found in zip(LABELS[task], labels, strict=False)
                }
            )
            for task in tasks
        },
        findings={
            name: Finding(
                **dict(found),
                title=definition.title,
                any=definition.any,
                n_incomplete=composite[name].n_incomplete,
                missing=composite[name].missing,
            )
            for (name, definition), found in zip(findings.items(), labels, strict=True)
        },
        runs=run_totals(study.runs or {}, study.provenance, before_the_jury),
        landscape=surveyed and surveyed.landscape,
        narrative_verdicts=surveyed and surveyed.verdicts,
        passages=measure_passages(study, tasks["retrieval"], records, by, seed) if "retrieval" in tasks else (),
        remarks=(
            *_remarks(grouped.divisions[1:]),
            *([_SELECTED] if selected and _PROVIDERS & set(by) else []),
            *(surveyed.remarks if surveyed else ()),
            *(helped.remarks if helped else ()),
        ),
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

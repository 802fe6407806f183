"""Finished months in; what moved between them out: the results of `exports results` with the month as a column.

Source: exports/contracts/study.md#trend.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from exports.csv.folder import mapping
from exports.csv.folder import read_manifest as read_export_manifest
from exports.reading.findings import read_findings
from exports.reading.read import export_files, read_tables
from exports.reading.study import ReadStudy, read_study
from exports.reading.weights import read_weights
from exports.report.files import ResultsOptions
from exports.results.measure import measure_results
from exports.results.schema import Results
from exports.results.study import Study
from exports.study.month import Month
from pipeline.asking.run_folder import RunManifest, read_manifest
from pipeline.errors import InputError

MONTH = "month"
"""The column that a trend adds to the provenance of each record."""
_FEWEST = 2


def measure_trend(months: Sequence[Month], options: ResultsOptions) -> Results:
    """What the jury found by month, and what differs between a month and the one before or the first.

    The months are finished, and in their order; the options are those of each month's results.

    Raises:
        InputError: there are fewer than two months, or the files of one cannot be used.
        BadRowsError: cells cannot be read; every one of them is listed.
        SettingsError: `citejury.toml` defines a finding that cannot be used.
    """
    if len(months) < _FEWEST:
        raise InputError(
            f"A trend needs two months with results, and there {'is one' if months else 'are none'}. "
            "`citejury study run` goes on with the months that have begun."
        )
    paths = [month.export for month in months]
    read = read_study(paths, read_tables(export_files(paths)), decisions=options.decisions)
    study = _by_month(read, months)
    found = measure_results(
        study,
        by=(MONTH, *(column for column in options.by if column != MONTH)),
        consensus=options.consensus,
        findings=read_findings(),
        inputs=read.inputs,
        seed=options.seed,
    )
    minded = (*_other_juries(study), *_other_guidelines(months), *_other_questions(months))
    return found.model_copy(update={"remarks": (*read.remarks, *minded, *found.remarks)})


def _by_month(read: ReadStudy, months: Sequence[Month]) -> Study:
    """The study in which every record has its month and the probability with which that month's sample drew it."""
    sampled = {month.name: read_weights(month.sample, ()).sampled for month in months}
    month_of = {record: name for name, records in sampled.items() for record in records}
    probabilities = {record: p for records in sampled.values() for record, p in records.items()}
    return read.study._replace(
        provenance={
            record: {**told, MONTH: month_of.get(record, "")} for record, told in read.study.provenance.items()
        },
        probabilities=probabilities,
        successive=frozenset((MONTH,)),
    )


def _other_juries(study: Study) -> Iterator[str]:
    """A sentence where not the same people labelled in every month: what changed may be the jury."""
    juries: dict[str, set[str]] = {}
    for table in study.tables:
        records = np.asarray(table.unit_records)[table.units]
        pairs = np.unique(np.stack([records, table.response_annotators], axis=1), axis=0)
        for record, annotator in pairs.tolist():
            month = study.provenance[table.records[record]][MONTH]
            juries.setdefault(month, set()).add(table.annotators[annotator])
    told = _by_value({month: ", ".join(sorted(people)) for month, people in sorted(juries.items())})
    if len(told) > 1:
        yield f"Not the same people labelled in every month, so what changed may be the jury: {_listed(told)}."


def _other_guidelines(months: Sequence[Month]) -> Iterator[str]:
    """A sentence where annotators read other guidelines or questions in some month than in another."""
    told: dict[str, str] = {}
    for month in months:
        datasets = read_export_manifest(month.export).get("datasets")
        entries = [mapping(each) for each in (datasets if isinstance(datasets, list) else [])]
        told[month.name] = " ".join(sorted({f"{each.get('task')} {each.get('guideline_version')}" for each in entries}))
    parted = _by_value(told)
    if len(parted) > 1:
        groups = "; ".join(", ".join(names) for names in parted.values())
        yield f"Guidelines or questions were others in some months, so what changed may be the rules: {groups}."


def _other_questions(months: Sequence[Month]) -> Iterator[str]:
    """A sentence where something else was asked, or of other models, in some month than in another."""
    told = {month.name: read_manifest(month.answers) for month in months}
    asked = _by_value({name: _asked(manifest) for name, manifest in told.items()})
    if len(asked) > 1:
        groups = "; ".join(", ".join(names) for names in asked.values())
        yield (
            f"Not the same was asked in every month: {groups}. Narratives, options and models asked for stand in "
            "answers/manifest.json of each."
        )
    models = _by_value({name: _models_answered(manifest) for name, manifest in told.items()})
    if len(models) > 1:
        yield f"The models that answered were not the same in every month: {_listed(models)}."


def _asked(manifest: RunManifest) -> str:
    """What was asked, in a text that is the same where the same was asked."""
    models = {provider: counts.model_asked for provider, counts in sorted(manifest.providers.items())}
    return repr((manifest.narratives.sha256, manifest.repeats, models, manifest.options, manifest.asked_arms()))


def _models_answered(manifest: RunManifest) -> str:
    """The models that answered, in words."""
    return ", ".join(
        f"{provider} {' and '.join(sorted(counts.models_answered))}"
        for provider, counts in sorted(manifest.providers.items())
        if counts.models_answered
    )


def _by_value(told: Mapping[str, str]) -> dict[str, list[str]]:
    """The months by what is told of them, in the order of the first of each."""
    found: dict[str, list[str]] = {}
    for month, value in told.items():
        found.setdefault(value, []).append(month)
    return found


def _listed(told: Mapping[str, Sequence[str]]) -> str:
    """What is told of the months, the months in front."""
    return "; ".join(f"{', '.join(months)}: {value or 'not known'}" for value, months in told.items())

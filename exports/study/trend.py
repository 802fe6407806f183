"""What moved between the months of a study. Source: exports/contracts/study.md#trend."""

from collections.abc import Iterator, Mapping, Sequence

from exports.csv.folder import exported_datasets
from exports.reading.definitions import read_findings
from exports.reading.read import export_files, read_tables
from exports.reading.study import read_study, read_weights
from exports.report.files import FigureOptions
from exports.statistics.results import measure_results
from exports.statistics.results_schema import Results
from exports.statistics.study import MONTH
from exports.study.file import Wave
from pipeline.asking.run_folder import RunManifest, read_manifest


def measure_trend(months: Sequence[Wave], options: FigureOptions) -> Results:
    """What differs between a month and the one before or the first; `months` are finished, two or more, in order."""
    paths = [month.export for month in months]
    read = read_study(paths, read_tables(export_files(paths)), decisions=options.decisions)
    sampled = {month.name: read_weights(month.sample, ()).sampled for month in months}
    month_of = {record: name for name, records in sampled.items() for record in records}
    provenance = read.study.provenance.items()
    study = read.study._replace(
        provenance={record: {**known, MONTH: month_of.get(record, "")} for record, known in provenance},
        # With the probability with which each month's sample drew the record.
        probabilities={record: p for records in sampled.values() for record, p in records.items()},
        successive=frozenset((MONTH,)),
    )
    found = measure_results(
        study,
        by=(MONTH, *(column for column in options.by if column != MONTH)),
        consensus=options.consensus,
        findings=read_findings(),
        inputs=read.inputs,
        seed=options.seed,
    )
    minded = (*_other_guidelines(months), *_other_questions(months))
    return found.model_copy(update={"work": read.work, "remarks": (*read.remarks, *minded, *found.remarks)})


def _other_guidelines(months: Sequence[Wave]) -> Iterator[str]:
    told: dict[str, str] = {}
    for month in months:
        versions = {f"{each.get('task')} {each.get('guideline_version')}" for each in exported_datasets(month.export)}
        told[month.name] = " ".join(sorted(versions))
    parted = _by_value(told)
    if len(parted) > 1:
        groups = "; ".join(", ".join(names) for names in parted.values())
        yield f"Guidelines or questions were others in some months, so what changed may be the rules: {groups}."


def _other_questions(months: Sequence[Wave]) -> Iterator[str]:
    told = {month.name: read_manifest(month.answers) for month in months}
    asked = _by_value({name: _asked(manifest) for name, manifest in told.items()})
    if len(asked) > 1:
        groups = "; ".join(", ".join(names) for names in asked.values())
        yield (
            f"Not the same was asked in every month: {groups}. Narratives, options and models asked for stand in "
            "answers/manifest.json of each."
        )
    answered = {
        name: ", ".join(
            f"{provider} {' and '.join(sorted(counts.models_answered))}"
            for provider, counts in sorted(manifest.providers.items())
            if counts.models_answered
        )
        for name, manifest in told.items()
    }
    models = _by_value(answered)
    if len(models) > 1:
        yield f"The models that answered were not the same in every month: {_listed(models)}."


def _asked(manifest: RunManifest) -> str:
    """The same text where the same was asked."""
    models = {provider: counts.model_asked for provider, counts in sorted(manifest.providers.items())}
    return repr((manifest.narratives.sha256, manifest.repeats, models, manifest.options, manifest.asked_arms()))


def _by_value(told: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for month, value in told.items():
        found.setdefault(value, []).append(month)
    return found


def _listed(told: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{', '.join(months)}: {value or 'not known'}" for value, months in told.items())

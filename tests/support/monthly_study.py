"""A study with months that are finished: exports, samples and manifests as the commands of each month leave them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from exports.report.files import RESULTS_FILE
from exports.statistics.results import measure_results
from exports.statistics.results_schema import Results
from exports.study import MONTH, Month
from pipeline.asking.narratives import NarrativesFile
from pipeline.asking.run_folder import ProviderCounts, RunManifest, write_manifest
from pipeline.core.schema import ProviderName
from tests.support.drawn_studies import draw_votes, study_of_votes
from tests.support.export_folders import Answer, write_export, write_rows

STUDY = 'narratives = "narratives.csv"\n'


def finished_month(folder: Path, name: str, answers: Sequence[Answer], model: str = "m-1") -> Month:
    month = Month(folder / "months" / name)
    write_export(month.export, answers)
    rows = [{"record_uuid": each.record, "inclusion_probability": "0.5"} for each in answers]
    write_rows(month.sample, rows)
    providers: dict[ProviderName, ProviderCounts] = {"claude": ProviderCounts(models_answered={model: len(answers)})}
    manifest = RunManifest(
        version="0",
        run_id="0" * 8 + "-0000-4000-8000-" + "0" * 12,
        started=f"{name}-01T00:00:00+00:00",
        narratives=NarrativesFile(file="narratives.csv", sha256="0" * 64, rows=12),
        providers=providers,
    )
    month.answers.mkdir()
    write_manifest(month.answers, manifest)
    month.results.mkdir()
    (month.results / RESULTS_FILE).write_text("{}", encoding="utf-8")
    return month


def drawn_trend(
    generator: np.random.Generator, rates: Mapping[str, Sequence[float]], n_narratives: int, labels: int = 5
) -> Results:
    """What a trend finds where each provider has this true rate in each month, on so many labels of generation."""
    months, providers = len(next(iter(rates.values()))), list(rates)
    wanted = np.array([rates[provider][month] for month in range(months) for provider in providers])
    votes = draw_votes(generator, np.repeat(wanted[:, np.newaxis], labels, axis=1), n_narratives)
    study = study_of_votes({"generation": votes})
    told = {
        record: {**known, **dict(zip((MONTH, "model_name"), _cell(known["model_name"], providers), strict=True))}
        for record, known in study.provenance.items()
    }
    return measure_results(
        study._replace(provenance=told, successive=frozenset((MONTH,))), by=(MONTH, "model_name"), findings={}
    )


def _cell(model: str, providers: Sequence[str]) -> tuple[str, str]:
    """Month and provider of a column of drawn votes, such as `model-7`."""
    month, provider = divmod(int(model.removeprefix("model-")), len(providers))
    return f"2026-{month + 1:02d}", providers[provider]

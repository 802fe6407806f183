"""Results of 10,000 answers on all labels, in seconds: rates of all groups, and all differences between them.

2,000 narratives × 5 models, five passages an answer, two votes a unit, 13 labels and one composite finding, by model
and by model and language crossed. The row of this benchmark is no ratio: its goal is a time.
"""

import resource

from exports.statistics.results import measure_results
from tests.benchmarks.measure import log, report, seconds
from tests.support.drawn_studies import large_study


def main() -> None:
    study = large_study(2000)
    by_model = seconds(lambda: measure_results(study, by=("model_name",)))
    crossed = seconds(lambda: measure_results(study, by=("model_name", "language")))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    log(f"by model {by_model:.1f} s, and language {crossed:.1f} s; peak memory of the process {peak:.0f} MiB")
    report("results", max(by_model, crossed), 10.0)

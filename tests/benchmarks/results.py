"""Results of 10,000 answers on all labels, in seconds: rates of all groups, and all differences between them.

2,000 narratives × 5 models, five passages an answer, two votes a unit, 13 labels and one composite finding, by model
and by model and language crossed. The row of this benchmark is no ratio: its goal is a time. Progress and memory go
to stderr.
"""

import resource
import sys
import time

from exports.statistics.results import measure_results
from tests.support.drawn_studies import large_study

GOAL_SECONDS = 10.0
NARRATIVES = 2000


def main() -> None:
    study = large_study(NARRATIVES)
    slowest = 0.0
    for by in (("model_name",), ("model_name", "language")):
        begun = time.perf_counter()
        found = measure_results(study, by=by)
        seconds = time.perf_counter() - begun
        slowest = max(slowest, seconds)
        sys.stderr.write(f"by {', '.join(by)}: {seconds:.1f} s, {found.flips:,} sign flips\n")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    sys.stderr.write(f"peak memory of the process {peak:.0f} MiB\n")
    sys.stdout.write(f"results\t{slowest:.2f}\t<={GOAL_SECONDS:.2f}\t{'ok' if slowest <= GOAL_SECONDS else 'short'}\n")


if __name__ == "__main__":
    main()

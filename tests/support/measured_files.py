"""Agreement on export folders and CSV files, without the files that the command writes."""

from collections.abc import Sequence
from pathlib import Path

from exports.reading.read import export_files, read_tables
from exports.report.files import Measured, measure_tables
from exports.statistics.agreement import RESAMPLES


def measure_files(paths: Sequence[Path], resamples: int = RESAMPLES) -> Measured:
    return measure_tables(read_tables(export_files(paths)), resamples, seed=0)

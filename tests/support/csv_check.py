"""Every violation of CSV v2 in a file at once."""

from pathlib import Path

from pipeline.csv.check import Violation, check_rows


def check_file(path: Path) -> list[Violation]:
    """The violations in the order of the rows, those of whole answers last; empty where the file is right."""
    violations: list[Violation] = []
    check_rows(path, violations.append)
    return violations

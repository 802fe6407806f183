"""`citejury --help` against `python -c "import click"`: medians of interleaved runs."""

import subprocess
import sys

from tests.benchmarks.measure import medians, report, seconds

HELP = "import sys; sys.argv = ['citejury', '--help']; from exports.cli import main; main()"


def taken(code: str) -> float:
    return seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True, capture_output=True))


def main() -> None:
    ours, theirs = medians((taken(HELP), taken("import click")) for _ in range(15))
    report("help", ours / theirs, 1.5)

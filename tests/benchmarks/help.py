"""`citejury --help` against `python -c "import click"`: medians of interleaved runs."""

import statistics
import subprocess
import sys
import time

GOAL = 1.5
ROUNDS = 15
HELP = [sys.executable, "-c", "import sys; sys.argv = ['citejury', '--help']; from exports.cli import main; main()"]
CLICK = [sys.executable, "-c", "import click"]


def seconds(command: list[str]) -> float:
    begun = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - begun


def main() -> None:
    pairs = [(seconds(HELP), seconds(CLICK)) for _ in range(ROUNDS)]
    ratio = statistics.median(ours for ours, _ in pairs) / statistics.median(theirs for _, theirs in pairs)
    sys.stdout.write(f"help\t{ratio:.2f}\t<={GOAL:.2f}\t{'ok' if ratio <= GOAL else 'short'}\n")


if __name__ == "__main__":
    main()

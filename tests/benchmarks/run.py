"""Run the benchmarks of this folder, a line each on stdout: name, ratio, goal, `ok` or `short`.

Every figure is a ratio of two things measured in the same run, but for `results`, which has seconds.
`python tests/benchmarks/run.py NAME` runs one.
"""

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
NO_BENCHMARKS = {Path(__file__).stem, "seeding", "bare_server"}  # parts that several of them use


def main(names: list[str]) -> int:
    """0 when every benchmark ran, whatever its figure; 1 when one failed or is not known."""
    known = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in NO_BENCHMARKS)
    unknown = sorted(set(names) - set(known))
    if unknown:
        sys.stderr.write(f"No benchmark {', '.join(unknown)}; there are {', '.join(known)}.\n")
        return 1
    failed = 0
    for name in names or known:
        done = subprocess.run([sys.executable, FOLDER / f"{name}.py"], check=False)
        failed += done.returncode != 0
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

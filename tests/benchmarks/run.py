"""Run the benchmarks of this folder, a line each on stdout: name, ratio, goal, `ok` or `short`.

Every figure is a ratio of two things measured in the same run, but for `results`, which has seconds.
`python tests/benchmarks/run.py NAME` runs one.
"""

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
PARTS = {Path(__file__).stem, "measure", "seeding", "bare_server", "reading"}  # which several benchmarks use
OF_READING = ("export_csv", "next_record", "record_page", "sdk_export", "status", "update")


def main(names: list[str]) -> int:
    """0 when every benchmark ran, whatever its figure; 1 when one failed or is not known."""
    stems = {path.stem for path in FOLDER.glob("*.py")} - PARTS
    known = {name: f"from tests.benchmarks.{name} import main; main()" for name in stems}
    known |= {name: f"from tests.benchmarks.reading import {name}; {name}()" for name in OF_READING}
    unknown = sorted(set(names) - set(known))
    if unknown:
        sys.stderr.write(f"No benchmark {', '.join(unknown)}; there are {', '.join(sorted(known))}.\n")
        return 1
    failed = [name for name in names or sorted(known) if subprocess.run([sys.executable, "-c", known[name]]).returncode]
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Ask an advisory service after the known weaknesses of every pinned package: `make advisories`.

Those that were read are rows in SECURITY.md; one that is not, of a version that is pinned, makes this fail.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
PIP_AUDIT = ROOT / ".venv" / "audit" / "bin" / "pip-audit"
PINNED = re.compile(r"^([\w.-]+)==([\w.]+)", re.MULTILINE)
WEAKNESS = re.compile(r"((?:CVE|PYSEC|GHSA)-[\w-]+)")


class Row(NamedTuple):
    """What SECURITY.md says of one part."""

    part: str
    version: str
    weaknesses: frozenset[str]
    """Their names; none where nothing was found."""
    says: str
    """Why they do no harm, or what was found instead."""
    read: str
    """When somebody looked, as a date."""


def read_rows(page: str) -> list[Row]:
    """The rows of the tables in SECURITY.md whose columns are part, weaknesses, what is said of them, and the date."""
    found = []
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) == 4 and re.fullmatch(r"\S+ \d\S*", cells[0]):
            part, version = cells[0].split()
            found.append(Row(part, version, frozenset(WEAKNESS.findall(cells[1])), cells[2], cells[3]))
    return found


def pinned() -> dict[str, str]:
    files = [ROOT / "docker" / name for name in ("requirements-audit.txt", "requirements-build.txt", "constraints.txt")]
    texts = "\n".join(path.read_text(encoding="utf-8") for path in files)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in PINNED.findall(texts)}


def ask(parts: dict[str, str], service: list[str]) -> list[dict[str, Any]] | str:
    """What the service knows of each part, as pip-audit gives it; a text is the reason why there is no answer."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as wanted:
        wanted.write("".join(f"{name}=={version}\n" for name, version in sorted(parts.items())))
        wanted.flush()
        options = ["--strict", "--no-deps", "--disable-pip", "--progress-spinner", "off", "--format", "json"]
        command = [PIP_AUDIT, *options, "--vulnerability-service", "osv", *service, "--requirement", wanted.name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        answer: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except ValueError:
        return (done.stderr.strip().splitlines() or ["it said nothing"])[-1].partition(":")[0].rpartition(".")[2]
    return answer


def main(arguments: list[str]) -> int:
    """0 where every weakness that the service knows was read."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--osv-url", help="another service that speaks OSV's language")
    service = parser.parse_args(arguments).osv_url
    answer = ask(pinned(), ["--osv-url", service] if service else [])
    if isinstance(answer, str):
        sys.stderr.write(f"The advisory service cannot be reached from here ({answer}), so nothing was checked.\n")
        return 1
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    read = {(row.part.lower(), name) for row in read_rows(page) for name in row.weaknesses}
    new = []
    for part in answer:
        for weakness in part["vulns"]:
            if not {(part["name"].lower(), name) for name in (weakness["id"], *weakness["aliases"])} & read:
                mended = ", ".join(weakness["fix_versions"]) or "no version"
                new.append(f"{part['name']} {part['version']}: {weakness['id']}, mended in {mended}")
    sys.stderr.write("".join(f"{line}\n" for line in new))
    count = "no known weakness" if not new else f"{len(new)} known weakness{'es' if len(new) > 1 else ''}"
    sys.stderr.write(f"{len(answer)} packages asked after: {count} that SECURITY.md does not have.\n")
    return int(bool(new))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

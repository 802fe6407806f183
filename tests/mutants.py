"""Change the code in small ways, one at a time, and tell which changes no test notices: `make mutants`.

mutmut makes the changes: of what stands in functions without a decorator, and never of messages, since how a sentence
is worded is nobody's behaviour. A change is dead once a test fails that runs its line in a clone without the shared
folder; one that no test runs is alive. A seeded sample of all changes is tried, each in a copy of the tree.

`python -m tests.mutants [PLACE …]` tries every change of the places, each a file or FILE:LINE, not a sample.
"""

import argparse
import ast
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from difflib import unified_diff
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import libcst as cst
import pytest
from coverage import Coverage
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.file_mutation import Mutation, MutationVisitor
from mutmut.mutation.mutators import mutation_operators
from mutmut.mutation.pragma_handling import IgnoredCode

from tests.quick import ROOT, SLOW, git, touched_tests

TARGETS = (
    "exports/statistics",
    "exports/reading/decisions.py",
    "pipeline/records/citation_form.py",
    "pipeline/text/normal_form.py",
    "pipeline/text/sentences.py",
    "pipeline/sources/guard.py",
    "pipeline/models/evidence.py",
    "pipeline/verifying",
)
GOAL = 0.9

# What the tests import and does not change; a fork has it at once.
LIBRARIES = (
    *("charset_normalizer", "click", "httpx", "hypothesis", "jinja2", "json_repair", "krippendorff", "lxml.html"),
    *("markdown_it", "nltk", "numpy", "pandas", "py3langid", "pyarrow", "pydantic", "pydantic_settings", "pypdfium2"),
    *("rich", "scipy.stats", "sklearn.metrics", "statsmodels.stats.inter_rater", "trafilatura"),
)
BASELINE_SECONDS = 300.0
TESTS_SECONDS = 12.0
"""What the tests of one change may take together when nothing is changed: the quickest are run."""


class Mutant(NamedTuple):
    path: str
    line: int
    text: str
    """The whole changed file."""
    change: str
    """The changed lines as `- before` and `+ after`."""


class Baseline(NamedTuple):
    """What the tests do while nothing is changed."""

    seconds: dict[str, float]
    """By test."""
    tests: dict[str, dict[int, set[str]]]
    """Which tests run a line, by file and line."""


def main(arguments: Sequence[str]) -> int:
    """0 when at least the goal's share of the changes is dead."""
    options = parsed(arguments)
    began = time.monotonic()
    os.environ.pop("CI", None)  # In a clone without the shared folder tests skip.
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "MUTANTS": "1"}
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as temporary:
        folders = [copied(Path(temporary) / str(number) / "clone") for number in range(options.jobs)]
        for library in LIBRARIES:
            import_module(library)
        mutants = sampled(options)
        paths = sorted({mutant.path for mutant in mutants})
        say(f"{len(mutants)} changes in {len(paths)} files; their tests run once without any.")
        baseline = run_unchanged(paths, folders)
        say(f"{len(baseline.seconds)} tests, {os.times().children_user:.0f} s of processor time.")
        alive, untested = try_all(mutants, baseline, folders)
    sys.stdout.write(table(mutants, alive, untested))
    dead = 1 - len(alive) / max(1, len(mutants))
    minutes = (time.monotonic() - began) / 60
    sys.stdout.write(f"\n{dead:.1%} dead; {sum(os.times()[:4]):.0f} s of processor time, {minutes:.1f} minutes.\n")
    return int(dead < GOAL)


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Report which small changes of the code no test notices.")
    parser.add_argument("places", nargs="*", help="files, or FILE:LINE: every change there instead of a sample")
    parser.add_argument("--sample", type=int, default=500, help="how many changes are tried (default: 500)")
    parser.add_argument("--seed", type=int, default=18, help="which ones (default: 18)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one a core)")
    return parser.parse_args(arguments)


def copied(folder: Path) -> Path:
    """A copy of what git knows of this tree, as it is now, with nothing beside it."""
    for name in git("ls-files", "--cached", "--others", "--exclude-standard"):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    return folder


def sampled(options: argparse.Namespace) -> list[Mutant]:
    """The changes to try: a seeded sample of all, or all of the places that were named."""
    places: dict[str, set[int]] = {}
    for path, _, line in (place.partition(":") for place in options.places):
        places.setdefault(path, set()).update([int(line)] if line else [])
    every = [
        (path, module, each)
        for path in files_of(places or TARGETS)
        for module, each in mutations_of(path, places.get(path, ()))
    ]
    if not places:
        shuffled = random.Random(options.seed).sample(every, len(every))
        return [mutant_of(*each) for each in shuffled[: options.sample]]  # A small sample is the beginning of a large.
    found = [mutant_of(*each) for each in every]
    return [mutant for mutant in found if not places.get(mutant.path) or mutant.line in places[mutant.path]]


def files_of(places: Iterable[str]) -> list[str]:
    return sorted(name for name in git("ls-files", "--", *places) if name.endswith(".py"))


def mutations_of(path: str, lines: Collection[int] = ()) -> Iterator[tuple[cst.Module, Mutation]]:
    """mutmut's changes of a file, or around lines of it, that are in a function and not in a message, in its order."""
    visitor = MutationVisitor(mutation_operators, IgnoredCode(set(), set(), set()))
    whole = MetadataWrapper(cst.parse_module((ROOT / path).read_text(encoding="utf-8")))
    module, spans = whole.visit(visitor), whole.resolve(PositionProvider)
    messages = {id(node) for message in walked(module) if is_message(message) for node in walked(message)}
    for mutation in visitor.mutations:
        span = spans.get(mutation.original_node)
        around = not lines or span is None or any(span.start.line <= line <= span.end.line for line in lines)
        if (
            around
            and mutation.contained_by_top_level_function is not None
            and id(mutation.original_node) not in messages
        ):
            yield module, mutation


def walked(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    yield node
    for child in node.children:
        yield from walked(child)


def is_message(node: cst.CSTNode) -> bool:
    """Whether a node is an error that is raised, or words for people, or a choice between such words.

    These have letters, a space and letters again, or are what parts the things of a list.
    """
    if isinstance(node, cst.SimpleString):
        return bool(re.search(r"[a-z,;:] [a-z]|^[\"'][,;] [\"']$", node.value))
    if isinstance(node, cst.FormattedString):
        texts = (part.value if isinstance(part, cst.FormattedStringText) else "x" for part in node.parts)
        return bool(re.search(r"[a-z,;:] [a-z]", "".join(texts)))
    if isinstance(node, cst.IfExp):
        return is_message(node.body) and is_message(node.orelse)
    return isinstance(node, cst.Raise)


def mutant_of(path: str, module: cst.Module, mutation: Mutation) -> Mutant:
    before, after = module.code, module.deep_replace(mutation.original_node, mutation.mutated_node).code
    _, _, where, *rows = unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    line = int(where.split("-")[1].split()[0].split(",")[0])
    return Mutant(path, line, after, "\n".join(f"{row[0]} {row[1:].strip()}" for row in rows if row[0] in "-+"))


def run_unchanged(paths: Sequence[str], folders: Sequence[Path]) -> Baseline:
    """What the tests of these files do while nothing is changed; one that fails is left out, which is logged.

    Raises:
        SystemExit: A file cannot be tested at all.
    """
    files = sorted({file for path in paths for file in test_files(path)})
    baseline = Baseline({}, defaultdict(lambda: defaultdict(set)))
    tasks = ((file, partial(run_measured, file, paths), BASELINE_SECONDS) for file in files)
    for file, code, folder in pooled(tasks, folders):
        measured = folder.parent / "measured.json"
        if code not in (0, 1, 5) or not measured.is_file():
            sys.exit(f"{printed(folder).read_text(encoding='utf-8')}\n{file} cannot be tested.")
        found = json.loads(measured.read_text(encoding="utf-8"))
        measured.unlink()
        baseline.seconds.update(found["seconds"])
        for test in found["failed"]:
            say(f"{test} fails while nothing is changed, and is left out.")
        for path, lines in found["tests"].items():
            for line, tests in lines.items():
                baseline.tests[path][int(line)] |= set(tests) - {"", *found["failed"]}
    return baseline


@cache
def test_files(path: str) -> frozenset[str]:
    """The tests that are asked about a module: all of the folder that mirrors its own, or those that import it."""
    mirror = Path("tests", path).parent
    touched = touched_tests([path])
    near = [file for file in touched if mirror.parent in Path(file).parents]
    return frozenset(git("ls-files", f"{mirror}/test_*.py") or near or touched)


def run_measured(file: str, paths: Sequence[str], folder: Path) -> int:
    """pytest's exit code on one file; what each test took and ran goes into a file."""
    coverage = Coverage(data_file=None, config_file=False, include=[str(folder / path) for path in paths])
    meter = Meter(coverage)
    coverage.start()
    code = tested([file], folder, [meter], "--maxfail=0")
    coverage.stop()
    data = coverage.get_data()
    tests = {path: data.contexts_by_lineno(str(folder / path)) for path in paths}
    found = json.dumps({"seconds": meter.seconds, "failed": sorted(meter.failed), "tests": tests})
    (folder.parent / "measured.json").write_text(found, encoding="utf-8")
    return code


def printed(folder: Path) -> Path:
    return folder.parent / "printed"


class Meter:
    """Lets coverage know which test runs, and remembers how much processor time each took."""

    def __init__(self, coverage: Coverage) -> None:
        self.coverage = coverage
        self.seconds: dict[str, float] = defaultdict(float)
        self.failed: set[str] = set()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.coverage.switch_context(nodeid)
        self.seconds[nodeid] -= sum(os.times()[:4])  # of this process and its children that have ended

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.seconds[nodeid] += sum(os.times()[:4])


def tested(tests: Sequence[str], folder: Path, plugins: Sequence[object], *more: str) -> int:
    """pytest's exit code in a copy of the tree; it ends at the first test that fails, unless `more` says otherwise."""
    options = ["-x", *more, "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", SLOW, "--hypothesis-seed=0"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # Of libraries that were imported before.
    return int(pytest.main([*options, f"--basetemp={folder.parent / 'temporary'}", *tests], plugins=plugins))


def try_all(mutants: Sequence[Mutant], baseline: Baseline, folders: Sequence[Path]) -> tuple[set[int], set[int]]:
    """Places of the changes that are alive, and of those among them that no test runs."""
    chosen = {place: tests for place, mutant in enumerate(mutants) if (tests := tests_of(mutant, baseline))}
    untested = set(range(len(mutants))) - chosen.keys()
    alive = set(untested)

    def attempt(place: int, folder: Path) -> int:
        (folder / mutants[place].path).write_text(mutants[place].text, encoding="utf-8")
        return tested(chosen[place], folder, ())

    tasks = (
        (place, partial(attempt, place), 10 + 4 * sum(baseline.seconds[test] for test in tests))
        for place, tests in chosen.items()
    )
    for number, (place, code, folder) in enumerate(pooled(tasks, folders), 1):
        mutant = mutants[place]
        shutil.copyfile(ROOT / mutant.path, folder / mutant.path)
        if code in (0, 5):
            alive.add(place)
            say(f"Alive: {mutant.path}:{mutant.line}\n{mutant.change}")
        if number % 25 == 0:
            say(f"{number} tried, {len(alive) - len(untested)} of them alive.")
    return alive, untested


def tests_of(mutant: Mutant, baseline: Baseline) -> list[str]:
    """The tests that run a change: its module's own first, then the quickest, as many as there is time for."""
    lines, (first, last) = baseline.tests[mutant.path], statement(mutant.path, mutant.line)
    found = lines[mutant.line] or {test for line in range(first, last + 1) for test in lines[line]}
    own = f"test_{Path(mutant.path).stem.lstrip('_')}.py"
    found = {test for test in found if test.partition("::")[0] in test_files(mutant.path)}
    ordered = sorted(found, key=lambda test: (own not in test, baseline.seconds[test], test))
    chosen: list[str] = []
    left = TESTS_SECONDS
    for test in ordered:
        left -= baseline.seconds[test]
        if left > 0 or not chosen:
            chosen.append(test)
    return chosen


def statement(path: str, line: int) -> tuple[int, int]:
    """The first and last line of the smallest statement around a line."""
    tree = parsed_file(path)
    spans = [(node.lineno, node.end_lineno or line) for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    around = [span for span in spans if span[0] <= line <= span[1]]
    return min(around, key=lambda span: span[1] - span[0], default=(line, line))


@cache
def parsed_file(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


def pooled(
    tasks: Iterable[tuple[Any, Callable[[Path], int], float]], folders: Sequence[Path]
) -> Iterator[tuple[Any, int, Path]]:
    """Each task in a process of its own and in a folder that no other one has meanwhile, as they end.

    A task is a key, its work and the processor time that it may take; given are key, pytest's exit code, which is
    negative when it was killed for its time or its memory, and the folder, which nobody else has until the next one.
    """
    free, running = list(folders), dict[int, tuple[Any, Path]]()
    waiting = iter(tasks)
    while True:
        while free and (task := next(waiting, None)):
            (key, work, seconds), folder = task, free.pop()
            running[forked(work, folder, seconds)] = key, folder
        if not running:
            return
        child, status = os.waitpid(-1, 0)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        key, folder = running.pop(child)
        yield key, os.waitstatus_to_exitcode(status), folder
        free.append(folder)


def forked(work: Callable[[Path], int], folder: Path, seconds: float) -> int:
    """The id of a new process, the leader of its own group, that works in a folder with this much processor time."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.setsid()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds)))
        signal.alarm(60 + 10 * int(seconds))  # Of those that wait for something for ever; others may need the machine.
        resource.setrlimit(resource.RLIMIT_DATA, (4 << 30, 4 << 30))
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        output = os.open(printed(folder), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(folder)
        os.environ["PYTHONPATH"] = str(folder)
        sys.path.insert(0, str(folder))
        for name in [name for name in sys.modules if name == "tests" or name.startswith("tests.")]:
            del sys.modules[name]
        code = work(folder)
    except BaseException:  # noqa: BLE001  # Nothing may go on in the fork.
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def table(mutants: Sequence[Mutant], alive: set[int], untested: set[int]) -> str:
    """The changes by module, and each one that is alive."""
    text = ["", f"{'':44}changes   dead  alive  of them untested"]
    for path in sorted({mutant.path for mutant in mutants}):
        here = {place for place, mutant in enumerate(mutants) if mutant.path == path}
        living = here & alive
        counts = f"{len(here):7} {len(here - living):6} {len(living):6} {len(here & untested):17}"
        text.append(f"{path:44}{counts}")
    for place in sorted(alive, key=lambda place: mutants[place][:2]):
        mutant, remark = mutants[place], " (no test runs it)" if place in untested else ""
        text.append(f"\n{mutant.path}:{mutant.line}{remark}\n{mutant.change}")
    return "\n".join(text) + "\n"


def say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

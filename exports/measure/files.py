"""Export files in; figures, tables, Markdown, LaTeX, disagreements and the report out: all of `exports agreement`."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from exports.agreement.disagreements import Disagreement, find_disagreements
from exports.agreement.judge import measure_judges
from exports.agreement.measure import RESAMPLES, measure_agreement
from exports.agreement.ratings import Ratings
from exports.agreement.schema import Agreement
from exports.csv.folder import made_parents
from exports.reading.judgements import read_judges
from exports.reading.read import ReadTables, export_files, read_tables
from exports.report.disagreement_files import with_details, write_disagreements_csv
from exports.report.html.page import write_report
from exports.report.latex import MARK as LATEX_MARK
from exports.report.latex import agreement_latex
from exports.report.markdown import MARK as MARKDOWN_MARK
from exports.report.markdown import agreement_markdown, judge_markdown
from exports.report.tidy import agreement_tables
from pipeline.asking.run_folder import locked_folder
from pipeline.errors import InputError, OutputError
from pipeline.schema import Frozen
from pipeline.staging import staged_file

_AGREEMENT_FILE = "agreement.json"
_MARKDOWN_FILE, _LATEX_FILE = "agreement.md", "agreement.tex"
_DISAGREEMENTS_FILE, REPORT_FILE = "disagreements.csv", "report.html"
WORK_FOLDER = ".agreement.citejury"

DISAGREEMENTS_KEPT = 10_000
"""So many of a task are described: more would take memory without bound, and nobody reads them."""

_MARKS: dict[str, bytes] = {
    _MARKDOWN_FILE: MARKDOWN_MARK.encode(),
    _LATEX_FILE: LATEX_MARK.encode(),
    _DISAGREEMENTS_FILE: b"task,label,record_uuid,",
    REPORT_FILE: b'<meta name="generator" content="citejury',
    "tasks.csv": b"task,n_units,n_records,",
    "labels.csv": b"task,label,n_items,",
    "pairs.csv": b"task,label,rater_a,",
    "annotators.csv": b"task,label,rater,",
    "slices.csv": b"task,kind,name,",
    "changes.csv": b"task,kind,label,",
    "conditional.csv": b"task,rule,premise,",
}
"""What a file of ours holds near its beginning: a CSV table at its very beginning, the first columns."""


class Measured(NamedTuple):
    """Agreement, and what of the files did not count."""

    agreement: Agreement
    """The figures."""
    tables: list[Ratings]
    """The ratings that they were computed from, one for each task that has a file."""
    remarks: list[str]
    """Plain sentences about rows that were left out; empty where all count."""


class AgreementOptions(Frozen):
    """How `exports agreement` measures and writes."""

    resamples: int = RESAMPLES
    """Resamples behind each interval."""
    seed: int = 0
    """Seed of the resampling."""
    spreadsheet_safe: bool = False
    """Whether cells of CSV tables that a spreadsheet takes for a formula begin with an apostrophe, and files with a
    BOM."""
    judges: tuple[Path, ...] = ()
    """Files of judgements, which are measured against the jury."""


_DEFAULTS = AgreementOptions()


def measure_and_write(paths: Sequence[Path], folder: Path, options: AgreementOptions = _DEFAULTS) -> Measured:
    """Agreement on export folders and CSV files, after every file about it has been written to `folder`.

    Raises:
        InputError: as `measure_files` and `_with_judges` raise.
        OutputError: as `_write_outputs` raises; a file in the way is found before anything is measured.
    """
    _check_outputs(folder)
    measured = _with_judges(measure_files(paths, options.resamples, options.seed), options.judges)
    disagreements, remarks = collect_disagreements(measured.tables, paths)
    measured = measured._replace(remarks=[*measured.remarks, *remarks])
    _write_outputs(measured, disagreements, folder, options.spreadsheet_safe)
    return measured


def measure_files(paths: Sequence[Path], resamples: int = RESAMPLES, seed: int = 0) -> Measured:
    """Agreement on export folders and CSV files of that form; several files of one task count as one.

    Args:
        paths: Folders and files.
        resamples: How many resamples are behind each interval.
        seed: Seed of the resampling.

    Raises:
        InputError: a path names no export, a file cannot be read, or nobody submitted anything in any of them.
        BadRowsError: cells cannot be read; every one of them is listed.
    """
    return measure_tables(read_tables(export_files(paths)), resamples, seed)


def measure_tables(found: ReadTables, resamples: int, seed: int) -> Measured:
    """Agreement on what was read.

    Raises:
        InputError: nobody submitted anything in any of it, or there would be no resample or a negative seed.
    """
    if resamples < 1 or seed < 0:
        raise InputError(f"`resamples` is {resamples} and `seed` {seed}; expected 1 or more, and 0 or more.")
    if not any(len(table.units) for table in found.tables):
        names = ", ".join(f"`{file.file}`" for file in found.inputs) or "what was given"
        raise InputError(f"There is no submitted response in {names}. Export again when someone has submitted.")
    return Measured(measure_agreement(found.tables, found.inputs, resamples, seed), found.tables, found.remarks)


def _with_judges(measured: Measured, paths: Sequence[Path]) -> Measured:
    """The same with the judges of these files beside it, at the same seed and resamples.

    Raises:
        InputError: a file is missing, not UTF-8 or empty.
        BadRowsError: no line of a file is a judgement.
    """
    read = read_judges(paths)
    agreement = measured.agreement
    judges = measure_judges(measured.tables, read.judges, agreement.resamples, agreement.seed)
    found = agreement.model_copy(update={"judge_files": tuple(read.files), "judges": judges})
    return measured._replace(agreement=found, remarks=[*measured.remarks, *read.remarks])


def collect_disagreements(tables: Sequence[Ratings], paths: Sequence[Path]) -> tuple[list[Disagreement], list[str]]:
    """The disagreements of all tasks with their texts, and a sentence for each task that has more than are kept.

    Raises:
        InputError: a file cannot be read any more.
    """
    found: list[Disagreement] = []
    remarks: list[str] = []
    for ratings in tables:
        of_task = find_disagreements(ratings, top=DISAGREEMENTS_KEPT + 1)
        if len(of_task) > DISAGREEMENTS_KEPT:
            remarks.append(
                f"{ratings.task}: annotators differ more often than {DISAGREEMENTS_KEPT:,} times; "
                f"{_DISAGREEMENTS_FILE} holds the {DISAGREEMENTS_KEPT:,} that weigh most."
            )
        found += of_task[:DISAGREEMENTS_KEPT]
    return with_details(found, export_files(paths)), remarks


def _write_outputs(
    measured: Measured, disagreements: Sequence[Disagreement], folder: Path, spreadsheet_safe: bool = False
) -> None:
    """Write the files to `folder`, which is made; each takes the place of an earlier one of ours as a whole.

    All of them are written beside their place first: after an error, nothing in the folder has changed.

    Raises:
        OutputError: a file of such a name is not ours, another run is writing to the folder, or it cannot be written.
    """
    try:
        with made_parents(folder / _AGREEMENT_FILE), _work_folder(folder) as work:
            _check_outputs(folder)
            agreement = measured.agreement
            write_agreement(agreement, work)
            for name, table in agreement_tables(agreement).items():
                (work / name).write_bytes(table.to_csv(spreadsheet_safe))
            markdown = agreement_markdown(agreement) + judge_markdown(agreement.judges)
            (work / _MARKDOWN_FILE).write_text(markdown, encoding="utf-8", newline="\n")
            (work / _LATEX_FILE).write_text(agreement_latex(agreement), encoding="utf-8", newline="\n")
            write_disagreements_csv(work / _DISAGREEMENTS_FILE, disagreements, spreadsheet_safe)
            write_report(work / REPORT_FILE, agreement, disagreements, remarks=measured.remarks)
            # Not the staged writer: all of them change or, after an error before this line, none.
            for path in sorted(work.iterdir()):
                os.replace(path, folder / path.name)
    except OSError as error:
        raise _unwritable(folder, error) from error


def write_agreement(agreement: Agreement, folder: Path) -> Path:
    """The path of the `agreement.json` written in `folder`, which is made; an earlier one is replaced as a whole.

    Raises:
        OutputError: the folder cannot be written, or holds an `agreement.json` that is not ours.
    """
    path = folder / _AGREEMENT_FILE
    try:
        if path.exists() and not _is_agreement(path):
            raise OutputError(f"`{path}` is not an agreement of citejury. Move it or choose another `--out`.")
        with staged_file(path) as file:
            file.write(agreement_json(agreement).encode())
    except OSError as error:
        raise OutputError(f"`{path}` cannot be written: {error.strerror}. Choose another `--out`.") from error
    return path


def agreement_json(agreement: Agreement) -> str:
    """The text of `agreement.json`: the same figures give the same text."""
    return agreement.model_dump_json(indent=2) + "\n"


@contextmanager
def _work_folder(folder: Path) -> Iterator[Path]:
    """An empty folder within `folder` for this process alone, gone when the block ends.

    It has the same name each time, so that what a killed run left is mended by the next.

    Raises:
        OutputError: another run is writing to `folder`, or it cannot be written.
    """
    with locked_folder(folder / WORK_FOLDER, "exports agreement") as work:
        try:
            for left in work.iterdir():
                left.unlink()
            yield work
        except OSError as error:
            raise _unwritable(folder, error) from error
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _unwritable(folder: Path, error: OSError) -> OutputError:
    """The error of a folder that the system refuses."""
    return OutputError(f"`{folder}` cannot be written: {error.strerror}. Choose another `--out`.")


def _check_outputs(folder: Path) -> None:
    """Refuse a folder in which somebody else's file stands in the way of ours.

    Raises:
        OutputError: a file that has the name of one of ours is somebody else's.
    """
    for name in (_AGREEMENT_FILE, *_MARKS):
        path = folder / name
        ours: Callable[[Path], bool] = _is_agreement if name == _AGREEMENT_FILE else _is_marked
        if path.exists() and not (path.is_file() and ours(path)):
            raise OutputError(f"`{path}` is not a file of `exports agreement`. Move it or choose another `--out`.")


def _is_agreement(path: Path) -> bool:
    """Whether the file is an `agreement.json` of ours, of this version or another."""
    try:
        found = json.loads(path.read_bytes())
    except ValueError:
        return False
    return isinstance(found, dict) and {"version", "latest_response", "tasks"} <= found.keys()


def _is_marked(path: Path) -> bool:
    """Whether the file begins as ours do, whatever version wrote it; a spreadsheet's BOM does not matter."""
    with path.open("rb") as file:
        head = file.read(4096).removeprefix(b"\xef\xbb\xbf")
    mark = _MARKS[path.name]
    return mark in head if path.name == REPORT_FILE else head.startswith(mark)

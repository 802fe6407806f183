"""Everything that `exports agreement` writes: figures, tables, Markdown, LaTeX, disagreements and the report."""

import math
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from exports.agreement.disagreements import Disagreement, find_disagreements
from exports.agreement.figures import LabelAgreement
from exports.agreement.ratings import Ratings
from exports.agreement.schema import Agreement
from exports.csv.folder import made_parents
from exports.measure.files import AGREEMENT_FILE, Measured, is_agreement, measure_files, with_judges, write_agreement
from exports.reading.read import export_files
from exports.report.disagreement_files import with_details, write_disagreements_csv
from exports.report.html.page import write_report
from exports.report.latex import MARK as LATEX_MARK
from exports.report.latex import agreement_latex
from exports.report.markdown import MARK as MARKDOWN_MARK
from exports.report.markdown import agreement_markdown, judge_markdown
from exports.report.tidy import agreement_tables
from exports.report.words import REASONS, REFUSED
from pipeline.asking.run_folder import locked_folder
from pipeline.errors import OutputError

GateEnd = Literal["lower", "point"]


MARKDOWN_FILE, LATEX_FILE = "agreement.md", "agreement.tex"
DISAGREEMENTS_FILE, REPORT_FILE = "disagreements.csv", "report.html"
WORK_FOLDER = ".agreement.citejury"

DISAGREEMENTS_KEPT = 10_000
"""So many of a task are described: more would take memory without bound, and nobody reads them."""

MARKS: dict[str, bytes] = {
    MARKDOWN_FILE: MARKDOWN_MARK.encode(),
    LATEX_FILE: LATEX_MARK.encode(),
    DISAGREEMENTS_FILE: b"task,label,record_uuid,",
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


def measure_and_write(
    paths: Sequence[Path],
    folder: Path,
    resamples: int = 2000,
    seed: int = 0,
    spreadsheet_safe: bool = False,
    judges: Sequence[Path] = (),
) -> Measured:
    """Agreement on export folders and CSV files, after every file about it has been written to `folder`.

    `judges` are files of judgements, which are measured against the jury.

    Raises:
        InputError: as `measure_files` and `with_judges` raise.
        OutputError: as `write_outputs` raises; a file in the way is found before anything is measured.
    """
    check_outputs(folder)
    measured = with_judges(measure_files(paths, resamples, seed), judges)
    disagreements, remarks = collect_disagreements(measured.tables, paths)
    measured = measured._replace(remarks=[*measured.remarks, *remarks])
    write_outputs(measured, disagreements, folder, spreadsheet_safe)
    return measured


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
                f"{ratings.task}: annotators differ more often than {DISAGREEMENTS_KEPT:,} times; {DISAGREEMENTS_FILE} "
                f"holds the {DISAGREEMENTS_KEPT:,} that weigh most."
            )
        found += of_task[:DISAGREEMENTS_KEPT]
    return with_details(found, export_files(paths)), remarks


def write_outputs(
    measured: Measured, disagreements: Sequence[Disagreement], folder: Path, spreadsheet_safe: bool = False
) -> None:
    """Write the files to `folder`, which is made; each takes the place of an earlier one of ours as a whole.

    All of them are written beside their place first: after an error, nothing in the folder has changed.

    Raises:
        OutputError: a file of such a name is not ours, another run is writing to the folder, or it cannot be written.
    """
    try:
        with made_parents(folder / AGREEMENT_FILE), work_folder(folder) as work:
            check_outputs(folder)
            agreement = measured.agreement
            write_agreement(agreement, work)
            for name, table in agreement_tables(agreement).items():
                (work / name).write_bytes(table.to_csv(spreadsheet_safe))
            markdown = agreement_markdown(agreement) + judge_markdown(agreement.judges)
            (work / MARKDOWN_FILE).write_text(markdown, encoding="utf-8", newline="\n")
            (work / LATEX_FILE).write_text(agreement_latex(agreement), encoding="utf-8", newline="\n")
            write_disagreements_csv(work / DISAGREEMENTS_FILE, disagreements, spreadsheet_safe)
            write_report(work / REPORT_FILE, agreement, disagreements, remarks=measured.remarks)
            # Not the staged writer: all of them change or, after an error before this line, none.
            for path in sorted(work.iterdir()):
                os.replace(path, folder / path.name)
    except OSError as error:
        raise unwritable(folder, error) from error


@contextmanager
def work_folder(folder: Path) -> Iterator[Path]:
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
            raise unwritable(folder, error) from error
        finally:
            shutil.rmtree(work, ignore_errors=True)


def unwritable(folder: Path, error: OSError) -> OutputError:
    """The error of a folder that the system refuses."""
    return OutputError(f"`{folder}` cannot be written: {error.strerror}. Choose another `--out`.")


def check_outputs(folder: Path) -> None:
    """Nothing where no file in the folder stands in the way of ours.

    Raises:
        OutputError: a file that has the name of one of ours is somebody else's.
    """
    for name in (AGREEMENT_FILE, *MARKS):
        path = folder / name
        ours: Callable[[Path], bool] = is_agreement if name == AGREEMENT_FILE else is_marked
        if path.exists() and not (path.is_file() and ours(path)):
            raise OutputError(f"`{path}` is not a file of `exports agreement`. Move it or choose another `--out`.")


def is_marked(path: Path) -> bool:
    """Whether the file begins as ours do, whatever version wrote it; a spreadsheet's BOM does not matter."""
    with path.open("rb") as file:
        head = file.read(4096).removeprefix(b"\xef\xbb\xbf")
    mark = MARKS[path.name]
    return mark in head if path.name == REPORT_FILE else head.startswith(mark)


def gate_failures(
    agreement: Agreement, threshold: float, on: GateEnd = "lower", labels: Sequence[str] = ()
) -> list[str]:
    """A sentence for each label that does not reach the threshold; empty where all do.

    A label without an α, or without the interval that is asked for, has not shown that it reaches the threshold, and
    fails. So does a label that is named and not in any file.

    Args:
        agreement: The figures.
        threshold: The least that passes.
        on: `lower` asks it of the lower end of α's 95 % interval, `point` of α itself.
        labels: Only these labels count; all when empty.
    """
    return list(failures(agreement, threshold, on, labels))


def failures(agreement: Agreement, threshold: float, on: GateEnd, labels: Sequence[str]) -> Iterator[str]:
    """The sentences of `gate_failures`, in the order of the tasks; labels that are in no file come last."""
    measured: set[str] = set()
    for task, figures in agreement.tasks.items():
        for label, found in figures.labels.items():
            measured.add(label)
            shortfall = label_failure(found, threshold, on) if not labels or label in labels else ""
            if shortfall:
                yield f"{task} {label}: {shortfall}"
    for label in dict.fromkeys(labels):
        if label not in measured:
            yield f"{label}: none of the files has this label."


def label_failure(found: LabelAgreement, threshold: float, on: GateEnd) -> str:
    """Why the label does not reach the threshold; empty where it does."""
    alpha, interval = found.krippendorff_alpha, found.intervals.get("krippendorff_alpha")
    if alpha is None:
        return f"α is undefined: {REASONS[found.undefined['krippendorff_alpha']]}."
    if on == "point":
        return "" if alpha >= threshold else f"α is {digits(alpha)}, below {threshold:g}."
    if interval is None:
        reason = found.refused_intervals.get("krippendorff_alpha")
        return f"α is {digits(alpha)} and has no interval" + (f": {REFUSED[reason]}." if reason else ".")
    if interval.low >= threshold:
        return ""
    return f"the lower end of α's interval is {digits(interval.low)}, below {threshold:g} (α is {digits(alpha)})."


def digits(value: float) -> str:
    """Four decimals, rounded down: rounded up, .66699 would stand beside "below 0.667" as .6670."""
    return f"{math.floor(value * 10_000) / 10_000:.4f}"

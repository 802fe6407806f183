"""Export files in; figures, tables, Markdown, LaTeX, disagreements and the report out: all of `exports agreement`."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from annotation.status.scores import AnnotatorScores
from exports.agreement.alt_test import EPSILON
from exports.agreement.audit import measure_audit
from exports.agreement.disagreements import Disagreement, find_disagreements
from exports.agreement.judge import measure_judges
from exports.agreement.judge_differences import compare_judges
from exports.agreement.measure import RESAMPLES, measure_agreement
from exports.agreement.ratings import Ratings
from exports.agreement.schema import OPTIONAL, Agreement
from exports.measure._own_files import OwnFiles, begins, check_own_files, has_keys, holds, replaced_files
from exports.measure.results import ResultsOptions, results_of_tables
from exports.reading.controls import read_control_scores, read_control_votes
from exports.reading.decisions import read_decisions
from exports.reading.judgements import read_judges
from exports.reading.read import ReadTables, export_files, read_tables
from exports.report.agreement_page import LATEX_MARK, MARKDOWN_MARK, agreement_sections, paper_sections
from exports.report.disagreement_files import with_details, write_disagreements_csv
from exports.report.html.page import write_report
from exports.report.sections import latex_text, markdown_text
from exports.report.tidy import agreement_tables
from exports.report.words import left_out_pairs
from exports.results.schema import Results
from pipeline.errors import InputError, OutputError, SettingsError
from pipeline.files import staged_file
from pipeline.schema import Frozen

_AGREEMENT_FILE = "agreement.json"
_MARKDOWN_FILE, _LATEX_FILE = "agreement.md", "agreement.tex"
_DISAGREEMENTS_FILE, REPORT_FILE = "disagreements.csv", "report.html"
WORK_FOLDER = ".agreement.citejury"

DISAGREEMENTS_KEPT = 10_000
"""So many of a task are described: more would take memory without bound, and nobody reads them."""

_is_agreement = has_keys("version", "latest_response", "tasks")
_OWN = OwnFiles(
    "exports agreement",
    WORK_FOLDER,
    {
        _AGREEMENT_FILE: _is_agreement,
        _MARKDOWN_FILE: begins(MARKDOWN_MARK.encode()),
        _LATEX_FILE: begins(LATEX_MARK.encode()),
        _DISAGREEMENTS_FILE: begins(b"task,label,record_uuid,"),
        REPORT_FILE: holds(b'<meta name="generator" content="citejury'),
        "tasks.csv": begins(b"task,n_units,n_records,"),
        "labels.csv": begins(b"task,label,n_items,"),
        "pairs.csv": begins(b"task,label,rater_a,"),
        "annotators.csv": begins(b"task,label,rater,"),
        "slices.csv": begins(b"task,kind,name,"),
        "changes.csv": begins(b"task,kind,label,"),
        "conditional.csv": begins(b"task,rule,premise,"),
    },
)


class Measured(NamedTuple):
    """Agreement, and what of the files did not count."""

    agreement: Agreement
    """The figures."""
    tables: list[Ratings]
    """The ratings that they were computed from, one for each task that has a file."""
    remarks: list[str]
    """Plain sentences about rows that were left out; empty where all count."""
    results: Results | None = None
    """What the jury found, with the provenance beside the files; None where it was not or cannot be measured."""
    controls: tuple[AnnotatorScores, ...] = ()
    """What controls and repeats tell about each annotator, by the `controls.csv` beside the files."""


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
    epsilon: float = EPSILON
    """What a judge may be worse than a person and still stand in for her."""
    decisions: Path | None = None
    """A `decisions.csv` of adjudicators, whose audit is told on controls."""
    runs: tuple[Path, ...] = ()
    """Run folders and files of records that the answers come from."""


_DEFAULTS = AgreementOptions()


def measure_and_write(paths: Sequence[Path], folder: Path, options: AgreementOptions = _DEFAULTS) -> Measured:
    """Agreement on export folders and CSV files, after every file about it has been written to `folder`.

    Raises:
        InputError: as `measure_tables`, `_with_results`, `_with_judges` and `read_control_scores` raise.
        OutputError: as `_write_outputs` raises; a file in the way is found before anything is measured.
    """
    check_own_files(folder, _OWN)
    tables = read_tables(export_files(paths))
    measured = _with_judges(measure_tables(tables, options.resamples, options.seed), options)
    measured = _with_audit(measured, paths, options.decisions)
    measured = _with_results(measured, tables, paths, options.runs)
    scores = read_control_scores(paths, measured.tables)
    told = [f"{each.annotator} {notice}." for each in scores for notice in each.notices]
    measured = measured._replace(controls=scores, remarks=[*measured.remarks, *told])
    disagreements, remarks = collect_disagreements(measured.tables, paths)
    measured = measured._replace(remarks=[*measured.remarks, *remarks, *left_out_pairs(measured.agreement)])
    _write_outputs(measured, disagreements, folder, options.spreadsheet_safe)
    return measured


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


def _with_results(measured: Measured, tables: ReadTables, paths: Sequence[Path], runs: tuple[Path, ...]) -> Measured:
    """The same with what the jury found; where that cannot be measured, with a sentence that says why.

    Raises:
        InputError: runs were named, and it cannot be measured with them.
    """
    try:
        results = results_of_tables(tables, paths, ResultsOptions(runs=runs))
    except (InputError, SettingsError) as error:
        if runs:
            raise
        return measured._replace(remarks=[*measured.remarks, f"What the jury found cannot be told. {error}"])
    return measured._replace(results=results)


def _with_judges(measured: Measured, options: AgreementOptions) -> Measured:
    """The same with the judges of the options' files beside it, at the same seed and resamples.

    Raises:
        InputError: a file is missing, not UTF-8 or empty.
        BadRowsError: no line of a file is a judgement.
    """
    read = read_judges(options.judges)
    agreement = measured.agreement
    judges = measure_judges(measured.tables, read.judges, agreement.resamples, agreement.seed, options.epsilon)
    differences = compare_judges(measured.tables, read.judges)
    found = agreement.model_copy(
        update={"judge_files": tuple(read.files), "judges": judges, "judge_differences": differences}
    )
    return measured._replace(agreement=found, remarks=[*measured.remarks, *read.remarks])


def _with_audit(measured: Measured, paths: Sequence[Path], decisions: Path | None) -> Measured:
    """The same with what the decisions of this file did to the labels of the controls beside the exports.

    Raises:
        InputError: a file is no CSV in UTF-8, or lacks columns.
        BadRowsError: cells cannot be read; every one of them is listed.
    """
    if decisions is None:
        return measured
    found = read_decisions(decisions)
    disputed = sum(row.disputed for row in found.rows)
    digest = hashlib.sha256(decisions.read_bytes()).hexdigest()
    audit = measure_audit(read_control_votes(paths), found.by_unit, disputed, digest)
    return measured._replace(agreement=measured.agreement.model_copy(update={"audit": audit}))


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
    with replaced_files(folder, _OWN) as work:
        agreement = measured.agreement
        write_agreement(agreement, work)
        for name, table in agreement_tables(agreement).items():
            (work / name).write_bytes(table.csv(spreadsheet_safe))
        page = agreement_sections(agreement, measured.results, measured.controls)
        (work / _MARKDOWN_FILE).write_bytes(markdown_text(MARKDOWN_MARK, page).encode())
        (work / _LATEX_FILE).write_bytes(latex_text(LATEX_MARK, paper_sections(agreement)).encode())
        write_disagreements_csv(work / _DISAGREEMENTS_FILE, disagreements, spreadsheet_safe)
        report = work / REPORT_FILE
        remarks, results, controls = measured.remarks, measured.results, measured.controls
        write_report(report, agreement, disagreements, remarks=remarks, results=results, controls=controls)


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
    whole = {str(task): OPTIONAL for task, figures in agreement.tasks.items() if not figures.pairs_left_out}
    return agreement.model_dump_json(indent=2, exclude={"tasks": whole}) + "\n"

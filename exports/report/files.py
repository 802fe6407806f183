"""Export files in; every file of `exports results` out, and the figures themselves."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from annotation.argilla.labels import OWN_TASKS
from annotation.quality.scores import AnnotatorScores
from exports.csv.folder import made_parents
from exports.reading.any_ratings import RatingOptions, is_of_others, read_judge_ratings, read_ratings
from exports.reading.controls import read_control_scores, read_control_votes
from exports.reading.decisions import read_decisions
from exports.reading.definitions import ReportLanguage, read_findings, read_report_settings
from exports.reading.judgements import read_judges
from exports.reading.read import ReadTables, export_files, read_tables
from exports.reading.study import Judging, ReadStudy, read_study
from exports.report.agreement_page import agreement_sections
from exports.report.details_page import render_details, render_page
from exports.report.disagreement_files import disagreements_table, read_details, with_details
from exports.report.judged_answers import read_examples
from exports.report.methods import methods_of, results_methods
from exports.report.report_page import Material, Report, check_headline, write_report
from exports.report.results_page import results_sections
from exports.report.sections import REPORT_FILE, RESULTS_FILE, Section, latex_text, markdown_text
from exports.report.tables import agreement_tables, results_tables
from exports.report.words import TEXTS, AnyWork, interim, interim_cell, left_out_pairs
from exports.statistics.agreement import RESAMPLES, measure_agreement
from exports.statistics.agreement_schema import LEAST_EXCESS, Agreement, JudgeFile
from exports.statistics.agreement_schema import OPTIONAL as AGREEMENT_OPTIONAL
from exports.statistics.alt_test import EPSILON
from exports.statistics.consensus import measure_audit
from exports.statistics.disagreements import Disagreement, find_disagreements
from exports.statistics.judge import compare_judges, compare_rating_judges, measure_judges, measure_rating_judges
from exports.statistics.ratings import Ratings
from exports.statistics.results import measure_results
from exports.statistics.results_schema import OPTIONAL as RESULTS_OPTIONAL
from exports.statistics.results_schema import Results
from exports.statistics.study import Consensus, Study
from pipeline.core.errors import InputError, OutputError
from pipeline.core.files import locked_folder, output_errors
from pipeline.core.schema import Frozen
from pipeline.core.sentences import packaged_table
from pipeline.core.spreadsheet import is_own_workbook, write_workbook
from pipeline.core.tables import Table

_DISAGREEMENTS_FILE, _DETAILS_FILE = "disagreements.csv", "details.html"
WORKBOOK, _REPORT_WORKBOOK = "results.xlsx", "report.xlsx"
DISAGREEMENTS_KEPT = 10_000
"""So many of a task are described: more would take memory without bound, and nobody reads them."""
_ALWAYS = "model_name"
"""The column that may be asked for where no record has it: all of them are one group then, and that is said."""


_COMMAND, WORK_FOLDER = "exports results", ".results.citejury"
_WORKBOOK_MARK, _PAGE_MARK = "PK", '<meta name="generator" content="citejury'  # of a workbook more: `is_own_workbook`
_OURS: dict[str, dict[str, str | list[str]]] = packaged_table(__file__, "marks.toml")


def _is_ours(path: Path, mark: str | list[str]) -> bool:
    """Whether the file has the mark; HTML near its beginning, and a spreadsheet's BOM does not matter."""
    if isinstance(mark, list):
        try:
            found = json.loads(path.read_bytes())
        except ValueError:
            return False
        return isinstance(found, dict) and set(mark) <= found.keys()
    if mark == _WORKBOOK_MARK:
        return is_own_workbook(path)
    with path.open("rb") as file:
        head = file.read(4096).removeprefix(b"\xef\xbb\xbf")
    return mark.encode() in head if mark == _PAGE_MARK else head.startswith(mark.encode())


def check_results_folder(folder: Path) -> None:
    for name, mark in _OURS["written"].items():
        path = folder / name
        if path.exists() and not (path.is_file() and _is_ours(path, mark)):
            raise OutputError(f"`{path}` is not a file of `{_COMMAND}`. Move it or choose another `--out`.")


@contextmanager
def _replaced_files(folder: Path) -> Iterator[Path]:
    """An empty folder to write to; its files take their places in `folder` when the block ends well.

    Files of ours that are not written anew are removed. After an error nothing has changed. The work folder has the
    same name each time, so that what a killed run left is mended by the next.
    """
    with (
        output_errors(f"`{folder}` cannot be written", "Choose another `--out`."),
        made_parents(folder / WORK_FOLDER),
        locked_folder(folder / WORK_FOLDER, _COMMAND) as work,
    ):
        try:
            for left in work.iterdir():
                left.unlink()
            check_results_folder(folder)
            yield work
            # Not the staged writer: all of them change or, after an error before this line, none.
            written = sorted(work.iterdir())
            for path in written:
                os.replace(path, folder / path.name)
            for name in _OURS["written"].keys() - {path.name for path in written}:
                (folder / name).unlink(missing_ok=True)  # of an earlier run on other data
            for name, mark in _OURS["former"].items():
                if (folder / name).is_file() and _is_ours(folder / name, mark):
                    (folder / name).unlink()
        finally:
            shutil.rmtree(work, ignore_errors=True)


class FigureOptions(Frozen):
    by: tuple[str, ...] = (_ALWAYS,)
    """Columns of provenance that group the records."""
    consensus: Consensus = "share"
    runs: tuple[Path, ...] = ()
    sample: Path | None = None
    """Inclusion probabilities, where only a sample was judged."""
    decisions: Path | None = None
    judges: tuple[Path, ...] = ()
    records: tuple[Path, ...] = ()
    """All that a judge judged, labelled or not: the judge then helps with rates."""
    judge_name: str | None = None
    epsilon: float = EPSILON
    """What a judge may be worse than a person and still stand in for them."""
    ratings: RatingOptions = RatingOptions()
    """Of anybody's ratings, of which `group` is what `by` is of others."""
    judge_ratings: tuple[Path, ...] = ()
    """Tables of judges' values of the units of `ratings`."""
    resamples: int = RESAMPLES
    seed: int = 0
    least_excess: float = LEAST_EXCESS
    """By how large a share a person has to differ from the others to be named, down to the interval's lower end."""
    spreadsheet_safe: bool = False
    """Whether CSV tables begin with a BOM; no cell of theirs begins a formula in any case."""
    excel: bool = False
    """Whether the tables are written as sheets of one .xlsx file too."""
    language: ReportLanguage | None = None
    """Of the report; that of `[report]` in citejury.toml where it is None."""


def results_of_files(paths: Sequence[Path], options: FigureOptions, tables: ReadTables | None = None) -> Results:
    """What the jury found in export folders and CSV files; findings as `citejury.toml` of this folder defines them.

    `tables` are the ratings of these paths where they are read already.

    Raises:
        InputError: a path names no export, nobody submitted anything, a column is unknown, or a file cannot be used.
        BadRowsError: cells cannot be read; every one of them is listed.
        SettingsError: `citejury.toml` defines a finding that cannot be used.
    """
    return _read_and_measure(paths, options, tables)[0]


def _read_and_measure(
    paths: Sequence[Path], options: FigureOptions, tables: ReadTables | None
) -> tuple[Results, ReadStudy]:
    if options.ratings.given or is_of_others(paths):
        return _results_of_ratings(paths, options, tables)
    if tables is None:
        tables = read_tables(export_files(paths))
    if options.consensus == "adjudicated" and options.decisions is None:
        raise InputError("Adjudicated results need the adjudicators' decisions. Give `--decisions decisions.csv`.")
    findings = read_findings()
    if not any(table.task in OWN_TASKS for table in tables.tables):
        labels = {label for table in tables.tables for label in table.labels}
        findings = {
            name: each for name, each in findings.items() if labels & {term.removeprefix("not ") for term in each.any}
        }
    judging = Judging(options.judges, options.records, options.judge_name) if options.records else None
    read = read_study(
        paths, tables, runs=options.runs, weights=options.sample, decisions=options.decisions, judging=judging
    )
    there = dict.fromkeys((_ALWAYS, *(name for known in read.study.provenance.values() for name in known)))
    for name in options.by:
        if name not in there:
            columns = ", ".join(f"`{column}`" for column in there)
            raise InputError(f"No record has a column `{name}` to group by. There are {columns}.")
    found = measure_results(
        read.study, by=options.by, consensus=options.consensus, findings=findings, inputs=read.inputs, seed=options.seed
    )
    return found.model_copy(update={"work": read.work, "remarks": (*read.remarks, *found.remarks)}), read


def _check_ratings_options(options: FigureOptions) -> None:
    told = options.model_dump(include={"runs", "sample", "decisions", "judges", "records"}, exclude_defaults=True)
    if told or options.consensus == "adjudicated":
        raise InputError(
            "Runs, samples, decisions and judgements belong to exports of citejury, not to anybody's ratings."
        )


def _results_of_ratings(
    paths: Sequence[Path], options: FigureOptions, tables: ReadTables | None
) -> tuple[Results, ReadStudy]:
    _check_ratings_options(options)
    read = tables or read_ratings(paths, options.ratings)
    by = options.ratings.group
    study = Study.of_ratings(read.tables[0], by)
    found = measure_results(
        study, by=(by,) if by else (), consensus=options.consensus, findings={}, inputs=read.inputs, seed=options.seed
    )
    remarks = (*read.remarks, *found.remarks)
    return found.model_copy(update={"remarks": remarks}), ReadStudy(
        study, tuple(read.inputs), list(read.remarks), read.work
    )


def write_results(results: Results, folder: Path, spreadsheet_safe: bool = False, excel: bool = False) -> None:
    """Write the files of results alone to `folder`, which is made; each takes the place of an earlier one of ours."""
    with _replaced_files(folder) as work:
        _write_results(results, work)
        _write_tables(results_tables(results), results.work, work, spreadsheet_safe, excel)


def _write_results(results: Results, work: Path, controls: Sequence[AnnotatorScores] = ()) -> None:
    (work / RESULTS_FILE).write_bytes(results_json(results).encode())
    sections = [*results_sections(results), methods_of(results_methods(results, controls))]
    for name, text in _pages(_COMMAND, "results", sections):
        (work / name).write_bytes(text.encode())


def _write_tables(tables: Mapping[str, Table], work: AnyWork, folder: Path, bom: bool, excel: bool) -> None:
    """With a last column of how much was done; in the workbook a first sheet says it, too."""
    told, cell = interim(work), interim_cell(work)
    sheets: dict[str, Sequence[Sequence[object]]] = {"interim": [[told]]} if told else {}
    for name, table in tables.items():
        head, *rows = table.rows
        shown = table if work == {} else Table([[*head, "interim"], *([*row, cell] for row in rows)])
        (folder / name).write_bytes(shown.csv(bom))
        sheets[name.removesuffix(".csv")] = shown.rows
    if excel:
        write_workbook(folder / WORKBOOK, sheets.items())


def _pages(command: str, name: str, sections: Sequence[Section]) -> Iterator[tuple[str, str]]:
    yield f"{name}.md", markdown_text(command, sections)
    yield f"{name}.tex", latex_text(command, sections)


def results_json(results: Results) -> str:
    from pydantic_core import to_json

    return to_json(_without_judge(results.model_dump()), indent=2).decode() + "\n"


def _without_judge(value: object) -> object:
    if isinstance(value, dict):
        return {n: _without_judge(each) for n, each in value.items() if each is not None or n not in RESULTS_OPTIONAL}
    return [_without_judge(each) for each in value] if isinstance(value, list | tuple) else value


class Measured(NamedTuple):
    agreement: Agreement
    tables: Sequence[Ratings]
    remarks: Sequence[str]  # plain sentences about rows that were left out; empty where all count
    results: Results | None = None  # with the provenance beside the files; None where it was not measured
    controls: Sequence[AnnotatorScores] = ()
    read: ReadStudy | None = None  # what the results were measured of


def measure_tables(found: ReadTables, resamples: int, seed: int, least_excess: float = LEAST_EXCESS) -> Measured:
    if resamples < 1 or seed < 0:
        raise InputError(f"`resamples` is {resamples} and `seed` {seed}; expected 1 or more, and 0 or more.")
    if not any(len(table.units) for table in found.tables):
        names = ", ".join(f"`{file.file}`" for file in found.inputs) or "what was given"
        raise InputError(f"There is no submitted response in {names}. Export again when someone has submitted.")
    agreement = measure_agreement(found.tables, found.inputs, resamples, seed, least_excess)
    return Measured(agreement.model_copy(update={"work": found.work}), found.tables, found.remarks)


def measure_and_write(paths: Sequence[Path], folder: Path | None, options: FigureOptions) -> Measured:
    """Agreement and results of export folders and CSV files, after every file about them is in `folder`, if any.

    Raises:
        InputError: nobody submitted anything, or a file of judges, decisions, controls or runs cannot be used.
        BadRowsError: cells of decisions or all lines of judges cannot be read.
        SettingsError: `citejury.toml` defines a finding that cannot be used.
        OutputError: as `write_results`; a file in the way is found before anything is measured.
    """
    if folder is not None:
        check_results_folder(folder)
    is_ours = not (options.ratings.given or is_of_others(paths))
    if is_ours and options.judge_ratings:
        raise InputError("`--judge-ratings` goes with anybody's ratings. Of exports of citejury give `--judge`.")
    if not is_ours:
        _check_ratings_options(options)
    read = read_tables(export_files(paths)) if is_ours else read_ratings(paths, options.ratings)
    measured = measure_tables(read, options.resamples, options.seed, options.least_excess)
    results, study = _read_and_measure(paths, options, read)
    settings, defined = read_report_settings()
    check_headline(results, settings)
    measured = measured._replace(results=results, read=study)
    if is_ours:
        measured = _with_judges_and_controls(measured, paths, options)
    elif options.judge_ratings:
        measured = _with_rating_judges(measured, options)
    disagreements, more = collect_disagreements(measured.tables, paths if is_ours else ())
    measured = measured._replace(remarks=[*measured.remarks, *more, *left_out_pairs(measured.agreement)])
    if folder is not None:
        material = Material(
            results,
            measured.agreement,
            study,
            disagreements,
            settings.model_copy(update={"language": options.language or settings.language}),
            defined,
            measured.controls,
            lambda chosen: read_examples(chosen, lambda units: read_details(units, paths), options.runs),
        )
        _write(measured, disagreements, folder, options, write_report(material))
    return measured


def _with_judges_and_controls(measured: Measured, paths: Sequence[Path], options: FigureOptions) -> Measured:
    tables, remarks, update = measured.tables, list(measured.remarks), dict[str, object]()
    if options.decisions:
        decided = read_decisions(options.decisions)
        disputed = sum(row.disputed for row in decided.rows)
        digest = hashlib.sha256(options.decisions.read_bytes()).hexdigest()
        audit = measure_audit(read_control_votes(paths), decided.by_unit, disputed, digest)
        update["audit"] = audit.model_copy(update={"n_decisions": len(decided.rows)})  # those of tasks from files too
    if options.judges:
        judges = read_judges(options.judges)
        remarks += judges.remarks
        update |= {
            "judge_files": tuple(judges.files),
            "judges": measure_judges(tables, judges.judges, options.resamples, options.seed, options.epsilon),
            "judge_differences": compare_judges(tables, judges.judges),
        }
    scores = read_control_scores(paths, tables)
    remarks += [f"{each.annotator} {notice}." for each in scores for notice in each.notices]
    agreement = measured.agreement.model_copy(update=update)
    return measured._replace(agreement=agreement, remarks=remarks, controls=scores)


def _with_rating_judges(measured: Measured, options: FigureOptions) -> Measured:
    (people,) = measured.tables
    read = read_judge_ratings(options.judge_ratings, options.ratings, people)
    judges = measure_rating_judges(people, read.tables[0], options.resamples, options.seed, options.epsilon)
    files = [JudgeFile(file=each.file, sha256=each.sha256, lines=each.rows, bad_lines=0) for each in read.inputs]
    update = {
        "judge_files": tuple(files),
        "judges": judges,
        "judge_differences": compare_rating_judges(people, read.tables[0]),
    }
    agreement = measured.agreement.model_copy(update=update)
    return measured._replace(agreement=agreement, remarks=[*measured.remarks, *read.remarks])


def collect_disagreements(
    tables: Sequence[Ratings], paths: Sequence[Path] = ()
) -> tuple[list[Disagreement], list[str]]:
    """The disagreements of all tasks, and a sentence for each task that has more than are kept.

    Of an export their texts are in its `paths`.
    """
    found: list[Disagreement] = []
    remarks: list[str] = []
    for ratings in tables:
        most = DISAGREEMENTS_KEPT + 1
        of_task = find_disagreements(ratings, top=most)
        if len(of_task) > DISAGREEMENTS_KEPT:
            told, file = TEXTS["left_out"]["disagreements"], _DISAGREEMENTS_FILE
            remarks.append(told.format(task=ratings.measured_as, most=DISAGREEMENTS_KEPT, file=file))
        found += of_task[:DISAGREEMENTS_KEPT]
    return with_details(found, export_files(paths)) if paths else found, remarks


def _write(
    measured: Measured, disagreements: Sequence[Disagreement], folder: Path, options: FigureOptions, report: Report
) -> None:
    agreement, _, remarks, results, controls, _ = measured
    with _replaced_files(folder) as work:
        if results:
            _write_results(results, work, controls)
        sections = list(agreement_sections(agreement, controls=controls))
        (work / "agreement.json").write_bytes(agreement_json(agreement).encode())
        for name, text in _pages("exports agreement", "agreement", sections):
            (work / name).write_bytes(text.encode())
        tables = {**(results_tables(results) if results else {}), **agreement_tables(agreement)}
        tables[_DISAGREEMENTS_FILE] = disagreements_table(disagreements)
        _write_tables(tables, agreement.work, work, options.spreadsheet_safe, options.excel)
        details = render_details(agreement, disagreements, remarks=remarks, results=results, controls=controls)
        (work / _DETAILS_FILE).write_bytes(details.encode())
        links = {each.name: each.title for each in report.sections[1:] if each.name}
        page = render_page(report.sections, report.title, links, report.language)
        (work / REPORT_FILE).write_bytes(page.encode())
        write_workbook(work / _REPORT_WORKBOOK, ((title, table.rows) for title, table in report.sheets))


def agreement_json(agreement: Agreement) -> str:
    whole = {
        str(task): {name for name in AGREEMENT_OPTIONAL if not getattr(each, name, True)}
        for task, each in agreement.tasks.items()
    }
    judged = {
        number: {"tasks": {str(task): {"scaled"} for task, each in judge.tasks.items() if each.scaled is None}}
        for number, judge in enumerate(agreement.judges)
    }
    return agreement.model_dump_json(indent=2, exclude={"tasks": whole, "judges": judged}) + "\n"

"""Exports in; what the jury found out, as figures and as files: all of `exports results`."""

from collections.abc import Sequence
from pathlib import Path

from exports.measure._own_files import OwnFiles, begins, check_own_files, has_keys, replaced_files
from exports.reading.findings import read_findings
from exports.reading.read import ReadTables, export_files, read_tables
from exports.reading.study import Judging, read_study
from exports.report.results_page import LATEX_MARK, MARKDOWN_MARK, results_sections
from exports.report.results_tidy import results_tables
from exports.report.sections import latex_text, markdown_text
from exports.results.measure import measure_results
from exports.results.schema import OPTIONAL, Results
from exports.results.study import Consensus, Study
from pipeline.errors import InputError
from pipeline.schema import Frozen

RESULTS_FILE = "results.json"
_OWN = OwnFiles(
    "exports results",
    ".results.citejury",
    {
        RESULTS_FILE: has_keys("version", "consensus", "tasks", "findings"),
        "results.md": begins(MARKDOWN_MARK.encode()),
        "results.tex": begins(LATEX_MARK.encode()),
        "results.csv": begins(b"task,label,by,"),
        "differences.csv": begins(b"task,label,by,"),
        "findings.csv": begins(b"finding,title,any,"),
        "runs.csv": begins(b"model_name,asked,"),
        "citations.csv": begins(b"n_answers,n_narratives,n_citations,"),
        "sites.csv": begins(b"site,citations,answers,"),
        "overlaps.csv": begins(b"by,within,a,b,jaccard,"),
    },
)
_ALWAYS = "model_name"
"""The column that may be asked for where no record has it: all of them are one group then, and that is said."""


class ResultsOptions(Frozen):
    """How `exports results` measures."""

    by: tuple[str, ...] = (_ALWAYS,)
    """Columns of provenance that group the records."""
    consensus: Consensus = "share"
    """How the votes on a unit become its value."""
    runs: tuple[Path, ...] = ()
    """Run folders and files of records that the answers come from."""
    weights: Path | None = None
    """A file with inclusion probabilities."""
    decisions: Path | None = None
    """A `decisions.csv`; needed for `adjudicated`."""
    judge: tuple[Path, ...] = ()
    """Files of judgements of a judge that helps; they need `records`."""
    judge_name: str | None = None
    """The judge, where the files have several."""
    records: tuple[Path, ...] = ()
    """Files of records: all that the judge judged, labelled or not."""
    seed: int = 0
    """Seed of the sign flips."""


_DEFAULTS = ResultsOptions()


def results_of_files(paths: Sequence[Path], options: ResultsOptions = _DEFAULTS) -> Results:
    """What the jury found in export folders and CSV files; findings as `citejury.toml` of this folder defines them.

    Raises:
        InputError: a path names no export, nobody submitted anything, a column is unknown, or a file cannot be used.
        BadRowsError: cells cannot be read; every one of them is listed.
        SettingsError: `citejury.toml` defines a finding that cannot be used.
    """
    return results_of_tables(read_tables(export_files(paths)), paths, options)


def results_of_tables(tables: ReadTables, paths: Sequence[Path], options: ResultsOptions = _DEFAULTS) -> Results:
    """The same where the ratings of these paths are read already.

    Raises:
        InputError: as `results_of_files` raises.
        BadRowsError: as there.
        SettingsError: as there.
    """
    if options.consensus == "adjudicated" and options.decisions is None:
        raise InputError("Adjudicated results need the adjudicators' decisions. Give `--decisions decisions.csv`.")
    if bool(options.judge) != bool(options.records):
        raise InputError(
            "A judge and the records that it judged belong together: they tell what nobody labelled. Give both."
        )
    findings = read_findings()
    judging = Judging(options.judge, options.records, options.judge_name) if options.judge else None
    read = read_study(
        paths, tables, runs=options.runs, weights=options.weights, decisions=options.decisions, judging=judging
    )
    _check_columns(read.study, options.by)
    found = measure_results(
        read.study,
        by=options.by,
        consensus=options.consensus,
        findings=findings,
        inputs=read.inputs,
        seed=options.seed,
    )
    return found.model_copy(update={"remarks": (*read.remarks, *found.remarks)})


def _check_columns(study: Study, by: Sequence[str]) -> None:
    """Refuse to group by a column that no record has.

    Raises:
        InputError: one of them is such a column.
    """
    there = dict.fromkeys(name for known in study.provenance.values() for name in known)
    for name in by:
        if name != _ALWAYS and name not in there:
            known = ", ".join(f"`{column}`" for column in dict.fromkeys((_ALWAYS, *there)))
            raise InputError(f"No record has a column `{name}` to group by. There are {known}.")


def check_results_folder(folder: Path) -> None:
    """Refuse a folder in which somebody else's file stands in the way of results.

    Raises:
        OutputError: a file that has the name of one of ours is somebody else's.
    """
    check_own_files(folder, _OWN)


def write_results(results: Results, folder: Path, spreadsheet_safe: bool = False) -> None:
    """Write all files to `folder`, which is made; each takes the place of an earlier one of ours.

    Raises:
        OutputError: a file of such a name is not ours, another run is writing to the folder, or it cannot be written.
    """
    with replaced_files(folder, _OWN) as work:
        (work / RESULTS_FILE).write_text(results_json(results), encoding="utf-8", newline="\n")
        for name, table in results_tables(results).items():
            (work / name).write_bytes(table.csv(spreadsheet_safe))
        page, paper = results_sections(results, "page"), results_sections(results, "paper")
        (work / "results.md").write_bytes(markdown_text(MARKDOWN_MARK, page).encode())
        (work / "results.tex").write_bytes(latex_text(LATEX_MARK, paper).encode())


def results_json(results: Results) -> str:
    """The text of `results.json`: the same figures give the same text."""
    from pydantic_core import to_json

    return to_json(_told(results.model_dump()), indent=2).decode() + "\n"


def _told(value: object) -> object:
    """The value without fields that stand only where a judge helps."""
    if isinstance(value, dict):
        return {name: _told(each) for name, each in value.items() if each is not None or name not in OPTIONAL}
    return [_told(each) for each in value] if isinstance(value, list | tuple) else value

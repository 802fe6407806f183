"""The Python API: what the jury found as an object that a notebook shows."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from exports.measure._frames import field_types, frame_of_table
from exports.measure._html import html_sections
from exports.measure.results import ResultsOptions, results_json, results_of_files
from exports.report.results_page import results_sections
from exports.report.results_tidy import results_tables
from exports.report.results_words import basis, rate_estimate
from exports.results.schema import (
    CitationGroup,
    Denominators,
    Difference,
    Finding,
    JudgeHelp,
    Rate,
    Results,
    RunTotals,
    SiteCount,
    SiteOverlap,
)
from exports.results.study import Consensus
from pipeline.errors import InputError

if TYPE_CHECKING:
    import pandas

_Path: TypeAlias = str | PathLike[str]
_FIELD_TYPES = {
    **field_types(Rate, Denominators, Difference, Finding, RunTotals, CitationGroup, SiteCount, SiteOverlap),
    **{f"ppi_{name}": kind for name, kind in field_types(JudgeHelp).items()},
}


class ResultsResult:
    """What the jury found: figures as a model, as data frames, as JSON, and as tables in a notebook."""

    def __init__(self, results: Results) -> None:
        """Hold the figures."""
        self.results = results
        """Every figure, as in `results.json`; `remarks` says what cannot be told."""

    def to_pandas(self, table: str = "groups") -> "pandas.DataFrame":
        """One of the tables that `exports results` writes as CSV, with types; what has no figure is NA.

        Args:
            table: `groups` (`results.csv`: a row for each label and group), `differences` or `findings`; with runs also
                `runs`, `citations`, `sites` and `overlaps`.

        Raises:
            InputError: there is no such table.
        """
        tables = {name.removesuffix(".csv"): found for name, found in results_tables(self.results).items()}
        tables = {"groups": tables.pop("results"), **tables}
        if table not in tables:
            raise InputError(f"There is no table {table!r}; the tables are {', '.join(tables)}.")
        return frame_of_table(tables[table], _FIELD_TYPES)

    def to_json(self) -> str:
        """The text of `results.json`."""
        return results_json(self.results)

    def __repr__(self) -> str:
        """The composite findings with what they are of."""
        parts = [
            f"{finding.title} {rate_estimate(finding)} of {basis(finding, 'answer')}"
            for finding in self.results.findings.values()
        ]
        return f"<ResultsResult {'; '.join(parts)}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: composite findings, what differs, the labels of each task, and what to mind."""
        return html_sections(results_sections(self.results))


def measure_results(
    source: _Path | Sequence[_Path],
    *,
    by: str | Sequence[str] = "model_name",
    runs: Sequence[_Path] = (),
    weights: _Path | None = None,
    consensus: Consensus = "share",
    decisions: _Path | None = None,
    judge: Sequence[_Path] = (),
    records: Sequence[_Path] = (),
    judge_name: str | None = None,
    seed: int = 0,
) -> ResultsResult:
    """What the jury found, the very figures of `exports results`.

    Composite findings are those that `citejury.toml` of the current folder defines.

    Args:
        source: An export folder or CSV file, or several of them; `provenance.csv` beside them tells who answered.
        by: Columns of `provenance.csv` that group the answers; two or more are crossed as well.
        runs: Run folders and files of records that the answers come from.
        weights: A CSV file with the inclusion probability of each record.
        consensus: What a unit counts: the `share` of yes, the `majority`, or what was `adjudicated`.
        decisions: A `decisions.csv`, for `adjudicated`.
        judge: Files of judgements on what nobody labelled too; they need `records`.
        records: Files of the records that were judged, labelled or not.
        judge_name: Which judge helps, where the judgements are of several.
        seed: Seed of the sign flips; the same files and seed give the same figures.

    Raises:
        InputError: a source is no export, nobody submitted anything, or a column or file cannot be used.
        BadRowsError: cells cannot be read; every one of them is listed.
        SettingsError: `citejury.toml` defines a finding that cannot be used.
    """
    paths = [source] if isinstance(source, str | PathLike) else list(source)
    if consensus not in ("share", "majority", "adjudicated") or seed < 0:
        raise InputError(
            f"`consensus` is {consensus!r} and `seed` {seed}; expected share, majority or adjudicated, and 0 or more."
        )
    options = ResultsOptions(
        by=(by,) if isinstance(by, str) else tuple(by),
        runs=tuple(map(Path, runs)),
        weights=None if weights is None else Path(weights),
        consensus=consensus,
        decisions=None if decisions is None else Path(decisions),
        judge=tuple(map(Path, judge)),
        records=tuple(map(Path, records)),
        judge_name=judge_name,
        seed=seed,
    )
    return ResultsResult(results_of_files(list(map(Path, paths)), options))

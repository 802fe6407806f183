"""The Python API: agreement, disagreements and results as objects that a notebook shows."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, get_args, get_origin, overload

from annotation.argilla.labels import LABELS, TASKS, TaskName
from exports.csv.schema import text_columns
from exports.reading.any_ratings import is_of_others, rating_options, read_ratings
from exports.reading.frames import Source, sort_sources
from exports.report.agreement_page import agreement_sections
from exports.report.details_page import render_sections
from exports.report.disagreement_files import with_details
from exports.report.files import FigureOptions, agreement_json, measure_tables, results_json, results_of_files
from exports.report.methods import methods_of, results_methods
from exports.report.results_page import results_sections
from exports.report.results_words import basis, rate_estimate
from exports.report.sections import Section
from exports.report.tables import agreement_tables, results_tables
from exports.report.words import estimate
from exports.statistics import agreement_schema as figures
from exports.statistics import results_schema
from exports.statistics.agreement_schema import Agreement
from exports.statistics.disagreements import Disagreement, rank_together
from exports.statistics.disagreements import find_disagreements as disagreements_of_task
from exports.statistics.groups import Denominators
from exports.statistics.study import Consensus
from pipeline.core.errors import InputError
from pipeline.core.tables import Table

if TYPE_CHECKING:
    import pandas


_Path: TypeAlias = str | PathLike[str]
_ROW_MODELS = (
    *(figures.TaskAgreement, figures.LabelAgreement, figures.PairAgreement, figures.AnnotatorAgreement),
    *(figures.ScaledLabelAgreement, figures.ScaledPair),
    *(figures.SliceLabel, figures.ConditionalAgreement, Disagreement),
    *(results_schema.Rate, Denominators, results_schema.Difference, results_schema.Finding),
    *(results_schema.RunTotals, results_schema.CitationGroup, results_schema.SiteCount),
)
_TYPES = {
    **{n: field.annotation for model in _ROW_MODELS for n, field in model.model_fields.items()},
    **{f"ppi_{n}": field.annotation for n, field in results_schema.JudgeHelp.model_fields.items()},
}


def _notebook_html(sections: Iterable[Section]) -> str:
    """What a notebook shows; a dollar would begin a formula in one that draws them."""
    return render_sections(sections).replace("$", "&#36;")


@dataclass(frozen=True, repr=False, eq=False)
class AgreementResult:
    """Agreement between annotators: figures as a model, as data frames, as JSON, and as a table in a notebook."""

    agreement: Agreement  # every figure, as in `agreement.json`
    remarks: tuple[str, ...]  # plain sentences about rows that were left out; empty where all count

    def to_pandas(self, table: str = "labels") -> "pandas.DataFrame":
        """One of the tables that `exports results` writes as CSV, with types; what is undefined is NA.

        Args:
            table: `tasks`, `labels`, `pairs`, `annotators`, `slices` (rounds, weeks, languages), `changes` or
                `conditional`.

        Raises:
            InputError: there is no such table.
        """
        return _frame_of_table(agreement_tables(self.agreement), table)

    def to_json(self) -> str:
        """The text of `agreement.json`."""
        return agreement_json(self.agreement)

    def __repr__(self) -> str:
        parts = [
            f"{task}: {found.n_units} units, mean α {estimate(found.macro_alpha, found.macro_interval)}"
            for task, found in self.agreement.tasks.items()
        ]
        return f"<AgreementResult {'; '.join(parts)}>"

    def _repr_html_(self) -> str:
        return _notebook_html(agreement_sections(self.agreement))


class DisagreementResult(Sequence[Disagreement]):
    """Where annotators differ, the weightiest first: a sequence and a data frame."""

    def __init__(self, disagreements: Iterable[Disagreement]) -> None:
        self.disagreements = tuple(disagreements)

    @overload
    def __getitem__(self, place: int) -> Disagreement: ...
    @overload
    def __getitem__(self, place: slice) -> "DisagreementResult": ...
    def __getitem__(self, place: int | slice) -> "Disagreement | DisagreementResult":
        if isinstance(place, slice):
            return DisagreementResult(self.disagreements[place])
        return self.disagreements[place]

    def __len__(self) -> int:
        return len(self.disagreements)

    def to_pandas(self) -> "pandas.DataFrame":
        """A row for each disagreement in their order; `votes` and `notes` are dicts by annotator."""
        columns = {name: [getattr(found, name) for found in self] for name in Disagreement.model_fields}
        return _typed_frame(columns, ("votes", "notes", "other_labels"))

    def __repr__(self) -> str:
        return f"<DisagreementResult {len(self)} disagreements>"


def measure_agreement(
    source: "Source | Sequence[Source]", *, resamples: int = 2000, seed: int = 0, **ratings: Any
) -> AgreementResult:
    """Agreement between annotators, the very figures of `exports results`.

    A frame needs `record_uuid`, `annotator_id`, `created_at` and the labels of its task, for retrieval `chunk_id` too.
    Labels may be Booleans, 0 and 1, or the words of a file. `task`, `chunk_rank`, `language`, `round` and
    `response_status` count where they are there; without `language` every unit is `und`, without `round` no rounds are
    compared. A frame without discarded rows tells nothing about discards. Rows are counted from 0 in messages.

    Args:
        source: An export folder, a CSV file, a frame of `read_task` or one made by hand, or several of these; or
            anybody's ratings: a frame, or a file that `exports results` reads.
        resamples: How many resamples are behind each interval.
        seed: Seed of the resampling; the same source and seed give the same figures.
        ratings: Of anybody's ratings `unit`, `rater`, `value`, `label`, `group` and `cluster` (names of columns),
            `rater_columns` (a list of names or patterns, of a wide table), `scale` (`boolean`, `nominal`, `ordinal` or
            `interval`), `order` (a list of values), both also as a dict by label, `weights`, and `missing` (a list of
            words).

    Raises:
        InputError: a source is no export, nobody submitted anything in any of them, or a number is too small; or a name
            is no column or option.
        BadRowsError: cells cannot be read; every one of them is listed.
    """
    sources, options = sort_sources(source), rating_options(ratings)
    is_ours = not (options.given or is_of_others(sources.paths))
    read = sources.read() if is_ours else read_ratings(sources.paths, options, sources.frames)
    measured = measure_tables(read, resamples, seed)
    return AgreementResult(measured.agreement, tuple(measured.remarks))


def find_disagreements(
    source: "Source | Sequence[Source]",
    *,
    top: int | None = None,
    task: TaskName | None = None,
    label: str | None = None,
) -> DisagreementResult:
    """Every unit and label on which annotators differ, by how much it weighs on the label's alpha.

    Texts, notes and links are there where the source has them.

    Args:
        source: As for `measure_agreement`.
        top: At most so many; all if not given.
        task: Only this task.
        label: Only this label.

    Raises:
        InputError: a source is no export, there is no such task or label, or `top` is negative.
        BadRowsError: cells cannot be read; every one of them is listed.
    """
    if top is not None and top < 0:
        raise InputError(f"`top` is {top}; expected 0 or more.")
    sources = sort_sources(source)
    read = sources.read().tables  # which makes their tasks known
    wanted = LABELS[task] if task in TASKS else tuple(name for names in LABELS.values() for name in names)
    if task not in (None, *TASKS):
        raise InputError(f"There is no task {task!r}; the tasks are {', '.join(TASKS)}.")
    if label not in (None, *wanted):
        raise InputError(f"There is no label {label!r}; the labels are {', '.join(wanted)}.")
    tables = [table for table in read if task in (None, table.task)]
    found = [disagreements_of_task(table, (label,) if label else (), top) for table in tables]
    texts = dict.fromkeys(name for table in tables for name in text_columns(table.task))
    return DisagreementResult(
        with_details(rank_together(found)[:top], sources.paths, sources.tables((*texts, "notes", "record_id")))
    )


@dataclass(frozen=True, repr=False, eq=False)
class ResultsResult:
    """What the jury found: figures as a model, as data frames, as JSON, and as tables in a notebook."""

    results: results_schema.Results  # every figure, as in `results.json`; `remarks` says what cannot be told

    def to_pandas(self, table: str = "groups") -> "pandas.DataFrame":
        """One of the tables that `exports results` writes as CSV, with types; what has no figure is NA.

        Args:
            table: `groups` (`results.csv`: a row for each label and group), `differences` or `findings`; with runs also
                `runs`, `citations` and `sites`.

        Raises:
            InputError: there is no such table.
        """
        tables = results_tables(self.results)
        return _frame_of_table({"groups.csv": tables.pop("results.csv"), **tables}, table)

    def to_json(self) -> str:
        """The text of `results.json`."""
        return results_json(self.results)

    def __repr__(self) -> str:
        parts = [
            f"{finding.title} {rate_estimate(finding)} of {basis(finding, 'answer')}"
            for finding in self.results.findings.values()
        ]
        return f"<ResultsResult {'; '.join(parts)}>"

    def _repr_html_(self) -> str:
        return _notebook_html([*results_sections(self.results), methods_of(results_methods(self.results))])


def measure_results(
    source: "Source | Sequence[Source]",
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
    **ratings: Any,
) -> ResultsResult:
    """What the jury found, the very figures of `exports results`.

    Composite findings are those that `citejury.toml` of the current folder defines.

    Args:
        source: An export folder or CSV file, or several of them; `provenance.csv` beside them tells who answered; or
            anybody's ratings, as for `measure_agreement`.
        by: Columns of `provenance.csv` that group the answers; two or more are crossed as well.
        runs: Run folders and files of records that the answers come from.
        weights: A CSV file with the inclusion probability of each record.
        consensus: What a unit counts: the `share` of yes, the `majority`, or what was `adjudicated`.
        decisions: A `decisions.csv`, for `adjudicated`.
        judge: Files of judgements on what nobody labelled too; they need `records`.
        records: Files of the records that were judged, labelled or not.
        judge_name: Which judge helps, where the judgements are of several.
        seed: Seed of the exchanges that are sampled; the same files and seed give the same figures.
        ratings: Of anybody's ratings, as for `measure_agreement`; `group` is what `by` is of exports.

    Raises:
        InputError: a source is no export, nobody submitted anything, or a column or file cannot be used.
        BadRowsError: cells cannot be read; every one of them is listed.
        SettingsError: `citejury.toml` defines a finding that cannot be used.
    """
    sources, told = sort_sources(source), rating_options(ratings)
    if consensus not in ("share", "majority", "adjudicated") or seed < 0:
        raise InputError(
            f"`consensus` is {consensus!r} and `seed` {seed}; expected share, majority or adjudicated, and 0 or more."
        )
    if bool(judge) != bool(records):
        raise InputError(
            "A judge and the records that it judged belong together: they tell what nobody labelled. Give both."
        )
    options = FigureOptions(
        by=(by,) if isinstance(by, str) else tuple(by),
        runs=tuple(map(Path, runs)),
        sample=weights and Path(weights),
        consensus=consensus,
        decisions=decisions and Path(decisions),
        judges=tuple(map(Path, judge)),
        records=tuple(map(Path, records)),
        judge_name=judge_name,
        seed=seed,
        ratings=told,
    )
    is_ours = not (told.given or is_of_others(sources.paths))
    read = None if is_ours else read_ratings(sources.paths, told, sources.frames)
    return ResultsResult(results_of_files(sources.paths, options, read))


def _frame_of_table(tables: Mapping[str, Table], name: str) -> "pandas.DataFrame":
    if f"{name}.csv" not in tables:
        there = ", ".join(each.removesuffix(".csv") for each in tables)
        raise InputError(f"There is no table {name!r}; the tables are {there}.")
    head, *rows = tables[f"{name}.csv"].rows
    return _typed_frame({str(column): [row[at] for row in rows] for at, column in enumerate(head)})


def _typed_frame(columns: Mapping[str, list[Any]], objects: Collection[str] = ()) -> "pandas.DataFrame":
    """A data frame of columns by name; columns in `objects` keep their cells as they are, such as dicts."""
    import pandas

    types = {name: "object" if name in objects else _column_type(name) for name in columns}
    return pandas.DataFrame({name: pandas.Series(cells, dtype=types[name]) for name, cells in columns.items()})


def _column_type(name: str) -> str:
    """The pandas type of a column by its field in the models or, where an interval was spread, by its name."""
    annotation = _TYPES.get(name)
    kinds = set() if get_origin(annotation) in (dict, tuple) else {annotation, *get_args(annotation)}
    if bool in kinds:
        return "boolean"
    if int in kinds or (annotation is None and name.startswith("n_")):
        return "Int64"
    if float in kinds or name.startswith("p_below") or name.endswith(("_low", "_high", "_share")):
        return "Float64"
    return "string"

"""The Python API: agreement and disagreements as objects that a notebook shows."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, overload

from annotation.labels import LABELS, TASKS, TaskName
from exports.agreement import schema as figures
from exports.agreement.disagreements import Disagreement, rank_together
from exports.agreement.disagreements import find_disagreements as disagreements_of_task
from exports.agreement.schema import Agreement, TaskAgreement
from exports.csv.tables import TEXT_COLUMNS
from exports.measure._frames import field_types, frame_of_table, typed_frame
from exports.measure._html import html_sections, html_table
from exports.measure.files import agreement_json, measure_tables
from exports.reading.frames import Source, sort_sources
from exports.report.agreement_page import agreement_sections
from exports.report.disagreement_files import with_details
from exports.report.tidy import agreement_tables
from exports.report.words import decimal, estimate
from pipeline.errors import InputError
from pipeline.tables import Table

if TYPE_CHECKING:
    import pandas


_DISAGREEMENT_HEAD = ("task", "label", "record", "influence on α", "who said what", "text", "text pair", "notes")
_SHOWN = 20
"""Disagreements that are shown."""
_EXCERPT = 160
"""Characters of a text that are shown."""
_DETAIL_COLUMNS = (*dict.fromkeys(name for pair in TEXT_COLUMNS.values() for name in pair), "notes", "record_id")
"""What a disagreement shows of a frame beside the votes."""
_ROW_MODELS = (
    TaskAgreement,
    figures.LabelAgreement,
    figures.PairAgreement,
    figures.AnnotatorAgreement,
    figures.SliceLabel,
    figures.AlphaChange,
    figures.ConditionalAgreement,
    Disagreement,
)
_OBJECT_COLUMNS = ("votes", "notes", "other_labels")


def _disagreements_html(disagreements: Sequence[Disagreement]) -> str:
    """The first disagreements, their texts cut, and how many more there are."""
    rows: list[tuple[str, ...]] = [
        (
            found.task,
            found.label,
            " ".join(filter(None, (found.record_uuid, found.chunk_id))),
            decimal(found.influence),
            found.pattern,
            _excerpt(found.text),
            _excerpt(found.text_pair),
            "; ".join(f"{name}: {_excerpt(note)}" for name, note in found.notes.items()),
        )
        for found in disagreements[:_SHOWN]
    ]
    more = len(disagreements) - len(rows)
    return html_table(Table([_DISAGREEMENT_HEAD, *rows])) + (f"<p>and {more:,} more</p>" if more else "")


def _excerpt(text: str) -> str:
    """The beginning of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= _EXCERPT else f"{line[: _EXCERPT - 1]}…"


_FIELD_TYPES = field_types(*_ROW_MODELS)


class AgreementResult:
    """Agreement between annotators: figures as a model, as data frames, as JSON, and as a table in a notebook."""

    def __init__(self, agreement: Agreement, remarks: Sequence[str]) -> None:
        """Hold the figures and what was left out of them."""
        self.agreement = agreement
        """Every figure, as in `agreement.json`."""
        self.remarks = tuple(remarks)
        """Plain sentences about rows that were left out; empty where all count."""

    def to_pandas(self, table: str = "labels") -> "pandas.DataFrame":
        """One of the tables that `exports agreement` writes as CSV, with types; what is undefined is NA.

        Args:
            table: `tasks`, `labels`, `pairs`, `annotators`, `slices` (rounds, weeks, languages), `changes` or
                `conditional`.

        Raises:
            InputError: there is no such table.
        """
        tables = agreement_tables(self.agreement)
        if f"{table}.csv" not in tables:
            there = ", ".join(name.removesuffix(".csv") for name in tables)
            raise InputError(f"There is no table {table!r}; the tables are {there}.")
        return frame_of_table(tables[f"{table}.csv"], _FIELD_TYPES)

    def to_json(self) -> str:
        """The text of `agreement.json`."""
        return agreement_json(self.agreement)

    def __repr__(self) -> str:
        """Each task with its size and mean alpha."""
        parts = [
            f"{task}: {found.n_units} units, mean α {estimate(found.macro_alpha, found.macro_interval)}"
            for task, found in self.agreement.tasks.items()
        ]
        return f"<AgreementResult {'; '.join(parts)}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: warnings in words, then a line for each label."""
        return html_sections(agreement_sections(self.agreement))


class DisagreementResult(Sequence[Disagreement]):
    """Where annotators differ, the weightiest first: a sequence, a data frame, and a table in a notebook."""

    def __init__(self, disagreements: Iterable[Disagreement]) -> None:
        """Hold the disagreements in their order."""
        self.disagreements = tuple(disagreements)
        """All of them."""

    @overload
    def __getitem__(self, place: int) -> Disagreement: ...
    @overload
    def __getitem__(self, place: slice) -> "DisagreementResult": ...
    def __getitem__(self, place: int | slice) -> "Disagreement | DisagreementResult":
        """One disagreement, or several as a result of their own."""
        if isinstance(place, slice):
            return DisagreementResult(self.disagreements[place])
        return self.disagreements[place]

    def __len__(self) -> int:
        """How many there are."""
        return len(self.disagreements)

    def to_pandas(self) -> "pandas.DataFrame":
        """A row for each disagreement in their order; `votes` and `notes` are dicts by annotator."""
        rows = [dict(found) for found in self.disagreements]
        return typed_frame(
            {name: [row[name] for row in rows] for name in Disagreement.model_fields}, _FIELD_TYPES, _OBJECT_COLUMNS
        )

    def __repr__(self) -> str:
        """How many there are."""
        return f"<DisagreementResult {len(self)} disagreements>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the first ones, their texts cut."""
        return _disagreements_html(self.disagreements)


def measure_agreement(source: "Source | Sequence[Source]", *, resamples: int = 2000, seed: int = 0) -> AgreementResult:
    """Agreement between annotators, the very figures of `exports agreement`.

    A frame needs `record_uuid`, `annotator_id`, `created_at` and the labels of its task, for retrieval `chunk_id` too.
    Labels may be Booleans, 0 and 1, or the words of a file. `task`, `chunk_rank`, `language`, `round` and
    `response_status` count where they are there; without `language` every unit is `und`, without `round` no rounds are
    compared. A frame without discarded rows tells nothing about discards. Rows are counted from 0 in messages.

    Args:
        source: An export folder, a CSV file, a frame of `read_task` or one made by hand, or several of these.
        resamples: How many resamples are behind each interval.
        seed: Seed of the resampling; the same source and seed give the same figures.

    Raises:
        InputError: a source is no export, nobody submitted anything in any of them, or a number is too small.
        BadRowsError: cells cannot be read; every one of them is listed.
    """
    measured = measure_tables(sort_sources(source).read(), resamples, seed)
    return AgreementResult(measured.agreement, measured.remarks)


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
    wanted = LABELS[task] if task in TASKS else tuple(name for names in LABELS.values() for name in names)
    if task not in (None, *TASKS):
        raise InputError(f"There is no task {task!r}; the tasks are {', '.join(TASKS)}.")
    if label not in (None, *wanted):
        raise InputError(f"There is no label {label!r}; the labels are {', '.join(wanted)}.")
    if top is not None and top < 0:
        raise InputError(f"`top` is {top}; expected 0 or more.")
    sources = sort_sources(source)
    tables = [table for table in sources.read().tables if task in (None, table.task)]
    found = [
        disagreements_of_task(table, (label,) if label else (), top)
        for table in tables
        if label in (None, *LABELS[table.task])
    ]
    return DisagreementResult(with_details(rank_together(found)[:top], sources.paths, sources.tables(_DETAIL_COLUMNS)))

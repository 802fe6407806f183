"""Make a dataset of an export: Parquet files with splits, and a data card."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from datasets import Features

from annotation.argilla.labels import LABELS, TASKS, TaskName
from exports.csv.fetch import Progress
from exports.csv.folder import MANIFEST_FILE, exported_datasets, has_filter, staged_folder
from exports.dataset import files as card_files
from exports.dataset import rows as table_rows
from exports.dataset.data_card import TaskFacts, count_facts, data_card, split_sentences, warnings_about
from exports.dataset.splits import Placed, group_records, place_records
from exports.reading.decisions import read_decisions
from exports.reading.input_files import input_file
from exports.reading.provenance import gap_sentences, provenance_files, read_provenance
from exports.reading.read import export_files, own_files, read_tables, task_of
from exports.report.files import measure_tables
from exports.statistics.agreement import RESAMPLES
from exports.statistics.consensus import ConsensusLabel, UnitLabel, consensus, unused_decisions
from exports.statistics.ratings import Ratings
from pipeline.core.errors import InputError
from pipeline.core.files import sha256_of
from pipeline.core.sentences import sentences

_say = sentences(__file__)


class WrittenDataset(NamedTuple):
    manifest: card_files.DatasetManifest
    facts: list[TaskFacts]
    warnings: list[str]


class _Writing(NamedTuple):
    store: table_rows.RowStore
    places: Mapping[str, Placed]
    out: Path
    progress: Progress

    def rows(self, task: TaskName) -> Iterator[table_rows.Row]:
        total = self.store.count(task)
        for done, row in enumerate(self.store.rows(task)):
            if done % 1000 == 0:
                self.progress(f"{task} rows", done, total)
            vector = [None if row[label] is None else float(row[label]) for label in LABELS[task]]
            yield self.placed(row | card_files.label_columns(task, row, vector))
        self.progress(f"{task} rows", total, total)

    def units(
        self, task: TaskName, found: Iterable[ConsensusLabel], sources: Counter[tuple[str, str]]
    ) -> Iterator[table_rows.Row]:
        """Each unit with its consensus; `sources` counts where that of each label comes from."""
        for row, labels in table_rows.consensus_rows(self.store.rows(task), task, found):
            sources.update((each.label, each.consensus_source or "none") for each in labels)
            vector = [table_rows.soft_label(label) for label in labels]
            yield self.placed(row | card_files.label_columns(task, row, vector))

    def placed(self, row: table_rows.Row) -> table_rows.Row:
        return row | self.places[row["record_uuid"]]._asdict()


def write_dataset(
    out: Path,
    paths: Sequence[Path],
    options: card_files.DatasetOptions,
    *,
    decisions: Path | None = None,
    progress: Progress = lambda name, done, total: None,
) -> WrittenDataset:
    """Write the folder `out`, which is replaced as a whole where it is an earlier dataset, which lends its splits.

    Raises:
        InputError: a file is no export, has no submitted response, or was written for spreadsheets.
        BadRowsError: cells cannot be read; every one of them is listed.
        OutputError: `out` holds something else, or cannot be written.
    """
    with staged_folder(out, card_files.check_dataset_folder, "exports dataset") as work:
        files, left_out = own_files(export_files(paths), "Datasets for training")
        if changed := [file for file in files if has_filter(file.parent, "spreadsheet_safe")]:
            raise InputError(_say("spreadsheet_safe", file=changed[0]))
        provenance = read_provenance(provenance_files(paths))
        found = read_tables(files)
        decided = {} if decisions is None else read_decisions(decisions).by_unit
        progress("agreement", 0, 1)
        agreement = measure_tables(found, RESAMPLES, options.seed).agreement
        progress("agreement", 1, 1)
        with table_rows.RowStore(work / "rows.sqlite", provenance) as store:
            for file in files:
                store.add_file(file, task_of(file))
            earlier = card_files.earlier_splits(out, options)
            places = place_records(group_records(store.links()), options.shares, options.seed, earlier)
            writing = _Writing(store, places, work / "export", progress)
            facts, rows = _write_tables(writing, found.tables, decided, options)
            warnings = [*left_out, *found.remarks, *provenance.remarks, *store.warnings()]
            warnings += gap_sentences(store.origins, places)
            warnings += warnings_about(facts, places, options.shares)
            warnings += split_sentences(places, options.shares, earlier, store.common_passage())
        warnings += _unused_sentences(found.tables, decided)
        manifest = card_files.DatasetManifest(
            sources=(*found.inputs, *provenance.files),
            decisions=None if decisions is None else input_file(decisions, len(decided)),
            guideline_versions=_guideline_versions(files),
            options=options,
            rows=rows,
            files={},
        )
        folder = work / "export"
        (folder / "README.md").write_text(data_card(manifest, facts, agreement), encoding="utf-8", newline="\n")
        written = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        digests = {path.relative_to(folder).as_posix(): sha256_of(path) for path in written}
        manifest = manifest.model_copy(update={"files": digests})
        (folder / MANIFEST_FILE).write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8", newline="\n")
    return WrittenDataset(manifest, facts, warnings)


def _guideline_versions(files: Sequence[Path]) -> dict[TaskName, tuple[str, ...]]:
    """Sorted; only of tasks for which a manifest beside the files has one."""
    found: dict[str, set[str]] = {}
    for dataset in (each for folder in {file.parent for file in files} for each in exported_datasets(folder)):
        task, version = dataset.get("task"), dataset.get("guideline_version")
        if isinstance(task, str) and isinstance(version, str) and version:
            found.setdefault(task, set()).add(version)
    return {task: tuple(sorted(found[task])) for task in TASKS if task in found}


def _write_tables(
    writing: _Writing, tables: Sequence[Ratings], decided: Mapping[UnitLabel, bool], options: card_files.DatasetOptions
) -> tuple[list[TaskFacts], dict[str, int]]:
    """Counts of each task with a response, and the rows of each Parquet file, once all of them are written."""
    facts: list[TaskFacts] = []
    rows: dict[str, int] = {}

    def write(name: str, features: Features, of_table: Iterable[table_rows.Row]) -> dict[str, int]:
        counts = card_files.write_table(writing.out / "parquet" / name, features, of_table)
        rows.update({f"parquet/{name}/{split}.parquet": count for split, count in counts.items()})
        return counts

    for ratings in tables:
        if len(ratings.units):
            task, columns = ratings.task, writing.store.columns[ratings.task]
            sources: Counter[tuple[str, str]] = Counter()
            by_row = write(task, card_files.row_features(task, columns), writing.rows(task))
            units = writing.units(task, consensus(ratings, decided, options.rule), sources)
            by_unit = write(f"{task}_consensus", card_files.consensus_features(task, columns), units)
            facts.append(count_facts(ratings, sources, writing.places, by_row, by_unit))
    return facts, rows


def _unused_sentences(tables: Sequence[Ratings], decided: Mapping[UnitLabel, bool]) -> Iterator[str]:
    unused = unused_decisions(tables, decided)
    for task in TASKS:
        of_task = [key for key in unused if key[2] in LABELS[task]]
        if of_task:
            *unit, label = of_task[0]
            yield _say("unused", task=task, count=len(of_task), unit=" ".join(filter(None, unit)), label=label)

"""The data card of a dataset: Markdown behind the YAML head that Hugging Face reads; no text of annotators in it."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from jinja2 import Environment, StrictUndefined

from annotation.argilla.labels import LABELS, TaskName
from exports.dataset.files import DatasetManifest
from exports.dataset.splits import SPLITS, Placed, SplitName, SplitShares
from exports.report.words import discard_sentence, label_figure, warning_sentences
from exports.statistics.agreement_schema import Agreement, TaskAgreement
from exports.statistics.ratings import MISSING, Ratings
from exports.statistics.table import columns_at
from pipeline.core.sentences import sentences
from pipeline.core.tables import Table, escape_markdown

_say = sentences(__file__)


class TaskFacts(NamedTuple):
    task: TaskName
    n_units: int  # units with a response
    n_records: int
    annotators: dict[str, int]
    languages: dict[str, int]
    split_records: dict[str, int]
    split_rows: dict[str, int]
    split_units: dict[str, int]
    n_incomplete: int  # responses that leave a label out: their vector is null
    sources: dict[str, dict[str, int]]
    """Units by where the consensus comes from, for each label; `none` where votes tie or nobody answered."""

    @property
    def n_rows(self) -> int:
        return sum(self.split_rows.values())


def count_facts(
    ratings: Ratings,
    sources: Mapping[tuple[str, str], int],
    places: Mapping[str, Placed],
    split_rows: dict[str, int],
    split_units: dict[str, int],
) -> TaskFacts:
    responses = np.bincount(ratings.response_annotators, minlength=len(ratings.annotators))
    records = Counter(places[record].split for record in ratings.records)
    return TaskFacts(
        task=ratings.task,
        n_units=len(ratings.unit_records),
        n_records=len(ratings.records),
        annotators=dict(zip(ratings.annotators, responses.tolist(), strict=True)),
        languages=dict(sorted(Counter(ratings.unit_languages).items())),
        split_records={split: records[split] for split in SPLITS},
        split_rows=split_rows,
        split_units=split_units,
        n_incomplete=int((ratings.values == MISSING).any(axis=1).sum()),
        sources={
            label: {source: count for (name, source), count in sorted(sources.items()) if name == label}
            for label in LABELS[ratings.task]
        },
    )


def warnings_about(facts: Sequence[TaskFacts], places: Mapping[str, Placed], shares: SplitShares) -> Iterator[str]:
    groups = len({place.group for place in places.values()})
    for split in SPLITS:
        empty = [each.task for each in facts if not each.split_rows[split]]
        if getattr(shares, split) and empty:
            yield _say("empty", split=split, tasks=", ".join(empty), groups=groups)
    for each in facts:
        if each.n_incomplete:
            yield _say("incomplete", task=each.task, n_incomplete=each.n_incomplete)


def split_sentences(
    places: Mapping[str, Placed], shares: SplitShares, earlier: Mapping[str, SplitName], common: tuple[int, str]
) -> Iterator[str]:
    """Sentences about splits that are not as wanted, and about records that were in another split `earlier`.

    `common` is how many records share the passage that most of them share, and the first of them.
    """
    counts = Counter(place.split for place in places.values())
    parts = {split: counts[split] / len(places) for split in SPLITS}
    wanted = {split: getattr(shares, split) for split in SPLITS}
    if any(abs(parts[split] - wanted[split]) > 0.05 for split in SPLITS):
        ((_, largest),) = Counter(place.group for place in places.values()).most_common(1)
        sharing, record = common
        hub = f" The most common passage is in {sharing} records, such as {record}." if sharing > 1 else ""
        yield (
            f"The splits have {_percents(parts.values())} of the records instead of {_percents(wanted.values())}: "
            "records that share a narrative, a query or a passage, directly or through others, are in one split, and "
            f"the largest group of them has {largest} of {len(places)} records.{hub}"
        )
    moved = [record for record, place in places.items() if earlier.get(record, place.split) != place.split]
    if moved:
        yield _say("moved", moved=len(moved), earlier=len(earlier), first=min(moved))


def _percents(parts: Iterable[float]) -> str:
    *first, last = (f"{100 * part:.1f}".removesuffix(".0") for part in parts)
    return f"{', '.join(first)} and {last} %"


_LANGUAGE_CODE = re.compile(r"[a-z]{2,3}")
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
"""Source: https://github.com/huggingface/hub-docs/blob/main/datasetcard.md, read 2026-11."""


def data_card(manifest: DatasetManifest, facts: Sequence[TaskFacts], agreement: Agreement) -> str:
    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters["escaped"] = escape_markdown
    text = (files("exports.dataset") / "data_card.md.jinja").read_text(encoding="utf-8")
    rows = sum(each.n_rows for each in facts)
    filled = {name: each.split_rows for each in facts for name in (each.task, f"{each.task}_consensus")}
    shares = manifest.options.shares
    sentences = {}
    for each in facts:
        figures = agreement.tasks[each.task]
        discarded = "The export does not tell how many answers were discarded."
        if figures.discards is not None:
            discarded = discard_sentence(figures.discards) or "No answer was discarded."
        sentences[each.task] = [*warning_sentences(figures), discarded]
    return environment.from_string(text).render(
        manifest=manifest,
        facts=facts,
        languages=sorted(
            {code for each in facts for code in each.languages if _LANGUAGE_CODE.fullmatch(code)} - {"und"}
        ),
        size=next((name for limit, name in _SIZES if rows < limit), "1M<n<10M"),
        # `load_dataset` refuses files without a row
        filled={name: [split for split in SPLITS if counts[split]] for name, counts in filled.items()},
        tables=_count_tables(facts),
        sentences=sentences,
        figures={each.task: _figure_table(agreement.tasks[each.task]) for each in facts},
        sources=_source_table(facts),
        files=[*manifest.sources, *([manifest.decisions] if manifest.decisions else [])],
        shares=", ".join(f"{split} {100 * getattr(shares, split):.0f} %" for split in SPLITS),
    )


def _count_tables(facts: Sequence[TaskFacts]) -> list[str]:
    columns = ("responses", "units", "records", "annotators", "with a label left out")
    tasks = [
        (each.task, each.n_rows, each.n_units, each.n_records, len(each.annotators), each.n_incomplete)
        for each in facts
    ]
    splits = [
        (each.task, split, *(counts[split] for counts in (each.split_records, each.split_units, each.split_rows)))
        for each in facts
        for split in SPLITS
    ]
    languages = [(each.task, code or "not told", units) for each in facts for code, units in each.languages.items()]
    people = [(each.task, name, count) for each in facts for name, count in each.annotators.items()]
    tables: list[list[tuple[object, ...]]] = [
        [("task", *columns), *tasks],
        [("task", "split", "records", "units", "responses"), *splits],
        [("task", "language", "units"), *languages],
        [("task", "annotator", "responses"), *people],
    ]
    return [Table(rows, left=1).markdown() for rows in tables]


def _figure_table(figures: TaskAgreement) -> str:
    columns = columns_at("card")
    rows = [
        (label, str(found.n_pairable_items), *(str(label_figure(found, name)) for name, _, _ in columns))
        for label, found in figures.labels.items()
    ]
    head = ("label", "units with two answers or more", *(shown.head for _, _, shown in columns))
    return Table([head, *rows], left=1).markdown()


def _source_table(facts: Sequence[TaskFacts]) -> str:
    kinds = sorted({kind for each in facts for counts in each.sources.values() for kind in counts})
    rows = [
        (label, *(str(each.sources[label].get(kind, 0)) for kind in kinds))
        for each in facts
        for label in LABELS[each.task]
    ]
    return Table([("label", *kinds), *rows], left=1).markdown()

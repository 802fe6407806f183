"""The data card of a dataset: Markdown behind the YAML head that Hugging Face reads; no text of annotators in it."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from annotation.labels import LABELS, TaskName
from exports.agreement.ratings import MISSING, Ratings
from exports.agreement.schema import Agreement, TaskAgreement
from exports.agreement.statistics import columns_at
from exports.dataset.files import DatasetManifest
from exports.dataset.splits import SPLITS, Placed, SplitName, SplitShares
from exports.report.words import discard_sentence, figure_text, warning_sentences
from pipeline.tables import Table, escape_markdown


class TaskFacts(NamedTuple):
    """Counts of one task."""

    task: TaskName
    n_units: int
    """Units with a response."""
    n_records: int
    """Records with a response."""
    annotators: dict[str, int]
    """Responses by annotator, by name."""
    languages: dict[str, int]
    """Units by language, by code."""
    split_records: dict[str, int]
    split_rows: dict[str, int]
    """Responses in each split."""
    split_units: dict[str, int]
    n_incomplete: int
    """Responses that leave a label out: their vector is null."""
    sources: dict[str, dict[str, int]]
    """Units by where the consensus comes from, for each label; `none` where votes tie or nobody answered."""

    @property
    def n_rows(self) -> int:
        """Responses."""
        return sum(self.split_rows.values())


def count_facts(
    ratings: Ratings,
    sources: Mapping[str, Mapping[str | None, int]],
    places: Mapping[str, Placed],
    split_rows: dict[str, int],
    split_units: dict[str, int],
) -> TaskFacts:
    """The counts of a task with these ratings, units by the cell of `<label>_source`, rows and units by split."""
    responses = np.bincount(ratings.response_annotators, minlength=len(ratings.annotators))
    records = Counter(places[record].split for record in ratings.records)
    by_source = {
        label: {source or "none": count for source, count in sources[f"{label}_source"].items()}
        for label in LABELS[ratings.task]
    }
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
        sources={label: dict(sorted(counts.items())) for label, counts in by_source.items()},
    )


def warnings_about(facts: Sequence[TaskFacts], places: Mapping[str, Placed], shares: SplitShares) -> Iterator[str]:
    """Plain sentences about splits without rows and responses without a vector."""
    groups = len({place.group for place in places.values()})
    for split in SPLITS:
        empty = [each.task for each in facts if not each.split_rows[split]]
        if getattr(shares, split) and empty:
            yield (
                f"The split {split} is empty for {', '.join(empty)}: there are {groups} groups of records that belong "
                "together, and each is in one split as a whole. Let more be annotated, or choose other shares with "
                "`--split`."
            )
    for each in facts:
        if each.n_incomplete:
            yield (
                f"{each.task}: {each.n_incomplete} responses leave a label out; the label is null there, and so is "
                "the vector `labels`."
            )


_TOLD_DEPARTURE = 0.05
"""Splits that are further from their shares are told of."""


def split_sentences(
    places: Mapping[str, Placed], shares: SplitShares, earlier: Mapping[str, SplitName], common: tuple[int, str]
) -> Iterator[str]:
    """Plain sentences about splits that are not as wanted, and about records that were in another split.

    Args:
        places: Split and group of each record.
        shares: The wanted shares.
        earlier: Splits of the dataset that is replaced, by record.
        common: How many records share the passage that most of them share, and the first of them.
    """
    counts = Counter(place.split for place in places.values())
    parts = {split: counts[split] / len(places) for split in SPLITS}
    wanted = {split: getattr(shares, split) for split in SPLITS}
    if any(abs(parts[split] - wanted[split]) > _TOLD_DEPARTURE for split in SPLITS):
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
        yield (
            f"{len(moved)} of {len(earlier)} records of the earlier dataset are in another split now (the first: "
            f"{min(moved)}), because groups grew together or shares could not be kept otherwise. Do not test on it "
            "what was trained on the earlier one."
        )


def _percents(parts: Iterable[float]) -> str:
    """The shares of the three splits in percent, such as `80, 10 and 10 %`."""
    *first, last = (f"{100 * part:.1f}".removesuffix(".0") for part in parts)
    return f"{', '.join(first)} and {last} %"


_LANGUAGE_CODE = re.compile(r"[a-z]{2,3}")
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
"""Source: https://github.com/huggingface/hub-docs/blob/main/datasetcard.md, read 2026-11."""
_LARGEST = "1M<n<10M"

_INTRODUCTION = """\
Answers of language models and their citations, judged by human annotators with citejury. Each row of `<task>` is one
annotator's response to one unit; each row of `<task>_consensus` is one unit with what the jury says; each row of
`merged` is one record with all tasks, retrieval summed up over the passages of its query."""

_LOADING = """\
```python
import datasets, pandas

jury = datasets.load_from_disk("datasets/{task}")  # train, validation, test
names = jury["train"].features["labels_yes"].feature.names  # what each place of `labels` means
frame = pandas.read_parquet("parquet/{task}.parquet")
```"""

_COLUMNS = """\
- `text`, `text_pair`: query and passage in retrieval, answer and context in grounding, query and answer in generation.
- One column a label: true, false, or null where it was not answered or the jury ties.
- `labels`: the same as a vector of numbers. In `<task>` it is 1 or 0; in `<task>_consensus` it is the share of yes
  among the votes, the adjudicator's decision where there is one, or the model's probability where the model decides.
  It is null where one of its labels has no value; it never holds NaN.
- `labels_yes`: the places in `labels` of the labels that are true; null where one of them is null. Its type holds the
  names of the labels.
- `<label>_vote_share`, `<label>_posterior`, `<label>_source`: share of yes among the votes; probability of yes by the
  Dawid–Skene model, null where the model is not identified; where the label comes from (`single`, `unanimous`,
  `majority`, `ds`, `adjudicated`), null where there is none: votes tie, or nobody answered.
- `merged`: `<task>_ratings` counts responses, null where the record is not in the task. Of the passages of a query
  `n_chunks` is their number, `topically_relevant_share` the share of relevant ones among those with a label,
  `first_relevant_rank` the best rank of one, `any_evidence_sufficient` and `any_misleading` whether one is.
- `model_name`, `narrative_id` and the like say where the record comes from; empty where that is not known, null where
  no file tells. The annotators did not see it.
- `split`, `group`: the split, and an id that all records share which belong together, for cross-validation by group."""

_AGREEMENT = """\
As `citejury exports agreement` measures it on the same files with the same seed. Names of fields are those of the
`agreement.json` that it writes."""

_LIMITS = """\
- Records belong together where they share a narrative id, a query or a passage (the same text, or the same id on the
  same page), directly or through other records, and are in one split. Other passages of the same page may be in
  another split.
- The languages of answers were detected by machine; `und` is undetermined.
- The Dawid–Skene model takes annotators' mistakes and the units of one record for independent.
- Labels are judgements by the guidelines named above, on pages as they were when they were fetched.
- Notes are as annotators wrote them and may name people. No licence is stated: the texts of models and web pages have
  terms of their own."""


def data_card(manifest: DatasetManifest, facts: Sequence[TaskFacts], agreement: Agreement) -> str:
    """The whole card, ending in a line break; tasks in the order of `facts`."""
    blocks = [_yaml_head(manifest, facts), "# Judgements of a jury", _INTRODUCTION]
    blocks += ["## Loading", _LOADING.format(task=facts[0].task), "## Columns", _COLUMNS, "## Counts"]
    blocks += [_count_table(facts), _split_table(facts), _language_table(facts), _annotator_table(facts)]
    blocks += ["## Guidelines", _guidelines(manifest, facts), "## Agreement", _AGREEMENT]
    for each in facts:
        blocks += _agreement_blocks(each, agreement.tasks[each.task])
    blocks += ["## Consensus", _consensus_paragraph(manifest), _source_table(facts), "## Limits", _LIMITS]
    blocks += ["## Made from", _sources(manifest)]
    return "\n\n".join(blocks) + "\n"


def _yaml_head(manifest: DatasetManifest, facts: Sequence[TaskFacts]) -> str:
    """What Hugging Face reads: configurations with their files, languages, size."""
    lines = ["---", "pretty_name: Judgements of a jury", "task_categories:", "- text-classification"]
    codes = sorted(
        {code for each in facts for code in each.languages if code != "und" and _LANGUAGE_CODE.fullmatch(code)}
    )
    lines += ["language:", *(f"- '{code}'" for code in codes)] if codes else []
    rows = sum(each.n_rows for each in facts)
    lines += ["size_categories:", f"- {next((name for limit, name in _SIZES if rows < limit), _LARGEST)}", "configs:"]
    filled = {name: each.split_rows for each in facts for name in (each.task, f"{each.task}_consensus")}
    filled["merged"] = {split: sum(each.split_rows[split] for each in facts) for split in SPLITS}
    for name, rows_of in filled.items():
        lines += [f"- config_name: {name}", "  data_files:"]
        for split in SPLITS:
            if not rows_of[split]:
                continue  # `load_dataset` refuses files without a row; `load_from_disk` reads them
            lines += [f"  - split: {split}", f"    path: datasets/{name}/{split}/data-*.arrow"]
    return "\n".join([*lines, "---"])


def _count_table(facts: Sequence[TaskFacts]) -> str:
    """Responses, units, records and annotators of each task."""
    head = ("task", "responses", "units", "records", "annotators", "with a label left out")
    rows = [
        (each.task, each.n_rows, each.n_units, each.n_records, len(each.annotators), each.n_incomplete)
        for each in facts
    ]
    return Table([head, *rows], left=1).markdown()


def _split_table(facts: Sequence[TaskFacts]) -> str:
    """Records, units and responses of each split."""
    rows = [
        (each.task, split, *(str(counts[split]) for counts in (each.split_records, each.split_units, each.split_rows)))
        for each in facts
        for split in SPLITS
    ]
    return Table([("task", "split", "records", "units", "responses"), *rows], left=1).markdown()


def _language_table(facts: Sequence[TaskFacts]) -> str:
    """Units of each language."""
    rows = [(each.task, code or "not told", str(units)) for each in facts for code, units in each.languages.items()]
    return Table([("task", "language", "units"), *rows], left=1).markdown()


def _annotator_table(facts: Sequence[TaskFacts]) -> str:
    """Responses of each annotator."""
    rows = [(each.task, name, str(count)) for each in facts for name, count in each.annotators.items()]
    return Table([("task", "annotator", "responses"), *rows], left=1).markdown()


def _guidelines(manifest: DatasetManifest, facts: Sequence[TaskFacts]) -> str:
    """The versions of the guidelines that annotators had, a line a task."""
    versions = {each.task: manifest.guideline_versions.get(each.task, ()) for each in facts}
    return "\n".join(
        f"- {task}: " + (", ".join(map(escape_markdown, found)) or "the export does not tell the version")
        for task, found in versions.items()
    )


def _agreement_blocks(facts: TaskFacts, figures: TaskAgreement) -> Iterator[str]:
    """What to mind, and the figures of each label of one task."""
    yield f"### {facts.task}"
    sentences = [*warning_sentences(figures), _discards(figures)]
    yield "\n".join(f"- {escape_markdown(sentence)}" for sentence in sentences)
    columns = columns_at("card")
    rows = [
        (label, str(found.n_pairable_items), *(figure_text(found, name) for name, _, _ in columns))
        for label, found in figures.labels.items()
    ]
    head = ("label", "units with two answers or more", *(shown.head for _, _, shown in columns))
    yield Table([head, *rows], left=1).markdown()


def _discards(figures: TaskAgreement) -> str:
    """How often annotators discarded, in one sentence."""
    if figures.discards is None:
        return "The export does not tell how many answers were discarded."
    return discard_sentence(figures.discards) or "No answer was discarded."


def _consensus_paragraph(manifest: DatasetManifest) -> str:
    """How votes become one label."""
    majority = "the value that most votes have; a tie is null"
    rule = (
        f"By majority: {majority}."
        if manifest.options.rule == "majority"
        else f"By the Dawid–Skene model: the more probable value where the model is identified, elsewhere {majority}."
    )
    decided = " Decisions of adjudicators come before all votes." if manifest.decisions else ""
    return f"{rule}{decided} Units by where their label comes from:"


def _source_table(facts: Sequence[TaskFacts]) -> str:
    """Units by where the consensus on each label comes from."""
    kinds = sorted({kind for each in facts for counts in each.sources.values() for kind in counts})
    rows = [
        (label, *(str(each.sources[label].get(kind, 0)) for kind in kinds))
        for each in facts
        for label in LABELS[each.task]
    ]
    return Table([("label", *kinds), *rows], left=1).markdown()


def _sources(manifest: DatasetManifest) -> str:
    """The files that the dataset was made from, and the seed and shares of the splits."""
    shares = manifest.options.shares
    parts = ", ".join(f"{split} {getattr(shares, split):.0%}" for split in SPLITS)
    files = [*manifest.sources, *([manifest.decisions] if manifest.decisions else [])]
    lines = [f"- {escape_markdown(file.file)}, {file.rows} rows, sha256 {file.sha256}" for file in files]
    return "\n".join([*lines, f"- citejury {manifest.citejury}; splits {parts}, seed {manifest.options.seed}"])

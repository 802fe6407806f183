"""How far the annotators agree: one figure with verdicts, then on a click what to mind, the files, and each task."""

import math
from collections.abc import Sequence
from xml.etree.ElementTree import Element

from annotation.labels import TaskName
from exports.agreement.schema import Agreement, InputFile, TaskAgreement
from exports.report.html._elements import Child, cell, element, folded, head, quoted, row, sentence, table
from exports.report.html._forest import conditional_section, forest_plot, label_section
from exports.report.html._heat_map import pair_section
from exports.report.html._timeline import time_section
from exports.report.words import FITNESS_MEANING, change_sentences, warning_sentences
from pipeline.text.terminal import counted

_HASH_SHOWN = 12


def agreement_head(agreement: Agreement, remarks: Sequence[str]) -> list[Child]:
    """Which labels are fit for use, what to mind about each task, and the files that all of it was read from."""
    return [
        element("h2", "How far the annotators agree", id="agreement"),
        forest_plot(agreement),
        element("p", FITNESS_MEANING, class_="note"),
        _cautions(agreement),
        folded("Files read, and what of them did not count", _files_table(agreement.inputs), _remarks(remarks)),
    ]


def _remarks(remarks: Sequence[str]) -> Child:
    """What of the files did not count."""
    if not remarks:
        return element("p", "Every row counts.", class_="note")
    return element("ul", (element("li", quoted(remark)) for remark in remarks), class_="remarks")


def _files_table(inputs: Sequence[InputFile]) -> Element:
    """The files, so that anyone can tell whether these are the figures of theirs."""
    rows = (
        row(
            head(quoted(found.file)),
            cell(f"{found.rows:,}"),
            element("td", element("code", found.sha256[:_HASH_SHOWN]), title=found.sha256),
        )
        for found in inputs
    )
    return table("Files read", ("File", "rows", "SHA-256 begins with"), rows)


def _cautions(agreement: Agreement) -> Child:
    """What to mind before reading a figure, by task, under how many things these are."""
    told = {task: list(warning_sentences(figures)) for task, figures in agreement.tasks.items()}
    if not any(told.values()):
        return element("p", "No warning applies.", class_="note")
    counts = ", ".join(f"{task} {len(sentences)}" for task, sentences in told.items() if sentences)
    parts = (
        element("div", element("h3", task.capitalize()), _bullets(sentences))
        for task, sentences in told.items()
        if sentences
    )
    return folded(f"What to mind first: {counts}", element("div", parts, class_="tasks"), class_="mind", id="mind")


def task_details(task: TaskName, figures: TaskAgreement) -> Element:
    """All figures of one task, on a click."""
    changes = list(change_sentences(figures))
    return folded(
        element("h3", f"{task.capitalize()} in detail"),
        _coverage(figures),
        _bullets(changes) if changes else None,
        label_section(figures),
        pair_section(figures),
        time_section(figures),
        conditional_section(figures),
    )


def _bullets(sentences: Sequence[str]) -> Element:
    """A list of sentences."""
    return element("ul", (element("li", sentence(text)) for text in sentences))


def _coverage(figures: TaskAgreement) -> list[Child]:
    """How units are shared out among annotators, repeats, and the groups that share no unit."""
    shared = figures.overlap.units_by_ratings
    sizes = ", ".join(f"{ratings} for {units:,}" for ratings, units in sorted(shared.items()))
    repeats = counted(figures.n_duplicates, "older response")
    sentences = [
        f"{counted(figures.n_units, 'unit')} of {counted(figures.n_records, 'record')}.",
        f"Annotators per unit: {sizes}." if sizes else "",
        f"{repeats} left out because the annotator has a newer one on the unit." if figures.n_duplicates else "",
        _pairs_sentence(figures),
    ]
    groups = figures.overlap.components
    return [
        element("p", " ".join(filter(None, sentences)), class_="note"),
        element("p", _groups_sentence(groups), class_="note") if len(groups) > 1 else None,
    ]


def _pairs_sentence(figures: TaskAgreement) -> str:
    """How many pairs of annotators share no unit; empty where all share one."""
    apart, pairs = figures.overlap.pairs_apart, math.comb(len(figures.annotators), 2)
    return f"{apart:,} of {counted(pairs, 'pair')} of annotators share no unit and cannot be compared." if apart else ""


def _groups_sentence(groups: Sequence[Sequence[str]]) -> list[Child]:
    """The groups of annotators that share no unit with each other."""
    named: list[Child] = []
    for place, group in enumerate(groups, start=1):
        named += [f"({place}) " if place == 1 else f"; ({place}) ", quoted(", ".join(group))]
    return [f"{len(groups)} groups of annotators share no unit with each other: ", named, "."]

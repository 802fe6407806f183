"""Agreement for the terminal: verdicts and warnings in words, then a table for each task; 72 columns, no colour."""

import textwrap
from collections.abc import Iterator, Sequence

from exports.agreement.figures import LabelAgreement
from exports.agreement.schema import Agreement, TaskAgreement
from exports.report.words import (
    FITNESS_MEANING,
    alpha_estimate,
    decimal,
    discard_sentence,
    estimate,
    finding_sentences,
    fitness_sentences,
    percent,
    warning_sentences,
)
from pipeline.text.terminal import counted, printable

WIDTH = 72
HEAD = ("label", "n", "α [95 %]", "AC1", "agree", "yes")
LEGEND = (
    "n: units with two answers or more. α: Krippendorff's alpha with its 95 % interval over records. "
    "AC1: Gwet's. agree: share of agreeing pairs. yes: share of yes among all answers. –: undefined. "
    "*: beyond chance, though of twenty statements about annotators one is expected by chance alone."
)


def agreement_table(agreement: Agreement) -> str:
    """One block of lines for each task, then the legends; at most 72 columns wide."""
    blocks = ["\n".join(task_lines(task, figures)) for task, figures in agreement.tasks.items()]
    return "\n\n".join([*blocks, textwrap.fill(FITNESS_MEANING, WIDTH), textwrap.fill(LEGEND, WIDTH)])


def task_lines(task: str, figures: TaskAgreement) -> Iterator[str]:
    """The task's head line, verdicts, what to mind, a line for each label, and what was found beyond them."""
    sizes = (
        counted(figures.n_units, "unit"),
        counted(figures.n_records, "record"),
        counted(len(figures.annotators), "annotator"),
    )
    yield f"{task}: {', '.join(sizes)}"
    for sentence in fitness_sentences(figures):
        yield wrapped(sentence, "= ")
    for sentence in warning_sentences(figures):
        yield wrapped(sentence, "! ")
    yield table_line(HEAD)
    for label, found in figures.labels.items():
        yield table_line(label_cells(label, found))
    if figures.macro_alpha is not None:
        over = f"mean α of {counted(figures.n_labels_with_alpha, 'label')}"
        yield table_line((over, "", estimate(figures.macro_alpha, figures.macro_interval), "", "", ""))
    if discarded := discard_sentence(figures.discards):
        yield wrapped(discarded, "  ")
    for sentence in finding_sentences(figures):
        yield wrapped(sentence, "* ")


def wrapped(sentence: str, mark: str) -> str:
    """The sentence on lines of the table's width, behind its mark; what could steer the terminal is taken out."""
    return textwrap.fill(
        printable(sentence), WIDTH, initial_indent=mark, subsequent_indent="  ", break_on_hyphens=False
    )


def table_line(cells: Sequence[str]) -> str:
    """The first cell to the left, the others to the right."""
    return f"{cells[0]:<27}{cells[1]:>7}{cells[2]:>18}{cells[3]:>6}{cells[4]:>7}{cells[5]:>6}".rstrip()


def label_cells(label: str, found: LabelAgreement) -> tuple[str, ...]:
    """The cells of one label."""
    return (
        label,
        str(found.n_pairable_items),
        alpha_estimate(found),
        decimal(found.gwet_ac1),
        percent(found.percent_agreement),
        percent(found.prevalence),
    )

"""Agreement for the terminal: verdicts and warnings in words, then a table for each task; 72 columns, no colour."""

import textwrap
from collections.abc import Iterator, Sequence

from annotation.labels import TaskName
from exports.agreement.schema import Agreement, JudgeAgreement, JudgedLabel, JudgedTask, LabelAgreement, TaskAgreement
from exports.report.words import (
    FITNESS_MEANING,
    JUDGE_LEGEND,
    alpha_estimate,
    coverage_sentence,
    decimal,
    discard_sentence,
    estimate,
    finding_sentences,
    fitness_sentences,
    left_out_sentences,
    other_task_sentences,
    percent,
    warning_sentences,
)
from pipeline.tables import Table
from pipeline.text.terminal import counted, printable

_WIDTH = 72
_WIDTHS = (27, 5, 16, 4, 5, 4)
_HEAD = ("label", "n", "α [95 %]", "AC1", "agree", "yes")
_JUDGE_WIDTHS = (27, 6, 17, 4, 4, 4, 4)
_JUDGE_HEAD = ("label", "n", "κ [95 %]", "prec", "rec", "AUC", "ECE")
_LEGEND = (
    "n: units with two answers or more. α: Krippendorff's alpha with its 95 % interval over records. "
    "AC1: Gwet's. agree: share of agreeing pairs. yes: share of yes among all answers. –: undefined. "
    "*: beyond chance; were all annotators interchangeable, at most one file in twenty would name anybody."
)


def agreement_table(agreement: Agreement) -> str:
    """One block of lines for each task, then the legends; at most 72 columns wide."""
    blocks = ["\n".join(_task_lines(task, figures)) for task, figures in agreement.tasks.items()]
    return "\n\n".join([*blocks, textwrap.fill(FITNESS_MEANING, _WIDTH), textwrap.fill(_LEGEND, _WIDTH)])


def _task_lines(task: str, figures: TaskAgreement) -> Iterator[str]:
    """The task's head line, verdicts, what to mind, a line for each label, and what was found beyond them."""
    sizes = (
        counted(figures.n_units, "unit"),
        counted(figures.n_records, "record"),
        counted(len(figures.annotators), "annotator"),
    )
    yield f"{task}: {', '.join(sizes)}"
    for sentence in fitness_sentences(figures):
        yield _wrapped(sentence, "= ")
    for sentence in warning_sentences(figures):
        yield _wrapped(sentence, "! ")
    rows = [_HEAD, *(_label_cells(label, found) for label, found in figures.labels.items())]
    if figures.macro_alpha is not None:
        over = f"mean α of {counted(figures.n_labels_with_alpha, 'label')}"
        rows.append((over, "", estimate(figures.macro_alpha, figures.macro_interval), "", "", ""))
    yield Table(rows, left=1).terminal(_WIDTHS)
    if discarded := discard_sentence(figures.discards):
        yield _wrapped(discarded, "  ")
    for sentence in finding_sentences(figures):
        yield _wrapped(sentence, "* ")


def _wrapped(sentence: str, mark: str) -> str:
    """The sentence on lines of the table's width, behind its mark; what could steer the terminal is taken out."""
    return textwrap.fill(
        printable(sentence), _WIDTH, initial_indent=mark, subsequent_indent="  ", break_on_hyphens=False
    )


def _label_cells(label: str, found: LabelAgreement) -> tuple[str, ...]:
    """The cells of one label."""
    return (
        label,
        str(found.n_pairable_items),
        alpha_estimate(found),
        decimal(found.gwet_ac1),
        percent(found.percent_agreement),
        percent(found.prevalence),
    )


def judge_table(judges: Sequence[JudgeAgreement]) -> str:
    """One block of lines for each judge and task, then the legend; at most 72 columns wide."""
    blocks = [
        "\n".join(_judged_task_lines(judge.model, task, found))
        for judge in judges
        for task, found in judge.tasks.items()
    ]
    others = [_wrapped(sentence, "! ") for judge in judges for sentence in other_task_sentences(judge)]
    return "\n\n".join([*blocks, *others, textwrap.fill(JUDGE_LEGEND, _WIDTH)])


def _judged_task_lines(model: str, task: TaskName, found: JudgedTask) -> Iterator[str]:
    """The judge's name, what it covers, and a line for each label."""
    yield _wrapped(f"{model} against the jury: {task}", "")
    yield _wrapped(coverage_sentence(found), "= ")
    for sentence in left_out_sentences(found):
        yield _wrapped(sentence, "! ")
    if found.labels:
        rows = [_JUDGE_HEAD, *(_judged_cells(label, figures) for label, figures in found.labels.items())]
        yield Table(rows, left=1).terminal(_JUDGE_WIDTHS, gap=1)


def _judged_cells(label: str, found: JudgedLabel) -> tuple[str, ...]:
    """The cells of one label."""
    confusion, calibration = found.confusion, found.calibration
    return (
        label,
        str(found.n_compared),
        estimate(confusion.cohen_kappa, found.interval),
        *map(decimal, (confusion.precision, confusion.recall, calibration.auc, calibration.ece)),
    )

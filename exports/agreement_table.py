"""Agreement as a table for the terminal: 60 columns, no colour."""

import textwrap
from collections.abc import Iterator

from exports.agreement.figures import LabelAgreement, LabelWarning, UndefinedReason
from exports.agreement.measure import FEW_ITEMS, RARE_CLASS
from exports.agreement.schema import Agreement, TaskAgreement

WIDTH = 60
UNDEFINED = "–"
HEAD = ("label", "n", "agree", "α", "AC1", "yes")

LEGEND = (
    "n: units with two answers or more. agree: share of agreeing pairs. α: Krippendorff's alpha. "
    "AC1: Gwet's. yes: share of yes among all answers."
)
REASONS: dict[UndefinedReason, str] = {
    "no_pairable_items": "no unit was answered by two annotators",
    "single_annotator": "only one annotator answered",
    "no_variation": "all answers on shared units are the same, which cannot show that annotators tell yes from no",
    "constant_both_raters": "both annotators give the same answer everywhere",
}
ADVICE: dict[LabelWarning, str] = {
    "FEW_ITEMS": f"fewer than {FEW_ITEMS} units with two answers, so read the figures as a first impression",
    "RARE_CLASS": f"fewer than {RARE_CLASS} answers of the rarer value, so a single unit can turn α",
}


def agreement_table(agreement: Agreement) -> str:
    """One block of lines for each task, then the legend; at most 60 columns wide."""
    blocks = ["\n".join(task_lines(task, figures)) for task, figures in agreement.tasks.items()]
    return "\n\n".join([*blocks, textwrap.fill(LEGEND, WIDTH)])


def task_lines(task: str, figures: TaskAgreement) -> Iterator[str]:
    """The task's head line, a line for each label, and what to mind."""
    sizes = (
        counted(figures.n_units, "unit"),
        counted(figures.n_records, "record"),
        counted(len(figures.annotators), "annotator"),
    )
    yield f"{task}: {', '.join(sizes)}"
    yield table_line(HEAD)
    for label, found in figures.labels.items():
        yield table_line(label_cells(label, found))
    if figures.macro_alpha is not None:
        over = f"mean α of {counted(figures.n_labels_with_alpha, 'label')}"
        yield table_line((over, "", "", f"{figures.macro_alpha:.2f}", "", ""))
    for remark in task_remarks(figures):
        yield textwrap.fill(remark, WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)


def counted(number: int, noun: str) -> str:
    """The number with its noun in the right form."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def table_line(cells: tuple[str, ...]) -> str:
    """The first cell to the left, the others to the right."""
    return f"{cells[0]:<27}{cells[1]:>6}{cells[2]:>7}{cells[3]:>7}{cells[4]:>7}{cells[5]:>6}".rstrip()


def label_cells(label: str, found: LabelAgreement) -> tuple[str, ...]:
    """The cells of one label."""
    return (
        label,
        str(found.n_pairable_items),
        percent(found.percent_agreement),
        decimal(found.krippendorff_alpha),
        decimal(found.gwet_ac1),
        percent(found.prevalence),
    )


def percent(value: float | None) -> str:
    """A share as a whole percentage."""
    return UNDEFINED if value is None else f"{value:.0%}"


def decimal(value: float | None) -> str:
    """A coefficient with two decimals."""
    return UNDEFINED if value is None else f"{value:.2f}"


def task_remarks(figures: TaskAgreement) -> Iterator[str]:
    """Why alphas are undefined, what to mind, and how often rules between labels are broken; a sentence each."""
    for reason, meaning in REASONS.items():
        labels = [name for name, found in figures.labels.items() if found.undefined.get("krippendorff_alpha") == reason]
        if labels:
            yield f"α is undefined for {named(labels, figures)}: {meaning}."
    for code, advice in ADVICE.items():
        labels = [name for name, found in figures.labels.items() if code in found.warnings]
        if labels:
            yield f"{named(labels, figures)}: {advice}."
    for rule, count in figures.constraint_violations.items():
        if count:
            yield f"{counted(count, 'answer')} against the rule {rule}."


def named(labels: list[str], figures: TaskAgreement) -> str:
    """The labels by name, or all of them at once."""
    return "all labels" if len(labels) == len(figures.labels) else ", ".join(labels)

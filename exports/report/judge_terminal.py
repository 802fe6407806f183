"""A judge against the jury for the terminal: coverage in words, then a table for each task; 72 columns, no colour."""

import textwrap
from collections.abc import Iterator, Sequence

from annotation.labels import TaskName
from exports.agreement.figures import JudgeAgreement, JudgedLabel, JudgedTask, JudgeReason, RefusedInterval
from exports.report.terminal import WIDTH, wrapped
from exports.report.words import decimal, estimate
from pipeline.text.terminal import counted

HEAD = ("label", "n", "κ [95 %]", "prec", "rec", "AUC", "ECE")
LEGEND = (
    "Judges: n: units with a majority of the jury, which counts as right; a single vote is one. κ: Cohen's kappa with "
    "its 95 % interval over records. prec, rec: precision and recall of yes. AUC: of the probability of yes that the "
    "judge states; ECE: its mean distance from the share of yes. –: undefined."
)
JUDGE_REASONS: dict[JudgeReason, str] = {
    "no_compared_units": "no unit has an answer of the judge and a majority of the jury",
    "judge_never_says_yes": "the judge never says yes",
    "jury_never_says_yes": "the jury never says yes",
    "nobody_says_yes": "neither ever says yes",
    "constant_both_raters": "both give the same answer everywhere",
    "jury_is_constant": "the jury gives the same answer everywhere",
}
REFUSED_INTERVALS: dict[RefusedInterval, str] = {
    "few_units": "fewer than 20 units are compared",
    "undefined_resamples": "it is undefined in more than 5 % of the resamples",
    "single_record": "all compared units belong to one record",
    "constant": "every resample gives the same value",
}


def judge_table(judges: Sequence[JudgeAgreement]) -> str:
    """One block of lines for each judge and task, then the legend; at most 72 columns wide."""
    blocks = [
        "\n".join(task_lines(judge.model, task, found)) for judge in judges for task, found in judge.tasks.items()
    ]
    others = [wrapped(sentence, "! ") for judge in judges for sentence in other_task_sentences(judge)]
    return "\n\n".join([*blocks, *others, textwrap.fill(LEGEND, WIDTH)])


def task_lines(model: str, task: TaskName, found: JudgedTask) -> Iterator[str]:
    """The judge's name, what it covers, and a line for each label."""
    yield wrapped(f"{model} against the jury: {task}", "")
    yield wrapped(coverage_sentence(found), "= ")
    for sentence in left_out_sentences(found):
        yield wrapped(sentence, "! ")
    if found.labels:
        yield table_line(HEAD)
    for label, figures in found.labels.items():
        yield table_line(label_cells(label, figures))


def table_line(cells: Sequence[str]) -> str:
    """The first cell to the left, the others to the right."""
    widths = (7, 18, 5, 5, 5, 5)
    return f"{cells[0]:<27}{''.join(f'{cell:>{width}}' for cell, width in zip(cells[1:], widths, strict=True))}"


def label_cells(label: str, found: JudgedLabel) -> tuple[str, ...]:
    """The cells of one label."""
    confusion, calibration = found.confusion, found.calibration
    return (
        label,
        str(found.n_compared),
        estimate(confusion.cohen_kappa, found.interval),
        *map(decimal, (confusion.precision, confusion.recall, calibration.auc, calibration.ece)),
    )


def coverage_sentence(found: JudgedTask) -> str:
    """How many units of the export the judge answered."""
    return f"{found.n_judged:,} of {counted(found.n_units, 'unit')} judged, {found.n_not_judged:,} not."


def left_out_sentences(found: JudgedTask) -> Iterator[str]:
    """What of the judgements or of the units does not count, and figures that are undefined, with the reason."""
    if found.n_unknown:
        yield f"{counted(found.n_unknown, 'judgement')} of units that the export does not hold."
    if found.statuses:
        counts = ", ".join(f"{status} {count:,}" for status, count in found.statuses.items())
        yield f"Judgements that cannot be used, by status: {counts}."
    ties = [f"{label} {figures.n_ties:,}" for label, figures in found.labels.items() if figures.n_ties]
    if ties:
        yield f"Left out because the jury ties: {', '.join(ties)}."
    for label, figures in found.labels.items():
        reason = figures.confusion.undefined.get("cohen_kappa")
        if reason:
            yield f"κ of {label} is undefined: {JUDGE_REASONS[reason]}."
    for refused, meaning in REFUSED_INTERVALS.items():
        without = [label for label, figures in found.labels.items() if lacks_interval(figures, refused)]
        if without:
            yield f"κ without an interval, since {meaning}: {', '.join(without)}."


def lacks_interval(found: JudgedLabel, refused: RefusedInterval) -> bool:
    """Whether the label's kappa is defined and its interval refused for this reason."""
    return found.confusion.cohen_kappa is not None and found.refused_interval == refused


def other_task_sentences(judge: JudgeAgreement) -> Iterator[str]:
    """How many judgements are of tasks that the export has no file of."""
    for task, count in judge.other_tasks.items():
        yield f"{judge.model}: {counted(count, 'judgement')} of {task}, which has no file in the export."

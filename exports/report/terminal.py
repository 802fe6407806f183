"""Agreement for the terminal: a line for each label with its verdict, and judges; at most 78 columns, no colour."""

import textwrap
from collections.abc import Iterator, Sequence

from annotation.labels import TaskName
from exports.agreement.audit import Audit
from exports.agreement.schema import Agreement, JudgeAgreement, JudgeDifference, JudgedLabel, JudgedTask, TaskAgreement
from exports.report.audit_words import HEADING, audit_sentences
from exports.report.judge_words import (
    JUDGE_LEGEND,
    conclusion_sentences,
    coverage_sentence,
    difference_sentences,
    left_out_sentences,
    other_task_sentences,
    shown_alt_test,
)
from exports.report.results_terminal import findings_table
from exports.report.words import (
    FITNESS,
    alpha_estimate,
    decimal,
    estimate,
    finding_sentences,
    fitness,
    undefined_sentences,
    warning_sentences,
)
from exports.results.schema import Results
from pipeline.tables import Table
from pipeline.text.terminal import counted, printable

_WIDTH = 72
_WIDTHS = (27, 16, 29)
_JUDGE_WIDTHS = (27, 6, 17, 4, 4, 4, 4, 4)
_JUDGE_HEAD = ("label", "n", "κ [95 %]", "ω", "ρ", "prec", "rec", "AUC")
_LEGEND = (
    "α: Krippendorff's alpha with its 95 % interval over records; –: undefined. Fit for use: the whole interval is at "
    ".800 or above, for tentative conclusions at .667."
)
_STARRED = " *: beyond chance."


def outcome_table(agreement: Agreement, results: Results | None) -> str:
    """What the jury found, where that is known, then how far its members agree."""
    people = {name for figures in agreement.tasks.values() for name in figures.annotators}
    found = [findings_table(results, len(people))] if results else []
    return "\n\n".join([*found, agreement_table(agreement)])


def agreement_table(agreement: Agreement) -> str:
    """A line for each label with α and its verdict, what was found beyond them, and the legend; at most 78 columns."""
    blocks = ["\n".join(_task_lines(task, figures)) for task, figures in agreement.tasks.items()]
    cautions = sum(1 for figures in agreement.tasks.values() for _ in warning_sentences(figures))
    minded = [_wrapped(f"{counted(cautions, 'caution')} to read first: report.html and agreement.md.", "! ")]
    is_starred = any(True for figures in agreement.tasks.values() for _ in finding_sentences(figures))
    legend = textwrap.fill(_LEGEND + (_STARRED if is_starred else ""), _WIDTH)
    return "\n\n".join([*blocks, *(minded if cautions else []), legend])


def _task_lines(task: str, figures: TaskAgreement) -> Iterator[str]:
    """The task with its size, a line for each label, and what was found beyond them."""
    sizes = (
        counted(figures.n_units, "unit"),
        counted(figures.n_records, "record"),
        counted(len(figures.annotators), "annotator"),
    )
    yield f"{task}: {', '.join(sizes)}"
    rows = [(label, alpha_estimate(found), FITNESS[fitness(found)]) for label, found in figures.labels.items()]
    yield Table([("", "α [95 %]", "verdict"), *rows]).terminal(_WIDTHS)
    for sentence in undefined_sentences(figures):
        yield _wrapped(sentence, "! ")
    for sentence in finding_sentences(figures):
        yield _wrapped(sentence, "* ")


def _wrapped(sentence: str, mark: str) -> str:
    """The sentence on lines of the table's width, behind its mark; what could steer the terminal is taken out."""
    return textwrap.fill(
        printable(sentence), _WIDTH, initial_indent=mark, subsequent_indent="  ", break_on_hyphens=False
    )


def judge_table(judges: Sequence[JudgeAgreement], differences: Sequence[JudgeDifference] = ()) -> str:
    """One block of lines for each judge and task, what tells judges apart, then the legend; at most 72 columns wide."""
    blocks = [
        "\n".join(_judged_task_lines(judge.model, task, found))
        for judge in judges
        for task, found in judge.tasks.items()
    ]
    apart = [_wrapped(sentence, "* ") for sentence in difference_sentences(differences)]
    others = [_wrapped(sentence, "! ") for judge in judges for sentence in other_task_sentences(judge)]
    return "\n\n".join([*blocks, *apart, *others, textwrap.fill(JUDGE_LEGEND, _WIDTH)])


def audit_lines(audit: Audit) -> str:
    """What an audit did to the labels, a sentence at a time; at most 72 columns wide."""
    return "\n".join([f"{HEADING}:", *(_wrapped(sentence, "= ") for sentence in audit_sentences(audit))])


def _judged_task_lines(model: str, task: TaskName, found: JudgedTask) -> Iterator[str]:
    """The judge's name, what it covers, and a line for each label."""
    yield _wrapped(f"{model} against the jury: {task}", "")
    yield _wrapped(coverage_sentence(found), "= ")
    for sentence in left_out_sentences(found):
        yield _wrapped(sentence, "! ")
    if found.labels:
        rows = [_JUDGE_HEAD, *(_judged_cells(label, figures) for label, figures in found.labels.items())]
        yield Table(rows, left=1).terminal(_JUDGE_WIDTHS, gap=1)
        for sentence in conclusion_sentences(found):
            yield _wrapped(sentence, "* ")


def _judged_cells(label: str, found: JudgedLabel) -> tuple[str, ...]:
    """The cells of one label."""
    confusion, calibration = found.confusion, found.calibration
    return (
        label,
        str(found.n_compared),
        estimate(confusion.cohen_kappa, found.interval),
        *map(decimal, shown_alt_test(found.alt_test)),
        *map(decimal, (confusion.precision, confusion.recall, calibration.auc)),
    )

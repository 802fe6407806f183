"""A judge against the jury as Markdown, behind the agreement between annotators."""

from collections.abc import Iterator, Sequence

from exports.agreement.figures import JudgeAgreement, JudgedLabel, JudgedTask
from exports.report.judge_terminal import LEGEND, coverage_sentence, left_out_sentences, other_task_sentences
from exports.report.markdown import escape_markdown, table
from exports.report.words import decimal, estimate

HEAD = ("label", "n", "tp / fp / fn / tn", "κ [95 %]", "precision", "recall", "F1", "accuracy", "AUC", "Brier", "ECE")


def judge_markdown(judges: Sequence[JudgeAgreement]) -> str:
    """The part about all judges, ending in a line break; empty where there are none."""
    if not judges:
        return ""
    blocks = ["## Judges against the jury", *(block for judge in judges for block in judge_blocks(judge))]
    return "\n\n".join(["", *blocks, escape_markdown(LEGEND)]) + "\n"


def judge_blocks(judge: JudgeAgreement) -> Iterator[str]:
    """The blocks of one judge: by task its coverage and a table."""
    for task, found in judge.tasks.items():
        yield f"### {escape_markdown(judge.model)}: {task}"
        yield bullets([coverage_sentence(found), *left_out_sentences(found)])
        if found.labels:
            yield labels_table(found)
    others = list(other_task_sentences(judge))
    if others:
        yield bullets(others)


def bullets(sentences: Sequence[str]) -> str:
    """A list of sentences."""
    return "\n".join(f"- {escape_markdown(sentence)}" for sentence in sentences)


def labels_table(found: JudgedTask) -> str:
    """A row for each label."""
    return table(HEAD, [label_cells(label, figures) for label, figures in found.labels.items()])


def label_cells(label: str, found: JudgedLabel) -> tuple[str, ...]:
    """The cells of one label."""
    confusion, calibration = found.confusion, found.calibration
    return (
        label,
        f"{found.n_compared:,}",
        " / ".join(f"{cell:,}" for cell in (confusion.tp, confusion.fp, confusion.fn, confusion.tn)),
        estimate(confusion.cohen_kappa, found.interval),
        *map(decimal, (confusion.precision, confusion.recall, confusion.f1, confusion.accuracy)),
        *map(decimal, (calibration.auc, calibration.brier, calibration.ece)),
    )

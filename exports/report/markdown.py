"""Agreement as Markdown for a pull request or an issue: what is fit for use and what to mind first, then a table."""

from collections.abc import Iterator, Sequence

from annotation.controls.scores import AnnotatorScores, Share
from annotation.labels import TaskName
from exports.agreement.audit import Audit
from exports.agreement.schema import (
    Agreement,
    JudgeAgreement,
    JudgeDifference,
    JudgedLabel,
    LabelAgreement,
    TaskAgreement,
)
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
from exports.report.results_markdown import findings_blocks
from exports.report.words import (
    FITNESS_MEANING,
    UNDEFINED,
    alpha_estimate,
    decimal,
    discard_sentence,
    estimate,
    finding_sentences,
    fitness_sentences,
    label_sentence,
    macro_sentence,
    percent,
    warning_sentences,
)
from exports.results.schema import Results
from pipeline.tables import Table, escape_markdown
from pipeline.text.terminal import counted

MARK = "<!-- citejury exports agreement -->"
"""The first line: by it the file is known as ours."""

_HEAD = ("label", "n", "α [95 %]", "P(α < .667)", "AC1", "agreement", "P⁺", "P⁻", "yes votes")
_JUDGE_HEAD = (
    "label",
    "n",
    "tp / fp / fn / tn",
    "κ [95 %]",
    "ω",
    "ρ",
    "precision",
    "recall",
    "F1",
    "accuracy",
    "AUC",
    "Brier",
    "ECE",
)
_LEGEND = (
    "n: units with two answers or more. α: Krippendorff's alpha. P(α < .667): share of the resamples below that "
    "threshold. AC1: Gwet's. agreement: share of agreeing pairs. P⁺, P⁻: specific agreement on yes and on no. "
    "yes votes: their share among all votes, which counts units with many votes more. –: undefined. "
    "Annotators are named where chance would name anybody in at most one file of twenty."
)


def agreement_markdown(agreement: Agreement, results: Results | None = None) -> str:
    """The whole page, ending in a line break: what the jury found, where that is known, then agreement by task."""
    people = {name for figures in agreement.tasks.values() for name in figures.annotators}
    blocks = [MARK, *(findings_blocks(results, len(people)) if results else ()), "## Agreement between annotators"]
    for task, figures in agreement.tasks.items():
        blocks += _task_blocks(agreement, task, figures)
    blocks += [escape_markdown(FITNESS_MEANING), escape_markdown(_LEGEND)]
    return "\n\n".join(blocks) + "\n"


def _task_blocks(agreement: Agreement, task: TaskName, figures: TaskAgreement) -> Iterator[str]:
    """The blocks of one task: head, verdicts, warnings, table, what was found, how it was computed."""
    sizes = (
        counted(figures.n_units, "unit"),
        counted(figures.n_records, "record"),
        counted(len(figures.annotators), "annotator"),
    )
    yield f"### {task}: {', '.join(sizes)}"
    yield "\n".join(f"- **{escape_markdown(sentence)}**" for sentence in fitness_sentences(figures))
    warnings = [*warning_sentences(figures), *filter(None, (discard_sentence(figures.discards),))]
    if warnings:
        yield "\n".join(f"- ⚠ {escape_markdown(sentence)}" for sentence in warnings)
    yield Table([_HEAD, *(_label_cells(label, found) for label, found in figures.labels.items())], left=1).markdown()
    if figures.macro_alpha is not None:
        yield escape_markdown(f"{macro_sentence(agreement, task)}.")
    findings = list(finding_sentences(figures))
    if findings:
        yield "\n".join(f"- {escape_markdown(sentence)}" for sentence in findings)
    if len(figures.rounds) > 1:
        yield _rounds_table(figures)
    yield "\n".join(
        [
            "<details><summary>To cite</summary>",
            "",
            *(
                f"- {escape_markdown(f'{label}: {label_sentence(agreement, task, label)}.')}"
                for label in figures.labels
            ),
            "",
            "</details>",
        ]
    )


def _label_cells(label: str, found: LabelAgreement) -> tuple[str, ...]:
    """The cells of one label."""
    return (
        label,
        f"{found.n_pairable_items:,}",
        alpha_estimate(found),
        percent(found.p_below.get("0.667")),
        decimal(found.gwet_ac1),
        percent(found.percent_agreement),
        decimal(found.positive_agreement),
        decimal(found.negative_agreement),
        percent(found.prevalence),
    )


def _rounds_table(figures: TaskAgreement) -> str:
    """α of each label in each round, side by side, with the number of pairable units."""
    rows: list[tuple[str, ...]] = [("α by round", *(part.name for part in figures.rounds))]
    for label in figures.labels:
        parts = [part.labels[label] for part in figures.rounds]
        rows.append(
            (label, *(f"{estimate(p.krippendorff_alpha, p.interval)}, n = {p.n_pairable_items:,}" for p in parts))
        )
    return Table(rows, left=1).markdown()


def judge_markdown(judges: Sequence[JudgeAgreement], differences: Sequence[JudgeDifference] = ()) -> str:
    """The part about all judges and their differences, ending in a line break; empty where there are none."""
    if not judges:
        return ""
    blocks = ["## Judges against the jury", *(block for judge in judges for block in _judge_blocks(judge))]
    if differences:
        blocks += ["### Judges against each other", _bullets(list(difference_sentences(differences)))]
    return "\n\n".join(["", *blocks, escape_markdown(JUDGE_LEGEND)]) + "\n"


def audit_markdown(audit: Audit | None) -> str:
    """The part about an audit, ending in a line break; empty where there was none."""
    return f"\n## {HEADING}\n\n{_bullets(list(audit_sentences(audit)))}\n" if audit else ""


def controls_markdown(scores: Sequence[AnnotatorScores]) -> str:
    """The part about controls and repeats, ending in a line break; empty where nobody answered any."""
    if not scores:
        return ""
    rows = [
        (
            *(each.annotator, each.controls, _share(each.together.sensitivity), _share(each.together.specificity)),
            *(each.repeats, _share(each.together.consistency)),
        )
        for each in scores
    ]
    notices = [f"{each.annotator} {notice}." for each in scores for notice in each.notices]
    head = ("annotator", "controls", "sensitivity", "specificity", "repeats", "self-consistency")
    blocks = ["## Controls", Table([head, *rows], left=1).markdown(), *([_bullets(notices)] if notices else [])]
    return "\n\n".join(["", *blocks]) + "\n"


def _share(found: Share | None) -> str:
    """A share with its interval; a dash without any."""
    return f"{percent(found.value)} [{percent(found.low)}, {percent(found.high)}]" if found else UNDEFINED


def _judge_blocks(judge: JudgeAgreement) -> Iterator[str]:
    """The blocks of one judge: by task its coverage and a table."""
    for task, found in judge.tasks.items():
        yield f"### {escape_markdown(judge.model)}: {task}"
        yield _bullets([coverage_sentence(found), *left_out_sentences(found)])
        if found.labels:
            rows = [_JUDGE_HEAD, *(_judged_cells(label, figures) for label, figures in found.labels.items())]
            yield Table(rows, left=1).markdown()
            yield _bullets(list(conclusion_sentences(found)))
    others = list(other_task_sentences(judge))
    if others:
        yield _bullets(others)


def _bullets(sentences: Sequence[str]) -> str:
    """A list of sentences."""
    return "\n".join(f"- {escape_markdown(sentence)}" for sentence in sentences)


def _judged_cells(label: str, found: JudgedLabel) -> tuple[str, ...]:
    """The cells of one label."""
    confusion, calibration = found.confusion, found.calibration
    return (
        label,
        f"{found.n_compared:,}",
        " / ".join(f"{cell:,}" for cell in (confusion.tp, confusion.fp, confusion.fn, confusion.tn)),
        estimate(confusion.cohen_kappa, found.interval),
        *map(decimal, shown_alt_test(found.alt_test)),
        *map(decimal, (confusion.precision, confusion.recall, confusion.f1, confusion.accuracy)),
        *map(decimal, (calibration.auc, calibration.brier, calibration.ece)),
    )

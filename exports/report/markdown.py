"""Agreement as Markdown for a pull request or an issue: what is fit for use and what to mind first, then a table."""

import re
from collections.abc import Iterator, Sequence

from annotation.labels import TaskName
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
    label_sentence,
    macro_sentence,
    percent,
    warning_sentences,
)
from pipeline.text.terminal import counted, printable

MARK = "<!-- citejury exports agreement -->"
"""The first line: by it the file is known as ours."""

HEAD = ("label", "n", "α [95 %]", "P(α < .667)", "AC1", "agreement", "P⁺", "P⁻", "yes")
LEGEND = (
    "n: units with two answers or more. α: Krippendorff's alpha. P(α < .667): share of the resamples below that "
    "threshold. AC1: Gwet's. agreement: share of agreeing pairs. P⁺, P⁻: specific agreement on yes and on no. "
    "yes: share of yes among all answers. –: undefined. "
    "What is said of annotators is beyond chance, though of twenty such statements one is expected by chance alone."
)
PUNCTUATION = re.compile(r"([\\`*_{}\[\]|~$]|:(?=//))")
LINKED = re.compile(r"([@#]|www(?=\.))", re.IGNORECASE)


def escape_markdown(text: str) -> str:
    """The text as it stands, whatever is in it: no markup, HTML, link, mention or table cell can come of it.

    It is for the middle of a line. An empty comment parts `@`, `#` and `www` from what follows: GitHub makes a mention
    of a name even where its `@` is escaped.
    """
    text = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return LINKED.sub(r"\1<!-- -->", PUNCTUATION.sub(r"\\\1", text))


def agreement_markdown(agreement: Agreement) -> str:
    """The whole page, ending in a line break; tasks in the order of the agreement."""
    blocks = [MARK, "## Agreement between annotators"]
    for task, figures in agreement.tasks.items():
        blocks += task_blocks(agreement, task, figures)
    blocks += [escape_markdown(FITNESS_MEANING), escape_markdown(LEGEND)]
    return "\n\n".join(blocks) + "\n"


def task_blocks(agreement: Agreement, task: TaskName, figures: TaskAgreement) -> Iterator[str]:
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
    yield table(HEAD, [label_cells(label, found) for label, found in figures.labels.items()])
    if figures.macro_alpha is not None:
        yield escape_markdown(f"{macro_sentence(agreement, task)}.")
    findings = list(finding_sentences(figures))
    if findings:
        yield "\n".join(f"- {escape_markdown(sentence)}" for sentence in findings)
    if len(figures.rounds) > 1:
        yield rounds_table(figures)
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


def label_cells(label: str, found: LabelAgreement) -> tuple[str, ...]:
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


def rounds_table(figures: TaskAgreement) -> str:
    """α of each label in each round, side by side, with the number of pairable units."""
    rows = []
    for label in figures.labels:
        parts = [part.labels[label] for part in figures.rounds]
        rows.append(
            (label, *(f"{estimate(p.krippendorff_alpha, p.interval)}, n = {p.n_pairable_items:,}" for p in parts))
        )
    return table(("α by round", *(part.name for part in figures.rounds)), rows)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table: the first column to the left, the others to the right, every cell escaped."""
    lines = [head, *rows]
    written = [f"| {' | '.join(map(escape_markdown, line))} |" for line in lines]
    return "\n".join([written[0], "|---" + "|--:" * (len(head) - 1) + "|", *written[1:]])

"""The head of the report: each task at a glance, which labels are fit for use, and what to mind first."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from exports.agreement.schema import Agreement, InputFile, TaskAgreement
from exports.report.html._elements import Child, cell, element, estimated, head, quoted, row, sentence, table
from exports.report.words import (
    FITNESS,
    FITNESS_MEANING,
    UNDEFINED,
    Fitness,
    finding_sentences,
    labels_by_fitness,
    percent,
    warning_sentences,
)
from pipeline.text.terminal import counted

_HASH_SHOWN = 12
_SYMBOLS: dict[Fitness, str] = {"fit": "✓", "tentative": "~", "open": "?", "unfit": "✗", "unknown": "–"}
"""What stands before each verdict, so that it can be told without its colour."""
_CHANCE = "Beyond chance: were all annotators interchangeable, at most one report in twenty would name anybody."


def report_head(agreement: Agreement, remarks: Sequence[str]) -> Element:
    """Title, tasks at a glance, files, and what of them did not count."""
    latest = agreement.latest_response
    when = f"Newest response {latest[:16].replace('T', ' ')} UTC." if latest else "No response."
    return element(
        "header",
        element("h1", "Agreement of annotators"),
        element("p", when, class_="note"),
        element("div", _glance(agreement), _files_table(agreement.inputs), class_="beside"),
        element("ul", (element("li", quoted(remark)) for remark in remarks), class_="remarks") if remarks else None,
    )


def _glance(agreement: Agreement) -> Element:
    """Each task in one row."""
    columns = ("Task", "units", "records", "annotators", "mean α [95 %]", "labels with α", "identical answers")
    return table(
        "The tasks at a glance", columns, (_glance_row(task, t) for task, t in agreement.tasks.items()), "figures"
    )


def _glance_row(task: str, figures: TaskAgreement) -> Element:
    """One task in short."""
    return row(
        head(element("a", task, href=f"#{task}")),
        cell(f"{figures.n_units:,}"),
        cell(f"{figures.n_records:,}"),
        cell(f"{len(figures.annotators):,}"),
        cell(UNDEFINED if figures.macro_alpha is None else estimated(figures.macro_alpha, figures.macro_interval)),
        cell(f"{figures.n_labels_with_alpha} of {len(figures.labels)}"),
        cell(percent(figures.identical_vectors)),
    )


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


def fitness_section(agreement: Agreement) -> Element:
    """Each verdict with the labels that have it: what a reader wants to know before any figure."""
    lines = [_fitness_line(agreement, verdict, symbol) for verdict, symbol in _SYMBOLS.items()]
    heading = element("h2", "Which labels are fit for use", id="fit")
    return element(
        "section", heading, element("dl", lines), element("p", FITNESS_MEANING, class_="note"), class_="fitness"
    )


def _fitness_line(agreement: Agreement, verdict: Fitness, symbol: str) -> list[Element]:
    """One verdict with its labels by task; `none` where no label has it."""
    by_task = {task: labels_by_fitness(figures.labels)[verdict] for task, figures in agreement.tasks.items()}
    labels: list[Child] = [
        element("div", element("a", task, href=f"#{task}"), f": {', '.join(names)}\n")
        for task, names in by_task.items()
        if names
    ]
    mark = element("span", symbol, aria_hidden="true", class_="symbol")
    return [
        element("dt", mark, FITNESS[verdict], class_=verdict),
        element("dd", labels or element("span", "none", class_="why")),
    ]


def warnings_section(agreement: Agreement) -> Element:
    """What to mind before reading a figure, by task; then what stands out."""
    parts = [_task_cautions(task, figures) for task, figures in agreement.tasks.items()]
    heading = element("h2", "What to mind first", id="mind")
    return element("section", heading, element("div", parts, class_="tasks"), class_="mind")


def _task_cautions(task: str, figures: TaskAgreement) -> Element:
    """The warnings and findings of one task; a sentence that says so where there are none."""
    warnings, findings = list(warning_sentences(figures)), list(finding_sentences(figures))
    return element(
        "div",
        element("h3", task.capitalize()),
        _bullets(warnings) if warnings else element("p", "No warning applies."),
        [element("h4", "What stands out"), _bullets(findings), element("p", _CHANCE, class_="note")]
        if findings
        else None,
    )


def _bullets(sentences: Sequence[str]) -> Element:
    """A list of sentences."""
    return element("ul", (element("li", sentence(text)) for text in sentences))


def coverage(figures: TaskAgreement) -> list[Child]:
    """How units are shared out among annotators, repeats, and the groups that share no unit."""
    shared = figures.overlap.units_by_ratings
    sizes = ", ".join(f"{ratings} for {units:,}" for ratings, units in sorted(shared.items()))
    repeats = counted(figures.n_duplicates, "older response")
    sentences = [
        f"{counted(figures.n_units, 'unit')} of {counted(figures.n_records, 'record')}.",
        f"Annotators per unit: {sizes}." if sizes else "",
        f"{repeats} left out because the annotator has a newer one on the unit." if figures.n_duplicates else "",
    ]
    groups = figures.overlap.components
    return [
        element("p", " ".join(filter(None, sentences)), class_="note"),
        element("p", _groups_sentence(groups), class_="note") if len(groups) > 1 else None,
    ]


def _groups_sentence(groups: Sequence[Sequence[str]]) -> list[Child]:
    """The groups of annotators that share no unit with each other."""
    named: list[Child] = []
    for place, group in enumerate(groups, start=1):
        named += [f"({place}) " if place == 1 else f"; ({place}) ", quoted(", ".join(group))]
    return [f"{len(groups)} groups of annotators share no unit with each other: ", named, "."]

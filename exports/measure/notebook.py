"""Agreement and disagreements as HTML for a notebook: plain tables, every text escaped, no scripts and no styles."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from annotation.labels import TaskName
from exports.agreement.disagreement import Disagreement
from exports.agreement.schema import Agreement, TaskAgreement
from exports.report.words import (
    alpha_estimate,
    decimal,
    discard_sentence,
    estimate,
    finding_sentences,
    percent,
    warning_sentences,
)
from pipeline.text.counted import counted
from pipeline.text.printable import printable

LABEL_HEAD = ("label", "units with two answers", "α [95 %]", "AC1", "agreement", "share of yes")
DISAGREEMENT_HEAD = ("task", "label", "record", "influence on α", "who said what", "text", "text pair", "notes")
SHOWN = 20
"""Disagreements that are shown."""
EXCERPT = 160
"""Characters of a text that are shown."""


def agreement_html(agreement: Agreement) -> str:
    """For each task what to mind, in words, a line for each label, and what was found beyond them."""
    return "".join(part for task, figures in agreement.tasks.items() for part in task_parts(task, figures))


def task_parts(task: TaskName, figures: TaskAgreement) -> Iterator[str]:
    """The parts of one task in their order."""
    people = counted(len(figures.annotators), "annotator")
    yield f"<h4>{task}: {counted(figures.n_units, 'unit')}, {counted(figures.n_records, 'record')}, {people}</h4>"
    yield html_list(warning_sentences(figures))
    rows = [
        (
            label,
            f"{found.n_pairable_items:,}",
            alpha_estimate(found),
            decimal(found.gwet_ac1),
            percent(found.percent_agreement),
            percent(found.prevalence),
        )
        for label, found in figures.labels.items()
    ]
    macro = (f"mean of {figures.n_labels_with_alpha}", "", estimate(figures.macro_alpha, figures.macro_interval))
    yield html_table(LABEL_HEAD, [*rows, (*macro, "", "", "")])
    discarded = discard_sentence(figures.discards)
    yield html_list([*([discarded] if discarded else []), *finding_sentences(figures)])


def disagreements_html(disagreements: Sequence[Disagreement]) -> str:
    """The first disagreements, their texts cut, and how many more there are."""
    rows = [
        (
            found.task,
            found.label,
            " ".join(filter(None, (found.record_uuid, found.chunk_id))),
            decimal(found.influence),
            found.pattern,
            excerpt(found.text),
            excerpt(found.text_pair),
            "; ".join(f"{name}: {excerpt(note)}" for name, note in found.notes.items()),
        )
        for found in disagreements[:SHOWN]
    ]
    more = len(disagreements) - len(rows)
    return html_table(DISAGREEMENT_HEAD, rows) + (f"<p>and {more:,} more</p>" if more else "")


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of texts."""
    lines = ["".join(f"<td>{shown(cell)}</td>" for cell in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    names = "".join(f"<th>{shown(name)}</th>" for name in head)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>"


def html_list(sentences: Iterable[str]) -> str:
    """A list of sentences; nothing where there are none."""
    items = "".join(f"<li>{shown(sentence)}</li>" for sentence in sentences)
    return f"<ul>{items}</ul>" if items else ""


def shown(text: str) -> str:
    """The text as HTML shows it; a dollar would begin a formula in a notebook that draws them."""
    return escape(printable(text)).replace("$", "&#36;")


def excerpt(text: str) -> str:
    """The beginning of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= EXCERPT else f"{line[: EXCERPT - 1]}…"

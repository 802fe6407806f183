"""What the jury found as Markdown for a pull request or an issue."""

from collections.abc import Iterator, Sequence

from exports.report.results_differences import DIFFERENCE_MEANING, difference_sentences
from exports.report.results_gaps import incomparable_sentences
from exports.report.results_landscape import landscape_blocks
from exports.report.results_words import (
    Figure,
    definition,
    denominator_sentences,
    extent,
    figures,
    left_out_sentence,
    rate_estimate,
    rate_meaning,
    rate_rows,
    summary_sentence,
)
from exports.results.schema import Finding, Results
from pipeline.tables import Table, escape_markdown

MARK = "<!-- citejury exports results -->"
"""The first line: by it the file is known as ours."""


def results_markdown(results: Results) -> str:
    """The whole page, ending in a line break."""
    shown = list(figures(results))
    blocks = [MARK, "## What the jury found", escape_markdown(summary_sentence(results))]
    findings = [figure for figure in shown if figure.task is None]
    tasks = {task: [figure for figure in shown if figure.task == task] for task in results.tasks}
    behind = denominator_sentences([*([figure] for figure in findings), *tasks.values()])
    for figure in findings:
        assert isinstance(figure.found, Finding)
        blocks += [
            f"### {escape_markdown(figure.title)}",
            escape_markdown(f"Yes: {definition(figure.found)}."),
            _rate_table([figure], "answer"),
            *map(escape_markdown, next(behind)),
        ]
        if left_out := left_out_sentence(figure.found):
            blocks.append(escape_markdown(left_out))
    blocks += ["### What differs beyond chance", _bullets(difference_sentences(results))]
    for task, of_task in tasks.items():
        blocks += [f"### {task}", _rate_table(of_task, of_task[0].unit), *map(escape_markdown, next(behind))]
    for block in landscape_blocks(results):
        blocks += [f"### {escape_markdown(block.title)}", *(table.markdown() for table in block.tables)]
        blocks += map(escape_markdown, block.notes)
    minded = list(incomparable_sentences(results))
    if minded:
        blocks += ["### What cannot be told, and what to mind", _bullets(minded)]
    blocks += [escape_markdown(rate_meaning(results)), escape_markdown(DIFFERENCE_MEANING)]
    return "\n\n".join(blocks) + "\n"


def findings_blocks(results: Results, people: int) -> Iterator[str]:
    """What opens the page on agreement: composite findings by group, what differs, what cannot be told."""
    yield "## What the jury found"
    yield escape_markdown(extent(results, people))
    for figure in figures(results):
        if isinstance(figure.found, Finding):
            yield _rate_table([figure], "answer")
            yield escape_markdown(f"{definition(figure.found)}. {left_out_sentence(figure.found)}".rstrip())
    yield _bullets([*difference_sentences(results), *incomparable_sentences(results)])


def _rate_table(shown: Sequence[Figure], unit: str) -> str:
    """A line for each label or finding, and one for each of its groups below it."""
    rows: list[tuple[str, ...]] = [("", "yes [95 %]", f"{unit}s", "narratives")]
    for name, depth, rate in rate_rows(shown):
        label = f"– {name}" if depth else name
        rows.append((label, rate_estimate(rate), f"{rate.n_units:,}", f"{rate.n_narratives:,}"))
    return Table(rows, left=1).markdown()


def _bullets(sentences: Iterator[str] | Sequence[str]) -> str:
    """A list of sentences."""
    return "\n".join(f"- {escape_markdown(sentence)}" for sentence in sentences)

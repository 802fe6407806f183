"""What the jury found as Markdown for a pull request or an issue."""

from collections.abc import Iterator, Sequence

from exports.report.results_landscape import landscape_blocks
from exports.report.results_words import (
    DIFFERENCE_MEANING,
    Figure,
    definition,
    denominator_sentence,
    difference_sentences,
    extent,
    figures,
    incomparable_sentences,
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
    for figure in shown:
        if isinstance(figure.found, Finding):
            blocks += [
                f"### {escape_markdown(figure.title)}",
                escape_markdown(f"Yes: {definition(figure.found)}."),
                *_rate_blocks([figure], "answer"),
            ]
            if left_out := left_out_sentence(figure.found):
                blocks.append(escape_markdown(left_out))
    blocks += ["### What differs beyond chance", _bullets(difference_sentences(results))]
    for task in results.tasks:
        of_task = [figure for figure in shown if figure.task == task]
        blocks += [f"### {task}", *_rate_blocks(of_task, of_task[0].unit)]
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
            yield next(_rate_blocks([figure], "answer"))
            yield escape_markdown(f"{definition(figure.found)}. {left_out_sentence(figure.found)}".rstrip())
    yield _bullets([*difference_sentences(results), *incomparable_sentences(results)])


def _rate_blocks(shown: Sequence[Figure], unit: str) -> Iterator[str]:
    """A table of rates, then what stands behind them."""
    rows: list[tuple[str, ...]] = [("", "yes [95 %]", f"{unit}s", "narratives")]
    for name, depth, rate in rate_rows(shown):
        label = f"– {name}" if depth else name
        rows.append((label, rate_estimate(rate), f"{rate.n_units:,}", f"{rate.n_narratives:,}"))
    yield Table(rows, left=1).markdown()
    for sentence in dict.fromkeys(denominator_sentence(figure.found.denominators) for figure in shown):
        yield escape_markdown(sentence)


def _bullets(sentences: Iterator[str] | Sequence[str]) -> str:
    """A list of sentences."""
    return "\n".join(f"- {escape_markdown(sentence)}" for sentence in sentences)

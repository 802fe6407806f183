"""What the jury found for the terminal: findings, rates by group, what differs; at most 80 columns, no colour."""

import re
from collections.abc import Iterator, Sequence

from exports.report.results_differences import DIFFERENCE_MEANING, difference_sentences, standing_out
from exports.report.results_gaps import NOT_IN_EVERY_PART, incomparable_sentences
from exports.report.results_landscape import landscape_blocks
from exports.report.results_words import (
    GROUPS_SHOWN,
    Figure,
    definition,
    denominator_sentences,
    extent,
    figures,
    group_name,
    left_out_sentence,
    rate_estimate,
    rate_meaning,
    rate_rows,
    shows_groups,
    summary_sentence,
)
from exports.report.words import UNDEFINED
from exports.results.schema import Finding, Results
from pipeline.tables import Table
from pipeline.text.terminal import counted, printable

_WIDTH = 80
_NAME = 30
"""Columns for a name; a longer one is cut."""
_WIDTHS = (_NAME, 20, 10, 12)
_KEPT = re.compile(r"\d %|\bp [<=] [.\d]+")
"""Where no line may end."""
_FIRST = 1
"""So many differences, and things that cannot be compared, are in the short form; the report has all."""


def results_table(results: Results) -> str:
    """All of it: composite findings, the labels of each task, then what differs and what cannot be told."""
    shown = list(figures(results))
    few = shows_groups(results)
    blocks = [wrapped(summary_sentence(results))]
    findings = [figure for figure in shown if figure.task is None]
    tasks = {task: [figure for figure in shown if figure.task == task] for task in results.tasks}
    behind = denominator_sentences([*([figure] for figure in findings), *tasks.values()])
    blocks += ["\n".join(_finding_lines(figure, next(behind))) for figure in findings]
    blocks += ["\n".join(_task_lines(task, of_task, few, next(behind))) for task, of_task in tasks.items()]
    if not few:
        blocks.append(wrapped(f"More than {GROUPS_SHOWN} groups: the rates of labels by group are in results.csv."))
    for block in landscape_blocks(results, narrow=True):
        notes = [wrapped(note, "  ") for note in block.notes]
        blocks.append("\n".join([block.title, *(table.terminal() for table in block.tables), *notes]))
    told = [wrapped(sentence, "* ") for sentence in difference_sentences(results)]
    blocks.append("\n".join(["What differs beyond chance", *told]))
    minded = [wrapped(sentence, "! ") for sentence in incomparable_sentences(results)]
    if minded:
        blocks.append("\n".join(["What cannot be told, and what to mind", *minded]))
    return "\n\n".join([*blocks, wrapped(rate_meaning(results)), wrapped(DIFFERENCE_MEANING)])


def findings_table(results: Results, people: int) -> str:
    """Composite findings by group, what differs beyond chance, what cannot be compared: some ten lines for one finding.

    `people` is how many annotators there are.
    """
    lines = [wrapped(f"Found in {extent(results, people).removesuffix('.')}:")]
    shown = [figure for figure in figures(results) if figure.task is None]
    if shown:
        rows = [row for figure in shown for row in _short_rows(figure, tuple(results.by[:1]))]
        lines.append(Table(rows, left=1).terminal((_NAME, 20)))
    star = "* " if any(standing_out(results)) else ""
    for mark, found in ((star, difference_sentences(results)), ("! ", incomparable_sentences(results))):
        sentences = list(found)
        more = len(sentences) - _FIRST
        if more > 0:
            sentences[_FIRST - 1] += f" {more:,} more in report.html."
        lines += [wrapped(sentence, mark) for sentence in sentences[:_FIRST]]
    return "\n".join(lines)


def _short_rows(figure: Figure, by: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    """The rate over all answers and in each group, and in one row the groups that have none."""
    assert isinstance(figure.found, Finding)
    left_out = f", {figure.found.n_incomplete:,} left out" if figure.found.n_incomplete else ""
    yield cut(figure.title), rate_estimate(figure.found), f"of {counted(figure.found.n_units, figure.unit)}{left_out}"
    groups = [group for group in figure.found.groups if tuple(group.by) == by]
    for group in groups[:GROUPS_SHOWN]:
        if group.rate is not None:
            basis = f"of {counted(group.n_units, figure.unit)}"
            yield cut(f"  {group_name(group.by)}"), rate_estimate(group), basis
    without = [group_name(group.by) for group in groups[:GROUPS_SHOWN] if group.rate is None]
    if without:
        yield cut(f"  {', '.join(without)}"), UNDEFINED, NOT_IN_EVERY_PART
    if len(groups) > GROUPS_SHOWN:
        yield f"  {len(groups) - GROUPS_SHOWN:,} more groups", "", "in report.html"


def _finding_lines(figure: Figure, behind: Sequence[str]) -> Iterator[str]:
    """What makes an answer count, a line for all answers and each group, and what stands behind them."""
    assert isinstance(figure.found, Finding)
    yield _rate_table([figure], "answer", groups=True)
    yield wrapped(f"Yes: {definition(figure.found)}.", "  ")
    if left_out := left_out_sentence(figure.found):
        yield wrapped(left_out, "  ")
    yield from (wrapped(sentence, "  ") for sentence in behind)


def _task_lines(task: str, of_task: Sequence[Figure], groups: bool, behind: Sequence[str]) -> Iterator[str]:
    """The task, for each of its labels a line for all and one for each group, and what stands behind them."""
    yield task
    yield _rate_table(of_task, of_task[0].unit, groups)
    yield from (wrapped(sentence, "  ") for sentence in behind)


def _rate_table(shown: Sequence[Figure], unit: str, groups: bool) -> str:
    """A line for each label or finding, and one for each of its groups below it."""
    rows: list[tuple[str, ...]] = [("", "yes [95 %]", f"{unit}s", "narratives")]
    for name, depth, rate in rate_rows(shown, groups):
        rows.append((cut("  " * depth + name), rate_estimate(rate), f"{rate.n_units:,}", f"{rate.n_narratives:,}"))
    return Table(rows, left=1).terminal(_WIDTHS)


def cut(name: str, columns: int = _NAME) -> str:
    """The name, cut to so many columns; characters of double width count as two."""
    from rich.cells import cell_len, set_cell_size  # here, because commands import this module at their top

    text = printable(name)
    return text if cell_len(text) <= columns else f"{set_cell_size(text, columns - 1).rstrip()}…"


def wrapped(sentence: str, mark: str = "") -> str:
    """The sentence on lines of the table's width, behind its mark; a number stays beside its per cent, a p whole.

    Characters of double width count as two; a word that is wider than a line is broken.
    """
    from rich.cells import cell_len, chop_cells

    room = _WIDTH - len(mark)
    kept = _KEPT.sub(lambda found: found[0].replace(" ", "\xa0"), printable(sentence))
    lines = [""]
    for word in (part for each in kept.split(" ") for part in chop_cells(each, room)):
        if lines[-1] and cell_len(lines[-1]) + 1 + cell_len(word) > room:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return "\n".join(f"{' ' * len(mark) if number else mark}{line}" for number, line in enumerate(lines)).replace(
        "\xa0", " "
    )

"""What the jury found as a LaTeX table for a paper; it needs `booktabs`, with any LaTeX."""

from collections.abc import Iterator, Sequence

from exports.report.results_differences import difference_sentences
from exports.report.results_landscape import landscape_blocks
from exports.report.results_words import (
    Figure,
    definition,
    denominator_sentence,
    figures,
    left_out_sentence,
    rate_estimate,
    rate_meaning,
    rate_rows,
    shows_groups,
    summary_sentence,
)
from exports.results.schema import Finding, Results
from pipeline.tables import Table, escape_latex

MARK = "% citejury exports results"
"""The first line: by it the file is known as ours."""

_HEAD = ("", r"yes [95\,\%]", r"$n$", "narratives")


def results_latex(results: Results) -> str:
    """A `table` environment for the composite findings and one for each task; ends in a line break."""
    shown = list(figures(results))
    lines = [MARK, r"% In the preamble: \usepackage{booktabs}, and \usepackage{textcomp} before LaTeX 2020."]
    whole = [figure for figure in shown if figure.task is None]
    if whole:
        lines += _table("What the jury found: answers as a whole", "findings", whole, results)
    for task in results.tasks:
        of_task = [figure for figure in shown if figure.task == task]
        lines += _table(f"What the jury found: {task}", task, of_task, results)
    for block in landscape_blocks(results, narrow=True):
        for number, table in enumerate(block.tables, start=1):
            name = f"{block.name}-{number}" if len(block.tables) > 1 else block.name
            lines += _block_table(block.title, name, table, block.notes if number == len(block.tables) else ())
    return "\n".join([*lines, ""])


def _block_table(title: str, name: str, table: Table, notes: Sequence[str]) -> Iterator[str]:
    """The lines of one table of a block, with the notes below it."""
    head = table.rows[0]
    yield from (r"\begin{table}", r"\centering", rf"\caption{{{escape_latex(title)}}}")
    yield from (rf"\label{{tab:citejury-{name}}}", r"\small\setlength{\tabcolsep}{4pt}")
    yield from (rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}", r"\toprule")
    yield " & ".join(escape_latex(str(cell)) for cell in head) + r" \\"
    yield from (r"\midrule", table.latex(), r"\bottomrule", r"\end{tabular}")
    if notes:
        yield from ("", r"\smallskip", r"\begin{minipage}{\linewidth}\footnotesize")
        yield from (rf"\par {escape_latex(note)}" for note in notes)
        yield r"\end{minipage}"
    yield r"\end{table}"


def _table(caption: str, name: str, shown: Sequence[Figure], results: Results) -> Iterator[str]:
    """The lines of one table, with what stands behind it below."""
    yield from (r"\begin{table}", r"\centering", rf"\caption{{{escape_latex(caption)}}}")
    yield from (rf"\label{{tab:citejury-{name}}}", r"\small\setlength{\tabcolsep}{4pt}")
    yield from (rf"\begin{{tabular}}{{l{'r' * (len(_HEAD) - 1)}}}", r"\toprule", " & ".join(_HEAD) + r" \\")
    for figure in shown:
        rows = [
            (f"– {label}" if depth else label, rate_estimate(rate), f"{rate.n_units:,}", f"{rate.n_narratives:,}")
            for label, depth, rate in rate_rows([figure], figure.task is None or shows_groups(results))
        ]
        yield from (r"\midrule", Table([_HEAD, *rows], left=1).latex())
    yield from (r"\bottomrule", r"\end{tabular}", "", r"\smallskip", r"\begin{minipage}{\linewidth}\footnotesize")
    notes = [summary_sentence(results), f"n: {shown[0].unit}s. {rate_meaning(results)}"]
    for figure in shown:
        if isinstance(figure.found, Finding):
            notes += [f"{figure.title}: {definition(figure.found)}.", left_out_sentence(figure.found)]
    if shown[0].task is None:
        notes += [f"Beyond chance: {sentence}" for sentence in difference_sentences(results)]
    notes += dict.fromkeys(denominator_sentence(figure.found.denominators) for figure in shown)
    yield from (rf"\par {escape_latex(note)}" for note in notes if note)
    yield from (r"\end{minipage}", r"\end{table}")

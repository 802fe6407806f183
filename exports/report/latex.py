"""Agreement as a LaTeX table for a paper; it needs `booktabs` and compiles with pdfLaTeX, XeLaTeX and LuaLaTeX."""

from collections.abc import Iterator

from exports.agreement.schema import Agreement, LabelAgreement
from exports.report.words import alpha_estimate, decimal, label_sentence, percent
from pipeline.tables import Table, escape_latex

MARK = "% citejury exports agreement"
"""The first line: by it the file is known as ours."""

_HEAD = (r"label", r"$n$", r"$\alpha$ [95\,\%]", r"AC\textsubscript{1}", r"agr.", r"$P^{+}$", r"$P^{-}$", r"yes")


def agreement_latex(agreement: Agreement) -> str:
    """A `table` environment with a block for each task, and how it was computed below; ends in a line break."""
    return "\n".join(
        [
            MARK,
            r"% In the preamble: \usepackage{booktabs}, and \usepackage{textcomp} before LaTeX 2020.",
            r"\begin{table}",
            r"\centering",
            r"\caption{Agreement between annotators}",
            r"\label{tab:citejury-agreement}",
            r"\small\setlength{\tabcolsep}{4pt}",
            rf"\begin{{tabular}}{{l{'r' * (len(_HEAD) - 1)}}}",
            r"\toprule",
            " & ".join(_HEAD) + r" \\",
            *_task_lines(agreement),
            r"\bottomrule",
            r"\end{tabular}",
            "",
            r"\smallskip",
            *_note_lines(agreement),
            r"\end{table}",
            "",
        ]
    )


def _task_lines(agreement: Agreement) -> Iterator[str]:
    """The lines of all tasks: a rule, the task's name over the width, a line for each label."""
    for task, figures in agreement.tasks.items():
        yield r"\midrule"
        yield rf"\multicolumn{{{len(_HEAD)}}}{{l}}{{\emph{{{escape_latex(task)}}}}} \\"
        yield Table(
            [_HEAD, *((label, *_label_cells(found)) for label, found in figures.labels.items())], left=1
        ).latex()


def _label_cells(found: LabelAgreement) -> tuple[str, ...]:
    """The cells of one label, as plain text."""
    return (
        str(found.n_pairable_items),
        alpha_estimate(found),
        decimal(found.gwet_ac1),
        percent(found.percent_agreement),
        decimal(found.positive_agreement),
        decimal(found.negative_agreement),
        percent(found.prevalence),
    )


def _note_lines(agreement: Agreement) -> Iterator[str]:
    """What the columns mean, and the methods sentence of the first label of each task."""
    yield r"\begin{minipage}{\linewidth}\footnotesize"
    yield (
        r"$n$: units with two answers or more. $\alpha$: Krippendorff's alpha. AC\textsubscript{1}: Gwet's. "
        r"agr.: share of agreeing pairs. $P^{+}$, $P^{-}$: specific agreement on yes and on no. "
        r"yes: share of yes among all votes. \textendash{}: undefined."
    )
    for task, figures in agreement.tasks.items():
        for label in list(figures.labels)[:1]:
            sentence = escape_latex(f"{task}, {label}: {label_sentence(agreement, task, label)}.")
            yield f"\\par {sentence.replace('= {-}', '= $-$')}"
    yield r"\end{minipage}"

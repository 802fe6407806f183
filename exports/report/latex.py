"""Agreement as a LaTeX table for a paper; it needs `booktabs` and compiles with pdfLaTeX, XeLaTeX and LuaLaTeX."""

from collections.abc import Iterator

from exports.agreement.figures import LabelAgreement
from exports.agreement.schema import Agreement
from exports.report.words import alpha_estimate, decimal, label_sentence, percent
from pipeline.text.terminal import printable

MARK = "% citejury exports agreement"
"""The first line: by it the file is known as ours."""

HEAD = (r"label", r"$n$", r"$\alpha$ [95\,\%]", r"AC\textsubscript{1}", r"agr.", r"$P^{+}$", r"$P^{-}$", r"yes")

SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedblright{}",
    "'": "{'}",
    "`": "{`}",
    "-": "{-}",
    "[": "{[}",
    "]": "{]}",
    "α": r"$\alpha$",
    "κ": r"$\kappa$",
    "⁺": r"$^{+}$",
    "⁻": r"$^{-}$",
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "’": r"\textquoteright{}",
    **dict.fromkeys("ÐÞðþ", "?"),
}


def escape_latex(text: str) -> str:
    """The text as it stands, whatever is in it: no command, comment or column can come of it.

    Letters that the fonts pdfLaTeX loads by itself do not have become `?`.
    """
    return "".join(
        SPECIAL.get(character, character if character.isascii() or "À" <= character <= "ÿ" else "?")
        for character in printable(text)
    )


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
            rf"\begin{{tabular}}{{l{'r' * (len(HEAD) - 1)}}}",
            r"\toprule",
            latex_row(HEAD),
            *task_lines(agreement),
            r"\bottomrule",
            r"\end{tabular}",
            "",
            r"\smallskip",
            *note_lines(agreement),
            r"\end{table}",
            "",
        ]
    )


def task_lines(agreement: Agreement) -> Iterator[str]:
    """The lines of all tasks: a rule, the task's name over the width, a line for each label."""
    for task, figures in agreement.tasks.items():
        yield r"\midrule"
        yield rf"\multicolumn{{{len(HEAD)}}}{{l}}{{\emph{{{escape_latex(task)}}}}} \\"
        for label, found in figures.labels.items():
            yield latex_row((escape_latex(label), *map(signed, label_cells(found))))


def latex_row(cells: tuple[str, ...]) -> str:
    """One line of the table, of cells that are LaTeX."""
    return " & ".join(cells) + r" \\"


def label_cells(found: LabelAgreement) -> tuple[str, ...]:
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


def signed(cell: str) -> str:
    """A cell of numbers as LaTeX, with minus signs instead of hyphens."""
    return escape_latex(cell).replace("{-}", "$-$")


def note_lines(agreement: Agreement) -> Iterator[str]:
    """What the columns mean, and the methods sentence of the first label of each task."""
    yield r"\begin{minipage}{\linewidth}\footnotesize"
    yield (
        r"$n$: units with two answers or more. $\alpha$: Krippendorff's alpha. AC\textsubscript{1}: Gwet's. "
        r"agr.: share of agreeing pairs. $P^{+}$, $P^{-}$: specific agreement on yes and on no. "
        r"yes: share of yes among all answers. \textendash{}: undefined."
    )
    for task, figures in agreement.tasks.items():
        for label in list(figures.labels)[:1]:
            sentence = escape_latex(f"{task}, {label}: {label_sentence(agreement, task, label)}.")
            yield f"\\par {sentence.replace('= {-}', '= $-$')}"
    yield r"\end{minipage}"

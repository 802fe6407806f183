"""The page model as LaTeX for XeLaTeX and LuaLaTeX: paragraphs and tables in any script, whose texts run no command."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from importlib.resources import files

from exports.report.sections import Section
from pipeline.core.tables import Table
from pipeline.core.terminal import printable

_UNSET = "\ufffd"  # LuaTeX takes it for bytes that are no text
_ESCAPED = {
    **{char: f"\\{char}" for char in "{}$&#%_"},
    **{"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"},
    **{"\N{MINUS SIGN}": "$-$", "≤": r"$\le$", "≥": r"$\ge$", "×": r"$\times$", "÷": r"$\div$", "±": r"$\pm$"},
    **{"α": r"$\alpha$", "κ": r"$\kappa$", "ρ": r"$\rho$", "ω": r"$\omega$", "λ": r"$\lambda$", "ε": r"$\varepsilon$"},
    _UNSET: r"\unset{}",
    **{"Δ": r"$\Delta$", "⁺": "$^{+}$", "⁻": "$^{-}$"},
}
_SET = f"[ -~¡-¬®-\u017f–—‘’“”…•†‡€\N{MINUS SIGN}≤≥⁺⁻{_UNSET}]"  # What Latin Modern or an escape has
_PARTS = re.compile(rf"(?<!\w)[ακρωλεΔ](?!\w)|({_SET}+)|(?:(?!{_SET}).)+")
_HEADS = {1: "section", 2: "section", 3: "subsection"}
_TOLD = f"Where {_UNSET} stands, a name has characters that cannot be set, such as control characters or line ends."


def latex_mark(command: str) -> str:
    return f"% citejury {command}"


def latex_text(command: str, sections: Iterable[Section]) -> str:
    """A document that ends in a line break, as a file of this command."""
    blocks = [block for section in sections for block in _blocks(section)]
    head = files(__package__).joinpath("document.tex").read_text(encoding="utf-8").rstrip()
    if any(_ESCAPED[_UNSET] in block for block in blocks):
        blocks.insert(0, latex(_TOLD))
    return "\n\n".join([f"{latex_mark(command)}\n{head}", *blocks, "\\end{document}\n"])


def _blocks(section: Section) -> Iterator[str]:
    if section.title:
        yield f"\\{_HEADS.get(section.depth, 'subsubsection')}*{{{latex(section.title)}}}"
    yield from (f"\\par {latex(text)}" for _, text in section.lead)
    yield from map(_table, section.tables)
    yield from (f"\\par {latex(note)}" for note in section.notes)
    yield from (f"\\par {latex(text)}" for _, text in section.points)
    yield from (block for part in section.parts for block in _blocks(part))


def _table(table: Table) -> str:
    columns = len(table.rows[0])
    left = columns if table.left is None else min(table.left, columns)
    head, *rows = (" & ".join(latex(str(cell)) for cell in row) + r" \\" for row in table.rows)
    frame = "l" * left + "r" * (columns - left)
    begin = rf"{{\footnotesize\begin{{longtable}}[l]{{@{{}}{frame}@{{}}}}"
    return "\n".join([begin, r"\hline", head, r"\hline\endhead", *rows, r"\hline", r"\end{longtable}}"])


def latex(text: str) -> str:
    """The text as it stands, whatever is in it: no command, group, comment, table cell or other font can come of it."""
    return "".join(map(_part, _PARTS.finditer(printable(text))))


def _part(found: re.Match[str]) -> str:
    if found[1] or found[0] in _ESCAPED:
        return "".join(_ESCAPED.get(char, char) for char in found[0])
    script = f"\\script{{{ord(found[0][0]):04X}}}{{{found[0]}}}"
    is_right_to_left = any(unicodedata.bidirectional(char) in ("R", "AL") for char in found[0])
    return f"\\rtl{{{script}}}" if is_right_to_left else script

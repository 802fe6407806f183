"""LaTeX tables as a paper takes them: well formed, and compiled where pdfLaTeX is installed."""

import re
import subprocess
from pathlib import Path


def assert_well_formed(page: str) -> None:
    """Braces and environments close in order, every line of the table has its columns, no letter is foreign."""
    body = re.sub(r"^%.*\n", "", page, flags=re.MULTILINE)
    bare = re.sub(r"\\[\\{}$&#%_]", "", body)
    assert bare.count("$") % 2 == 0
    depth = 0
    for character in bare:
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth >= 0
    assert depth == 0
    opened: list[str] = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", body):
        if kind == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert opened == []
    for table in re.findall(r"\\begin\{tabular\}.*?\\end\{tabular\}", body, re.DOTALL):
        width = len(re.search(r"\\begin\{tabular\}\{(\w+)\}", table).group(1))  # type: ignore[union-attr]
        rows = [line for line in table.splitlines() if line.endswith(r"\\") and r"\multicolumn" not in line]
        assert {len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows} == {width}
    commands = set(re.findall(r"\\([a-zA-Z]+)", body))
    assert commands <= KNOWN_COMMANDS, commands - KNOWN_COMMANDS


KNOWN_COMMANDS = {
    *("alpha", "begin", "bottomrule", "caption", "centering", "emph", "end", "footnotesize", "label", "linewidth"),
    *(
        "midrule",
        "multicolumn",
        "par",
        "setlength",
        "small",
        "smallskip",
        "tabcolsep",
        "textasciicircum",
        "textasciitilde",
        "textbackslash",
        "textbar",
    ),
    *("textendash", "textgreater", "textless", "textquotedblright", "textsubscript", "toprule"),
}


def compile_latex(page: str, folder: Path) -> bytes:
    """What pdfLaTeX prints about an article with this table, which it must be able to set."""
    document = "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\n" + page + "\\end{document}\n"
    (folder / "paper.tex").write_text(document, encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "paper.tex"],
        cwd=folder,
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert (folder / "paper.pdf").stat().st_size > 1000
    return done.stdout

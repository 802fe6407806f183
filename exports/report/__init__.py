"""Figures in; what people look at out: sentences, terminal, Markdown, LaTeX, tidy CSV tables and the HTML report.

Read `words` first: every other module shows its sentences and numbers. `agreement_page`, `results_page` and `trend`
make sections of them, which `sections` writes for a terminal, as Markdown and as LaTeX. `tidy` is for programs, and
`disagreement_files` gives disagreements the texts and notes of their units.
"""

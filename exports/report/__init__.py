"""Figures in; what people look at out: sentences, terminal, Markdown, tidy CSV tables and the HTML report.

Read `words` first: every other module shows its sentences and numbers. `agreement_page` and `results_page` make
sections of them, which `sections` writes for a terminal and as Markdown. `tables` is for programs, and
`disagreement_files` gives disagreements the texts and notes of their units. `files` is all of `exports agreement` and
`exports results`, `notebook` the same figures as objects.
"""

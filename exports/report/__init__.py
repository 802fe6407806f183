"""Figures in; what people look at out: sentences, terminal, Markdown, tidy CSV tables and the HTML report.

Read `words` first: every other module shows its sentences and numbers. `agreement_page`, `people_page`, `judge_page`
and `results_page` compose a page of them as plain values, the model in `sections`, which also writes them for a
terminal, as Markdown and as LaTeX; `details_page` writes them as HTML. `report_page` is the report for everybody, with
what `judged_answers` knows of each. `tables` is for programs, and `disagreement_files` gives disagreements the texts
and notes of their units. `files` is all of `exports results`, `notebook` the same figures as objects.
"""

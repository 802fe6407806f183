"""How far the annotators are and how well they answer: status, questions, controls, repeats and practice.

In comes every answer without its texts (`annotation.argilla.units`); out goes one `Status`, shown as text, JSON or a
page. Read `schema` for what it says, then `summary` for how it is counted. `escalation` lets units on which a label is
split wait for one submission more. Controls are units whose answers are known, mixed among the others: `planting` makes
them, `control_files` reads those that a person confirmed, `control_push` puts them in, `scores` counts. `practice` is a
round of known cases that comes before production.
"""

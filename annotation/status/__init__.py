"""How far the annotators are, and one annotator more where they are split.

In comes every answer without its texts (`annotation.units`); out goes one `Status`, shown as text, JSON or a page. Read
`_schema.py` for what it tells, then `summary.py` for how it is counted. `escalation.py` reads the same and lets units
on which a label is split wait for one submission more, before adjudication.
"""

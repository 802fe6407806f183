"""How far the annotators are.

In comes every answer without its texts (`annotation.units`); out goes one `Status`, shown as text, JSON or a page. Read
`_schema.py` for what it tells, then `summary.py` for how it is counted.
"""

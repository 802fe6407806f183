"""What annotators see and answer, and the connection to the Argilla that shows it to them.

In: canonical records, labels and wording. Out: Argilla's datasets, records and answers. Read `labels.py`, `tasks.py`
and `display.py` first; `client.py` is the connection.
"""

"""Answers of CSV v2 go in; canonical records come out, with every provider's citation marks as `[n]`.

Read `run.py` first: a run folder's answers, citations and records, and records as JSON Lines.
"""

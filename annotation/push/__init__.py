"""Records in, units in Argilla out: only what is new or changed, never over an answer.

In come run folders, files of records or data frames; out goes a report of what became of each unit. Read `push.py`
first, then `diff.py` for what decides it, and `send.py` for how an answer that comes in meanwhile stays whole.
"""

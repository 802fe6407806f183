"""The nine stages of a run: intake, plan, harvest, fetch, extract, verify, write, audit, cache.

Read `run_stages.py` first; `_rounds.py` repeats the middle four until enough is known, `report.py` does the last three.
Each other module is one stage, a function from values to values.
"""

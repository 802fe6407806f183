"""A run's options go in; a run that can be stopped and resumed comes out: its journal, budget and environment.

Read `research_run.py` first, then `journal.py`, which makes a stage's result durable before anything is done with it.
"""

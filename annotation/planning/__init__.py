"""A study before it begins: how many hours a sample takes, what it can find out, and which narratives are in it.

Records in; a plan and a list of the sampled records out. Read `plan.py` first, then `_sampling.py` for which narratives
are drawn, `pace.py` for the hours and `_power.py` for the difference that can be found.
"""

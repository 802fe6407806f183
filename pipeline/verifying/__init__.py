"""Anybody's report and the stored pages that it cites go in; a verdict on each sentence comes out, without a model.

Read `verify.py` first. `read.py` and `marks.py` find out which sentence cites which page; `rules.py`
compares one sentence with pages, `model_verdicts.py` asks a model about what is left open.
"""
